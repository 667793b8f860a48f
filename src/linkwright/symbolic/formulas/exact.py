"""Numbers as exact formulas, and the arithmetic of formulas.

A float becomes the shortest decimal that stands for it, so that 0.333 is 333/1000; what arithmetic has left a few
roundings beside a plain number, such as 0.6900000000000001, becomes that number. The cosine and sine of a multiple of
15° are algebraic numbers in √2 and √3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import Any, TypeAlias

from linkwright.symbolic.formulas.formula import Angle, Applied, Factor, Root, Sum, Symbol, Term, Trig, number, raised

Matrix: TypeAlias = tuple[tuple[Sum, ...], ...]
#: Angles and entries of rotations this near to an exact one are that one: files round their angles.
NEAR = 1e-9
ZERO, ONE = Sum(), number(1)
_STEP = math.pi / 12  # 15°
# A float of more digits than a person writes is a plain number that arithmetic has moved by some roundings, if one is
# that near: by chance few are.
_WRITTEN, _ROUNDINGS, _LARGEST_BOTTOM = 13, 4, 1_000
# A product or power that would be larger when it is multiplied out stays a function of its parts.
_MOST_TERMS, _MOST_DEGREE, _MOST_BITS = 1_000, 64, 4_000


def rational(x: float) -> Fraction:
    """The shortest decimal that stands for a float; a plainer number where but for rounding it is one.

    0.333 is 333/1000, 0.6900000000000001 is 69/100, and 0.10666666666666667 is 8/75.
    """
    x = float(x)
    shortest = Fraction(repr(x))
    written = f"{x:.{_WRITTEN - 1}e}"
    if float(written) == x:
        return shortest
    near = _ROUNDINGS * Fraction(math.ulp(x))
    plain = (Fraction(written), shortest.limit_denominator(_LARGEST_BOTTOM))
    return next((candidate for candidate in plain if abs(candidate - Fraction(x)) <= near), shortest)


def decimal(x: float) -> Sum:
    """A float as a formula."""
    return number(rational(x))


def exact_number(x: Any) -> Fraction:
    """A whole number or fraction as it is, any other number as `rational` takes it."""
    if isinstance(x, Rational):  # NumPy's and SymPy's too, whose parts are not Python's
        return Fraction(int(x.numerator), int(x.denominator))
    return rational(x)


def finite(x: Any) -> bool:
    """Whether x is a number, and a finite one: what `exact_number` takes."""
    if isinstance(x, str | bytes):
        return False
    try:
        return math.isfinite(float(x))
    except (TypeError, ValueError, OverflowError):
        return False


def short(x: Any) -> str:
    """What was given in the place of a number, for a message."""
    text = repr(x)
    return text if len(text) <= 60 else f"{text[:57]}..."


def times(x: int | Fraction, *factors: Factor) -> Sum:
    """A number times factors."""
    return Sum((Term(Fraction(x), tuple((f, 1) for f in factors)),)) if x else Sum()


def added(*parts: Sum) -> Sum:
    return Sum(tuple(term for part in parts for term in part))


def scaled(formula: Sum, by: int | Fraction) -> Sum:
    """A formula times a number."""
    return Sum(tuple(Term(t.number * by, t.factors) for t in formula)) if by else Sum()


def negated(formula: Sum) -> Sum:
    return scaled(formula, -1)


_ROOT2, _ROOT3 = Root(2), Root(3)
_QUARTER = (  # cosines of 0°, 15°, … 90°
    ONE,
    added(times(Fraction(1, 4), _ROOT2, _ROOT3), times(Fraction(1, 4), _ROOT2)),
    times(Fraction(1, 2), _ROOT3),
    times(Fraction(1, 2), _ROOT2),
    number(Fraction(1, 2)),
    added(times(Fraction(1, 4), _ROOT2, _ROOT3), times(Fraction(-1, 4), _ROOT2)),
    ZERO,
)


def _cosine(steps: int) -> Sum:
    """cos of a multiple of 15°."""
    steps %= 24
    steps = min(steps, 24 - steps)
    return _QUARTER[steps] if steps <= 6 else negated(_QUARTER[12 - steps])


def cosine_and_sine(angle: Angle) -> tuple[Sum, Sum]:
    """cos and sin of Σ multiple · symbol, the first multiple taken above zero."""
    sign = 1 if angle[0][1] > 0 else -1
    upward = tuple((symbol, sign * m) for symbol, m in angle)
    return times(1, Trig("cos", upward)), times(sign, Trig("sin", upward))


def angle_sum(a: tuple[Sum, Sum], b: tuple[Sum, Sum]) -> tuple[Sum, Sum]:
    """cos and sin of the sum of two angles that are given by theirs."""
    return (
        added(spread(a[0], b[0]), negated(spread(a[1], b[1]))),
        added(spread(a[1], b[0]), spread(a[0], b[1])),
    )


def known_angle(angle: float) -> tuple[Sum, Sum] | None:
    """The cosine and sine of an angle that is a multiple of 15°."""
    steps = round(angle / _STEP)
    if abs(angle - steps * _STEP) > NEAR:
        return None
    return _cosine(steps), _cosine(steps - 6)


def known_cosine(x: float) -> Sum | None:
    """A number that is the cosine of a multiple of 15°."""
    return next((_cosine(k) for k in range(13) if abs(x - math.cos(k * _STEP)) < NEAR), None)


def turn(axis: int, c: Sum, s: Sum) -> Matrix:
    """The rotation about an axis with this cosine and sine."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    rows = [[ONE if a == b == axis else ZERO for b in range(3)] for a in range(3)]
    rows[i][i], rows[i][j], rows[j][i], rows[j][j] = c, negated(s), s, c
    return tuple(tuple(row) for row in rows)


