"""One run of a simulation: its engine, what is kept, and how it ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwright.errors import ModelError
from linkwright.results.solution import Occurrence, Solution
from linkwright.results.status import Counters, Status
from linkwright.simulation.ends import ended, first_bad_joint, interrupted
from linkwright.simulation.engines import Adaptive, Engine, Fixed, Trouble
from linkwright.simulation.kernels import Kernels
from linkwright.simulation.laws import Law, law
from linkwright.simulation.output import AtTimes, EveryStep, Output, Table
from linkwright.simulation.rows import Rows
from linkwright.simulation.tableaux import tableau_of

if TYPE_CHECKING:
    from linkwright.model import Mechanism
    from linkwright.simulation.events import Event, Watch

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """What was asked for; `times` is None for every step."""

    method: str
    start: float
    end: float
    dt: float | None
    rtol: float
    atol: float
    longest: float
    times: Floats | None


class Run:
    """A run from a state."""

    def __init__(
        self, mech: Mechanism, settings: Settings, q: Floats, v: Floats, tau: Any, events: Sequence[Event]
    ) -> None:
        self.mech, self.settings = mech, settings
        self.notes: list[str] = []
        self.law: Law | None = None
        self.tau: Floats | None = None
        if callable(tau):
            self.law = law("tau", tau, settings.start, q, v, (mech.nv,))
            if self.law.program is None:
                text = f"tau could not be recorded and is called from Python at every stage: {self.law.reason}"
                self.notes.append(text)
        else:
            self.tau = _force(tau, mech.nv)
        program = None if self.law is None else self.law.program
        self.kernels = Kernels.of(mech, program)
        first = self._first(q, v)
        self.engine = self._engine(first)
        self.output = self._output(first)
        self.watches: list[Watch] = []
        self.occurrences: list[Occurrence] = []

    # -- the beginning ----------------------------------------------------------------------------------
    def _first(self, q: Floats, v: Floats) -> Rows:
        """The first point: the nearest state that can be, and its acceleration."""
        t = self.settings.start
        if self.mech.closed:
            given = v
            q, v = self.mech.project(q, v, t=t)
            if np.any(given) and np.max(np.abs(v - given)) > 1e-6 * np.max(np.abs(given)):
                self.notes.append("v0 does not keep the loops closed; the nearest rates that do were taken")
        force = () if self.tau is None else (self.tau,)
        q, v, a, *_ = self.kernels.ending()(q, v, np.array(t), *force)
        row = Rows(np.array([t]), q[None, :], v[None, :], a[None, :])
        if not row.finite[0]:
            joint = first_bad_joint(self.mech, row)
            where = f" of joint {joint!r}" if joint else ""
            text = f"the acceleration{where} at the start is no finite number; look at tau, the forces and the masses"
            raise ModelError(text, element=joint)
        return row

    def _engine(self, first: Rows) -> Engine:
        s = self.settings
        tableau = tableau_of(s.method)
        if s.dt is not None:
            try:
                return Fixed(self.kernels, tableau, self.tau, first, s.end, s.dt, keep=s.times is None)
            except (MemoryError, ValueError):
                steps = (s.end - s.start) / s.dt
                raise ModelError(
                    f"{steps:.3g} steps do not fit into memory; give interval=... or a larger dt"
                ) from None
        step = self._first_step(first, tableau.error_order)
        return Adaptive(
            self.kernels,
            tableau,
            self.tau,
            first,
            s.end,
            first=step,
            rtol=s.rtol,
            atol=s.atol,
            longest=min(s.longest, s.end - s.start),
        )

    def _output(self, first: Rows) -> Output:
        if self.settings.times is not None:
            return AtTimes(self.settings.times, first)
        if self.engine.keeps:
            assert isinstance(self.engine, Fixed)
            return Table(self.engine.table)
        return EveryStep(first)

    def _first_step(self, first: Rows, order: int) -> float:
        """A first step after Hairer, Nørsett and Wanner (1993), II.4."""
        s = self.settings
        q, v, a = first.q[0], first.v[0], first.a[0]
        rate = v if self.mech.nq == self.mech.nv else self.kernels.rate()(q, v)
        y, f = np.concatenate([q, v]), np.concatenate([rate, a])
        scale = s.atol + s.rtol * np.abs(y)
        d0, d1 = _rms(y / scale), _rms(f / scale)
        h0 = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
        h0 = min(h0, s.end - s.start)
        moved = y + h0 * f
        given = () if self.tau is None else (self.tau,)
        q1, v1 = moved[: len(q)], moved[len(q) :]
        _, v1, a1, *_ = self.kernels.ending()(q1.copy(), v1.copy(), np.array(s.start + h0), *given)
        rate1 = v1 if self.mech.nq == self.mech.nv else self.kernels.rate()(q1, v1)
        d2 = _rms((np.concatenate([rate1, a1]) - f) / scale) / h0
        most = max(d1, d2)
        h1 = max(1e-6, h0 * 1e-3) if most <= 1e-15 else (0.01 / most) ** (1.0 / (order + 1))
        step = min(100.0 * h0, h1, s.longest, s.end - s.start)
        return step if math.isfinite(step) and step > 0.0 else 1e-6 * (s.end - s.start)

    def keep_at(self, path: str, *, resume: bool) -> None:
        raise NotImplementedError

    # -- going on ---------------------------------------------------------------------------------------
    def solution(self, progress: Callable[[float, float], None] | None = None) -> Solution:
        """Go to the end, or as far as it goes."""
        try:
            status = self._go(progress)
        except KeyboardInterrupt:
            status = interrupted(self.output.rows.t[-1] if len(self.output.rows) else self.settings.start)
        status = Status(**{**status.__dict__, "notes": (*self.notes, *status.notes)})
        rows, work = self.output.rows, self.engine.work
        counters = Counters(
            newton_iterations=work.rounds,
            tape_evaluations=work.evaluations,
            substeps=work.steps + work.rejected,
            points=len(rows),
            steps=work.steps,
            rejected=work.rejected,
        )
        return Solution.of_states(
            self.mech.description,
            *rows.all,
            status=status,
            counters=counters,
            events=self.occurrences,
            mechanism=self.mech,
        )

    def _go(self, progress: Callable[[float, float], None] | None) -> Status:
        s, engine = self.settings, self.engine
        while not engine.over:
            rows, trouble = engine.advance()
            self.output.take(engine, rows)
            if progress is not None:
                progress(float(rows.t[-1]) - s.start, s.end - s.start)
            if trouble is not None:
                self.output.last(rows[-1:])
                return ended(self.mech, trouble)
        return Status(True, time=s.end)


def _force(tau: Any, nv: int) -> Floats:
    from linkwright.simulation.simulate import _array

    return np.zeros(nv) if tau is None else _array("tau", tau, nv, "one a rate; or give a function of t, q and v")


def _rms(x: Floats) -> float:
    return float(np.sqrt(np.mean(x * x)))


__all__ = ["Run", "Settings", "Trouble"]
