"""A plate on six like legs in numbers: where the legs stand, how long their links are, and the links' inertias.

Leg i stands at base point B_i. The leg's frame has x along the crank at zero angle (horizontal, `crank_turn` away
from the radial direction, the two legs of a pair mirrored), y up and z = x × y along the driven axis, so that a
positive angle raises the crank. In links whose x axes lie along crank and rod, the six revolute joints turn about

    z (driven), z and y (universal, at the crank's end), z, y and x (spherical, at the wrist point),

and after the sixth the link's axes are those of the leg's frame, turned as the plate is: in the plate, wrist point P_i.
The wrist is singular where its middle angle is ±90°.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from linkwright.base.arguments import finite_array, finite_number, positive_number
from linkwright.base.arrays import Floats
from linkwright.errors import ModelError

LEGS = 6
_LENGTHS = ("base_radius", "crank", "rod", "plate_radius", "home_height", "turn_length")
_ANGLES = ("base_half_angle", "crank_turn", "plate_half_angle")


class LinkInertia(NamedTuple):
    """The inertia of a link, in the link's frame; products of inertia are zero.

    - `mass` (kg).
    - `com` (3): the centre of mass (m).
    - `moments` (3): the moments of inertia about the centre of mass (kg m²), about axes parallel to x, y and z.

    >>> import linkwright as lw
    >>> lw.control.LinkInertia(8.35, (0.435, 0.0, 0.0), (0.0101, 0.526, 0.525)).mass
    8.35

    `Hexapod` checks the numbers.
    """

    mass: float
    com: tuple[float, float, float]
    moments: tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Hexapod:
    """A plate on six legs of crank, universal joint, rod and spherical joint, in three mirrored pairs.

    All arguments are keywords. Lengths are in m, angles in rad, inertias are `LinkInertia`s.

    - `base_radius`, `base_half_angle`: the base points lie on a circle of this radius, each by this angle to one side
      of the direction of its pair.
    - `crank_turn`: the angle of a crank's plane from the radial direction, away from the other leg of the pair.
    - `crank`, `rod`: lengths of crank and rod.
    - `plate_radius`, `plate_half_angle`: the same of the wrist points on the plate.
    - `home_height`: the height of the plate's origin at home, where the plate is level above the middle of the base.
    - `turn_length`: the distance at which turns of the plate are measured, for the conditions of Jacobians.
    - `crank_inertia`, `universal_inertia` (the universal joint's cross), `rod_inertia`, `first_cross_inertia` and
      `second_cross_inertia` (the spherical joint's crosses), `plate_inertia`.
    - `gravity`: 9.80665 m/s², downward.
    - `pairs` (3): the directions of the pairs, 0, 120° and 240°.

    >>> from dataclasses import replace
    >>> from linkwright.studies.manipulator.machine import SIX_LEG
    >>> float(replace(SIX_LEG, home_height=0.8).home[2])
    0.8

    A number that is not finite, a length or mass that is not greater than zero, and a negative moment of inertia raise
    `ModelError`.
    """

    #: The links, from the base to the plate; each has an inertia, `crank_inertia` and so on.
    LINKS: ClassVar[tuple[str, ...]] = ("crank", "universal", "rod", "first_cross", "second_cross", "plate")

    base_radius: float
    base_half_angle: float
    crank_turn: float
    crank: float
    rod: float
    plate_radius: float
    plate_half_angle: float
    home_height: float
    turn_length: float
    crank_inertia: LinkInertia
    universal_inertia: LinkInertia
    rod_inertia: LinkInertia
    first_cross_inertia: LinkInertia
    second_cross_inertia: LinkInertia
    plate_inertia: LinkInertia
    gravity: float = 9.80665
    pairs: tuple[float, ...] = (0.0, 2.0 * np.pi / 3.0, 4.0 * np.pi / 3.0)

    def __post_init__(self) -> None:
        for name in _LENGTHS:
            positive_number(f"{name}, a length in metres,", getattr(self, name))
        for name in _ANGLES:
            finite_number(f"{name}, an angle in radians,", getattr(self, name))
        for link in self.LINKS:
            _check_inertia(f"{link}_inertia", getattr(self, f"{link}_inertia"))
        finite_number("gravity, in m/s²,", self.gravity)
        finite_array(f"pairs, {LEGS // 2} angles in radians,", self.pairs, (LEGS // 2,))

    @property
    def sides(self) -> Floats:
        """−1 and 1 for the two legs of each pair."""
        return np.tile([-1.0, 1.0], LEGS // 2)

    @property
    def directions(self) -> Floats:
        """The angles (rad) of the pairs, one per leg."""
        return np.repeat(np.array(self.pairs), 2)

    @property
    def base_points(self) -> Floats:
        """B_i in ground, (6, 3)."""
        return _ring(self.base_radius, self.directions + self.sides * self.base_half_angle)

    @property
    def wrist_points(self) -> Floats:
        """P_i in the plate's frame, (6, 3)."""
        return _ring(self.plate_radius, self.directions + self.sides * self.plate_half_angle)

    @property
    def frames(self) -> Floats:
        """The legs' frames in ground, (6, 3, 3): columns x (the crank at zero angle), y (up), z (the driven axis)."""
        x = _ring(1.0, self.directions + self.sides * (self.base_half_angle + self.crank_turn))
        up = np.broadcast_to([0.0, 0.0, 1.0], x.shape)
        return np.stack([x, up, np.cross(x, up)], axis=2)

    @property
    def home(self) -> Floats:
        """The plate's home: x, y, z and Euler parameters."""
        return np.array([0.0, 0.0, self.home_height, 1.0, 0.0, 0.0, 0.0])

    @property
    def twist_scale(self) -> Floats:
        """(6): 1 for velocities and `turn_length` for angular velocities, which makes metres of a twist's parts."""
        return np.repeat([1.0, self.turn_length], 3)


def _check_inertia(name: str, inertia: object) -> None:
    if not isinstance(inertia, LinkInertia):
        raise ModelError(f"{name} is a LinkInertia(mass, com, moments), not {inertia!r}", element=name)
    positive_number(f"the mass of {name}, in kg,", inertia.mass)
    finite_array(f"com of {name}", inertia.com, (3,))
    if min(finite_array(f"moments of {name}", inertia.moments, (3,))) < 0.0:
        raise ModelError(f"moments of {name} must not be negative, not {inertia.moments!r}", element=name)


def _ring(radius: float, angle: Floats) -> Floats:
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros_like(angle)], axis=1)
