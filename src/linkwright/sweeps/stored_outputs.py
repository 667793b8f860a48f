"""The outputs of a study's cases, read from files when they are asked for, block by block, with a cache.

What is in the files, and whether it is good, is a matter of whoever gives `read`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arguments import empty
from linkwright.base.arrays import Floats, Longs
from linkwright.base.locks import Lock

#: Bytes of outputs that are kept in memory: all of a study with fewer, which is read at once; else those used last.
MEMORY = 2**26


def is_small(count: int) -> bool:
    """Whether outputs of so many bytes are read at once."""
    return count <= MEMORY


_ADVICE = "take fewer cases, as study.data[...].isel(case=slice(1000)), or go through study.blocks(...)"


class StoredOutputs:
    """Outputs of cases in blocks of `size` consecutive ones, the last with fewer.

    `shapes` are those of a case's outputs, by their names; `reasons` those of failures, empty for good cases. `read`
    takes a name and the number of a block, and gives the block's array.
    """

    def __init__(
        self,
        shapes: Mapping[str, tuple[int, ...]],
        reasons: list[str],
        size: int,
        read: Callable[[str, int], Floats],
    ) -> None:
        self.shapes, self.reasons, self.size, self._read = dict(shapes), reasons, size, read
        self._cache: OrderedDict[tuple[str, int], Floats] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self.reasons)

    @property
    def arrays(self) -> dict[str, StoredColumn]:
        """The outputs by their names, of which nothing is read yet."""
        return {name: StoredColumn(self, name) for name in self.shapes}

    def block(self, name: str, index: int) -> Floats:
        """An output of the cases in a block."""
        with self._lock:
            block = self._cache.get((name, index))
            if block is None:
                block = self._read(name, index)
                block.flags.writeable = False
                self._cache[name, index] = block
                self._bytes += block.nbytes
                while self._bytes > MEMORY and len(self._cache) > 1:
                    self._bytes -= self._cache.popitem(last=False)[1].nbytes
            self._cache.move_to_end((name, index))
            return block


class StoredColumn:
    """One output of all cases, (n, ...), read as far as it is asked for."""

    dtype = np.dtype(np.float64)

    def __init__(self, outputs: StoredOutputs, name: str) -> None:
        self.outputs, self.name = outputs, name
        self.shape = (len(outputs), *outputs.shapes[name])
        self.ndim = len(self.shape)

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """The cases of each block, and the output of these."""
        n, size = self.shape[0], self.outputs.size
        for index in range(-(-n // size)):
            yield slice(index * size, min((index + 1) * size, n)), self.outputs.block(self.name, index)

    def whole(self) -> Floats:
        """All cases; a `MemoryLimitError` where these are more than memory has."""
        whole = empty(f"{self.name!r} of all cases", self.shape, _ADVICE)
        for cases, block in self.blocks():
            whole[cases] = block
        return whole

    def at(self, cases: Longs, keys: tuple[Any, ...] = ()) -> Floats:
        """Of some cases, in their order, what `keys` choose of the other axes: a number, a slice or an array each."""
        shape = _chosen(np.empty((0, *self.shape[1:])), keys).shape[1:]
        numbers = empty(f"{self.name!r} of {len(cases):,} cases", (len(cases), *shape), _ADVICE)
        block_of = cases // self.outputs.size
        order = np.argsort(block_of, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(block_of[order])) + 1):
            if len(rows):
                index = int(block_of[rows[0]])
                block = self.outputs.block(self.name, index)
                numbers[rows] = _chosen(block[cases[rows] - index * self.outputs.size], keys)
        return numbers


def _chosen(array: Floats, keys: tuple[Any, ...]) -> Floats:
    """What keys choose of the axes after the first, each for itself."""
    for axis in range(len(keys), 0, -1):
        array = array[(slice(None),) * axis + (keys[axis - 1],)]
    return array


def blocks_of(column: NDArray[Any] | StoredColumn) -> Iterator[tuple[slice, Floats]]:
    """The cases of blocks, and the numbers of these: one block where they are in memory."""
    if isinstance(column, StoredColumn):
        yield from column.blocks()
    else:
        yield slice(0, len(column)), column
