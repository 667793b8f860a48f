"""Forces that jump: where the steps of a run meet them, and what is reported.

Steps that are chosen by their error become short where the acceleration jumps. A law that is held between samples costs
some rejected steps a jump. One that changes its sign with a rate, as dry friction does, jumps to and fro for as long as
that joint is at rest.
"""

from __future__ import annotations

from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from linkwright.mechanism import Mechanism
from linkwright.results.status import Status
from linkwright.simulation.engines import Work
from linkwright.simulation.python_laws import Law
from linkwright.simulation.samples import Rows
from linkwright.simulation.termination import force_values, joint_of_rate

#: A step is short below this part of the longest; a change of the acceleration is a jump above this part of the largest
#: and so many times those beside it, or back again in the next step, or to and fro within the step: then the rates do
#: not change as the accelerations at both ends say.
SHORT, PART, ALONE = 0.02, 0.02, 10.0
#: Attempts that are looked at together, and how many such windows on end make a run slow.
WINDOW, ON_END = 200, 3
#: Attempts to the end, at the present rate, from which a run is slow: with a Python law, and compiled.
CALLED, COMPILED = 1e5, 2e6
#: The part of the steps that jump in a run that chatters; jumps from which a note is worth it.
CHATTERS, MANY = 0.05, 20


class Jumps:
    """The jumps of one run, by the points that its engine gives."""

    def __init__(self, mech: Mechanism, law: Law | None, end: float) -> None:
        self.mech, self.law, self.end = mech, law, end
        self.called = law is not None and law.program is None
        self.longest, self.largest = 0.0, np.zeros(mech.nv)
        self.count, self.first = 0, (0.0, "")
        self.passed = 0  # the jumps after which steps became long again
        self.before = 0  # the attempts when the window began
        self.window = [0.0, 0, 0]  # the time, the steps and the jumps in it
        self.slow = 0
        self.note = ""

    def look(self, rows: Rows, work: Work) -> Status | None:
        """Look at further points; the status, if the run is to end."""
        places = self._jumps(rows)
        if len(places):
            if not self.count:
                self.first = float(rows.t[places[0]]), self._what(rows[places[0] : places[0] + 2])
            self.count += len(places)
        long = np.flatnonzero(np.diff(rows.t) >= SHORT * self.longest)
        if len(long):
            self.passed = self.count - int(np.sum(places > long[-1]))
        time = float(rows.t[-1] - rows.t[0])
        self.window = [x + y for x, y in zip(self.window, (time, len(rows) - 1, len(places)), strict=True)]
        attempts = work.steps + work.rejected - self.before
        if attempts < WINDOW:
            return None
        time, steps, jumps = self.window
        self.before, self.window = work.steps + work.rejected, [0.0, 0, 0]
        limit = CALLED if self.called else COMPILED
        if attempts * (self.end - float(rows.t[-1])) <= limit * time or jumps < CHATTERS * steps or not jumps:
            self.slow = 0
            return None
        self.slow += 1
        if self.slow < ON_END or self.note or not len(places):
            return None
        return self._chatters(rows[places[-1] : places[-1] + 2])

    def _jumps(self, rows: Rows) -> NDArray[np.int64]:
        """The steps in which the acceleration jumps."""
        h = np.diff(rows.t)
        if not len(h):
            return np.zeros(0, dtype=np.int64)
        self.longest = max(self.longest, float(h.max()))
        self.largest = np.maximum(self.largest, np.abs(rows.a).max(axis=0))
        short = h < SHORT * self.longest
        if not short.any():
            return np.zeros(0, dtype=np.int64)
        change = np.diff(rows.a, axis=0) / np.where(self.largest > 0.0, self.largest, 1.0)
        padded = np.pad(change, ((1, 1), (0, 0)))
        back, on = padded[:-2], padded[2:]
        large = np.abs(change) > PART
        alone = np.abs(change) > ALONE * np.maximum(np.abs(back), np.abs(on))
        flips = (np.abs(on) > PART) & (on * change < 0.0) | (np.abs(back) > PART) & (back * change < 0.0)
        mean = 0.5 * (rows.a[1:] + rows.a[:-1])
        odd = np.abs(np.diff(rows.v, axis=0) / h[:, None] - mean) / np.where(self.largest > 0.0, self.largest, 1.0)
        within = odd > np.maximum(PART, 0.5 * np.abs(change))
        return np.flatnonzero((large & (alone | flips) | within).any(axis=1) & short)

    def _what(self, pair: Rows) -> str:
        """What jumps between two points."""
        if self.law is not None:
            return self.law.what
        # Where a joint is about at rest, and both points on one side of it, what jumps does so for the opposite rates.
        q, v, t = np.tile(pair.q, (2, 1)), np.concatenate([pair.v, -pair.v]), np.tile(pair.t, 2)
        changes = [(float(np.ptp(x)), element.name) for element, x in force_values(self.mech, q, v, t)]
        return f"force {max(changes, key=itemgetter(0))[1]!r}" if changes else "a force"

    def _chatters(self, pair: Rows) -> Status | None:
        what, t = self._what(pair), float(pair.t[-1])
        at = int(np.argmax(np.abs(np.diff(pair.a, axis=0)[0])))
        joint = joint_of_rate(self.mech, at)
        message = f"at t = {t:.9g} s {what} jumps to and fro, about where joint {joint!r} comes to rest"
        advice = "make the law smooth, such as tanh(v/0.001) for sign(v); or give dt, whose steps do not shrink"
        if self.called:
            return Status(False, f"{message}; steps become too short for it", "law jumps", t, joint, advice=advice)
        self.note = f"{message}, and takes very short steps; {advice}"
        return None

    def notes(self, work: Work, *, ended_early: bool) -> list[str]:
        """What a person should know of the run.

        Where a run ended early, steps may have become short before a singular position: these are no jumps.
        """
        if self.note:
            return [self.note]
        count = self.passed if ended_early else self.count
        if count < MANY or work.rejected < count:
            return []
        t, what = self.first
        each = work.rejected / count
        text = f"{what} jumps {count} times, first at t = {t:.6g} s, at about {each:.0f} rejected steps a jump"
        return [f"{text}; where a law is held between samples, give a dt that divides the sampling time"]
