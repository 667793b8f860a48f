"""Kinematic analysis of a description: assembly, freedom, and the motion at every time point, as plain arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.base.checks import real_array
from linkwright.base.locks import cached_property
from linkwright.constraints.assembly import assemble
from linkwright.constraints.batch import Batch
from linkwright.constraints.counted_angles import check_driver_laws, first_undefined
from linkwright.constraints.degrees_of_freedom import FreedomReport
from linkwright.constraints.degrees_of_freedom import freedom as find_freedom
from linkwright.constraints.elimination import RANK_TOLERANCE
from linkwright.constraints.equations import Equations
from linkwright.constraints.kinematic_motion import Follower, State, Stepper
from linkwright.constraints.kinematic_programs import Programs
from linkwright.constraints.lane_march import March
from linkwright.constraints.newton import Assembled, start_state
from linkwright.constraints.pivoting import PivotingStepper
from linkwright.constraints.recording import Layout, newton
from linkwright.constraints.termination_reasons import Stop, contradiction, explain, singular_start, tilted_axes
from linkwright.errors import ModelError
from linkwright.model.description import Description
from linkwright.model.system import LEAST_TOLERANCE, Freedom, System


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
        if freedom == "pivoting" and free:
            motion = self._by_pivoting(times, start, lu_tolerance, progress)
        else:
            motion = self._by_least_norm(times, start, free, progress)
        motion.notes, motion.miss = (*notes, *motion.notes), float(start.miss)
        if lawless is not None and motion.stop is None:
            motion.stop = lawless[1]
        tilted = tilted_axes(self.equations, motion.times, motion.q)
        return motion if tilted is None else _shortened(motion, *tilted)

    def _by_least_norm(
        self, times: Floats, start: Assembled, free: bool, progress: Callable[[int], None] | None
    ) -> Motion:
        stepper = Stepper(self.programs, start, free, float(times[0]))
        record = _Record(times, self.equations.nb)
        march = March(stepper, times, record.q, record.v, record.a)
        stop = self._follow(stepper, record, start, march, progress)
        work, rates = stepper.work, 2 if free else 1
        return record.motion(
            stop,
            tuple(work.notes),
            work.iterations,
            work.iterations + (1 + rates) * work.rounds,
            work.iterations + (3 + rates) * work.rounds,
            work.steps,
        )

    def _by_pivoting(
        self, times: Floats, start: Assembled, lu_tolerance: float, progress: Callable[[int], None] | None
    ) -> Motion:
        stepper = PivotingStepper(self.programs, start, float(times[0]), lu_tolerance)
        record = _Record(times, self.equations.nb)
        stop = self._follow(stepper, record, start, None, progress)
        work = stepper.work
        return record.motion(stop, tuple(work.notes), work.iterations, stepper.evaluations, stepper.solves, work.steps)

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
                if stop.reason == "jump":  # what looked like a corner was its beginning
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


def freedom_of(description: Description) -> FreedomReport:
    """The freedom of a mechanism at its start; an AssemblyError if it cannot be assembled as drawn."""
    system = description.system or System()
    kinematics = Kinematics(description)
    state = kinematics.assemble(system.start, system.assembly_tolerance)
    return kinematics.freedom(state, system.start)


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

    def motion(self, stop: Stop | None, notes: tuple[str, ...], *work: int) -> Motion:
        n = self.n
        arrays = (self.times[:n], self.q[:n], self.v[:n], self.a[:n], self.iterations[:n])
        return Motion(*arrays, stop, notes, *work)
