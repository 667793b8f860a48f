"""Numbers, angles and expressions of a description as exact formulas.

A float becomes the shortest decimal that stands for it, so that 0.333 is 333/1000. The cosine and sine of a multiple of
15° are algebraic numbers in √2 and √3; of any other angle they stay as they are, for a named angle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from numbers import Rational
from typing import Any, TypeAlias

import numpy as np

from linkwright.errors import ModelError
from linkwright.mechanism.expression import Call, Expression, Name, Number
from linkwright.symbolic.formula import Applied, Factor, Root, Sum, Symbol, Term, Trig, number

Matrix: TypeAlias = tuple[tuple[Sum, ...], ...]
#: Angles and entries of rotations this near to an exact one are that one: files round their angles.
NEAR = 1e-9
ZERO, ONE = Sum(), number(1)
IDENTITY: Matrix = tuple(tuple(ONE if i == j else ZERO for j in range(3)) for i in range(3))
_STEP = math.pi / 12  # 15°


def rational(x: float) -> Fraction:
    """The shortest decimal that stands for a float."""
    return Fraction(repr(float(x)))


def decimal(x: float) -> Sum:
    """A float as a formula."""
    return number(rational(x))


def exact_number(x: Any) -> Fraction:
    """A whole number or fraction as it is, any other number by the shortest decimal that stands for it."""
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


def known_angle(angle: float) -> tuple[Sum, Sum] | None:
    """The cosine and sine of an angle that is a multiple of 15°."""
    steps = round(angle / _STEP)
    if abs(angle - steps * _STEP) > NEAR:
        return None
    return _cosine(steps), _cosine(steps - 6)


def entry(x: float) -> Sum:
    """A single entry of a rotation: a cosine of a multiple of 15° if it is one, else its decimal."""
    for steps in range(13):
        if abs(x - math.cos(steps * _STEP)) < NEAR:
            return _cosine(steps)
    return number(rational(x))


def turn(axis: int, c: Sum, s: Sum) -> Matrix:
    """The rotation about an axis with this cosine and sine."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    rows = [[ONE if a == b == axis else ZERO for b in range(3)] for a in range(3)]
    rows[i][i], rows[i][j], rows[j][i], rows[j][j] = c, negated(s), s, c
    return tuple(tuple(row) for row in rows)


class Angles:
    """Makes exact rotations of numbers, and names the angles that have no exact cosine."""

    def __init__(self, taken: Iterable[str], digits: int | None) -> None:
        self.taken, self.digits = set(taken), digits
        self.values: dict[str, float] = {}

    def rotation(self, r: Any, label: str) -> list[Matrix]:
        """A rotation (3×3 floats) as turns about z, x and z whose product it is."""
        gamma, alpha, theta = _zxz(np.asarray(r, dtype=np.float64))
        parts = ((2, gamma, "gamma"), (0, alpha, "alpha"), (2, theta, "delta"))
        return [turn(axis, *self.pair(x, f"{stem}{label}")) for axis, x, stem in parts if abs(x) > NEAR]

    def pair(self, angle: float, name: str) -> tuple[Sum, Sum]:
        """cos and sin of a number."""
        exact = known_angle(angle)
        if exact is not None:
            return exact
        if self.digits is not None:
            c, s = (Fraction(repr(round(f(angle), self.digits))) for f in (math.cos, math.sin))
            return number(c), number(s)
        for known, value in self.values.items():
            for sign in (1, -1):
                quarters = (angle - sign * value) / (math.pi / 2)
                if abs(quarters - round(quarters)) < NEAR:
                    return self._quarters(known, sign, round(quarters))
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        self.values[name] = angle
        return self._quarters(name, 1, 0)

    def _quarters(self, name: str, sign: int, quarters: int) -> tuple[Sum, Sum]:
        """cos and sin of ±angle + quarter turns."""
        symbol = ((Symbol(name), Fraction(1)),)
        c, s = times(1, Trig("cos", symbol)), times(sign, Trig("sin", symbol))
        for _ in range(quarters % 4):
            c, s = negated(s), c
        return c, s


def from_expression(
    e: Expression, exact: Callable[[float], Sum] = decimal, names: Mapping[str, Sum] | None = None
) -> Sum:
    """An expression of parameters as a formula: sums and products; cosines of named angles; the rest as functions.

    `exact` makes formulas of its numbers; `names` of names that are no parameters.
    """
    if isinstance(e, Number):
        return exact(e.value)
    if isinstance(e, Name):
        return names[e.name] if names and e.name in names else times(1, Symbol(e.name))
    if not isinstance(e, Call):
        text = f"{str(e)[:60]!r} is a table of numbers, which has no closed form; put a formula in its place"
        raise ModelError(text)
    if e.function in ("cos", "sin"):
        linear = _linear(e.arguments[0])
        if linear is not None and not (names and names.keys() & linear[0].keys()):
            return _trigonometric(e.function, *linear)
    return from_parts(e.function, [from_expression(part, exact, names) for part in e.arguments])


