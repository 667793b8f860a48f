"""Motions to follow: position, velocity and acceleration at a time, of joints and of frames in space.

Each has `at(t) -> (x, ẋ, ẍ)`, begins at `start` seconds and rests before. Sums of them are motions too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import finite_number, positive_number, real_array
from linkwright.base.arrays import Floats
from linkwright.control.loop.controller_base import Target
from linkwright.errors import ModelError, ShapeError
from linkwright.spatial.algebra import cross
from linkwright.spatial.rotation import euler_parameters, logarithm


class Motion:
    """A motion: `at(t)` gives position, velocity and acceleration, each (n,)."""

    size: int

    def at(self, t: float) -> Target:
        """Position, velocity and acceleration at the time `t` (s)."""
        raise NotImplementedError

    def table(self, times: ArrayLike) -> Target:
        """The same at many `times` (T,), s: (T, n) each.

        >>> import linkwright as lw
        >>> lw.control.Hold([0.3]).table([0.0, 1.0]).x.tolist()
        [[0.3], [0.3]]
        """
        rows = [self.at(float(t)) for t in np.ravel(np.asarray(times, dtype=np.float64))]
        return Target(*(np.array([row[k] for row in rows]) for k in range(3)))

    def __add__(self, other: Any) -> Motion:
        if not hasattr(other, "at"):
            raise ModelError(f"a motion has at(t); {other!r} has not")
        return Together((self, other))


class Together(Motion):
    """The sum of motions of one width."""

    def __init__(self, parts: Sequence[Any]) -> None:
        sizes = [len(x.at(0.0).x) for x in parts]
        if len(set(sizes)) > 1:
            raise ShapeError(f"motions of the widths {sizes} cannot be added", given=tuple(sizes))
        self.parts, self.size = tuple(parts), sizes[0]

    def at(self, t: float) -> Target:
        """The sum at a time."""
        first, *others = (x.at(t) for x in self.parts)
        return Target(*(sum((f[k] for f in others), first[k]) for k in range(3)))


class Hold(Motion):
    """Rest at a position `x` (n), rad or m.

    >>> import linkwright as lw
    >>> lw.control.Hold([0.3, 0.1]).at(2.0).x.tolist()
    [0.3, 0.1]

    Numbers that are not finite raise `ShapeError`.
    """

    def __init__(self, x: ArrayLike) -> None:
        self.x = _vector("x", x)
        self.size, self._none = len(self.x), np.zeros(len(self.x))

    def at(self, t: float) -> Target:
        """x, and nothing else, at any time `t` (s)."""
        return Target(self.x, self._none, self._none)


class Accelerations(Motion):
    """Motion by `accelerations` (m, n), held for `durations` (m,) seconds each, or for one duration, from rest at x.

    `x` (n) is the initial position (rad or m), `v` (n, or one number) the initial velocity, 0.0, and `start` the time
    (s) of the first acceleration, 0.0. Position and velocity are exact integrals. After the last acceleration the
    velocity stays constant.

    >>> import linkwright as lw
    >>> motion = lw.control.Accelerations([0.0], [[2.0], [-2.0]], 0.5)
    >>> float(motion.at(1.0).x[0])
    0.5

    Raises `ShapeError` for arrays that do not fit, `ModelError` for durations that are not greater than zero.
    """

    def __init__(
        self, x: ArrayLike, accelerations: ArrayLike, durations: ArrayLike, *, v: ArrayLike = 0.0, start: float = 0.0
    ) -> None:
        x0 = _vector("x", x)
        n = self.size = len(x0)
        a = real_array("accelerations", accelerations)
        a = a[:, None] if a.ndim == 1 and n == 1 else a
        if a.ndim != 2 or a.shape[1] != n or not len(a):
            text = f"accelerations has shape {a.shape}; give (m, {n}), a row for each time"
            raise ShapeError(text, given=a.shape, wanted=(None, n))
        lengths = np.broadcast_to(real_array("durations", durations), (len(a),))
        if not np.isfinite(a).all() or not ((lengths > 0.0) & np.isfinite(lengths)).all():
            raise ModelError("accelerations must be finite, and their durations greater than zero")
        self._t = finite_number("start", start) + np.concatenate([[0.0], np.cumsum(lengths)])
        self._a = np.concatenate([a, np.zeros((1, n))])
        rates, places = [_spread("v", v, n)], [x0]
        for row, h in zip(a, lengths, strict=True):
            places.append(places[-1] + h * rates[-1] + 0.5 * h * h * row)
            rates.append(rates[-1] + h * row)
        self._v, self._x = np.array(rates), np.array(places)
        self._none = np.zeros(n)
        self.end = float(self._t[-1])

    def at(self, t: float) -> Target:
        """The motion at the time `t` (s); where two accelerations meet, the later one."""
        # A sample that rounding puts a little before a change belongs to what follows.
        k = int(np.searchsorted(self._t, t + 1e-9 * (1.0 + abs(t)), side="right")) - 1
        if k < 0:
            return Target(self._x[0], self._none, self._none)
        h = t - self._t[k]
        a, v = self._a[k], self._v[k]
        return Target(self._x[k] + h * v + 0.5 * h * h * a, v + h * a, a)


def up_and_down(
    x: ArrayLike, acceleration: ArrayLike, time: float, *, rest: float = 0.0, start: float = 0.0
) -> Accelerations:
    """Straight there and back: `acceleration` for `time`, as much against it, `rest` seconds still, then the way back.

    `x` (n) is the position (rad or m), `acceleration` (n) in rad/s² or m/s², `time` and `rest` in s, `start` the time
    (s) at which the motion begins, 0.0. It goes |acceleration|·time² far and ends at x.

    >>> import linkwright as lw
    >>> motion = lw.control.up_and_down([0.0], [2.0], 0.5)
    >>> float(motion.at(1.0).x[0]), float(motion.at(2.0).x[0])
    (0.5, 0.0)

    Raises `ShapeError` where x and acceleration differ in shape.
    """
    x0, a = _vector("x", x), np.atleast_1d(real_array("acceleration", acceleration))
    if a.shape != x0.shape:
        raise ShapeError(f"acceleration has shape {a.shape}; give {x0.shape}", given=a.shape, wanted=x0.shape)
    pause: list[Any] = [(rest, 0.0 * a)] if rest else []
    parts = [(time, a), (time, -a), *pause, (time, -a), (time, a)]
    return Accelerations(x0, np.array([row for _, row in parts]), [h for h, _ in parts], start=start)


class MinimumJerk(Motion):
    """From `x` (n) to `x_end` (n), rad or m, in `duration` seconds, with the least jerk: s = 10τ³ − 15τ⁴ + 6τ⁵.

    `start` is the time (s) at which the motion begins, 0.0.

    >>> import linkwright as lw
    >>> float(lw.control.MinimumJerk([0.0], [1.0], 2.0).at(1.0).x[0])
    0.5

    Raises `ShapeError` where x and x_end differ in shape, `ModelError` for a duration that is not greater than zero.
    """

    def __init__(self, x: ArrayLike, x_end: ArrayLike, duration: float, *, start: float = 0.0) -> None:
        self.x, end = _vector("x", x), _vector("x_end", x_end)
        if self.x.shape != end.shape:
            raise ShapeError(f"x and x_end have shapes {self.x.shape} and {end.shape}", given=end.shape)
        self.size, self.way = len(self.x), end - self.x
        self.duration, self.start = positive_number("duration", duration), finite_number("start", start)

    def at(self, t: float) -> Target:
        """The motion at the time `t` (s)."""
        s, sd, sdd = smooth_step(t - self.start, self.duration)
        return Target(self.x + s * self.way, sd * self.way, sdd * self.way)


class Curve(Motion):
    """A smooth curve through `points` (m, n), passed in `duration` seconds with minimum-jerk timing.

    It is a cubic spline over the length of its chords, closed smoothly if the last point is the first. `start` is the
    time (s) at which the motion begins, 0.0.

    >>> import linkwright as lw
    >>> curve = lw.control.Curve([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]], 1.0)
    >>> curve.at(0.5).x.round(9).tolist()
    [1.0, 1.0]

    Raises `ShapeError` for fewer than two points, `ModelError` for two equal points one after the other.
    """

    def __init__(self, points: ArrayLike, duration: float, *, start: float = 0.0) -> None:
        from scipy.interpolate import CubicSpline  # type: ignore[import-untyped]  # weight: scipy, which has no types

        p = real_array("points", points)
        if p.ndim != 2 or len(p) < 2 or not np.isfinite(p).all():
            text = f"points must be finite numbers of shape (m, n) with two points or more, not {p.shape}"
            raise ShapeError(text, given=p.shape)
        chords = np.linalg.norm(np.diff(p, axis=0), axis=1)
        if not (chords > 0.0).all():
            k = int(np.argmin(chords))
            raise ModelError(f"points {k} and {k + 1} are the same; leave one of them out")
        self.length = float(chords.sum())
        closed = len(p) > 3 and bool(np.array_equal(p[0], p[-1]))
        ends = "periodic" if closed else "natural"
        self._spline = CubicSpline(np.concatenate([[0.0], np.cumsum(chords) / self.length]), p, bc_type=ends)
        self._slope, self._bend = self._spline.derivative(), self._spline.derivative(2)
        self.duration, self.start = positive_number("duration", duration), finite_number("start", start)
        self.size = p.shape[1]

    def at(self, t: float) -> Target:
        """The motion at the time `t` (s)."""
        s, sd, sdd = smooth_step(t - self.start, self.duration)
        slope = self._slope(s)
        return Target(self._spline(s), sd * slope, sdd * slope + sd * sd * self._bend(s))


class Sine(Motion):
    """x + amplitude·sin(2π f t), faded in over `ramp` seconds with no jump in position, velocity or acceleration.

    `x` (n) is the middle (rad or m), `amplitude` one number or n, `frequency` f in Hz, `ramp` in s, 0.0, and `start`
    the time (s) at which the sine begins, 0.0. With `of="acceleration"` the amplitude is that of the acceleration:
    −amplitude/(2π f)² of the position.

    >>> import linkwright as lw
    >>> sine = lw.control.Sine([1.0], 0.5, 2.0)
    >>> float(sine.at(0.125).x[0]), round(sine.phase(0.125)[0], 6)
    (1.5, 1.570796)

    Raises `ModelError` for a frequency that is not greater than zero, a negative ramp or another `of`.
    """

    def __init__(
        self,
        x: ArrayLike,
        amplitude: ArrayLike,
        frequency: float,
        *,
        of: str = "position",
        ramp: float = 0.0,
        start: float = 0.0,
    ) -> None:
        self.x = _vector("x", x)
        self.size = len(self.x)
        self.frequency = positive_number("frequency", frequency)
        size = _spread("amplitude", amplitude, self.size)
        if of not in ("position", "acceleration"):
            raise ModelError(f"of is 'position' or 'acceleration', not {of!r}")
        self.amplitude = size if of == "position" else -size / (2.0 * math.pi * frequency) ** 2
        self.ramp, self.start = finite_number("ramp", ramp), finite_number("start", start)
        self._none = np.zeros(self.size)
        if self.ramp < 0.0:
            raise ModelError(f"ramp must be a time from 0 on, not {ramp!r}")

    def phase(self, t: float) -> tuple[float, float, float]:
        """The phase (rad) at the time `t` (s), and its rates."""
        w = 2.0 * math.pi * self.frequency
        return w * t, w, 0.0

    def at(self, t: float) -> Target:
        """The motion at the time `t` (s)."""
        t -= self.start
        if t < 0.0:
            return Target(self.x, self._none, self._none)
        p, pd, pdd = self.phase(t)
        y, c = math.sin(p), math.cos(p)
        yd, ydd = c * pd, c * pdd - y * pd * pd
        if self.ramp > 0.0 and t < self.ramp:
            g, gd, gdd = smooth_step(t, self.ramp)
            y, yd, ydd = g * y, gd * y + g * yd, gdd * y + 2.0 * gd * yd + g * ydd
        return Target(self.x + y * self.amplitude, yd * self.amplitude, ydd * self.amplitude)


class Sweep(Sine):
    """A sine whose frequency goes from `first` to `last` Hz in `duration` seconds, evenly, and stays there.

    `x`, `amplitude`, `ramp` and `start` are those of `Sine`.

    >>> import math, linkwright as lw
    >>> sweep = lw.control.Sweep([0.0], 1.0, first=1.0, last=3.0, duration=2.0)
    >>> round(sweep.phase(2.0)[1] / (2.0 * math.pi), 9)
    3.0

    Raises `ModelError` for frequencies or a duration that are not greater than zero.
    """

    def __init__(
        self,
        x: ArrayLike,
        amplitude: ArrayLike,
        first: float,
        last: float,
        duration: float,
        *,
        ramp: float = 0.0,
        start: float = 0.0,
    ) -> None:
        super().__init__(x, amplitude, first, ramp=ramp, start=start)
        self.last, self.duration = positive_number("last", last), positive_number("duration", duration)

    def phase(self, t: float) -> tuple[float, float, float]:
        """The phase (rad) at the time `t` (s), and its rates."""
        slope, h = (self.last - self.frequency) / self.duration, min(t, self.duration)
        turns = self.frequency * h + 0.5 * slope * h * h + self.last * (t - h)
        bend = slope if t < self.duration else 0.0
        return 2.0 * math.pi * turns, 2.0 * math.pi * (self.frequency + slope * h), 2.0 * math.pi * bend


def smooth_step(t: float, h: float) -> tuple[float, float, float]:
    """10x³ − 15x⁴ + 6x⁵ with x = t/h, and its two derivatives by t; 0 before and 1 after."""
    x = t / h
    if x <= 0.0:
        return 0.0, 0.0, 0.0
    if x >= 1.0:
        return 1.0, 0.0, 0.0
    y = x * x
    rate, bend = 30.0 * y * (1.0 - x) ** 2, 60.0 * x * (1.0 - x) * (1.0 - 2.0 * x)
    return y * x * (10.0 - 15.0 * x + 6.0 * y), rate / h, bend / (h * h)


def _vector(name: str, numbers: ArrayLike) -> Floats:
    array = np.atleast_1d(real_array(name, numbers).copy())
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ShapeError(f"{name} must be finite numbers (n,), not {numbers!r}", given=array.shape)
    return array


def _spread(name: str, numbers: ArrayLike, n: int) -> Floats:
    array = real_array(name, numbers)
    if array.shape not in ((), (1,), (n,)) or not np.isfinite(array).all():
        raise ShapeError(f"{name} must be one finite number or {n} of them, not {numbers!r}", given=array.shape)
    return np.array(np.broadcast_to(array, (n,)))


def turn_matrix(r: Floats) -> Floats:
    """The rotation matrix of a rotation vector (rad).

    That of `spatial.rotation.exponential`, of plain numbers: controllers ask for it at every sample, and this takes a
    tenth of the time.
    """
    x, y, z = float(r[0]), float(r[1]), float(r[2])
    square = x * x + y * y + z * z
    if square < 1e-8:
        s, c = 1.0 - square / 6.0, 0.5 - square / 24.0
    else:
        angle = math.sqrt(square)
        s, c = math.sin(angle) / angle, (1.0 - math.cos(angle)) / square
    cx, cy, cz = c * x, c * y, c * z
    sx, sy, sz = s * x, s * y, s * z
    return np.array(
        [
            [1.0 - cy * y - cz * z, cx * y - sz, cx * z + sy],
            [cx * y + sz, 1.0 - cx * x - cz * z, cy * z - sx],
            [cx * z - sy, cy * z + sx, 1.0 - cx * x - cy * y],
        ]
    )


def turn_vector(m: Floats) -> Floats:
    """The rotation vector of a rotation matrix, at most a half turn: `logarithm` of plain numbers, for their speed."""
    x, y, z = 0.5 * (m[2, 1] - m[1, 2]), 0.5 * (m[0, 2] - m[2, 0]), 0.5 * (m[1, 0] - m[0, 1])
    cosine = 0.5 * (m[0, 0] + m[1, 1] + m[2, 2] - 1.0)
    sine = math.sqrt(x * x + y * y + z * z)
    if cosine < -0.9:  # the axis is lost in the difference there
        return np.asarray(logarithm(euler_parameters(m)), dtype=np.float64)
    factor = 1.0 + sine * sine / 6.0 if sine < 1e-4 else math.atan2(sine, cosine) / sine
    return np.array([factor * x, factor * y, factor * z])


def turning(r: Floats, rd: Floats, rdd: Floats) -> tuple[Floats, Floats]:
    """Angular velocity and acceleration, in the fixed axes, of the rotation exp(r) whose vector moves as given.

    ω = ṙ + A r×ṙ + B r×(r×ṙ) with A = (1 − cos θ)/θ² and B = (θ − sin θ)/θ³.
    """
    square = float(r @ r)
    if square < 1e-4:
        a, b = 0.5 - square / 24.0 + square**2 / 720.0, 1.0 / 6.0 - square / 120.0 + square**2 / 5040.0
        da, db = -1.0 / 12.0 + square / 180.0, -1.0 / 60.0 + square / 1260.0
    else:
        angle = math.sqrt(square)
        s, c = math.sin(angle), math.cos(angle)
        a, b = (1.0 - c) / square, (angle - s) / (square * angle)
        da, db = (angle * s - 2.0 * (1.0 - c)) / square**2, (3.0 * s - 2.0 * angle - angle * c) / (square**2 * angle)
    along = float(r @ rd)  # θ θ̇, so that Ȧ = da·along
    plain, plain_rate = r.tolist(), rd.tolist()  # Python's numbers multiply faster one by one
    first = cross(plain, plain_rate)
    second = cross(plain, first.tolist())
    bend = cross(plain, rdd.tolist())
    omega = rd + a * first + b * second
    alpha = rdd + da * along * first + a * bend + db * along * second
    return omega, alpha + b * (cross(plain_rate, first.tolist()) + cross(plain, bend.tolist()))


class Pose(Motion):
    """A frame that moves: x is its position and rotation vector (6), ẋ velocity and angular velocity, ẍ their rates.

    `translation` and `rotation` are motions of three numbers, or three numbers, zero unless given: metres in ground's
    axes, and a rotation vector (rad) about ground's axes. With `origin`, a pose (4, 4) such as `mech.pose(q, "plate")`,
    both are counted from there.

    >>> import linkwright as lw
    >>> lw.control.Pose([0.1, 0.0, 0.5]).at(0.0).x.tolist()
    [0.1, 0.0, 0.5, 0.0, 0.0, 0.0]

    Raises `ShapeError` for other numbers of numbers.
    """

    size = 6

    def __init__(self, translation: Any = None, rotation: Any = None, *, origin: ArrayLike | None = None) -> None:
        self.translation, self.rotation = _motion("translation", translation), _motion("rotation", rotation)
        base = np.eye(4) if origin is None else real_array("origin", origin).copy()
        if base.shape != (4, 4):
            raise ShapeError(f"origin has shape {base.shape}; give a pose (4, 4)", given=base.shape, wanted=(4, 4))
        self._place, self._axes = base[:3, 3].copy(), base[:3, :3].copy()
        self._turned = bool(np.abs(self._axes - np.eye(3)).max() > 1e-15)
        self._still = isinstance(self.rotation, Hold)
        first = self.rotation.at(0.0).x
        self._vector = turn_vector(turn_matrix(first) @ self._axes) if self._turned else first

    def at(self, t: float) -> Target:
        """Position and rotation vector, and their motion, at the time `t` (s)."""
        place, v, a = self.translation.at(t)
        x, xd, xdd = np.zeros(6), np.zeros(6), np.zeros(6)
        x[:3], xd[:3], xdd[:3] = place + self._place, v, a
        if self._still:
            x[3:] = self._vector
            return Target(x, xd, xdd)
        r, rd, rdd = self.rotation.at(t)
        x[3:] = turn_vector(turn_matrix(r) @ self._axes) if self._turned else r
        xd[3:], xdd[3:] = turning(r, rd, rdd)
        return Target(x, xd, xdd)


def _motion(name: str, part: Any) -> Any:
    motion = part if hasattr(part, "at") else Hold(np.zeros(3) if part is None else part)
    shape = np.shape(motion.at(0.0).x)
    if shape != (3,):
        raise ShapeError(f"{name} has {shape} numbers at a time; give three", given=shape, wanted=(3,))
    return motion
