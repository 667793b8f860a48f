"""What a mechanism with free parameters does, as functions over recorded scalars, and ways from parameters to rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.dynamics import body_quantities as coordinates
from linkwright.dynamics.closed.closed_recorders import constraints_of, moving
from linkwright.dynamics.functions import Request
from linkwright.dynamics.recording_context import RecordingContext
from linkwright.errors import LinkwrightError
from linkwright.kernels.kernel import Kernel
from linkwright.mechanism import Mechanism
from linkwright.outputs.derivatives import Rows, Series
from linkwright.outputs.output_functions import Measure
from linkwright.spatial.algebra import Array, dot
from linkwright.tape.build import record
from linkwright.tape.derivative import SparseMatrix
from linkwright.tape.program import Program


@dataclass(frozen=True)
class DesignRequest:
    """Which program of this room: its name, the free parameters, and what else its recording depends on.

    `outputs` is the content of the rows, `order` that of their derivatives, `method` the tableau of a simulation and
    `time` that of its start.
    """

    name: str
    free: tuple[str, ...]
    outputs: str = ""
    order: int = 0
    method: str = ""
    time: float = 0.0


def kernel(mech: Mechanism, request: DesignRequest, function: Callable[..., Any], *shapes: Any) -> Kernel:
    """A function of this room as a kernel: recorded where no cache has its code."""
    return mech.kernels.further(request, lambda: record(function, *shapes, name=request.name))


class Recorded:
    """The functions of one mechanism, of (q, v, t, p): p are the values of the parameters `free`.

    They hold what the mechanism is made of and not the mechanism, which keeps the kernels of what is recorded here.
    """

    def __init__(self, mech: Mechanism, free: Sequence[str]) -> None:
        self.factory, self.free = mech.programs, tuple(free)
        self.nq, self.nv = mech.nq, mech.nv
        self.factory.shapes(Request("position_correction", free=self.free))  # refuses what cannot be left free

    @property
    def rows(self) -> int:
        """The number of constraint equations."""
        return len(self.factory.constraint_rows) if self.factory.closed else 0

    def parameters(self, p: Array) -> dict[str, Any]:
        """All parameters by their names, the free ones with these values."""
        return {**self.factory.description.parameters, **dict(zip(self.free, p, strict=True))}

    def context(self, q: Array, v: Array, t: Any, p: Array) -> RecordingContext:
        inputs = {"q": q, "v": v, "t": t}
        if self.free:
            inputs["p"] = p
        return RecordingContext(self.factory, Request("velocity_projection", free=self.free), inputs)

    def held(self, q: Array, v: Array, t: Any, p: Array) -> tuple[Array, Array]:
        """Φ and G v + Φ_t of what holds the tree's coordinates."""
        if not self.factory.closed:
            return np.zeros(0), np.zeros(0)
        context = self.context(q, v, t, p)
        constraints = constraints_of(context, moving(context))
        return _joined([h.phi for h in constraints]), _joined([h.rate for h in constraints])

    def open(self, q: Array, t: Any, p: Array) -> Array:
        """Φ alone."""
        return self.held(q, np.zeros(self.nv), t, p)[0]

    def rate(self, q: Array, v: Array) -> Array:
        """q̇."""
        if self.nq == self.nv and not self.factory.tree.euler_parameters:
            return v
        none = np.zeros(len(self.free))
        return np.asarray(coordinates.rate(self.context(q, v, 0.0, none).traversal()))

    def moved(self, q: Array, x: Array) -> Array:
        """q moved by x: a chart about q that is smooth to every order."""
        place = list(q + self.rate(q, x))
        for at in self.factory.tree.euler_parameters:
            e = place[at : at + 4]
            size = np.sqrt(dot(e, e))
            place[at : at + 4] = [entry / size for entry in e]
        return np.array(place)

    def measured(self, measures: Sequence[Measure], q: Array, v: Array, t: Any, p: Array) -> Array:
        """The quantities of the measures; of those that are accelerations, the rates."""
        if not measures:
            return np.zeros(0)
        context = self.context(q, v, t, p)
        by_key = context.elements.measure([x.quantity for x in measures])
        return np.array([by_key[x.quantity.key] for x in measures])

    @cached_property
    def dynamics(self) -> Program:
        """q, v, tau [, t] [, p] → a."""
        return self.factory.program(Request("forward_dynamics", free=self.free))

    def acceleration(self, q: Array, v: Array, t: Any, p: Array) -> Array:
        """a under the mechanism's own forces."""
        inputs = {"q": q, "v": v, "tau": np.zeros(self.nv), "t": t, "p": p}
        return np.asarray(self.dynamics(*(inputs[port.name] for port in self.dynamics.inputs)))


