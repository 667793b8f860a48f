"""Pairs of gears with their geometry written out by hand: where they touch, and along what their teeth push.

The first gear's frame is the identity; all vectors are in its axes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanism_parts import rotation

Floats = NDArray[np.float64]
X, Y, Z = np.eye(3)
BETA, GAMMA, ALPHA = math.radians(17.0), math.radians(-8.0), math.radians(20.0)
WIDE = 1.0 / math.cos(BETA)  # by how much helical gears of one normal module are larger
WORM = 0.02 * math.tan(-GAMMA) * 57 / 2  # the radius of the wheel of 57 teeth under a worm of 2 starts and 20 mm


@dataclass(frozen=True, eq=False)
class Pair:
    """The pose of the second gear, the pitch point, the tooth force on the first for a multiplier of 1, and the
    separating force on the second for a force of 1 along its teeth's circumference."""

    name: str
    kind: Any
    turn: Floats
    centre: Floats
    at: Floats
    push: Floats
    apart: Floats
    teeth: Any
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def slides(self) -> bool:
        return self.kind == "rack"

    @property
    def ratio(self) -> float:
        """The rate of the second about (or along) its z axis for a rate of 1 of the first: no slip along the push."""
        z2 = self.turn[:, 2]
        second = z2 if self.slides else np.cross(z2, self.at - self.centre)
        return float(np.cross(Z, self.at) @ self.push / (second @ self.push))

    @property
    def keywords(self) -> dict[str, Any]:
        return {"teeth": self.teeth, **({"module": 0.002} if "radius" not in self.more else {}), **self.more}


def bevel(name: str, angle: float, sides: tuple[int, int], teeth: tuple[int, int]) -> Pair:
    """Cones about axes at an angle, the first's frame 0.05 m and the second's 0.07 m from where the axes meet."""
    apex = np.array([0.0, 0.0, -0.05 * sides[0]])
    e1 = sides[0] * Z
    turn = rotation(X, -angle * sides[0]) @ rotation(X, 0.0 if sides[0] == sides[1] else math.pi)
    e2 = sides[1] * turn[:, 2]
    r1, r2 = 0.001 * teeth[0], 0.001 * teeth[1]
    arm = (r2 * e1 + r1 * e2) / math.sin(angle)  # at the distances r1 and r2 from the axes
    apart = np.cross(np.cross(arm, e2), arm)
    apart = apart / np.linalg.norm(apart) * math.tan(ALPHA)
    push = sides[0] * np.cross(e1, e2) / math.sin(angle)  # it turns the first about its z axis
    return Pair(name, "bevel", turn, apex + 0.07 * e2, apex + arm, push, apart, teeth)


SPUR, HELICAL = math.tan(ALPHA), math.tan(ALPHA) / math.cos(BETA)
SLANTED = {"helix_angle": BETA}
#: On a worm's wheel the tangential force is 1; the force normal to its thread in the pitch plane is 1 / cos γ.
PAIRS = [
    Pair("spur", "external", np.eye(3), 0.06 * X, 0.02 * X, Y, SPUR * X, (20, 40)),
    Pair("helical", "external", rotation(X + 2 * Y, math.pi), 0.06 * WIDE * X, 0.02 * WIDE * X,
         Y - math.tan(BETA) * Z, HELICAL * X, (20, 40), SLANTED),
    Pair("in a ring", "internal", np.eye(3), 0.02 * Y, -0.02 * Y, X, -SPUR * Y, (20, 40)),
    Pair("around a pinion", "internal", np.eye(3), 0.02 * WIDE * Y, 0.04 * WIDE * Y, -X - math.tan(BETA) * Z,
         -HELICAL * Y, (40, 20), SLANTED),
    Pair("rack", "rack", rotation(X, math.pi / 2), 0.03 * X + 0.05 * Y, 0.03 * X, Y, SPUR * X, 30),
    Pair("helical rack", "rack", rotation(X, -math.pi / 2), -0.03 * WIDE * X + 0.05 * Y, -0.03 * WIDE * X,
         -Y - math.tan(BETA) * Z, -HELICAL * X, 30, SLANTED),
    bevel("bevel", math.pi / 2, (1, 1), (20, 31)),
    bevel("bevel at 70°", math.radians(70.0), (1, -1), (31, 20)),
    bevel("bevel at 110°", math.radians(110.0), (-1, -1), (20, 23)),
    Pair("worm", "worm", rotation(X, math.pi / 2), (0.02 + WORM) * X, 0.02 * X, math.tan(GAMMA) * Y - Z,
         math.tan(ALPHA) / math.cos(GAMMA) * X, (2, 57), {"radius": 0.02, "helix_angle": GAMMA}),
]  # fmt: skip
IDS = [pair.name for pair in PAIRS]