def from_parts(function: str, parts: Sequence[Sum]) -> Sum:
    """A function of formulas: arithmetic as sums and products where it can be, the rest by its name."""
    if function in _ARITHMETIC:
        made = _ARITHMETIC[function](*parts)
        if made is not None:
            return made
    return times(1, Applied(function, tuple(parts)))


def tabulated(e: Expression) -> bool:
    """Whether an expression has a table of numbers in it."""
    return not isinstance(e, Number | Name) and (not isinstance(e, Call) or any(map(tabulated, e.arguments)))


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
    if len(a.terms) == len(b.terms) == 1:
        s, t = a.terms[0], b.terms[0]
        return Sum((Term(s.number * t.number, s.factors + t.factors),))
    return times(1, *(x for x in (a, b) if constant(x) != 1)) or ONE


def _quotient(a: Sum, b: Sum) -> Sum | None:
    x = constant(b)
    if x is None or x == 0:
        return None
    return scaled(a, 1 / x)


def _power(a: Sum, b: Sum) -> Sum | None:
    x = constant(b)
    if x is None or x.denominator != 1 or not 0 <= x <= 64:
        return None
    return Sum((Term(Fraction(1), ((a, int(x)),)),)) if x else ONE


_ARITHMETIC: dict[str, Callable[..., Sum | None]] = {
    "neg": negated,
    "add": added,
    "sub": lambda a, b: added(a, negated(b)),
    "mul": product,
    "div": _quotient,
    "pow": _power,
}


def _linear(e: Expression) -> tuple[dict[str, Fraction], float] | None:
    """An expression as Σ multiple·name + constant, if it is that."""
    if isinstance(e, Number):
        return {}, e.value
    if isinstance(e, Name):
        return {e.name: Fraction(1)}, 0.0
    if not isinstance(e, Call) or e.function not in ("neg", "add", "sub", "mul", "div"):
        return None
    parts = [_linear(part) for part in e.arguments]
    known = [p for p in parts if p is not None]
    if len(known) != len(parts):
        return None
    if e.function == "neg":
        return _scaled(known[0], -1.0)
    (a, x), (b, y) = known
    if e.function in ("add", "sub"):
        b, y = (b, y) if e.function == "add" else _scaled((b, y), -1.0)
        return {n: a.get(n, Fraction(0)) + b.get(n, Fraction(0)) for n in {**a, **b}}, x + y
    if not b and (e.function == "mul" or y):
        return _scaled((a, x), y if e.function == "mul" else 1.0 / y)
    return _scaled((b, y), x) if e.function == "mul" and not a else None


def _scaled(linear: tuple[dict[str, Fraction], float], by: float) -> tuple[dict[str, Fraction], float]:
    multiples, constant = linear
    return {n: m * rational(by) for n, m in multiples.items()}, constant * by


def _trigonometric(function: str, multiples: dict[str, Fraction], constant: float) -> Sum:
    """cos or sin of Σ multiple·name + constant."""
    angle = tuple((Symbol(n), m) for n, m in multiples.items() if m)
    known = known_angle(constant)
    if known is None:
        return times(1, Applied(function, (added(*(times(m, s) for s, m in angle), number(rational(constant))),)))
    c, s = known
    if not angle:
        return c if function == "cos" else s
    cosine, sine = times(1, Trig("cos", angle)), times(1, Trig("sin", angle))
    if function == "cos":
        return added(product(c, cosine), negated(product(s, sine)))
    return added(product(c, sine), product(s, cosine))


def _zxz(r: Any) -> tuple[float, float, float]:
    """γ, α, θ with R = Rz(γ) Rx(α) Rz(θ); γ = 0 where α is 0 or π."""
    sine = math.hypot(r[0, 2], r[1, 2])
    gamma = 0.0 if sine < NEAR else math.atan2(r[0, 2], -r[1, 2])
    alpha = math.atan2(sine, r[2, 2])
    cg, sg, ca, sa = math.cos(gamma), math.sin(gamma), math.cos(alpha), math.sin(alpha)
    x, y = cg * r[0, 0] + sg * r[1, 0], cg * r[1, 0] - sg * r[0, 0]
    return gamma, alpha, math.atan2(ca * y + sa * r[2, 0], x)
