"""Rotations and inertias that descriptions are made of.

Rotations come from axes, directions and roll-pitch-yaw angles, with exact zeros and ones; inertias are packed, unpacked
and added up. All but angles may be expressions of parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arrays import Floats
from linkwright.model.bindings import Array, is_bound
from linkwright.spatial.algebra import cross, dot

SNAP = 1e-14
PARALLEL = 1e-9  # the sine below which two directions are parallel
_UPPER = ([0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2])  # rows and columns of xx, yy, zz, xy, xz, yz


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


def are_parallel(h: Sequence[float] | Floats, f: Sequence[float] | Floats) -> bool:
    """Whether two directions do not span a plane."""
    x, y = _scaled(h), _scaled(f)
    across = cross(x, y)
    return not dot(across, across) > PARALLEL * PARALLEL * dot(x, x) * dot(y, y)


def axes_of(h: Sequence[Any], f: Sequence[Any]) -> Array:
    """Columns f, g, h: z along h, x along the part of f that is perpendicular to it, y = h × f."""
    bound = is_bound([*h, *f])
    along, about = (np.array([*v], dtype=object) if bound else _scaled(v) for v in (h, f))
    z = along / np.sqrt(dot(along, along))
    across = cross(z, about)
    y = across / np.sqrt(dot(across, across))
    columns = np.stack([cross(y, z), y, z], axis=1)
    return columns if bound else snapped(columns)


def _scaled(v: Sequence[float] | Floats) -> Floats:
    """The same direction with its largest entry between 1/2 and 1: squares neither vanish nor overflow."""
    return np.ldexp(np.asarray(v, dtype=np.float64), -math.frexp(max(abs(x) for x in v))[1])


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


def roll_pitch_yaw(r: Floats) -> Floats:
    """The angles that `rpy_matrix` makes r of; at a pitch of ±90° the roll is zero."""
    pitch = math.atan2(-r[2, 0], math.hypot(r[0, 0], r[1, 0]))
    if math.hypot(r[0, 0], r[1, 0]) < 1e-9:
        return np.array([0.0, pitch, math.atan2(-r[0, 1], r[1, 1])]) + 0.0
    return np.array([math.atan2(r[2, 1], r[2, 2]), pitch, math.atan2(r[1, 0], r[0, 0])]) + 0.0


def full_inertia(packed: ArrayLike) -> Array:
    """The matrices (..., 3, 3) of rows xx, yy, zz, xy, xz, yz."""
    s = np.asarray(packed)
    return s[..., [0, 3, 4, 3, 1, 5, 4, 5, 2]].reshape(*s.shape[:-1], 3, 3)


def pack_inertia(full: Array) -> Array:
    """The rows xx, yy, zz, xy, xz, yz of matrices (..., 3, 3), from their upper triangles."""
    return np.asarray(full)[..., *_UPPER]


def combined_inertia(parts: Sequence[tuple[Any, Array, Array]]) -> tuple[Any, Array, Array]:
    """Mass, centre of mass and inertia about it of parts that are given by these, in one frame; inertias are 3×3.

    The centre of parts without mass is the origin.
    """
    total: Array = np.zeros((3, 3))
    if len(parts) == 1:
        mass, com, inertia = parts[0]
        return mass, com, total + inertia
    mass = sum(m for m, _, _ in parts)
    massless = isinstance(mass, float | int) and mass == 0.0
    com = np.zeros(3) if massless else sum(m * c for m, c, _ in parts) / mass
    for m, c, inertia in parts:
        x = c - com
        total = total + inertia + m * ((x @ x) * np.eye(3) - np.outer(x, x))
    return mass, com, total
