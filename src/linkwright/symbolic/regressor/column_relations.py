"""Exact linear relations between a regressor's columns, with coefficients that do not move.

The coefficients of every monomial in what moves (coordinates and rates) of M, g and friction make a matrix over the
ring of constants: lengths, cosines and sines of fixed angles, roots. (h is made of derivatives of M.) Its rank and
independent columns are found over a large prime field at a random point, with cosines and roots on their curves; then
a square part of the simplest rows is eliminated exactly, without fractions, and each coefficient is written with a
denominator free of sines and roots.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from random import Random
from typing import Any

import numpy as np
from flint import nmod_mat

from linkwright.symbolic.formulas.formula import Applied, Root, Sum, Symbol, Trig, raised, symbols
from linkwright.symbolic.formulas.ring import Compiled, Pairs, Poly, Ring, terms
from linkwright.symbolic.linear.quotients import Quotient
from linkwright.symbolic.regressor.polynomial_regressor import Regressor

#: A prime for which −1 is no square, but 2 and 3 are: p ≡ 23 mod 24.
PRIME = 4611686018427386903
Row = dict[int, Poly]  # by column


def relations(
    regressor: Regressor, order: Sequence[int], tolerance: float
) -> tuple[list[int], dict[int, dict[int, Sum]]] | None:
    """The independent columns, those early in `order`, and for each the columns that join it with what coefficient.

    None where the rank at the model's own numbers is less, to this tolerance: then the relations hold only there.
    """
    ring, rows = regressor.ring, _rows(regressor)
    point = _point(ring)
    columns = [k for k in order if any(k in row for row in rows)]
    values = [[_value(row[k], point) if k in row else 0 for k in columns] for row in rows]
    independent = [columns[i] for i in _pivots(values)]
    if _numeric_rank(regressor, rows, tolerance) < len(independent):
        return None
    at = [i for i, k in enumerate(columns) if k in set(independent)]
    # As many of the simplest rows as columns.
    chosen = [dict(rows[i]) for i in _pivots([[value[i] for value in values] for i in at])]
    joining: dict[int, dict[int, Sum]] = {k: {} for k in independent}
    for pivot, row in _eliminated(ring, chosen, set(independent)).items():
        joining[pivot] = {k: quotient(ring, entry, row[pivot]) for k, entry in row.items() if k != pivot}
    return independent, joining


def _numeric_rank(regressor: Regressor, rows: Sequence[Row], tolerance: float) -> int:
    """The rank of the rows at the model's own numbers."""
    ring, columns = regressor.ring, sorted({k for row in rows for k in row})
    places = [(i, columns.index(k), entry) for i, row in enumerate(rows) for k, entry in row.items()]
    matrix = np.zeros((len(rows), len(columns)))
    numbers = {**ring.motion(np.zeros(regressor.n)), **regressor.model.values}
    entries = Compiled([entry for _, _, entry in places])(ring.values(numbers))
    matrix[[i for i, _, _ in places], [k for _, k, _ in places]] = entries
    sizes = np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix = matrix / np.where(sizes > 0.0, sizes, 1.0)
    return int(np.linalg.matrix_rank(matrix, tol=tolerance * np.sqrt(len(rows))))


def _rows(regressor: Regressor) -> list[Row]:
    """The different rows, the simplest first."""
    ring = regressor.ring
    moving = [_moves(ring.factor(k)) for k in range(len(ring.gens))]
    rows: dict[tuple[Any, ...], dict[int, dict[Pairs, Fraction]]] = {}
    for place, k, value in regressor.occurrences():
        for powers, x in terms(value):
            motion = tuple(item for item in powers if moving[item[0]])
            constant = tuple(item for item in powers if not moving[item[0]])
            rows.setdefault((place, motion), {}).setdefault(k, {})[constant] = x
    different: dict[tuple[Any, ...], Row] = {}
    for row in rows.values():
        first = next(iter(row[min(row)].values()))
        scaled = {k: {m: x / first for m, x in row[k].items()} for k in sorted(row)}
        key = tuple((k, m, x) for k, part in scaled.items() for m, x in part.items())
        if key not in different:
            different[key] = {k: ring.from_terms(part) for k, part in scaled.items()}
    return sorted(
        different.values(), key=lambda row: (sum(map(len, row.values())), sum(p.total_degree() for p in row.values()))
    )


def _moves(factor: Any) -> bool:
    """Whether a variable of the ring has coordinates or rates in it."""
    return any(s.role != "parameter" for s in symbols(raised(factor)).values())


