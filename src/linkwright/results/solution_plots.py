"""Solutions as figures: a column for every trace, body, frame or joint, a row for every quantity."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arguments import check_names, first_few, path_text
from linkwright.base.arrays import Floats
from linkwright.errors import LinkwrightError, NameNotFound
from linkwright.model.body_motion import QUANTITIES, fitting, place
from linkwright.model.joint_kinds import JointKind
from linkwright.model.units import Units
from linkwright.results.motion_quantities import joint_motion
from linkwright.results.solution import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

MOST = 6  # columns, unless more are asked for by name
ENDINGS = (".png", ".svg", ".pdf")
#: Colours that people with any colour vision tell apart (Okabe and Ito), and dashes for those who print in grey.
STYLES: tuple[tuple[str, tuple[float, Sequence[float]] | Literal["solid"]], ...] = (
    ("#0072B2", "solid"),
    ("#D55E00", (0, (5, 1.6))),
    ("#009E73", (0, (1.4, 1.2))),
    ("#CC79A7", (0, (6, 1.5, 1.4, 1.5))),
)
#: More of them, for more lines than coordinates.
_FURTHER: tuple[tuple[str, tuple[float, Sequence[float]] | Literal["solid"]], ...] = (
    ("#E69F00", (0, (9, 2))),
    ("#222222", (0, (3, 1, 1, 1, 1, 1))),
    ("#56B4E9", (0, (12, 1.5, 3, 1.5))),
    ("#8C510A", (0, (2.5, 2.5))),
)
_STOP = (0, (3, 2))
_INK, _FAINT, _ALARM = "#222222", "#777777", "#A3123A"
_STILL = 1e-9  # of its row's largest number, or of the mechanism's size: less is rounding, and is drawn as zero
#: Beyond these a figure's own choice of columns does not look.
_JOINTS = 2000


def unit_text(unit: str) -> str:
    """A unit for people: with superscripts and spaces."""
    return unit.replace("^2", "²").replace("^3", "³").replace("*", " ")


def style(k: int) -> tuple[str, tuple[float, Sequence[float]] | Literal["solid"]]:
    """Colour and dashes of line k; no two of the first 64 are alike."""
    known = (*STYLES, *_FURTHER)
    return known[k % len(known)][0], known[(k + k // len(known)) % len(known)][1]


def check_figure(path: str | os.PathLike[str] | None) -> None:
    """Refuse a path whose ending is not that of a figure."""
    if path is not None and Path(path_text("a figure", path)).suffix.lower() not in ENDINGS:
        raise LinkwrightError(f"cannot draw to {path}: a figure's name ends in {', '.join(ENDINGS)}")


@dataclass(frozen=True)
class _Column:
    """A body, frame or trace, or a joint, which may have the name of one."""

    name: str
    joint: bool = False


@dataclass(frozen=True, eq=False)
class Curves:
    """What one pair of axes shows: y (T, n), SI unit and label of each of the n, and the word of the vertical axis.

    Once they are `shown`, y is in the model's units, and these stand in the labels or beside the axis' word.
    """

    y: Floats
    labels: tuple[str, ...]
    axis: str
    units: tuple[str, ...]
    noise: float = 0.0  # less is rounding

    def shown(self, units: Units) -> Curves:
        """The same in the units of a model."""
        each = [units.shown(unit) for unit in self.units]
        marks = ["" if x == "1" else f" ({unit_text(one.text)})" for x, one in zip(self.units, each, strict=True)]
        if len({*marks}) < 2:  # one unit for all; it stands beside the axis
            noise = float(each[0].of(self.noise)) if each else self.noise
            y = each[0].of(self.y) if each else self.y
            return replace(self, y=y, axis=self.axis + "".join(marks[:1]), noise=noise)
        y = np.stack([one.of(column) for one, column in zip(each, self.y.T, strict=True)], axis=1)
        labels = tuple(label + mark for label, mark in zip(self.labels, marks, strict=True))
        return replace(self, y=y, labels=labels)


def plot(
    solution: Solution,
    names: str | Sequence[str] | None = None,
    quantities: str | Sequence[str] = ("position", "velocity", "acceleration"),
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """The figure of a solution; it belongs to no window and to no state of matplotlib's."""
    from linkwright.results.figures import save_figure  # weight: matplotlib

    check_figure(path)
    rows = [quantities] if isinstance(quantities, str) else list(quantities)
    check_names("quantity", rows, QUANTITIES)
    if not rows:
        raise LinkwrightError(f"no quantity to plot; name some of {', '.join(QUANTITIES)}")
    columns, grid, left_out = curves(solution, names, rows)
    figure = _draw(solution, columns, rows, grid, left_out)
    save_figure(figure, path)
    return figure


