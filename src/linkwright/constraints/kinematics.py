"""Kinematic analysis of a description: assembly, degrees of freedom, and the motion at every time point, many steps
in one call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arguments import real_array
from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.constraints.accumulated_angles import check_driver_laws, first_undefined
from linkwright.constraints.assembly import assemble
from linkwright.constraints.batch_march import BatchMarch
from linkwright.constraints.constraint_equations import Equations
from linkwright.constraints.elimination import RANK_TOLERANCE
from linkwright.constraints.kinematic_motion import Acceptance, Follower, State, Stepper
from linkwright.constraints.kinematic_programs import Programs, Step
from linkwright.constraints.mobility import explained
from linkwright.constraints.newton import Assembled, Batch, start_state
from linkwright.constraints.pivoting import PivotingStepper
from linkwright.constraints.program_layout import Layout, newton
from linkwright.constraints.rank import Branch, FreedomReport
from linkwright.constraints.rank import freedom as find_freedom
from linkwright.constraints.termination_reasons import Stop, contradiction, explain, singular_start, tilted_axes
from linkwright.errors import ModelError
from linkwright.model.description import Description
from linkwright.model.mobility_report import Mobility
from linkwright.model.requested_analysis import LEAST_TOLERANCE, Freedom, System

#: The most steps of one call, and the most equations times steps: what a call takes must not be felt by a person
#: who interrupts it, and steps after a bad one are lost.
STEPS, WORK = 256, 20_000


class March:
    """Steps of one mechanism along the rows of a record: the state in one row is what the next step begins with."""

    def __init__(self, stepper: Stepper, times: Floats, q: Floats, v: Floats, a: Floats) -> None:
        self.stepper, self.times = stepper, times
        self.q, self.v, self.a = q, v, a
        count = len(times)
        programs = stepper.programs
        e = programs.layout.equations
        self.most = int(min(STEPS, WORK // max(e.count, 1)))
        self._length = 1
        if self.most < 2:
            return
        self._angles = np.empty((count, max(int(e.first_angle[-1]), 1)))
        self._summary = np.empty((count - 1, len(Step._fields)))
        program = programs.step(stepper.free)
        before = {"q": q[:-1], "v": v[:-1], "a": a[:-1], "angles": self._angles[:-1]}
        before.update(t=times[1:, None].copy(), h=np.diff(times)[:, None], **programs.numbers)
        after = {"q_there": q[1:], "v_there": v[1:], "a_there": a[1:], "angles_there": self._angles[1:]}
        after["summary"] = self._summary
        self._call = program.marched(
            [before[port.name] for port in program.inputs], [after[port.name] for port in program.outputs], count - 1
        )

    def ahead(self, k: int, state: State) -> NDArray[np.int64]:
        """How many iterations each good step from time point k took; their states are in the record."""
        count = min(self._length, self.most, len(self.times) - 1 - k)
        if count < 2:
            self._length = 2
            return np.zeros(0, np.int64)
        s = self.stepper
        self.q[k], self.v[k], self.a[k], self._angles[k] = state.q, state.v, state.a, state.angles
        self._call(k, count)
        step = Step(*self._summary[k : k + count].T)
        largest = np.maximum.accumulate(np.concatenate([[s.largest_pivot], step.pivot]))
        fastest = np.maximum.accumulate(np.concatenate([[s.fastest], step.speed]))
        good = s.sound(step, largest[:-1]) & s.steady(step, fastest[1:], self.a[k + 1 : k + 1 + count])
        if s.free:
            good &= step.rounds <= 1
        if not np.all(s.short(step) | ~good):
            there = slice(k, k + count + 1)
            good &= s.branch.same(self.q[there], self._angles[there], self.times[there]) | s.short(step)
        bad = np.flatnonzero(~good)
        taken = int(bad[0]) if len(bad) else count
        self._length = 2 * count if taken == count else 1
        s.largest_pivot, s.fastest = float(largest[taken]), float(fastest[taken])
        iterations = np.asarray(step.iterations)[:taken].astype(np.int64)
        s.work.iterations += int(iterations.sum())
        s.work.rounds += int(np.maximum(step.rounds, 1.0)[:taken].sum())
        s.work.steps += taken
        return iterations

    def state(self, k: int) -> State:
        """The state in a row that was reached."""
        rows = (x[k].copy() for x in (self.q, self.v, self.a, self._angles))
        return State(float(self.times[k]), *rows)


class CaseMarch(BatchMarch, Acceptance):
    """Steps of many cases from one time to the next: where they are now, and what their steps are measured by."""

    each = ("sizes", "tolerance", "rate_tolerance", "lost")
    memory = ("largest_pivot", "fastest")

    def __init__(self, batch: Batch, start: Assembled, times: Floats, free: bool) -> None:
        correction, constraint_tolerance = batch.programs.numbers["newton"]
        Acceptance.__init__(self, batch.size, batch.sizes, float(constraint_tolerance), start)
        self.over(times)
        n, nb = len(batch), batch.equations.nb
        BatchMarch.__init__(self, n, float(times[0]))
        newton = np.array([np.full(n, correction), np.maximum(constraint_tolerance, 10.0 * start.miss)]).T
        inputs = {**batch.inputs, "tolerance": start.tolerance[:, None], "newton": newton}
        self.batch, self.free = replace(batch, inputs=inputs), free
        still = np.zeros((n, nb, 6))
        self.there = {"q_there": start.q, "v_there": still, "a_there": still, "angles_there": start.angles}
        self._j: Floats | None = None  # what is stored of J where the cases are now, if it is known
        self._begin = batch, start.q[0], start.angles[0], self.t
        step = self._attempt(self.t)
        self.go_on(np.asarray(self.consistent(step)))

    @property
    def motion(self) -> tuple[Floats, Floats, Floats]:
        """Position, velocity and acceleration of the cases that go along."""
        return self.there["q_there"], self.there["v_there"], self.there["a_there"]

    @cached_property
    def _branch(self) -> Branch:
        """By the stages of the first case."""
        batch, *state = self._begin
        return Branch(batch.one(0), *state)

    def tried(self, t: float) -> NDArray[np.bool_]:
        """Attempt a step of all cases; whose was good."""
        before, t_before, j_before = self.there, self.t, self._j
        with np.errstate(all="ignore"):
            step = self._attempt(t)
            good = self.sound(step)
            if self.free:
                good &= step.rounds <= 1.0
            self.fastest = np.where(good, np.maximum(self.fastest, step.speed), self.fastest)
            good &= self.steady(step, self.fastest, self.there["a_there"])
            doubtful = np.flatnonzero(good & ~self.short(step))
            self._j = None
            if len(doubtful) and self._branch.parts:
                j_before = self._jacobian(before, t_before) if j_before is None else j_before
                self._j = self._jacobian(self.there, t)
                good[doubtful] = self._branch.connects(j_before[doubtful], self._j[doubtful])
        self.largest_pivot = np.where(good, np.maximum(self.largest_pivot, step.pivot), self.largest_pivot)
        return np.asarray(good)

    def _attempt(self, t: float) -> Step:
        states = {name.removesuffix("_there"): x for name, x in self.there.items() if name != "summary"}
        batch, program = self.batch, self.batch.programs.step(self.free)
        self.there = batch.run(program, **states, t=batch.all(t), h=batch.all(t - self.t))
        self.t = t
        return Step(*self.there["summary"].T)

    def _jacobian(self, states: dict[str, Floats], t: float) -> Floats:
        return self.batch.evaluate(states["q_there"], states["angles_there"], t)["jacobian"]

    def chose(self, chosen: NDArray[np.bool_]) -> None:
        self.batch = self.batch if chosen.all() else self.batch[chosen]
        self._j = None


@dataclass(eq=False)
class Motion:
    """A motion at its time points; `stop` is None if it went to the end."""

    times: Floats
    q: Floats  # (T, nb, 7)
    v: Floats  # (T, nb, 6), ground's axes
    a: Floats
    iterations: NDArray[np.int64]
    stop: Stop | None
    notes: tuple[str, ...]
    newton_iterations: int
    tape_evaluations: int
    linear_solves: int
    substeps: int
    miss: float = 0.0  # what the first state leaves open, in metres
    free: bool = False  # whether the drivers leave degrees of freedom


class Kinematics:
    """The constraint equations of a description and what follows from them."""

    def __init__(self, description: Description) -> None:
        self.description = description
        self.equations = Equations(description)
        if not self.equations.nb:
            raise ModelError(f"{description.name!r} has no moving body; add one", element=description.name)

    @cached_property
    def programs(self) -> Programs:
        return Programs(Layout(self.equations))

    def assemble(self, t: float, tolerance: float | None = None) -> Assembled:
        """The assembled state nearest to where the bodies are drawn; `tolerance` as in `assembly.assemble`.

        An AssemblyError names what does not close.
        """
        check_driver_laws(self.description, np.array([t]))
        self.programs.tolerance = RANK_TOLERANCE
        assembly = assemble(Batch.of_one(self.programs), start_state(self.equations)[None], t, tolerance)
        if not assembly.closed[0]:
            raise assembly.error(0, self.programs)
        state = assembly.states[0]
        self.programs.tolerance = state.tolerance
        return state

    def freedom(self, state: Assembled, t: float) -> FreedomReport:
        """Degrees of freedom and redundant equations at an assembled state."""
        return find_freedom(self.programs, state.q, state.angles, t, state.pivots)

    def motion(
        self,
        times: Floats,
        *,
        assembly_tolerance: float | None = None,
        lu_tolerance: float = 1e-10,
        freedom: Freedom = "minimum-norm",
        assembled: Assembled | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Motion:
        """Position, velocity and acceleration at increasing times."""
        times = self._checked(times)
        lawless = self._check_laws(times)
        if lawless is not None:
            times = times[: lawless[0]]
        self._check_tolerances()
        start = assembled or self.assemble(float(times[0]), assembly_tolerance)
        self.programs.tolerance = start.tolerance
        # What rounded numbers leave open no iteration closes.
        self.programs.numbers["newton"][1] = max(newton(self.description)[1], 10.0 * start.miss)
        free = bool(start.free)
        notes: list[str] = []
        if start.lost or free:
            state = (start.q, start.angles, float(times[0]), start.pivots)
            notes = find_freedom(self.programs, *state, quick=True).sentences()
        stepper: Stepper
        record, march = _Record(times, self.equations.nb), None
        if freedom == "pivoting" and free:
            stepper = PivotingStepper(self.programs, start, float(times[0]), lu_tolerance)
        else:
            stepper = Stepper(self.programs, start, free, float(times[0]))
            march = March(stepper, times, record.q, record.v, record.a)
        motion = record.motion(self._follow(stepper, record, start, march, progress), stepper)
        motion.notes, motion.miss, motion.free = (*notes, *motion.notes), float(start.miss), free
        if lawless is not None and motion.stop is None:
            motion.stop = lawless[1]
        tilted = tilted_axes(self.equations, motion.times, motion.q)
        return motion if tilted is None else _shortened(motion, *tilted)

    def _follow(
        self,
        stepper: Stepper,
        record: _Record,
        start: Assembled,
        march: March | None,
        progress: Callable[[int], None] | None,
    ) -> Stop | None:
        """Fill the record, many points at once where `march` can; why the motion stopped, if it did."""
        times, work = record.times, stepper.work
        stepper.over(times)
        step = stepper.attempt(stepper.start, stepper.start.t)
        state = stepper.found(stepper.start.t)
        work.iterations += int(start.iterations)
        if not stepper.consistent(step):
            singular = singular_start(stepper, start)
            return singular or contradiction(self.programs, state.q, state.angles, state.t)
        record.add(state, int(step.iterations))
        follower = Follower(stepper, state)
        while record.n < len(times):
            k = record.n
            if march is not None and follower.state.t == times[k - 1]:
                iterations = march.ahead(k - 1, follower.state)
                if len(iterations):
                    record.reached(iterations)
                    k = record.n
                    follower.before = march.state(k - 2)
                    follower.state = march.state(k - 1)
                    if progress is not None:
                        progress(k - 1)
                    continue
            before = work.iterations
            reached = follower.to(float(times[k]))
            if reached is None:
                last = follower.state
                ahead = last.t + 1e-3 * stepper.interval
                stop = explain(stepper, last, ahead, stepper.attempt(last, ahead))
                if record.n == 1:
                    stop = singular_start(stepper, start) or stop
                if stop.reason == "jump":  # what looked like a corner was the jump's first part
                    work.notes = [note for note in work.notes if "velocity jumps" not in note]
                return stop
            record.add(reached, work.iterations - before)
            if progress is not None:
                progress(k)
        return None

    def _checked(self, times: Floats) -> Floats:
        t = np.atleast_1d(real_array("times", times))
        if t.ndim != 1 or not len(t) or not np.isfinite(t).all() or (np.diff(t) <= 0.0).any():
            raise ModelError("the times of an analysis must be finite and increase; give at least one")
        return t

    def _check_tolerances(self) -> None:
        """Refuse tolerances of Newton's method below rounding, at which it would never end."""
        system, size = self.description.system or System(), self.equations.size
        problems = []
        for name, value, least in (
            ("newton tolerance", system.newton_tolerance, LEAST_TOLERANCE),
            ("constraint tolerance", system.constraint_tolerance, LEAST_TOLERANCE * size),
        ):
            if value is not None and not value >= least:
                problems.append(f"the {name} {value:g} is below rounding; give {least:.1g} or more")
        if problems:
            raise ModelError("; ".join(problems))

    def _check_laws(self, times: Floats) -> tuple[int, Stop] | None:
        """The first time point at which a law has no value, if there is one after the first."""
        undefined = first_undefined(self.description, times)
        if undefined is None:
            return None
        check_driver_laws(self.description, times[:1])
        k, name, text = undefined
        t = float(times[k - 1])
        return k, Stop("no value", f"stopped at t = {t:.6g}: {text}", t, name, 0.0, "change the law or the times")


