"""What laws and initial conditions may name of a moving mechanism: coordinates, places, distances and their rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from linkwright.errors import NameNotFound
from linkwright.mechanism.expression import Call, Expression, Lookup

#: The components of a place: its origin's position, and as rates its velocity and angular velocity, in ground's axes.
POSITIONS = ("x", "y", "z")
VELOCITIES = ("vx", "vy", "vz", "wx", "wy", "wz")


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
    seen: set[int] = set()
    found: dict[Quantity, None] = {}
    left: list[Expression] = list(reversed(laws))
    while left:
        part = left.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Quantity):
            found[part] = None
        elif isinstance(part, Call):
            left.extend(reversed(part.arguments))
        elif isinstance(part, Lookup):
            left.append(part.argument)
    yield from found
