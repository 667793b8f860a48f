"""Axes from points and directions, and how a joint's axes are turned to agree as drawn. Reader and printer share it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linkwright.base.types import Floats
from linkwright.mechanism.bound import is_bound
from linkwright.mechanism.frames import snapped

Array = Any  # of floats, or of floats and expressions
PARALLEL = 1e-9  # the sine below which two directions are one
_FLIP = np.diag([1.0, -1.0, -1.0])
_QUARTERS = [
    np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    for c, s in ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))
]
_ALONG = ("revolute", "cylindrical", "screw", "planar", "prismatic")  # kinds whose h axes agree


def are_parallel(h: list[float], f: list[float]) -> bool:
    """Whether two directions do not span a plane."""
    x, y = _scaled(h), _scaled(f)
    across = _cross(x, y)
    square = _dot(across, across)
    return not square > PARALLEL * PARALLEL * _dot(x, x) * _dot(y, y)


def axes_of(h: Any, f: Any) -> Array:
    """Columns f, g, h: z along h, x along the part of f that is perpendicular to it, y = h × f."""
    if is_bound([*h, *f]):
        hh, ff = np.array([*h], dtype=object), np.array([*f], dtype=object)
        z = hh / np.sqrt(hh @ hh)
        g = np.array(_cross(z, ff), dtype=object)
        y = g / np.sqrt(g @ g)
        return np.stack([np.array(_cross(y, z), dtype=object), y, z], axis=1)
    z1 = _unit(_scaled(h))
    y1 = _unit(_cross(z1, _scaled(f)))
    x1 = _cross(y1, z1)
    return snapped([[x1[k], y1[k], z1[k]] for k in range(3)])


def _scaled(v: Any) -> list[float]:
    """The same direction with its largest entry between 1/2 and 1: squares neither vanish nor overflow."""
    largest = max(abs(x) for x in v)
    if largest == 0.0:
        return [0.0, 0.0, 0.0]
    power = -math.frexp(largest)[1]
    return [math.ldexp(x, power) for x in v]


def _unit(v: list[float]) -> list[float]:
    size = math.sqrt(_dot(v, v))
    return [x / size for x in v]


def _dot(a: Any, b: Any) -> Any:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _cross(a: Any, b: Any) -> list[Any]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def turn_as_drawn(kind: str, first: Floats, second: Floats) -> Floats | None:
    """The turn of the second triad's axes that makes a joint's axes agree; both are given in ground's axes.

    h axes drawn opposite are turned by π about f. The f axes of a translational joint are turned about h by that
    multiple of 90° that brings them nearest to each other. None: they agree as they are.
    """
    if kind not in _ALONG:
        return None
    turn: Floats | None = None
    if float(first[:, 2] @ second[:, 2]) < 0.0:
        turn = _FLIP
        second = second @ _FLIP
    if kind == "prismatic":
        angle = np.arctan2(float(first[:, 0] @ second[:, 1]), float(first[:, 0] @ second[:, 0]))
        quarters = round(float(angle) / (np.pi / 2)) % 4
        if quarters:
            turn = _QUARTERS[quarters] if turn is None else turn @ _QUARTERS[quarters]
    return turn


def turned(rotation: Array, turn: Floats) -> Array:
    """A rotation followed by a turn of whole quarters; numbers only change place and sign."""
    columns = []
    for k in range(3):
        source = int(np.flatnonzero(turn[:, k])[0])
        column = rotation[:, source]
        columns.append(column if turn[source, k] > 0.0 else -column)
    made = np.stack(columns, axis=1)
    return made if made.dtype == object else made + 0.0
