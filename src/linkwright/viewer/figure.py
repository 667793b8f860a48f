"""Stick figures: the points that matter on each body, and the bars between them where a model gives no shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.model.bodies import place
from linkwright.model.description import GROUND, Description
from linkwright.model.elements import PointForce, Rod
from linkwright.viewer.motion import Motion
from linkwright.viewer.parts import PALETTE, POST, Part, bar, solid

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
    for k in range(description.nj):
        if description.kind_of(k).name == "free":
            continue
        ends = ((int(description.parent[k]), description.pi[k]), (int(description.child[k]), description.pj[k]))
        if all(body in joined for body, _ in ends):
            for body, point in ends:
                joined[body].append(point)
    for tie in (*description.ties, *(e for e in description.elements if isinstance(e, PointForce))):
        names = (tie.first, tie.second) if isinstance(tie, Rod | PointForce) else (tie.point,)
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
