"""Many time points in one call of the compiled step, as long as every step is good at the first try."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwright.base.types import Floats
from linkwright.constraints.motion import State, Stepper
from linkwright.constraints.programs import SUMMARY, Step

#: The most steps of one call, and the most equations times steps: what a call takes must not be felt by a person
#: who interrupts it, and steps after a bad one are lost.
STEPS, WORK = 256, 20_000


class March:
    """Steps along the rows of a record: the state found in one row is what the next step begins with."""

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
        given = {"q": q[:-1], "v": v[:-1], "a": a[:-1], "angles": self._angles[:-1]}
        given.update(t=times[1:, None].copy(), h=np.diff(times)[:, None], **programs.numbers)
        found = {"q_there": q[1:], "v_there": v[1:], "a_there": a[1:], "angles_there": self._angles[1:]}
        found["summary"] = self._summary
        self._call = program.marched(
            [given[port.name] for port in program.inputs], [found[port.name] for port in program.outputs], count - 1
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
        good = s.closes(step) & s.regular(step, largest[:-1]) & s.consistent(step)
        good &= s.near(step) & s.smooth(step, fastest[1:])
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
