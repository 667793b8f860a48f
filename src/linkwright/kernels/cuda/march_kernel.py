"""A program that each thread of a GPU calls again and again, from what its last call left: see `march_threads`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from linkwright.kernels.cuda.device_arrays import module, pieces, uploaded
from linkwright.kernels.cuda.state_threads import BLOCK, march_text
from linkwright.tape.program import Program

_FEW = 2**14  # states up to which half blocks reach more processors


class Walked(NamedTuple):
    """An array on the device with its steps, in numbers: from state to state, and from call to call or row to row."""

    array: Any
    state: int
    row: int = 0

    def address(self, state: int) -> np.uint64:
        return np.uint64(self.array.data.ptr + self.array.itemsize * self.state * state)


class MarchKernel:
    """A program on the current device that states march through, a thread each."""

    def __init__(self, program: Program, precision: str) -> None:
        text = march_text(program, precision)
        self.program, self.precision, self.work = program, precision, text.work
        self.function = module(text.source).get_function(text.name)
        self.tables = uploaded(program, text.outside, precision)
        self.sizes = [b.size for b in program.outputs]

    def __call__(
        self,
        inputs: Sequence[Walked],
        last: Sequence[Any],
        samples: Sequence[Walked | None],
        count: int,
        calls: int,
        every: int,
    ) -> None:
        """`calls` calls for each of `count` states; `last` may be the arrays that the states come from."""
        piece, room = pieces(self.work, self.precision, count, BLOCK)
        steps = [x.state for x in inputs] + [x.row for x in inputs]
        steps += [0 if x is None else x.state for x in samples] + [0 if x is None else x.row for x in samples]
        block = BLOCK // 2 if count <= _FEW else BLOCK
        for begin in range(0, count, piece):
            here = min(piece, count - begin)
            addresses = [x.address(begin) for x in inputs]
            addresses += [Walked(x, n).address(begin) for x, n in zip(last, self.sizes, strict=True)]
            addresses += [np.uint64(0) if x is None else x.address(begin) for x in samples]
            whole = (*addresses, *room, *self.tables, *map(np.int64, (*steps, here, calls, every)))
            self.function((-(-here // block),), (block,), whole)
