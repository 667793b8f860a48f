"""Expressions of a description as exact formulas, and its fixed and basic angles, with exact or named cosines.

Equal functions are to be equal formulas: of a parameter's multiples the common part is taken, and cosines of sums are
written in those of the parts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from linkwright.base.arguments import shortened
from linkwright.errors import ModelError
from linkwright.model.expression import Call, Expression, Lookup, Name, Number, by_parts
from linkwright.symbolic.derivation.literal import Link
from linkwright.symbolic.formulas.exact import (
    NEAR,
    ONE,
    Matrix,
    added,
    angle_sum,
    cosine_and_sine,
    decimal,
    extent,
    from_parts,
    known_angle,
    known_cosine,
    negated,
    rational,
    times,
    turn,
)
from linkwright.symbolic.formulas.formula import (
    Angle,
    Applied,
    Sum,
    Symbol,
    Term,
    Trig,
    common_divisor,
    factors,
    natural,
    number,
)
from linkwright.symbolic.formulas.ring import Turn

#: Σ multiple · parameter by name.
Multiples = Mapping[str, Fraction]
_MOST = 8  # multiple of an angle up to which its cosine is written in that of the angle
_PARTS = 6  # parameters in one angle up to which its cosine is written in theirs
_DIGITS = 17  # that a float can have


def common_part(multiples: Iterable[Fraction]) -> Fraction | None:
    """The largest angle of which all these, not zero, are whole multiples; None where these would be large."""
    sizes = [abs(m) for m in multiples]
    base = common_divisor(sizes)
    return base if max(sizes) <= _MOST * base else None


class Angles:
    """Makes exact rotations of numbers, and names the angles that have no exact cosine.

    `taken` are names that it may not give; `digits` rounds cosines in place of naming angles; `multiples` are the
    combinations of parameters that the mechanism turns by.
    """

    def __init__(
        self, taken: Iterable[str] = (), digits: int | None = None, multiples: Iterable[Multiples] = ()
    ) -> None:
        if digits is not None and (not isinstance(digits, int) or not 1 <= digits <= _DIGITS):
            text = f"round_angles={digits!r}; give the number of decimals, 1 to {_DIGITS}, or None to name the angles"
            raise ModelError(text)
        self.taken, self.digits = set(taken), digits
        self.values: dict[str, float] = {}
        met: defaultdict[str, set[Fraction]] = defaultdict(set)
        for combination in multiples:
            for name, m in combination.items():
                met[name].add(m)
        self._parts = {name: common_part(m) for name, m in met.items()}

    # -- numbers --------------------------------------------------------------------------------------
    def rotation(self, r: Any, label: str) -> list[Matrix]:
        """A rotation (3×3 floats) as turns about z, x and z whose product it is."""
        gamma, alpha, theta = _zxz(np.asarray(r, dtype=np.float64))
        parts = ((2, gamma, "gamma"), (0, alpha, "alpha"), (2, theta, "delta"))
        return [turn(axis, *self.pair(x, f"{stem}{label}")) for axis, x, stem in parts if abs(x) > NEAR]

    def entry(self, x: float) -> Sum:
        """A single entry of a rotation: a cosine that is known exactly or of an angle with a name, else its decimal."""
        known = known_cosine(x)
        if known is not None:
            return known
        if self.digits is not None:
            return number(Fraction(repr(round(float(x), self.digits))))
        for name, value in self.values.items():
            for quarters in range(4):
                if abs(x - math.cos(value + quarters * math.pi / 2)) < NEAR:
                    return self._quarters(name, 1, quarters)[0]
        return decimal(x)

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
        c, s = cosine_and_sine(((Symbol(name), Fraction(sign)),))
        for _ in range(quarters % 4):
            c, s = negated(s), c
        return c, s

    # -- parameters -----------------------------------------------------------------------------------
    def combined(self, multiples: Multiples, constant: float) -> tuple[Sum, Sum]:
        """cos and sin of Σ multiple · parameter + constant."""
        c, s = self.pair(constant, f"phi{len(self.values) + 1}")
        names = sorted((n for n, m in multiples.items() if m), key=natural)
        if len(names) > _PARTS:
            return angle_sum((c, s), cosine_and_sine(tuple((Symbol(n), multiples[n]) for n in names)))
        for name in names:
            c, s = angle_sum((c, s), self._multiple(name, multiples[name]))
        return c, s

    def _multiple(self, name: str, m: Fraction) -> tuple[Sum, Sum]:
        """cos and sin of a multiple of a parameter, in those of the part that it shares with the other multiples."""
        base = self._parts.get(name) or abs(m)
        times_base = abs(m) / base
        if times_base.denominator != 1 or times_base > _MOST:
            base, times_base = abs(m), Fraction(1)
        n, angle = int(times_base), ((Symbol(name), base),)
        cos, sin = Trig("cos", angle), Trig("sin", angle)
        parts: tuple[list[Term], list[Term]] = ([], [])
        for k in range(n + 1):  # (cos + i sin)ⁿ
            factors = tuple((f, p) for f, p in ((cos, n - k), (sin, k)) if p)
            sign = (-1) ** (k // 2) * (-1 if m < 0 and k % 2 else 1)
            parts[k % 2].append(Term(Fraction(sign * math.comb(n, k)), factors))
        return Sum(tuple(parts[0])), Sum(tuple(parts[1]))


def _zxz(r: Any) -> tuple[float, float, float]:
    """γ, α, θ with R = Rz(γ) Rx(α) Rz(θ); γ = 0 where α is 0 or π."""
    sine = math.hypot(r[0, 2], r[1, 2])
    gamma = 0.0 if sine < NEAR else math.atan2(r[0, 2], -r[1, 2])
    alpha = math.atan2(sine, r[2, 2])
    cg, sg, ca, sa = math.cos(gamma), math.sin(gamma), math.cos(alpha), math.sin(alpha)
    x, y = cg * r[0, 0] + sg * r[1, 0], cg * r[1, 0] - sg * r[0, 0]
    return gamma, alpha, math.atan2(ca * y + sa * r[2, 0], x)


class Basis:
    """Basic angles: sums along parallel axes where `sums` says so, and of which each turn is a whole combination."""

    def __init__(self, coordinates: list[Symbol], links: list[Link], sums: bool) -> None:
        self.angles: list[Angle] = []
        self.turns: dict[int, Turn] = {}
        users: dict[int, list[int]] = {}
        for k, link in enumerate(links):
            if link.turns:
                users.setdefault(link.coordinate, []).append(k)
        total: dict[int, int] = {}  # elementary link → the basic angle that is the sum up to it
        for k, link in enumerate(links):
            if not link.turns:
                continue
            q = coordinates[link.coordinate]
            if len(users[link.coordinate]) > 1 or abs(link.ratio) != 1:
                self._shared(users[link.coordinate], links, q)
                continue
            side = _parallel(link.rotations) if sums and link.axis == 2 and link.parent in total else 0
            up = total.get(link.parent, -1)
            sign = int(link.ratio)
            if side and links[link.parent].axis == 2:
                # φ = φ of the parent ± θ
                angle = dict(self.angles[up])
                angle[q] = angle.get(q, Fraction(0)) + side * sign
                self.angles.append(tuple(angle.items()))
                basic = len(self.angles) - 1
                self.turns[k] = (basic, side), (up, -side)
            else:
                self.angles.append(((q, Fraction(1)),))
                basic = len(self.angles) - 1
                self.turns[k] = ((basic, sign),)
            if side or sign == 1:
                total[k] = basic

    def _shared(self, users: list[int], links: list[Link], q: Symbol) -> None:
        """Turns by multiples of one coordinate: of their common part, if the multiples stay small."""
        if users[0] in self.turns:
            return
        ratios = [links[k].ratio for k in users]
        base = common_part(ratios)
        if base is not None:
            self.angles.append(((q, base),))
            for k in users:
                self.turns[k] = ((len(self.angles) - 1, int(links[k].ratio / base)),)
            return
        position: dict[Fraction, int] = {}
        for k in users:
            size = abs(links[k].ratio)
            if size not in position:
                self.angles.append(((q, size),))
                position[size] = len(self.angles) - 1
            self.turns[k] = ((position[size], 1 if links[k].ratio > 0 else -1),)


def _parallel(rotations: tuple[Matrix, ...]) -> int:
    """1 or −1 where a product of rotations keeps or turns over the z axis for certain, 0 where it does not."""
    sign = 1
    for r in rotations:
        if r[2][2] == ONE:
            continue
        if r[2][2] == number(-1):
            sign = -sign
            continue
        return 0
    return sign


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
    formula = _formula(e, exact, names or {}, pair or _alone(e), 0)
    if extent(formula).terms > _MOST_TERMS:
        text = f"{shortened(str(e), 60)} has more than {_MOST_TERMS:,} terms when it is multiplied out"
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


def _formula(e: Expression, exact: Callable[[float], Sum], names: Mapping[str, Sum], pair: Pair, level: int) -> Sum:
    """A part of an expression as a formula; `level` functions and products are around it."""
    if isinstance(e, Number):
        return exact(e.value)
    if isinstance(e, Name):
        return names[e.name] if e.name in names else times(1, Symbol(e.name))
    if not isinstance(e, Call):
        text = f"{shortened(str(e), 60)} is a table of numbers, which has no closed form; put a formula in its place"
        raise ModelError(text)
    parted = by_parts(e)
    if parted is not e:
        return _formula(parted, exact, names, pair, level)
    if level > _MOST_LEVELS:
        text = f"an expression has more than {_MOST_LEVELS} functions and products one inside the other"
        raise ModelError(f"{text}; give a part of it as a parameter of its own")
    if e.function in ("cos", "sin"):
        angle = linear(e.arguments[0])
        if angle is not None and not names.keys() & angle[0].keys():
            return pair(*angle)[e.function == "sin"]
    level += e.function not in _SUMS  # sums are flat
    return from_parts(e.function, [_formula(part, exact, names, pair, level) for part in e.arguments])


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