def _pivots(rows: list[list[int]]) -> list[int]:
    """The leading columns over the prime field."""
    if not rows:
        return []
    echelon, rank = nmod_mat(rows, PRIME).rref()
    table = echelon.tolist()
    return [next(k for k, x in enumerate(table[i]) if int(x)) for i in range(rank)]


# -- a point over a prime field ---------------------------------------------------------------------------------------
def _value(p: Poly, point: Sequence[int]) -> int:
    """A polynomial at values of the ring's variables."""
    total = 0
    for powers, x in terms(p):
        term = x.numerator * pow(x.denominator, -1, PRIME)
        for k, n in powers:
            term = term * pow(point[k], n, PRIME) % PRIME
        total += term
    return total % PRIME


def _point(ring: Ring) -> list[int]:
    """Random values of the constants, with sin² + cos² = 1 and the roots' squares as they are; of what moves, 1."""
    random, values = Random(1), []
    half = 0
    for k in range(len(ring.gens)):
        factor = ring.factor(k)
        if isinstance(factor, Trig):
            if factor.function == "sin":
                half = random.randrange(PRIME)
            below = pow(1 + half * half, -1, PRIME)
            values.append((2 * half if factor.function == "sin" else 1 - half * half) * below % PRIME)
        elif isinstance(factor, Root):
            values.append(pow(factor.of, (PRIME + 1) // 4, PRIME))
        elif isinstance(factor, Symbol | Applied):
            values.append(random.randrange(PRIME))
    return values


# -- elimination ------------------------------------------------------------------------------------------------------
def _eliminated(ring: Ring, rows: list[Row], independent: set[int]) -> dict[int, Row]:
    """Rows with one of the columns kept in each, by that column; fraction-free, simple pivots first."""
    done: dict[int, Row] = {}
    left = [_primitive(ring, row) for row in rows]
    while left:
        at, pivot = _simplest(left, independent)
        row = left.pop(at)
        left = [_without(ring, other, row, pivot) for other in left]
        done = {k: _without(ring, other, row, pivot) for k, other in done.items()}
        done[pivot] = row
        independent = independent - {pivot}
    return done


def _simplest(rows: list[Row], independent: set[int]) -> tuple[int, int]:
    """The row and column to take next: a plain number if there is one, and where little else is in row and column."""
    counts: dict[int, int] = {}
    for row in rows:
        for k in row.keys() & independent:
            counts[k] = counts.get(k, 0) + 1

    def price(place: tuple[int, int]) -> tuple[int, ...]:
        row, k = rows[place[0]], place[1]
        fill = (len(row) - 1) * (counts[k] - 1)
        return not row[k].is_constant(), len(row[k]), fill, sum(map(len, row.values())), place[0], k

    return min(((i, k) for i, row in enumerate(rows) for k in row.keys() & independent), key=price)


def _without(ring: Ring, row: Row, by: Row, pivot: int) -> Row:
    """A row without a column, by another row that has it."""
    if pivot not in row:
        return row
    a, b = row[pivot], by[pivot]
    common = a.gcd(b)
    a, b = a / common, b / common
    difference: Row = {}
    for k in row.keys() | by.keys():
        if k == pivot:
            continue
        value = row[k] * b if k in row else ring.zero
        if k in by:
            value = value - by[k] * a
        value = ring.reduced(value)
        if value:
            difference[k] = value
    return _primitive(ring, difference)


def _primitive(ring: Ring, row: Row) -> Row:
    """A row without the factor that its entries have in common."""
    common = reduce(lambda a, b: a if a.is_constant() else a.gcd(b), row.values())
    if common.is_constant():
        common = ring.ctx.constant(next(iter(row.values())).coeffs()[0])
    return {k: value / common for k, value in row.items()}


def quotient(ring: Ring, a: Poly, b: Poly) -> Sum:
    """a/b as a formula whose denominator has no sines and no roots, in lowest terms.

    a/b = a b̄ / (b b̄), where b̄ has the other sign of a sine or root: b b̄ is free of it.
    """
    for k in range(len(ring.gens)):
        if b.degrees()[k] and isinstance(ring.factor(k), Trig | Root):
            factor = ring.factor(k)
            if isinstance(factor, Trig) and factor.function == "cos":
                continue
            other = b.compose(*(-x if i == k else x for i, x in enumerate(ring.gens)))
            a, b = ring.reduced(a * other), ring.reduced(b * other)
    common = a.gcd(b)
    a, b = a / common, b / common
    lead = ring.ctx.constant(b.coeffs()[0])
    return Quotient(a / lead, b / lead).formula(ring)
