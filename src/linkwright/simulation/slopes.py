"""The derivatives of a state, called from Python: with the forces of a Python law, of a compiled one, or given ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.kernels.kernel import Kernel
from linkwright.simulation.integrators import Row, Tableau, weighted
from linkwright.simulation.python_laws import Law
from linkwright.simulation.samples import Rows
from linkwright.simulation.step_programs import Kernels, in_batch


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
        return v if self.same else self.batch(self.kernels.rate(), q=q, v=v)[0]

    def ended(self, t: Floats, q: Floats, v: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """The nearest states to q, v (n, ·) that can be, their accelerations, and the residuals of the constraints
        (n,) before the last round."""
        force: dict[str, Floats] = {}
        if self.law is not None:
            states = [self.projected(float(t[k]), q[k], v[k])[:2] for k in range(len(q))]
            q, v = (np.stack(x) for x in zip(*states, strict=True))
            force["tau"] = np.stack([self.force(float(t[k]), q[k], v[k]) for k in range(len(q))])
        q, v, a, *summary = self.batch(self.kernels.ending(), q=q, v=v, t=t, **force)
        return q, v, a, summary[0][:, 0] if summary else np.zeros(len(q))

    def terms(self, tableau: Tableau, start: Rows, end: Rows) -> tuple[Floats, ...]:
        """The terms of dense output of q and of v, (n, terms, ·), of the steps between these points."""
        ends = {"q1": end.q, "v1": end.v, "a1": end.a}
        kernel = self.kernels.between(tableau)
        return self.batch(kernel, q=start.q, v=start.v, a=start.a, t=start.t, h=end.t - start.t, **ends)

    def rate(self, q: Floats, v: Floats) -> Floats:
        """q̇."""
        return v if self.same else self._call(self.kernels.rate(), q=q, v=v)[0]

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

    def acceleration(self, t: float, q: Floats, v: Floats) -> Floats:
        """a, with the forces of the Python law."""
        return self._call(self.kernels.dynamics(), q=q, v=v, tau=self.force(t, q, v), t=np.array(t))[0]

    def slope(self, t: float, q: Floats, v: Floats) -> tuple[Floats, Floats]:
        """q̇ and a."""
        if self.law is not None:
            return self.rate(q, v), self.acceleration(t, q, v)
        rate, a = self._call(self.kernels.slope(), q=q, v=v, t=np.array(t))
        return rate, a

    def projected(self, t: float, q: Floats, v: Floats) -> tuple[Floats, Floats, float, float]:
        """The nearest state that can be, the residual of the constraints, and the rounds."""
        if self.plain:
            return q, v, 0.0, 0.0
        q, v, *summary = self._call(self.kernels.projected(), q=q, v=v, t=np.array(t))
        return (q, v, float(summary[0][0]), float(summary[0][1])) if summary else (q, v, 0.0, 0.0)

    def conserved(self, start: Rows, q: Floats, v: Floats) -> Floats:
        """The rates at the end of a step, scaled where a run keeps the energy."""
        if not self.kernels.conserving:
            return v
        return self._call(self.kernels.conserved(), q0=start.q[0], v0=start.v[0], q=q, v=v)[0]


def advanced(start: Rows, row: Row, slopes: Sequence[tuple[Floats, Floats]], h: float) -> tuple[Floats, Floats]:
    """q and v after h·Σ row_j K_j from a point; each slope K is (q̇, a)."""
    factors = list(row.values())
    q, v = (h * weighted(factors, [slopes[j][k] for j in row]) for k in (0, 1))
    return start.q[0] + q, start.v[0] + v
