"""Rotations, and joints put into the positions of closed forms: shared by the models of parallel machines."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from linkwright import Mechanism
from linkwright.base.arrays import Floats


def about(axis: int, angle: float) -> Floats:
    """The rotation matrix of a turn by an angle (rad) about coordinate axis 0, 1 or 2."""
    matrix, plane = np.eye(3), [(axis + 1) % 3, (axis + 2) % 3]
    matrix[np.ix_(plane, plane)] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return matrix


def universal_angles(along: Floats) -> tuple[float, float]:
    """The two angles (rad) of a universal joint whose link lies along the unit vector `along` of the fixed axes.

    The first turn is about z, the second about y of the turned axes; the link lies along x at zero angles.
    """
    return float(np.arctan2(along[1], along[0])), float(-np.arcsin(np.clip(along[2], -1.0, 1.0)))


def universal_rates(along: Floats, change: Floats) -> Floats:
    """The rates (2, rad/s) of these angles where `along` changes by `change` (1/s)."""
    flat = along[0] ** 2 + along[1] ** 2
    return np.array([(along[0] * change[1] - along[1] * change[0]) / flat, -change[2] / np.sqrt(flat)])


def universal_spin(first: float, rates: Floats) -> Floats:
    """The angular velocity (3) of the link, in the fixed axes, at a first angle (rad) and rates (2) of both angles."""
    return np.array([-np.sin(first) * rates[1], np.cos(first) * rates[1], rates[0]])


def put(mech: Mechanism, q: Floats, v: Floats, name: str, position: ArrayLike, rate: ArrayLike) -> None:
    """Set the coordinates and the rates of a joint, by its name, in q and v."""
    joint = mech.joints[name]
    q[joint.q_slice], v[joint.v_slice] = position, rate
