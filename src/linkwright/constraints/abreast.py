"""Kinematic motions of many cases abreast, in the lanes of the programs of one mechanism.

A case goes along as long as each of its steps is good at the first try, by the tests that a single motion makes. One
that needs more (a shorter step, a leap across a dead centre, a corner of a law, a reason why it stops) is left out, and
is for `Kinematics.motion` to do.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from linkwright.base.types import Floats
from linkwright.constraints.assembled import Assembled
from linkwright.constraints.assembling import Settled, Settling
from linkwright.constraints.branch import Branch, agree
from linkwright.constraints.case_numbers import CaseNumbers
from linkwright.constraints.kinematics import Kinematics
from linkwright.constraints.lanes import in_lanes, some
from linkwright.constraints.motion import FOLLOWED, MISSED, NEAR, REST, Acceptance, slow_over
from linkwright.constraints.programs import Step
from linkwright.constraints.stops import TILTED
from linkwright.mechanism.cases import Cases
from linkwright.mechanism.description import GROUND
from linkwright.mechanism.expression import numeric_values
from linkwright.spatial.rotation import euler_parameters_matrix

Flags = NDArray[np.bool_]
Rows = NDArray[np.int64]


@dataclass(eq=False)
class Abreast:
    """Motions (T, n, nb, ...) at the times; rows of cases that are not `done` mean nothing."""

    times: Floats
    q: Floats
    v: Floats
    a: Floats
    done: Flags
    #: Where cases that are not done begin, as far as that is known.
    assembled: dict[int, Assembled] = field(default_factory=dict)
    #: Cases that do not go together, with the state in which they miss least.
    open: dict[int, Assembled] = field(default_factory=dict)


def motions(
    kinematics: Kinematics,
    cases: Cases,
    times: Floats,
    assembly_tolerance: float | None = None,
    starts: dict[int, Floats] | None = None,
) -> Abreast:
    """Position, velocity and acceleration of every case at increasing times, of least norm where freedom is left.

    `starts`: the initial states (nb, 7) of cases; the others are then not looked at. Without it, as they are drawn.
    """
    return _Run(kinematics, cases, times, assembly_tolerance, starts).go()


class _Run:
    def __init__(
        self,
        kinematics: Kinematics,
        cases: Cases,
        times: Floats,
        assembly_tolerance: float | None,
        starts: dict[int, Floats] | None,
    ) -> None:
        self.k, self.e, self.programs = kinematics, kinematics.equations, kinematics.programs
        self.cases, self.times, self.allowed = cases, times, assembly_tolerance
        self.numbers = CaseNumbers(self.e, cases)
        self.starts = starts
        n, nb, points = len(cases), self.e.nb, len(times)
        q, v, a = (np.empty((points, n, nb, width)) for width in (7, 6, 6))
        self.found = Abreast(times, q, v, a, np.zeros(n, bool))

    def go(self) -> Abreast:
        usable = self.cases.possible & self.numbers.same_forms
        rows = np.flatnonzero(usable & self._lawful(usable))
        drawn = None
        if self.starts is not None:
            rows = rows[[int(row) in self.starts for row in rows]]
            drawn = np.array([self.starts[int(row)] for row in rows]).reshape(-1, self.e.nb, 7)
        if len(rows):
            settling = Settling(self.k, self.numbers, float(self.times[0]), self.allowed)
            start = settling.assembled(rows, drawn)
            for row, state in start.open.items():
                self.found.open[row] = state
            for free in (False, True):
                chosen = np.flatnonzero((start.free == free) & start.closed)
                if len(chosen):
                    self._march(rows[chosen], start.some(chosen), free)
        return self.found

    def _lawful(self, usable: Flags) -> Flags:
        """Whether all laws have values at all times."""
        good = usable.copy()
        names = {name: x[:, None] if np.ndim(x) else x for name, x in self.cases.parameters.items()}
        for k in self.e.drivers:
            law = self.e.constraints[k].law
            assert law is not None
            values = numeric_values(law, {**names, "TIME": self.times})
            good &= np.isfinite(np.broadcast_to(values, (len(good), len(self.times)))).all(axis=1)
        return good

    def _march(self, rows: Rows, start: Settled, free: bool) -> None:
        """From the assembled states through all times; what cannot go along is put among the others."""
        group = _Group(self, rows, start, free)
        good = group.begin()
        out = self.found
        interval = float(np.max(np.diff(self.times), initial=0.0)) or 1.0
        for k in range(len(self.times)):
            if k:
                good = group.step(float(self.times[k - 1]), float(self.times[k]), interval)
            group.keep(good)
            if not len(group.rows):
                break
            whole = len(group.rows) == len(self.cases)
            at = slice(None) if whole else group.rows
            out.q[k, at], out.v[k, at], out.a[k, at] = group.q, group.v, group.a
        lost = np.setdiff1d(rows, group.rows)
        finished = group.rows[~self._tilted(group.rows)]
        out.done[finished] = True
        for i in np.flatnonzero(np.isin(rows, np.union1d(lost, np.setdiff1d(group.rows, finished)))):
            out.assembled[int(rows[i])] = start.one(int(i))

    def _tilted(self, rows: Rows) -> Flags:
        """Whether the h axes of an angle driver, drawn parallel, become others."""
        bad = np.zeros(len(rows), bool)
        for k in self.e.drivers:
            c = self.e.constraints[k]
            if "about h" not in c.form.key or len(c.bodies) < 2:
                continue
            first = sum(len(x.record) for x in self.e.constraints[:k])
            h = []
            for side, body in enumerate(c.bodies):
                at = first + 12 * side
                axis = self.numbers.records[rows, at : at + 9].reshape(-1, 3, 3)[:, :, 2]
                if body == GROUND:
                    h.append(np.broadcast_to(axis, (len(self.times), *axis.shape)))
                else:
                    turn = euler_parameters_matrix(np.moveaxis(self.found.q[:, rows, body, 3:], -1, 0))
                    h.append(np.einsum("ijtn,nj->tni", turn, axis))
            bad |= (np.linalg.norm(np.cross(h[0], h[1]), axis=2) > TILTED).any(axis=0)
        return bad


class _Group(Acceptance):
    """Cases that go along together: where they are now, and what their steps are measured by."""

    def __init__(self, run: _Run, rows: Rows, start: Settled, free: bool) -> None:
        self.run, self.rows, self.free = run, rows, free
        self.program = run.programs.step(free)
        numbers = run.numbers
        self.inputs = some(numbers.inputs, rows)
        self.sizes = numbers.sizes[rows]
        correction, asked = numbers.inputs["newton"]
        self.tolerance = np.maximum(asked if np.isfinite(asked) else MISSED * numbers.size[rows], 10.0 * start.miss)
        if np.isfinite(asked):
            self.inputs["newton"] = np.array([correction, np.max(self.tolerance, initial=asked)])
        self.rate_tolerance, self.slow = FOLLOWED * numbers.size[rows], slow_over(run.times)
        self.lost, self.largest_pivot = start.lost.astype(np.float64), start.pivot
        self.fastest = np.zeros(len(rows))
        self.q, self.angles = start.q, start.angles
        self.v = self.a = np.zeros((len(rows), run.e.nb, 6))
        self.first = rows[0], start.one(0)
        self._branch: Branch | None = None
        self._made: dict[str, Floats] = {}
        self._j: Floats | None = None  # what is stored of J where the cases are now, if it is known
        self._next_j: Floats | None = None

    _ARRAYS = ("sizes", "tolerance", "rate_tolerance", "lost", "largest_pivot", "fastest", "rows")

    def keep(self, good: Flags) -> None:
        """Go on with these cases, from where they were found."""
        self.q, self.v, self.a, self.angles = (self._made[f"{name}_there"] for name in ("q", "v", "a", "angles"))
        self._j, self._next_j = self._next_j, None
        if good.all():
            return
        self._j = None if self._j is None else self._j[good]
        self.inputs = some(self.inputs, good)
        for name in self._ARRAYS:
            setattr(self, name, getattr(self, name)[good])
        self.q, self.v, self.a, self.angles = (x[good] for x in (self.q, self.v, self.a, self.angles))

    def begin(self) -> Flags:
        """Velocity and acceleration of the assembled states, and which of them can be followed."""
        t = float(self.run.times[0])
        return np.asarray(self.consistent(self._attempt(t, t)))

    def _attempt(self, before: float, t: float) -> Step:
        state = {"q": self.q, "v": self.v, "a": self.a, "angles": self.angles}
        given = {**self.inputs, **state, "t": np.array([t]), "h": np.array([t - before])}
        self._made = in_lanes(self.program, given, len(self.rows))
        return Step(*self._made["summary"].T)

    def step(self, before: float, t: float, interval: float) -> Flags:
        """To the next time; which of the steps are good at once."""
        with np.errstate(all="ignore"):
            step = self._attempt(before, t)
            good = self.closes(step) & self.regular(step) & self.consistent(step) & self.near(step)
            if self.free:
                good &= step.rounds <= 1.0
            fastest = np.where(good, np.maximum(self.fastest, step.speed), self.fastest)
            smooth = self.smooth(step, fastest)
            if not (smooth | ~good).all():
                smooth |= self._at_rest(step, interval)
            good &= smooth
            doubtful = np.flatnonzero(good & ~self.short(step))
            if len(doubtful):
                good[doubtful] = self._same_branch(doubtful, before, t)
        self.fastest = fastest
        self.largest_pivot = np.where(good, np.maximum(self.largest_pivot, step.pivot), self.largest_pivot)
        return np.asarray(good)

    def _at_rest(self, step: Step, interval: float) -> Flags:
        """At rest there is no speed to compare with, but there may be an acceleration."""
        a = np.abs(self._made["a_there"])
        a[:, :, :3] /= self.sizes[:, :, None]
        singular = (step.lost != self.lost) | (step.pivot < NEAR * self.largest_pivot)
        return np.asarray(~singular & (step.mismatch <= REST * interval * a.max(axis=(1, 2), initial=0.0)))

    def _same_branch(self, chosen: Rows, before: float, t: float) -> Flags:
        if self._branch is None:
            row, state = self.first
            own = Kinematics(self.run.cases.one(int(row)))
            self._branch = Branch(own.programs, state.q, state.angles, float(self.run.times[0]))
        parts = self._branch.parts
        if not parts:
            return np.ones(len(chosen), bool)
        before_j = self._jacobian(self.q, self.angles, before) if self._j is None else self._j
        self._next_j = self._jacobian(self._made["q_there"], self._made["angles_there"], t)
        ends = (before_j[chosen], self._next_j[chosen])
        good = np.ones(len(chosen), bool)
        for part in parts:
            good &= agree(part, *ends).all(axis=1)
        return good

    def _jacobian(self, q: Floats, angles: Floats, t: float) -> Floats:
        """What is stored of J at states of all cases, and 0 behind it."""
        given = {**self.inputs, "q": q, "angles": angles, "t": np.array([t]), "v": np.zeros((self.run.e.nb, 6))}
        stored = in_lanes(self.run.programs.evaluation, given, len(q))["jacobian"]
        return np.concatenate([stored, np.zeros((len(q), 1))], axis=1)
