"""The ring that closed forms live in: exact polynomials in cosines, sines, shifts, rates and parameters.

A polynomial is reduced by sin² = 1 − cos² of every angle and r² = 2, 3 of the roots, so that equal functions are equal
polynomials. Angles are taken along parallel axes as sums (θ2, θ2 + θ3, …), in which formulas are shortest; any angle of
a joint is a whole combination of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from flint import Ordering, fmpq, fmpq_mpoly_ctx

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.errors import ModelError
from linkwright.symbolic.formulas.formula import (
    Angle,
    Applied,
    Factor,
    Root,
    Sum,
    Symbol,
    Term,
    Trig,
    factor_value,
    factors,
)

Poly: TypeAlias = Any  # flint.fmpq_mpoly
#: An angle of a joint as a sum of basic angles: whole multiples by position.
Turn: TypeAlias = tuple[tuple[int, int], ...]
#: A product of variables: each with its power, by rising variable.
Pairs: TypeAlias = tuple[tuple[int, int], ...]
_ROOTS = (2, 3)
_HELD = 2**20  # products that are held at a time


class Ring:
    """Polynomials in these coordinates, their rates and accelerations, and whatever `constants` have in them.

    `angles` are the basic angles, sums of coordinates; those of parameters are found in `constants`.
    """

    def __init__(self, coordinates: Sequence[Symbol], angles: Sequence[Angle], constants: Sequence[Sum]) -> None:
        self.coordinates = tuple(coordinates)
        # Those of the constants, in the order in which they are met.
        met = dict.fromkeys(factor for formula in constants for factor in factors(formula, functions=False))
        fixed = dict.fromkeys(factor.angle for factor in met if isinstance(factor, Trig))
        self.angles: tuple[Angle, ...] = (*angles, *fixed)
        self.moving = len(angles)
        self.rates = tuple(Symbol(f"d{q.name}", "rate", q.name) for q in coordinates)
        self.accelerations = tuple(Symbol(f"dd{q.name}", "acceleration", q.name) for q in coordinates)
        self.parameters = tuple(s for s in met if isinstance(s, Symbol) and s.role == "parameter")
        self.opaque = tuple(f for f in met if isinstance(f, Applied))
        self.roots = tuple(r for r in _ROOTS if Root(r) in met)
        self._factors: list[Factor] = []
        for angle in self.angles:
            self._factors += [Trig("sin", angle), Trig("cos", angle)]
        self._factors += [Root(r) for r in self.roots]
        self._factors += [*self.coordinates, *self.rates, *self.accelerations, *self.parameters, *self.opaque]
        self._shared_powers = _SharedPowers(self._factors)
        self.at = {factor: k for k, factor in enumerate(self._factors)}
        self.ctx = fmpq_mpoly_ctx.get(tuple(f"x{k}" for k in range(len(self._factors))), Ordering.lex)
        self.gens = self.ctx.gens()
        self.zero, self.one = self.ctx.constant(0), self.ctx.constant(1)
        x, first = self.gens, 2 * len(self.angles)
        self._relations = [(k, x[k] ** 2 + x[k + 1] ** 2 - 1) for k in range(0, first, 2)]
        self._relations += [(first + k, x[first + k] ** 2 - r) for k, r in enumerate(self.roots)]

    # -- into the ring --------------------------------------------------------------------------------
    def constant(self, x: int | Fraction) -> Poly:
        x = Fraction(x)
        return self.ctx.constant(fmpq(x.numerator, x.denominator))

    def symbol(self, symbol: Factor) -> Poly:
        """A symbol of the ring as a polynomial."""
        return self.gens[self.at[symbol]]

    def poly(self, formula: Sum) -> Poly:
        """A formula as a polynomial, reduced."""
        total = self.zero
        for term in formula:
            product = self.constant(term.number)
            for factor, power in term.factors:
                if isinstance(factor, Sum):
                    value = self.poly(factor)
                elif isinstance(factor, Trig) and factor not in self.at:
                    text = f"{_written(factor.angle)} is not an angle of these equations"
                    raise ModelError(f"{factor.function}: {text}")
                else:
                    value = self.gens[self.at[factor]]
                product = product * value**power
            total = total + product
        return self.reduced(total)

    def turn(self, angle: Turn) -> tuple[Poly, Poly]:
        """cos and sin of a whole combination of basic angles."""
        c, s = self.one, self.zero
        for position, times in angle:
            ck, sk = self.gens[2 * position + 1], self.gens[2 * position]
            for _ in range(abs(times)):
                up = sk if times > 0 else -sk
                c, s = self.reduced(c * ck - s * up), self.reduced(s * ck + c * up)
        return c, s

    # -- in the ring ----------------------------------------------------------------------------------
    def reduced(self, p: Poly) -> Poly:
        """The same function without squares of sines or roots."""
        degrees = p.degrees()
        for at, relation in self._relations:
            if degrees[at] > 1:
                p = p % relation
        return p

    @cached_property
    def _along(self) -> list[list[tuple[int, Fraction]]]:
        """For each coordinate, the basic angles that have it in them, with their multiples."""
        along: list[list[tuple[int, Fraction]]] = [[] for _ in self.coordinates]
        at = {q.name: k for k, q in enumerate(self.coordinates)}
        for position, angle in enumerate(self.angles[: self.moving]):
            for symbol, multiple in angle:
                along[at[symbol.name]].append((position, multiple))
        return along

    def derivative(self, p: Poly, coordinate: int) -> Poly:
        """∂p/∂q of a coordinate, by its number."""
        total = p.derivative(self.at[self.coordinates[coordinate]])
        for position, multiple in self._along[coordinate]:
            s, c = self.gens[2 * position], self.gens[2 * position + 1]
            turned = c * p.derivative(2 * position) - s * p.derivative(2 * position + 1)
            total = total + (turned if multiple == 1 else turned * self.constant(multiple))
        return self.reduced(total)

    def partial(self, p: Poly, symbol: Factor) -> Poly:
        """∂p/∂x of a plain symbol: a rate, an acceleration, a parameter that is not an angle."""
        return p.derivative(self.at[symbol])

    def from_terms(self, parts: Mapping[Pairs, Fraction]) -> Poly:
        """The polynomial with these terms, as `terms` gives them."""
        coefficients = {}
        for powers, x in parts.items():
            exponents = [0] * len(self.gens)
            for k, n in powers:
                exponents[k] = n
            coefficients[tuple(exponents)] = fmpq(x.numerator, x.denominator)
        return self.ctx.from_dict(coefficients)

    # -- out of the ring ------------------------------------------------------------------------------
    def factor(self, variable: int) -> Factor:
        """What a variable stands for."""
        return self._factors[variable]

    def formula(self, p: Poly) -> Sum:
        """A polynomial as a flat formula, in the ring's own order."""
        shared = self._shared_powers
        return Sum(tuple([Term(x, tuple([shared[item] for item in powers])) for powers, x in terms(p)]))

    def motion(self, q: Floats, v: Floats | None = None, a: Floats | None = None) -> dict[str, Any]:
        """The values of coordinates, rates and accelerations (..., n) by their symbols' names; None is zero."""
        states = ((self.coordinates, q), (self.rates, v), (self.accelerations, a))
        return {s.name: 0.0 if x is None else x[..., k] for some, x in states for k, s in enumerate(some)}

    def values(self, numbers: Mapping[str, Any]) -> Floats:
        """The variables' values (variables, *shape) for values of the symbols by name: numbers or arrays of a shape."""
        arrays = {name: np.asarray(x, np.float64) for name, x in numbers.items()}
        shape = np.broadcast_shapes(*(x.shape for x in arrays.values()))
        x = np.zeros((len(self._factors), *shape))
        with np.errstate(all="ignore"):
            for k, factor in enumerate(self._factors):
                known = not isinstance(factor, Symbol) or factor.name in arrays
                x[k] = factor_value(factor, arrays) if known else np.nan
        return x

    def evaluate(self, p: Poly, x: Floats) -> Floats:
        """A polynomial at `values`, in floating point: (*shape)."""
        value: Floats = Compiled([p])(x)[..., 0]
        return value


