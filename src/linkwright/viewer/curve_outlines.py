"""Solids of curves in the x–y plane: plates with any outline, walls along a line, and slots around one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.formats.mesh_files import Mesh
from linkwright.viewer.gear_outlines import closed_bands, outward

_ROUND = 12  # sides of the half circle at the end of a slot


def plate(outline: Floats, width: float) -> Mesh | None:
    """The solid with a simple closed outline (n, 2), its first point once; None where it crosses itself."""
    line = outline if area(outline) > 0.0 else outline[::-1]
    cap = _triangles(line)
    if cap is None:
        return None
    n = len(line)
    k = np.arange(n)
    following = (k + 1) % n
    points = np.concatenate([_layer(line, -0.5 * width), _layer(line, 0.5 * width)])
    walls = [np.stack([k, following, following + n], axis=1), np.stack([k, following + n, k + n], axis=1)]
    return outward(points, np.concatenate([cap[:, ::-1], cap + n, *walls]))


def ring(outline: Floats, inner: Floats, width: float) -> Mesh:
    """The solid between two closed lines (n, 2) of as many points."""
    return closed_bands(
        np.concatenate([_layer(line, z) for z in (-0.5 * width, 0.5 * width) for line in (outline, inner)]),
        len(outline),
        2,
    )


def shifted(line: Floats, distance: float, *, closed: bool) -> Floats:
    """A line (n, 2) moved along its normals, to the right of its direction."""
    ahead = np.roll(line, -1, axis=0) - np.roll(line, 1, axis=0) if closed else np.gradient(line, axis=0)
    size = np.linalg.norm(ahead, axis=1)[:, None]
    normal = np.stack([ahead[:, 1], -ahead[:, 0]], axis=1) / np.where(size > 0.0, size, 1.0)
    return np.asarray(line + distance * normal)


def around(line: Floats, distance: float) -> Floats:
    """The closed line (m, 2) at a distance from an open one (n, 2), with round ends, counterclockwise."""
    ends = []
    for tip, before in ((line[-1], line[-2]), (line[0], line[1])):
        start = math.atan2(*(tip - before)[::-1]) - 0.5 * math.pi
        angles = start + np.linspace(0.0, math.pi, _ROUND + 1)[1:-1]
        ends.append(tip + distance * np.stack([np.cos(angles), np.sin(angles)], axis=1))
    right, left = shifted(line, distance, closed=False), shifted(line, -distance, closed=False)[::-1]
    return np.concatenate([right, ends[0], left, ends[1]])


def area(outline: Floats) -> float:
    """The area of a closed outline, positive counterclockwise."""
    x, y = (outline - outline.mean(axis=0)).T
    return 0.5 * float(x @ np.roll(y, -1) - y @ np.roll(x, -1))


def inside(points: Floats, outline: Floats) -> NDArray[np.bool_]:
    """Which of the points (m, 2) are inside a closed outline (n, 2)."""
    a, b = outline[None], np.roll(outline, -1, axis=0)[None]
    x, y = points[:, :1], points[:, 1:]
    spans = (a[..., 1] > y) != (b[..., 1] > y)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = a[..., 0] + (y - a[..., 1]) / (b[..., 1] - a[..., 1]) * (b[..., 0] - a[..., 0])
    return np.asarray((spans & (x < crossing)).sum(axis=1) % 2 == 1)


def _layer(line: Floats, height: float) -> Floats:
    return np.concatenate([line, np.full((len(line), 1), height)], axis=1)


def _triangles(line: Floats) -> NDArray[np.intp] | None:
    """A counterclockwise polygon cut into triangles (n − 2, 3), ear by ear; None where none is left to be cut."""
    corners, triangles, at = list(range(len(line))), [], 0
    passed = 0
    while len(corners) > 3:
        n = len(corners)
        i, k, j = corners[at % n - 1], corners[at % n], corners[(at + 1) % n]
        if passed > n:
            return None
        if _is_ear(line[[i, k, j]], line[[c for c in corners if c not in (i, k, j)]]):
            triangles.append((i, k, j))
            del corners[at % n]
            passed = 0
            at = at % n + 1  # every other corner first, so that triangles stay broad
        else:
            passed += 1
            at += 1
    return np.array([*triangles, tuple(corners)], np.intp)


def _is_ear(triangle: Floats, others: Floats) -> bool:
    a, b, c = triangle

    def side(p: Floats, q: Floats, x: Floats) -> Floats:
        return np.asarray((q[0] - p[0]) * (x[..., 1] - p[1]) - (q[1] - p[1]) * (x[..., 0] - p[0]))

    if not side(a, b, c) > 0.0:
        return False
    return not bool(((side(a, b, others) >= 0.0) & (side(b, c, others) >= 0.0) & (side(c, a, others) >= 0.0)).any())
