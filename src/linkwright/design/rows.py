"""Rows of a motion, one a time point: their values, and their derivatives with respect to parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from linkwright.base.types import Floats
from linkwright.design.quantities import Leaf
from linkwright.errors import LinkwrightError
from linkwright.spatial.algebra import Array

if TYPE_CHECKING:
    from linkwright.kernels.kernel import Kernel
    from linkwright.results.solution import Solution
    from linkwright.tape.derivative import SparseMatrix


class Undefined(LinkwrightError):
    """A place at which outputs have no value or no derivative: out of reach of the mechanism, or singular."""


@dataclass(frozen=True, eq=False)
class Rows:
    """values (T, r); first (T, r, k) and second (T, r, k, k) are their derivatives, where they were asked for."""

    time: Floats
    values: Floats
    first: Floats | None = None
    second: Floats | None = None
    solution: Solution | None = None


@dataclass(frozen=True, eq=False)
class Series:
    """Numbers of every time point as a function of what is measured there, of TIME and of the parameters."""

    size: int
    leaves: tuple[Leaf, ...]
    function: Callable[[Mapping[str, Any]], Array]  # names → (size,)
    content: str  # of the function, as a text: equal texts are equal functions

    @property
    def twice(self) -> bool:
        """Whether an acceleration is among the leaves."""
        return any(leaf.again for leaf in self.leaves)

    def chosen(self, values: Array, rates: Array) -> Array:
        """Of what is measured and of how fast it changes, what each leaf means."""
        return np.array([y if leaf.again else x for leaf, x, y in zip(self.leaves, values, rates, strict=True)])

    def of(self, measured: Array, parameters: Mapping[str, Any], t: Any) -> Array:
        """The numbers, where the leaves have these values."""
        named = dict(zip((leaf.name for leaf in self.leaves), measured, strict=True))
        return np.asarray(self.function({**parameters, "TIME": t, **named}))


def differentiated(rows: Kernel, order: int, state: Sequence[Floats], solution: Solution | None = None) -> Rows:
    """The rows of a kernel of t, p and others at states (T, ...), with derivatives in p up to this order."""
    time, values = state[0][:, 0], np.asarray(rows(*state))
    if order == 0:
        return Rows(time, values, solution=solution)
    jacobian = rows.jacobian(0, 1)
    second = second_derivatives(jacobian, 1, *state) if order > 1 else None
    return Rows(time, values, jacobian(*state), second, solution)


def second_derivatives(jacobian: SparseMatrix, wrt: int, *state: Any) -> Floats:
    """(..., m, n, n): of what has this Jacobian in its input number `wrt`."""
    m, n = jacobian.shape
    entries: Floats = jacobian.program.jacobian(0, wrt)(*state)
    dense = np.zeros((*entries.shape[:-2], m, n, n))
    dense[..., jacobian.rows, jacobian.cols, :] = entries
    return dense


class Evaluator(Protocol):
    """A way from values of parameters to rows."""

    names: tuple[str, ...]

    def __call__(self, values: Floats, order: int) -> Rows: ...


def checked_finite(rows: Rows, labels: Sequence[str]) -> Rows:
    """The rows, if all their numbers are finite; else an error that says which are not."""
    for what, array in (("value", rows.values), ("derivative", rows.first), ("second derivative", rows.second)):
        if array is None or np.isfinite(array).all():
            continue
        t, r = (int(x) for x in np.argwhere(~np.isfinite(array))[0][:2])
        raise Undefined(f"{labels[r] if r < len(labels) else 'an output'} has no finite {what} at t = {rows.time[t]:g}")
    return rows
