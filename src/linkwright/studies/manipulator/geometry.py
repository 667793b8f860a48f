"""The six-leg manipulator in numbers: where its legs stand, how long their links are, what they weigh.

Leg i stands at base point B_i. Its own frame there has x along the crank at zero angle (horizontal, `crank_turn` away
from outward, the two legs of a pair mirrored), y up and z = x × y along the driven axis, so that a positive angle
raises the crank. In links whose x axes lie along crank and rod, the six revolute joints turn about

    z (driven), z and y (universal, at the crank's end), z, y and x (spherical, at the wrist point),

and after the sixth the link's axes are those of the leg's frame, turned as the plate is: in the plate, wrist point P_i.
At home the wrist's middle angle is a few degrees, far from its singular ±90°.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import NamedTuple

import numpy as np

from linkwright.base.types import Floats
from linkwright.errors import ModelError

LEGS = 6


class Inertia(NamedTuple):
    """Mass (kg), centre of mass (m) in the link's frame, and moments of inertia about it (kg m²), axes x, y, z."""

    mass: float
    com: tuple[float, float, float]
    moments: tuple[float, float, float]


# Table 3. It draws rods along its z axis, ours lie along x: (x, y, z) there is (y, z, x) here.
CRANK = Inertia(6.90, (0.255, 0.0, 0.0), (0.0123, 0.153, 0.146))
UNIVERSAL = Inertia(3.79, (0.0, 0.0, 0.0), (0.00938, 0.00398, 0.0114))
ROD = Inertia(8.35, (0.435, 0.0, 0.0), (0.0101, 0.526, 0.525))
FIRST_CROSS = Inertia(5.10, (0.0, 0.0, 0.0), (0.0197, 0.00480, 0.0171))
SECOND_CROSS = Inertia(3.79, (0.0, 0.0, 0.0), (0.0152, 0.00788, 0.0133))
PLATE = Inertia(30.0, (0.0, 0.0, 0.0), (1.14, 1.14, 2.28))


@dataclass(frozen=True)
class Geometry:
    """Dimensions (m, rad) and inertias; the defaults are inferred from table 3 of the paper, whose figures are lost.

    Uniform rods with the table's inertias, l = √(12 I/m), make a crank of 0.51 m and a rod of 0.87 m; a disc of the
    plate's inertia has a radius of 0.39 m. The base was chosen for clear legs and an even S: its condition is about 2
    in the whole range of motion.
    """

    base_radius: float = 0.40
    base_half_angle: float = np.deg2rad(30.0)  # of the two legs of a pair from the pair's direction
    crank_turn: float = np.deg2rad(45.0)  # of the crank's plane from outward, away from the other leg of the pair
    crank: float = 0.51
    rod: float = 0.87
    plate_radius: float = 0.39
    plate_half_angle: float = np.deg2rad(15.0)
    home_height: float = 0.75
    turn_length: float = 0.30  # where turns of the plate are measured in metres, for conditions
    gravity: float = 9.80665
    crank_inertia: Inertia = CRANK
    universal_inertia: Inertia = UNIVERSAL
    rod_inertia: Inertia = ROD
    first_cross_inertia: Inertia = FIRST_CROSS
    second_cross_inertia: Inertia = SECOND_CROSS
    plate_inertia: Inertia = PLATE
    pairs: tuple[float, ...] = field(default=(0.0, 2.0 * np.pi / 3.0, 4.0 * np.pi / 3.0))

    def __post_init__(self) -> None:
        check_positive(self, dict.fromkeys(_LENGTHS, "a length in metres"))
        for one in fields(self):
            given = getattr(self, one.name)
            if one.name in _ANGLES and not _number(given):
                raise ModelError(f"{one.name} is an angle in radians, not {given!r}", element=one.name)
            if one.name.endswith("_inertia"):
                _check_inertia(one.name, given)
        if not _number(self.gravity):
            raise ModelError(f"gravity is a number in m/s², not {self.gravity!r}", element="gravity")
        if len(self.pairs) != LEGS // 2 or not all(map(_number, self.pairs)):
            raise ModelError(f"pairs are {LEGS // 2} angles in radians, not {self.pairs!r}", element="pairs")

    @property
    def sides(self) -> Floats:
        """−1 and 1 for the two legs of each pair."""
        return np.tile([-1.0, 1.0], LEGS // 2)

    @property
    def directions(self) -> Floats:
        """The angles (rad) of the pairs, one a leg."""
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
        angle = self.directions + self.sides * (self.base_half_angle + self.crank_turn)
        x = _ring(1.0, angle)
        up = np.broadcast_to([0.0, 0.0, 1.0], x.shape)
        return np.stack([x, up, np.cross(x, up)], axis=2)

    @property
    def home(self) -> Floats:
        """The plate's home: x, y, z and Euler parameters."""
        return np.array([0.0, 0.0, self.home_height, 1.0, 0.0, 0.0, 0.0])


_LENGTHS = ("base_radius", "crank", "rod", "plate_radius", "home_height", "turn_length")
_ANGLES = ("base_half_angle", "crank_turn", "plate_half_angle")


def _number(x: object, *, above_zero: bool = False) -> bool:
    known = isinstance(x, int | float | np.number) and not isinstance(x, bool)
    return known and bool(np.isfinite(x)) and (not above_zero or float(x) > 0.0)  # type: ignore[call-overload, arg-type]


def check_positive(dims: object, units: Mapping[str, str]) -> None:
    """Refuse dimensions that are not greater than zero; `units` says which fields are meant, and what they are."""
    for name, unit in units.items():
        given = getattr(dims, name)
        if not _number(given, above_zero=True):
            raise ModelError(f"{name} is {unit}, greater than zero, not {given!r}", element=name)


def _check_inertia(name: str, given: object) -> None:
    if not isinstance(given, Inertia):
        raise ModelError(f"{name} is an Inertia(mass, com, moments), not {given!r}", element=name)
    if not _number(given.mass, above_zero=True):
        raise ModelError(f"the mass of {name} is in kg, greater than zero, not {given.mass!r}", element=name)
    for what, three in (("com", given.com), ("moments", given.moments)):
        if len(three) != 3 or not all(map(_number, three)) or (what == "moments" and min(three) < 0.0):
            text = f"{what} of {name} are three numbers{', none negative' if what == 'moments' else ''}"
            raise ModelError(f"{text}, not {three!r}", element=name)


def _ring(radius: float, angle: Floats) -> Floats:
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros_like(angle)], axis=1)
