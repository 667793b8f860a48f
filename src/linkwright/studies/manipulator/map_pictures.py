"""Pictures of reach maps: what ends the workspace, and the conditions of S and W with singular poses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.control import legs_at
from linkwright.errors import LinkwrightError

if TYPE_CHECKING:
    from linkwright.studies.manipulator.maps import Map

COLORS = ("#d9ead3", "#f1f1f1", "#f6d5a8", "#cdb9e6")
SINGULAR = "#d6006e"
LEVELS = (1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)


def plot(chart: Map, path: Path) -> Path:
    """Write the picture (PNG, SVG, PDF by the ending of the path)."""
    try:
        from matplotlib.figure import Figure

        from linkwright.results.figures import save_figure
    except ImportError as error:
        raise LinkwrightError('pictures need matplotlib: pip install "linkwright[plot]"') from error
    x, y = _grid(chart)
    tall = (y[-1] - y[0]) / (x[-1] - x[0])
    figure = Figure(figsize=(15.0, float(np.clip(1.7 + 4.1 * tall, 3.6, 8.0))), layout="constrained")
    ends, driven, legs = figure.subplots(1, 3, sharex=True, sharey=True)
    handles = _ends(chart, ends)
    _condition(chart, driven, chart.quality.s, "condition of S (motors)", figure)
    _condition(chart, legs, chart.quality.w, "condition of W (worst leg)", figure)
    degrees = ("tilt about x (°)", "tilt about y (°)")
    names = degrees if chart.plane == "tilt" else tuple(f"{axis} (m)" for axis in chart.plane)
    for axes in (ends, driven, legs):
        axes.set_xlabel(names[0])
        axes.set_aspect("equal")
        _machine(chart, axes)
    ends.set_ylabel(names[1])
    figure.suptitle(_title(chart))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=9, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_figure(figure, path, dpi=120)
    return path


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
    from matplotlib.colors import ListedColormap
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    from linkwright.studies.manipulator.maps import ENDS, FINE

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
    from linkwright.studies.manipulator.maps import FINE

    mask = (chart.quality.end != FINE) & (chart.quality.leg == leg)
    if mask.sum() < 0.01 * mask.size:
        return
    depth = _depth(mask)
    j, i = np.unravel_index(int(np.argmax(depth)), depth.shape)
    x, y = _grid(chart)
    axes.text(x[i], y[j], str(leg), ha="center", va="center", fontsize=10, color="0.35")


def _depth(mask: Any) -> Any:
    """How many cells lie between a cell of the mask and its border."""
    from scipy.ndimage import distance_transform_edt  # type: ignore[import-untyped]  # SciPy ships no types

    return distance_transform_edt(np.pad(mask, 1))[1:-1, 1:-1]


def _condition(chart: Map, axes: Any, values: Any, title: str, figure: Any) -> None:
    from matplotlib.colors import LogNorm

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
