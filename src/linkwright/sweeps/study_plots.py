"""Studies as figures: lines over a parameter, a scatter matrix, histograms, or bundles of time series."""

from __future__ import annotations

import math
import os
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.base.arguments import check_names
from linkwright.base.arrays import Floats, Longs
from linkwright.errors import LinkwrightError
from linkwright.results.solution_plots import check_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from linkwright.sweeps.study import Study

KINDS = ("lines", "scatter", "histogram", "series")
_ROWS, _LINES, _DOTS, _CURVES, _MIDDLE = 6, 8, 20_000, 200, 2_000
_INK, _FAINT, _BLUE = "#222222", "#777777", "#0072B2"


def plot(
    study: Study,
    names: str | list[str] | None = None,
    kind: str | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """The figure of a study; it belongs to no window and to no state of matplotlib's."""
    from linkwright.results.figures import ShownFigure, save_figure  # weight: matplotlib

    check_figure(path)
    if kind is not None:
        check_names("kind of figure", [kind], KINDS)
    scalars, series = _chosen(study, names)
    chosen = kind or _fitting(study, scalars)
    if chosen != "series" and not scalars:
        what = "these outputs are series in time" if series else "there is nothing to draw"
        raise LinkwrightError(f"{what}; keep max(...) or final(...) of them, or draw kind='series'")
    if chosen == "series" and not series:
        raise LinkwrightError("no output of this study is a series in time; draw kind='scatter' or 'lines'")
    draw = {"lines": _lines, "scatter": _scatter, "histogram": _histograms, "series": _series}[chosen]
    figure = ShownFigure(facecolor="white", layout="constrained")
    if names is None:  # a series that never changes is drawn only where it is asked for by name
        ranges = {name: _range(study, name) for name in series}
        largest = max((max(-low, high, 0.0) for low, high in ranges.values()), default=0.0)
        series = [name for name in series if _moves(*ranges[name], largest)] or series
    draw(study, figure, (series if chosen == "series" else scalars))
    title = "\n".join(line for part in study.described().split("\n") for line in wrap(part, 100))
    figure.suptitle(title.replace("$", r"\$"), fontsize=9.5, color=_INK)
    save_figure(figure, path)
    return figure


def _chosen(study: Study, names: str | list[str] | None) -> tuple[list[str], list[str]]:
    asked = list(study.outputs) if names is None else [names] if isinstance(names, str) else list(names)
    by_kind: tuple[list[str], list[str]] = ([], [])
    for name in asked:
        by_kind[int(name in study.outputs and name not in study.scalar_outputs)].append(name)
        study.blocks(name)  # an error for a name that there is not
    return by_kind


def _range(study: Study, name: str) -> tuple[float, float]:
    """The least and the largest value of a series in good cases; infinities in reverse order where there is none."""
    low, high = math.inf, -math.inf
    for cases, rows in study.blocks(name):
        x = rows[study.ok[cases]]
        x = x[np.isfinite(x)]
        low, high = min(low, float(x.min(initial=math.inf))), max(high, float(x.max(initial=-math.inf)))
    return low, high


def _moves(low: float, high: float, largest: float) -> bool:
    """Whether a series is more than one number and rounding; `largest` is the largest absolute value of all series.

    A coordinate that is zero differs from it by rounding of the others, not of itself.
    """
    return high - low > max(1e-9 * max(abs(low), abs(high)), 1e-14 * largest)


def _fitting(study: Study, scalars: list[str]) -> str:
    """What suits a study: series where there is nothing else, lines where its parameters are lists."""
    if not scalars:
        return "series"
    drawn = [name for name, (kind, *_) in study.plan.recipe["parameters"].items() if kind != "list"]
    varied = study.plan.varied
    if not varied:
        return "histogram"
    return "lines" if (not drawn and len(varied) <= 3) or len(varied) == 1 else "scatter"


def _axes(figure: Figure, high: int, wide: int, size: tuple[float, float], **options: Any) -> Any:
    figure.set_size_inches(max(5.0, size[0] * wide), 0.8 + size[1] * high)
    grid = figure.subplots(high, wide, squeeze=False, **options)
    for ax in grid.flat:
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        ax.tick_params(labelsize=8, colors=_INK, color=_FAINT)
    return grid


def _label(ax: Axes, x: str | None = None, y: str | None = None) -> None:
    if x is not None:
        ax.set_xlabel(x, fontsize=9, color=_INK, parse_math=False)
    if y is not None:
        ax.set_ylabel(y, fontsize=9, color=_INK, parse_math=False)


def _lines(study: Study, figure: Figure, names: list[str]) -> None:
    """An output over the parameter with the most values, a line for every choice of the others."""
    varied = study.plan.varied or study.names[:1]
    along = max(varied, key=lambda name: len(np.unique(study[name])))
    others = [name for name in varied if name != along]
    shown = names[:_ROWS]
    grid = _axes(figure, len(shown), 1, (6.5, 2.4), sharex=True)
    table = np.column_stack([study[n] for n in others] or [np.zeros(len(study))])
    kinds, group = np.unique(table, axis=0, return_inverse=True)
    group = group.reshape(-1)
    picked = np.unique(np.linspace(0, len(kinds) - 1, min(len(kinds), _LINES)).astype(int))
    for ax, name in zip(grid[:, 0], shown, strict=True):
        for k, which in enumerate(picked):
            rows = np.flatnonzero(group == which)
            rows = rows[np.argsort(study[along][rows], kind="stable")]
            color, dashes = style(k)
            label = ", ".join(f"{n} = {x:.4g}" for n, x in zip(others, kinds[which], strict=False))
            marker = "o" if len(rows) < 40 else None
            y = np.where(study.ok, study[name], np.nan)[rows]
            ax.plot(study[along][rows], y, color=color, linestyle=dashes, marker=marker, markersize=3, label=label)
        ax.grid(color="#E4E4E4", linewidth=0.7)
        _label(ax, y=name)
    _label(grid[-1, 0], x=along)
    if others:
        left = len(kinds) - len(picked)
        title = f"{left} more are not drawn" if left else None
        grid[0, 0].legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), title=title)


