"""Gear pairs as they are drawn: each wheel once on its body, its teeth in the spaces of its mates, and their belts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.formats.mesh_files import Mesh
from linkwright.model.body_motion import Place, place
from linkwright.model.description import GROUND, Description
from linkwright.model.elements import GearPair
from linkwright.model.gear_pairs import BELTS, pair_radii, pitch_point
from linkwright.viewer.gear_outlines import belt, conical, cylindrical, outline, rack, thread, wheel
from linkwright.viewer.page import Motion
from linkwright.viewer.shapes import Part, bar

BELT = "#3a4048"
_STILL = 1e-6  # of a wheel's radius, or of the distance of two


@dataclass(frozen=True, eq=False)
class _Side:
    """One wheel of a pair, where the pair meets at the first time: in ground's axes unless said otherwise."""

    at: Place
    axes: Floats  # (3, 3)
    origin: Floats
    radius: float
    teeth: int
    shape: str  # gear, ring, rack, bevel, worm, wheel
    tangent: Floats  # the direction in which teeth are counted at the pitch point
    point: Floats  # the pitch point
    slope: float  # tan of the helix angle, right-handed if positive
    pressure: float
    apex: float  # where the cone of a bevel gear ends, along its axis from its origin

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two sides one wheel."""
        where = (*np.round(self.at.p, 9).tolist(), *np.round(self.at.r[:, 2], 9).tolist())
        return self.at.body, self.shape, self.teeth, round(self.radius, 9), where

    @property
    def pitch(self) -> float:
        """How far (m) teeth are apart along the tangent, for a wheel that has some."""
        return 2.0 * math.pi * self.radius / self.teeth if self.teeth else 1.0

    def _counted(self) -> tuple[float, float]:
        """The place of the pitch point in the wheel, and how the phase of a tooth there grows with the tangent."""
        arm = self.point - self.origin
        if self.shape == "rack":
            z = self.axes[:, 2]
            return float(arm @ z), math.copysign(1.0, float(z @ self.tangent))
        x, y, _ = self.axes.T @ arm
        angle = math.atan2(y, x)
        if self.shape == "worm":
            return angle - 2.0 * math.pi * float(arm @ self.axes[:, 2]) / self.lead, -self.teeth / self.lead
        turning = np.cross(self.axes[:, 2], arm)
        return angle, math.copysign(self.teeth / (2.0 * math.pi), float(turning @ self.tangent))

    @property
    def lead(self) -> float:
        """The rise (m) of a worm's thread in a turn."""
        return 2.0 * math.pi * self.radius * self.slope

    def tooth_at(self, phase: float, pitch: float) -> float:
        """Where a tooth is beside the pitch point along the tangent, in pitches."""
        there, per = self._counted()
        if self.shape == "rack":
            return (phase - there) * per / pitch
        if self.shape == "worm":  # the crest has the angle `phase` at height 0
            return (there - phase) / (2.0 * math.pi) * self.teeth * math.copysign(1.0, self.lead)
        return (phase - there) * per

    def phase_of(self, beside: float, pitch: float) -> float:
        """The phase for which a tooth is there."""
        there, per = self._counted()
        if self.shape == "rack":
            return there + beside * pitch / per
        if self.shape == "worm":
            return there - beside * 2.0 * math.pi / self.teeth * math.copysign(1.0, self.lead)
        return there + beside / per


def gear_solids(
    d: Description, motion: Motion, unit: float, color: Callable[[int], str]
) -> Iterator[tuple[int, Part, Mesh | None]]:
    """The parts of all gear pairs with their bodies and meshes; `unit` is the radius of a bar."""
    pairs = [x for x in d.point_constraints if isinstance(x, GearPair)]
    joined = [(pair, both) for pair in pairs if (both := _sides(d, motion, pair)) is not None]
    phases = _phases(joined)
    drawn: set[tuple[object, ...]] = set()
    for pair, sides in joined:
        for side, mate in (sides, sides[::-1]):
            if side.key not in drawn:
                drawn.add(side.key)
                yield from _wheel(side, mate, motion, phases.get(side.key, 0.0), unit, color(side.at.body))
        if pair.kind in BELTS:
            yield from _belt(d, motion, pair, sides, unit)


