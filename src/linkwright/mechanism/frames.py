"""Rotations that descriptions are made of: an axis turned to z, roll-pitch-yaw, exact zeros and ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwright.base.types import Floats

SNAP = 1e-14


def snapped(x: ArrayLike) -> Floats:
    """Entries within 1e-14 of 0, 1 and −1 made exact: that is where a mechanism's sparsity comes from."""
    y = np.asarray(x, dtype=np.float64)
    near = np.round(y)
    # Adding 0.0 turns −0.0 into 0.0, so that equal models have equal bytes.
    return np.asarray(np.where((np.abs(y - near) < SNAP) & (np.abs(near) <= 1.0), near, y) + 0.0)


def axis_frame(axis: ArrayLike) -> Floats:
    """A rotation whose third column is the unit vector along `axis`; for coordinate axes, a signed permutation."""
    u = np.asarray(axis, dtype=np.float64)
    # Scaled first, so that the square of a tiny or a huge axis neither vanishes nor overflows.
    u = u / np.abs(u).max()
    u = snapped(u / np.sqrt(u @ u))
    k = int(np.argmax(np.abs(u)))
    if np.count_nonzero(u) == 1:
        first = np.eye(3)[(k + 1) % 3 if (k, u[k]) != (2, -1.0) else 0]
    else:
        # An axis in a coordinate plane keeps that plane's normal as its first column.
        first = np.eye(3)[int(np.argmin(np.abs(u)))]
        first = first - u * (u @ first)
        first = first / np.sqrt(first @ first)
    return snapped(np.stack([first, np.cross(u, first), u], axis=1))


def rpy_matrix(rpy: ArrayLike) -> Floats:
    """Rz(yaw) Ry(pitch) Rx(roll): turns about fixed axes x, y, z in this order."""
    (cr, cp, cy), (sr, sp, sy) = snapped(np.cos(rpy)), snapped(np.sin(rpy))
    return snapped(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def full_inertia(packed: ArrayLike) -> NDArray[np.float64]:
    """The 3×3 matrices of rows xx, yy, zz, xy, xz, yz."""
    s = np.asarray(packed)
    return np.asarray(s[..., [0, 3, 4, 3, 1, 5, 4, 5, 2]].reshape(*s.shape[:-1], 3, 3))
