"""How bodies and joints look: solids, stick figures, hubs, rails and balls, in the axes of their body."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.model.body_motion import Place, place
from linkwright.model.curve_elements import parts_of_curves
from linkwright.model.description import GROUND, Description
from linkwright.model.elements import Bushing, PointForce, PointOnLine, PointOnPlane, Rod
from linkwright.viewer.page import Motion, along

#: Colours that people with any colour vision tell apart, on light and on dark ground.
PALETTE = ("#2f7fc1", "#e69f00", "#17a67c", "#d9602b", "#62bdf0", "#cf7fae", "#d8c93a")
STEEL, PIN, POST, RUBBER = "#a3abb5", "#4a525c", "#878f9a", "#3a3f46"


@dataclass(frozen=True, eq=False)
class Part:
    """A solid in a body's axes. Sizes are those of shapes: see `linkwright.model.description.SHAPE_SIZES`."""

    kind: str
    size: tuple[float, ...]
    at: Floats
    turn: Floats
    color: str
    layer: str = "body"  # or "joint"
    mesh: int = -1

    def half(self) -> Floats:
        """Half the sides of the box around it, in its own axes; meshes have boxes of their own."""
        if self.kind == "box":
            return 0.5 * np.array(self.size)
        radius = self.size[0]
        if self.kind == "sphere":
            return np.full(3, radius)
        tip = radius if self.kind == "capsule" else 0.0
        return np.array([radius, radius, 0.5 * self.size[1] + tip])


def corners(part: Part) -> Floats:
    """The corners (8, 3) of the box around a part, in its body's axes."""
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    points: Floats = part.at + (signs * part.half()) @ part.turn.T
    return points


def bar(a: Any, b: Any, radius: float, color: str, *, kind: str = "capsule", layer: str = "body") -> Part:
    """A capsule or cylinder between two points."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    length = float(np.linalg.norm(b - a))
    return Part(kind, (radius, length), 0.5 * (a + b), along(b - a), color, layer)


def solid(
    kind: str, size: Any, at: Any, turn: Any, color: str, *, layer: str = "joint", shift: Any = (0.0, 0.0, 0.0)
) -> Part:
    """A part at a frame, moved by `shift` in the frame's axes."""
    turn = np.asarray(turn, dtype=np.float64)
    numbers = tuple(float(x) for x in np.atleast_1d(size))
    return Part(kind, numbers, np.asarray(at, dtype=np.float64) + turn @ np.asarray(shift), turn, color, layer)


_THICK, _SLIM, _LEAST = 0.0155, 0.16, 0.0022  # a bar's radius: of the mechanism, of a usual bar, and at least

_POINTS = 64  # of one body that are drawn


@dataclass(frozen=True, eq=False)
class Skeleton:
    """The points of each body where constraints act or frames are, and how thick bars between them look right."""

    joined: dict[int, Floats]  # points at which a body is held, ground's too
    more: dict[int, Floats]  # its other points: frames, and the centre of mass of a body that is held at one point
    size: float  # of the mechanism
    radius: float  # of a bar
    bars: dict[int, list[tuple[Floats, Floats]]] = field(default_factory=dict)
    crowded: bool = False  # whether joints would hide the bars between them
    stalks: dict[int, list[tuple[Floats, Floats]]] = field(default_factory=dict)  # from a bar to a point beside it


