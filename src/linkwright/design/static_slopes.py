r"""Derivatives of equilibria: where a mechanism stays at rest, as a function of its parameters.

At rest the accelerations f(q, p) vanish and the loops are closed. With the inverse A of both slopes held constant, each
step x ← x − A [f; Φ] makes one more order of the derivatives of the place exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.design.recorded_functions import Evaluator, Recorded, Undefined, differentiated
from linkwright.dynamics.equilibrium import NoEquilibrium, frozen
from linkwright.errors import AssemblyError
from linkwright.kernels.kernel import Kernel
from linkwright.outputs.derivatives import Rows, Series
from linkwright.spatial.algebra import Array
from linkwright.tape.derivative import SparseMatrix

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

RANK = 1e-9


class Static(Evaluator):
    """The rows of states of rest."""

    def __init__(self, mech: Mechanism, names: Sequence[str], series: Series, times: Floats) -> None:
        still = type(mech)(frozen(mech.description)) if mech.description.drivers else mech
        super().__init__(mech, names, series, times if mech.programs.needs_time else times[:1], still)

    def __call__(self, values: Floats, order: int) -> Rows:
        t, q = self.times, self._equilibria(values)
        p = np.broadcast_to(values, (len(t), len(values)))
        slopes = self._slopes()(np.zeros((len(t), self.recorded.nv)), t[:, None], p, q)
        inverse: Any = np.linalg.pinv(slopes, rcond=RANK)
        if not np.isfinite(inverse).all():
            raise Undefined("forces have no finite slopes at the equilibrium; change the start of the parameters")
        return differentiated(self._rows(order), order, (t[:, None], p, q, np.ascontiguousarray(inverse)))

    def _equilibria(self, values: Floats) -> Floats:
        mech = self.at(values)
        rows: list[Floats] = []
        try:
            q = mech.initial_state(t=float(self.times[0]))[0]
            for t in self.times.tolist():
                q = mech.equilibrium(q, t=t).q
                rows.append(q)
        except (NoEquilibrium, AssemblyError) as error:
            raise Undefined(str(error)) from None
        return np.array(rows)

    def _slopes(self) -> SparseMatrix:
        r = self.recorded

        def moved(x: Array, t: Array, p: Array, q: Array) -> Array:
            return _residual(r, r.moved(q, x), t[0], p)

        return self.kernel("residual at rest", moved, r.nv, 1, len(r.free), r.nq).jacobian(0, 0)

    def _rows(self, order: int) -> Kernel:
        r, series = self.recorded, self.series

        def rows(t: Array, p: Array, q: Array, a: Array) -> Array:
            start, x = q, np.zeros(r.nv)
            for _ in range(order):
                x = x - a @ _residual(r, q, t[0], p)
                q = r.moved(start, x)
            quantities = r.measured(series.measures, q, np.zeros(r.nv), t[0], p)
            still = series.chosen(quantities, np.zeros(len(quantities)))
            return series.of(still, r.parameters(p), t[0]) + 0.0 * t[0]

        return self.kernel(
            "outputs at rest", rows, 1, len(r.free), r.nq, (r.nv, r.nv + r.rows), order=order, outputs=True
        )


def _residual(r: Recorded, q: Array, t: Any, p: Array) -> Array:
    """The accelerations at rest, and Φ."""
    return np.concatenate([r.acceleration(q, np.zeros(r.nv), t, p), r.open(q, t, p)])
