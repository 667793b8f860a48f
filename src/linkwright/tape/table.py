"""Piecewise cubics of one variable: the data behind splines in expressions and tapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.base.locks import cached_property


@dataclass(frozen=True)
class Table:
    """Σ c[k]·(x − breaks[i])^k, k = 0..3, on [breaks[i], breaks[i+1]); the end pieces go on outside."""

    breaks: tuple[float, ...]
    coefficients: tuple[tuple[float, float, float, float], ...]

    @classmethod
    def spline(cls, x: Sequence[float], y: Sequence[float]) -> Table:
        """The natural cubic spline through the points (x, y); a straight line through two points."""
        xs, ys = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        if xs.ndim != 1 or xs.shape != ys.shape or len(xs) < 2:
            raise ValueError("a table needs at least two points, as many x as y")
        if not (np.all(np.isfinite(xs)) and np.all(np.isfinite(ys))):
            raise ValueError("a table's points must be finite")
        h = np.diff(xs)
        if np.any(h <= 0):
            raise ValueError("a table's x must increase")
        slope = np.diff(ys) / h
        n = len(xs)
        second = np.zeros(n)
        if n > 2:
            second[1:-1] = _tridiagonal(2 * (h[:-1] + h[1:]), h[1:-1], 6 * np.diff(slope))
        c1 = slope - h * (2 * second[:-1] + second[1:]) / 6
        pieces = np.stack([ys[:-1], c1, second[:-1] / 2, np.diff(second) / (6 * h)], axis=1)
        return cls(tuple(xs.tolist()), tuple(map(tuple, pieces.tolist())))

    def points(self) -> list[tuple[float, float]]:
        """The points (x, y) at the breaks: the natural spline through them is this table, if it is one at all.

        The last y is not kept anywhere: of the numbers that rounding leaves in doubt, one that gives this table again.
        """
        xs, ys = list(self.breaks), [c[0] for c in self.coefficients]
        y = low = high = float(self(xs[-1]))
        near = [y]
        for _ in range(4):
            low, high = float(np.nextafter(low, -np.inf)), float(np.nextafter(high, np.inf))
            near += [low, high]
        exact = (last for last in near if Table.spline(xs, [*ys, last]) == self)
        return [*zip(xs, ys, strict=False), (xs[-1], next(exact, y))]

    @cached_property
    def is_zero(self) -> bool:
        return not np.any(self.coefficients)

    @cached_property
    def _slope(self) -> Table:
        pieces = tuple((c[1], 2 * c[2], 3 * c[3], 0.0) for c in self.coefficients)
        return Table(self.breaks, pieces)

    def derivative(self) -> Table:
        """The table of the slope."""
        return self._slope

    def __call__(self, x: Any) -> Any:
        """The value at x: a number, an array, or recorded scalars."""
        if hasattr(x, "table") or (isinstance(x, np.ndarray) and x.dtype == object):
            return np.frompyfunc(lambda s: s.table(self) if hasattr(s, "table") else self(s), 1, 1)(x)
        x = np.asarray(x, dtype=float)
        c = np.asarray(self.coefficients)
        i = np.clip(np.searchsorted(self.breaks, x, side="right") - 1, 0, len(c) - 1)
        d = x - np.asarray(self.breaks)[i]
        return ((c[i, 3] * d + c[i, 2]) * d + c[i, 1]) * d + c[i, 0]


def _tridiagonal(middle: Any, beside: Any, right: Any) -> Any:
    """The solution of a symmetric, diagonally dominant tridiagonal system, by elimination."""
    d, y, e = middle.tolist(), right.tolist(), beside.tolist()
    for k in range(1, len(d)):
        factor = e[k - 1] / d[k - 1]
        d[k] -= factor * e[k - 1]
        y[k] -= factor * y[k - 1]
    y[-1] /= d[-1]
    for k in range(len(d) - 2, -1, -1):
        y[k] = (y[k] - e[k] * y[k + 1]) / d[k]
    return np.array(y)
