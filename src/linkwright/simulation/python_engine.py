"""Integration at Python's speed, for forces whose law is a Python function that cannot be recorded."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.simulation.engines import (
    FAR,
    PIECE,
    Engine,
    EngineState,
    Trouble,
    far_note,
    why_stuck,
)
from linkwright.simulation.integrators import Tableau, dense_terms, dense_value
from linkwright.simulation.python_laws import LawFailed
from linkwright.simulation.samples import FixedSteps, Rows
from linkwright.simulation.slopes import Passing, Slope, Slopes, advanced
from linkwright.simulation.step_control import (
    CLOSED,
    CONTROL,
    STALLED,
    UNDERFLOW,
    Tolerances,
    after,
    before,
    first_control,
    reached,
    run_settings,
)
from linkwright.simulation.step_parts import Parts

_OFTEN, _ENDLESS = 100, 2e5  # attempts after which it is asked how a run goes, and how many a run should not take


class Creep:
    """Whether a run goes on so slowly that something must be wrong: asked every `_OFTEN` attempts."""

    def __init__(self, begin: float, end: float) -> None:
        self.begin, self.end, self.attempts = begin, end, 0

    def creeps(self, t: float) -> bool:
        """Count an attempt from this time."""
        self.attempts += 1
        if self.attempts % _OFTEN:
            return False
        return self.attempts * (self.end - self.begin) > _ENDLESS * (t - self.begin)


class Called(Engine):
    """The explicit methods, stage by stage from Python: with dt in steps of one length, else adaptive."""

    def __init__(
        self,
        slopes: Slopes,
        tableau: Tableau,
        start: Rows,
        end: float,
        dt: float | None,
        control: tuple[float, float],
        tolerances: Tolerances,
    ) -> None:
        """`control`: the first step and the longest."""
        super().__init__(slopes, start, end, evaluations=1)
        self.tableau, self.done = tableau, 0
        self.tried: list[Floats] = []  # the controls of the attempts since the last good one
        self.watch = Creep(self.begin, end)
        self.steps = None if dt is None else FixedSteps(self.begin, end, dt)
        first, longest = control
        self.tolerances = tolerances
        self.settings = run_settings(self.begin, end, longest, tolerances)
        self.control = first_control(self.begin, first, tolerances.start)
        self.passing = Passing(slopes, tolerances, end, longest)

    @property
    def over(self) -> bool:
        return self.time >= self.end if self.steps is None else self.done >= self.steps.count

    def advance(self) -> tuple[Rows, Trouble | None]:
        started, points = perf_counter(), [self.last]
        trouble: Trouble | None = None
        with np.errstate(all="ignore"):  # what becomes of it is looked at
            while not self.over and trouble is None and perf_counter() - started < PIECE:
                try:
                    point, trouble = self._attempt() if self.steps is None else self._step(self.steps)
                except LawFailed as error:
                    point, trouble = None, Trouble("law failed", self.time, message=str(error))
                if point is not None:
                    points.append(point)
                    self.last = point
                    self.work.steps += 1
        return Rows.joined(points), trouble

    def _step(self, steps: FixedSteps) -> tuple[Rows | None, Trouble | None]:
        t, h, t1 = steps.step(self.done)
        point, phi, rounds, _ = self._point_after(t, h, t1)
        if phi > CLOSED:
            return None, Trouble("constraint cannot be met", t, phi, point)
        if np.isnan(phi) or not point.finite[0]:
            return None, Trouble("no value", t, state=point)
        self._count(rounds)
        self.done += 1
        move, v, change = point.v[0] - self.raw[1], point.v[0], h * point.a[0]
        part = float(np.sqrt(move @ move / max(v @ v + change @ change, 1e-300)))
        if part > FAR and not self.notes:
            self.notes.append(far_note(part, t1))
        return point, None

    def _count(self, rounds: float) -> None:
        self.work.evaluations += self.tableau.stages
        self.work.rounds += int(rounds)

    def _attempt(self) -> tuple[Rows | None, Trouble | None]:
        t, h, t1 = (float(x) for x in before(self.control, self.settings))
        point, phi, rounds, slopes = self._point_after(t, h, t1)
        there = reached(self.control, self.tolerances.reached(point.q[0], point.v[0]).tolist())
        sums, moved = self._errors(point, slopes, np.array(there, dtype=np.float64))
        size = point.q.size + point.v.size
        projection = (phi if self.kernels.closed else None, rounds, moved)
        control, taken = after(self.tableau, size, self.control, self.settings, h, t1, projection, sums, there)
        self.control = np.asarray(control, dtype=np.float64)
        self.tried.append(self.control)
        code = self.control[CONTROL.index("code")]
        stuck = code == UNDERFLOW
        wanders = self.slopes.wanders(self.last) if self.watch.creeps(self.time) or stuck else ""
        if wanders:
            return None, Trouble("no function of the state", t, message=wanders)
        if stuck or code == STALLED:
            beyond, next_control = self.passing.next_attempt(self.last, self.control)
            if next_control is not None:
                self.control = next_control
            if beyond is not None:
                self.tried = []
                return beyond, None
        if stuck:
            reason, residual = why_stuck(np.array(self.tried))
            return None, Trouble(reason, t, residual, point if reason == "no value" else self.last)
        self._count(rounds)
        if not taken:
            self.work.rejected += 1
            return None, None
        self.tried = []
        return point, None

    def _point_after(self, t: float, h: float, t1: float) -> tuple[Rows, float, float, list[Slope]]:
        """The point after a step, the constraints' residual and rounds, and the slopes: of the stages, at the end."""
        s = self.slopes
        slopes = self._stages(self.last, h)
        if self.tableau.implicit_rates:
            v = self.last.v[0] + h * slopes[0][1]
            q = np.asarray(s.kernels.of(Parts.integrate)(self.last.q[0], h * v))
        else:
            q, v = advanced(self.last, self.tableau.b, slopes, h)
        self.raw = q, v
        q, v, phi, rounds = s.projected(t1, q, v)
        slopes.append(s.slope(t1, q, v))
        return Rows.point(t1, q, v, slopes[-1][1]), phi, rounds, slopes

    def _stages(self, start: Rows, h: float) -> list[Slope]:
        s, tableau = self.slopes, self.tableau
        first = s.rate(start.q[0], start.v[0]), start.a[0]
        return s.stages(start, tableau.a[1:], tableau.c[1:], [first], h, project=False)

    def _errors(self, point: Rows, slopes: list[Slope], there: Floats) -> tuple[list[float], Any]:
        """The sums of squares of the method's errors, and of what projection moved, over the tolerances."""
        rtol, tolerance = self.tolerances.rtol, self.tolerances.absolute(there)
        absolute = np.split(tolerance, [point.q.shape[1]])
        sums, moved = [0.0] * len(self.tableau.errors), np.zeros(())
        for k, (y0, y1) in enumerate(((self.last.q[0], point.q[0]), (self.last.v[0], point.v[0]))):
            atol = absolute[k]
            scale = atol + rtol * np.maximum(np.abs(y0), np.abs(y1))
            for n, row in enumerate(self.tableau.errors):
                e = sum(factor * slopes[j][k] for j, factor in row.items()) / scale
                sums[n] += float(e @ e)
            far = (y1 - self.raw[k]) / (atol + rtol * np.abs(y1))
            moved = moved + far @ far
        return sums, None if self.slopes.plain else moved

    def between(self, rows: Rows, step: NDArray[np.int64], theta: Floats) -> Rows:
        slopes: dict[int, list[Slope]] = {}

        def dense(k: int, x: float) -> tuple[Floats, ...]:
            a, b = rows[k : k + 1], rows[k + 1 : k + 2]
            h = float(b.t[0] - a.t[0])
            if k not in slopes:
                slopes[k] = self._all_slopes(a, b, h)
            ends = ((a.q[0], b.q[0]), (a.v[0], b.v[0]))
            return tuple(
                dense_value(y0, dense_terms(self.tableau, y0, y1, {j: y[part] for j, y in enumerate(slopes[k])}, h), x)
                for part, (y0, y1) in enumerate(ends)
            )

        states = self.one_by_one(rows, step, theta, dense)
        self.passing.between(rows, step, theta, states)
        return states

    def _all_slopes(self, a: Rows, b: Rows, h: float) -> list[Slope]:
        """Those of the stages, at the end, and of the further stages of dense output."""
        s, tableau = self.slopes, self.tableau
        slopes = [*self._stages(a, h), (s.rate(b.q[0], b.v[0]), b.a[0])]
        return s.stages(a, tableau.extra_a, tableau.extra_c, slopes, h, project=False)

    def state(self) -> EngineState:
        return EngineState(self.last, self.done, self.control)

    def restore(self, state: EngineState, rows: Rows) -> None:
        if state.done is None or state.control is None:
            raise ValueError("no number of steps, or no step control")
        self.done, self.control, self.last = state.done, state.control, state.last
