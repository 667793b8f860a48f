r"""Derivatives of equilibria: where a mechanism stays at rest, as a function of its parameters.

At rest the accelerations f(q, p) vanish and the loops are closed. With the inverse A of both slopes held constant, each
step x ← x − A [f; Φ] makes one more order of the derivatives of the place exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.locks import cached_property
from linkwright.closed.statics import NoEquilibrium, frozen
from linkwright.design.recorded import Recorded
from linkwright.design.rows import Rows, Series, Undefined
from linkwright.errors import AssemblyError
from linkwright.spatial.algebra import Array
from linkwright.tape.build import record

if TYPE_CHECKING:
    from linkwright.model import Mechanism

Floats = NDArray[np.float64]
RANK = 1e-9


class Static:
    """The rows of states of rest."""

    def __init__(
        self, mech: Mechanism, names: Sequence[str], series: Series, times: Floats, labels: Sequence[str]
    ) -> None:
        self.mech, self.names, self.series, self.labels = mech, tuple(names), series, tuple(labels)
        self.times = times if mech._maker.needs_time else times[:1]
        still = type(mech)(frozen(mech.description)) if mech.description.drivers else mech
        self.recorded = Recorded(still, names)
        self._made: dict[int, list[Any]] = {}

    def __call__(self, values: Floats, order: int) -> Rows:
        t, q = self.times, self._found(values)
        p = np.broadcast_to(values, (len(t), len(values)))
        inverse = np.linalg.pinv(self._slopes(np.zeros((len(t), self.recorded.nv)), t[:, None], p, q), rcond=RANK)
        self._check(inverse)
        programs, state = self._programs(order), (t[:, None], p, q, np.ascontiguousarray(inverse))
        found = np.asarray(programs[0](*state))
        first = np.asarray(programs[1](*state)) if order >= 1 else None
        second = None
        if order >= 2:
            second = np.zeros((len(t), self.series.size, len(values), len(values)))
            second[:, programs[1].rows, programs[1].cols] = programs[2](*state)
        return Rows(t, found, first, second)

    def _check(self, inverse: Floats) -> None:
        if not np.isfinite(inverse).all():
            raise Undefined("forces have no finite slopes at the equilibrium; change the start of the parameters")

    def _found(self, values: Floats) -> Floats:
        mech = self.mech.with_parameters(**dict(zip(self.names, values.tolist(), strict=True)))
        rows: list[Floats] = []
        try:
            q = mech.initial_state(t=float(self.times[0]))[0]
            for t in self.times.tolist():
                q = mech.equilibrium(q, t=t).q
                rows.append(q)
        except (NoEquilibrium, AssemblyError) as error:
            raise Undefined(str(error)) from None
        return np.array(rows)

    def _residual(self, q: Array, t: Any, p: Array) -> Array:
        r = self.recorded
        return np.concatenate([r.acceleration(q, np.zeros(r.nv), t, p), r.open(q, t, p)])

    @cached_property
    def _rows_of(self) -> int:
        held = len(self.mech._maker.constraint_rows) if self.mech.closed else 0
        return self.recorded.nv + held

    @cached_property
    def _slopes(self) -> Any:
        r = self.recorded

        def moved(x: Array, t: Array, p: Array, q: Array) -> Array:
            return self._residual(r.moved(q, x), t[0], p)

        return record(moved, r.nv, 1, len(self.names), r.nq).jacobian(0, 0)

    def _programs(self, order: int) -> list[Any]:
        if order in self._made:
            return self._made[order]
        r, series = self.recorded, self.series

        def rows(t: Array, p: Array, q: Array, a: Array) -> Array:
            start, x = q, np.zeros(r.nv)
            for _ in range(order):
                x = x - a @ self._residual(q, t[0], p)
                q = r.moved(start, x)
            found = r.measured(series.leaves, q, np.zeros(r.nv), t[0], p)
            still = np.array(
                [0.0 if leaf.again else y for leaf, y in zip(series.leaves, found, strict=True)], dtype=object
            )
            named = {**self.mech.parameters, **dict(zip(self.names, p, strict=True))}
            return series.of(still, named, t[0]) + 0.0 * t[0]

        program = record(rows, 1, len(self.names), r.nq, (r.nv, self._rows_of), name="outputs at rest")
        programs: list[Any] = [program]
        if order >= 1:
            programs.append(program.jacobian(0, 1))
        if order >= 2:
            programs.append(programs[1].program.jacobian(0, 1))
        self._made[order] = programs
        return programs
