"""Ways from values of parameters to the rows of a motion, with derivatives by the parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.design.recorded import DesignRequest, Recorded, kernel
from linkwright.errors import LinkwrightError
from linkwright.outputs.derivatives import Rows, Series
from linkwright.spatial.algebra import Array

if TYPE_CHECKING:
    from linkwright.kernels.kernel import Kernel
    from linkwright.mechanism import Mechanism
    from linkwright.tape.derivative import SparseMatrix


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


def checked_finite(rows: Rows, labels: Sequence[str]) -> Rows:
    """The rows, if all their numbers are finite; else an error that names one that is not."""
    for what, array in (("value", rows.values), ("derivative", rows.first), ("second derivative", rows.second)):
        if array is None or np.isfinite(array).all():
            continue
        t, r = (int(x) for x in np.argwhere(~np.isfinite(array))[0][:2])
        raise Undefined(f"{labels[r] if r < len(labels) else 'an output'} has no finite {what} at t = {rows.time[t]:g}")
    return rows