class _SharedPowers(dict[tuple[int, int], tuple[Factor, int]]):
    """Powers of factors by (variable, power), made once: what is made of a power can be looked up by identity."""

    def __init__(self, factors: Sequence[Factor]) -> None:
        self._factors = factors

    def __missing__(self, item: tuple[int, int]) -> tuple[Factor, int]:
        pair = self[item] = (self._factors[item[0]], item[1])
        return pair


@lru_cache(2**12)
def _powers(token: str) -> tuple[int, int]:
    """x12^3 → (12, 3)."""
    name, _, power = token.partition("^")
    return int(name[1:]), int(power or 1)


_number = lru_cache(2**14)(Fraction)


def terms(p: Poly) -> Iterator[tuple[Pairs, Fraction]]:
    """Each term of a polynomial in x0, x1, … as (variable, power) pairs, by rising variable, and its number.

    They are read from the polynomial's text, which is five times as fast as asking for exponents.
    """
    if not len(p):
        return
    for part in str(p).replace(" - ", " + -").split(" + "):
        tokens = part.split("*")
        first = tokens[0]
        if first[-1].isdecimal() and "x" not in first:
            yield tuple([_powers(t) for t in tokens[1:]]), _number(first)
        elif first[0] == "-":
            tokens[0] = first[1:]
            yield tuple([_powers(t) for t in tokens]), _MINUS
        else:
            yield tuple([_powers(t) for t in tokens]), _PLUS


_PLUS, _MINUS = Fraction(1), Fraction(-1)


class Compiled:
    """Polynomials of one ring, evaluated at many points at once: each product of variables once."""

    def __init__(self, polys: Sequence[Poly]) -> None:
        import scipy.sparse as sparse  # type: ignore[import-untyped]  # weight: SciPy, which ships no types

        at: dict[Pairs, int] = {}
        rows, columns, numbers = [], [], []
        for k, p in enumerate(polys):
            for powers, number in terms(p):
                rows.append(k)
                columns.append(at.setdefault(powers, len(at)))
                numbers.append(float(number))
        having: dict[tuple[int, int], list[int]] = {}
        for powers, k in at.items():
            for item in powers:
                having.setdefault(item, []).append(k)
        self._numbers = sparse.csr_array((numbers, (rows, columns)), shape=(len(polys), len(at)))
        #: Which products have a variable to which power.
        self._having = [(*item, np.array(those)) for item, those in having.items()]

    def __call__(self, x: Floats) -> Floats:
        """(*shape, polynomials) at `Ring.values` (variables, *shape)."""
        (polys, count), points = self._numbers.shape, x.reshape(len(x), -1)
        values = np.empty((points.shape[1], polys))
        each = max(_HELD // max(count, 1), 1)
        for k in range(0, len(values), each):
            part = points[:, k : k + each]
            products = np.ones((count, part.shape[1]))
            for variable, power, those in self._having:
                products[those] *= part[variable] ** power
            values[k : k + each] = (self._numbers @ products).T
        return values.reshape(*x.shape[1:], polys)


def _written(angle: Angle) -> str:
    return " + ".join(f"{m} {s.name}" for s, m in angle)
