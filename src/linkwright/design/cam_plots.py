"""A plate cam as a figure: the cam with its follower, and the motion, pressure angle and curvature over one turn."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Circle, Polygon

from linkwright.design.cam_followers import zero_level
from linkwright.results.figures import ShownFigure, save_figure
from linkwright.results.solution_plots import check_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from linkwright.design.cam_profiles import CamProfile

_INK, _FAINT, _BLUE, _ORANGE, _STEEL = "#222222", "#777777", "#0072B2", "#D55E00", "#c9d6e2"
_ALARM, _PALE = "#A3123A", "#f3d9e0"
_MM = 1e3
_SHARPEST = 20.0  # times 1 over the base radius: curvatures beyond are not drawn


def plot_cam(cam: CamProfile, path: str | os.PathLike[str] | None = None) -> Figure:
    """The figure; it belongs to no window and to no state of matplotlib's."""
    check_figure(path)
    figure = ShownFigure(figsize=(11.5, 7.0), layout="constrained", facecolor="white")
    grid = figure.add_gridspec(5, 2, width_ratios=(1.15, 1.0))
    draw_cam(figure.add_subplot(grid[:, 0]), cam)
    axes = [figure.add_subplot(grid[row, 1]) for row in range(5)]
    _draw_series(axes, cam)
    save_figure(figure, path)
    return figure


def draw_cam(ax: Axes, cam: CamProfile) -> None:
    """The cam at angle 0 in millimetres, with its base circle, pitch curve and follower."""
    follower, sense = cam.follower, cam.sense
    ax.add_patch(Polygon(_MM * cam.profile, closed=True, facecolor=_STEEL, edgecolor=_INK, linewidth=1.6))
    ax.add_patch(Circle((0, 0), _MM * cam.base_radius, fill=False, color=_FAINT, linestyle="--", linewidth=0.9))
    if follower.radius:
        ax.add_patch(Polygon(_MM * cam.pitch, fill=False, edgecolor=_BLUE, linestyle=(0, (8, 3, 2, 3)), linewidth=1.0))
    ax.plot(0, 0, marker="+", color=_INK, markersize=12)
    base, pivot = _MM * cam.base_radius, np.array([_MM * float(follower.pivot), 0.0])
    centre, touch = _MM * cam.pitch[0], _MM * cam.profile[0]
    style: dict[str, Any] = {"color": _ORANGE, "solid_capstyle": "round"}
    if follower.radius:
        ax.add_patch(
            Circle((centre[0], centre[1]), _MM * float(follower.radius), facecolor="#f7e3d4", edgecolor=_ORANGE)
        )
    if follower.oscillates:
        end = centre
        begin = pivot
        if follower.contact == "flat":
            at = zero_level(follower, cam.base_radius) + float(cam.displacement[0])
            begin = pivot + _MM * float(follower.offset) * np.array([math.sin(at), math.cos(at)])
            along = touch - begin
            end = touch + 0.35 * base * along / np.hypot(*along)
            ax.plot(*np.array([pivot, begin]).T, linewidth=2.4, **style)
        ax.plot(*np.array([begin, end]).T, linewidth=2.4, **style)
        ax.plot(*pivot, marker="o", color=_ORANGE, markerfacecolor="white", markersize=8)
    elif follower.contact == "flat":
        low, high = (_MM * x for x in cam.face_range)
        stem = sense * _MM * float(follower.offset)
        ax.plot([stem + sense * 1.1 * low, stem + sense * 1.1 * high], [centre[1]] * 2, linewidth=3.0, **style)
        ax.plot([stem, stem], [centre[1], centre[1] + 0.8 * base], linewidth=2.4, **style)
    else:
        ax.plot([centre[0]] * 2, [centre[1], centre[1] + 0.8 * base], linewidth=2.4, **style)
    for fault in cam.faults:
        part = cam.contact(np.linspace(fault.begin, fault.end, 61)).points
        ax.plot(*(_MM * part).T, color=_ALARM, linewidth=2.4, label=fault.kind)
    if cam.faults:
        kinds = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
        ax.legend(kinds.values(), kinds, fontsize=9, frameon=False)
    _draw_turning(ax, 0.45 * base, sense)
    ax.set_aspect("equal")
    ax.autoscale_view()
    ax.margins(0.06)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.set_xlabel("x (mm)", fontsize=9)
    ax.set_ylabel("y (mm)", fontsize=9)
    ax.tick_params(labelsize=8)


def _draw_turning(ax: Axes, radius: float, sense: float) -> None:
    """An arc with an arrow: how the cam turns."""
    arc = sense * np.linspace(-0.6, 0.9, 40) + 0.5 * math.pi
    x, y = radius * np.cos(arc), radius * np.sin(arc)
    ax.plot(x, y, color=_INK, linewidth=1.2)
    arrow = {"arrowstyle": "-|>", "color": _INK, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", (x[-1], y[-1]), (x[-4], y[-4]), arrowprops=arrow)


def _draw_series(axes: list[Axes], cam: CamProfile) -> None:
    turn = np.degrees(np.append(cam.angles, 2.0 * math.pi))
    unit, scale = ("°", math.degrees(1.0)) if cam.follower.oscillates else ("mm", _MM)
    slides = cam.follower.contact == "flat" and not cam.follower.oscillates
    rows = [
        (scale * cam.displacement, f"displacement\n({unit})"),
        (scale * cam.velocity, f"velocity\n({unit}/rad)"),
        (scale * cam.acceleration, f"acceleration\n({unit}/rad²)"),
        (_MM * cam.face, "contact on the\nface (mm)")
        if slides
        else (np.degrees(cam.pressure_angle), "pressure\nangle (°)"),
        (cam.curvature / _MM, "curvature\n(1/mm)"),
    ]
    for ax, (values, label) in zip(axes, rows, strict=True):
        ax.plot(turn, np.append(values, values[0]), color=_BLUE, linewidth=1.5)
        for fault in cam.faults:
            for turns in (0.0, 360.0) if fault.end > 2.0 * math.pi else (0.0,):
                ax.axvspan(math.degrees(fault.begin) - turns, math.degrees(fault.end) - turns, color=_PALE, zorder=0)
        ax.axhline(0.0, color=_FAINT, linewidth=0.7, zorder=0)
        ax.set_ylabel(label, fontsize=9)
        ax.set_xlim(0, 360)
        ax.set_xticks(range(0, 361, 45))
        ax.tick_params(labelsize=8, labelbottom=ax is axes[-1])
        ax.grid(color="#e5e5e5", linewidth=0.6)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    limit = _SHARPEST / (_MM * cam.base_radius)
    finite = cam.curvature[np.abs(cam.curvature) < limit * _MM] / _MM
    if len(finite) < len(cam.curvature) and len(finite):
        axes[-1].set_ylim(finite.min() - 0.1 * limit, finite.max() + 0.1 * limit)
    axes[-1].set_xlabel("angle of the cam (°)", fontsize=9)
    axes[-1].figure.align_ylabels(axes)