def from_parts(function: str, parts: Sequence[Sum]) -> Sum:
    """A function of formulas: arithmetic as sums and products where it can be, the rest by its name."""
    if function in _ARITHMETIC:
        formula = _ARITHMETIC[function](*parts)
        if formula is not None:
            return formula
    return times(1, Applied(function, tuple(parts)))


def constant(formula: Sum) -> Fraction | None:
    """The number that a formula is, if it is one without roots."""
    total = Fraction(0)
    for term in formula:
        value = term.number
        for factor, power in term.factors:
            x = constant(factor) if isinstance(factor, Sum) else None
            if x is None or (x == 0 and power < 0):
                return None
            value *= x**power
        total += value
    return total


def product(a: Sum, b: Sum) -> Sum:
    """The product of two formulas, brackets left standing."""
    if not a or not b:
        return ZERO
    if extent(a).terms * extent(b).terms > _MOST_TERMS:
        return times(1, Applied("mul", (a, b)))
    if len(a.terms) == len(b.terms) == 1:
        return spread(a, b)
    return times(1, *(x for x in (a, b) if constant(x) != 1)) or ONE


def bracketed(*factors: Symbol | Sum) -> Sum:
    """The product of symbols and formulas, in brackets but for those of one term."""
    parts = [x.terms[0] if isinstance(x, Sum) and len(x.terms) == 1 else Term(Fraction(1), ((x, 1),)) for x in factors]
    return Sum(
        (Term(math.prod((t.number for t in parts), start=Fraction(1)), tuple(f for t in parts for f in t.factors)),)
    )


def spread(a: Sum, b: Sum) -> Sum:
    """The product of two formulas, term by term."""
    return Sum(tuple(Term(s.number * t.number, s.factors + t.factors) for s in a for t in b))


@dataclass(frozen=True)
class Extent:
    """How large a formula is at most when it is multiplied out: terms, their degree, the bits of their numbers."""

    terms: int
    degree: int
    bits: int


def extent(formula: Sum) -> Extent:
    """How large a formula is when it is multiplied out; functions count as symbols."""
    terms, degree, bits = 0, 1, 1
    for term in formula:
        count, term_degree = 1, 0
        size = term.number.numerator.bit_length() + term.number.denominator.bit_length()
        for factor, power in term.factors:
            n = abs(power)
            if isinstance(factor, Sum):
                inner = extent(factor)
                count *= math.comb(inner.terms + n - 1, n)
                term_degree, size = term_degree + n * inner.degree, size + n * inner.bits
            else:
                term_degree += n
        terms, degree, bits = terms + count, max(degree, term_degree), max(bits, size)
    return Extent(terms, degree, bits)


def _quotient(a: Sum, b: Sum) -> Sum | None:
    x = constant(b)
    if x is None or x == 0:
        return None
    return scaled(a, 1 / x)


def _power(a: Sum, b: Sum) -> Sum | None:
    x = constant(b)
    if x is None or x.denominator != 1 or not 0 <= x <= _MOST_DEGREE:
        return None
    size, n = extent(a), int(x)
    if math.comb(size.terms + n - 1, n) > _MOST_TERMS or n * size.degree > _MOST_DEGREE or n * size.bits > _MOST_BITS:
        return None
    return raised(a, n) if x else ONE


_ARITHMETIC: dict[str, Callable[..., Sum | None]] = {
    "neg": negated,
    "add": added,
    "sub": lambda a, b: added(a, negated(b)),
    "mul": product,
    "div": _quotient,
    "pow": _power,
}
