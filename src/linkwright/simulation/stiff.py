"""Stiff forces: SciPy's Radau IIA of fifth order on the compiled derivatives, with projection after every step.

The solver is begun anew every few steps, from the state alone: so a run can be resumed at these points to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.simulation.engines import Engine, EngineState, Trouble
from linkwright.simulation.python_engine import Creep
from linkwright.simulation.python_laws import LawFailed
from linkwright.simulation.samples import Rows
from linkwright.simulation.slopes import Passing, Slopes
from linkwright.simulation.step_control import CLOSED, CONTROL, GROUPS, LATELY, SHRUNK, USUAL, Tolerances, first_control
from linkwright.simulation.steps import slope

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