def _joined(parts: Sequence[Array]) -> Array:
    return np.concatenate([np.asarray(part) for part in parts]) if parts else np.zeros(0)


class Undefined(LinkwrightError):
    """A place at which outputs have no value or no derivative: out of reach of the mechanism, or singular."""


def differentiated(rows: Kernel, order: int, state: Sequence[Floats]) -> Rows:
    """The rows of a kernel of t, p and others at states (T, ...), with derivatives in p up to this order."""
    time, values = state[0][:, 0], np.asarray(rows(*state))
    if order == 0:
        return Rows(time, values)
    jacobian = rows.jacobian(0, 1)
    second = second_derivatives(jacobian, 1, *state) if order > 1 else None
    return Rows(time, values, jacobian(*state), second)


def second_derivatives(jacobian: SparseMatrix, wrt: int, *state: Any) -> Floats:
    """(..., m, n, n): of what has this Jacobian in its input number `wrt`."""
    m, n = jacobian.shape
    entries: Floats = jacobian.program.jacobian(0, wrt)(*state)
    dense = np.zeros((*entries.shape[:-2], m, n, n))
    dense[..., jacobian.rows, jacobian.cols, :] = entries
    return dense


class Evaluator:
    """A way from values of parameters to the rows of a mechanism's motion.

    `recorded` are the functions of `of`, by default the mechanism itself, whose programs are recorded.
    """

    def __init__(
        self, mech: Mechanism, names: Sequence[str], series: Series, times: Floats, of: Mechanism | None = None
    ) -> None:
        self.mech, self.names, self.series, self.times = mech, tuple(names), series, times
        self.of = of or mech
        self.recorded = Recorded(self.of, names)

    def __call__(self, values: Floats, order: int) -> Rows:
        """The rows at these values, with derivatives up to this order."""
        raise NotImplementedError

    def at(self, values: Floats) -> Mechanism:
        """The mechanism with these values of the parameters."""
        return self.mech.with_parameters(**dict(zip(self.names, values.tolist(), strict=True)))

    def kernel(
        self,
        name: str,
        function: Callable[..., Array],
        *shapes: Any,
        order: int = 0,
        outputs: bool = False,
        time: float = 0.0,
    ) -> Kernel:
        """A function as a kernel; `outputs` if the rows are a part of it, and `time` where it is of one time alone."""
        request = DesignRequest(name, self.names, self.series.content if outputs else "", order, time=time)
        return kernel(self.of, request, function, *shapes)

    def constraint_slopes(self) -> tuple[SparseMatrix, SparseMatrix]:
        """G, and how Φ changes with p: both of t (1,), p, q and v."""
        r = self.recorded

        def rate(t: Array, p: Array, q: Array, v: Array) -> Array:
            return r.held(q, v, t[0], p)[1]

        def phi(t: Array, p: Array, q: Array, v: Array) -> Array:
            return r.open(q, t[0], p) + 0.0 * t[0]

        shapes = 1, len(r.free), r.nq, r.nv
        return self.kernel("rate", rate, *shapes).jacobian(0, 3), self.kernel("phi", phi, *shapes).jacobian(0, 1)


def checked_finite(rows: Rows, labels: Sequence[str]) -> Rows:
    """The rows, if all their numbers are finite; else an error that names one that is not."""
    for what, array in (("value", rows.values), ("derivative", rows.first), ("second derivative", rows.second)):
        if array is None or np.isfinite(array).all():
            continue
        t, r = (int(x) for x in np.argwhere(~np.isfinite(array))[0][:2])
        raise Undefined(f"{labels[r] if r < len(labels) else 'an output'} has no finite {what} at t = {rows.time[t]:g}")
    return rows
