"""Curves as they are drawn: cams, rollers and faces where curves touch, slots and their pins where points stay on them.

The massless bodies that constraints on curves bring along are not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.formats.mesh_files import Mesh
from linkwright.model.body_motion import Place, place
from linkwright.model.curve_elements import Curve, PointOnCurve, parts_of_curves
from linkwright.model.curve_shapes import outline
from linkwright.model.description import GROUND, Description
from linkwright.viewer.curve_outlines import area, around, inside, plate, ring, shifted
from linkwright.viewer.page import Motion
from linkwright.viewer.shapes import STEEL, Part, bar, solid

_POINTS = 180  # of an outline
_SPOKES = 5


@dataclass(frozen=True, eq=False)
class _Drawn:
    """A curve: its points (n, 2) in its frame, and those of the curves that touch it, in the same frame."""

    at: Place
    curve: Curve
    line: Floats
    touching: tuple[Floats, ...]
    followed: bool  # whether a point stays on it

    @property
    def size(self) -> float:
        return float(np.ptp(self.line, axis=0).max())


def massless_bodies(d: Description) -> set[int]:
    """The bodies that constraints on curves bring along, by number: the last ones."""
    names = set(parts_of_curves(d.point_constraints))
    return {k for k, name in enumerate(d.body_names) if name in names}


def bodies_shown(d: Description) -> int:
    """How many of the bodies, from the first, can be seen: of the massless ones up to the last with a trace."""
    hidden = massless_bodies(d) - {place(d, trace.place).body for trace in d.traces}
    return max((k + 1 for k in range(d.nb) if k not in hidden), default=0)


def curve_solids(
    d: Description, motion: Motion, unit: float, color: Callable[[int], str], joined: Mapping[int, Floats]
) -> Iterator[tuple[int, Part, Mesh | None]]:
    """The parts of all curves with their bodies and meshes; `unit` is the radius of a bar.

    `joined` has the points (n, 3) at which each body is held: a bar leads from the nearest to a roller, face or slot.
    """
    for x in _curves(d, motion):
        yield from _solids(x, unit, color(x.at.body))
        yield from _carrier(x, unit, color(x.at.body), joined.get(x.at.body, np.zeros((0, 3))))
    for constraint in d.point_constraints:
        if isinstance(constraint, PointOnCurve) and not constraint.contact:
            at, way = place(d, constraint.point), place(d, constraint.curve.place)
            if max(at.body, way.body) < motion.count:
                h = motion.directions(way.body, way.r[:, 2])[0]
                axes = np.stack([motion.directions(at.body, e)[0] for e in np.eye(3)], axis=1)
                half = 1.6 * unit * (axes.T @ h)
                gap = _gap(float(np.ptp(outline(constraint.curve, d.parameters, _POINTS)[1], axis=0).max()), unit)
                yield at.body, bar(at.p - half, at.p + half, 0.85 * gap, STEEL, kind="cylinder"), None


def curve_rims(d: Description, motion: Motion, unit: float) -> Iterator[tuple[int, Floats]]:
    """Closed lines (n, 3) of cams, rollers, faces and slots in the axes of their bodies."""
    for x in _curves(d, motion):
        flat = np.zeros((len(rim := _rim(x, unit)), 3))
        flat[:, :2] = rim
        yield x.at.body, x.at.p + flat @ x.at.r.T


def curve_extent(d: Description, motion: Motion) -> Floats:
    """The points (n, 3) of all curves at the first time, in ground's axes."""
    points = [np.zeros((0, 3))]
    for x in _curves(d, motion):
        flat = np.concatenate([x.line, np.zeros((len(x.line), 1))], axis=1)
        points.append(motion.places(x.at.body, x.at.p + flat @ x.at.r.T)[0])
    return np.concatenate(points)


def _curves(d: Description, motion: Motion) -> list[_Drawn]:
    """The curves on bodies that are drawn."""
    held = [x for x in d.point_constraints if isinstance(x, PointOnCurve)]
    places = {curve.name: place(d, curve.place) for curve in d.curves}
    lines = {curve.name: _line(curve, d) for curve in d.curves if places[curve.name].body < motion.count}
    drawn = []
    for curve in d.curves:
        if curve.name not in lines:
            continue
        contacts = {x.contact for x in held if x.contact and x.curve.name == curve.name}
        others = [x.curve.name for x in held if x.contact in contacts and x.curve.name != curve.name]
        mine = places[curve.name]
        touching = tuple(_seen(motion, mine, places[name], lines[name]) for name in others if name in lines)
        followed = any(x.curve.name == curve.name and not x.contact for x in held)
        drawn.append(_Drawn(mine, curve, lines[curve.name], touching, followed))
    return drawn


def _line(curve: Curve, d: Description) -> Floats:
    """Points (n, 2) along a curve; the last of a closed one is not its first."""
    points = outline(curve, d.parameters, _POINTS)[1]
    return points[:-1] if curve.closed else points


