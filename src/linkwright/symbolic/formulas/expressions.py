"""Expressions of a description as exact formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import TypeAlias

from linkwright.errors import ModelError
from linkwright.model.expression import Call, Expression, Lookup, Name, Number
from linkwright.symbolic.derivation.fixed_angles import Angles, Multiples
from linkwright.symbolic.formulas.exact import added, decimal, extent, from_parts, known_angle, rational, times
from linkwright.symbolic.formulas.formula import Applied, Sum, Symbol, factors

#: cos and sin of Σ multiple · parameter + constant.
Pair: TypeAlias = Callable[[Multiples, float], tuple[Sum, Sum]]
_MOST_TERMS = 100_000  # of one expression, multiplied out
_MOST_LEVELS = 80  # of functions inside functions
_SUMS = ("neg", "add", "sub")


def from_expression(
    e: Expression,
    exact: Callable[[float], Sum] = decimal,
    names: Mapping[str, Sum] | None = None,
    pair: Pair | None = None,
) -> Sum:
    """An expression of parameters as a formula: sums and products; cosines of named angles; the rest as functions.

    `exact` makes formulas of its numbers; `names` of names that are no parameters; `pair` the cosines. Without `pair`
    a number in an angle stays there if its cosine is not known exactly.
    """
    formula = _Reading(exact, names or {}, pair or _alone(e)).formula(e, 0)
    if extent(formula).terms > _MOST_TERMS:
        text = f"{_short(e)} has more than {_MOST_TERMS:,} terms when it is multiplied out"
        raise ModelError(f"{text}; give a part of it as a parameter of its own")
    return formula


def _alone(e: Expression) -> Pair:
    """The cosines of one expression."""
    angles = Angles(multiples=angles_in(e))

    def pair(multiples: Multiples, constant: float) -> tuple[Sum, Sum]:
        if known_angle(constant) is not None:
            return angles.combined(multiples, constant)
        angle = added(*(times(m, Symbol(n)) for n, m in multiples.items()), decimal(constant))
        return times(1, Applied("cos", (angle,))), times(1, Applied("sin", (angle,)))

    return pair


class _Reading:
    """Reads one expression."""

    def __init__(self, exact: Callable[[float], Sum], names: Mapping[str, Sum], pair: Pair) -> None:
        self.exact, self.names, self.pair = exact, names, pair

    def formula(self, e: Expression, level: int) -> Sum:
        if isinstance(e, Number):
            return self.exact(e.value)
        if isinstance(e, Name):
            return self.names[e.name] if e.name in self.names else times(1, Symbol(e.name))
        if not isinstance(e, Call):
            text = f"{_short(e)} is a table of numbers, which has no closed form; put a formula in its place"
            raise ModelError(text)
        if level > _MOST_LEVELS:
            text = f"an expression has more than {_MOST_LEVELS} functions and products one inside the other"
            raise ModelError(f"{text}; give a part of it as a parameter of its own")
        if e.function in ("cos", "sin"):
            angle = linear(e.arguments[0])
            if angle is not None and not self.names.keys() & angle[0].keys():
                return self.pair(*angle)[e.function == "sin"]
        level += e.function not in _SUMS  # sums are flat
        return from_parts(e.function, [self.formula(part, level) for part in e.arguments])


def plain(e: Expression) -> Sum | None:
    """An expression without names as a formula of numbers and roots, if it is that."""
    formula = from_expression(e)
    return None if any(isinstance(factor, Applied) for factor in factors(formula)) else formula


def tabulated(e: Expression) -> bool:
    """Whether an expression has a table of numbers in it."""
    return not isinstance(e, Number | Name) and (not isinstance(e, Call) or any(map(tabulated, e.arguments)))


def angles_in(e: Expression) -> Iterator[Multiples]:
    """The combinations of parameters that an expression has cosines or sines of."""
    if isinstance(e, Lookup):
        yield from angles_in(e.argument)
    if not isinstance(e, Call):
        return
    angle = linear(e.arguments[0]) if e.function in ("cos", "sin") else None
    if angle is not None:
        yield {n: m for n, m in angle[0].items() if m}
        return
    for part in e.arguments:
        yield from angles_in(part)


def linear(e: Expression) -> tuple[dict[str, Fraction], float] | None:
    """An expression as Σ multiple·name + constant, if it is that."""
    if isinstance(e, Number):
        return {}, e.value
    if isinstance(e, Name):
        return {e.name: Fraction(1)}, 0.0
    if not isinstance(e, Call) or e.function not in (*_SUMS, "mul", "div"):
        return None
    parts = [linear(part) for part in e.arguments]
    known = [p for p in parts if p is not None]
    if len(known) != len(parts):
        return None
    if e.function == "neg":
        return _scaled(known[0], Fraction(-1), -1.0)
    (a, x), (b, y) = known
    if e.function in ("add", "sub"):
        b, y = (b, y) if e.function == "add" else _scaled((b, y), Fraction(-1), -1.0)
        return {n: a.get(n, Fraction(0)) + b.get(n, Fraction(0)) for n in {**a, **b}}, x + y
    if e.function == "div":
        return _scaled((a, x), 1 / rational(y), 1.0 / y) if not b and y else None
    if not b:
        return _scaled((a, x), _fraction(e.arguments[1], y), y)
    return _scaled((b, y), _fraction(e.arguments[0], x), x) if not a else None


def _fraction(e: Expression, value: float) -> Fraction:
    """A number without names as it is written, 1/3 as a third, if a quotient of two numbers is what it is."""
    if isinstance(e, Call) and e.function == "div" and all(isinstance(x, Number) for x in e.arguments):
        above, below = (rational(x.value) for x in e.arguments if isinstance(x, Number))
        return above / below
    return rational(value)


def _scaled(a: tuple[dict[str, Fraction], float], exact: Fraction, by: float) -> tuple[dict[str, Fraction], float]:
    multiples, constant = a
    return {n: m * exact for n, m in multiples.items()}, constant * by


def _short(e: Expression) -> str:
    text = str(e)
    return repr(text if len(text) <= 60 else f"{text[:60]} …")
