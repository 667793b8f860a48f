"""Instant centres of links that move in a plane: the point of each pair at which both have the same velocity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from linkwright.base.arrays import Floats

#: A relative turn that moves points of the mechanism by less than this part of their relative speed is none.
AT_INFINITY = 1e-9


@dataclass(frozen=True)
class InstantCentre:
    """The instant centre of two links, in ground's axes.

    - `links`: the names of both.
    - `point` (m): where both have the same velocity; None if it is at infinity, or if they do not move relative to each
      other.
    - `direction`: a unit vector towards a centre at infinity, perpendicular to the relative velocity; else None.
    """

    links: tuple[str, str]
    point: tuple[float, float, float] | None
    direction: tuple[float, float, float] | None = None

    @property
    def at_infinity(self) -> bool:
        """Whether one link shifts relative to the other without turning."""
        return self.direction is not None

    def __str__(self) -> str:
        pair = " and ".join(self.links)
        if self.point is not None:
            return f"{pair}: ({', '.join(f'{x:.6g}' for x in self.point)}) m"
        if self.direction is not None:
            return f"{pair}: at infinity along ({', '.join(f'{x:.6g}' for x in self.direction)})"
        return f"{pair}: no motion relative to each other"


def instant_centres(
    names: Sequence[str], origins: Floats, twists: Floats, normal: Floats, level: float, size: float
) -> dict[tuple[str, str], InstantCentre]:
    """The n (n − 1)/2 centres of n links with these origins (n, 3) and twists (n, 6), by pairs of names.

    Centres lie in the plane with this normal whose points x have n · x = `level`; `size` (m) is the mechanism's.
    """
    centres: dict[tuple[str, str], InstantCentre] = {}
    middle = origins.mean(axis=0)
    # Velocities where every link would have the point `middle`; turns about the normal.
    velocity = twists[:, :3] + np.cross(twists[:, 3:], middle - origins)
    turning = twists[:, 3:] @ normal
    fastest = float(np.max(np.abs(np.append(velocity, size * turning)), initial=0.0))
    for a, b in combinations(range(len(names)), 2):
        shift, turn = velocity[b] - velocity[a], float(turning[b] - turning[a])
        speed = float(np.linalg.norm(shift))
        point = direction = None
        across = np.cross(normal, shift)
        if size * abs(turn) > AT_INFINITY * max(speed, fastest):
            x = middle + across / turn
            x = x + (level - x @ normal) * normal
            point = (float(x[0]), float(x[1]), float(x[2]))
        elif speed > AT_INFINITY * fastest:
            unit = across / np.linalg.norm(across)
            direction = (float(unit[0]), float(unit[1]), float(unit[2]))
        centres[names[a], names[b]] = InstantCentre((names[a], names[b]), point, direction)
    return centres