def _scatter(study: Study, figure: Figure, names: list[str]) -> None:
    """Every parameter and output against every other, with histograms on the diagonal."""
    columns = [*study.plan.varied, *names][: 2 * _ROWS]
    n = len(columns)
    grid = _axes(figure, n, n, (1.7 if n > 3 else 2.4, 1.7 if n > 3 else 2.2))
    good = np.flatnonzero(study.ok)
    some = _spaced(good, _DOTS)
    bad = np.flatnonzero(~study.ok)[:_DOTS]
    for r, row in enumerate(columns):
        for c, column in enumerate(columns):
            ax = grid[r, c]
            if r == c:
                _hist(ax, study[row][good], 30)
                ax.set_yticks([])
            else:
                size = 14.0 if len(some) < 300 else 3.0
                ax.scatter(study[column][some], study[row][some], s=size, color=_BLUE, alpha=0.5, linewidths=0)
                if row in study.names and column in study.names and len(bad):
                    ax.scatter(study[column][bad], study[row][bad], s=size, color="#D55E00", marker="x", linewidths=0.6)
            _label(ax, x=column if r == n - 1 else None, y=row if c == 0 else None)
            ax.tick_params(labelbottom=r == n - 1, labelleft=c == 0 and r != c)


def _histograms(study: Study, figure: Figure, names: list[str]) -> None:
    shown = names[: 2 * _ROWS]
    wide = min(len(shown), 3)
    grid = _axes(figure, -(-len(shown) // wide), wide, (3.2, 2.4))
    for ax in grid.flat[len(shown) :]:
        ax.set_visible(False)
    for ax, name in zip(grid.flat, shown, strict=False):
        _hist(ax, study[name][study.ok], 40)
        _label(ax, x=name, y="cases")


def _series(study: Study, figure: Figure, names: list[str]) -> None:
    """The curves of many cases, and the median of all; of a study in files, of evenly spaced ones."""
    shown = names[:_ROWS]
    grid = _axes(figure, len(shown), 1, (6.5, 2.3), sharex=True)
    good = np.flatnonzero(study.ok)
    some = _spaced(good, _CURVES)
    middle = good if study.in_memory else _spaced(good, _MIDDLE)
    for ax, name in zip(grid[:, 0], shown, strict=True):
        y = study.data[name].isel(case=some).values.reshape(len(some), -1)
        timed = y.shape[1] == len(study.task.times)
        time = np.array(study.task.times) if timed else np.arange(y.shape[1])
        ax.plot(time, y.T, color=_BLUE, linewidth=0.6, alpha=max(0.08, min(0.8, 12.0 / max(len(some), 1))))
        if len(good) > 2:
            of_these = study.data[name].isel(case=middle).values.reshape(len(middle), -1)
            label = "median" if len(middle) == len(good) else f"median of {len(middle):,} cases"
            ax.plot(time, np.median(of_these, axis=0), color="#D55E00", linewidth=1.6, label=label)
            ax.legend(fontsize=8, frameon=False, loc="best")
        ax.grid(color="#E4E4E4", linewidth=0.7)
        _label(ax, y=name)
    _label(grid[-1, 0], x="time (s)")


def _spaced(cases: Longs, most: int) -> Longs:
    """At most so many of some cases, evenly spaced."""
    return cases if len(cases) <= most else cases[:: -(-len(cases) // most)]


def _hist(ax: Axes, values: Floats, bins: int) -> None:
    x = values[np.isfinite(values)]
    middle = float(np.mean(x)) if len(x) else 0.0
    room = 0.01 * abs(middle) or 0.01
    # Values that differ by rounding alone are one bar.
    ends = (middle - room, middle + room) if not len(x) or np.ptp(x) < 1e-6 * room else (float(x.min()), float(x.max()))
    ax.hist(x, bins=bins, range=ends, color=_BLUE, alpha=0.8)
