"""Reductions over time: one number of all time points, with its derivatives by the values at these points.

A reduction over an array works along its first axis, the times; cases come second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.model.expression import Call, Expression, Lookup, Name


def _total(x: Floats) -> Floats:
    """The sum over time, one after the other: NumPy's own order of sums depends on how many cases there are."""
    return np.asarray(np.add.accumulate(x, axis=0)[-1]) if len(x) else np.zeros(x.shape[1:])


def _integral(x: Floats, t: Floats) -> Floats:
    return _total(0.5 * (x[1:] + x[:-1]) * np.diff(t)[:, None])


#: Reductions over time: (T, n) and the times (T,) to (n,).
REDUCTIONS: dict[str, Callable[[Floats, Floats], Any]] = {
    "max": lambda x, t: x.max(axis=0),
    "min": lambda x, t: x.min(axis=0),
    "mean": lambda x, t: _total(x) / len(x),
    "rms": lambda x, t: np.sqrt(_total(x * x) / len(x)),
    "final": lambda x, t: x[-1],
    "initial": lambda x, t: x[0],
    "range": lambda x, t: x.max(axis=0) - x.min(axis=0),
    "argmax": lambda x, t: t[np.argmax(x, axis=0)],
    "argmin": lambda x, t: t[np.argmin(x, axis=0)],
    "integral": _integral,
}
#: Reductions that are times, which jump from point to point and have no derivative.
WITHOUT_DERIVATIVE = ("argmax", "argmin")


@dataclass(frozen=True)
class Reduced(Expression):
    """One number of all time points: the reduction `kind` of an expression."""

    kind: str
    inner: Expression

    @property
    def key(self) -> str:
        """The name under which its value is found; no parameter has such a name."""
        return str(self)

    def evaluate(self, names: Mapping[str, Any]) -> Any:
        return names[self.key]

    def names(self) -> frozenset[str]:
        return frozenset((self.key,))

    def __str__(self) -> str:
        return f"{self.kind}({self.inner})"


def outer_parts(expression: Expression) -> Iterator[Expression]:
    """The nodes of an expression outside all reductions, and these reductions, in the order of their appearance."""
    left = [expression]
    while left:
        part = left.pop()
        yield part
        if isinstance(part, Call):
            left.extend(reversed(part.arguments))
        elif isinstance(part, Lookup):
            left.append(part.argument)


def all_parts(expression: Expression) -> Iterator[Expression]:
    """All nodes of an expression, those inside reductions too."""
    for part in outer_parts(expression):
        yield part
        if isinstance(part, Reduced):
            yield from all_parts(part.inner)


def reductions(expression: Expression) -> list[Reduced]:
    """The outermost reductions in an expression, each once."""
    return list(dict.fromkeys(part for part in outer_parts(expression) if isinstance(part, Reduced)))


def names_outside(expression: Expression) -> list[Name]:
    """The names of an expression outside all reductions, each once."""
    return list(dict.fromkeys(part for part in outer_parts(expression) if isinstance(part, Name)))


def weights(kind: str, y: Floats, t: Floats) -> Floats:
    """(T,): how a reduction of y (T,) changes with each time point; not of those in `WITHOUT_DERIVATIVE`."""
    slopes = np.zeros(len(y))
    if kind in ("max", "range"):
        slopes[int(np.argmax(y))] += 1.0
    if kind in ("min", "range"):
        slopes[int(np.argmin(y))] += 1.0 if kind == "min" else -1.0
    if kind == "initial":
        slopes[0] = 1.0
    if kind == "final":
        slopes[-1] = 1.0
    if kind == "mean":
        slopes[:] = 1.0 / len(y)
    if kind == "rms":
        slopes[:] = y / (len(y) * _root(y))
    if kind == "integral" and len(y) > 1:
        slopes[:-1] += 0.5 * np.diff(t)
        slopes[1:] += 0.5 * np.diff(t)
    return slopes


def curvature(kind: str, y: Floats, dy: Floats) -> Any:
    """(k, k): the second derivatives of a reduction along y(p), besides those of y; y is (T,) and dy (T, k).

    Reductions are linear in the values, but for the root of the mean square r: ∂²r = (∂yᵀ∂y/T − ∂r ∂rᵀ) / r.
    """
    if kind != "rms":
        return 0.0
    if not np.any(y):  # a corner, as that of an absolute value
        return np.full((dy.shape[1],) * 2, np.nan)
    n, root = len(y), _root(y)
    first = (y @ dy) / (n * root)
    return (dy.T @ dy) / (n * root) - np.outer(first, first) / root


def _root(y: Floats) -> float:
    return max(float(np.sqrt(np.mean(y**2))), 1e-300)
