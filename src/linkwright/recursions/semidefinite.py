"""Systems of small blocks, symmetric and semidefinite, solved in straight-line code: the equations of loops repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkwright.spatial.algebra import Array
from linkwright.spatial.definite import generalised_inverse

Pair = tuple[int, int]


def solve_blocks(k: Mapping[Pair, Array], right: Sequence[Array], references: Sequence[Array]) -> list[Array]:
    """A solution of K n = r, by K's blocks on and above the diagonal: elimination block by block, refined once.

    A block that is not there is zero. `references` are the scales beside which a pivot counts as zero. Those with the
    fewest neighbours go first, so that little fills in.
    """
    elimination = _Elimination(k, len(right), references)
    n = elimination.solve(right)
    rest = list(right)
    for (a, b), block in k.items():
        rest[a] = rest[a] - block @ n[b]
        if a != b:
            rest[b] = rest[b] - block.T @ n[a]
    return [x + dx for x, dx in zip(n, elimination.solve(rest), strict=True)]


class _Elimination:
    def __init__(self, k: Mapping[Pair, Array], count: int, references: Sequence[Array]) -> None:
        self.left: dict[Pair, Array] = dict(k)
        self.inverses: dict[int, Array] = {}
        self.order: list[int] = []
        self.behind: dict[int, list[int]] = {}  # the neighbours of each that were left when it went
        near: dict[int, set[int]] = {a: set() for a in range(count)}
        for a, b in k:
            if a != b:
                near[a].add(b)
                near[b].add(a)
        while near:
            a = min(near, key=lambda x: (len(near[x]), x))
            rest = sorted(near.pop(a))
            self._eliminate(a, rest, references[a])
            for b in rest:
                near[b].discard(a)
                near[b].update(c for c in rest if c != b)

    def _block(self, a: int, b: int) -> Array | None:
        if (a, b) in self.left:
            return self.left[a, b]
        return self.left[b, a].T if (b, a) in self.left else None

    def _eliminate(self, a: int, rest: list[int], reference: Array) -> None:
        self.order.append(a)
        self.behind[a] = rest
        own = self._block(a, a)
        if own is None:  # nothing gives way: what it asks is left out
            self.behind[a] = []
            return
        inverse = self.inverses[a] = generalised_inverse(own, reference)
        beside = {b: x for b in rest if (x := self._block(a, b)) is not None}
        for b in rest:
            share = beside[b].T @ inverse
            for c in rest:
                if b <= c:
                    less = share @ beside[c]
                    known = self.left.get((b, c))
                    self.left[b, c] = -less if known is None else known - less

    def solve(self, right: Sequence[Array]) -> list[Array]:
        """K⁻ r."""
        x = list(right)
        for a in self.order:
            for b in self.behind[a]:
                block = self._block(b, a)
                assert block is not None
                x[b] = x[b] - block @ (self.inverses[a] @ x[a])
        for a in reversed(self.order):
            if a not in self.inverses:
                x[a] = 0.0 * x[a]
                continue
            for b in self.behind[a]:
                block = self._block(a, b)
                assert block is not None
                x[a] = x[a] - block @ x[b]
            x[a] = self.inverses[a] @ x[a]
        return x
