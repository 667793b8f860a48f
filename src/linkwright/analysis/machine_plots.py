"""The forces of a machine as a figure: the motor's torque with its mean, shaking force and moment, and the polar
diagram of the shaking force.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.errors import on_one_line
from linkwright.results.solution_plots import check_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from linkwright.analysis.machine_report import MachineForces

_INK, _FAINT, _BLUE, _ORANGE, _GREEN = "#222222", "#888888", "#0072B2", "#D55E00", "#009E73"
_ROUNDING = 1e-9  # of the largest number of its kind


def plot(forces: MachineForces, path: str | os.PathLike[str] | None = None) -> Figure:
    """The figure; it belongs to no window and to no state of matplotlib's."""
    from linkwright.results.figures import ShownFigure, save_figure  # weight: matplotlib

    check_figure(path)
    figure = ShownFigure(figsize=(9.6, 6.6), layout="constrained", facecolor="white")
    name = on_one_line(forces.solution.description.name).replace("$", r"\$")
    figure.suptitle(f"Forces of {name}", fontsize=11, color=_INK)
    (torque, force), (polar, moment) = figure.subplots(2, 2)
    if forces.motor_demand is None:
        torque.set_visible(False)
    else:
        draw_torque(torque, forces)
    draw_components(force, forces, forces.shaking_force, "shaking force", "N")
    draw_polar(polar, forces)
    draw_components(moment, forces, forces.shaking_moment, f"shaking moment about {on_one_line(forces.about)}", "N m")
    save_figure(figure, path)
    return figure


def abscissa(forces: MachineForces) -> tuple[Floats, str]:
    """The crank's angle in degrees or shift, or the time (s) without a motor, and its label."""
    m = forces.motor_demand
    if m is None:
        return forces.time, "time (s)"
    name, metre = on_one_line(m.joint), forces.solution.description.units.shown("m")
    if m.unit == "N m":
        return np.degrees(m.angle), f"{name} (°)"
    return np.asarray(metre.of(m.angle)), f"{name} ({metre.text})"


def draw_torque(ax: Axes, forces: MachineForces) -> None:
    """The motor's torque over the crank's angle, its mean, and the areas between."""
    m = forces.motor
    x, label = abscissa(forces)
    unit = forces.solution.description.units.shown(m.unit)
    torque, mean = unit.of(m.torque), unit.of(m.mean)
    ax.fill_between(x, torque, mean, color=_BLUE, alpha=0.16, linewidth=0.0)
    word = "torque" if m.unit == "N m" else "force"
    ax.plot(x, torque, color=_BLUE, linewidth=1.5, label=f"{on_one_line(m.driver)}")
    ax.axhline(mean, color=_ORANGE, linestyle="--", linewidth=1.3, label=f"mean {mean:.4g} {unit.text}")
    _plain(ax, label, f"driver's {word} ({unit.text})")
    _turns(ax, forces)
    ax.legend(fontsize=8, framealpha=0.9, edgecolor="none")


def draw_components(ax: Axes, forces: MachineForces, vectors: Floats, label: str, unit: str) -> None:
    """The components (T, 3) of a vector, in an SI unit, that are more than rounding."""
    x, below = abscissa(forces)
    shown = forces.solution.description.units.shown(unit)
    vectors = np.asarray(shown.of(vectors))
    largest = float(np.abs(vectors).max())
    styles = (("x", _BLUE, "-"), ("y", _ORANGE, "--"), ("z", _GREEN, ":"))
    for (axis, colour, dashes), column in zip(styles, vectors.T, strict=True):
        if np.abs(column).max() > _ROUNDING * largest:
            ax.plot(x, column, color=colour, linestyle=dashes, linewidth=1.4, label=axis)
    _plain(ax, below, f"{label} ({shown.text})")
    _turns(ax, forces)
    if largest:
        ax.legend(fontsize=8, framealpha=0.9, edgecolor="none")


def draw_polar(ax: Axes, forces: MachineForces) -> None:
    """The tip of the shaking force in the plane of its two largest components."""
    newton = forces.solution.description.units.shown("N")
    x = np.asarray(newton.of(forces.shaking_force))
    largest = np.abs(x).max(axis=0)
    first, second = sorted(np.argsort(-largest, kind="stable")[:2].tolist())
    ax.axhline(0.0, color=_FAINT, linewidth=0.6)
    ax.axvline(0.0, color=_FAINT, linewidth=0.6)
    ax.plot(x[:, first], x[:, second], color=_BLUE, linewidth=1.4)
    ax.plot(*x[0, [first, second]], "o", color=_ORANGE, markersize=5)
    reach = 1.12 * float(largest.max() or 1.0)
    ax.set(aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach))
    _plain(ax, f"shaking force {'xyz'[first]} ({newton.text})", f"{'xyz'[second]} ({newton.text})")


def _turns(ax: Axes, forces: MachineForces) -> None:
    """Ticks at parts of a turn."""
    m = forces.motor_demand
    if m is None or m.unit != "N m":
        return
    low, high = sorted(np.degrees(m.angle[[0, -1]]).tolist())
    if high - low > 30.0:
        step = next(s for s in (15.0, 30.0, 45.0, 90.0, 180.0, 360.0, 1e9) if (high - low) / s <= 9.0)
        ax.set_xticks(np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1.0) * step)
        ax.set_xlim(low, high)


def _plain(ax: Axes, below: str, beside: str) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=8, colors=_INK, color=_FAINT)
    ax.set_xlabel(below, fontsize=9, color=_INK, parse_math=False)
    ax.set_ylabel(beside, fontsize=9, color=_INK, parse_math=False)
    ax.grid(color="#e6e6e6", linewidth=0.6)
