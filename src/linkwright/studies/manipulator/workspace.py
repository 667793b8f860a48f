"""Where the six-leg manipulator reaches and how well: workspace, joint limits, conditions of S and W.

S = ∂θ_A/∂x takes the plate's twist to the motors' rates, W = J⁻¹ to all rates of a leg; turns are measured at
`Hexapod.turn_length`. Where several orientations are asked for, a point is as good as its worst one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwright.base.arrays import Floats
from linkwright.control import (
    Hexapod,
    Legs,
    check_motors,
    check_reach,
    check_regular,
    leg_jacobians,
    legs_at,
    rotation_matrix,
)
from linkwright.errors import ModelError, ShapeError
from linkwright.studies.manipulator.machine import SIX_LEG

Plane = Literal["xy", "xz", "yz", "tilt"]
PLANES: tuple[Plane, ...] = ("xy", "xz", "yz", "tilt")
#: What ends the workspace at a point: nothing, a leg's reach, its universal joint, its spherical joint.
FINE, REACH, UNIVERSAL, SPHERICAL = range(4)
ENDS = ("reachable", "a leg's reach", "a universal joint's tilt", "a spherical joint's tilt")


@dataclass(frozen=True)
class Limits:
    """How far joints go (rad): a universal joint out of the crank's plane, a spherical one from its rod at home."""

    universal: float = float(np.deg2rad(45.0))
    spherical: float = float(np.deg2rad(45.0))


@dataclass(frozen=True)
class Quality:
    """How well the machine stands at poses (...), or over a map's grid."""

    end: NDArray[np.int64]  # FINE, REACH, UNIVERSAL or SPHERICAL
    leg: NDArray[np.int64]  # the leg (from 1) that ends the workspace or is nearest to its end
    short: Floats  # what the worst leg lacks (m)
    slack: Floats  # what is left of the worst leg's reach (m), negative beyond
    room: Floats  # what is left of the worst joint's tilt (rad), negative beyond
    s: Floats  # condition of S; infinite out of reach
    w: Floats  # condition of the worst leg's W; infinite out of reach
    sign: Floats  # determinant of S's numerators, whose change of sign is a singular pose; NaN out of reach

    @property
    def reachable(self) -> NDArray[np.bool_]:
        """Within reach and all joint limits."""
        return np.asarray(self.end == FINE)


def quality(geometry: Hexapod, pose: ArrayLike, *, limits: Limits | None = None, knee: int = -1) -> Quality:
    """Reach, joint limits and conditions at poses (..., 7)."""
    where = np.asarray(pose, dtype=np.float64)
    limits = Limits() if limits is None else limits
    legs = legs_at(geometry, where, knee=knee)
    tilted = np.stack(
        [limits.universal - np.abs(legs.angles[..., 2]), limits.spherical - _ball_tilt(geometry, legs, where)], axis=-1
    )
    # The worst leg, by reach before tilts; of legs that are alike by symmetry the first counts, whatever rounding does.
    slack, room = legs.slack.min(axis=-1), tilted.min(axis=(-2, -1))
    beyond = slack < 0.0
    leg = np.where(beyond, _first_least(legs.slack), _first_least(tilted.min(axis=-1)))
    tight = np.argmin(np.take_along_axis(tilted, leg[..., None, None], axis=-2)[..., 0, :], axis=-1)
    end = np.where(beyond, REACH, np.where(room < 0.0, UNIVERSAL + tight, FINE))
    s, w, sign = (np.full(beyond.shape, x) for x in (np.inf, np.inf, np.nan))
    if not beyond.all():
        inside = Legs(*(x[~beyond] for x in legs))
        s[~beyond], w[~beyond], sign[~beyond] = _conditions(geometry, inside, where[..., :3][~beyond])
    return Quality(end, leg + 1, legs.short.max(axis=-1), slack, room, s, w, sign)


def _first_least(values: Floats) -> NDArray[np.int64]:
    return np.asarray(np.argmin(np.round(values, 9), axis=-1))


