"""Integration at Python's speed: forces whose law is a Python function that cannot be recorded, and stiff forces.

Stiff forces are integrated by SciPy's Radau IIA of fifth order on the compiled derivatives, with projection after every
step. The solver starts anew every few steps, from the state alone: so a run can be resumed at these points to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.simulation.compiled_engines import FAR, PIECE, Engine, EngineState, Trouble, far_note, why_stuck
from linkwright.simulation.integrators import Tableau, dense_terms, dense_value
from linkwright.simulation.python_laws import LawFailed
from linkwright.simulation.samples import FixedSteps, Rows
from linkwright.simulation.state_derivatives import Passing, Slope, Slopes, advanced
from linkwright.simulation.step_control import (
    CLOSED,
    CONTROL,
    GROUPS,
    LATELY,
    SHRUNK,
    STALLED,
    UNDERFLOW,
    USUAL,
    Tolerances,
    after,
    before,
    first_control,
    reached,
    run_settings,
)
from linkwright.simulation.step_parts import Parts
from linkwright.simulation.steps import slope

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


LEG = 32  # steps after which the solver is begun anew
_NOT_FINITE = (ValueError, np.linalg.LinAlgError)  # what SciPy's factorisations raise for what is not


class Stiff(Engine):
    """Radau's method."""

    def __init__(
        self,
        slopes: Slopes,
        start: Rows,
        end: float,
        control: tuple[float, float],
        tolerances: Tolerances,
        units: Floats,
    ) -> None:
        """`control`: the first step and the longest; `units` (nq + nv,): 1, or the mechanism's length."""
        super().__init__(slopes, start, end)
        self.watch = Creep(self.begin, end)
        self.h, self.longest = control
        self.tolerances, self.reached = tolerances, tolerances.start
        self.units = units
        self.passing = Passing(slopes, tolerances, end, self.longest)
        self.usual = 0.0  # the longest step of late
        self.between_ends: list[Any] = []  # dense output of the steps given last

    def slope(self, t: float, y: Floats) -> Floats:
        """ẏ of y = (q, v)."""
        self.work.evaluations += 1
        nq = self.kernels.nq
        return np.concatenate(self.slopes.slope(t, y[:nq].copy(), y[nq:].copy()))

    def jacobian(self, t: float, y: Floats) -> Floats:
        """∂ẏ/∂y by central differences, all in one call of the kernel where there is one."""
        n, nq = len(y), self.kernels.nq
        # Rates that are small beside the others are moved by a part of these, whatever the time is counted in.
        units = np.concatenate([self.units[:nq], self.units[nq:] * (np.max(np.abs(y[nq:]) / self.units[nq:]) or 1.0)])
        step = np.cbrt(np.finfo(float).eps) * np.maximum(np.abs(y), 1e-2 * units)
        points = np.concatenate([y + np.diag(step), y - np.diag(step)])
        if self.slopes.law is None:
            self.work.evaluations += 2 * n
            q, v = np.ascontiguousarray(points[:, :nq]), np.ascontiguousarray(points[:, nq:])
            parts = self.slopes.batch(self.kernels.of(slope), q=q, v=v, t=np.full(2 * n, t))
            slopes = np.concatenate(parts, axis=1)
        else:
            slopes = np.array([self.slope(t, point) for point in points])
        return np.asarray(((slopes[:n] - slopes[n:]) / (2.0 * step[:, None])).T)

    def advance(self) -> tuple[Rows, Trouble | None]:
        points = [self.last]
        self.between_ends = []
        trouble: Trouble | None = None
        with np.errstate(all="ignore"):
            try:
                trouble = self._leg(points)
            except LawFailed as error:
                trouble = Trouble("law failed", self.time, message=str(error))
        return Rows.joined(points), trouble

    def _leg(self, points: list[Rows]) -> Trouble | None:
        """Some steps from the last point on, put behind the points."""
        from scipy.integrate import Radau  # type: ignore[import-untyped]  # weight: scipy

        nq = self.kernels.nq
        start = np.concatenate([self.last.q[0], self.last.v[0]])
        self.atol = self.tolerances.absolute(self.reached)
        try:
            solver = Radau(
                self.slope,
                self.time,
                start,
                self.end,
                max_step=self.longest,
                rtol=max(self.tolerances.rtol, 1e-13),
                atol=self.atol,
                jac=self.jacobian,
                first_step=min(self.h, self.end - self.time),
            )
        except _NOT_FINITE:
            return Trouble("no value", self.time)
        while solver.status == "running" and len(points) <= LEG:
            try:
                solver.step()
            except _NOT_FINITE:
                return Trouble("no value", self.time)
            slow = self.watch.creeps(self.time) or solver.status == "failed"
            wanders = self.slopes.wanders(self.last) if slow else ""
            if wanders:
                return Trouble("no function of the state", self.time, message=wanders)
            if solver.status == "failed":
                return None if self._crosses(points) else self._failed()
            dense, t = solver.dense_output(), float(solver.t)
            point, trouble = self._projected(t, solver.y[:nq].copy(), solver.y[nq:].copy())
            if point is None:
                return None if self._crosses(points) else trouble
            if self._far(point, solver.y):
                # Near a singular position; a shorter step is less far off.
                self.h, self.work.rejected = 0.2 * (t - self.time), self.work.rejected + 1
                if self.h < SHRUNK * self.usual:
                    if self._crosses(points):
                        return None
                    self.usual = self.h
                short = self.h < 16.0 * np.spacing(abs(t))
                return Trouble("constraint cannot be met", self.time, state=self.last) if short else None
            self._take(points, point, dense)
            if not self.slopes.plain:
                solver.y = np.concatenate([point.q[0], point.v[0]])
                solver.f = self.slope(t, solver.y)
        self.h = float(solver.h_abs)
        return None

    def _take(self, points: list[Rows], point: Rows, dense: Callable[[float], Floats]) -> None:
        """Go on from a point; `dense` gives (q, v) between the last one and this."""
        self.usual = max(float(point.t[0]) - self.time, LATELY * self.usual)
        points.append(point)
        self.last = point
        self.reached = np.maximum(self.reached, self.tolerances.reached(point.q[0], point.v[0]))
        self.between_ends.append(dense)
        self.work.steps += 1

    def _crosses(self, points: list[Rows]) -> bool:
        """Whether there is a point beyond what stops the steps; it is put behind the points."""
        start, beyond = self.last, self.passing.across(self.last, self.reached)
        if beyond is None:
            return False

        def within(t: float) -> Floats:
            there = self.passing.point(start, t) or beyond
            return np.concatenate([there.q[0], there.v[0]])

        self.h = float(beyond.t[0] - start.t[0])
        self._take(points, beyond, within)
        return True

    def _far(self, point: Rows, y: Floats) -> bool:
        """Whether projection moved the state by more than the tolerances."""
        there = np.concatenate([point.q[0], point.v[0]])
        far = (there - y) / (self.atol + self.tolerances.rtol * np.abs(there))
        return not self.slopes.plain and bool(np.sqrt(np.mean(far * far)) > 1.0)

    def _failed(self) -> Trouble:
        slope = self.slope(self.time, np.concatenate([self.last.q[0], self.last.v[0]]))
        return Trouble("step underflow" if np.isfinite(slope).all() else "no value", self.time, state=self.last)

    def _projected(self, t: float, q: Floats, v: Floats) -> tuple[Rows | None, Trouble | None]:
        q, v, phi, rounds = self.slopes.projected(t, q, v)
        self.work.rounds += int(rounds)
        if phi > CLOSED:
            return None, Trouble("constraint cannot be met", self.time, phi, self.last)
        a = self.acceleration(t, q, v)
        point = Rows.point(t, q, v, a)
        return (point, None) if point.finite[0] else (None, Trouble("no value", self.time, state=point))

    def acceleration(self, t: float, q: Floats, v: Floats) -> Floats:
        return self.slope(t, np.concatenate([q, v]))[len(q) :]

    def between(self, rows: Rows, step: NDArray[np.int64], theta: Floats) -> Rows:
        def dense(k: int, x: float) -> tuple[Floats, ...]:
            y = self.between_ends[k](rows.t[k] + x * (rows.t[k + 1] - rows.t[k]))
            return tuple(part.copy() for part in np.split(y, [self.kernels.nq]))

        return self.one_by_one(rows, step, theta, dense)

    def state(self) -> EngineState:
        control = first_control(self.time, self.h, self.reached)
        control[USUAL] = self.usual
        return EngineState(self.last, control=control)

    def restore(self, state: EngineState, rows: Rows) -> None:
        control, self.last = state.control, state.last
        if control is None:
            raise ValueError("no step control")
        self.h, self.reached = float(control[CONTROL.index("h")]), control[-len(GROUPS) :]
        self.usual = float(control[USUAL])
