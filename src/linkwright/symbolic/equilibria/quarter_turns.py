"""Exact states of rest: quarter turns, shifts on linear springs, and poses at which yaw, pitch and roll fail.

There yaw and roll turn about one axis, so that the moment about a third one is in none of the three forces. But the
same pose has other angles: yaw + δ with roll ± δ. With δ = 90° the pitch turns about the axis that was missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from math import cos, pi, prod, sin
from typing import Literal

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.symbolic.derivation.literal import Model
from linkwright.symbolic.derivation.polynomial_dynamics import Dynamics
from linkwright.symbolic.equilibria.balance import Balance
from linkwright.symbolic.formulas.exact import rational
from linkwright.symbolic.formulas.formula import Sum, Symbol, evaluate, symbols
from linkwright.symbolic.formulas.ring import Poly, Ring
from linkwright.symbolic.linear.linearisation import Linearisation, Moved, Value
from linkwright.symbolic.linear.quotients import Quotient, determinant, solved
from linkwright.symbolic.printing.formula_writer import text
from linkwright.symbolic.printing.mathml import text_line

_LOCKED = 1e-5  # cosine of the pitch below which it counts as ±90°
_SURE_OF_LOCK = 1e-6  # of the largest force
LEFT_OUT = (
    "at a pitch of ±90° the forces on yaw, pitch and roll vanish also where a moment is left; such points are not "
    "listed"
)
UNSURE = (
    "at a pitch of ±90° yaw, pitch and roll do not tell every turn apart: more modes may grow there than are counted, "
    "and none counted is no proof of stability"
)


class Gimbals:
    """The spherical and free joints of a balance, and their poses with a pitch of ±90°."""

    def __init__(self, balance: Balance, parameters: Mapping[str, float]) -> None:
        self.balance, self.parameters = balance, parameters
        self.units = balance.units(parameters)
        self.triples = triples(balance.dynamics.model)
        self.notes: dict[str, None] = {}  # on the points that were looked at, each once

    def locked(self, q: Floats) -> list[tuple[int, int, int]]:
        """The joints whose pitch is ±90° at q."""
        return [triple for triple in self.triples if abs(cos(q[triple[1]])) < _LOCKED]

    def at_rest(self, q: Floats) -> bool:
        """Whether a point at which the angles' forces vanish has no moment left about the axes that they miss."""
        for yaw, pitch, roll in self.locked(q):
            other = q.copy()
            other[yaw] += pi / 2
            other[roll] += pi / 2 if sin(q[pitch]) > 0 else -pi / 2
            # A force on the pitch acts about the axis of the angles as they are, not about the one that is missing.
            moment = self.balance.only(other[None], self.parameters)[0, pitch]
            moment += evaluate(self.balance.forces[pitch], self.parameters)
            if abs(moment) > _SURE_OF_LOCK * self._largest:
                self.notes[LEFT_OUT] = None
                return False
        return True

    @cached_property
    def _largest(self) -> float:
        """The largest force at some poses."""
        q = np.random.default_rng(0).uniform(-pi, pi, (64, self.balance.n)) * self.units
        return float(np.abs(self.balance.only(q, self.parameters) * self.units).max(initial=0.0))


def triples(model: Model) -> list[tuple[int, int, int]]:
    """Yaw, pitch and roll of each joint that has them: the only joints with three turns."""
    turns: dict[str, list[int]] = {}
    for link in model.links:
        if link.turns and link.coordinate >= 0:
            coordinates = turns.setdefault(model.joints[link.coordinate], [])
            if link.coordinate not in coordinates:
                coordinates.append(link.coordinate)
    return [(x[0], x[1], x[2]) for x in turns.values() if len(x) == 3]


MOST = 4**8  # combinations that are tried
_SURE = 1e-9  # of the largest force
_WRITTEN = 256  # exact points at most