def check_pose(
    geometry: Hexapod, pose: ArrayLike, *, worst: float = 1e4, limits: Limits | None = None, knee: int = -1
) -> Quality:
    """How well the machine stands at one pose (7,).

    A pose that a leg cannot reach raises `Unreachable`; one where the condition of S or of a leg's W is above `worst`,
    `SingularPose`; one beyond a joint's limit, where `limits` are given, `ModelError`.
    """
    where = np.asarray(pose, dtype=np.float64)
    if where.shape != (7,):
        raise ShapeError(f"the pose has shape {where.shape}; give (7,): x, y, z and Euler parameters")
    legs = legs_at(geometry, where, knee=knee)
    check_reach(geometry, legs)
    check_motors(geometry, legs, worst)
    check_regular(geometry, legs, leg_jacobians(geometry, legs, where[:3]), worst)
    here = quality(geometry, where, limits=limits, knee=knee)
    if limits is not None and here.end != FINE:
        leg = int(here.leg)
        text = f"leg {leg} is beyond {ENDS[int(here.end)]}; bring the plate towards home, or allow its joint more"
        raise ModelError(text, element=f"leg {leg}")
    return here


def _ball_tilt(geometry: Hexapod, legs: Legs, pose: Floats) -> Floats:
    """(..., 6): the angle between each rod and its direction at home, as the plate sees them."""

    def seen(x: Legs, turn: Floats) -> Floats:
        u = x.wrists - x.knees
        return np.asarray(np.einsum("...ji,...lj->...li", turn, u / np.linalg.norm(u, axis=-1, keepdims=True)))

    home = seen(legs_at(geometry, geometry.home), rotation_matrix(geometry.home[3:]))
    cosine = (seen(legs, rotation_matrix(pose[..., 3:])) * home).sum(axis=-1)
    return np.asarray(np.arccos(np.clip(cosine, -1.0, 1.0)))


def _conditions(geometry: Hexapod, legs: Legs, position: Floats) -> tuple[Floats, Floats, Floats]:
    """The conditions of S and of the worst leg's W, and the determinant of S's numerators."""
    size = geometry.twist_scale
    rows = legs.rows / size
    s = rows / np.where(np.abs(legs.ways) < 1e-12, 1e-12, legs.ways)[..., None]
    jacobians = size[:, None] * leg_jacobians(geometry, legs, position)
    return np.linalg.cond(s), np.linalg.cond(jacobians).max(axis=-1), np.linalg.det(rows)


def tilts(angle: float, count: int = 8) -> Floats:
    """(count + 1, 4): Euler parameters of no tilt and of tilts by `angle` (rad) about horizontal axes all around."""
    around = 2.0 * np.pi * np.arange(count) / count
    zero = np.zeros(count)
    half = np.sin(angle / 2.0)
    tilted = np.stack([zero + np.cos(angle / 2.0), half * np.cos(around), half * np.sin(around), zero], axis=1)
    return np.vstack([[1.0, 0.0, 0.0, 0.0], tilted])


@dataclass(frozen=True)
class Map:
    """Quality over a grid: arrays of shape (points of the second axis, points of the first)."""

    geometry: Hexapod
    plane: Plane
    at: float  # the coordinate that stays (m); of "tilt", the height of home
    first: Floats  # the grid along the horizontal axis (m, or rad of "tilt")
    second: Floats
    orientations: int  # how many were asked for at each point
    quality: Quality

    @property
    def reachable(self) -> NDArray[np.bool_]:
        """Within reach and all joint limits, in every orientation."""
        return self.quality.reachable

    @property
    def area(self) -> float:
        """The reachable part of the grid (m², or rad²)."""
        cell = (self.first[1] - self.first[0]) * (self.second[1] - self.second[0])
        return float(self.reachable.sum() * cell)

    def __str__(self) -> str:
        unit = "rad²" if self.plane == "tilt" else "m²"
        if not self.reachable.any():
            return f"reach over {self.plane}: nowhere on the grid; widen it, or ask for smaller tilts"
        s, w = self.quality.s[self.reachable], self.quality.w[self.reachable]
        return (
            f"reach over {self.plane}, {self.orientations} orientation{'s' * (self.orientations > 1)}: "
            f"{self.area:.3g} {unit}; condition of S {s.min():.3g} to {s.max():.3g}, of W up to {w.max():.3g}"
        )

    def plot(self, path: str | Path) -> Path:
        """Write a picture: what ends the workspace, the conditions of S and of the worst leg's W, singular poses.

        It is a PNG, SVG or PDF by the ending of the path.
        """
        from linkwright.results.figures import ShownFigure, save_figure  # weight: matplotlib

        x, y = _grid(self)
        tall = (y[-1] - y[0]) / (x[-1] - x[0])
        figure = ShownFigure(figsize=(15.0, float(np.clip(1.7 + 4.1 * tall, 3.6, 8.0))), layout="constrained")
        ends, driven, legs = figure.subplots(1, 3, sharex=True, sharey=True)
        handles = _ends(self, ends)
        _condition(self, driven, self.quality.s, "condition of S (motors)", figure)
        _condition(self, legs, self.quality.w, "condition of W (worst leg)", figure)
        degrees = ("tilt about x (°)", "tilt about y (°)")
        names = degrees if self.plane == "tilt" else tuple(f"{axis} (m)" for axis in self.plane)
        for axes in (ends, driven, legs):
            axes.set_xlabel(names[0])
            axes.set_aspect("equal")
            _machine(self, axes)
        ends.set_ylabel(names[1])
        figure.suptitle(_title(self))
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=9, frameon=False)
        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        save_figure(figure, file, dpi=120)
        return file


