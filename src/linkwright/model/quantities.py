"""What laws and initial conditions may name of a moving mechanism: coordinates, places, distances and their rates."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from linkwright.errors import NameNotFound
from linkwright.model.expression import Expression, parts

if TYPE_CHECKING:
    from linkwright.model.description import Description
    from linkwright.model.elements import Driver

_NAME = re.compile(r"[^\W\d][\w.\- ]*")

#: The components of a place: its origin's position, and as rates its velocity and angular velocity, in ground's axes.
POSITIONS = ("x", "y", "z")
VELOCITIES = ("vx", "vy", "vz", "wx", "wy", "wz")

#: What the coordinates of a joint are called, in their order, and which of them are angles.
COORDINATES: dict[str, tuple[str, ...]] = {
    "revolute": ("angle",),
    "screw": ("angle",),
    "prismatic": ("shift",),
    "cylindrical": ("angle", "shift"),
    "universal": ("angle1", "angle2"),
    "planar": ("x", "y", "angle"),
}
#: What the rates of a joint are called where they are not its coordinates' names with `_rate` after them.
RATES: dict[str, tuple[str, ...]] = {
    "revolute": ("rate",),
    "screw": ("rate",),
    "prismatic": ("rate",),
    "spherical": ("wx", "wy", "wz"),
    "free": VELOCITIES,
}


def rate_names(kind: str) -> tuple[str, ...]:
    """What the rates of a joint are called, in their order."""
    return RATES.get(kind) or tuple(f"{name}_rate" for name in COORDINATES.get(kind, ()))


def acceleration_names(kind: str) -> tuple[str, ...]:
    """What the accelerations of a joint are called, in their order."""
    rates = rate_names(kind)
    if len(rates) == 1:
        return ("acceleration",)
    return tuple(f"{name}_acceleration" for name in COORDINATES.get(kind, rates))


def joint_words(kind: str, order: int) -> tuple[str, ...]:
    """What the coordinates (order 0), rates (1) or accelerations (2) of a joint are called."""
    return (COORDINATES.get(kind, ()), rate_names(kind), acceleration_names(kind))[order]


def joint_index(kind: str, word: str, order: int) -> int | None:
    """Which coordinate, rate or acceleration of a joint a word means: its name, or q, v or a and its number."""
    names, letter = joint_words(kind, order), "qva"[order]
    if word in names:
        return names.index(word)
    coordinate = word.removesuffix("_rate")
    if order == 1 and coordinate != word and coordinate in COORDINATES.get(kind, ()):
        return COORDINATES[kind].index(coordinate)
    if word == letter and len(names) == 1:
        return 0
    if len(word) == 2 and word[0] == letter and word[1].isdecimal() and int(word[1]) < len(names):
        return int(word[1])
    return None


def turns(kind: str, index: int) -> bool:
    """Whether a coordinate (or rate) of a joint is an angle."""
    names = COORDINATES.get(kind) or RATES.get(kind, ())
    return index < len(names) and names[index].startswith(("angle", "w"))


@dataclass(frozen=True)
class Quantity(Expression):
    """A number that depends on the state, or its rate.

    `joint`: coordinate (or rate) `index` of a joint; `place`: x, y, z of a frame's origin in ground's axes, as rates
    vx, vy, vz and wx, wy, wz; `distance`: between the origins of two frames. Metres, radians, seconds.
    """

    kind: Literal["joint", "place", "distance"]
    of: tuple[str, ...]
    index: int = 0
    rate: bool = False

    @property
    def key(self) -> str:
        """The name under which its value is found; no parameter has such a name."""
        if self.kind == "joint":
            return f"{self.of[0]}.{'v' if self.rate else 'q'}{self.index}"
        if self.kind == "place":
            return f"{self.of[0]}.{(VELOCITIES if self.rate else POSITIONS)[self.index]}"
        return f"distance{'_rate' if self.rate else ''}({', '.join(map(repr, self.of))})"

    def spoken(self, joint_kind: str = "") -> str:
        """How people write it; of a joint, its kind tells what its coordinates are called."""
        if self.kind == "distance":
            return f"distance{'_rate' if self.rate else ''}({', '.join(self.of)})"
        names = rate_names(joint_kind) if self.rate else COORDINATES.get(joint_kind, ())
        return f"{self.of[0]}.{names[self.index]}" if self.index < len(names) and self.kind == "joint" else self.key

    def evaluate(self, names: Mapping[str, Any]) -> Any:
        if self.key not in names:
            raise NameNotFound("quantity", self.key, list(names))
        return names[self.key]

    def names(self) -> frozenset[str]:
        return frozenset((self.key,))

    def __str__(self) -> str:
        return self.key


def quantities(*laws: Expression) -> Iterator[Quantity]:
    """The quantities that laws use, each once, in the order of their appearance."""
    yield from dict.fromkeys(part for part in parts(*laws) if isinstance(part, Quantity))


def spoken(description: Description, quantity: Quantity) -> str:
    """A quantity as people write it."""
    if quantity.kind != "joint":
        return quantity.spoken()
    joint = description.joint_names.position("joint", quantity.of[0])
    return quantity.spoken(description.kind_of(joint).name)


def with_unit(description: Description, quantity: Quantity, value: float) -> str:
    """A value as people read it: angles and their rates in radians, with degrees in brackets."""
    if quantity.kind == "joint":
        joint = description.joint_names.position("joint", quantity.of[0])
        angular = turns(description.kind_of(joint).name, quantity.index)
    else:
        angular = quantity.kind == "place" and quantity.rate and quantity.index >= len(POSITIONS)
    if not angular:
        return f"{value:.6g}"
    per = "/s" if quantity.rate else ""
    return angle_text(value, per)


def angle_text(value: float, per: str = "") -> str:
    """An angle, or by `per` its rate, in radians with degrees in brackets."""
    return f"{value:.6g} rad{per} ({math.degrees(value):.6g}°{per})"


def drives_angle(d: Description, driver: Driver) -> bool:
    """Whether a driver prescribes an angle."""
    if driver.kind != "joint":
        return driver.kind == "angle"
    j = d.joint_names.find(driver.target)
    return j is not None and driver.index in d.kind_of(j).angles


def titled(text: str) -> tuple[str, str]:
    """The name and the expression of an output: "stroke = max(x)" has a name, any other text is its own."""
    name, sign, expression = text.partition("=")
    if not sign or expression.startswith("=") or not _NAME.fullmatch(name.strip()):  # a comparison, or none
        name = expression = text
    return name.strip(), expression.strip()