Stability = Literal["stable", "unstable", "neutral", "unknown"]


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A state of rest; where `free` names coordinates, for any value of these."""

    dynamics: Dynamics = field(repr=False)
    q: Floats  # zero where free
    free: tuple[str, ...]
    exact: bool  # for any values of the parameters, not only for those given
    formulas: Mapping[str, Sum] = field(repr=False)  # of shifts that springs hold, where exact
    stability: Stability
    growing: int  # how many modes grow
    frequencies: Floats  # Hz, of the modes that swing, without friction; none where M has no inverse

    def place(self, parameters: Mapping[str, float]) -> Floats:
        """The coordinates, with the shifts' values where those of the parameters are known; otherwise zero.

        Where a formula divides by zero, they are not finite.
        """
        q = self.q.copy()
        for j, symbol in enumerate(self.dynamics.model.coordinates):
            formula = self.formulas.get(symbol.name)
            if formula is not None and set(symbols(formula)) <= set(parameters):
                with np.errstate(all="ignore"):
                    q[j] = evaluate(formula, {name: np.float64(x) for name, x in parameters.items()})
        return q

    def written(self) -> dict[str, str]:
        """Each coordinate's value by its name: "pi/2", a formula, a number, or "any" (rad, m).

        >>> import linkwright as lw
        >>> lw.equations(lw.chain(1)).equilibria()[0].written()
        {'q1': '0'}
        """
        texts = {}
        for symbol, x in zip(self.dynamics.model.coordinates, self.q.tolist(), strict=True):
            if symbol.name in self.free:
                texts[symbol.name] = "any"
            elif symbol.name in self.formulas:
                texts[symbol.name] = text(self.formulas[symbol.name])
            else:
                texts[symbol.name] = _angle(x) if self.exact else f"{x:.9g}"
        return texts

    def point(self) -> dict[str, Value]:
        """The coordinates by name, without those that are free or have formulas."""
        names = [q.name for q in self.dynamics.model.coordinates]
        open_names = {*self.free, *self.formulas}
        return {name: float(x) for name, x in zip(names, self.q, strict=True) if name not in open_names}

    def linearised(self) -> Linearisation:
        """The linear model here, a `Linearisation`; where the point is exact, in the parameters' symbols.

        >>> import linkwright as lw
        >>> lw.equations(lw.chain(1)).equilibria()[0].linearised().K.shape
        (1, 1)
        """
        return Linearisation(self.dynamics, self.point())

    def __str__(self) -> str:
        place = ", ".join(f"{name} = {x}" for name, x in self.written().items())
        growth = {1: ", 1 mode grows"}.get(self.growing, f", {self.growing} modes grow") if self.growing else ""
        swings = ", ".join(f"{x:.4g}" for x in self.frequencies)
        return f"{place}: {self.stability}{growth}" + (f"; swings at {swings} Hz" if swings else "")

    def _repr_html_(self) -> str:
        return text_line(str(self))


def quarters(balance: Balance, seed: int = 0) -> tuple[list[Equilibrium], list[str]]:
    """The exact states of rest, with notes on the search."""
    shifts, held = _shifts(balance)
    choices = [_choices(balance, j) if j in balance.turning else [0.0] for j in range(balance.n)]
    count = prod(len(c) for c in choices)
    if count > MOST:
        text = (
            f"{len(balance.turning)} angles have {count} combinations of quarter turns: too many to be tried, so that "
            "no exact equilibria are listed"
        )
        return [], [text]
    rng = np.random.default_rng(seed)
    # At generic parameters what vanishes does so identically, but for chance; the ring has the last word.
    names = balance.used - {q.name for q in balance.ring.coordinates}
    generic = {name: float(rng.uniform(0.5, 2.0)) for name in sorted(names | set(balance.dynamics.model.values))}
    q = np.array(list(product(*choices)))
    f, k = balance.at(q, generic)
    units = balance.units(generic)
    f, k = f * units, k * units * units[:, None]  # as energies
    scale = max(float(np.abs(f).max()), float(np.abs(k).max()), 1e-300)
    if shifts:
        a = k[:, :, shifts]
        s = np.einsum("bij,bj->bi", np.linalg.pinv(a), -f)
        f = f + np.einsum("bij,bj->bi", a, s)
    near = q[np.abs(f).max(axis=1) <= _SURE * scale]
    points: list[Equilibrium] = []
    met: set[tuple[object, ...]] = set()
    for place in near:
        loose = tuple(balance.free) if shifts else _released(balance, place, generic, scale, rng)
        key = (loose, *(None if j in loose else round(x / (pi / 2)) for j, x in enumerate(place)))
        if key in met:
            continue
        met.add(key)
        if len(points) == _WRITTEN:
            return points, [f"there are more than {_WRITTEN} exact equilibria; the others are left out"]
        one = _confirmed(balance, place, loose, shifts)
        if one is None and loose != tuple(balance.free):
            one = _confirmed(balance, place, tuple(balance.free), shifts)
        if one is not None:
            points.append(one)
    notes = []
    if held:
        names_held = ", ".join(balance.ring.coordinates[j].name for j in held)
        notes.append(f"of {names_held} only the value 0 was tried for exact equilibria")
    return points, notes


def _choices(balance: Balance, j: int) -> list[float]:
    """Quarter turns in (−period/2, period/2]; of a period of many turns, the first."""
    count = min(round(balance.periods[j] / (pi / 2)), 16)
    return [(k if k <= count // 2 else k - count) * (pi / 2) for k in range(count)]


def _shifts(balance: Balance) -> tuple[list[int], list[int]]:
    """Coordinates outside cosines: those in which f is linear, and the others."""
    ring, plain = balance.ring, balance.plain
    names = {ring.coordinates[j].name for j in plain}
    slopes = [[balance.k[i][j] for i in range(balance.n)] for j in plain]
    mixed = [any(names & set(symbols(ring.formula(p))) for p in column if p) for column in slopes]
    linear = [j for j, is_mixed in zip(plain, mixed, strict=True) if not is_mixed]
    return linear, [j for j in plain if j not in linear]


def _released(
    balance: Balance, place: Floats, parameters: Mapping[str, float], scale: float, rng: np.random.Generator
) -> tuple[int, ...]:
    """Coordinates that may have any value here, as far as trials show."""
    loose = list(balance.free)
    for j in balance.turning:
        some = [*loose, j]
        q = np.tile(place, (4, 1))
        q[:, some] = rng.uniform(-3.0, 3.0, (4, len(some)))
        if np.abs(balance.only(q, parameters) * balance.units(parameters)).max() <= _SURE * scale:
            loose = some
    return tuple(sorted(loose))


def _confirmed(balance: Balance, place: Floats, loose: tuple[int, ...], shifts: list[int]) -> Equilibrium | None:
    """The point, if f is zero there identically, for some shifts."""
    coordinates = balance.ring.coordinates
    numbers = {q.name: rational(place[j]) for j, q in enumerate(coordinates) if j not in loose and j not in shifts}
    moved = Moved(balance.ring, [], numbers)
    f = [moved(p) for p in balance.f]
    q = np.where([j in loose for j in range(balance.n)], 0.0, place)
    if not shifts:
        return None if any(f) else _exact(balance, q, loose, {})
    ring = moved.ring
    by = [coordinates[j] for j in shifts]
    slopes = [[ring.partial(p, s) for s in by] for p in f]
    constants = [_without(ring, p, by) for p in f]
    square = [slopes[j] for j in shifts]
    if not _regular(ring, square):
        return None
    answer = [-row[0] for row in solved(ring, square, [[constants[j]] for j in shifts])]
    if any(_left(ring, r, row, answer) for r, row in zip(constants, slopes, strict=True)):
        return None
    formulas = {coordinates[j].name: x.formula(ring) for j, x in zip(shifts, answer, strict=True)}
    return _exact(balance, q, loose, formulas)


def _exact(balance: Balance, q: Floats, loose: tuple[int, ...], formulas: Mapping[str, Sum]) -> Equilibrium:
    """A point that is one of rest for any parameters; of its stability nothing is known yet."""
    free = tuple(balance.ring.coordinates[j].name for j in loose)
    return Equilibrium(balance.dynamics, q, free, True, formulas, "unknown", 0, np.zeros(0))


def _without(ring: Ring, p: Poly, by: list[Symbol]) -> Poly:
    """p at zero of these symbols."""
    gone = {ring.at[s] for s in by}
    return p.compose(*(ring.zero if k in gone else x for k, x in enumerate(ring.gens)), ctx=ring.ctx)


def _regular(ring: Ring, rows: list[list[Poly]]) -> bool:
    """Whether a square of polynomials has an inverse, and one that is short: each shift on its own, or numbers."""
    return len(rows) <= 4 and all(any(row) for row in rows) and bool(determinant(ring, rows))


def _left(ring: Ring, constant: Poly, row: list[Poly], answer: list[Quotient]) -> Poly:
    """rest + Σ slope · shift, times the denominators."""
    total, below = constant, ring.one
    for slope, x in zip(row, answer, strict=True):
        if slope and x.above:
            total, below = total * x.below + slope * x.above * below, below * x.below
    return ring.reduced(total)


def _angle(x: float) -> str:
    """A multiple of 90° by its name."""
    times = round(x / (pi / 2))
    if abs(x - times * pi / 2) > 1e-12:
        return f"{x:.9g}"
    if times % 2 == 0:
        return {0: "0", 1: "pi", -1: "-pi"}.get(times // 2, f"{times // 2}*pi")
    return {1: "pi/2", -1: "-pi/2"}.get(times, f"{times}*pi/2")
