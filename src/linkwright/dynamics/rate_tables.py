"""The rates of a tree in depth-first order, tables with a number of each, and cases of statements over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from linkwright.base.locks import cached_property
from linkwright.dynamics.traversals.traversal import depth_first
from linkwright.model.tree import Tree
from linkwright.spatial.algebra import Array
from linkwright.tape.build import ProgramBuilder, Ref, Wiring
from linkwright.tape.program import ITEM, Operand

#: Products of three entries up to which the factors of M are computed in straight code.
STRAIGHT_FACTOR = 4_000


@dataclass(frozen=True)
class Rate:
    """A rate: its link, which of the link's rates it is, and how many rates its joint has that are one motion."""

    link: int
    index: int
    together: int


class RateOrder:
    """The rates of a tree in depth-first order, and the groups in which they follow each other without branches."""

    def __init__(self, tree: Tree) -> None:
        kinds, at = tree.kinds, tree.coordinates.v_at
        self.rates = [
            Rate(i, k, kinds[i].nv if kinds[i].steady else 1)
            for i in depth_first(tree.parent.tolist())
            for k in range(kinds[i].nv)
        ]
        #: The number of each rate among the mechanism's.
        self.numbers = [int(at[r.link]) + r.index for r in self.rates]
        place = {(r.link, r.index): n for n, r in enumerate(self.rates)}
        self.parent: list[int] = []
        for r in self.rates:
            i, k = (r.link, r.index - 1) if r.index else (tree.parent[r.link], -1)
            while k < 0 <= i and not kinds[i].nv:
                i = tree.parent[i]
            self.parent.append(-1 if i < 0 else place[int(i), k if k >= 0 else kinds[i].nv - 1])
        children = [self.parent.count(n) for n in range(len(self.rates))]
        starts = [n for n, p in enumerate(self.parent) if p < 0 or children[p] > 1 or p != n - 1]
        self.groups = [range(a, b) for a, b in zip(starts, [*starts[1:], len(self.rates)], strict=True)]
        #: The last rate of each rate's own motion: rates up to it move the rate's link as a whole.
        self.last = [n + max(r.together - 1 - r.index, 0) for n, r in enumerate(self.rates)]

    def __len__(self) -> int:
        return len(self.rates)

    def above(self, n: int) -> Iterator[int]:
        """The rates above one, nearest first."""
        n = self.parent[n]
        while n >= 0:
            yield n
            n = self.parent[n]

    @cached_property
    def related(self) -> list[list[int]]:
        """For every group the rates that are above, in or below it, in order."""
        ends = [group[-1] for group in self.groups]
        below = [[n for n in range(len(self)) if n > end and end in self.above(n)] for end in ends]
        return [sorted([*self.above(end), end, *more]) for end, more in zip(ends, below, strict=True)]

    @property
    def straight(self) -> bool:
        """Whether the factors of M are computed in straight code."""
        depth = [sum(1 for _ in self.above(n)) for n in range(len(self))]
        return sum(d * (d + 1) // 2 for d in depth) <= STRAIGHT_FACTOR


class Table:
    """Named rows of numbers, one number a rate."""

    def __init__(self, builder: ProgramBuilder, name: str, fields: Mapping[str, int], count: int) -> None:
        self.count, self.at = count, {}
        rows = 0
        for field, size in fields.items():
            self.at[field] = (rows, size)
            rows += size
        self.ref = builder.temporary(builder.free_name(name), (rows, count))

    def beside(self, field: str) -> list[Operand]:
        """A field's numbers of the rate whose turn it is, one operand each."""
        first, size = self.at[field]
        return [beside(self.ref, first + k, self.count) for k in range(size)]

    def whole(self, field: str) -> Operand:
        """A field's numbers of all rates."""
        first, size = self.at[field]
        return self.ref.part(first * self.count, (size * self.count,)).operand


def beside(matrix: Ref, row: int, count: int) -> Operand:
    """The number of a row of a matrix that belongs to the rate whose turn it is."""
    return matrix.part(row * count, (1,)).at((1, ITEM)).operand


class Lanes:
    """Records what is computed of one rate (or link) from tables, as a case of a statement over these."""

    def __init__(self, *sources: Table, target: Table | None = None) -> None:
        self.sources, self.target, self.wiring = sources, target, Wiring()
        self._whole: dict[str, Array] = {}

    def _source(self, field: str) -> Table:
        return next(table for table in self.sources if field in table.at)

    def here(self, field: str) -> Array:
        """A field's numbers of the rate whose turn it is."""
        return np.array([x for o in self._source(field).beside(field) for x in self.wiring.read(o)])

    def of(self, field: str, n: int) -> Array:
        """A field's numbers of rate n, the same for all whose turn it is."""
        if field not in self._whole:
            table = self._source(field)
            self._whole[field] = np.array(self.wiring.read(table.whole(field))).reshape(-1, table.count)
        return self._whole[field][:, n]

    def leave(self, field: str, values: Array) -> None:
        """Store a field's numbers of the rate whose turn it is."""
        assert self.target is not None
        for o, x in zip(self.target.beside(field), values, strict=True):
            self.wiring.write(o, [self.wiring.recorder.lift(x)])
