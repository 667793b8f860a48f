"""The builder's gears: couplings of joints; gears in mesh, racks, worms and belts, with the forces of their teeth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, get_args

import numpy as np

from linkwright.errors import ModelError, NameNotFound
from linkwright.model.builder_parts import Joint, Kinematics, Place, put
from linkwright.model.elements import Array, GearKind, GearPair, Mimic, as_numbers, is_bound, plain_numbers
from linkwright.model.expression import Expression, as_expression, simplified
from linkwright.model.gear_pairs import BELTS, FIT
from linkwright.model.quantities import Numeric

#: The least number of teeth of a gear; a worm has one start or more.
LEAST_TEETH = 4
#: Pitch radii without numbers of teeth have a ratio of whole numbers up to this.
WHOLE = 1000
MOST_TEETH = 10**9
PRESSURE = math.radians(20.0)  # of teeth, unless given
_STEEP = math.radians(60.0)  # a helix angle is below this


class Gears(Kinematics):
    """Collects gears: couplings of joints without teeth, and pairs in mesh."""

    def __init__(self, ground: str) -> None:
        super().__init__(ground)
        self._mimics: list[tuple[Mimic, Array]] = []

    def mimic(
        self,
        follower: Joint | str,
        leader: Joint | str,
        ratio: Numeric = 1.0,
        offset: Numeric = 0.0,
        *,
        name: str | None = None,
    ) -> None:
        """Joint `follower` has the coordinate ratio · (leader's coordinate) + offset: a gear, a pair of fingers.

        Without a name it goes by its follower's. A leader may follow another joint, but no joint itself in the end.

        - `follower`, `leader`: joints of one coordinate, as objects or by name.
        - `ratio`: a number or expression, rad or m of the follower for one of the leader; 1.
        - `offset` (rad or m): 0.
        - `name`: unlike those of all gears.

        Raises `NameNotFound` for an unknown joint and `ModelError` for a name that is taken; kinds and circles are
        checked with the whole mechanism.

        >>> b = lw.Builder()
        >>> for name in ("left", "right"):
        ...     hinge = b.joint("revolute", b.ground, b.body(name, 1.0), f"{name} hinge")
        >>> b.mimic("right hinge", "left hinge", ratio=-1.0)
        """
        a, b = self._joint(follower), self._joint(leader)
        if name is not None and any(name == m.name for m, _ in self._mimics):
            raise ModelError(f"there is a gear {name!r} already; choose another name", element=name)
        numbers = as_numbers([ratio, offset], (2,), f"the coupling of {a.name!r}")
        self._mimics.append((Mimic(a.number, b.number, name=name or ""), numbers))

    def gear_pair(
        self,
        first: Place,
        second: Place,
        kind: GearKind = "external",
        *,
        teeth: int | Sequence[int] | None = None,
        module: Numeric | None = None,
        radius: Numeric | Sequence[Numeric] | None = None,
        pressure_angle: float | None = None,
        helix_angle: float = 0.0,
        phase: float | None = None,
        name: str | None = None,
    ) -> GearPair:
        """Two gears in mesh, which exert the forces of their teeth at the pitch point.

        Bodies carry the gears on joints of their own: the pair adds the one constraint of the teeth, so that planets
        on carriers need no ratios of the train. `mimic` couples coordinates of joints, without tooth forces.

        - `first`, `second`: bodies or frames on two bodies, whose z axes are the axes of the gears and whose origins
          are in the plane of the mesh; of a rack, z is the direction of travel and the origin is on the pitch line.
        - `kind`: "external", "internal" (the larger is the ring), "rack" (the first is the pinion), "bevel" (the axes
          meet), "worm" (the first is the worm; axes at 90°), "belt", "crossed belt" or "chain".
        - `teeth`: the numbers of both; of a rack that of the pinion, of a worm its starts and the wheel's teeth.
        - `module` (m): of the normal section; of bevel gears in the middle of the teeth, of worms along the axis.
        - `radius` (m): in place of a module the pitch radius of the first, or those of both, which then may have no
          teeth: the ratio is that of whole numbers up to 1000.
        - `pressure_angle` (rad) in the normal section; 20° with teeth, else 0. It makes the separating force.
        - `helix_angle` (rad) of the first, right-handed if positive; of a worm its lead angle; 0.
        - `phase` (m): how far the pair has rolled beyond where x axes point along the line of centres; as drawn.
        - `name`: unlike those of all joints, rods and point constraints; mesh1, mesh2, … without one.

        Returns the `GearPair`. Raises `ModelError` for gears that cannot mesh; whether the drawing has them at the
        right distance is checked with the whole mechanism.

        >>> b = lw.Builder()
        >>> wheel, pinion = b.body("wheel", 1.0), b.body("pinion", 1.0)
        >>> at = b.triad(b.ground, origin=(0.06, 0, 0))
        >>> hinges = b.joint("revolute", b.ground, wheel), b.joint("revolute", at, pinion)
        >>> b.gear_pair(wheel, pinion, teeth=(40, 20), module=0.002).name
        'mesh1'
        """
        name = self._new_point_constraint(name, "mesh")
        what = f"gear pair {name!r}"
        if kind not in get_args(GearKind):
            raise NameNotFound("kind of gear pair", str(kind), list(get_args(GearKind)))
        places = self._two(first, second, what)
        numbers = [pressure_angle or 0.0, helix_angle, phase or 0.0]
        pressure, helix, rolled = (float(x) for x in plain_numbers(numbers, (3,), f"angles and phase of {what}"))
        counts = None if teeth is None else _whole(teeth, kind, name)
        if pressure_angle is None and counts is not None and kind not in BELTS:
            pressure = PRESSURE
        _check_angles(kind, pressure, helix, name)
        pitch_radius, counts = self._pitch(kind, counts, module, radius, helix, name)
        pair = GearPair(
            name,
            *places,
            kind,
            pitch_radius,
            counts,
            toothed=teeth is not None,
            pressure_angle=pressure,
            helix_angle=helix,
            phase=None if phase is None else rolled,
        )
        return put(self._point_constraints, pair)

    def _pitch(
        self, kind: str, counts: tuple[int, int] | None, module: Any, radius: Any, helix: float, name: str
    ) -> tuple[Expression, tuple[int, int]]:
        """The pitch radius of the first gear, and the numbers of teeth."""
        radii = [] if radius is None else list(radius) if isinstance(radius, Sequence) else [radius]
        if len(radii) > 2 or (kind == "rack" and len(radii) == 2):
            text = f"has {len(radii)} pitch radii; give those of its gears (a rack has none)"
            raise _fault(name, text)
        for x in [*radii, *([] if module is None else [module])]:
            if not self._now(x, name) > 0.0:
                raise _fault(name, f"has a module or pitch radius of {self._now(x):g} m; give more than 0")
        if counts is None:
            if module is not None:
                raise _fault(name, "has a module and no teeth; give the numbers of teeth too")
            if kind == "rack" and radii:
                return as_expression(radii[0]), (1, 0)
            if len(radii) != 2:
                raise _fault(name, "has no teeth; give teeth and a module, or both pitch radii")
            return as_expression(radii[0]), self._fraction(radii, kind, helix, name)
        if module is None and not radii:
            raise _fault(name, "has teeth and no size; give its module, or a pitch radius")
        if module is None:
            first = as_expression(radii[0])
        else:
            slope = math.tan(helix) if kind == "worm" else math.cos(helix)
            first = simplified(as_expression(module) * (counts[0] / (2.0 * abs(slope))))
        sizes = [self._now(first, name) * x for x in self._shares(kind, counts, helix)]
        for given, size in zip(map(self._now, radii), sizes, strict=False):
            if abs(given - size) > FIT * size:
                text = f"has a pitch radius of {given:.6g} m, where its teeth make {size:.6g} m; "
                raise _fault(name, text + "give radii, or teeth and a module")
        return first, counts

    @staticmethod
    def _shares(kind: str, counts: tuple[int, int], helix: float) -> tuple[float, float]:
        """Both pitch radii as parts of the first."""
        return 1.0, counts[1] / counts[0] * (abs(math.tan(helix)) if kind == "worm" else 1.0)

    def _fraction(self, radii: Sequence[Any], kind: str, helix: float, name: str) -> tuple[int, int]:
        """Whole numbers in the ratio of two radii."""
        if is_bound(radii):
            text = "has radii that depend on parameters, which leaves their ratio open; give the numbers of teeth, and "
            raise _fault(name, text + "one radius or the module")
        ratio = self._now(radii[1]) / self._now(radii[0]) / (abs(math.tan(helix)) if kind == "worm" else 1.0)
        whole = Fraction(ratio).limit_denominator(WHOLE)
        if whole.numerator == 0 or abs(whole / Fraction(ratio) - 1) > 1e-9:
            text = f"has radii in the ratio {ratio:.9g}, which is none of whole numbers up to {WHOLE}; "
            raise _fault(name, text + "give the numbers of teeth and one radius")
        return whole.denominator, whole.numerator


def _whole(teeth: Any, kind: str, name: str) -> tuple[int, int]:
    """The numbers of teeth of both."""
    counts = [teeth] if not isinstance(teeth, Sequence) else list(teeth)
    wanted = 1 if kind == "rack" else 2
    if len(counts) != wanted:
        which = "the pinion alone" if kind == "rack" else "both gears"
        raise _fault(name, f"has {len(counts)} numbers of teeth; give those of {which}")
    for k, x in enumerate(counts):
        if isinstance(x, bool) or not isinstance(x, int | np.integer) or x > MOST_TEETH:
            raise _fault(name, f"has {x!r} teeth; give a whole number up to {MOST_TEETH}")
        least = 1 if kind == "worm" and k == 0 else LEAST_TEETH
        if x < least:
            raise _fault(name, f"has {int(x)} teeth; give {least} or more")
    return int(counts[0]), 0 if kind == "rack" else int(counts[1])


def _check_angles(kind: str, pressure: float, helix: float, name: str) -> None:
    if not 0.0 <= pressure <= 0.25 * math.pi:
        raise _fault(name, f"has a pressure angle of {math.degrees(pressure):g}°; give 0 to 45°")
    if not abs(helix) < _STEEP:
        raise _fault(name, f"has a helix angle of {math.degrees(helix):g}°; give less than 60°")
    if kind in BELTS and (pressure or helix):
        raise _fault(name, f"is a {kind}, which has no pressure angle and no helix angle; leave them out")
    if kind == "bevel" and helix:
        raise _fault(name, "is a bevel pair, whose teeth are straight here; leave out the helix angle")
    if kind == "worm" and not helix:
        raise _fault(name, "is a worm without a helix angle; give the lead angle of its thread")


def _fault(name: str, text: str) -> ModelError:
    return ModelError(f"gear pair {name!r} {text}", element=name)
