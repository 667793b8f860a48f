"""How a joint's axes are turned to agree as drawn. Reader and printer share it."""

from __future__ import annotations

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.model.bindings import Array

_FLIP = np.diag([1.0, -1.0, -1.0])
_QUARTERS = [
    np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    for c, s in ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))
]
_ALONG = ("revolute", "cylindrical", "screw", "planar", "prismatic")  # kinds whose h axes agree


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
    axes = np.stack(columns, axis=1)
    return axes if axes.dtype == object else axes + 0.0
