"""Solids of toothed wheels: involute outlines extruded, on cones and as threads; racks, smooth wheels and belts."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.formats.mesh_files import Mesh

FINE, MOST = 90, 400  # teeth with involute flanks, and with flanks at all
_ROOT = 1.25  # of the module below the pitch circle
#: A point of a body by radius, angle, and the place along the width from −1 to 1.
Placing = Callable[[Floats, Floats, float], Floats]


def outline(radius: float, teeth: int, pressure: float, phase: float, *, ring: bool = False) -> Floats:
    """(n, 2): radius (m) and angle (rad) along a gear's rim, a tooth's middle at `phase`; of a ring the inner rim.

    radius: of the pitch circle. pressure: the pressure angle (rad). A ring's spaces are the teeth of a gear.
    """
    if not 0 < teeth <= MOST:
        angles = np.linspace(0.0, 2.0 * math.pi, 96, endpoint=False)
        return np.stack([np.full(96, radius), angles + phase], axis=1)
    module = 2.0 * radius / teeth
    low, high = (radius - module, radius + _ROOT * module) if ring else (radius - _ROOT * module, radius + module)
    low = max(low, 0.3 * radius)
    base = radius * math.cos(pressure)
    radii = [low, max(low, min(base, radius)), radius, high] if teeth <= FINE else [low, high]
    half, middle = 0.5 * math.pi / teeth, _involute(pressure)

    def width(at: float) -> float:
        """Half the angle of a tooth at a radius."""
        lean = math.acos(min(1.0, base / at))
        return float(np.clip(half + middle - _involute(lean), 0.12 * half, 1.8 * half))

    flank = [(at, width(at)) for at in radii]
    tooth = [(at, -angle) for at, angle in flank] + [(at, angle) for at, angle in reversed(flank)]
    first = phase + (math.pi / teeth if ring else 0.0)  # where a ring has a space
    steps = first + np.arange(teeth) * (2.0 * math.pi / teeth)
    rim = np.array(tooth)
    angles = steps[:, None] + rim[:, 1]
    return np.stack([np.broadcast_to(rim[:, 0], angles.shape).reshape(-1), angles.reshape(-1)], axis=1)


def _involute(angle: float) -> float:
    return math.tan(angle) - angle


def wheel(rim: Floats, inner: float, place: Placing, sides: tuple[float, ...] = (-1.0, 1.0)) -> Mesh:
    """The solid between a rim (n, 2) and a circle of radius `inner`, through the `sides` one after another."""
    hub = np.stack([np.full(len(rim), inner), rim[:, 1]], axis=1)
    layers = [place(line[:, 0], line[:, 1], side) for side in sides for line in (rim, hub)]
    return closed_bands(np.concatenate(layers), len(rim), len(sides))


def closed_bands(points: Floats, n: int, sections: int) -> Mesh:
    """Two closed lines of n points in each section: outer and inner walls between sections, and caps at both ends."""
    k = np.arange(n)
    following = (k + 1) % n
    triangles: list[NDArray[np.intp]] = []

    def band(a: int, b: int) -> None:
        """Between two lines, by where they begin."""
        triangles.append(np.stack([a + k, a + following, b + following], axis=1))
        triangles.append(np.stack([a + k, b + following, b + k], axis=1))

    for section in range(sections - 1):
        here, there = 2 * n * section, 2 * n * (section + 1)
        band(here, there)
        band(there + n, here + n)
    last = 2 * n * (sections - 1)
    band(last, last + n)
    band(n, 0)
    return outward(points, np.concatenate(triangles))


def outward(points: Floats, triangles: NDArray[np.intp]) -> Mesh:
    """The mesh, its triangles seen from outside in the positive sense."""
    a, b, c = (points[triangles[:, i]] for i in range(3))
    volume = float(np.einsum("ij,ij->", a, np.cross(b, c)))
    ordered = triangles if volume >= 0.0 else triangles[:, ::-1]
    return Mesh(points.astype(np.float32), np.ascontiguousarray(ordered).astype(np.uint32))


def cylindrical(width: float, twist: float = 0.0) -> Placing:
    """Points of a gear about z; `twist` (rad) is what its teeth turn over half its width."""

    def place(radius: Floats, angle: Floats, side: float) -> Floats:
        turned = angle + side * twist
        height = np.full_like(radius, 0.5 * side * width)
        return np.stack([radius * np.cos(turned), radius * np.sin(turned), height], axis=1)

    return place


def conical(radius: float, apex: float, circle: float, share: float) -> Placing:
    """Points of a bevel gear about z, whose pitch circle is at height `circle`, and whose cone ends at height `apex`.

    The teeth are as wide as `share` of the cone's distance, before and behind the pitch circle.
    """
    deep = circle - apex
    distance = math.hypot(radius, deep)
    outward = np.array([deep, -radius]) / distance  # from the cone, as (radial, along z)

    def place(at: Floats, angle: Floats, side: float) -> Floats:
        reach = 1.0 + side * share
        across = reach * (radius + (at - radius) * outward[0])
        height = apex + reach * (deep + (at - radius) * outward[1])
        return np.stack([across * np.cos(angle), across * np.sin(angle), height], axis=1)

    return place


def thread(radius: float, starts: int, lead: float, phase: float, length: float, centre: float) -> Mesh:
    """A worm about z: a thread's crest has the angle `phase` at height 0. lead: its rise (m) in a turn, left if < 0."""
    module = abs(lead) / starts / math.pi
    points = max(24, 12 * starts)
    angles = np.arange(points) * (2.0 * math.pi / points)
    beside = np.abs((angles * starts / (2.0 * math.pi) + 0.5) % 1.0 - 0.5)  # from a crest, in pitches
    heights = np.interp(beside, (0.13, 0.36), (1.0, -_ROOT)) * module
    rim = np.stack([np.maximum(radius + heights, 0.35 * radius), angles], axis=1)
    turns = length / abs(lead)
    sides = tuple(np.linspace(-1.0, 1.0, int(np.clip(20 * turns, 8, 160))).tolist())

    def place(at: Floats, angle: Floats, side: float) -> Floats:
        height = centre + 0.5 * side * length
        turned = angle + phase + 2.0 * math.pi * height / lead
        return np.stack([at * np.cos(turned), at * np.sin(turned), np.full_like(at, height)], axis=1)

    return wheel(rim, 0.2 * radius, place, sides)