def skeleton(description: Description, motion: Motion, extent: Floats) -> Skeleton:
    """What holds the bodies together, measured; `extent` (n, 3) are points that belong to the mechanism as well."""
    joined: dict[int, list[Floats]] = {k: [] for k in range(GROUND, motion.count)}
    more: dict[int, list[Floats]] = {k: [] for k in joined}
    for k in seen_joints(description):
        if description.kind_of(k).name == "free":
            continue
        ends = ((int(description.parent[k]), description.pi[k]), (int(description.child[k]), description.pj[k]))
        if all(body in joined for body, _ in ends):
            for body, point in ends:
                joined[body].append(point)
    for constraint in (
        *description.point_constraints,
        *(e for e in description.elements if isinstance(e, PointForce | Bushing)),
    ):
        names = (constraint.point,) if isinstance(constraint, PointOnLine | PointOnPlane) else constraint.places
        for end in (place(description, name) for name in names):
            if end.body in joined:
                joined[end.body].append(end.p)
    for body, point in zip(description.frames.body.tolist(), description.frames.p, strict=True):
        if body in more and body != GROUND:
            more[body].append(point)
    for body in range(motion.count):
        if len(joined[body]) < 2:
            more[body].append(description.com[body] if description.mass[body] > 0 else np.zeros(3))

    points = np.concatenate(
        [extent, *(motion.places(b, p)[0] for many in (joined, more) for b, p in many.items() if p), np.zeros((0, 3))]
    )
    size = float(np.linalg.norm(np.ptp(points, axis=0))) if len(points) else 0.0
    if not size > 0.0:  # everything is at one point: its motion, if any, is all there is to go by
        size = 0.2 * float(np.linalg.norm(np.ptp(motion.origins.reshape(-1, 3), axis=0))) or 1.0
    merged = {b: _distinct(p, 1e-6 * size) for b, p in joined.items()}
    others = {b: _apart(_distinct(p, 1e-6 * size), merged[b], 1e-6 * size) for b, p in more.items()}
    bars = {b: _bars(merged[b] if len(merged[b]) > 1 else np.concatenate([merged[b], others[b]])) for b in merged}
    bars[GROUND] = []
    stalks = {b: _stalks(bars[b], others[b], 1e-6 * size) for b in range(motion.count)}
    lengths = [float(np.linalg.norm(q - p)) for pairs in bars.values() for p, q in pairs]
    radius = _THICK * size
    if lengths:
        radius = max(min(radius, _SLIM * float(np.median(lengths))), _LEAST * size)
    crowded = bool(lengths) and 6.0 * radius > float(np.median(lengths))
    return Skeleton(merged, others, size, radius, bars, crowded, stalks)


def sticks(skeleton: Skeleton, body: int, color: str) -> list[Part]:
    """A body without shapes: bars between its points, a ball where its mass is, or a cube where it is one point."""
    radius = skeleton.radius
    pairs = skeleton.bars.get(body, [])
    if not pairs:
        at = next(iter([*skeleton.joined[body], *skeleton.more[body]]), np.zeros(3))
        return [solid("box", (4.6 * radius,) * 3, at, np.eye(3), color, layer="body")]
    parts = [bar(a, b, radius, color) for a, b in pairs]
    for a, b in skeleton.stalks[body]:
        parts.append(bar(a, b, 0.5 * radius, color))
        parts.append(solid("sphere", 0.95 * radius, b, np.eye(3), color, layer="body"))
    if len(skeleton.joined[body]) < 2:
        ends = skeleton.more[body]
        parts += [solid("sphere", 2.1 * radius, p, np.eye(3), color, layer="body") for p in ends[-1:]]
    return parts


def body_colors(description: Description) -> Callable[[int], str]:
    """The colour of a body by its number: its own, or one of the palette; for ground that of posts."""
    colors = dict(description.colors)

    def color_of(body: int) -> str:
        return colors.get(description.body_name(body)) or (POST if body == GROUND else PALETTE[body % len(PALETTE)])

    return color_of


def _distinct(points: Iterable[Floats], slack: float) -> Floats:
    """Points without those that meet; more than a body can show are not looked at."""
    distinct: list[Floats] = []
    for point in points:
        if len(distinct) < _POINTS and all(float(np.abs(point - other).max()) > slack for other in distinct):
            distinct.append(np.asarray(point, dtype=np.float64))
    return np.array(distinct).reshape(-1, 3)


def _apart(points: Floats, others: Floats, slack: float) -> Floats:
    return np.array([p for p in points if not (np.abs(others - p).max(axis=1, initial=0.0) <= slack).any()]).reshape(
        -1, 3
    )