def reach_map(
    geometry: Hexapod = SIX_LEG,
    plane: Plane = "xz",
    *,
    at: float | None = None,
    span: tuple[tuple[float, float], tuple[float, float]] | None = None,
    points: int = 141,
    orientations: ArrayLike | None = None,
    limits: Limits | None = None,
    knee: int = -1,
) -> Map:
    """Reach and conditions over a plane of the plate's positions, or ("tilt") of its tilts about x and y at home.

    `at` is the coordinate that stays (m; home's unless given), `span` the grid's limits along its two axes, with
    `points` along each. `orientations` (k, 4) are Euler parameters, home's alone unless given; `tilts(0.2)` makes
    some. A point is as good as its worst one.
    """
    g = geometry
    if plane not in PLANES:
        raise ModelError(f"plane is {plane!r}; give one of {', '.join(PLANES)}")
    if points < 2:
        raise ModelError(f"points is {points}; give at least 2 along each axis")
    turns = np.atleast_2d(np.asarray(g.home[3:] if orientations is None else orientations, dtype=np.float64))
    if turns.ndim != 2 or turns.shape[1] != 4 or (plane == "tilt" and orientations is not None):
        text = "orientations are (k, 4) Euler parameters, for planes of positions"
        raise ShapeError(text, given=turns.shape, wanted=(4,))
    wide, low, high = _spans(g, plane)
    (a0, a1), (b0, b1) = ((-wide, wide), (low, high)) if span is None else span
    if not (a0 < a1 and b0 < b1):
        raise ModelError(f"span is {span}; give ((low, high), (low, high))")
    first, second = np.linspace(a0, a1, points), np.linspace(b0, b1, points)
    one, two = np.meshgrid(first, second)
    pose = np.broadcast_to(g.home, (len(turns), *one.shape, 7)).copy()
    pose[..., 3:] = turns[:, None, None]
    if plane == "tilt":
        at = g.home_height if at is None else at
        pose[..., 2] = at
        angle = np.hypot(one, two)
        pose[0, ..., 3] = np.cos(angle / 2.0)
        pose[0, ..., 4:6] = (0.5 * np.sinc(angle / (2.0 * np.pi)))[..., None] * np.stack([one, two], axis=-1)
    else:
        stays = next(k for k, axis in enumerate("xyz") if axis not in plane)
        at = float(g.home[stays]) if at is None else at
        pose[..., stays] = at
        pose[..., "xyz".index(plane[0])], pose[..., "xyz".index(plane[1])] = one, two
    worst = _worst(quality(g, pose, limits=limits, knee=knee))
    return Map(g, plane, float(at), first, second, len(turns), worst)