# -- what is shown ------------------------------------------------------------------------------------------
def curves(
    solution: Solution, names: str | Sequence[str] | None, quantities: Sequence[str]
) -> tuple[list[str], list[list[Curves | None]], list[str]]:
    """The names of the columns, the curves in rows of quantities, and the names of what moves and is left out."""
    columns, left_out = _columns(solution, names)
    units = solution.description.units
    cleared = [_cleared(solution, row, [_curves(solution, column, row) for column in columns]) for row in quantities]
    grid = [[None if one is None else one.shown(units) for one in row] for row in cleared]
    return [column.name for column in columns], grid, left_out


def _columns(solution: Solution, names: str | Sequence[str] | None) -> tuple[list[_Column], list[str]]:
    """The columns, and what moves and has none: traces, joints of one coordinate, bodies whose origins move."""
    if names is not None:
        asked = [names] if isinstance(names, str) else list(names)
        if not asked:
            raise LinkwrightError("no column to plot; name a body, a frame or a joint")
        return [_column(solution, name) for name in asked], []
    d, size = solution.description, _size(solution)
    traced = list(dict.fromkeys(trace.place for trace in d.traces))
    moving = _moving(solution.arrays["position"], size)
    shifting = [d.body_names[int(k)] for k in np.flatnonzero(moving)]
    columns = [_Column(name) for name in traced]
    columns += [_Column(name, joint=True) for name in _moving_joints(solution, size, several=False)]
    columns += [_Column(name) for name in shifting if name not in traced]
    columns = columns or [_Column(name, joint=True) for name in _moving_joints(solution, size, several=True)]
    columns = columns or [_Column(name) for name in d.body_names]
    return columns[:MOST], [column.name for column in columns[MOST:]]


def _column(solution: Solution, name: str) -> _Column:
    d = solution.description
    try:
        place(d, name)
    except NameNotFound:
        fits = [name] if d.joint_names.find(name) is not None else fitting(d.joint_names, name)
        if len(fits) != 1:
            known = [*d.body_names[:700], *d.frames.names[:700], *d.joint_names[:700], *(t.name for t in d.traces)]
            if name in solution.series:
                text = f"{name!r} is a series, no body, frame or joint; draw it with plot_series({name!r})"
                raise LinkwrightError(text) from None
            raise NameNotFound("body, frame or joint", name, known) from None
        return _Column(fits[0], joint=True)
    return _Column(name)


def _moving(y: Floats, size: float | Floats) -> NDArray[np.bool_]:
    """For each of n whether its numbers (T, n, m) change by more than rounding of this size."""
    if len(y) < 2:
        return np.zeros(y.shape[1], bool)
    way = np.nan_to_num(np.abs(y - y[:1])).max(axis=0, initial=0.0)
    return np.asarray(np.any(way > _STILL * size, axis=-1))


def _moving_joints(solution: Solution, size: float, *, several: bool) -> list[str]:
    """The joints that move, of those with one coordinate or of those with several, in the model's order."""
    d = solution.description
    kinds = d.kind[:_JOINTS]
    moving: list[int] = []
    for number in np.unique(kinds):
        joints = np.flatnonzero(kinds == number)
        kind = d.kind_of(int(joints[0]))
        if kind.nq == 0 or several == (kind.nq == 1):
            continue
        q = joint_motion(solution, joints)[0]
        turns = np.array([k in kind.angles or (not kind.paired and k >= kind.nq - 4) for k in range(kind.nq)])
        moving += joints[_moving(np.moveaxis(q, 0, -1), np.where(turns, 1.0, size))].tolist()
    return [d.joint_names[k] for k in sorted(moving)]


def _size(solution: Solution) -> float:
    """How large the mechanism is with its motion (m)."""
    d, x = solution.description, solution.arrays["position"]
    return max(map(_largest, (x - x[:1, :1], d.frames.p, d.pi, d.pj))) or 1.0


