"""The solids that bodies are drawn with: plain data in the axes of their body, and the boxes around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.viewer.motion import along

#: Colours that people with any colour vision tell apart, on light and on dark ground.
PALETTE = ("#2f7fc1", "#e69f00", "#17a67c", "#d9602b", "#62bdf0", "#cf7fae", "#d8c93a")
STEEL, PIN, POST = "#a3abb5", "#4a525c", "#878f9a"


@dataclass(frozen=True, eq=False)
class Part:
    """A solid in a body's axes. Sizes are those of shapes: see `linkwright.model.description.SHAPE_SIZES`."""

    kind: str
    size: tuple[float, ...]
    at: Floats
    turn: Floats
    color: str
    layer: str = "body"  # or "joint"
    mesh: int = -1

    def half(self) -> Floats:
        """Half the sides of the box around it, in its own axes; meshes have boxes of their own."""
        if self.kind == "box":
            return 0.5 * np.array(self.size)
        radius = self.size[0]
        if self.kind == "sphere":
            return np.full(3, radius)
        tip = radius if self.kind == "capsule" else 0.0
        return np.array([radius, radius, 0.5 * self.size[1] + tip])


def corners(part: Part) -> Floats:
    """The corners (8, 3) of the box around a part, in its body's axes."""
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    points: Floats = part.at + (signs * part.half()) @ part.turn.T
    return points


def bar(a: Any, b: Any, radius: float, color: str, *, kind: str = "capsule", layer: str = "body") -> Part:
    """A capsule or cylinder between two points."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    length = float(np.linalg.norm(b - a))
    return Part(kind, (radius, length), 0.5 * (a + b), along(b - a), color, layer)


def solid(
    kind: str, size: Any, at: Any, turn: Any, color: str, *, layer: str = "joint", shift: Any = (0.0, 0.0, 0.0)
) -> Part:
    """A part at a frame, moved by `shift` in the frame's axes."""
    turn = np.asarray(turn, dtype=np.float64)
    numbers = tuple(float(x) for x in np.atleast_1d(size))
    return Part(kind, numbers, np.asarray(at, dtype=np.float64) + turn @ np.asarray(shift), turn, color, layer)