def _worst(each: Quality) -> Quality:
    """Of all orientations (first axis): the orientation that is furthest out says what ends the workspace."""
    beyond = (each.slack < 0.0).any(axis=0)
    worst = np.where(beyond, *(_first_least(np.moveaxis(x, 0, -1)) for x in (each.slack, each.room)))[None]
    end, leg = (np.take_along_axis(x, worst, axis=0)[0] for x in (each.end, each.leg))
    least = np.min(np.abs(each.sign), axis=0) * np.where((each.sign < 0.0).any(axis=0), -1.0, 1.0)
    slack, room = (x.min(axis=0) for x in (each.slack, each.room))
    short, s, w = (x.max(axis=0) for x in (each.short, each.s, each.w))
    return Quality(end, leg, short, slack, room, s, w, np.where(beyond, np.nan, least))


def _spans(g: Hexapod, plane: Plane) -> tuple[float, float, float]:
    """Half the width of a default grid, and its limits along the second axis."""
    if plane == "tilt":
        return np.pi / 2, -np.pi / 2, np.pi / 2
    wide = 0.85 * (g.crank + g.rod)
    return (wide, 0.0, 1.05 * (g.crank + g.rod)) if "z" in plane else (wide, -wide, wide)


COLORS = ("#d9ead3", "#f1f1f1", "#f6d5a8", "#cdb9e6")
SINGULAR = "#d6006e"
LEVELS = (1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)


def _title(chart: Map) -> str:
    stays = next((axis for axis in "xyz" if axis not in chart.plane), "z")
    where = f"{stays} = {chart.at:.3g} m" if chart.plane != "tilt" else f"at home, z = {chart.at:.3g} m"
    many = f", worst of {chart.orientations} orientations" if chart.orientations > 1 else ""
    return f"Six-leg manipulator: {'tilts' if chart.plane == 'tilt' else chart.plane + ' plane'}, {where}{many}"


def _grid(chart: Map) -> tuple[Any, Any]:
    scale = 180.0 / np.pi if chart.plane == "tilt" else 1.0
    return scale * chart.first, scale * chart.second


def _ends(chart: Map, axes: Any) -> list[Any]:
    """What ends the workspace where; the entries of a legend."""
    from matplotlib.colors import ListedColormap  # weight: matplotlib
    from matplotlib.lines import Line2D  # weight: matplotlib
    from matplotlib.patches import Patch  # weight: matplotlib

    x, y, q = *_grid(chart), chart.quality
    colors = ListedColormap(COLORS)
    axes.pcolormesh(x, y, q.end, cmap=colors, vmin=-0.5, vmax=3.5, shading="nearest", rasterized=True)
    for leg in range(1, 7):
        mask = ((q.end != FINE) & (q.leg == leg)).astype(float)
        if mask.any() and not mask.all():
            axes.contour(x, y, mask, levels=[0.5], colors="0.7", linewidths=0.5)
        _leg_number(chart, axes, leg)
    _borders(chart, axes)
    axes.set_title("where it reaches, and which leg ends it")
    shown = [Patch(color=COLORS[k], label=ENDS[k]) for k in range(4) if (q.end == k).any()]
    known = [Line2D([], [], color="0.1", linewidth=1.4, label="joint limits")] if (q.room < 0.0).any() else []
    if _singular(chart, axes):
        known.append(Line2D([], [], color=SINGULAR, label="singular: the motors do not hold the plate"))
    return [*shown, *known]


def _borders(chart: Map, axes: Any) -> None:
    """The ends of reach (thin) and of reach within joint limits (thick)."""
    x, y, q = *_grid(chart), chart.quality
    if (q.slack < 0.0).any() and (q.slack > 0.0).any():
        axes.contour(x, y, q.slack, levels=[0.0], colors="0.25", linewidths=0.9)
    left = np.where(q.slack < 0.0, np.nan, q.room)
    if (left < 0.0).any() and (left > 0.0).any():
        axes.contour(x, y, np.ma.masked_invalid(left), levels=[0.0], colors="0.1", linewidths=1.4)


def _leg_number(chart: Map, axes: Any, leg: int) -> None:
    """A leg's number, in the largest part of the map that it ends."""

    mask = (chart.quality.end != FINE) & (chart.quality.leg == leg)
    if mask.sum() < 0.01 * mask.size:
        return
    depth = _depth(mask)
    j, i = np.unravel_index(int(np.argmax(depth)), depth.shape)
    x, y = _grid(chart)
    axes.text(x[i], y[j], str(leg), ha="center", va="center", fontsize=10, color="0.35")


