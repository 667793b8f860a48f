"""The series of a solution as a figure, and figures that a notebook shows."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from linkwright.base.arguments import check_names
from linkwright.base.files import atomic_file
from linkwright.errors import LinkwrightError
from linkwright.results.solution import Solution
from linkwright.results.solution_plots import check_figure, style, unit_text
from linkwright.results.status import Series

try:
    from matplotlib.figure import Figure
except ImportError as missing:
    raise LinkwrightError('plots need matplotlib: pip install "linkwright[plot]"') from missing


class ShownFigure(Figure):
    """A figure that belongs to no window and draws itself in notebooks."""

    def _repr_png_(self) -> bytes:
        with io.BytesIO() as file:
            self.savefig(file, format="png", dpi=110)
            return file.getvalue()


def save_figure(figure: Figure, path: str | os.PathLike[str] | None, dpi: int = 150) -> None:
    """Write a figure whole or not at all, in the format that the name's ending says; without a path nothing."""
    if path is not None:
        with atomic_file(path) as file:
            figure.savefig(file, format=Path(path).suffix[1:].lower() or "png", dpi=dpi)


MOST = 8  # curves in one pair of axes, unless more are asked for by name


def plot_series(
    solution: Solution, names: str | Sequence[str] | None = None, path: str | os.PathLike[str] | None = None
) -> Figure:
    """The figure; unless named, the series are all but components of joint forces, or else the sizes of these."""

    check_figure(path)
    speaks = solution.description.units
    when = speaks.shown("s")
    chosen = {name: x.shown(speaks) for name, x in _chosen(solution, names).items()}
    units = list(dict.fromkeys(x.unit for x in chosen.values()))
    most = MOST if names is None else len(chosen)
    figure = ShownFigure(figsize=(7.5, 0.9 + 2.4 * len(units)), layout="constrained", facecolor="white")
    figure.suptitle(solution.description.name)
    grid = figure.subplots(len(units), 1, sharex=True, squeeze=False)
    held = solution.held_series
    marker = "o" if len(solution) == 1 else None
    for ax, unit in zip(grid[:, 0], units, strict=True):
        together = [(name, x) for name, x in chosen.items() if x.unit == unit]
        for k, (name, x) in enumerate(together[:most]):
            color, dashes = style(k)
            drawn = {"color": color, "linestyle": dashes, "marker": marker, "label": name}
            if name in held:  # from its sample until the next
                drawn["drawstyle"] = "steps-post"
            ax.plot(when.of(solution.time), x.values, linewidth=1.4, **drawn)
        left = len(together) - most
        ax.set_ylabel("no unit" if unit == "1" else unit_text(unit))
        ax.grid(color="#dddddd", linewidth=0.6)
        ax.legend(fontsize=8, loc="best", title=f"{left} more are not drawn" if left > 0 else None)
    grid[-1, 0].set_xlabel(f"time ({when.text})")
    save_figure(figure, path)
    return figure


def _chosen(solution: Solution, names: str | Sequence[str] | None) -> dict[str, Series]:
    series = solution.series
    if not series:
        text = "this solution has no series; those of lw.analyse with dynamic, static or inverse dynamic analysis have"
        raise LinkwrightError(text)
    if names is not None:
        asked = [names] if isinstance(names, str) else list(names)
        check_names("series", asked, series)
        return {name: series[name] for name in asked}
    parts = {stem: [series.get(f"{stem}.f{x}") for x in "xyz"] for stem in (n.rpartition(".")[0] for n in series)}
    components = {f"{stem}.{kind}{x}" for stem in parts for kind in "fm" for x in "xyz"}
    plain = {name: x for name, x in series.items() if name not in components}
    if plain:
        return plain
    sizes = {}
    for stem, three in parts.items():
        known = [x.values for x in three if x is not None]
        sizes[f"|{stem}.f|"] = Series(np.linalg.norm(known, axis=0), "N")
    return sizes
