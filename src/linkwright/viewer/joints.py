"""How joints, rods and point constraints look: hubs, rails, balls and crosses on the two bodies that they join."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.model.bodies import Place, place
from linkwright.model.description import GROUND, Description
from linkwright.model.elements import PointForce, PointOnLine, PointOnPlane, Rod
from linkwright.viewer.motion import Motion
from linkwright.viewer.parts import PIN, STEEL, Part, bar, solid

Pair = tuple[list[Part], list[Part]]  # on the base and on the mover


@dataclass(frozen=True, eq=False)
class Glyph:
    """One joint to be drawn. The base is ground where ground is one side, else the parent."""

    base: Place
    mover: Place
    color: str  # of the mover
    unit: float  # the radius of a bar
    reach: tuple[float, float]  # how far the mover comes along the base's joint axis (z)
    across: float  # and how far from that axis

    def rail(self, beyond: float) -> tuple[Floats, float]:
        """The middle, in the base's body, and the length of what the mover runs along."""
        low, high = self.reach
        return self.base.p + self.base.r[:, 2] * 0.5 * (low + high), high - low + 2.0 * beyond


def joint_parts(
    description: Description, motion: Motion, unit: float, color: Callable[[int], str]
) -> list[tuple[int, Part]]:
    """The parts of every joint, rod and point constraint between bodies that are drawn, each with its body."""
    placed: list[tuple[int, Part]] = []
    for k in range(description.nj):
        draw = GLYPHS.get(description.kind_of(k).name)
        base, mover = joint_sides(description, k)
        if draw is not None and max(base.body, mover.body) < motion.count:
            on_base, on_mover = draw(_glyph(motion, base, mover, unit, color))
            placed += [(base.body, part) for part in on_base] + [(mover.body, part) for part in on_mover]
    for tie in description.ties:
        if not isinstance(tie, PointOnLine | PointOnPlane):
            continue
        base = place(description, tie.line if isinstance(tie, PointOnLine) else tie.plane)
        mover = place(description, tie.point)
        if max(base.body, mover.body) < motion.count:
            glyph = _glyph(motion, base, mover, unit, color)
            parts = _plate(glyph) if isinstance(tie, PointOnPlane) else [_track(glyph, 0.45)]
            placed += [(base.body, part) for part in parts]
            placed.append((mover.body, solid("sphere", 1.5 * unit, mover.p, mover.r, STEEL)))
    for end in (end for _, *ends in stretched(description, motion.count) for end in ends):
        placed.append((end.body, solid("sphere", unit, end.p, end.r, STEEL)))
    return placed


def stretched(description: Description, drawn: int) -> Iterator[tuple[Rod | PointForce, Place, Place]]:
    """What reaches from one point to another, with its two ends: rods, and springs, dampers or actuators."""
    for thing in (*description.ties, *description.elements):
        if isinstance(thing, Rod | PointForce):
            first, second = place(description, thing.first), place(description, thing.second)
            if max(first.body, second.body) < drawn:
                yield thing, first, second


def anchors(description: Description, motion: Motion, unit: float) -> list[Floats]:
    """Points of ground that joints are at, for the posts that carry them: both ends of a rail."""
    points = []
    for k in range(description.nj):
        base, mover = joint_sides(description, k)
        kind = description.kind_of(k).name
        if base.body != GROUND or kind not in GLYPHS or mover.body >= motion.count:
            continue
        if kind in ("prismatic", "cylindrical", "screw"):
            at, length = _glyph(motion, base, mover, unit, lambda body: "").rail(6.5 * unit)
            points += [at + s * 0.5 * length * base.r[:, 2] for s in (-1, 1)]
        elif kind != "planar":
            points.append(base.p)
    points += [end.p for _, *ends in stretched(description, motion.count) for end in ends if end.body == GROUND]
    return points


def joint_sides(description: Description, joint: int) -> tuple[Place, Place]:
    """The base and the mover of a joint."""
    parent = Place(int(description.parent[joint]), description.ri[joint], description.pi[joint])
    child = Place(int(description.child[joint]), description.rj[joint], description.pj[joint])
    return (child, parent) if child.body == GROUND else (parent, child)


