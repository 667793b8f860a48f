"""What must hold at the initial state, the least rates that keep the mechanism closed, and why conditions cannot be
met.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.constraints.gear_rates import joint_rates
from linkwright.constraints.newton import least, split
from linkwright.dynamics.closed.redundancy import constraint_jacobian
from linkwright.model.coupling_relation import couplings
from linkwright.model.expression import numeric_values
from linkwright.model.placements import coordinate_units
from linkwright.model.quantities import Quantity, turns

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

Flags = NDArray[np.bool_]
#: Residuals below this are rounding of the computation.
EXACT = 1e-10
#: The largest rounding of a typed value that is believed, in radians or as a part of the length scale.
ROUNDED = 5e-4
TURN = 2.0 * np.pi


@dataclass(frozen=True, eq=False)
class Residuals:
    """At k states: Φ, G, the values' residuals and their slopes, all scaled; columns of G and slopes too."""

    phi: Floats  # (k, m)
    g: Floats  # (k, m, nv)
    apart: Floats  # (k, n): what is given less what is
    slopes: Floats  # (k, n, nv)


class Conditions:
    """The constraint equations at a time, and the places that the initial conditions give."""

    def __init__(self, mech: Mechanism, t: float) -> None:
        self.mech, self.t, d = mech, t, mech.description
        self.weighed = mech.auxiliary.weighed if mech.closed else mech
        self.size = d.length_scale
        self.wanted = np.array([float(numeric_values(x.value, d.parameters)) for x in d.initial])
        self.quantities = [x.quantity for x in d.initial]
        self.places = [k for k, x in enumerate(self.quantities) if not x.rate]
        self.rates = [k for k, x in enumerate(self.quantities) if x.rate]

    # -- units --------------------------------------------------------------------------------------------------
    @cached_property
    def units(self) -> Floats:
        """(n,): 1 for angles, the length scale for lengths; of rates per second."""
        return np.where([self._is_angle(x) for x in self.quantities], 1.0, self.size)

    @cached_property
    def columns(self) -> Floats:
        """(nv,): the same of the mechanism's rates; those that gears make fast by as much more."""
        tree = self.mech.tree
        units, rates = coordinate_units(tree)[1].copy(), joint_rates(tree.description, tree.description.body_lengths)
        for i, j in enumerate(tree.topology.joint.tolist() if rates else ()):
            if j in rates and not tree.coordinates.follows[i] and tree.kinds[i].nv == 1:
                units[int(tree.coordinates.v_at[i])] *= max(rates[j], 1.0)
        return units

    @cached_property
    def turning(self) -> Flags:
        """(nv,): the rates that are turns."""
        return ~self.mech.tree.shifts[1]

    @cached_property
    def rows(self) -> Floats:
        """(m,): how fast each constraint equation changes with the coordinates, anywhere."""
        n, rng = self.mech.nv, np.random.default_rng(0)
        q = self.moved(np.broadcast_to(self.mech.neutral(), (8, self.mech.nq)), rng.uniform(-np.pi, np.pi, (8, n)))
        largest = np.linalg.norm(self._constraint_slopes(q)[0], axis=2).max(axis=0)
        # An equation that no coordinate changes, as of a pivot across its plane, is a gap or a sine.
        units = self.mech.programs.constraint_units
        return np.where(largest > 1e-9 * units, largest, units)

    def rounding(self, k: int, scale: float = 1.0) -> float:
        """By how much a value may be rounded, as its digits show it, scaled; of values that are about `scale`."""
        value, unit = float(self.wanted[k]), float(self.units[k])
        typed = [value]
        if self._is_angle(self.quantities[k]) and math.isfinite(math.degrees(value)):
            typed.append(math.degrees(value))
        digits = [_last_digit(x) * per for x, per in zip(typed, (1.0, math.pi / 180.0), strict=False)]
        floor = EXACT * scale + 8.0 * np.finfo(float).eps * abs(value) / unit
        return float(max(floor, min(ROUNDED * scale, 0.5 * max(digits) / unit)))

    def _is_angle(self, x: Quantity) -> bool:
        d = self.mech.description
        if x.kind == "joint":
            return turns(d.kind_of(d.joint_names.position("joint", x.of[0])).name, x.index)
        return x.kind == "place" and x.rate and x.index >= 3

    # -- tree coordinates ---------------------------------------------------------------------------------------
    @cached_property
    def entries(self) -> dict[int, tuple[int, int, float, float]]:
        """For values that are coordinates of tree joints: the entries of q and v, ratio and offset of a follower."""
        tree = self.mech.tree
        x, d = tree.coordinates, tree.description
        at = {d.joint_names[int(j)]: i for i, j in enumerate(tree.topology.joint.tolist())}
        entries = {}
        for k, quantity in enumerate(self.quantities):
            i = at.get(quantity.of[0]) if quantity.kind == "joint" else None
            if i is not None and float(x.ratio[i]) != 0.0:
                index = quantity.index
                entries[k] = int(x.q_at[i]) + index, int(x.v_at[i]) + index, float(x.ratio[i]), float(x.offset[i])
        return entries

    def _keeps_turns(self, j: int, index: int) -> bool:
        """Whether whole turns of a coordinate matter: by a gear or coupling, by a pitch, or as it is no angle."""
        d = self.mech.description
        kind = d.kind_of(j)
        geared = any(j in (m.follower, m.leader) for m in d.mimics)
        geared |= any(x.of[0] == d.joint_names[j] for coupling in couplings(d) for x in coupling.coordinates)
        return index not in kind.angles or geared or (kind.name == "screw" and float(d.pitch[j]) != 0.0)

    @cached_property
    def whole_turns(self) -> Flags:
        """(n,): the values that whole turns do not change."""
        names = self.mech.description.joint_names

        def repeats(x: Quantity) -> bool:
            return x.kind == "joint" and not x.rate and not self._keeps_turns(names.position("joint", x.of[0]), x.index)

        return np.array([repeats(x) for x in self.quantities], bool)

    @cached_property
    def _angles(self) -> list[int]:
        """The entries of q that whole turns do not change."""
        tree = self.mech.tree
        x, joints = tree.coordinates, tree.topology.joint.tolist()
        return [
            int(x.q_at[i]) + k
            for i, j in enumerate(joints)
            for k in (() if x.follows[i] else tree.description.kind_of(j).angles)
            if not self._keeps_turns(j, k)
        ]

    def without_turns(self, q: Floats, near: Floats) -> Floats:
        """The state with angles within half a turn of another's."""
        q = q.copy()
        q[self._angles] -= TURN * np.round((q - near)[self._angles] / TURN)
        return q

    def direct(self, q: Floats, some: Sequence[int]) -> Floats:
        """States (..., nq) with the coordinates that are given outright."""
        q = np.array(q, dtype=np.float64)
        for k in some:
            if k in self.entries:
                at, _, ratio, offset = self.entries[k]
                q[..., at] = (self.wanted[k] - offset) / ratio
        return q

    def direct_rates(self, some: Sequence[int]) -> Floats:
        """v (nv,) with the rates that are given outright, and zero elsewhere."""
        v = np.zeros(self.mech.nv)
        for k in some:
            _, at, ratio, _ = self.entries[k]
            v[at] = self.wanted[k] / ratio
        return v

    def with_turns(self, q: Floats, some: Sequence[int]) -> Floats:
        """A state with the whole turns of the given angles."""
        q = q.copy()
        for k in some:
            if k in self.entries and self.whole_turns[k]:
                at, _, ratio, offset = self.entries[k]
                missing = (self.wanted[k] - offset) / ratio - q[at]
                q[at] += TURN * np.round(missing / TURN)
        return q

    def moved(self, q: Floats, change: Floats) -> Floats:
        """States moved by scaled changes."""
        return self.mech.integrate(np.ascontiguousarray(q), np.ascontiguousarray(change * self.columns))

    # -- residuals ----------------------------------------------------------------------------------------------
    def residuals(self, q: Floats, some: Sequence[int]) -> Residuals:
        """Everything at states (k, nq), for some of the values."""
        k, n, chosen = len(q), self.mech.nv, list(some)
        values, slopes = self.measured(q)
        apart = (self.wanted - values)[:, chosen]
        apart = apart - np.where(self.whole_turns[chosen], TURN * np.round(apart / TURN), 0.0)
        slopes = slopes[:, chosen] * self.columns / self.units[chosen][:, None]
        if not self.mech.closed:
            return Residuals(np.zeros((k, 0)), np.zeros((k, 0, n)), apart / self.units[chosen], slopes)
        phi, g = self.weighed.kernels.position_correction(q, self.t)[1], self._constraint_slopes(q)[0]
        return Residuals(phi / self.rows, g / self.rows[:, None], apart / self.units[chosen], slopes)

    def measured(self, q: Floats) -> tuple[Floats, Floats]:
        """The values (k, n) of what is given, and their slopes (k, n, nv)."""
        k, n = len(q), self.mech.nv
        every, rates = np.repeat(q, n + 1, axis=0), np.tile(np.eye(n + 1, n), (k, 1))  # each by itself, and none
        values, slopes = self.mech.kernels.initial_values(every, rates)
        shape = (k, n + 1, len(self.quantities))
        return values.reshape(shape)[:, -1], slopes.reshape(shape)[:, :-1].transpose(0, 2, 1)

    def _constraint_slopes(self, q: Floats) -> tuple[Floats, Floats]:
        """G (k, m, nv) with scaled columns, and Φ_t (k, m)."""
        g, drift = constraint_jacobian(self.mech, q, self.t)
        return g * self.columns, drift

    def constraint_rates(self, q: Floats) -> tuple[Floats, Floats]:
        """G and −Φ_t at one state, scaled: what the rates must satisfy."""
        if not self.mech.closed:
            return np.zeros((0, self.mech.nv)), np.zeros(0)
        g, drift = self._constraint_slopes(q[None])
        return g[0] / self.rows[:, None], -drift[0] / self.rows


