"""Tolerances as a figure: for each output a Pareto chart of the contributions, and a histogram of Monte Carlo."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from linkwright.design.output_tolerance import NONE, MonteCarlo, OutputTolerance
from linkwright.errors import on_one_line
from linkwright.results.solution_plots import check_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK, _FAINT, _BLUE, _ORANGE, _GREEN = "#222222", "#777777", "#0072B2", "#D55E00", "#009E73"
MOST = 12  # bars of a chart
BINS = 60


def plot(outputs: Sequence[OutputTolerance], model: str, path: str | os.PathLike[str] | None = None) -> Figure:
    """The figure, a row for each output; it belongs to no window and to no state of matplotlib's."""
    from linkwright.results.figures import ShownFigure, save_figure  # weight: matplotlib

    check_figure(path)
    wide = 2 if any(one.monte_carlo is not None for one in outputs) else 1
    figure = ShownFigure(figsize=(5.4 * wide, 0.5 + 3.4 * len(outputs)), layout="constrained", facecolor="white")
    figure.suptitle(f"Tolerances of {on_one_line(model)}".replace("$", r"\$"), fontsize=11, color=_INK)
    grid = figure.subplots(len(outputs), wide, squeeze=False)
    for row, one in zip(grid, outputs, strict=True):
        draw_pareto(row[0], one)
        if one.monte_carlo is not None and len(one.monte_carlo.samples) > 1:
            draw_histogram(row[1], one)
        elif wide == 2:
            row[1].set_visible(False)
    save_figure(figure, path)
    return figure


def draw_pareto(ax: Axes, output: OutputTolerance) -> None:
    """Bars of the contributions, the largest on top, and the line of their parts added up."""
    parts = [x for x in output.contributions.values() if x.half > NONE * output.rss][:MOST]
    at = np.arange(len(parts))
    ax.barh(at, [output.shown.of(x.half) for x in parts], color=_BLUE, height=0.66)
    ax.set_yticks(at, [on_one_line(x.dimension.label) for x in parts], parse_math=False)
    ax.invert_yaxis()
    room = output.shown.of(max((x.half for x in parts), default=0.0)) or 1.0
    for k, x in enumerate(parts):
        ax.annotate(f"{x.percent:.1f} %", (1.01, k), xycoords=("axes fraction", "data"), va="center", fontsize=8)
    ax.set_xlim(0.0, 1.04 * room)
    _plain(ax)
    ax.set_xlabel(
        f"contribution to {on_one_line(output.name)} (±{_unit(output)})", fontsize=9, color=_INK, parse_math=False
    )
    above = ax.twiny()
    above.plot(np.cumsum([x.percent for x in parts]), at, "o-", color=_ORANGE, markersize=3.5, linewidth=1.2)
    above.set_xlim(0.0, 104.0)
    above.set_xticks([0, 50, 100])
    above.set_xlabel("added up (%)", fontsize=8, color=_ORANGE)
    above.tick_params(labelsize=8, colors=_ORANGE)
    for side in ("right", "bottom", "left"):
        above.spines[side].set_visible(False)


def draw_histogram(ax: Axes, output: OutputTolerance) -> None:
    """The samples, the normal curve of the linear answer, and the limits by each method."""
    drawn = output.monte_carlo
    assert isinstance(drawn, MonteCarlo), "the figure has this part with draws alone"
    shown = output.shown
    x, worst, middle, std = shown.of(drawn.samples), output.worst_case, *map(shown.of, (output.middle, output.std))
    ax.hist(x, bins=BINS, density=True, color=_BLUE, alpha=0.55, label=f"Monte Carlo, {len(x):,} draws")
    if std:
        z = np.linspace(-4.5, 4.5, 241)
        curve = np.exp(-0.5 * z**2) / (np.sqrt(2.0 * np.pi) * std)
        ax.plot(middle + std * z, curve, color=_INK, linewidth=1.3, label="normal, by derivatives")
    for label, low, high, colour, dashes in (
        ("root sum of squares", output.middle - output.rss, output.middle + output.rss, _GREEN, "--"),
        ("worst case", worst.low, worst.high, _ORANGE, "-"),
    ):
        ax.axvline(shown.of(low), color=colour, linestyle=dashes, linewidth=1.4, label=label)
        ax.axvline(shown.of(high), color=colour, linestyle=dashes, linewidth=1.4)
    _plain(ax)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.margins(y=0.3)
    unit = _unit(output).strip()
    ax.set_xlabel(on_one_line(output.name) + (f" ({unit})" if unit else ""), fontsize=9, color=_INK, parse_math=False)
    ax.legend(fontsize=7.5, framealpha=0.9, edgecolor="none", loc="upper center", ncols=2)


def _unit(output: OutputTolerance) -> str:
    """Its unit, where its dimension is known and has one."""
    return f" {output.shown.text}" if output.shown.text not in ("", "1") else ""


def _plain(ax: Axes) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=8, colors=_INK, color=_FAINT)