def _bars(points: Floats) -> list[tuple[Floats, Floats]]:
    """The shortest bars that hold all points together; three points that are no line make a triangle."""
    if len(points) < 2:
        return []
    if len(points) == 3:
        a, b, c = points
        longest = max(float(np.linalg.norm(x)) for x in (b - a, c - b, a - c))
        if float(np.linalg.norm(np.cross(b - a, c - a))) > 0.05 * longest**2:
            return [(a, b), (b, c), (c, a)]
    distance = np.linalg.norm(points[:, None] - points[None], axis=-1)
    near, source = distance[0].copy(), np.zeros(len(points), int)
    inside = np.zeros(len(points), bool)
    inside[0] = True
    pairs = []
    for _ in range(len(points) - 1):
        k = int(np.argmin(np.where(inside, np.inf, near)))
        pairs.append((points[source[k]], points[k]))
        inside[k] = True
        closer = distance[k] < near
        near[closer], source[closer] = distance[k][closer], k
    return pairs


def _stalks(bars: list[tuple[Floats, Floats]], points: Floats, slack: float) -> list[tuple[Floats, Floats]]:
    """From the nearest place on a bar to each point that no bar passes."""
    stalks = []
    for point in points if bars else ():
        feet = [a + np.clip((point - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0) * (b - a) for a, b in bars]
        foot = min(feet, key=lambda place: float(np.linalg.norm(point - place)))
        if float(np.linalg.norm(point - foot)) > slack:
            stalks.append((foot, point))
    return stalks


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
    for k in seen_joints(description):
        draw = GLYPHS.get(description.kind_of(k).name)
        base, mover = joint_sides(description, k)
        if draw is not None and max(base.body, mover.body) < motion.count:
            on_base, on_mover = draw(_glyph(motion, base, mover, unit, color))
            placed += [(base.body, part) for part in on_base] + [(mover.body, part) for part in on_mover]
    for constraint in description.point_constraints:
        if not isinstance(constraint, PointOnLine | PointOnPlane):
            continue
        base = place(description, constraint.line if isinstance(constraint, PointOnLine) else constraint.plane)
        mover = place(description, constraint.point)
        if max(base.body, mover.body) < motion.count:
            glyph = _glyph(motion, base, mover, unit, color)
            parts = _plate(glyph) if isinstance(constraint, PointOnPlane) else [_track(glyph, 0.45)]
            placed += [(base.body, part) for part in parts]
            placed.append((mover.body, solid("sphere", 1.5 * unit, mover.p, mover.r, STEEL)))
    for first, second in bushing_ends(description, motion.count):
        glyph = _glyph(motion, first, second, unit, color)
        placed.append((first.body, _solid(first, glyph, "cylinder", (2.2, 2.6), RUBBER)))
        placed.append((second.body, _solid(second, glyph, "cylinder", (0.9, 3.6))))
    for end in (end for _, *ends in stretched(description, motion.count) for end in ends):
        placed.append((end.body, solid("sphere", unit, end.p, end.r, STEEL)))
    return placed


def stretched(description: Description, drawn: int) -> Iterator[tuple[Rod | PointForce, Place, Place]]:
    """What reaches from one point to another, with its two ends: rods, and springs, dampers or actuators."""
    for thing in (*description.point_constraints, *description.elements):
        if isinstance(thing, Rod | PointForce):
            first, second = place(description, thing.first), place(description, thing.second)
            if max(first.body, second.body) < drawn:
                yield thing, first, second


def bushing_ends(description: Description, drawn: int) -> Iterator[tuple[Place, Place]]:
    """The two frames of every bushing between bodies that are drawn."""
    for e in description.elements:
        if isinstance(e, Bushing):
            first, second = (place(description, name) for name in e.places)
            if max(first.body, second.body) < drawn:
                yield first, second


def anchors(description: Description, motion: Motion, unit: float) -> list[Floats]:
    """Points of ground that joints are at, for the posts that carry them: both ends of a rail."""
    points = []
    for k in seen_joints(description):
        base, mover = joint_sides(description, k)
        kind = description.kind_of(k).name
        if base.body != GROUND or kind not in GLYPHS or mover.body >= motion.count:
            continue
        if kind in ("prismatic", "cylindrical", "screw"):
            at, length = _glyph(motion, base, mover, unit, lambda body: "").rail(6.5 * unit)
            points += [at + s * 0.5 * length * base.r[:, 2] for s in (-1, 1)]
        elif kind != "planar":
            points.append(base.p)
    ends = [end for _, *pair in stretched(description, motion.count) for end in pair]
    ends += [end for pair in bushing_ends(description, motion.count) for end in pair]
    return points + [end.p for end in ends if end.body == GROUND]


def seen_joints(description: Description) -> list[int]:
    """The joints but those of the massless bodies of curves, which are not drawn."""
    massless = set(parts_of_curves(description.point_constraints))
    return [k for k, name in enumerate(description.joint_names) if name not in massless]


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


def _solid(side: Place, g: Glyph, kind: str, size: tuple[float, ...], color: str = STEEL) -> Part:
    """A part at one side of a joint; sizes are in radii of a bar."""
    return solid(kind, g.unit * np.array(size), side.p, side.r, color)


def _track(g: Glyph, thickness: float) -> Part:
    at, length = g.rail(6.5 * g.unit)
    return solid("cylinder", (thickness * g.unit, length), at, g.base.r, STEEL)


def _rail_and_stops(g: Glyph) -> list[Part]:
    u = g.unit
    at, length = g.rail(6.5 * u)
    stops = [
        solid("box", (2.2 * u, 2.2 * u, 0.7 * u), at, g.base.r, STEEL, shift=(0.0, 0.0, s * 0.5 * length))
        for s in (-1, 1)
    ]
    return [solid("box", (1.1 * u, 1.1 * u, length), at, g.base.r, STEEL), *stops]


def _thread(g: Glyph) -> list[Part]:
    u = g.unit
    at, length = g.rail(6.5 * u)
    count = int(np.clip(length / (1.1 * u), 2, 60))
    places = np.linspace(-0.5, 0.5, count) * (length - 0.6 * u)
    ridges = [solid("cylinder", (1.1 * u, 0.4 * u), at, g.base.r, STEEL, shift=(0.0, 0.0, s)) for s in places]
    return [_track(g, 0.75), *ridges]


def _plate(g: Glyph) -> list[Part]:
    """The rim of a square that the mover stays over."""
    side = g.across + 5.0 * g.unit
    ring = [g.base.p + g.base.r @ np.array([x * side, y * side, 0.0]) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    return [bar(ring[k - 1], ring[k], 0.4 * g.unit, STEEL, layer="joint") for k in range(4)]


#: How the kinds of joints look; those that are not here are not seen.
GLYPHS: dict[str, Callable[[Glyph], Pair]] = {
    "revolute": lambda g: (
        [_solid(g.base, g, "cylinder", (1.8, 3.6)), _solid(g.base, g, "cylinder", (0.9, 4.1), PIN)],
        [],
    ),
    "prismatic": lambda g: (_rail_and_stops(g), [_solid(g.mover, g, "box", (3.3, 3.3, 5.6), g.color)]),
    "cylindrical": lambda g: ([_track(g, 0.8)], [_solid(g.mover, g, "cylinder", (1.8, 5.0), g.color)]),
    "screw": lambda g: (_thread(g), [_solid(g.mover, g, "cylinder", (1.9, 4.0), g.color)]),
    "spherical": lambda g: ([_solid(g.base, g, "sphere", (2.1,))], []),
    "universal": lambda g: (
        [_solid(g.base, g, "cylinder", (0.85, 5.0)), _solid(g.base, g, "sphere", (1.5,), PIN)],
        [_solid(g.mover, g, "cylinder", (0.85, 5.0))],
    ),
    "planar": lambda g: (_plate(g), [_solid(g.mover, g, "cylinder", (2.4, 1.2), g.color)]),
}
