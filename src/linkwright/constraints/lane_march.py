"""Many steps in one call of the compiled step, as long as they are good at the first try: the time points of one
mechanism, or the cases of a study at a time point."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.constraints.batch import Batch
from linkwright.constraints.branch import Branch
from linkwright.constraints.kinematic_motion import Acceptance, State, Stepper
from linkwright.constraints.kinematic_programs import SUMMARY, Step
from linkwright.constraints.newton import Assembled

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
        self._summary = np.empty((count - 1, len(SUMMARY)))
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


class CaseMarch(Acceptance):
    """Steps of many cases from one time to the next: where they are now, and what their steps are measured by."""

    def __init__(self, batch: Batch, start: Assembled, times: Floats, free: bool) -> None:
        correction, constraint_tolerance = batch.programs.numbers["newton"]
        super().__init__(batch.size, batch.sizes, float(constraint_tolerance), start)
        self.over(times)
        n, nb = len(batch), batch.equations.nb
        self.rows = np.arange(n)  # the cases that go along
        newton = np.array([np.full(n, correction), np.maximum(constraint_tolerance, 10.0 * start.miss)]).T
        inputs = {**batch.inputs, "tolerance": start.tolerance[:, None], "newton": newton}
        self.batch, self.t, self.free = replace(batch, inputs=inputs), float(times[0]), free
        still = np.zeros((n, nb, 6))
        self._there = {"q_there": start.q, "v_there": still, "a_there": still, "angles_there": start.angles}
        self._j: Floats | None = None  # what is stored of J where the cases are now, if it is known
        self._begin = batch, start.q[0], start.angles[0], self.t
        step = self._attempt(self.t)
        self._go_on(np.asarray(self.consistent(step)))

    @property
    def motion(self) -> tuple[Floats, Floats, Floats]:
        """Position, velocity and acceleration of the cases that go along."""
        return self._there["q_there"], self._there["v_there"], self._there["a_there"]

    @cached_property
    def _branch(self) -> Branch:
        """By the stages of the first case."""
        batch, *state = self._begin
        return Branch(batch.one(0), *state)

    def step(self, t: float) -> None:
        """Go on to a time with the cases whose step is good at once."""
        before, t_before, j_before = self._there, self.t, self._j
        with np.errstate(all="ignore"):
            step = self._attempt(t)
            good = self.sound(step)
            if self.free:
                good &= step.rounds <= 1.0
            self.fastest = np.where(good, np.maximum(self.fastest, step.speed), self.fastest)
            good &= self.steady(step, self.fastest, self._there["a_there"])
            doubtful = np.flatnonzero(good & ~self.short(step))
            self._j = None
            if len(doubtful) and self._branch.parts:
                j_before = self._jacobian(before, t_before) if j_before is None else j_before
                self._j = self._jacobian(self._there, t)
                good[doubtful] = self._branch.connects(j_before[doubtful], self._j[doubtful])
        self.largest_pivot = np.where(good, np.maximum(self.largest_pivot, step.pivot), self.largest_pivot)
        self._go_on(np.asarray(good))

    def _attempt(self, t: float) -> Step:
        states = {name.removesuffix("_there"): x for name, x in self._there.items() if name != "summary"}
        batch, program = self.batch, self.batch.programs.step(self.free)
        self._there = batch.run(program, **states, t=batch.all(t), h=batch.all(t - self.t))
        self.t = t
        return Step(*self._there["summary"].T)

    def _jacobian(self, states: dict[str, Floats], t: float) -> Floats:
        return self.batch.evaluate(states["q_there"], states["angles_there"], t)["jacobian"]

    def _go_on(self, good: NDArray[np.bool_]) -> None:
        """Leave the other cases behind."""
        if good.all():
            return
        self.batch = self.batch[good]
        self._j = None if self._j is None else self._j[good]
        self._there = {name: x[good] for name, x in self._there.items()}
        for name in ("sizes", "tolerance", "rate_tolerance", "lost", "largest_pivot", "fastest", "rows"):
            setattr(self, name, getattr(self, name)[good])
