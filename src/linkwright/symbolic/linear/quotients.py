"""M⁻¹ R over the ring, as quotients of polynomials, where that is short enough to be read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import fmpq, fmpq_mat

from linkwright.errors import ModelError
from linkwright.symbolic.formulas.exact import bracketed, scaled
from linkwright.symbolic.formulas.formula import Sum, Term
from linkwright.symbolic.formulas.ring import Poly, Ring

Rows = list[list[Poly]]
#: Coupled coordinates up to which M is inverted by minors, and terms that this may have to handle.
LARGEST, TERMS = 4, 2_000_000
#: Products of lengths up to which common factors are looked for.
_COMMON = 200_000


@dataclass(frozen=True)
class Quotient:
    """numerator / denominator."""

    above: Poly
    below: Poly

    def __neg__(self) -> Quotient:
        return Quotient(-self.above, self.below)

    def formula(self, ring: Ring) -> Sum:
        """As a product, the denominator with powers below zero."""
        above, below = ring.formula(self.above), ring.formula(self.below)
        if not above or (len(below.terms) == 1 and below.terms[0] == Term(Fraction(1))):
            return above
        inverse = Term(Fraction(1), ((below, -1),))
        if len(below.terms) == 1:
            (one,) = below.terms
            inverse = Term(1 / one.number, tuple((factor, -power) for factor, power in one.factors))
        return bracketed(above, Sum((inverse,))) if inverse.factors else scaled(above, inverse.number)


def solved(ring: Ring, m: Rows, right: Rows) -> list[list[Quotient]]:
    """M⁻¹ R, each group of coupled coordinates on its own."""
    n = len(m)
    solution: list[list[Quotient]] = [[] for _ in range(n)]
    for group in _groups(m):
        coupled = [[m[i][j] for j in group] for i in group]
        adjugate, determinant = _inverse(ring, coupled)
        if not determinant:
            text = "M has no inverse here: some motion moves no mass"
            raise ModelError(f"{text}; give masses and inertias to the bodies, or take another point")
        for row, i in zip(adjugate, group, strict=True):
            for column in range(len(right[0])):
                pairs = [(x, right[j][column]) for x, j in zip(row, group, strict=True)]
                above = sum((x * y for x, y in pairs if x and y), ring.zero)
                solution[i].append(_reduced(ring, ring.reduced(above), determinant))
    return solution


def _groups(m: Rows) -> list[list[int]]:
    """Coordinates that M couples."""
    left, groups = list(range(len(m))), []
    while left:
        group, new = [], [left.pop(0)]
        while new:
            i = new.pop()
            group.append(i)
            near = [j for j in left if m[i][j]]
            left = [j for j in left if j not in near]
            new += near
        groups.append(sorted(group))
    return groups


def _inverse(ring: Ring, m: Rows) -> tuple[Rows, Poly]:
    """The adjugate and the determinant, or the inverse and 1 of plain numbers."""
    n = len(m)
    if all(x.is_constant() for row in m for x in row):
        plain = fmpq_mat([[x.leading_coefficient() if x else fmpq(0) for x in row] for row in m])
        if not plain.det():
            return m, ring.zero
        inverse = plain.inv()
        return [[ring.ctx.constant(inverse[i, j]) for j in range(n)] for i in range(n)], ring.one
    work = math.factorial(n) * math.prod(max(len(x) for x in row) for row in m)
    if n > LARGEST or work > TERMS:
        text = (
            f"M couples {n} coordinates in {sum(len(x) for row in m for x in row)} terms, and the formulas of its "
            "inverse would be too long to read; give more of the symbols numbers in point=, take M, D and K, which are "
            "exact, or A and B as numbers: numeric(q, v) or state_space(values)"
        )
        raise ModelError(text)
    rows, minor = tuple(range(n)), _Minors(ring, m)

    def without(k: int) -> tuple[int, ...]:
        return rows[:k] + rows[k + 1 :]

    adjugate = [[minor(without(j), without(i)) * (-1 if (i + j) % 2 else 1) for j in rows] for i in rows]
    return adjugate, minor(rows, rows)


def determinant(ring: Ring, m: Rows) -> Poly:
    """The determinant by minors, for few rows."""
    rows = tuple(range(len(m)))
    return _Minors(ring, m)(rows, rows)


class _Minors:
    """The determinants of some rows and columns, each worked out once."""

    def __init__(self, ring: Ring, m: Rows) -> None:
        self.ring, self.m = ring, m
        self.known: dict[tuple[tuple[int, ...], tuple[int, ...]], Poly] = {}

    def __call__(self, rows: tuple[int, ...], columns: tuple[int, ...]) -> Poly:
        if not rows:
            return self.ring.one
        key = (rows, columns)
        if key not in self.known:
            total = self.ring.zero
            for k, column in enumerate(columns):
                x = self.m[rows[0]][column]
                if x:
                    minor = self(rows[1:], columns[:k] + columns[k + 1 :])
                    total = total - x * minor if k % 2 else total + x * minor
            self.known[key] = self.ring.reduced(total)
        return self.known[key]


def _reduced(ring: Ring, above: Poly, below: Poly) -> Quotient:
    """Without common factors; the denominator in whole numbers without a common divisor, most of them positive."""
    if not above:
        return Quotient(above, ring.one)
    if len(above) * len(below) <= _COMMON:
        common = above.gcd(below)
        above, below = above / common, below / common
    numbers: Sequence[fmpq] = below.coeffs()
    divisor = math.gcd(*(int(x.p) for x in numbers))
    scale = fmpq(math.lcm(*(int(x.q) for x in numbers)), divisor)
    less = sum(1 if x < 0 else -1 for x in numbers)
    if less > 0 or (less == 0 and numbers[0] < 0):
        scale = -scale
    return Quotient(above * scale, below * scale)