def _seen(motion: Motion, mine: Place, other: Place, line: Floats) -> Floats:
    """A line in the frame `other` as it is at the first time in the frame `mine`."""
    flat = np.concatenate([line, np.zeros((len(line), 1))], axis=1)
    points = motion.places(other.body, other.p + flat @ other.r.T)[0]
    axes = np.stack([motion.directions(mine.body, mine.r[:, k])[0] for k in range(3)], axis=1)
    return np.asarray(((points - motion.places(mine.body, mine.p)[0, 0]) @ axes)[:, :2])


def _gap(size: float, unit: float) -> float:
    """Half the width of a slot."""
    return min(unit, 0.06 * size)


def _rim(x: _Drawn, unit: float) -> Floats:
    if x.curve.closed:
        return x.line
    return _backed(x, unit) if x.touching else around(x.line, _gap(x.size, unit))


def _backed(x: _Drawn, unit: float) -> Floats:
    """An open line and what is behind it, seen from the curves that touch it."""
    centre = np.concatenate(x.touching).mean(axis=0)
    normal = shifted(x.line, 1.0, closed=False) - x.line
    near = int(np.argmin(np.linalg.norm(x.line - centre, axis=1)))
    depth = min(1.6 * unit, 0.15 * x.size) * (-1.0 if (centre - x.line[near]) @ normal[near] > 0.0 else 1.0)
    return np.concatenate([x.line, shifted(x.line, depth, closed=False)[::-1]])


def _solids(x: _Drawn, unit: float, color: str) -> Iterator[tuple[int, Part, Mesh | None]]:
    width = min(2.2 * unit, 0.5 * x.size)
    part = Part("mesh", (1.0,), x.at.p, x.at.r, color, "body", 0)
    for mesh in _meshes(x, unit, width):
        yield x.at.body, part, mesh
    if x.curve.kind == "circle" and x.touching and not _encloses(x):
        radius = 0.5 * x.size
        turns = 2.0 * math.pi * np.arange(_SPOKES) / _SPOKES
        for angle in turns:  # so that turning is seen
            end = x.at.p + 0.9 * radius * (math.cos(angle) * x.at.r[:, 0] + math.sin(angle) * x.at.r[:, 1])
            yield x.at.body, bar(x.at.p, end, min(0.5 * unit, 0.12 * radius), color), None
        hub = min(1.2 * unit, 0.3 * radius)
        yield x.at.body, solid("cylinder", (hub, width), x.at.p, x.at.r, color, layer="body"), None


def _carrier(x: _Drawn, unit: float, color: str, points: Floats) -> Iterator[tuple[int, Part, None]]:
    """A bar to a roller's centre, a face or a slot, from the nearest of the points where its body is held."""
    if x.at.body == GROUND or not len(points):
        return
    if x.curve.kind == "circle" and x.touching:
        ends, short = x.at.p[None], 0.0
    elif x.curve.closed and not x.followed:
        return
    else:
        rim = _rim(x, unit)
        ends = x.at.p + np.concatenate([rim, np.zeros((len(rim), 1))], axis=1) @ x.at.r.T
        short = 1.8 * _gap(x.size, unit) if x.curve.closed else 0.0
    distance = np.linalg.norm(ends[:, None] - points[None], axis=-1)
    i, k = np.unravel_index(int(np.argmin(distance)), distance.shape)
    if distance[i, k] > 2.0 * unit + short:
        end = ends[i] + short / distance[i, k] * (points[k] - ends[i])
        yield x.at.body, bar(points[k], end, unit, color), None


def _encloses(x: _Drawn) -> bool:
    """Whether what touches a closed curve is inside it."""
    return bool(inside(np.concatenate(x.touching), x.line).mean() > 0.5)


def _meshes(x: _Drawn, unit: float, width: float) -> Iterator[Mesh]:
    gap, wall = _gap(x.size, unit), min(0.8 * unit, 0.05 * x.size)
    line = x.line if not x.curve.closed or area(x.line) > 0.0 else x.line[::-1]
    if x.touching and not x.curve.closed:
        behind = plate(_backed(x, unit), width)
        if behind is not None:
            yield behind
    elif x.touching and _encloses(x):
        yield ring(shifted(line, min(2.0 * unit, 0.12 * x.size), closed=True), line, width)
    elif x.touching:
        disc = None if x.curve.kind == "circle" else plate(line, width)
        thick = min(unit, 0.125 * x.size)
        yield ring(line, shifted(line, -thick, closed=True), width) if disc is None else disc
    elif not x.followed:
        yield from _walls(line, 0.0, 0.4 * wall, width, closed=x.curve.closed)
    if x.followed:
        yield from _walls(line, gap, wall, width, closed=x.curve.closed)


def _walls(line: Floats, gap: float, wall: float, width: float, *, closed: bool) -> Iterator[Mesh]:
    """What is beside a line on both sides of a gap; the line itself without one."""
    if not closed:
        yield ring(around(line, gap + wall), around(line, gap), width)
        return
    for near, far in ((gap, gap + wall), (-gap - wall, -gap)) if gap else ((-wall, wall),):
        yield ring(shifted(line, far, closed=True), shifted(line, near, closed=True), width)
