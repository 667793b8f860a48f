"""Derivatives of prescribed motion and of equilibria: rows of outputs as functions of the parameters.

At rest the accelerations f(q, p) vanish and the loops are closed. With the inverse A of both slopes held constant, each
step x ← x − A [f; Φ] makes one more order of the derivatives of the place exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwright.analysis.analyse import kinematic
from linkwright.base.arrays import Floats
from linkwright.design.recorded_functions import Evaluator, Recorded, Undefined, differentiated
from linkwright.dynamics.equilibrium import NoEquilibrium, at_rest, frozen
from linkwright.errors import AssemblyError, ModelError
from linkwright.kernels.kernel import Kernel
from linkwright.mechanism import Mechanism
from linkwright.model.model_checks import listed
from linkwright.model.requested_analysis import System
from linkwright.outputs.derivatives import Rows, Series
from linkwright.results.solution import Solution
from linkwright.spatial.algebra import Array
from linkwright.tape.derivative import SparseMatrix

STATIC_RANK = 1e-9


class Static(Evaluator):
    """The rows of states of rest."""

    def __init__(self, mech: Mechanism, names: Sequence[str], series: Series, times: Floats) -> None:
        still = mech if at_rest(mech.description) else type(mech)(frozen(mech.description))
        super().__init__(mech, names, series, times if mech.programs.needs_time else times[:1], still)

    def __call__(self, values: Floats, order: int) -> Rows:
        t, q = self.times, self._equilibria(values)
        p = np.broadcast_to(values, (len(t), len(values)))
        slopes = self._slopes()(np.zeros((len(t), self.recorded.nv)), t[:, None], p, q)
        inverse: Any = np.linalg.pinv(slopes, rcond=STATIC_RANK)
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


#: Singular values of G below this part of the largest are none; those between the two make a position singular.
RANK, SINGULAR = 1e-9, 1e-6
OPENS = 1e-6  # of how much a parameter changes the equations, the part that nothing can close
FREE = 1e-7  # of an output's size, what freedom may change it by


class Kinematic(Evaluator):
    """The rows of a prescribed motion."""

    def __call__(self, values: Floats, order: int) -> Rows:
        solution = self._solved(values)
        t, q, v = solution.time, solution.q, solution.v
        p = np.broadcast_to(values, (len(t), len(values)))
        inverse, null = self._inverse(t, p, q, v)
        state = (t[:, None], p, q, v, inverse)
        if null.shape[-1]:
            self._check_free(state, null)
        return differentiated(self._rows(order), order, state)

    def _solved(self, values: Floats) -> Solution:
        mech = self.at(values)
        system = mech.description.system or System()
        try:
            solution = kinematic(mech, system, self.times, system.freedom)
        except AssemblyError as error:
            raise Undefined(str(error)) from None
        if not solution.status:
            raise Undefined(str(solution.status))
        return solution

    # -- programs -----------------------------------------------------------------------------------------
    def _rows(self, order: int) -> Kernel:
        """t, p, q, v, A → the rows, with derivatives in p that are exact to this order."""
        r, series = self.recorded, self.series
        steps = order + series.twice if r.rows else 0
        shapes = 1, len(r.free), r.nq, r.nv, (r.nv, r.rows)

        def measured(t: Array, p: Array, q: Array, v: Array, a: Array) -> Array:
            start, x = q, np.zeros(r.nv)
            for _ in range(steps):
                x = x - a @ r.open(q, t[0], p)
                q = r.moved(start, x)
            for _ in range(steps):
                v = v - a @ r.held(q, v, t[0], p)[1]
            return r.measured(series.measures, q, v, t[0], p)

        def rows(t: Array, p: Array, q: Array, v: Array, a: Array) -> Array:
            still = [np.zeros(np.shape(x)) for x in (p, q, v, a)]
            quantities = series.measured(measured, (t, p, q, v, a), (np.ones(1), *still))
            return series.of(quantities, r.parameters(p), t[0]) + 0.0 * t[0]

        return self.kernel("outputs", rows, *shapes, order=order, outputs=True)

    def _inverse(self, t: Floats, p: Floats, q: Floats, v: Floats) -> tuple[Floats, Floats]:
        """A (T, nv, m), and the directions (T, nv, d) that the equations leave free."""
        nv, m = self.recorded.nv, self.recorded.rows
        if not m:
            return np.zeros((len(t), nv, 0)), np.broadcast_to(np.eye(nv), (len(t), nv, nv))
        by_rate, by_parameter = self.constraint_slopes()
        g = by_rate(t[:, None], p, q, v)
        u, s, vt = np.linalg.svd(g, full_matrices=True)
        largest = s.max(axis=1, initial=0.0, keepdims=True)
        nonzero = s > RANK * largest
        rank = int(nonzero.sum(axis=1).max(initial=0))
        small = s[:, rank - 1] if rank else np.ones(len(t))
        lost = np.flatnonzero(small < SINGULAR * largest[:, 0])
        if len(lost):
            raise Undefined(
                f"the mechanism is in a singular position at t = {t[lost[0]]:g}, where outputs have no derivatives; "
                "leave that time out with times=..., or change the start or the bounds of the parameters"
            )
        inverse = (vt[:, :rank].transpose(0, 2, 1) / s[:, None, :rank]) @ u[:, :, :rank].transpose(0, 2, 1)
        if rank < m:
            self._check_closed(t, by_parameter(t[:, None], p, q, v), u[:, :, rank:])
        return np.ascontiguousarray(inverse), vt[:, rank:].transpose(0, 2, 1)

    def _check_closed(self, t: Floats, slopes: Floats, outside: Floats) -> None:
        """Redundant equations stay closed as parameters change; one that does not names its parameter."""
        left = np.abs(outside @ (outside.transpose(0, 2, 1) @ slopes))  # (T, m, k)
        scale = np.abs(slopes).max(axis=(0, 1), initial=0.0)
        bad = left.max(axis=(0, 1), initial=0.0) > OPENS * np.maximum(scale, 1e-12)
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            rows = np.flatnonzero(left[:, :, k].max(axis=0) > 0.1 * left[:, :, k].max())
            constraints = list(dict.fromkeys(str(self.mech.programs.constraint_rows[i][0]) for i in rows.tolist()))
            raise ModelError(
                f"parameter {self.names[k]!r} opens constraints that are redundant, {listed(constraints[:4])}: any "
                "other value cannot be assembled; use a joint that constrains less, or leave the parameter alone",
                element=self.names[k],
            )

    def _check_free(self, state: tuple[Floats, ...], null: Floats) -> None:
        """Outputs must not depend on motion that the constraints leave free."""
        r, program = self.recorded, self._rows(1).forward
        pushing = self.kernel("coordinate rates", lambda q, v: r.rate(q, v) + 0.0 * q[0], r.nq, r.nv)
        q = state[2]
        for j in range(null.shape[-1]):
            n = np.ascontiguousarray(null[:, :, j])
            dq = np.asarray(pushing(q, n))
            for dq_j, dv_j in ((dq, np.zeros_like(n)), (np.zeros_like(q), n)):
                tangents = [np.zeros_like(x) for x in state]
                tangents[2], tangents[3] = dq_j, dv_j
                values, change = program(*state, *tangents)
                size = np.maximum(np.abs(values).max(axis=0), 1.0)
                worst = np.abs(change).max(axis=0) / size
                if worst.max(initial=0.0) > FREE:
                    label = self.series.labels[int(np.argmax(worst))]
                    raise ModelError(
                        f"{label} depends on motion that the drivers leave free, and so on its whole history; drive "
                        "that motion too, ask for outputs that do not depend on it, or use dynamic analysis",
                        element=label,
                    )
