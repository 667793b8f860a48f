"""What is added to a controller: friction compensation, acceleration feedback, sampled compensators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import check_names, positive_number
from linkwright.base.arrays import Floats
from linkwright.control.loop.controller_base import Controller, Measured, Target, gains
from linkwright.control.loop.plant import joint_positions
from linkwright.errors import ModelError, NameNotFound, ShapeError

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism


def friction(
    static: ArrayLike = 0.0,
    viscous: ArrayLike = 0.0,
    *,
    velocity_scale: float = 0.01,
    joints: Sequence[str] | str | None = None,
    of: Literal["measured", "reference"] = "measured",
    mech: Mechanism | None = None,
) -> Friction:
    """Compensation static·tanh(ω/velocity_scale) + viscous·ω of joints, as a `Controller`.

    Add it to a controller: `dynamic + lw.control.friction(60.0, 100.0)`.

    - `static` (N m), `viscous` (N m s/rad): one number or one for each joint; 0.0. `velocity_scale`: rad/s, 0.01.
    - `joints`: names out of the loop's encoders or drives; all of them unless given.
    - `of`: ω is the "measured" rate, or with "reference" the one that the controller beside it wants, which has no
      noise and is ahead of the motion.
    - `mech`: needed for `law` alone; none.

    >>> import linkwright as lw
    >>> arm = lw.chain(1)
    >>> law = lw.control.friction(2.0, 0.5, mech=arm).law()
    >>> law(0.0, [0.0], 1.0).round(6).tolist()
    [2.5]

    Raises `ModelError`, `ShapeError` or `NameNotFound` for arguments that cannot be used, some of them when a run
    starts.
    """
    return Friction(static, viscous, velocity_scale, joints, of, mech)


class Friction(Controller):
    """See `friction`."""

    def __init__(
        self, static: ArrayLike, viscous: ArrayLike, scale: float, joints: Any, of: str, mech: Mechanism | None
    ) -> None:
        self.scale = positive_number("velocity_scale, a rate in rad/s,", scale)
        check_names("rate", [of], ["measured", "reference"])
        self.joints = None if joints is None else ((joints,) if isinstance(joints, str) else tuple(joints))
        self.static, self.viscous, self.of, self.mech = static, viscous, of, mech
        if self.joints is not None:
            gains("static", static, len(self.joints))
            gains("viscous", viscous, len(self.joints))
        self._static, self._viscous = np.zeros(0), np.zeros(0)

    def start(self, measured: Measured) -> Any:
        """Find the named joints among those of the loop."""
        n = len(measured.applied)
        if len(measured.q) != n:
            text = f"{len(measured.q)} joints are measured and {n} driven; friction needs one measured for each drive"
            raise ModelError(text)
        self._static, self._viscous = np.zeros(n), np.zeros(n)
        at = list(range(n))
        if self.joints is not None:
            at = [_position(name, measured) for name in self.joints]
        self._static[at], self._viscous[at] = (
            gains(name, x, len(at)) for name, x in (("static", self.static), ("viscous", self.viscous))
        )

    def follow(self, t: float, measured: Measured, target: Target | None) -> Floats:
        """The forces against friction."""
        rates: Any = measured.v
        if self.of == "reference":
            rates = None if self.leader is None else self.leader.desired_rates
            if rates is None or np.shape(rates) != measured.v.shape:
                text = "friction(of='reference') is added behind a controller that knows the rates it wants"
                raise ModelError(f"{text}: computed_torque, resolved_acceleration or pid of joints")
        return np.asarray(self._static * np.tanh(rates / self.scale) + self._viscous * rates)

    def law(self) -> Callable[[Any, Any, Any], Any]:
        """tau(t, q, v), of the joints' own rates; in NumPy syntax, so that it can be recorded."""
        if self.mech is None:
            raise ModelError("a law of friction needs the mechanism; give mech=...")
        names, _, at = joint_positions(self.mech, self.joints, "joints")
        static, viscous = (np.zeros(self.mech.nv) for _ in range(2))
        static[at], viscous[at] = gains("static", self.static, len(names)), gains("viscous", self.viscous, len(names))
        scale = self.scale
        return lambda t, q, v: static * np.tanh(v / scale) + viscous * v


def _position(name: str, measured: Measured) -> int:
    for names in (measured.joints, measured.drives):
        if name in names:
            return names.index(name)
    raise NameNotFound("measured or driven joint", name, [*measured.joints, *measured.drives])


_product, _sum = np.matmul, np.add.reduce


