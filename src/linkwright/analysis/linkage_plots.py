"""A linkage report as a figure: transmission angles, and the rates of the outputs with their dead centres."""

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

    from linkwright.analysis.linkage_report import LinkageReport

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222")
#: Transmission angles (degrees) that textbooks ask for.
GOOD = (40.0, 140.0)


def plot(report: LinkageReport, path: str | os.PathLike[str] | None = None) -> Figure:
    """The figure; it belongs to no window and to no state of matplotlib's."""
    from linkwright.results.figures import ShownFigure, save_figure  # weight: matplotlib

    check_figure(path)
    figure = ShownFigure(figsize=(8.4, 6.2), layout="constrained", facecolor="white")
    figure.suptitle(f"Linkage report of {_plain(report.name)}", fontsize=11)
    top, bottom = figure.subplots(2, 1, sharex=True)
    _draw_transmission(top, report)
    _draw_rates(bottom, report)
    unit = "°" if report.angular else "m"
    bottom.set_xlabel(f"{_plain(report.input)} ({unit})")
    save_figure(figure, path)
    return figure


def _draw_transmission(ax: Axes, report: LinkageReport) -> None:
    x = _shown(report, report.input_values)
    for k, (name, one) in enumerate(report.transmission.items()):
        colour = COLOURS[k % len(COLOURS)]
        ax.plot(x, np.degrees(one.angles), color=colour, linewidth=1.5, label=_plain(name))
        ax.plot(_shown(report, one.input), np.degrees(one.worst), "o", color=colour, markersize=6)
    ax.axhspan(*GOOD, color="#009E73", alpha=0.07, linewidth=0)
    ax.set(ylabel="transmission angle (°)", ylim=(0, 180), yticks=range(0, 181, 30))
    _finish(ax, bool(report.transmission))


def _draw_rates(ax: Axes, report: LinkageReport) -> None:
    x = _shown(report, report.input_values)
    rates = np.concatenate([np.abs(y.ratio[np.isfinite(y.ratio)]) for y in report.outputs.values()] or [np.zeros(0)])
    most = 4.0 * float(np.median(rates)) if report.toggles and rates.size else np.inf  # no bound at toggle positions
    for k, (name, y) in enumerate(report.outputs.items()):
        colour = COLOURS[k % len(COLOURS)]
        ax.plot(x, np.where(np.abs(y.ratio) < most, y.ratio, np.nan), color=colour, linewidth=1.5, label=_plain(name))
        ax.plot([_shown(report, c.input) for c in y.centres], [0.0] * len(y.centres), "o", color=colour, markersize=6)
    ax.axhline(0.0, color="0.6", linewidth=0.8)
    ax.set_ylabel("rate per rate of the input")
    _finish(ax, bool(report.outputs))


def _finish(ax: Axes, named: bool) -> None:
    ax.grid(alpha=0.25)
    if named:
        ax.legend(fontsize=8, frameon=False)


def _shown(report: LinkageReport, x: float | Floats) -> Floats:
    return np.asarray(np.degrees(x) if report.angular else x)


def _plain(name: str) -> str:
    return on_one_line(name).replace("$", r"\$")