def _depth(mask: Any) -> Any:
    """How many cells lie between a cell of the mask and its border."""
    from scipy.ndimage import distance_transform_edt  # type: ignore[import-untyped]  # weight: scipy, which has no types

    return distance_transform_edt(np.pad(mask, 1))[1:-1, 1:-1]


def _condition(chart: Map, axes: Any, values: Any, title: str, figure: Any) -> None:
    from matplotlib.colors import LogNorm  # weight: matplotlib

    x, y = _grid(chart)
    shown = np.ma.masked_invalid(np.where(np.isfinite(values), values, np.nan))
    norm = LogNorm(1.0, 200.0)
    mesh = axes.pcolormesh(x, y, shown, cmap="viridis_r", norm=norm, shading="nearest", rasterized=True)
    bar = figure.colorbar(mesh, ax=axes, shrink=0.85, extend="max")
    bar.set_ticks([1, 2, 5, 10, 20, 50, 100, 200], labels=["1", "2", "5", "10", "20", "50", "100", "200"])
    if shown.count() and shown.min() < LEVELS[-1] and shown.max() > LEVELS[0]:
        lines = axes.contour(x, y, shown, levels=LEVELS, colors="white", linewidths=0.7)
        if places := _label_places(chart, lines, shown):
            axes.clabel(lines, fmt="%g", fontsize=7, manual=places)
    _borders(chart, axes)
    _singular(chart, axes)
    axes.set_title(title)


def _label_places(chart: Map, lines: Any, shown: Any) -> list[tuple[float, float]]:
    """One place on each contour, as deep inside the workspace as it goes; none at the border, or beside another."""
    x, y = _grid(chart)
    depth = _depth(~np.ma.getmaskarray(shown))
    near = 0.07 * max(depth.shape)
    places: list[tuple[float, float]] = []
    for contour in lines.get_paths():
        points = contour.vertices
        cells = _cells(points[:, 0], points[:, 1], x, y)
        deep = depth[np.rint(cells[1]).astype(int), np.rint(cells[0]).astype(int)]
        for px, py in places:
            deep = np.where(np.hypot(*(cells - _cells([px], [py], x, y))) < near, 0.0, deep)
        if deep.size and deep.max() >= 0.03 * max(depth.shape):
            places.append((float(points[deep.argmax(), 0]), float(points[deep.argmax(), 1])))
    return places


def _cells(across: Any, up: Any, x: Any, y: Any) -> Any:
    """(2, n): where points lie on the grid, counted in cells."""
    return np.stack([np.interp(across, x, np.arange(len(x))), np.interp(up, y, np.arange(len(y)))])


def _singular(chart: Map, axes: Any) -> bool:
    """Where the determinant of S's numerators changes its sign."""
    sign = chart.quality.sign
    known = sign[np.isfinite(sign)]
    if not (known.size and known.min() < 0.0 < known.max()):
        return False
    x, y = _grid(chart)
    axes.contour(x, y, np.ma.masked_invalid(sign), levels=[0.0], colors=SINGULAR, linewidths=1.8)
    return True


def _machine(chart: Map, axes: Any) -> None:
    """The machine at home, seen along the axis that stays; of tilts, the middle."""
    if chart.plane == "tilt":
        axes.plot(0.0, 0.0, "+", color="0.2")
        return
    g = chart.geometry
    legs = legs_at(g, g.home)
    one, two = ("xyz".index(axis) for axis in chart.plane)
    for base, knee, wrist in zip(g.base_points, legs.knees, legs.wrists, strict=True):
        line = np.stack([base, knee, wrist])
        axes.plot(line[:, one], line[:, two], color="0.25", linewidth=1.0, alpha=0.45)
        axes.plot(base[one], base[two], "o", color="0.25", markersize=3, alpha=0.6)
    ring = np.vstack([legs.wrists, legs.wrists[:1]])
    axes.plot(ring[:, one], ring[:, two], color="#35608f", linewidth=2.0, alpha=0.7)
    axes.set_xlim(chart.first[0], chart.first[-1])
    axes.set_ylim(chart.second[0], chart.second[-1])