def freedom_of(description: Description) -> tuple[FreedomReport, Mobility | None]:
    """The freedom of a mechanism at its start, and its mobility explained, where it is not too large; an AssemblyError
    if it cannot be assembled as drawn.
    """
    system = description.system or System()
    kinematics = Kinematics(description)
    state = kinematics.assemble(system.start, system.assembly_tolerance)
    report = kinematics.freedom(state, system.start)
    return report, explained(kinematics.programs, state, system.start, report.left, report.driven)


def _shortened(motion: Motion, points: int, stop: Stop) -> Motion:
    """The first points of a motion, and why it ends there."""
    arrays = {name: getattr(motion, name)[:points] for name in ("times", "q", "v", "a", "iterations")}
    return replace(motion, **arrays, stop=stop)


class _Record:
    """The time points so far."""

    def __init__(self, times: Floats, nb: int) -> None:
        n = len(times)
        self.times = times
        self.q, self.v, self.a = np.empty((n, nb, 7)), np.empty((n, nb, 6)), np.empty((n, nb, 6))
        self.iterations = np.zeros(n, np.int64)
        self.n = 0

    def add(self, state: State, iterations: int) -> None:
        k = self.n
        self.q[k], self.v[k], self.a[k] = state.q, state.v, state.a
        self.iterations[k] = iterations
        self.n += 1

    def reached(self, iterations: NDArray[np.int64]) -> None:
        """So many more points are in their rows already."""
        self.iterations[self.n : self.n + len(iterations)] = iterations
        self.n += len(iterations)

    def motion(self, stop: Stop | None, stepper: Stepper) -> Motion:
        n, work = self.n, stepper.work
        arrays = (self.times[:n], self.q[:n], self.v[:n], self.a[:n], self.iterations[:n])
        return Motion(*arrays, stop, tuple(work.notes), work.iterations, *stepper.counted, work.steps)
