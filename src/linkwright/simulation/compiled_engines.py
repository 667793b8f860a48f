"""Compiled integration: many steps in one call of native code, in pieces short enough to be interrupted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.kernels.bound_kernel import marched
from linkwright.kernels.kernel import Kernel
from linkwright.simulation.integrators import Tableau, dense_count
from linkwright.simulation.samples import FixedSteps, Rows
from linkwright.simulation.state_derivatives import Passing, Slopes
from linkwright.simulation.step_control import (
    ACCEPTED,
    CLOSED,
    CONTROL,
    SETTINGS,
    UNDERFLOW,
    Tolerances,
    first_control,
    run_settings,
)
from linkwright.simulation.steps import attempt, ending, fixed_step

PIECE = 0.03  # seconds that one call may take
FAR = 0.01  # the part of the rates by which projection may change them in a step of given length, unseen
_ROOM = 2**22  # numbers that the rows of one call may have


@dataclass
class Work:
    """What a run took."""

    steps: int = 0
    rejected: int = 0
    evaluations: int = 0
    rounds: int = 0


@dataclass(frozen=True)
class Trouble:
    """Why a run cannot go on."""

    reason: str  # "no value", "step underflow", "constraint cannot be met", "law failed", "no function of the state",
    # "rounded numbers"
    time: float
    residual: float = 0.0
    state: Rows | None = None  # one row, where it is known what went wrong there
    message: str = ""  # what a law raised, or did


def why_stuck(controls: Floats) -> tuple[str, float]:
    """Why no step could be short enough, by the controls of the attempts since the last good one; what stays open."""
    phi, error = (controls[:, CONTROL.index(name)] for name in ("phi", "error"))
    open_ = np.isfinite(phi) & (phi > CLOSED)
    if open_.any():
        return "constraint cannot be met", float(phi[open_][-1])
    return "step underflow" if np.isfinite(error).all() else "no value", 0.0


def far_note(part: float, t: float) -> str:
    """What to know of a step in which projection changed the rates by this part of them."""
    text = f"at t = {t:.6g} s the rates were changed by {100.0 * part:.2g} % to keep the loops closed"
    return f"{text}: the position is nearly singular there, or dt is too long"


@dataclass(frozen=True, eq=False)
class EngineState:
    """What an engine continues from: the last point, the number of steps of one length, the step control."""

    last: Rows
    done: int | None = None
    control: Floats | None = None


class Engine(ABC):
    """A way to go on in time from a first point to an end."""

    keeps = False  # whether the rows it gives stay as they are, all of them in one piece of memory

    def __init__(self, slopes: Slopes, start: Rows, end: float, evaluations: int = 0) -> None:
        self.slopes, self.kernels = slopes, slopes.kernels
        self.last, self.begin, self.end = start.copy(), float(start.t[0]), end
        self.work = Work(evaluations=evaluations)
        self.notes: list[str] = []  # what a person should know of the run

    @property
    def time(self) -> float:
        return float(self.last.t[0])

    @property
    def over(self) -> bool:
        return self.time >= self.end

    @abstractmethod
    def advance(self) -> tuple[Rows, Trouble | None]:
        """Further points; the first of them is where it began."""

    @abstractmethod
    def between(self, rows: Rows, step: NDArray[np.int64], theta: Floats) -> Rows:
        """The states at the parts theta of these steps of the rows given last."""

    def one_by_one(
        self,
        rows: Rows,
        step: NDArray[np.int64],
        theta: Floats,
        dense: Callable[[int, float], tuple[Floats, ...]],
    ) -> Rows:
        """`between`, by what dense output gives as q and v at a part of a step, called from Python."""
        states = Rows.empty(len(step), rows.q.shape[1], rows.v.shape[1])
        for n, (k, x) in enumerate(zip(step.tolist(), theta.tolist(), strict=True)):
            t = float(rows.t[k] + x * (rows.t[k + 1] - rows.t[k]))
            q, v = dense(k, x)
            q, v, _, _ = self.slopes.projected(t, q, v)
            states.put(slice(n, n + 1), Rows.point(t, q, v, self.acceleration(t, q, v)))
        return states

    def acceleration(self, t: float, q: Floats, v: Floats) -> Floats:
        """a at one state."""
        return self.slopes.slope(t, q, v)[1]

    @abstractmethod
    def state(self) -> EngineState:
        """All that is needed to continue from here."""

    @abstractmethod
    def restore(self, state: EngineState, rows: Rows) -> None:
        """Continue from a state, after these rows if the engine keeps them itself."""


class Pace:
    """How many steps one call takes, by how long the ones before took."""

    def __init__(self, work: int) -> None:
        self.each = 5e-8 + 4e-10 * work  # seconds

    def number(self) -> int:
        return max(1, int(PIECE / self.each))

    def measured(self, number: int, seconds: float) -> None:
        if number >= 8 or seconds > PIECE:
            self.each = max(seconds / number, 1e-9)


class Compiled(Engine):
    """What fixed and adaptive steps share: the state, and what lies between two points."""

    def __init__(self, slopes: Slopes, tableau: Tableau, start: Rows, end: float) -> None:
        super().__init__(slopes, start, end, evaluations=1)
        self.tableau = tableau
        self.tau: tuple[Floats, ...] = () if slopes.tau is None else (slopes.tau,)
        self._asked: tuple[Rows, bytes] | None = None
        self._last_terms: tuple[Floats, ...] = ()

    def between(self, rows: Rows, step: NDArray[np.int64], theta: Floats) -> Rows:
        nq, nv = rows.q.shape[1], rows.v.shape[1]
        most = max(1, _ROOM // (dense_count(self.tableau) * (nq + nv)))
        parts = [slice(k, k + most) for k in range(0, len(step), most)]
        return Rows.joined([self._some_between(rows, step[part], theta[part]) for part in parts])

    def _some_between(self, rows: Rows, step: NDArray[np.int64], theta: Floats) -> Rows:
        steps, which = np.unique(step, return_inverse=True)
        t = rows.t[step]
        return self.slopes.within(
            self._terms(rows, steps), which, rows, step, t + theta * (rows.t[step + 1] - t), theta
        )

    def _terms(self, rows: Rows, steps: NDArray[np.int64]) -> tuple[Floats, ...]:
        """The terms of dense output of these steps; those asked for last are kept."""
        asked = (rows, steps.tobytes())
        if self._asked is None or self._asked[0] is not rows or self._asked[1] != asked[1]:
            every = len(steps) == len(rows) - 1
            ends = (rows[:-1], rows[1:]) if every else (rows[steps], rows[steps + 1])
            self._last_terms = self.slopes.terms(self.tableau, *ends)
            self._asked = asked
        return self._last_terms


def _capacity(kernel: Kernel, nq: int, nv: int) -> int:
    return max(16, min(Pace(kernel.signature.work).number(), _ROOM // (nq + 2 * nv + 8)))


class Fixed(Compiled):
    """Steps of one length; the last may be shorter. With `keep`, every step stays in one table."""

    def __init__(self, slopes: Slopes, tableau: Tableau, start: Rows, end: float, dt: float, *, keep: bool) -> None:
        super().__init__(slopes, tableau, start, end)
        self.steps, self.keeps, self.done = FixedSteps(self.time, end, dt), keep, 0
        self.count = self.steps.count
        kernel = self.kernels.of(fixed_step, tableau)
        nq, nv = start.q.shape[1], start.v.shape[1]
        room = self.count if keep else min(self.count, _capacity(kernel, nq, nv))
        self.pace = Pace(kernel.signature.work)
        self.table, self.h = Rows.empty(room + 1, nq, nv), np.empty(room)
        if keep:
            self.steps.fill(0, self.table.t, self.h)
        self.summary = np.zeros((room, 3)) if len(kernel.signature.outputs) > 3 else None
        r = self.table
        outputs = [r.q[1:], r.v[1:], r.a[1:]] + ([] if self.summary is None else [self.summary])
        self.run = marched(kernel, [r.q[:-1], r.v[:-1], r.a[:-1], r.t[:-1], self.h, *self.tau], outputs, room)
        self.table.put(slice(0, 1), self.last)

    @property
    def over(self) -> bool:
        return self.done >= self.count

    def advance(self) -> tuple[Rows, Trouble | None]:
        number = min(self.pace.number(), self.count - self.done)
        at = self.done
        if not self.keeps:
            number, at = min(number, len(self.h)), 0
            self.table.put(slice(0, 1), self.last)
            self.steps.fill(self.done, self.table.t[: number + 1], self.h[:number])
        started = perf_counter()
        self.run(at, number)
        self.pace.measured(number, perf_counter() - started)
        rows = self.table[at : at + number + 1]
        good, trouble = self._looked_at(rows, at, number)
        rows = rows[: good + 1]
        self.last = rows[good : good + 1].copy()
        self.done += good
        self.work.steps += good
        self.work.evaluations += good * self.tableau.stages
        return rows, trouble

    def _looked_at(self, rows: Rows, at: int, number: int) -> tuple[int, Trouble | None]:
        """How many of the steps are good, and what is wrong with the next one."""
        trouble = None
        good = number
        if not rows[-1:].finite[0]:
            good = int(np.argmin(rows.finite)) - 1
            bad = rows[good + 1 : good + 2].copy()
            trouble = Trouble("no value", float(rows.t[good]), state=bad)
        if self.summary is not None:
            summary = self.summary[at : at + good + (trouble is not None)]
            off = np.flatnonzero(~(summary[:, 0] <= CLOSED))
            if len(off):
                good = int(off[0])
                residual = float(summary[good, 0])
                bad = rows[good + 1 : good + 2].copy()
                if np.isnan(residual):
                    return good, Trouble("no value", float(rows.t[good]), state=bad)
                trouble = Trouble("constraint cannot be met", float(rows.t[good]), residual, bad)
            self.work.rounds += int(np.nansum(summary[:good, 1]))
            far = np.flatnonzero(summary[:good, 2] > FAR)
            if len(far) and not self.notes:
                self.notes.append(far_note(summary[far[0], 2], rows.t[far[0] + 1]))
        return good, trouble

    def state(self) -> EngineState:
        return EngineState(self.last, self.done)

    def restore(self, state: EngineState, rows: Rows) -> None:
        done = state.done
        if done is None or done > self.count or (self.keeps and len(rows) < done + 1):
            raise ValueError(f"{done} steps of {self.count}, and {len(rows)} points")
        self.done, self.last = done, state.last
        if self.keeps:
            self.table.put(slice(0, len(rows)), rows)


class Adaptive(Compiled):
    """Steps as long as the tolerances let them be; the control is part of the compiled attempt."""

    def __init__(
        self,
        slopes: Slopes,
        tableau: Tableau,
        start: Rows,
        end: float,
        control: tuple[float, float],
        tolerances: Tolerances,
    ) -> None:
        """`control`: the first step and the longest."""
        super().__init__(slopes, tableau, start, end)
        first, longest = control
        kernel = self.kernels.of(attempt, tableau)
        nq, nv = start.q.shape[1], start.v.shape[1]
        room = _capacity(kernel, nq, nv)
        self.pace = Pace(kernel.signature.work)
        self.settings = run_settings(self.begin, end, longest, tolerances)
        self.control = first_control(self.time, first, tolerances.start)
        self.passing = Passing(self.slopes, tolerances, end, longest)
        self.table, self.controls = Rows.empty(room + 1, nq, nv), np.empty((room + 1, len(CONTROL)))
        r, c = self.table, self.controls
        self.run = marched(
            kernel,
            [r.q[:-1], r.v[:-1], r.a[:-1], c[:-1], self.settings, *self.tau],
            [r.q[1:], r.v[1:], r.a[1:], c[1:]],
            room,
        )
        self.ahead = 16  # attempts that the next call may make

    def _number(self) -> int:
        """So many attempts as are left by the present step, and not many more than last time."""
        left = (self.end - self.time) / max(min(self.control[1], self._setting("longest")), self._setting("shortest"))
        wanted = int(min(1.1 * left + 4.0, self.ahead))
        self.ahead = 8 * wanted
        return max(1, min(wanted, self.pace.number(), len(self.table) - 1))

    def _setting(self, name: str) -> float:
        return float(self.settings[SETTINGS.index(name)])

    def advance(self) -> tuple[Rows, Trouble | None]:
        number = self._number()
        table, c = self.table, self.controls
        table.put(slice(0, 1), self.last)
        c[0] = self.control
        started = perf_counter()
        self.run(0, number)
        self.pace.measured(number, perf_counter() - started)
        table.t[: number + 1] = c[: number + 1, 0]
        code = c[1 : number + 1, CONTROL.index("code")]
        taken = np.flatnonzero(code == ACCEPTED) + 1
        tried = int(np.count_nonzero(code < 2.0))
        rows = table[np.concatenate([[0], taken])]
        self.control = c[number].copy()
        self.last = rows[-1:].copy()
        self.work.steps += len(taken)
        self.work.rejected += tried - len(taken)
        self.work.evaluations += tried * self.tableau.stages
        self.work.rounds += int(np.nansum(c[1 : 1 + tried, CONTROL.index("rounds")]))
        if code[-1] < UNDERFLOW:
            return rows, None
        return self._passed(rows, int(taken[-1]) if len(taken) else 0, int(np.argmax(code >= UNDERFLOW)) + 1)

    def between(self, rows: Rows, step: NDArray[np.int64], theta: Floats) -> Rows:
        states = super().between(rows, step, theta)
        self.passing.between(rows, step, theta, states)
        return states

    def _passed(self, rows: Rows, since: int, stuck: int) -> tuple[Rows, Trouble | None]:
        """The rows with a point beyond what stops the steps, if there is one; `since` and `stuck` are attempts."""
        beyond, control = self.passing.next_attempt(self.last, self.control)
        if control is None:
            reason, residual = why_stuck(self.controls[since + 1 : stuck + 1])
            state = self._ahead(self.last) if reason == "no value" else self.last.copy()
            return rows, Trouble(reason, self.time, residual, state)
        self.control = control
        if beyond is None:
            return rows, None
        self.last = beyond
        self.work.steps += 1
        return Rows.joined([rows, beyond]), None

    def _ahead(self, row: Rows) -> Rows | None:
        """A state a little later that is no number."""
        kernel = self.kernels.of(ending)
        for h in np.geomspace(self._setting("shortest"), self.end - self.begin, 30):
            t = self.time + h
            q, v, a, *_ = kernel(row.q[0], row.v[0] + h * row.a[0], np.array(t), *self.tau)
            there = Rows.point(t, q, v, a)
            if not there.finite[0]:
                return there
        return None

    def state(self) -> EngineState:
        return EngineState(self.last, control=self.control)

    def restore(self, state: EngineState, rows: Rows) -> None:
        if state.control is None:
            raise ValueError("no step control")
        self.control, self.last = state.control, state.last
