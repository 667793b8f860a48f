"""The derivatives of a state, called from Python, with the forces of any law; and the one rule by which steps pass a
singular position.

At a distance θ from a singular position (a parallelogram laid flat), loops that are closed to rounding ε leave rates
that are uncertain by ε/θ², and stages that are a little off the loops have accelerations that grow as 1/θ. The
estimated error of a step has both in it, shorter steps end closer by, and none is short enough. But these errors lie
across the loops: projection at a regular position beyond takes them away.

So steps that have shrunk to a small part of the usual one are tried as a crossing, by one long step of DOP853 and by
two. Their stages are projected too, since what is across the loops grows from stage to stage. Where both ways arrive at
the same state, within the tolerances, that is the next point.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.kernels.kernel import Kernel
from linkwright.simulation.integrators import Row, Tableau, dense_value, tableau_of, weighted
from linkwright.simulation.python_laws import Law, LawFailed
from linkwright.simulation.samples import Rows
from linkwright.simulation.step_control import (
    CLOSED,
    CONTROL,
    GROUPS,
    REJECTED,
    STALLED,
    USUAL,
    Tolerances,
    first_control,
)
from linkwright.simulation.step_parts import Parts
from linkwright.simulation.step_programs import Kernels, in_batch
from linkwright.simulation.steps import between, conserved, ending, projected, slope

Slope = tuple[Floats, Floats]  # q̇ and a


class Slopes:
    """What a method asks of a mechanism at one state; `law` is a Python law, one that is compiled is in the kernels.

    `p` are the values of the kernels' free parameters.
    """

    def __init__(self, kernels: Kernels, law: Law | None, tau: Floats | None, p: Floats | None = None) -> None:
        self.kernels, self.law, self.tau = kernels, law, tau
        self._inputs = {name: x for name, x in (("tau", tau), ("p", p)) if x is not None}
        self.plain, self.same = kernels.plain, kernels.nq == kernels.nv

    def _arguments(self, kernel: Kernel, values: dict[str, Floats]) -> list[Floats]:
        """The inputs of a kernel: these values by their names, and those that are the same at every state."""
        values = {**self._inputs, **values}
        return [values[port.name] for port in kernel.signature.inputs]

    def _call(self, kernel: Kernel, **values: Floats) -> tuple[Floats, ...]:
        """A kernel's outputs at one state."""
        outputs = kernel(*self._arguments(kernel, values))
        return outputs if isinstance(outputs, tuple) else (outputs,)

    def batch(self, kernel: Kernel, **values: Floats) -> tuple[Floats, ...]:
        """A kernel's outputs at many states (n, ...), each to the same bits whatever n is."""
        return in_batch(kernel, *self._arguments(kernel, values))

    def rates(self, q: Floats, v: Floats) -> Floats:
        """(n, nq): q̇ at many states."""
        return v if self.same else self.batch(self.kernels.of(Parts.rate), q=q, v=v)[0]

    def ended(self, t: Floats, q: Floats, v: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """The nearest states to q, v (n, ·) that can be, their accelerations, and the residuals of the constraints
        (n,) before the last round."""
        force: dict[str, Floats] = {}
        if self.law is not None:
            states = [self.projected(float(t[k]), q[k], v[k])[:2] for k in range(len(q))]
            q, v = (np.stack(x) for x in zip(*states, strict=True))
            force["tau"] = np.stack([self.force(float(t[k]), q[k], v[k]) for k in range(len(q))])
        q, v, a, *summary = self.batch(self.kernels.of(ending), q=q, v=v, t=t, **force)
        return q, v, a, summary[0][:, 0] if summary else np.zeros(len(q))

    def within(
        self,
        terms: tuple[Floats, ...],
        which: NDArray[np.int64],
        start: Rows,
        at: NDArray[np.int64],
        t: Floats,
        x: Floats,
    ) -> Rows:
        """The states at times t (n,), the parts x (n,) of steps that begin at the rows `at` (n,) of `start`; `which`
        (n,) of the terms of dense output are theirs."""
        parts = x[:, None]
        q, v = (
            dense_value(y[at], [z[which, k] for k in range(z.shape[1])], parts)
            for y, z in zip((start.q, start.v), terms, strict=True)
        )
        return Rows(t, *self.ended(t, q, v)[:3])

    def terms(self, tableau: Tableau, start: Rows, end: Rows) -> tuple[Floats, ...]:
        """The terms of dense output of q and of v, (n, terms, ·), of the steps between these points."""
        ends = {"q1": end.q, "v1": end.v, "a1": end.a}
        kernel = self.kernels.of(between, tableau)
        return self.batch(kernel, q=start.q, v=start.v, a=start.a, t=start.t, h=end.t - start.t, **ends)

    def rate(self, q: Floats, v: Floats) -> Floats:
        """q̇."""
        return v if self.same else self._call(self.kernels.of(Parts.rate), q=q, v=v)[0]

    def force(self, t: float, q: Floats, v: Floats) -> Floats:
        """What the Python law gives."""
        assert self.law is not None
        return self.law(float(t), q.copy(), v.copy())

    def wanders(self, row: Rows) -> str:
        """What to know if the law gives two answers for one state: no step is short enough for such a one."""
        if self.law is None:
            return ""
        t, q, v = float(row.t[0]), row.q[0], row.v[0]
        one, other = (self.force(t, q, v) for _ in range(2))
        if np.array_equal(one, other, equal_nan=True):
            return ""
        text = f"at t = {t:.9g} s {self.law.what} gives other values when it is asked again for the same t, q and v"
        return f"{text}: it has random numbers or keeps something between its calls"

    def slope(self, t: float, q: Floats, v: Floats) -> tuple[Floats, Floats]:
        """q̇ and a."""
        if self.law is not None:
            force = self.force(t, q, v)
            return self.rate(q, v), self._call(self.kernels.of(Parts.dynamics), q=q, v=v, tau=force, t=np.array(t))[0]
        rate, a = self._call(self.kernels.of(slope), q=q, v=v, t=np.array(t))
        return rate, a

    def projected(self, t: float, q: Floats, v: Floats) -> tuple[Floats, Floats, float, float]:
        """The nearest state that can be, the residual of the constraints, and the rounds."""
        if self.plain:
            return q, v, 0.0, 0.0
        q, v, *summary = self._call(self.kernels.of(projected), q=q, v=v, t=np.array(t))
        return (q, v, float(summary[0][0]), float(summary[0][1])) if summary else (q, v, 0.0, 0.0)

    def conserved(self, start: Rows, q: Floats, v: Floats) -> Floats:
        """The rates at the end of a step, scaled where a run keeps the energy."""
        if not self.kernels.conserving:
            return v
        return self._call(self.kernels.of(conserved), q0=start.q[0], v0=start.v[0], q=q, v=v)[0]

    def stages(
        self, start: Rows, rows: Sequence[Row], times: Sequence[float], slopes: list[Slope], h: float, *, project: bool
    ) -> list[Slope]:
        """The slopes with those of further stages of a step of length h from a point, at parts of it; states of stages
        may be projected to where they can be."""
        t = float(start.t[0])
        for row, c in zip(rows, times, strict=True):
            q, v = advanced(start, row, slopes, h)
            if project:
                q, v, _, _ = self.projected(t + c * h, q, v)
            slopes.append(self.slope(t + c * h, q, v))
        return slopes


def advanced(start: Rows, row: Row, slopes: Sequence[Slope], h: float) -> tuple[Floats, Floats]:
    """q and v after h·Σ row_j K_j from a point; each slope K is (q̇, a)."""
    factors = list(row.values())
    q, v = (h * weighted(factors, [slopes[j][k] for j in row]) for k in (0, 1))
    return start.q[0] + q, start.v[0] + v


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

    def next_attempt(self, start: Rows, control: Floats) -> tuple[Rows | None, Floats | None]:
        """A point beyond what stopped the steps at `start`, if there is one, and the control of the next attempt.

        That is None where nothing can be done. Where there is nothing to cross, the short steps become usual.
        """
        beyond = self.across(start, control[-len(GROUPS) :])
        if beyond is not None:
            there = np.maximum(control[-len(GROUPS) :], self.tolerances.reached(beyond.q[0], beyond.v[0]))
            return beyond, first_control(float(beyond.t[0]), float(beyond.t[0] - start.t[0]), there)
        if control[CONTROL.index("code")] != STALLED:
            return None, None
        control = control.copy()
        control[CONTROL.index("code")], control[USUAL] = REJECTED, control[CONTROL.index("h")]
        return None, control

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
            first = s.slope(t, start.q[0], start.v[0])
            slopes = s.stages(start, METHOD.a[1:], METHOD.c[1:], [first], h, project=True)
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