def _glyph(motion: Motion, base: Place, mover: Place, unit: float, color: Callable[[int], str]) -> Glyph:
    axis = motion.directions(base.body, base.r[:, 2])
    gap = motion.places(mover.body, mover.p)[:, 0] - motion.places(base.body, base.p)[:, 0]
    shift = (gap * axis).sum(axis=1)
    away = float(np.linalg.norm(gap - shift[:, None] * axis, axis=1).max())
    return Glyph(base, mover, color(mover.body), unit, (float(shift.min()), float(shift.max())), away)


def _revolute(g: Glyph) -> Pair:
    u = g.unit
    hub = solid("cylinder", (1.8 * u, 3.6 * u), g.base.p, g.base.r, STEEL)
    pin = solid("cylinder", (0.9 * u, 4.1 * u), g.base.p, g.base.r, PIN)
    return [hub, pin], []


def _prismatic(g: Glyph) -> Pair:
    u = g.unit
    at, length = g.rail(6.5 * u)
    rail = solid("box", (1.1 * u, 1.1 * u, length), at, g.base.r, STEEL)
    stops = [
        solid("box", (2.2 * u, 2.2 * u, 0.7 * u), at, g.base.r, STEEL, shift=(0.0, 0.0, s * 0.5 * length))
        for s in (-1, 1)
    ]
    block = solid("box", (3.3 * u, 3.3 * u, 5.6 * u), g.mover.p, g.mover.r, g.color)
    return [rail, *stops], [block]


def _track(g: Glyph, thickness: float) -> Part:
    at, length = g.rail(6.5 * g.unit)
    return solid("cylinder", (thickness * g.unit, length), at, g.base.r, STEEL)


def _cylindrical(g: Glyph) -> Pair:
    u = g.unit
    sleeve = solid("cylinder", (1.8 * u, 5.0 * u), g.mover.p, g.mover.r, g.color)
    return [_track(g, 0.8)], [sleeve]


def _screw(g: Glyph) -> Pair:
    u = g.unit
    at, length = g.rail(6.5 * u)
    count = int(np.clip(length / (1.1 * u), 2, 60))
    places = np.linspace(-0.5, 0.5, count) * (length - 0.6 * u)
    ridges = [solid("cylinder", (1.1 * u, 0.4 * u), at, g.base.r, STEEL, shift=(0.0, 0.0, s)) for s in places]
    nut = solid("cylinder", (1.9 * u, 4.0 * u), g.mover.p, g.mover.r, g.color)
    return [_track(g, 0.75), *ridges], [nut]


def _spherical(g: Glyph) -> Pair:
    return [solid("sphere", 2.1 * g.unit, g.base.p, g.base.r, STEEL)], []


def _universal(g: Glyph) -> Pair:
    arms = [solid("cylinder", (0.85 * g.unit, 5.0 * g.unit), side.p, side.r, STEEL) for side in (g.base, g.mover)]
    heart = solid("sphere", 1.5 * g.unit, g.base.p, g.base.r, PIN)
    return [arms[0], heart], [arms[1]]


def _plate(g: Glyph) -> list[Part]:
    """The rim of a square that the mover stays over."""
    side = g.across + 5.0 * g.unit
    ring = [g.base.p + g.base.r @ np.array([x * side, y * side, 0.0]) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    return [bar(ring[k - 1], ring[k], 0.4 * g.unit, STEEL, layer="joint") for k in range(4)]


def _planar(g: Glyph) -> Pair:
    puck = solid("cylinder", (2.4 * g.unit, 1.2 * g.unit), g.mover.p, g.mover.r, g.color)
    return _plate(g), [puck]


#: How the kinds of joints look; those that are not here are not seen.
GLYPHS: dict[str, Callable[[Glyph], Pair]] = {
    "revolute": _revolute,
    "prismatic": _prismatic,
    "cylindrical": _cylindrical,
    "screw": _screw,
    "spherical": _spherical,
    "universal": _universal,
    "planar": _planar,
}