def _cleared(solution: Solution, quantity: str, row: list[Curves | None]) -> list[Curves | None]:
    """A row of the figure with zeros for what is only rounding beside the row, or beside the mechanism's motion."""
    span = float(np.ptp(solution.time)) if len(solution) > 1 else 0.0
    order = 2 if quantity.endswith("acceleration") else 1 if quantity.endswith("velocity") else 0
    cleared: list[Curves | None] = []
    for curves in row:
        if curves is None:
            cleared.append(None)
            continue
        alike = max(_largest(other.y) for other in row if other is not None and other.units == curves.units)
        size = _size(solution) if all(unit.startswith("m") for unit in curves.units) else 1.0
        noise = _STILL * max(alike, size / (span or 1.0) ** order)
        with np.errstate(invalid="ignore"):
            y = np.where(np.abs(curves.y) < noise, 0.0, curves.y)
        cleared.append(replace(curves, y=y, noise=noise))
    return cleared


def _curves(solution: Solution, column: _Column, quantity: str) -> Curves | None:
    """One quantity of one column; None where a joint has none of it."""
    d, name = solution.description, column.name
    size, unit, _ = QUANTITIES[quantity]
    if column.joint:
        return _joint_curves(solution, name, d.kind_of(d.joint_names.position("joint", name)), quantity)
    labels = ("x", "y", "z") if size == 3 else ("e0", "e1", "e2", "e3")
    return Curves(getattr(solution, quantity)(name), labels, quantity.replace("_", " "), (unit,) * size)


def _joint_curves(solution: Solution, name: str, kind: JointKind, quantity: str) -> Curves | None:
    if quantity == "position" and kind.nq:
        words = [("angle", "rad") if k in kind.angles else ("shift", "m") for k in range(kind.nq)]
        if not kind.paired:
            words[-4:] = [(f"e{k}", "1") for k in range(4)]
        y = solution.joint(name)
    elif quantity in ("velocity", "acceleration") and kind.nv:
        turning = kind.angles if kind.paired else range(kind.nv - 3, kind.nv)
        word, end, y = (
            ("rate", "/s", solution.joint_rate(name))
            if quantity == "velocity"
            else ("acceleration", "/s^2", solution.joint_acceleration(name))
        )
        words = [(word, ("rad" if k in turning else "m") + end) for k in range(kind.nv)]
    else:
        return None
    if len(words) == 1:
        word, unit = words[0]
        return Curves(y, ("",), word, (unit,))
    prefix, axis = {"position": ("q", "coordinates"), "velocity": ("v", "rates")}.get(quantity, ("a", "accelerations"))
    return Curves(y, tuple(f"{prefix}{k}" for k in range(len(words))), axis, tuple(unit for _, unit in words))


# -- how it is drawn ----------------------------------------------------------------------------------------
def _draw(
    solution: Solution,
    columns: Sequence[str],
    rows: Sequence[str],
    grid: list[list[Curves | None]],
    left_out: Sequence[str],
) -> Figure:
    from linkwright.results.figures import ShownFigure  # weight: matplotlib

    wide, high = len(columns), len(rows)
    when = solution.description.units.shown("s").text
    notes = _notes(solution, columns, left_out)
    head, body = 0.72 + 0.2 * len(notes), 0.7 + 1.9 * high  # inches
    figure = ShownFigure(figsize=(max(6.4, 1.0 + 3.0 * wide), head + body), layout="constrained", facecolor="white")
    top, main = figure.subfigures(2, 1, squeeze=False, height_ratios=[head, body])[:, 0]
    _head(top, solution, head, _shared(grid), notes, most=27 * max(2, wide))
    axes = main.subplots(high, wide, sharex=True, squeeze=False)
    for r in range(high):
        for c, name in enumerate(columns):
            ax, curves = axes[r, c], grid[r][c]
            alike = [_largest(x.y) for x in grid[r] if x is not None and curves is not None and x.axis == curves.axis]
            _draw_axes(ax, solution, curves, max(alike, default=0.0))
            ax.tick_params(labelbottom=r == high - 1)
            left = grid[r][c - 1] if c else None
            if curves is not None and (left is None or left.axis != curves.axis):
                ax.set_ylabel(curves.axis, color=_INK, fontsize=9.5)
            if r == high - 1:
                ax.set_xlabel(f"time ({when})", color=_INK, fontsize=9.5)
            if r == 0:
                ax.set_title(_cut(name, 33 if wide > 1 else 66), fontsize=11, color=_INK, parse_math=False)
    return figure