def gear_rims(d: Description, motion: Motion, unit: float) -> Iterator[tuple[int, Floats]]:
    """The toothed lines (n, 3) of gears, racks and belts in the axes of their bodies; worms have none."""
    for body, part, mesh in gear_solids(d, motion, unit, lambda body: ""):
        if mesh is not None and abs(len(mesh.triangles) - 2 * len(mesh.vertices)) <= 4:  # a rim and a hub, twice
            rim = mesh.vertices[: len(mesh.vertices) // 4].astype(np.float64)
            yield body, part.at + rim @ part.turn.T


def _sides(d: Description, motion: Motion, pair: GearPair) -> tuple[_Side, _Side] | None:
    ends = [place(d, name) for name in pair.places]
    if any(end.body >= motion.count for end in ends):
        return None
    radii = pair_radii(pair, lambda x: float(x.evaluate(d.parameters)))
    axes = [np.stack([motion.directions(x.body, x.r[:, k])[0] for k in range(3)], axis=1) for x in ends]
    origins = [motion.places(x.body, x.p)[0, 0] for x in ends]
    frames = list(zip(axes, origins, strict=True))
    point = np.asarray(pitch_point(pair, radii, frames[0], frames[1]).point)
    if not np.isfinite(point).all():
        return None
    z1 = axes[0][:, 2]
    tangent = z1 if pair.kind == "worm" else np.cross(z1, point - origins[0])
    slope = math.tan(pair.helix_angle)
    slopes = (slope, {"worm": slope, "internal": slope, "rack": 0.0}.get(pair.kind, -slope))
    sides = []
    for k in range(2):
        shape = _shape(pair, k, radii)
        numbers = (radii[k], pair.teeth[k] if pair.toothed else 0, shape, tangent, point, slopes[k])
        apex = _meeting(frames[k], frames[1 - k]) if pair.kind == "bevel" else 0.0
        sides.append(_Side(ends[k], axes[k], origins[k], *numbers, pair.pressure_angle or math.radians(20.0), apex))
    return sides[0], sides[1]


def _meeting(mine: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> float:
    """Where along its z axis a frame comes nearest to the z axis of another."""
    z, w, d = mine[0][:, 2], other[0][:, 2], other[1] - mine[1]
    k = float(z @ w)
    return float((d @ z - k * (d @ w)) / (1.0 - k * k))


def _shape(pair: GearPair, k: int, radii: tuple[float, float]) -> str:
    if pair.kind == "rack" and k:
        return "rack"
    if pair.kind == "worm":
        return "gear" if k else "worm"
    if not pair.toothed:
        return "wheel"
    if pair.kind == "internal":
        return "ring" if radii[k] > radii[1 - k] else "gear"
    return "bevel" if pair.kind == "bevel" else "gear"


def _phases(joined: list[tuple[GearPair, tuple[_Side, _Side]]]) -> dict[tuple[object, ...], float]:
    """Where the teeth of each wheel are, so that they stand in the spaces of its mates, as far as all can."""
    phases: dict[tuple[object, ...], float] = {}
    left = [sides for pair, sides in joined if pair.toothed and pair.kind not in BELTS]
    while left:
        known = next((x for x in left if x[0].key in phases or x[1].key in phases), left[0])
        left.remove(known)
        first, second = known
        if first.key not in phases and second.key in phases:
            first, second = second, first
        start = phases.setdefault(first.key, 0.0)
        if second.key in phases:
            continue
        pitch = max(known, key=lambda side: side.shape not in ("rack", "worm")).pitch
        phases[second.key] = second.phase_of(first.tooth_at(start, pitch) + 0.5, pitch)
    return phases


def _wheel(
    side: _Side, mate: _Side, motion: Motion, phase: float, unit: float, color: str
) -> Iterator[tuple[int, Part, Mesh | None]]:
    at, radius = side.at, side.radius
    width = min(1.5 * unit, radius) if radius else 1.5 * unit
    if side.shape == "rack":
        yield at.body, *_rack(side, mate, motion, phase, width, color)
        return
    if side.shape == "worm":
        centre = float((side.point - side.origin) @ side.axes[:, 2])
        length = min(max(4.0 * abs(side.lead) / side.teeth, 2.0 * radius), 3.0 * mate.radius)
        yield at.body, _part(at, color), thread(radius, side.teeth, side.lead, phase, length, centre)
        return
    if side.shape == "wheel":
        rim = outline(radius, 0, 0.0, phase)
        yield at.body, _part(at, color), wheel(rim, max(radius - unit, 0.75 * radius), cylindrical(width))
        for k in range(5):
            angle = 2.0 * math.pi * k / 5
            end = at.p + 0.9 * radius * (math.cos(angle) * at.r[:, 0] + math.sin(angle) * at.r[:, 1])
            yield at.body, bar(at.p, end, min(0.5 * unit, 0.12 * radius), color), None
        return
    ring = side.shape == "ring"
    rim = outline(radius, side.teeth, side.pressure, phase, ring=ring)
    module = 2.0 * radius / side.teeth
    inner = radius + max(3.0 * module, 0.08 * radius) if ring else 0.3 * (radius - 1.25 * module)
    if side.shape == "bevel":
        solid = _cone(side, rim, module)
    else:
        if mate.shape == "worm":
            width = 1.2 * mate.radius
        solid = wheel(rim, inner, cylindrical(width, 0.5 * width * side.slope / radius))
    yield at.body, _part(at, color), solid


def _part(at: Place, color: str) -> Part:
    return Part("mesh", (1.0,), at.p, at.r, color, "body", 0)


def _cone(side: _Side, rim: Floats, module: float) -> Mesh:
    circle = float((side.point - side.origin) @ side.axes[:, 2])
    share = min(0.16, 6.0 * module / math.hypot(side.radius, circle - side.apex))
    inner = max(side.radius - 4.0 * module, 0.25 * side.radius)
    return wheel(rim, inner, conical(side.radius, side.apex, circle, share))


def _rack(side: _Side, mate: _Side, motion: Motion, phase: float, width: float, color: str) -> tuple[Part, Mesh]:
    """A rack that is as long as its pinion's way along it."""
    at, module = side.at, 2.0 * mate.radius / mate.teeth
    gap = motion.places(mate.at.body, mate.at.p)[:, 0] - motion.places(at.body, at.p)[:, 0]
    way = (gap * motion.directions(at.body, at.r[:, 2])).sum(axis=1)
    room = 4.0 * math.pi * module
    solid = rack(module, side.pressure, float(way.min()) - room, float(way.max()) + room, phase, width)
    x, toward = side.axes[:, 2], mate.origin - side.point
    y = toward - (toward @ x) * x
    y = y / np.linalg.norm(y)
    turn = at.r @ side.axes.T @ np.stack([x, y, np.cross(x, y)], axis=1)
    return Part("mesh", (1.0,), at.p, turn, color, "body", 0), solid


def _belt(
    d: Description, motion: Motion, pair: GearPair, sides: tuple[_Side, _Side], unit: float
) -> Iterator[tuple[int, Part, Mesh | None]]:
    """The belt of two wheels, on the body that carries both; none is drawn where no body does."""
    first, second = sides
    z, gap = first.axes[:, 2], second.origin - first.origin
    across = gap - (gap @ z) * z
    distance = float(np.linalg.norm(across))
    carrier = next((body for body in _carriers(d, motion, sides) if _is_still(motion, body, sides, distance)), None)
    if carrier is None:
        return
    x = across / distance
    turn = np.stack([x, np.cross(z, x), z], axis=1)
    width = 0.9 * min(1.5 * unit, first.radius)
    crossed = pair.kind == "crossed belt"
    solid = belt((first.radius, second.radius), distance, crossed=crossed, thickness=0.3 * unit, width=width)
    r = np.stack([motion.directions(carrier, axis)[0] for axis in np.eye(3)], axis=1)
    at = r.T @ (first.origin - motion.places(carrier, np.zeros(3))[0, 0])
    yield carrier, Part("mesh", (1.0,), at, r.T @ turn, BELT, "body", 0), solid


def _carriers(d: Description, motion: Motion, sides: tuple[_Side, _Side]) -> list[int]:
    """Ground, and the bodies that the wheels are joined to."""
    wheels = {side.at.body for side in sides}
    others = [GROUND]
    for a, b in zip(d.parent.tolist(), d.child.tolist(), strict=True):
        others += [y for x, y in ((a, b), (b, a)) if x in wheels and y < motion.count]
    return list(dict.fromkeys(others))


def _is_still(motion: Motion, body: int, sides: tuple[_Side, _Side], distance: float) -> bool:
    """Whether the axes of both wheels stay where they are, seen from a body."""
    for side in sides:
        for point in (side.at.p, side.at.p + distance * side.at.r[:, 2]):
            gap = motion.places(side.at.body, point)[:, 0] - motion.places(body, np.zeros(3))[:, 0]
            seen = np.stack([(gap * motion.directions(body, axis)).sum(axis=1) for axis in np.eye(3)], axis=1)
            if np.abs(seen - seen[0]).max() > _STILL * distance:
                return False
    return True
