"""The times of steps of one length from a start to an end; the last step may be shorter."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linkwright.base.arrays import Floats


@dataclass(frozen=True)
class FixedSteps:
    """Steps of dt; a last step of less than a billionth of dt is not counted."""

    begin: float
    end: float
    dt: float

    @property
    def count(self) -> int:
        return max(1, math.ceil((self.end - self.begin) / self.dt * (1.0 - 1e-14) - 1e-9))

    def fill(self, first: int, t: Floats, h: Floats) -> None:
        """Put the times of points first, first + 1, … into t (n + 1,), and the lengths of the steps between into h."""
        n = len(h)
        t[:] = np.arange(first, first + n + 1, dtype=np.float64)
        t *= self.dt
        t += self.begin
        h[:] = self.dt
        if first + n >= self.count:
            t[n] = self.end
            last = self.end - t[n - 1]
            if abs(last - self.dt) > 1e-9 * self.dt * max(1.0, self.count * 1e-6):
                h[n - 1] = last

    def step(self, k: int) -> tuple[float, float, float]:
        """The time at which step k begins, its length, and the time at its end."""
        t, h = np.empty(2), np.empty(1)
        self.fill(k, t, h)
        return float(t[0]), float(h[0]), float(t[1])
