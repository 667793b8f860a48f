"""Acceleration feedback: an outer loop that corrects what a controller is to follow by what accelerometers measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arrays import Floats
from linkwright.base.checks import positive_number
from linkwright.control.loop.controller import Measured, Target
from linkwright.errors import ModelError, NameNotFound

WASHOUT = "washout, a frequency in Hz,"


class Compensates(Protocol):
    """A compensator of one axis: the reference and the measured acceleration in, the corrected reference out."""

    def step(self, r: float, y: float, saturated: bool = False) -> float:
        """The corrected reference acceleration for this sample; `saturated`: the drives could not give the last one."""

    def reset(self) -> None:
        """Back to rest."""


class Washout:
    """Acceleration, velocity and position of a correction that fades: s², s and 1 over (s + w)², sampled with a hold.

    The three belong together, so that a reference to which they are added stays a motion; a constant correction
    moves the position by its 1/w² and no further.
    """

    def __init__(self, frequency: float, period: float, n: int) -> None:
        w = 2.0 * np.pi * positive_number(WASHOUT, frequency)
        self.w, self.n = w, n
        fade, h = np.exp(-w * period), period
        # The exact step of x'' = u − 2w x' − w² x with u held.
        self.A = fade * np.array([[1.0 + w * h, h], [-w * w * h, 1.0 - w * h]])
        self.b = np.array([(1.0 - fade * (1.0 + w * h)) / (w * w), fade * h])
        self.reset()

    def reset(self) -> None:
        """Back to rest."""
        self.state = np.zeros((2, self.n))

    def step(self, u: Floats) -> tuple[Floats, Floats, Floats]:
        """Position, velocity and acceleration now, under a correction u that is held over the coming period."""
        x, v = self.state
        a = u - 2.0 * self.w * v - self.w**2 * x
        self.state = self.A @ self.state + self.b[:, None] * u
        return x, v, a


class AccelerationFeedback:
    """What `Corrected(controller, AccelerationFeedback(...))` does to a reference: û = r + washout(K̂(r, y) − r).

    `compensators` maps axes of the reference (0 for x …) to compensators; `sensor` names the accelerometer, whose
    signal has the same axes. The correction of the acceleration is also integrated into velocity and position, through
    a washout (Hz), or the inner controller would hold against it. `excitation` (T, axes of it by `excite`) is added to
    what the compensators want: for identification. Corrections are cut at ± limit (m/s²); a compensator is
    called with saturated=True when its last correction was cut, or the drives could not give their last forces.
    """

    def __init__(
        self,
        compensators: Mapping[int, Compensates] | None = None,
        *,
        sensor: str,
        washout: float = 1.0,
        limit: float = 300.0,
        excitation: Mapping[int, ArrayLike] | None = None,
    ) -> None:
        self.compensators = dict(compensators or {})
        self.excitation = {k: np.asarray(x, dtype=np.float64) for k, x in (excitation or {}).items()}
        for axis, series in self.excitation.items():
            if series.ndim != 1 or not np.isfinite(series).all():
                raise ModelError(f"the excitation of axis {axis} must be a row of finite numbers")
        self.sensor, self.frequency = sensor, positive_number(WASHOUT, washout)
        self.limit = positive_number("limit, an acceleration in m/s²,", limit)
        self.axes: Sequence[int] = sorted({*self.compensators, *self.excitation})
        self._cut = np.zeros(len(self.axes), np.bool_)
        self.signals: dict[str, Any] = {}

    def start(self, measured: Measured) -> None:
        """Prepare for a run."""
        if self.compensators and self.sensor not in measured.signals:
            raise NameNotFound("sensor", self.sensor, list(measured.signals))
        for compensator in self.compensators.values():
            compensator.reset()
        self._cut[:] = False
        self.washout = Washout(self.frequency, measured.period, len(self.axes))

    def __call__(self, k: int, t: float, measured: Measured, target: Target) -> Target:
        """The corrected target."""
        wanted, saturated = np.zeros(len(self.axes)), bool(measured.cut.any())
        for i, axis in enumerate(self.axes):
            r = float(target.xdd[axis])
            if axis in self.compensators:
                y = float(measured.signals[self.sensor][axis])
                wanted[i] = self.compensators[axis].step(r, y, saturated or bool(self._cut[i])) - r
            if axis in self.excitation and k < len(self.excitation[axis]):
                wanted[i] += self.excitation[axis][k]
        correction = np.clip(wanted, -self.limit, self.limit)
        self._cut = correction != wanted
        dx, dv, da = self.washout.step(correction)
        x, xd, xdd = (np.array(part, dtype=np.float64) for part in target)
        for i, axis in enumerate(self.axes):
            x[axis] += dx[i]
            xd[axis] += dv[i]
            xdd[axis] += da[i]
        self.signals = {"correction": da, "reference.xdd": np.array(target.xdd, dtype=np.float64)}
        return Target(x, xd, xdd)
