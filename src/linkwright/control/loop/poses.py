"""`Pose`: the motion of a frame in space, made of a translation and a rotation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.checks import real_array
from linkwright.control.loop.controller import Target
from linkwright.control.loop.references import Hold, Motion
from linkwright.control.loop.turns import turn_matrix, turn_vector, turning
from linkwright.errors import ShapeError


class Pose(Motion):
    """A frame that moves: x is its position and rotation vector (6), ẋ velocity and angular velocity, ẍ their rates.

    `translation` and `rotation` are motions of three numbers, or three numbers: metres in ground's axes, and a rotation
    vector (rad) about ground's axes. With `origin`, a pose (4, 4) such as `mech.pose(q, "plate")`, both are counted
    from there.
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
        """Position and rotation vector, and their motion, at a time."""
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
