"""Systems of small blocks, symmetric and semidefinite, solved in straight-line code: the equations of loops repeat."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from linkwright.dynamics.closed.redundancy import Blocks
from linkwright.spatial.algebra import Array, is_zero
from linkwright.spatial.definite import LeastSquares, Limit, swept
from linkwright.tape.recorder import minimum

Pair = tuple[int, int]


@dataclass(frozen=True)
class Scales:
    """How large the pivots of a block are: beside `references` they are zero or not, beside `sizes` they are chosen."""

    references: Array
    sizes: Array


@dataclass(frozen=True)
class Limits:
    """The part of its reference up to which a pivot counts as zero."""

    regular: Any  # among as many as are independent at regular positions
    beyond: Any


class Elimination:
    """K by its blocks on and above the diagonal, eliminated one by one, those with the fewest neighbours first.

    A block that is not there is zero. Blocks whose equations are independent are eliminated in their order; where some
    repeat others, pivots are chosen by size when the code runs, and what they leave of contradictions is least squares.
    """

    def __init__(self, k: Mapping[Pair, Array], scales: Sequence[Scales], limits: Limits, blocks: Blocks) -> None:
        self.k, self.scales, self.limits, self.blocks = k, scales, limits, blocks
        self.left: dict[Pair, Array] = dict(k)
        self.inverses: dict[int, Inverse] = {}
        self.order: list[int] = []
        self.behind: dict[int, list[int]] = {}  # the neighbours of each that were left when it went
        self.least: Any = 1.0  # the least pivot of those that are independent at regular positions, as part of its size
        near: dict[int, set[int]] = {a: set() for a in range(len(scales))}
        for a, b in k:
            if a != b:
                near[a].add(b)
                near[b].add(a)
        while near:
            a = min(near, key=lambda x: (len(near[x]), x))
            neighbours = sorted(near.pop(a))
            self._eliminate(a, neighbours)
            for b in neighbours:
                near[b].discard(a)
                near[b].update(c for c in neighbours if c != b)

    def _block(self, a: int, b: int) -> Array | None:
        if (a, b) in self.left:
            return self.left[a, b]
        return self.left[b, a].T if (b, a) in self.left else None

    def _eliminate(self, a: int, neighbours: list[int]) -> None:
        pivot_block = self._block(a, a)
        rank = self.blocks.rank(a, self.order)
        self.order.append(a)
        self.behind[a] = neighbours
        if pivot_block is None:  # nothing gives way: what it asks is left out
            self.behind[a] = []
            return
        inverse = self.inverses[a] = inverse_of(pivot_block, self.scales[a], self.limits, rank, self.blocks.most(a))
        self.least = minimum(self.least, inverse.least)
        beside = {b: x for b in neighbours if (x := self._block(a, b)) is not None}
        for b in neighbours:
            share = inverse.solve(beside[b]).T
            for c in neighbours:
                if b <= c:
                    less = share @ beside[c]
                    before = self.left.get((b, c))
                    self.left[b, c] = -less if before is None else before - less

    def solve(self, right: Sequence[Array]) -> list[Array]:
        """A solution n of K n = r, refined once."""
        n, residual = self._once(right), list(right)
        for (a, b), block in self.k.items():
            residual[a] = residual[a] - block @ n[b]
            if a != b:
                residual[b] = residual[b] - block.T @ n[a]
        return [x + dx for x, dx in zip(n, self._once(residual), strict=True)]

    def _once(self, right: Sequence[Array]) -> list[Array]:
        x = list(right)
        for a in self.order:
            for b in self.behind[a]:
                block = self._block(b, a)
                assert block is not None
                x[b] = x[b] - block @ self.inverses[a].solve(x[a])
        for a in reversed(self.order):
            if a not in self.inverses:
                x[a] = 0.0 * x[a]
                continue
            for b in self.behind[a]:
                block = self._block(a, b)
                assert block is not None
                x[a] = x[a] - block @ x[b]
            x[a] = self.inverses[a].solve(x[a])
        return x


@dataclass(frozen=True)
class Inverse:
    """A generalised inverse of a block, and its least pivot that should not be zero, as a part of its row's size."""

    solve: Callable[[Array], Array]
    least: Any


def inverse_of(d: Array, scales: Scales, limits: Limits, rank: int | None, most: int) -> Inverse:
    """Of a block of which `rank` equations are independent at regular positions, and at most `most` anywhere."""
    rows = [k for k in range(len(d)) if not is_zero(d[k][k])]
    if rank is not None and rank >= len(rows):
        g, pivots = swept(d, scales.references, limits.regular)
        return Inverse(lambda x: g @ x, reduce(minimum, [pivots[k] / scales.sizes[k] for k in rows], 1.0))
    steps = [Limit(limits.regular, scales.references)] * (rank or 0)
    # A row that is nearly zero for a moment is not independent for being large beside itself.
    rare = scales.references if rank is None else scales.sizes
    steps += [Limit(limits.beyond, rare)] * (min(len(rows), most) - len(steps))
    factors = LeastSquares(d, scales.sizes, steps)
    return Inverse(factors.solve, factors.least(rank or 0))
