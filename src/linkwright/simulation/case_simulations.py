"""Simulations of a batch of cases: one compiled attempt, each case with its own steps and parameters.

A case takes the steps that `lw.simulate` takes: the control of steps is part of the compiled attempt. One that cannot
go on stops where it is, and the others go on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.mechanism import Mechanism
from linkwright.model.parameter_cases import Cases
from linkwright.model.placements import length_scale
from linkwright.simulation.compiled_engines import Trouble, why_stuck
from linkwright.simulation.initialise import Settings, first_steps
from linkwright.simulation.integrators import tableau_of
from linkwright.simulation.samples import FixedSteps, Rows
from linkwright.simulation.state_derivatives import Passing, Slopes
from linkwright.simulation.step_control import (
    ACCEPTED,
    CLOSED,
    CONTROL,
    UNDERFLOW,
    Tolerances,
    first_control,
    run_settings,
    tolerances,
)
from linkwright.simulation.step_programs import Kernels
from linkwright.simulation.steps import attempt, fixed_step

Ints = NDArray[np.int64]
_CODE = CONTROL.index("code")


@dataclass(eq=False)
class Simulated:
    """q, v and a (T, n, ...) at the times, NaN from where a case did not come; `troubles` are why, with states."""

    q: Floats
    v: Floats
    a: Floats
    troubles: dict[int, tuple[Trouble, Rows]]


class Simulations:
    """Cases of one mechanism whose parameters `names` have the values p (n, k)."""

    def __init__(self, mech: Mechanism, names: tuple[str, ...], settings: Settings) -> None:
        self.mech, self.names, self.settings = mech, names, settings
        self.kernels, self.tableau = Kernels(mech, free=names), tableau_of(settings.method)
        assert settings.times is not None
        self.times = settings.times

    def slopes(self, p: Floats) -> Slopes:
        """What a method asks of the cases with these parameters (n, k)."""
        force = None if self.kernels.has_law else np.zeros(self.kernels.nv)
        return Slopes(self.kernels, None, force, p)

    def run(self, q: Floats, v: Floats, a: Floats, p: Floats) -> Simulated:
        """From first points to the end."""
        points, n = len(self.times), len(q)
        q_out, v_out, a_out = (np.full((points, n, x.shape[1]), np.nan) for x in (q, v, a))
        simulated = Simulated(q_out, v_out, a_out, {})
        if self.times[0] <= self.settings.start:
            simulated.q[0], simulated.v[0], simulated.a[0] = q, v, a
        if self.settings.dt is None:
            self._adaptive(simulated, q, v, a, p)
        else:
            self._fixed(simulated, q, v, a, p)
        return simulated

    # -- steps as long as the tolerances let them be ----------------------------------------------------------
    def _adaptive(self, simulated: Simulated, q: Floats, v: Floats, a: Floats, p: Floats) -> None:
        s = self.settings
        longest = min(s.longest, s.end - s.start)
        lengths = length_scale(self.mech.description, Cases(self.mech.description, self.names, p).array)
        tolerance = tolerances(self.mech.tree, self.mech.closed, lengths, s.end - s.start, s.rtol, s.atol, (q, v, a))
        settings = run_settings(s.start, s.end, longest, tolerance)
        points = Rows(np.full(len(q), s.start), q, v, a)
        first = first_steps(self.slopes(p), s, points, tolerance, self.tableau.error_order)
        control = first_control(s.start, first, tolerance.start)
        kernel = self.kernels.of(attempt, self.tableau)
        at = np.arange(len(q))
        since: list[list[Floats]] = [[] for _ in at]  # the controls of the attempts since the last good one
        while len(at):
            inputs = {"q": q, "v": v, "a": a, "control": control, "settings": settings[at]}
            q1, v1, a1, next_control = self.slopes(p[at]).batch(kernel, **inputs)
            code = next_control[:, _CODE]
            taken = code == ACCEPTED
            rows = np.flatnonzero(taken)
            before = Rows(control[rows, 0], q[rows], v[rows], a[rows])
            after = Rows(next_control[rows, 0], q1[rows], v1[rows], a1[rows])
            self._sample(simulated, at[rows], before, after, p)
            for k in np.flatnonzero(~taken):
                since[int(at[k])].append(next_control[k])
            stuck = code >= UNDERFLOW
            for k in np.flatnonzero(stuck):
                here = Rows.point(next_control[k, 0], q1[k], v1[k], a1[k]).copy()
                beyond, following = self._crossing(simulated, int(at[k]), here, next_control[k], p, tolerance)
                if following is None:
                    reason, residual = why_stuck(np.array(since[int(at[k])]))
                    simulated.troubles[int(at[k])] = Trouble(reason, float(here.t[0]), residual, here), here
                    continue
                next_control[k], stuck[k] = following, False
                if beyond is not None:
                    q1[k], v1[k], a1[k] = beyond.q[0], beyond.v[0], beyond.a[0]
                    since[int(at[k])].clear()
            for row in at[rows]:
                since[int(row)].clear()
            on = ~stuck & (next_control[:, 0] < s.end)
            q, v, a, control, at = q1[on], v1[on], a1[on], next_control[on], at[on]

    def _crossing(
        self, simulated: Simulated, case: int, here: Rows, control: Floats, p: Floats, tolerance: Tolerances
    ) -> tuple[Rows | None, Floats | None]:
        """`Passing.next_attempt` of a case, with what is passed of the times asked for."""
        s = self.settings
        one = Tolerances(s.rtol, tolerance.least[case], tolerance.most[case], tolerance.entries, tolerance.start[case])
        passing = Passing(self.slopes(p[case]), one, s.end, min(s.longest, s.end - s.start))
        beyond, following = passing.next_attempt(here, control)
        if beyond is None:
            return None, following
        first, last = np.searchsorted(self.times, [here.t[0], beyond.t[0]], side="right")
        for k in range(first, last):
            there = beyond if self.times[k] == beyond.t[0] else passing.point(here, float(self.times[k])) or beyond
            simulated.q[k, case], simulated.v[k, case], simulated.a[k, case] = there.q[0], there.v[0], there.a[0]
        return beyond, following

    # -- steps of one length ------------------------------------------------------------------------------------
    def _fixed(self, simulated: Simulated, q: Floats, v: Floats, a: Floats, p: Floats) -> None:
        s = self.settings
        assert s.dt is not None
        steps = FixedSteps(s.start, s.end, s.dt)
        kernel = self.kernels.of(fixed_step, self.tableau)
        at = np.arange(len(q))
        for k in range(steps.count):
            t, h, end = steps.step(k)
            start = Rows(np.full(len(at), t), q, v, a)
            inputs = {"q": q, "v": v, "a": a, "t": start.t, "h": np.full(len(at), h)}
            q1, v1, a1, *summary = self.slopes(p[at]).batch(kernel, **inputs)
            reached = Rows(np.full(len(at), end), q1, v1, a1)
            residuals = summary[0][:, 0] if summary else np.zeros(len(at))
            good = reached.finite & (residuals <= CLOSED)
            for i in np.flatnonzero(~good):
                is_open = residuals[i] > CLOSED
                reason = "constraint cannot be met" if is_open else "no value"
                residual = float(residuals[i]) if is_open and math.isfinite(residuals[i]) else 0.0
                trouble = Trouble(reason, t, residual, reached[i : i + 1].copy())
                simulated.troubles[int(at[i])] = trouble, start[i : i + 1].copy()
            at = at[good]
            self._sample(simulated, at, start[good], reached[good], p)
            _, q, v, a = reached[good].all
            if not len(at):
                break

    # -- samples --------------------------------------------------------------------------------------------------
    def _sample(self, simulated: Simulated, cases: Ints, before: Rows, after: Rows, p: Floats) -> None:
        """Keep what these steps reach or pass of the times asked for."""
        first = np.searchsorted(self.times, before.t, side="right")
        last = np.searchsorted(self.times, after.t, side="right")
        number = last - first
        step = np.repeat(np.arange(len(cases)), number)
        if not len(step):
            return
        index = np.concatenate([np.arange(i, j) for i, j in zip(first, last, strict=True) if j > i])
        wanted = self.times[index]
        exact = after.t[step] == wanted
        for array, x in ((simulated.q, after.q), (simulated.v, after.v), (simulated.a, after.a)):
            array[index[exact], cases[step[exact]]] = x[step[exact]]
        if exact.all():
            return
        step, index, wanted = step[~exact], index[~exact], wanted[~exact]
        used, which = np.unique(step, return_inverse=True)
        terms = self.slopes(p[cases[used]]).terms(self.tableau, before[used], after[used])
        rows, t = cases[step], before.t[step]
        h = after.t[step] - t
        theta = (wanted - t) / h
        states = self.slopes(p[rows]).within(terms, which, before, step, t + theta * h, theta)
        simulated.q[index, rows], simulated.v[index, rows], simulated.a[index, rows] = states.q, states.v, states.a
