"""What is measured on responses: delay, overshoot, steady error, vibration, distance from a path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import real_array
from linkwright.base.arrays import Floats
from linkwright.errors import ModelError


@dataclass(frozen=True)
class Move:
    """How a measured position follows a reference from one place to another, as `move` gives it.

    `delay` (s) lies between the two passing half of the way, `overshoot` is beyond the end of the reference,
    `steady_error` the mean distance from the reference over the last part, `rms_error` over the whole response (the
    position's unit).

    >>> import linkwright as lw
    >>> lw.control.Move(0.02, 0.001, 0.0, 0.003).delay
    0.02

    Plain numbers; nothing is checked.
    """

    delay: float  # between the two passing half of the way
    overshoot: float  # beyond the end of the reference
    steady_error: float  # the mean distance from the reference over the last part
    rms_error: float  # over the whole response


def crossing_time(time: ArrayLike, value: ArrayLike, level: float, *, after: float | None = None) -> float:
    """When a series first reaches a `level` (from below if the level is positive, from above if negative), s.

    `time` (T) in s, `value` (T); `after` is a time (s) before which the level does not count, None by default. Between
    two samples the series is taken as straight. The result is NaN where the level is not reached.

    >>> import linkwright as lw
    >>> lw.control.crossing_time([0.0, 1.0, 2.0], [0.0, 1.0, 3.0], 2.0)
    1.5

    Raises `ModelError` where time and value are not rows of one length.
    """
    t, y = _pair(time, value)
    rising = y if level >= 0.0 else -y
    reached = rising >= abs(level)
    if after is not None:
        reached &= t >= after
    if not reached.any():
        return float("nan")
    k = int(np.argmax(reached))
    if k == 0 or rising[k] == rising[k - 1] or rising[k - 1] >= abs(level):
        return float(t[k])
    part = (abs(level) - rising[k - 1]) / (rising[k] - rising[k - 1])
    return float(t[k - 1] + part * (t[k] - t[k - 1]))


def t50(time: ArrayLike, value: ArrayLike, step: float, *, start: float = 0.0) -> float:
    """The time (s) from a step of the reference at `start` (s, 0.0) to half of its size `step` in the response.

    >>> import linkwright as lw
    >>> lw.control.t50([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], 2.0)
    1.0

    `time` and `value` (T) are those of `crossing_time`, and so are the errors.
    """
    return crossing_time(time, value, 0.5 * step, after=start) - start


def vibration(time: ArrayLike, value: ArrayLike, window: tuple[float, float]) -> float:
    """Half of the distance between the highest and the lowest value in a window of time.

    `time` (T) in s, `value` (T), `window` two times (s).

    >>> import linkwright as lw
    >>> lw.control.vibration([0.0, 1.0, 2.0, 3.0], [5.0, 1.0, 2.0, 1.5], (1.0, 3.0))
    0.5

    Raises `ModelError` where the window holds fewer than three samples.
    """
    t, y = _pair(time, value)
    inside = y[(t >= window[0]) & (t <= window[1])]
    if len(inside) < 3:
        raise ModelError(f"the window {window[0]:g} … {window[1]:g} s holds {len(inside)} samples; give a longer one")
    return float(np.ptp(inside) / 2.0)


def move(time: ArrayLike, reference: ArrayLike, value: ArrayLike, *, last: float = 0.1) -> Move:
    """The measures of a move, as a `Move`; its end is judged over the `last` seconds, 0.1.

    `time` (T) in s, `reference` and `value` (T) in rad or m.

    >>> import linkwright as lw
    >>> lw.control.move([0.0, 1.0, 2.0], [0.0, 1.0, 1.0], [0.0, 0.5, 1.25], last=0.5).steady_error
    0.25

    Raises `ModelError` where the reference ends at its first value, or arrays differ in length.
    """
    t, y = _pair(time, value)
    r = _pair(time, reference)[1]
    way = r[-1] - r[0]
    if way == 0.0:
        raise ModelError("the reference ends where it begins: give a move with a way to go")
    end = t >= t[-1] - last
    sign = np.sign(way)
    half = 0.5 * way
    delay = crossing_time(t, y - r[0], half) - crossing_time(t, r - r[0], half)
    return Move(
        delay=delay,
        overshoot=float(max(np.max(sign * (y - r[-1])), 0.0)),
        steady_error=float(abs(np.mean(y[end] - r[end]))),
        rms_error=float(np.sqrt(np.mean((y - r) ** 2))),
    )


def path_error(reference: ArrayLike, value: ArrayLike) -> float:
    """The largest distance of a path `value` (T, n) from the curve of `reference` (S, n), at whatever time.

    >>> import linkwright as lw
    >>> lw.control.path_error([[0.0, 0.0], [2.0, 0.0]], [[0.5, 0.1], [1.0, 0.3]])
    0.3

    Raises `ModelError` for arrays that are not (points, dimensions) with the same number of dimensions.
    """
    r, y = real_array("reference", reference), real_array("value", value)
    if r.ndim != 2 or y.ndim != 2 or r.shape[1] != y.shape[1] or len(r) < 2:
        raise ModelError(f"paths are arrays (points, dimensions) of one dimension, not {r.shape} and {y.shape}")
    along = np.diff(r, axis=0)
    length = np.sum(along * along, axis=1)
    length[length == 0.0] = 1.0
    worst = 0.0
    for point in y:
        part = np.clip(np.sum((point - r[:-1]) * along, axis=1) / length, 0.0, 1.0)
        gap = point - (r[:-1] + part[:, None] * along)
        worst = max(worst, float(np.min(np.sum(gap * gap, axis=1))))
    return float(np.sqrt(worst))


def _pair(time: ArrayLike, value: ArrayLike) -> tuple[Floats, Floats]:
    t, y = real_array("time", time), real_array("value", value)
    if t.ndim != 1 or t.shape != y.shape or not len(t):
        raise ModelError(f"time and value must be rows of one length, not {t.shape} and {y.shape}")
    return t, y
