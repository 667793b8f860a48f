"""One run of a simulation: its engine, which states are stored, and how it ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.dynamics.closed.redundancy import unsure
from linkwright.errors import FormatError
from linkwright.mechanism import Mechanism
from linkwright.results.solution import Occurrence, Solution
from linkwright.results.solution_files import arrays_digest
from linkwright.results.status import Counters, Status
from linkwright.simulation.checkpoint import Keeper, Standing, check_place, fault
from linkwright.simulation.compiled_engines import Engine, Fixed, Trouble
from linkwright.simulation.events import Event, EventFailed, met, watches
from linkwright.simulation.initialise import Settings, engine_of, first_point, vector
from linkwright.simulation.python_laws import Law, LawFailed, Sizes, law
from linkwright.simulation.samples import Growing, Rows
from linkwright.simulation.state_derivatives import Slopes
from linkwright.simulation.step_programs import Kernels
from linkwright.simulation.termination import Jumps, ended, interrupted, law_failed


class Output(ABC):
    """Takes the points of a run as they come; `rows` are those that are stored so far."""

    def __init__(self, stored: Growing) -> None:
        self._rows = stored

    @abstractmethod
    def take(self, engine: Engine, rows: Rows) -> None:
        """Further points; the first is where they began."""

    def last(self, row: Rows) -> None:
        """The point at which the run ends before its time."""
        if not len(self._rows) or row.t[0] > self.rows.t[-1]:
            self._rows.append(row)

    def restore(self, rows: Rows) -> None:
        """Go on after these rows."""
        self._rows.clear()
        self._rows.append(rows)

    @property
    def rows(self) -> Rows:
        return self._rows.rows


class EveryStep(Output):
    """All points."""

    def __init__(self, start: Rows) -> None:
        super().__init__(Growing.like(start))
        self._rows.append(start)

    def take(self, engine: Engine, rows: Rows) -> None:
        self._rows.append(rows[1:])


class Table(Output):
    """All points of an engine that keeps them itself."""

    def __init__(self, table: Rows) -> None:
        super().__init__(Growing(table, 1))

    def take(self, engine: Engine, rows: Rows) -> None:
        self._rows.extend(len(rows) - 1)


class AtTimes(Output):
    """The states at given times, from dense output."""

    def __init__(self, times: Floats, start: Rows) -> None:
        super().__init__(Growing.like(start, max(len(times), 1)))
        self._times = times
        if len(times) and times[0] <= start.t[0]:
            self._rows.append(start)

    def take(self, engine: Engine, rows: Rows) -> None:
        done = len(self._rows)
        wanted = self._times[done : np.searchsorted(self._times, rows.t[-1], side="right")]
        if not len(wanted):
            return
        step = np.clip(np.searchsorted(rows.t, wanted, side="right") - 1, 0, len(rows) - 1)
        begin = rows.t[step]
        exact = begin == wanted
        states = self._rows.room(len(wanted))
        if exact.any():
            states.put(exact, rows[step[exact]])
        inner: Any = np.flatnonzero(~exact) if exact.any() else slice(None)
        at = step[inner]
        if len(at):
            theta = (wanted[inner] - begin[inner]) / (rows.t[at + 1] - begin[inner])
            states.put(inner, engine.between(rows, at, theta))
            states.t[inner] = wanted[inner]
        self._rows.extend(len(wanted))

    def until(self, engine: Engine, rows: Rows, end: float) -> None:
        """The times within the last of these steps, up to where an event ended the run."""
        done = len(self._rows)
        wanted = self._times[done : np.searchsorted(self._times, end, side="left")]
        if len(wanted):
            step = np.full(len(wanted), len(rows) - 2)
            states = engine.between(rows, step, (wanted - rows.t[-2]) / (rows.t[-1] - rows.t[-2]))
            self._rows.append(Rows(wanted.copy(), states.q, states.v, states.a))


MOST_NOTES = 5  # of events


class Run:
    """A run from a state."""

    def __init__(
        self,
        mech: Mechanism,
        settings: Settings,
        q: Floats,
        v: Floats,
        tau: Any,
        events: Sequence[Event],
        *,
        may_record: bool = True,
        model: str | None = None,
        reported: Mechanism | None = None,
    ) -> None:
        """`model` is the digest of the description that was given, if another mechanism stands for it, and `reported`
        the mechanism that the solution is of."""
        self.mech, self.settings = mech, settings
        self.reported = reported or mech
        self.model = model or mech.description.digest
        self.notes: list[str] = []
        self.law: Law | None = None
        self.tau: Floats | None = None
        sizes = Sizes.of(mech.tree, settings.end - settings.start)
        if callable(tau):
            self.law = law("tau", tau, settings.start, q, v, (mech.nv,), may=may_record, sizes=sizes)
            if self.law.program is None:
                text = f"tau could not be recorded and is called from Python at every stage: {self.law.reason}"
                self.notes.append(text)
        else:
            nothing = np.zeros(mech.nv)
            self.tau = (
                nothing if tau is None else vector("tau", tau, mech.nv, "one per rate; or give a function of t, q, v")
            )
        program = None if self.law is None else self.law.program
        self.kernels = Kernels(mech, program, conserving=settings.conserve is not None)
        self.initial = q, v
        slopes = Slopes(self.kernels, self.law if program is None else None, self.tau)
        first = first_point(mech, slopes, settings.start, q, v, self.notes)
        self.engine = engine_of(mech, slopes, settings, first)
        self.output = self._output(first)
        self.watches = watches(events, settings.start, first.q[0], first.v[0], sizes, may_record=may_record)
        for watch in self.watches:
            if watch.law.program is None:
                text = f"event {watch.name!r} could not be recorded and is called from Python: {watch.law.reason}"
                self.notes.append(text)
        self.jumps = Jumps(mech, self.law, settings.end) if settings.dt is None else None
        self.event_notes: list[str] = []  # what was not resolved
        self.occurrences: list[Occurrence] = []
        self.stopped = False  # by a terminal event, the last of the occurrences
        self.keeper: Keeper | None = None

    def _output(self, first: Rows) -> Output:
        if self.settings.times is not None:
            return AtTimes(self.settings.times, first)
        if isinstance(self.engine, Fixed) and self.engine.keeps:
            return Table(self.engine.table)
        return EveryStep(first)

    # -- checkpoints ------------------------------------------------------------------------------------
    def keep_at(self, path: str, *, resume: bool) -> None:
        """Write the standing to a file every few seconds; with `resume`, first go back to what is in it."""
        self.keeper = Keeper(path, self._run_description())
        if resume:
            standing = self.keeper.read(self.mech.nq, self.mech.nv)
            wrong = fault(standing, self.settings, [watch.name for watch in self.watches])
            if wrong is not None:
                raise FormatError(f"{wrong}; leave resume out to start anew", file=path)
            try:
                self.engine.restore(standing.engine, standing.rows)
            except (LookupError, ValueError) as error:
                text = "has parts that contradict each other; leave resume out to start anew"
                raise FormatError(text, file=path) from error
            self.engine.work = standing.work
            self.output.restore(standing.rows)
            self.occurrences, self.stopped = list(standing.events), standing.stopped
        else:
            check_place(path)
            self.notes += self.keeper.make_room(self.mech.nq, self.mech.nv)
        self.keeper.note(self._standing())
        self.keeper.write()

    def _standing(self) -> Standing:
        events, work = tuple(self.occurrences), replace(self.engine.work)
        rows, state = self.output.rows, self.engine.state()
        if state.done is not None and self.stopped:
            state = replace(state, done=min(state.done, len(rows) - 1))  # the engine went on beyond the event
        return Standing(rows, state, events, work, self.stopped)

    def _run_description(self) -> dict[str, Any]:
        """What must be the same for a run to be resumed."""
        s = self.settings
        if self.law is None:
            tau = "none" if self.tau is None else arrays_digest(self.tau)
        else:
            tau = _identity(self.law)
        return {
            "model": self.model,
            "method": s.method,
            "t_start": s.start,
            "t_end": s.end,
            "dt": s.dt,
            "rtol": s.rtol,
            "atol": s.atol,
            "max_step": repr(s.longest),
            "conserve": s.conserve,
            "times": None if s.times is None else arrays_digest(s.times),
            "q0 or v0": arrays_digest(*self.initial),
            "tau": tau,
            "events": [[w.name, w.event.terminal, w.event.direction, _identity(w.law)] for w in self.watches],
        }

    # -- going on ---------------------------------------------------------------------------------------
    def solution(self, progress: Callable[[float, float], None] | None = None) -> Solution:
        """Go to the end, or as far as it goes."""
        try:
            status = self._go(progress)
        except KeyboardInterrupt:
            status = interrupted(self._reached(), self.keeper is not None)
        except LawFailed as error:
            status = law_failed(str(error), self._reached())
        except EventFailed as error:
            advice = "give it a value at every state, or end the run before"
            status = Status(False, str(error), "event has no value", self._reached(), error.name, advice=advice)
        except MemoryError:
            advice = "store fewer points: give lw.Saving(interval=...) or lw.Saving(times=...)"
            status = Status(
                False, "there is no memory for more points", "out of memory", self._reached(), advice=advice
            )
        if self.keeper is not None:
            status = self.keeper.last(status)
        jumps = [] if self.jumps is None else self.jumps.notes(self.engine.work, ended_early=not status.ok)
        status = replace(
            status, notes=(*self.notes, *self.engine.notes, *jumps, *self._notes_of_events(), *status.notes)
        )
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
            self.reported.description,
            *rows.all,
            status=status,
            counters=counters,
            events=self.occurrences,
            mechanism=self.reported,
        )

    def _notes_of_events(self) -> list[str]:
        more = len(self.event_notes) - MOST_NOTES
        return self.event_notes[:MOST_NOTES] + ([f"{more} more such notes of events"] if more > 0 else [])

    def _reached(self) -> float:
        rows = self.output.rows
        return float(rows.t[-1]) if len(rows) else self.settings.start

    def _go(self, progress: Callable[[float, float], None] | None) -> Status:
        s, engine = self.settings, self.engine
        ended_before = self._ended_by_event()
        if ended_before is not None:
            return ended_before
        while not engine.over:
            rows, trouble = engine.advance()
            rows, trouble = self._sure(rows, trouble)
            stop = self._take(rows)
            if self.keeper is not None:
                self.keeper.note(self._standing())
                failed = self.keeper.now_and_then()
                if failed is not None:
                    return replace(failed, time=float(rows.t[-1]))
            if progress is not None:
                progress(float(rows.t[-1]) - s.start, s.end - s.start)
            if stop is not None:
                return stop
            if trouble is not None:
                self.output.last(rows[-1:])
                return ended(self.mech, trouble, rows[-1:])
            chatter = None if self.jumps is None else self.jumps.look(rows, engine.work)
            if chatter is not None:
                self.output.last(rows[-1:])
                return chatter
        return Status(True, time=s.end)

    def _sure(self, rows: Rows, trouble: Trouble | None) -> tuple[Rows, Trouble | None]:
        """The points up to where rounded numbers leave open how the motion goes on, and that if it is among them."""
        if not (self.mech.closed and self.mech.programs.gap):
            return rows, trouble
        at = np.flatnonzero(unsure(self.mech, rows.q, rows.t))
        if not len(at):
            return rows, trouble
        last = max(int(at[0]) - 1, 0)  # the step that led there may have been one of those
        state = rows[last : last + 1].copy()
        return rows[: last + 1], Trouble("rounded numbers", float(state.t[0]), self.mech.programs.gap, state)

    def _take(self, rows: Rows) -> Status | None:
        """Keep what is to be kept of these points; the status, if an event ends the run among them."""
        try:
            watched = self.watches if len(rows) > 1 else ()
            crossings, last, notes = met(watched, self.engine, rows)
        except (LawFailed, EventFailed) as error:
            good = int(np.searchsorted(rows.t, error.time))  # the points before it are kept
            stop = self._take(rows[:good]) if 0 < good < len(rows) else None
            if stop is not None:
                return stop
            raise
        self.event_notes += [note for note in notes if note not in self.event_notes]
        whole = rows
        if last is not None:
            rows = rows[: last.step + 1]
        self.output.take(self.engine, rows)
        self.occurrences += [Occurrence(m.watch.name, m.time, m.point.q[0], m.point.v[0]) for m in crossings]
        if last is None:
            return None
        if isinstance(self.output, AtTimes):
            self.output.until(self.engine, whole[: last.step + 2], last.time)
        self.output.last(last.point)
        self.stopped = True
        return self._ended_by_event()

    def _ended_by_event(self) -> Status | None:
        if not self.stopped:
            return None
        name, t = self.occurrences[-1].name, self.occurrences[-1].time
        return Status(True, f"event {name!r} ended the run at t = {t:.9g} s", "event", t, name)


def _identity(law: Law) -> str:
    """What distinguishes a law from another; those in Python are all alike."""
    return "a Python function" if law.program is None else law.program.digest