def _last_digit(x: float) -> float:
    """The place value of the last digit that a number is written with, of twelve at most."""
    mantissa, exponent = f"{x:.11e}".split("e")
    digits = mantissa.partition(".")[2].rstrip("0")
    return float(10.0 ** (int(exponent) - len(digits))) if x else 0.0


def least_rates(c: Conditions, q: Floats, some: Sequence[int]) -> tuple[Floats, Floats]:
    """The least v that keeps the mechanism closed and misses some given rates least, and by how much (scaled)."""
    if not c.mech.closed and all(k in c.entries for k in some):  # a tree of any size: nothing to solve
        v = c.direct_rates(some)
        return v, (c.wanted - c.mech.kernels.initial_values(q, v)[1])[list(some)] / c.units[list(some)]
    g, right = c.constraint_rates(q)
    back, free = split(g, right)
    chosen = list(some)
    slopes = c.measured(q[None])[1][0][chosen] * c.columns / c.units[chosen][:, None]
    wanted = c.wanted[chosen] / c.units[chosen]
    v = back + free @ least(slopes @ free, wanted - slopes @ back)
    return v * c.columns, wanted - slopes @ v


def rates_met(c: Conditions, some: Sequence[int], missing: Floats) -> bool:
    """Whether the given rates are there to their digits."""
    scale = float(np.max(np.abs(c.wanted[c.rates] / c.units[c.rates]), initial=0.0))
    roundings = [c.rounding(k, scale) for k in some]
    return bool(np.linalg.norm(missing) <= max(float(np.linalg.norm(roundings)), 10.0 * EXACT * scale))


def undetermined_rates(c: Conditions, q: Floats) -> list[int]:
    """The given rates that constraints and drivers leave free."""
    if not c.rates:
        return []
    _, free = split(*c.constraint_rates(q))
    slopes = c.measured(q[None])[1][0][c.rates] * c.columns
    moves = np.linalg.norm(slopes @ free, axis=1) > 1e-8 * np.linalg.norm(slopes, axis=1)
    return [k for k, free_rate in zip(c.rates, moves, strict=True) if free_rate]
