"""The motion of a cam's follower over one turn, with exact derivatives, and whether it closes and is smooth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwright.base.arguments import finite_number, shown
from linkwright.base.arrays import Floats
from linkwright.errors import ModelError
from linkwright.model.cam_programmes import cam
from linkwright.model.expression import Expression
from linkwright.model.units import ANGLE, LENGTH, Dimension
from linkwright.tape.build import record

TURN = 2.0 * math.pi
#: Angles at which a motion is looked at, over one turn.
GRID = np.linspace(0.0, TURN, 1441)
JUMP = 1e-7  # of the largest value, what counts as a jump of height or velocity; of accelerations a thousandth
_HALVINGS = 30
_ADVICE = "give [(end, height, law), ...], a function of the cam's angle, or an expression of it"


class CamMotion:
    """A follower's displacement s(θ) over one turn of the cam, with s′ and s″ by the tape.

    `motion` is [(end, height, law), ...] as of `lw.cam`, a function of the angle in NumPy syntax, or an expression of
    one angle, also as a text of `.mks`. Heights are of this dimension.
    """

    def __init__(self, motion: Any, dimension: Dimension = LENGTH) -> None:
        law = _law(motion, dimension)

        def displacement(angle: Any) -> Any:
            height = np.array([law(angle[0])])
            if height.shape != (1,):
                raise ModelError(f"the motion of a cam is one number for one angle, not an array of {height.shape[1:]}")
            return height

        try:
            with np.errstate(all="ignore"):  # of constants; what is not finite is looked for below
                self._program = record(displacement, 1, name="cam_motion").forward().forward()
        except ZeroDivisionError:
            raise ModelError("the motion of the cam divides by zero; give segments and periods a length") from None
        self._check()

    def __call__(self, angles: Floats) -> Floats:
        """(3, n): s, s′ and s″ by the angle (m or rad, and per rad and rad²), at angles (n,) in rad."""
        at = np.ascontiguousarray(angles, dtype=np.float64).reshape(-1, 1)
        one, none = np.ones_like(at), np.zeros_like(at)
        height, rate, _, change = self._program(at, one, one, none)
        return np.stack([height[:, 0], rate[:, 0], change[:, 0]])

    @np.errstate(over="ignore", invalid="ignore")
    def _check(self) -> None:
        values = self(GRID)
        if not np.isfinite(values).all():
            at = GRID[int(np.flatnonzero(~np.isfinite(values).all(axis=0))[0])]
            raise ModelError(f"the motion of the cam or a derivative is no finite number at {degrees(at)}")
        for row, what in enumerate(("displacement", "velocity")):
            scale = max(np.ptp(values[row]), 1e-9 * np.abs(values[row]).max())
            gap = values[row, -1] - values[row, 0]
            if abs(gap) > JUMP * scale:
                text = f"the {what} is {values[row, 0]:.6g} at 0° and {values[row, -1]:.6g} at 360°"
                raise ModelError(f"the motion of the cam does not close: {text}; let it end as it begins")
            at = self.jumps(row)
            if len(at):
                advice = "; join its parts by lw.rise or lw.cam, whose laws begin and end level"
                raise ModelError(f"the {what} of the cam's follower jumps at {degrees(at[0])}{advice}")

    @np.errstate(over="ignore", invalid="ignore")
    def jumps(self, order: int) -> Floats:
        """(k,): the angles at which the derivative of this order jumps (rad)."""
        low, high = GRID[:-1], GRID[1:]
        before, after = self(low)[order], self(high)[order]
        size = max(np.ptp([before, after]), 1e-300)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            between = self(middle)[order]
            left = np.abs(between - before) > np.abs(after - between)
            low, high = np.where(left, low, middle), np.where(left, middle, high)
            before, after = np.where(left, before, between), np.where(left, between, after)
        steps = np.abs(after - before)
        at: Floats = high[steps > size * (JUMP if order < 2 else 1e-3)]
        at = np.where(at > TURN * (1.0 - 1e-9), 0.0, at)
        if order == 2 and not (at == 0.0).any():
            begin, end = self(GRID[[0, -1]])[2]
            if abs(end - begin) > 1e-3 * size:  # from one turn to the next
                at = np.append(at, 0.0)
        at.sort()
        return at


def _law(motion: Any, dimension: Dimension) -> Callable[[Any], Any]:
    """The motion as a function of one angle, over any scalar."""
    if isinstance(motion, str):
        from linkwright.formats.mks.values import symbolic  # weight: lark

        motion = symbolic(motion, "the motion of the cam").expression
    if isinstance(motion, Expression):
        names = sorted(motion.names())
        if len(names) != 1:
            text = f"it has {', '.join(names)}" if names else "it has none"
            raise ModelError(f"the motion of a cam is an expression of one name, its angle; {text}")
        expression, name = motion, names[0]
        return lambda angle: expression.evaluate({name: angle})
    if callable(motion):
        function: Callable[[Any], Any] = motion
        return function
    if isinstance(motion, Sequence) and motion and all(isinstance(x, Sequence) for x in motion):
        segments = [_segment(k, segment, dimension) for k, segment in enumerate(motion, 1)]
        cam(0.0, TURN, *segments)  # refuses those that cannot be
        return lambda angle: cam(angle, TURN, *segments)
    raise ModelError(f"the motion of a cam is {shown(motion)[:80]}; {_ADVICE}")


def _segment(number: int, segment: Sequence[Any], dimension: Dimension) -> tuple[Any, ...]:
    """A segment with its end (rad) and height in SI."""
    if isinstance(segment, str) or len(segment) not in (2, 3):
        raise ModelError(f"segment {number} of the cam is {shown(segment)[:80]}; give (end, height, law)")
    end = size_of(f"the end of segment {number}", segment[0], ANGLE)
    if end > TURN * (1.0 + 1e-12):
        advice = "angles are in radians, or texts such as '90 deg'"
        raise ModelError(f"segment {number} of the cam ends at {end:g} rad, beyond its turn of 2π; {advice}")
    return min(end, TURN), size_of(f"the height of segment {number}", segment[1], dimension), *segment[2:]


def size_of(what: str, size: Any, dimension: Dimension) -> float:
    """A finite number in SI, given as one or as a text with a unit of this dimension; `what` names it in messages."""
    if not isinstance(size, str):
        return finite_number(what, size)

    from linkwright.formats.mks.values import constant  # weight: lark

    number = constant(size, what, dimension).number
    return finite_number(what, math.nan if number is None else number)


def degrees(angle: float) -> str:
    """An angle (rad) in a message."""
    return f"{math.degrees(angle):.4g}°"
