"""A curve over time as Chebyshev polynomials on intervals that are halved until each follows the curve: its integral,
its peaks and the extremes of what it stores, without a print interval in them. It computes no curve itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev

from linkwright.base.arrays import Floats

DEGREE = 16
FIRST = 12  # intervals
#: The last coefficients of an interval's polynomial against the largest value of the curve; and those that halving does
#: not make smaller, at kinks and for rounding.
CLOSE, ROUNDING = 1e-11, 1e-8
#: Rounds of halving, and intervals: a jump is enclosed to 2⁻³⁰ of an interval.
ROUNDS, MOST = 30, 2000
#: cos(k π / n), from −1 to 1, and from values there to coefficients.
_NODES = -np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE)
_FITTED = np.linalg.inv(chebyshev.chebvander(_NODES, DEGREE))


@dataclass(frozen=True, eq=False)
class CycleCurve:
    """A curve between `edges` (n + 1,) of time (s) by the Chebyshev `coefficients` (n, DEGREE + 1) of each interval."""

    edges: Floats
    coefficients: Floats

    @classmethod
    def of(cls, function: Callable[[Floats], Floats], start: float, end: float, size: float = 0.0) -> CycleCurve:
        """Of a function that takes times (T,), which grow and begin at `start`, and returns values (T,).

        Values are as close as if the largest were at least `size`, so that rounding of a zero curve is not followed.
        """
        bounds = np.linspace(start, end, FIRST + 1)
        pending = [(low, high, np.inf) for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]
        pieces: list[tuple[float, float, Floats]] = []
        largest = size
        for turn in range(ROUNDS + 1):
            ends = np.array([(low, high) for low, high, _ in pending])
            nodes = ends.mean(axis=1)[:, None] + 0.5 * np.diff(ends, axis=1) * _NODES
            nodes[:, 0], nodes[:, -1] = ends.T
            # A motion is followed from its start on: the edges so far lie between its times.
            edges = [edge for low, high, _ in pieces for edge in (low, high)]
            times = np.unique(np.concatenate([[start], edges, nodes.reshape(-1)]))
            values = function(times)[np.searchsorted(times, nodes)]
            largest = max(largest, float(np.max(np.abs(values))))
            last = turn == ROUNDS or len(pieces) + 2 * len(pending) > MOST
            divided = []
            for (low, high, before), y in zip(pending, values, strict=True):
                c = _FITTED @ y
                tail = float(np.abs(c[-2:]).max())
                if tail <= CLOSE * largest or (tail <= ROUNDING * largest and tail > 0.25 * before):
                    pieces.append((low, high, c))
                elif last:  # across a jump, a straight line
                    line = np.zeros(DEGREE + 1)
                    line[:2] = 0.5 * (y[0] + y[-1]), 0.5 * (y[-1] - y[0])
                    pieces.append((low, high, line))
                else:
                    middle = 0.5 * (low + high)
                    divided += [(low, middle, tail), (middle, high, tail)]
            pending = divided
            if not pending:
                break
        pieces.sort(key=lambda piece: piece[0])
        return cls(np.array([*(low for low, _, _ in pieces), end]), np.array([fitted for _, _, fitted in pieces]))

    @property
    def _halves(self) -> Floats:
        """Half the length of each interval."""
        return 0.5 * np.diff(self.edges)

    @property
    def duration(self) -> float:
        """Of all intervals (s)."""
        return float(self.edges[-1] - self.edges[0])

    def mean(self) -> float:
        """The integral over the duration, divided by the duration."""
        return self._integral(self.coefficients) / self.duration

    def rms(self) -> float:
        """The root of the mean square."""
        squares = np.zeros((len(self.coefficients), 2 * DEGREE + 1))
        for square, c in zip(squares, self.coefficients, strict=True):
            product = chebyshev.chebmul(c, c)  # without zeros at its end
            square[: len(product)] = product
        return float(np.sqrt(max(self._integral(squares), 0.0) / self.duration))

    def _integral(self, coefficients: Floats) -> float:
        order = np.arange(0, coefficients.shape[1], 2)
        return float(self._halves @ (coefficients[:, ::2] @ (2.0 / (1.0 - order**2))))

    def extremes(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """(time, value) where the curve is least, and where it is greatest."""
        return self._extremes(self.coefficients)

    def stored_extremes(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """(time, value) of the least and the greatest integral of the curve less its mean, from the start on."""
        level = self.coefficients.copy()
        level[:, 0] -= self.mean()
        pieces = chebyshev.chebint(level, lbnd=-1, axis=1) * self._halves[:, None]
        ends = np.cumsum(pieces.sum(axis=1))
        pieces[1:, 0] += ends[:-1]
        return self._extremes(pieces)

    def _extremes(self, coefficients: Floats) -> tuple[tuple[float, float], tuple[float, float]]:
        """At edges, and where the derivative is zero."""
        points: list[tuple[float, float]] = []
        for low, half, c in zip(self.edges[:-1].tolist(), self._halves.tolist(), coefficients, strict=True):
            slope = chebyshev.chebder(c)
            small = np.abs(slope) > 1e-14 * np.abs(slope).max(initial=0.0)
            roots = chebyshev.chebroots(slope[: int(np.flatnonzero(small).max(initial=0)) + 1])
            inside = roots[(np.abs(roots.imag) < 1e-6) & (np.abs(roots.real) <= 1.0)].real
            at = np.array([-1.0, 1.0, *inside])
            points += zip((low + half * (at + 1.0)).tolist(), chebyshev.chebval(at, c).tolist(), strict=True)
        return min(points, key=lambda point: point[1]), max(points, key=lambda point: point[1])


def time_weights(time: Floats) -> Floats:
    """(T,): the part that each of the time points has in a mean over the time, by trapezoids."""
    if len(time) == 1:
        return np.ones(1)
    half = 0.5 * np.diff(time)
    return np.asarray((np.append(half, 0.0) + np.append(0.0, half)) / (time[-1] - time[0]))