def rack(module: float, pressure: float, low: float, high: float, phase: float, width: float) -> Mesh:
    """A rack along x with teeth towards y, its pitch line at y = 0 and z across: from `low` to `high`, a tooth at
    `phase` (m)."""
    pitch = math.pi * module
    first, last = math.ceil((low - phase) / pitch), math.floor((high - phase) / pitch)
    count = min(last - first + 1, MOST)
    line: list[tuple[float, float]] = [(low, -_ROOT * module)]
    slope = math.tan(pressure)
    for tooth in range(first, first + max(count, 0)):
        middle = phase + tooth * pitch
        for y, sign in ((-_ROOT, -1), (1.0, -1), (1.0, 1), (-_ROOT, 1)):
            half = max(0.25 * pitch - slope * y * module, 0.02 * pitch)
            line.append((middle + sign * half, y * module))
    line.append((high, -_ROOT * module))
    x, y = np.array([(float(np.clip(x, low, high)), y) for x, y in line]).T
    back = np.full_like(y, -3.5 * module)
    layers = [np.stack([x, h, np.full_like(x, 0.5 * s * width)], axis=1) for s in (-1, 1) for h in (y, back)]
    points, n = np.concatenate(layers), len(x)
    k = np.arange(n - 1)
    triangles = []
    for a, b in ((0, 2 * n), (2 * n, 3 * n), (3 * n, n), (n, 0)):
        triangles.append(np.stack([a + k, a + k + 1, b + k + 1], axis=1))
        triangles.append(np.stack([a + k, b + k + 1, b + k], axis=1))
    ends = [[0, 2 * n, 3 * n], [0, 3 * n, n], [n - 1, 4 * n - 1, 3 * n - 1], [n - 1, 2 * n - 1, 4 * n - 1]]
    return outward(points, np.concatenate([*triangles, np.array(ends)]))


def belt(radii: tuple[float, float], distance: float, *, crossed: bool, thickness: float, width: float) -> Mesh:
    """A belt around two wheels in the x–y plane, the first at the origin and the second at x = `distance`."""
    a, b = radii
    lean = math.asin(float(np.clip((a + b if crossed else a - b) / distance, -1.0, 1.0)))
    ends = 0.5 * math.pi - lean  # where a span leaves the first wheel
    first = np.linspace(ends, 2.0 * math.pi - ends, 40)
    inclined = np.pi - ends if crossed else ends
    second = np.linspace(-inclined, inclined, 40)
    middle = [(np.cos(first), np.sin(first), a, 0.0), (np.cos(second), np.sin(second), b, distance)]
    lines = []
    for side in (-1.0, 1.0):
        for offset in (0.5, -0.5):
            parts = []
            for k, (c, s, radius, x) in enumerate(middle):
                order = slice(None, None, -1) if crossed and k else slice(None)
                off = radius + (-offset if crossed and k else offset) * thickness
                part = np.stack([x + off * c, off * s, np.full_like(c, 0.5 * side * width)], axis=1)
                parts.append(part[order])
            lines.append(np.concatenate(parts))
    return closed_bands(np.concatenate(lines), len(lines[0]), 2)
