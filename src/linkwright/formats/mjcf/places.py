"""Where things are in MJCF: orientations in all their forms."""

from __future__ import annotations

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.formats.mjcf.nodes import Node
from linkwright.formats.mjcf.settings import Settings
from linkwright.formats.poses import Pose
from linkwright.model.frames import snapped

_FORMS = ("axisangle", "xyaxes", "zaxis", "euler")


def pose_of(node: Node, settings: Settings) -> Pose:
    """The pose that pos= and an orientation give."""
    return Pose(rotation_of(node, settings), node.vector("pos", (0.0, 0.0, 0.0)))


def rotation_of(node: Node, settings: Settings) -> Floats:
    """The orientation by whichever attribute gives it; none is no turn."""
    forms = [key for key in _FORMS if node.get(key) is not None]
    if len(forms) > 1:
        raise node.fail(f"gives its orientation twice, by {forms[0]} and {forms[1]}; keep one")
    if "axisangle" in forms:
        values = node.vector("axisangle", (0.0,) * 4)
        return about(_unit(node, "axisangle", values[:3]), float(values[3]) * settings.angle)
    if "xyaxes" in forms:
        values = node.vector("xyaxes", (0.0,) * 6)
        x = _unit(node, "xyaxes", values[:3])
        y = _unit(node, "xyaxes", values[3:] - x * (x @ values[3:]))
        return snapped(np.stack([x, y, np.cross(x, y)], axis=1))
    if "zaxis" in forms:
        return along(_unit(node, "zaxis", node.vector("zaxis", (0.0,) * 3)))
    if "euler" in forms:
        angles = node.vector("euler", (0.0,) * 3) * settings.angle
        r = np.eye(3)
        for letter, angle in zip(settings.eulerseq, angles.tolist(), strict=True):
            turn = about(np.eye(3)["xyz".index(letter.lower())], angle)
            r = r @ turn if letter.islower() else turn @ r  # about turned axes, or about those that stay
        return snapped(r)
    return quaternion(node, "quat", node.vector("quat", (1.0, 0.0, 0.0, 0.0)))


def quaternion(node: Node, key: str, q: Floats) -> Floats:
    """The rotation of a quaternion, scalar first, of any length but zero."""
    w, x, y, z = _unit(node, key, q)
    return snapped(
        [
            [w * w + x * x - y * y - z * z, 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), w * w - x * x + y * y - z * z, 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), w * w - x * x - y * y + z * z],
        ]
    )


def about(axis: Floats, angle: float) -> Floats:
    """The turn by an angle about a unit vector."""
    c, s = float(snapped(np.cos(angle))), float(snapped(np.sin(angle)))
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return snapped(c * np.eye(3) + s * cross + (1.0 - c) * np.outer(axis, axis))


def along(axis: Floats) -> Floats:
    """The least turn that takes z to a unit vector."""
    across = np.array([-axis[1], axis[0], 0.0])  # z × axis
    size = float(np.linalg.norm(across))
    if size < 1e-10:
        return np.eye(3) if axis[2] > 0.0 else np.diag([1.0, -1.0, -1.0])
    return about(across / size, float(np.arctan2(size, axis[2])))


def _unit(node: Node, key: str, vector: Floats) -> Floats:
    largest = float(np.abs(vector).max())
    if largest < 1e-14:
        raise node.fail(f"{key}={(node.get(key) or '')[:80]!r} has no direction; give a vector that is not zero")
    scaled = vector / largest
    return np.asarray(scaled / np.sqrt(scaled @ scaled))