def _largest(y: Floats) -> float:
    finite = y[np.isfinite(y)]
    return float(np.abs(finite).max(initial=0.0))


def _draw_axes(ax: Axes, solution: Solution, curves: Curves | None, largest: float) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(_FAINT)
    ax.tick_params(labelsize=8.5, colors=_INK, color=_FAINT)
    if curves is None:
        ax.set_yticks([])
        ax.text(0.5, 0.5, "not kept for joints", transform=ax.transAxes, ha="center", va="center", color=_FAINT)
        return
    ax.grid(True, color="#E4E4E4", linewidth=0.7)
    ax.set_axisbelow(True)
    when = solution.description.units.shown("s")
    if (stop := _stop(solution)) is not None:
        ax.axvline(when.of(stop), color=_ALARM, linewidth=1.1, linestyle=_STOP, zorder=1)
    if not len(solution):
        ax.text(0.5, 0.5, "no time points", transform=ax.transAxes, ha="center", va="center", color=_FAINT)
        return
    marker = "o" if len(solution) == 1 else None
    for k, label in enumerate(curves.labels):
        colour, dashes = style(k)
        drawn: dict[str, Any] = {"color": colour, "linestyle": dashes, "marker": marker, "label": label}
        ax.plot(when.of(solution.time), curves.y[:, k], linewidth=1.7, **drawn)
    if not _common(curves) and len(curves.labels) > 1:
        ax.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), borderaxespad=0.2)
    finite = curves.y[np.isfinite(curves.y)]
    if finite.size and np.ptp(finite) <= curves.noise:
        middle, room = float(np.mean(finite)), largest or 1.0
        ax.set_ylim(middle - room, middle + room)
    ax.ticklabel_format(axis="y", useOffset=False, scilimits=(-3, 4), useMathText=True)
    ax.yaxis.get_offset_text().set_fontsize(8)
    ax.locator_params(axis="y", nbins=5)
    ax.locator_params(axis="x", nbins=6)


def _common(curves: Curves) -> bool:
    """Whether its lines are explained once for the whole figure."""
    return curves.labels[0] in ("x", "e0")


def _shared(grid: list[list[Curves | None]]) -> list[str]:
    """What the lines are of which the whole figure has the same: x and e0 share a colour."""
    shown = {c.labels for row in grid for c in row if c is not None and _common(c)}
    labels = zip_longest(*sorted(shown, reverse=True), fillvalue="")
    return [", ".join(filter(None, together)) for together in labels]


def _stop(solution: Solution) -> float | None:
    """When a run stopped that should have gone on."""
    stop = solution.status.time
    return None if solution.status.ok or stop is None or not np.isfinite(stop) else stop


def _notes(solution: Solution, columns: Sequence[str], left_out: Sequence[str]) -> list[str]:
    """What is not shown, in lines that fit the width of the figure."""
    if not left_out:
        return []
    shown = first_few(left_out, 8)
    return wrap(f"Not shown: {shown}; name them to see them.", 40 * max(2, len(columns)))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _head(figure: SubFigure, solution: Solution, inches: float, shared: list[str], notes: list[str], most: int) -> None:
    """The model's name, cut to `most` letters, what the lines are, how the run ended if badly, what is not shown."""
    from matplotlib.lines import Line2D  # weight: matplotlib

    title = _cut(solution.description.name, most)
    figure.text(0.01, 1 - 0.08 / inches, title, fontsize=13, fontweight="bold", color=_INK, va="top", parse_math=False)
    lines = [
        Line2D([], [], color=colour, linestyle=dashes, linewidth=1.7, label=label)
        for label, (colour, dashes) in zip(shared, STYLES, strict=False)
    ]
    if not solution.status.ok:
        stop = _stop(solution)
        when = solution.description.units.shown("s")
        at = "" if stop is None else f" at t = {when.of(stop):g} {when.text}"
        label = f"stopped{at}: {solution.status.reason}"
        lines.append(Line2D([], [], color=_ALARM, linestyle=_STOP, linewidth=1.1, label=label))
    if lines:
        figure.legend(
            handles=lines,
            loc="upper left",
            bbox_to_anchor=(0.0, 1 - 0.32 / inches),
            ncols=len(lines),
            frameon=False,
            fontsize=9.5,
        )
    for k, note in enumerate(notes):
        figure.text(0.01, 1 - (0.68 + 0.2 * k) / inches, note, fontsize=9, color=_FAINT, va="top", parse_math=False)
