"""What lies between a controller's command and the plant: a guard, slew, saturation and computation delay."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.checks import positive_number
from linkwright.control.loop.controller import one_or_each
from linkwright.errors import ModelError, ShapeError


class Saturation:
    """Forces within ± limit (N m, N), one number for all n drives or one for each; counts where it acts.

    >>> import numpy as np, linkwright as lw
    >>> lw.control.Saturation(2.0, 2)(0.0, np.array([1.0, -5.0])).tolist()
    [1.0, -2.0]

    Raises `ShapeError` for another number of limits, `ModelError` for limits that are not greater than zero.
    """

    def __init__(self, limit: Any, n: int) -> None:
        self.limit = one_or_each("torque_limit", limit, n)
        if not (self.limit > 0.0).all():
            raise ModelError(f"torque_limit must be greater than zero, not {limit!r}; leave it out for no limit")
        self.counts = np.zeros(n, np.int64)
        self.samples, self.first = 0, math.nan

    def __call__(self, t: float, u: Floats) -> Floats:
        """The forces that the drives can give."""
        cut: Floats = np.minimum(np.maximum(u, -self.limit), self.limit)
        beyond = cut != u
        if beyond.any():
            self.counts += beyond
            if not self.samples:
                self.first = t
            self.samples += 1
        return cut


class Slew:
    """Forces of n drives that change by at most `rate` (N m/s, N/s), every `period` (s), from `last`.

    `last` are the forces that were applied, not those that a limit behind cut: the way back starts at that limit.

    >>> import numpy as np, linkwright as lw
    >>> lw.control.Slew(10.0, 0.1, 1)(np.array([5.0])).tolist()
    [1.0]

    Raises `ModelError` for a rate that is not greater than zero.
    """

    def __init__(self, rate: float, period: float, n: int) -> None:
        self.most, self.last = positive_number("slew", rate) * period, np.zeros(n)

    def __call__(self, u: Floats) -> Floats:
        """The next forces on the way to these."""
        return np.asarray(self.last + np.clip(u - self.last, -self.most, self.most))


class Delay:
    """A command that arrives `delay` periods after its sample, whole or not: 0.5 is half a period, 1 a whole one.

    `first` (n) are the forces before the first command.

    >>> import numpy as np, linkwright as lw
    >>> line = lw.control.Delay(1.0, np.zeros(1))
    >>> [line(np.array([u]))[0][1].tolist() for u in (1.0, 2.0)]
    [[0.0], [1.0]]

    Raises `ModelError` for a delay below 0 or above 1000.
    """

    def __init__(self, delay: float, first: Floats) -> None:
        if not 0.0 <= delay <= 1000.0:
            raise ModelError(f"delay is a number of periods from 0 on, not {delay!r}")
        whole = math.floor(delay + 1e-12)
        part = delay - whole
        self.fraction = part if part > 1e-9 else 0.0
        length = whole + (2 if self.fraction else 1)
        self._line = deque((np.array(first) for _ in range(length)), maxlen=length)

    def __call__(self, u: Floats) -> tuple[tuple[float, Floats], ...]:
        """What acts in the period that begins with this command: parts of the period, and the forces in them."""
        self._line.append(u)
        if not self.fraction:
            return ((1.0, self._line[0]),)
        return ((self.fraction, self._line[0]), (1.0 - self.fraction, self._line[1]))


class Guard:
    """Lets finite commands through; in the place of another it holds the last finite one, and counts."""

    def __init__(self, n: int, patience: int) -> None:
        self.n, self.patience = n, patience
        self.last = np.zeros(n)
        self.count, self.row, self.first = 0, 0, math.nan

    def __call__(self, t: float, command: Any) -> Floats:
        """The command, or the last finite one."""
        try:
            u = np.array(command, dtype=np.float64)
        except (TypeError, ValueError):
            raise ModelError(f"the controller gave {command!r}, which is no array of {self.n} forces") from None
        if u.shape != (self.n,):
            drives = "1 drive" if self.n == 1 else f"{self.n} drives"
            text = f"the controller gave forces of shape {u.shape}; the loop has {drives}, give ({self.n},)"
            raise ShapeError(text, given=u.shape, wanted=(self.n,))
        if math.isfinite(u.dot(u)) or np.isfinite(u).all():
            self.row = 0
            self.last = u
            return u
        if not self.count:
            self.first = t
        self.count += 1
        self.row += 1
        return self.last

    @property
    def tired(self) -> bool:
        """Whether too many in a row were not finite."""
        return self.row >= self.patience
