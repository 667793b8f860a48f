r"""Passing a singular position: the one rule by which every method that chooses its steps comes across.

At a distance θ from a singular position (a parallelogram laid flat), loops that are closed to rounding ε leave rates
that are uncertain by ε/θ², and stages that are a little off the loops have accelerations that grow as 1/θ. The
estimated error of a step has both in it, shorter steps end closer by, and none is short enough. But these errors lie
across the loops: projection at a regular position beyond takes them away.

So steps that have shrunk to a small part of the usual one are tried as a crossing, by one long step of DOP853 and by
two. Their stages are projected too, since what is across the loops grows from stage to stage. Where both ways arrive at
the same state, within the tolerances, that is the next point.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.simulation.integrators import tableau_of
from linkwright.simulation.python_laws import LawFailed
from linkwright.simulation.samples import Rows
from linkwright.simulation.slopes import Slopes, advanced
from linkwright.simulation.step_control import CLOSED, Tolerances

#: How far a crossing goes at most, in radians or parts of the mechanism's length, and the parts of that tried in turn.
REACH, PARTS = 0.3, (1.0, 0.7, 0.5, 0.35, 0.25, 0.17, 0.1, 0.05, 0.02, 0.01)
#: Where the second way divides a crossing: no stage of it comes to where one of the first is.
DIVISION = 0.45
#: What rounding leaves of projected states, as a part of them: tighter tolerances ask no more of a crossing.
ROUNDED = 1e-12
METHOD = tableau_of("dop853")


class Passing:
    """Crossings of one run."""

    def __init__(self, slopes: Slopes, tolerances: Tolerances, end: float, longest: float) -> None:
        self.slopes, self.tolerances, self.units = slopes, tolerances, slopes.kernels.rate_units
        self.end, self.longest = end, longest
        self.begun: set[float] = set()  # the times at which crossings began
        self.evaluations = 0

    def across(self, start: Rows, reached: Floats) -> Rows | None:
        """A point beyond what stops the steps from `start`, or None if there is none that can be relied on."""
        if not self.slopes.kernels.closed:
            return None
        t, fastest = float(start.t[0]), float(np.max(np.abs(start.v[0]) / self.units, initial=0.0))
        if not fastest > 0.0:
            return None
        longest = min(REACH / fastest, self.longest, self.end - t)
        absolute, limit = self.tolerances.absolute(reached), max(1.0, ROUNDED / self.tolerances.rtol)
        for part in PARTS:
            h = part * longest
            try:
                one = self.point(start, t + h)
                half = None if one is None else self.point(start, t + DIVISION * h)
                two = None if half is None else self.point(half, t + h)
            except LawFailed:
                continue
            if one is not None and two is not None and self._apart(one, two, absolute) <= limit:
                self.begun.add(t)
                return two
        return None

    def _apart(self, one: Rows, two: Rows, absolute: Floats) -> float:
        """How far two states are apart, by the tolerances."""
        y1, y2 = (np.concatenate([row.q[0], row.v[0]]) for row in (one, two))
        e = (y1 - y2) / (absolute + self.tolerances.rtol * np.abs(y2))
        return float(np.sqrt(np.mean(e * e)))

    def point(self, start: Rows, t_end: float) -> Rows | None:
        """The state after one step, projected; None where it has no value or the loops stay open."""
        s, t = self.slopes, float(start.t[0])
        h = t_end - t
        with np.errstate(all="ignore"):  # what becomes of it is looked at
            slopes = [s.slope(t, start.q[0], start.v[0])]
            for row, c in zip(METHOD.a[1:], METHOD.c[1:], strict=True):
                q, v, _, _ = s.projected(t + c * h, *advanced(start, row, slopes, h))
                slopes.append(s.slope(t + c * h, q, v))
            q, v, residual, _ = s.projected(t_end, *advanced(start, METHOD.b, slopes, h))
            v = s.conserved(start, q, v)
            a = s.slope(t_end, q, v)[1]
        self.evaluations += METHOD.stages + 1
        there = Rows.point(t_end, q, v, a)
        return there if residual <= CLOSED and there.finite[0] else None

    def between(self, rows: Rows, step: NDArray[np.int64], theta: Floats, states: Rows) -> None:
        """Put states within crossings in the place of what dense output gave at the parts theta of these steps."""
        if not self.begun:
            return
        for n, (k, part) in enumerate(zip(step.tolist(), theta.tolist(), strict=True)):
            t = float(rows.t[k])
            if t in self.begun and 0.0 < part < 1.0:
                there = self.point(rows[k : k + 1], t + part * float(rows.t[k + 1] - t))
                if there is not None:
                    states.put(slice(n, n + 1), there)
