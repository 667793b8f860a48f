"""Formulas as plain data, between the forms that make them and the printers that write them.

A formula is a sum of terms; a term is an exact number times powers of factors; a factor is a symbol, a cosine or sine
of a sum of angles, a root, a function of a formula, or a sum in brackets.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from linkwright.model.expression import FUNCTIONS

#: Σ multiple · symbol.
Angle: TypeAlias = "tuple[tuple[Symbol, Fraction], ...]"
Role = Literal["coordinate", "rate", "acceleration", "parameter", "force", "variable"]


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name; a rate or an acceleration says of which coordinate (`of`), so that it can be written with dots."""

    name: str
    role: Role = "parameter"
    of: str = ""


@dataclass(frozen=True, slots=True)
class Trig:
    """cos or sin of Σ multiple · angle, the angles by name."""

    function: Literal["cos", "sin"]
    angle: Angle


@dataclass(frozen=True, slots=True)
class Root:
    """The positive square root of a whole number."""

    of: int


@dataclass(frozen=True, slots=True)
class Applied:
    """A function by its name in `linkwright.model.expression.FUNCTIONS`, of formulas."""

    function: str
    arguments: tuple[Sum, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """number · Π factor^power; powers are whole and not zero."""

    number: Fraction
    factors: tuple[tuple[Factor, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Sum:
    """Terms added up, in the order in which they are written; no terms are zero."""

    terms: tuple[Term, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __iter__(self) -> Iterator[Term]:
        return iter(self.terms)

    def __str__(self) -> str:
        from linkwright.symbolic.printing.formula_writer import text  # weight: the printers

        return text(self)

    def _repr_latex_(self) -> str | None:
        from linkwright.symbolic.printing.mathml import latex_sum  # weight: the printers

        return latex_sum(self)


Factor: TypeAlias = Symbol | Trig | Root | Applied | Sum


@dataclass(frozen=True, slots=True)
class Block:
    """One named quantity of the equations: a matrix or vector (or a single formula, shape ()) of sums by rows."""

    name: str  # "M", "h", "g", "friction", ...
    shape: tuple[int, ...]
    entries: tuple[Sum, ...]
    symmetric: bool = False

    @property
    def columns(self) -> int:
        """How many columns it has: 1 of a vector and of a single formula."""
        return self.shape[1] if len(self.shape) == 2 else 1

    def __repr__(self) -> str:
        size = " × ".join(map(str, self.shape))
        return f"<Block {self.name}: {f'{size} formulas' if size else 'a formula'}>"

    def __str__(self) -> str:
        from linkwright.symbolic.printing.formula_writer import block_text  # weight: the printers

        return block_text(self)

    def _repr_html_(self) -> str:
        from linkwright.symbolic.printing.mathml import html_block  # weight: the printers

        return html_block(self)

    def _repr_latex_(self) -> str | None:
        from linkwright.symbolic.printing.mathml import latex_short  # weight: the printers

        return latex_short(self)


def place(at: Sequence[int], size: int) -> str:
    """The one-based place of an entry, of at most `size` rows or columns: "", "2", "12", and "1,12" beyond nine."""
    return ("," if size > 9 else "").join(str(k + 1) for k in at)


def raised(factor: Factor, power: int = 1) -> Sum:
    """A power of a factor as a formula."""
    return Sum((Term(Fraction(1), ((factor, power),)),))


def number(x: int | Fraction) -> Sum:
    """A number as a formula."""
    return Sum((Term(Fraction(x)),)) if x else Sum()


def common_divisor(numbers: Sequence[Fraction]) -> Fraction:
    """The largest number, not below zero, of which all these are whole multiples."""
    return Fraction(math.gcd(*(x.numerator for x in numbers)), math.lcm(*(x.denominator for x in numbers)))


@lru_cache(2**12)
def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A name as a key in which numbers count as numbers: q2 before q10."""
    parts = re.findall(r"\d+|\D+", name)
    return tuple((0, int(x), "") if x.isdecimal() else (1, 0, x) for x in parts)


_RANKS = {"parameter": 1, "variable": 2, "coordinate": 3, "rate": 4, "acceleration": 5, "force": 6}


def rank(factor: Factor) -> tuple[int, tuple[tuple[int, int, str], ...]]:
    """The place of a factor in its term: roots, parameters by name, coordinates, rates, accelerations, the rest."""
    if isinstance(factor, Symbol):
        return _RANKS[factor.role], natural(factor.name)
    return (0, ((0, factor.of, ""),)) if isinstance(factor, Root) else (7, ())


def flat(formula: Sum) -> Sum:
    """The same formula without brackets of power one: every bracketed sum is multiplied out, in place."""
    return Sum(tuple(Term(term.number, _in_order(term.factors)) for term in _multiplied(formula)))


def _in_order(powers: Iterable[tuple[Factor, int]]) -> tuple[tuple[Factor, int], ...]:
    """Powers of different factors, in the order in which they are written."""
    total: dict[Factor, int] = {}
    for factor, power in powers:
        total[factor] = total.get(factor, 0) + power
    return tuple(sorted(((f, n) for f, n in total.items() if n), key=lambda item: rank(item[0])))


def _multiplied(formula: Sum) -> Sum:
    terms: list[Term] = []
    for term in formula:
        parts: list[Term] = [Term(term.number)]
        for factor, power in term.factors:
            if isinstance(factor, Sum) and power == 1:
                inner = _multiplied(factor).terms
                parts = [Term(p.number * t.number, p.factors + t.factors) for p in parts for t in inner]
            else:
                parts = [Term(p.number, (*p.factors, (factor, power))) for p in parts]
        terms += parts
    return Sum(tuple(terms))


def tidied(formula: Sum) -> Sum:
    """The same formula as people write it: brackets of one term are none, numbers and parameters stand in front."""
    tidy: list[Term] = []
    for term in formula:
        value = term.number
        powers: list[tuple[Factor, int]] = []
        for factor, power in term.factors:
            for inner, n in _opened(factor):
                if isinstance(inner, Fraction):
                    value *= inner ** (n * power)
                elif inner != Sum() or power < 0:
                    powers.append((inner, n * power))
                else:
                    value = Fraction(0)
        different = _in_order(powers)
        alone = different[0][0] if len(different) == 1 and different[0][1] == 1 else None
        if isinstance(alone, Sum) and abs(value) == 1:
            tidy += (Term(t.number * value, t.factors) for t in alone)
        elif value:
            tidy.append(Term(value, different))
    return Sum(tuple(tidy))


def _opened(factor: Factor) -> list[tuple[Factor | Fraction, int]]:
    """A factor as factors and numbers with powers: a bracket of one term is its parts."""
    if isinstance(factor, Applied):
        return [(Applied(factor.function, tuple(map(tidied, factor.arguments))), 1)]
    if not isinstance(factor, Sum):
        return [(factor, 1)]
    inner = tidied(factor)
    if len(inner.terms) != 1:
        return [(inner, 1)]
    return [(inner.terms[0].number, 1), *inner.terms[0].factors]


def factors(formula: Sum, *, functions: bool = True) -> Iterator[Factor]:
    """Every factor that is no bracket, those in brackets included; with `functions`, those of their arguments too."""
    for term in formula:
        for factor, _ in term.factors:
            if isinstance(factor, Sum):
                yield from factors(factor, functions=functions)
                continue
            yield factor
            if functions and isinstance(factor, Applied):
                for argument in factor.arguments:
                    yield from factors(argument)


def symbols(formula: Sum) -> dict[str, Symbol]:
    """The symbols of a formula by name, in the order in which they are met."""
    by_name: dict[str, Symbol] = {}
    for factor in factors(formula):
        angle = [s for s, _ in factor.angle] if isinstance(factor, Trig) else [factor]
        for symbol in angle:
            if isinstance(symbol, Symbol):
                by_name.setdefault(symbol.name, symbol)
    return by_name


def evaluate(formula: Sum, values: Mapping[str, Any]) -> Any:
    """The value for these values of the symbols, numbers or arrays of one shape: the printers' own oracle."""
    total = 0.0
    for term in formula:
        product = float(term.number)
        for factor, power in term.factors:
            product = product * factor_value(factor, values) ** power
        total = total + product
    return total


def factor_value(factor: Factor, values: Mapping[str, Any]) -> Any:
    """The value of a factor, as `evaluate` has it."""
    if isinstance(factor, Symbol):
        return values[factor.name]
    if isinstance(factor, Trig):
        angle = sum(float(n) * values[s.name] for s, n in factor.angle)
        return np.cos(angle) if factor.function == "cos" else np.sin(angle)
    if isinstance(factor, Root):
        return math.sqrt(factor.of)
    if isinstance(factor, Sum):
        return evaluate(factor, values)
    return FUNCTIONS[factor.function][1](*(evaluate(a, values) for a in factor.arguments))