class Compensator:
    """u from (r, y), sample by sample: x⁺ = A x + B [r; y], u = C x + D [r; y].

    - `A` (n, n), `B` (n, inputs), `C` (outputs, n), `D` (outputs, inputs): a sampled system.
    - `references`: how many of the inputs, the first, are references r; the others are measured, y.
    - `feedback`: the first state of the feedback controller; 0.

    An input that is not finite leaves states and output as they were; `held` counts those steps. While the caller says
    that the last output was saturated, the states from `feedback` on are held, so that they do not wind up; the
    reference's way and the filters go on; `saturated` counts those steps.

    >>> import linkwright as lw
    >>> compensator = lw.control.Compensator([[0.5]], [[1.0, -1.0]], [[1.0]], [[2.0, 0.0]], references=1)
    >>> compensator.step(1.0, 0.0), compensator.step(0.0, 0.0)
    (2.0, 1.0)
    >>> compensator.reset()

    Raises `ShapeError` for more references than inputs.
    """

    def __init__(
        self, A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike, *, references: int, feedback: int = 0
    ) -> None:
        D = np.atleast_2d(np.asarray(D, dtype=float))
        self.outputs, inputs = D.shape
        n = np.asarray(A).shape[0] if np.asarray(A).size else 0
        self.order, self.references, self.feedback = n, references, feedback
        if not 0 <= references <= inputs:
            raise ShapeError(f"of {inputs} inputs {references} cannot be references")
        top = np.hstack([np.reshape(A, (n, n)), np.reshape(B, (n, inputs))])
        self._matrix = np.ascontiguousarray(np.vstack([top, np.hstack([np.reshape(C, (self.outputs, n)), D])]))
        self._now = np.zeros(n + inputs)
        self._next = np.zeros(n + self.outputs)
        self._single = self.outputs == 1
        self._reference, self._measured = slice(n, n + references), slice(n + references, None)
        self.reset()

    def reset(self) -> None:
        """All states and the output zero, counts too."""
        self._now[:] = 0.0
        self._next[:] = 0.0
        self._last: Any = 0.0 if self._single else np.zeros(self.outputs)
        self.held = 0
        self.saturated = 0

    @property
    def state(self) -> Floats:
        """A copy of the states."""
        return self._now[: self.order].copy()

    def step(self, r: Any, y: Any, saturated: bool = False) -> Any:
        """The output for `r` and `y`, and the states of the next sample; one output is a float, several an array."""
        now, after = self._now, self._next
        now[self._reference] = r
        now[self._measured] = y
        _product(self._matrix, now, after)
        # One number that is not finite makes the sum not finite.
        if not isfinite(_sum(after)):
            return self._hold()
        if saturated:
            now[: self.feedback] = after[: self.feedback]
            self.saturated += 1
        else:
            now[: self.order] = after[: self.order]
        self._last = after[self.order :].copy() if not self._single else float(after[-1])
        return self._last

    def _hold(self) -> Any:
        self.held += 1
        if np.isfinite(self._now).all():
            # Finite inputs, and yet: only the states of an unstable compensator grow that far. It starts afresh.
            self._now[:] = 0.0
        return self._last


WASHOUT = "washout, a frequency in Hz,"


class Compensates(Protocol):
    """A compensator of one axis: the reference and the measured acceleration in, the corrected reference out."""

    def step(self, r: float, y: float, saturated: bool = False) -> float:
        """The corrected reference acceleration for this sample; `saturated`: the drives could not give the last one."""

    def reset(self) -> None:
        """Back to rest."""


class Washout:
    """Acceleration, velocity and position of a correction that fades: s², s and 1 over (s + w)², sampled with a hold.

    `frequency` is w/2π (Hz), `period` that of the samples (s), `n` the number of axes. The three belong together, so
    that a reference to which they are added stays a motion; a constant correction moves the position by its 1/w² and no
    further.

    >>> import numpy as np, linkwright as lw
    >>> washout = lw.control.Washout(1.0, 0.01, 1)
    >>> position, velocity, acceleration = washout.step(np.array([2.0]))
    >>> acceleration.tolist()
    [2.0]
    >>> washout.reset()

    Raises `ModelError` for a frequency that is not greater than zero.
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
        """Position, velocity and acceleration now, under a correction `u` (n) that is held over the coming period."""
        x, v = self.state
        a = u - 2.0 * self.w * v - self.w**2 * x
        self.state = self.A @ self.state + self.b[:, None] * u
        return x, v, a


class AccelerationFeedback:
    """What `Corrected(controller, AccelerationFeedback(...))` does to a reference: û = r + washout(K̂(r, y) − r).

    - `compensators`: maps axes of the reference (0 for x …) to compensators; none unless given.
    - `sensor`: names the accelerometer, whose signal has the same axes.
    - `washout` (Hz): the correction of the acceleration is also integrated into velocity and position, through a
      washout, or the inner controller would hold against it; 1.0.
    - `limit` (m/s²): corrections are cut at ± limit; 300.0. A compensator is called with saturated=True when its last
      correction was cut, or the drives could not give their last forces.
    - `excitation`: maps axes to series (T) that are added to what the compensators want: for identification; none.

    >>> import linkwright as lw
    >>> arm = lw.chain(1)
    >>> inner = lw.control.computed_torque(arm, 100.0, 20.0, lw.control.Hold([0.0]))
    >>> shaken = lw.control.AccelerationFeedback(sensor="tip", excitation={0: lw.control.m_sequence(5)})
    >>> lw.control.Loop(arm, lw.control.Corrected(inner, shaken)).run(0.05).signals["correction"].shape
    (26, 1)

    Raises `ModelError` for numbers that cannot be used; a run raises `NameNotFound` for a sensor that it has not.
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
        """Prepare for a run with what is `measured` first; a `Loop` calls it.

        >>> import numpy as np, linkwright as lw
        >>> measured = lw.control.Measured(1e-3, np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1))
        >>> lw.control.AccelerationFeedback(sensor="tip").start(measured)
        """
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
