"""What a mechanism looks like: shapes on its frames and points that leave a trail. Data; nothing here draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from linkwright.base.arrays import Floats
from linkwright.mechanism.expression import Expression

ShapeKind = Literal["box", "cylinder", "cone", "sphere", "capsule", "mesh"]

#: How many numbers each kind of shape takes, and what they are.
SHAPE_SIZES: dict[ShapeKind, tuple[str, ...]] = {
    "box": ("x", "y", "z"),
    "cylinder": ("radius", "length"),  # centred, along h; so are cones and capsules
    "cone": ("radius", "length"),
    "sphere": ("radius",),
    "capsule": ("radius", "length"),  # length between the centres of its round ends
    "mesh": ("scale",),
}


@dataclass(frozen=True)
class Shape:
    """A shape in the axes of a body or frame, its middle at the origin; a mesh is in the file's own coordinates."""

    name: str
    place: str
    kind: ShapeKind
    size: tuple[Expression, ...]
    color: str = ""  # "#rrggbb", or empty for the viewer's choice
    file: str = ""  # of a mesh: relative to the model file


@dataclass(frozen=True)
class Trace:
    """The path of the origin of a body or frame, to be drawn as a trail."""

    name: str
    place: str
    color: str = ""


def colour_text(rgb: Sequence[float] | Floats) -> str:
    """#rrggbb of red, green and blue from 0 to 1."""
    return "#" + "".join(f"{round(255.0 * x):02x}" for x in rgb)


def colour_numbers(color: str) -> list[float]:
    """Red, green and blue from 0 to 1 of "#rrggbb"."""
    return [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
