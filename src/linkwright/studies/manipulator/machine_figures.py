"""The study's figures of the machine and its experiments, each made of the study's data alone, in one look."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.control import Hexapod, legs_at
from linkwright.errors import LinkwrightError
from linkwright.studies.manipulator.experiments import (
    BEFORE,
    BOUNDS,
    STEP,
    STEP_TIME,
    UP,
    Jump,
    Perturbed,
    Tracking,
    Wave,
    Waves,
)
from linkwright.studies.manipulator.timing import Timing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT, GRID, ALARM = "#222222", "#777777", "#e3e6ea", "#A3123A"


class Line(NamedTuple):
    """How one thing is drawn in all figures: a colour that any colour vision tells apart, and dashes for grey print."""

    label: str
    color: str
    dashes: Any = "solid"

    def of(self, **more: Any) -> dict[str, Any]:
        """As options of matplotlib's."""
        return {"label": self.label, "color": self.color, "linestyle": self.dashes, "linewidth": 1.5, **more}


REFERENCE = Line("reference", FAINT, (0, (4, 2)))
WITHOUT = Line("dynamic control, no feedback", "#0072B2")
WITH = Line("with acceleration feedback", "#D55E00")
PAPERS = Line("with feedback, paper's $G_D$", "#7a5c00", (0, (6, 1.5, 1.4, 1.5)))
LAWS = {
    "pid": Line("PID", "#CC79A7", (0, (5, 1.6))),
    "dynamic": Line("dynamic control", "#0072B2"),
    "friction": Line("with friction compensation", "#009E73", (0, (1.6, 1.2))),
}
FIXED = Line("the same K", "#D55E00")
OWN = Line("K redesigned for the plant", "#009E73")


def need_matplotlib() -> None:
    """One sentence where figures cannot be drawn."""
    try:
        import matplotlib  # noqa: F401  # weight: matplotlib
    except ImportError as error:
        raise LinkwrightError('the report\'s figures need matplotlib: pip install "linkwright[control]"') from error


@contextmanager
def look() -> Iterator[None]:
    """Within it, figures have the report's look; the same figure gives the same bytes."""
    need_matplotlib()
    import matplotlib  # weight: matplotlib

    settings: dict[Any, Any] = {
        "font.size": 10.0,
        "axes.labelsize": 10.0,
        "axes.titlesize": 10.5,
        "legend.fontsize": 9.0,
        "xtick.labelsize": 9.0,
        "ytick.labelsize": 9.0,
        "font.family": ["DejaVu Sans"],
        "mathtext.fontset": "dejavusans",
        "svg.hashsalt": "linkwright",
        "svg.fonttype": "path",
        "path.simplify": True,
    }
    with matplotlib.rc_context(settings):
        yield


def svg(make: Callable[..., Figure], *parts: Any) -> bytes:
    """The figure that a function makes of the study's data, as SVG."""
    with look():
        file = io.BytesIO()
        make(*parts).savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return short(file.getvalue())


_NEEDLESS = re.compile(rb"<metadata>.*?</metadata>\s*|<!DOCTYPE[^>]*>\s*", re.DOTALL)
_PLACES = re.compile(rb'\b(?:d|x|y)="[^"]*"')
_DIGITS = re.compile(rb"(\d+\.\d{2})\d+")


def short(drawn: bytes) -> bytes:
    """The same SVG without what is not drawn, and without the digits that nobody sees; scales of glyphs keep theirs."""
    return _PLACES.sub(lambda place: _DIGITS.sub(rb"\1", place[0]), _NEEDLESS.sub(b"", drawn))


def new_figure(height: float, width: float = 6.0) -> Figure:
    """An empty figure (inches) that belongs to no window."""
    from linkwright.results.figures import ShownFigure  # weight: matplotlib

    return ShownFigure(figsize=(width, height), layout="constrained", facecolor="white")


def dressed(ax: Axes, x: str = "", y: str = "", title: str = "") -> Axes:
    """Axes with the report's grid, spines and labels."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(FAINT)
    ax.tick_params(colors=INK, color=FAINT, which="both")
    ax.grid(color=GRID, linewidth=0.7)
    ax.set_axisbelow(True)
    ax.set_xlabel(x, color=INK)
    ax.set_ylabel(y, color=INK)
    if title:
        ax.set_title(title, color=INK, loc="left")
    return ax


def panels(height: float, *labels: tuple[str, ...], **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure of so many inches with axes below each other, each with its labels of x and y and perhaps a title."""
    figure = new_figure(height)
    axes = figure.subplots(len(labels), 1, squeeze=False, **options)[:, 0].tolist()
    return figure, [dressed(ax, *words) for ax, words in zip(axes, labels, strict=True)]


def legend(figure: Figure, *axes: Axes, columns: int = 2) -> None:
    """One legend for some axes, above them, each label once."""
    handles: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles.keys(), loc="outside upper left", ncols=columns, frameon=False)


# -- the machine ----------------------------------------------------------------------------------------------------
def machine_figure(g: Hexapod) -> Figure:
    """The machine at home, from the side and from above."""
    figure = new_figure(3.7)
    side, top = figure.subplots(1, 2, width_ratios=[1.0, 1.0])
    legs = legs_at(g, g.home)
    for ax, (one, two), title in ((side, (0, 2), "from the side"), (top, (0, 1), "from above")):
        dressed(ax, "x (m)", "z (m)" if two == 2 else "y (m)", title)
        for k, (base, knee, wrist) in enumerate(zip(g.base_points, legs.knees, legs.wrists, strict=True)):
            at = np.stack([base, knee, wrist])[:, [one, two]]
            named = k == 0 and two == 2
            ax.plot(*at[:2].T, color="#D55E00", linewidth=2.6, label="crank (driven)" if named else None, zorder=3)
            ax.plot(*at[1:].T, color="#0072B2", linewidth=1.8, label="rod" if named else None, zorder=3)
            ax.plot(*at[0], "s", color=INK, markersize=5, zorder=4)
            ax.plot(*at[1:].T, "o", color="white", markeredgecolor=INK, markersize=4.5, linestyle="none", zorder=4)
            if two == 1:
                ax.annotate(str(k + 1), 1.13 * at[1], ha="center", va="center", color=INK)
        ring = np.vstack([legs.wrists, legs.wrists[:1]])[:, [one, two]]
        ax.plot(*ring.T, color=INK, linewidth=2.6, label="endplate" if two == 2 else None, zorder=3)
        ax.set_aspect("equal")
        reach = np.vstack([g.base_points, legs.knees, legs.wrists])
        room = 0.12 * np.ptp(reach[:, 0])
        ax.set_xlim(reach[:, 0].min() - room, reach[:, 0].max() + room)
        ax.set_ylim(reach[:, two].min() - room, reach[:, two].max() + room)
    legend(figure, side, columns=3)
    return figure


# -- positions ------------------------------------------------------------------------------------------------------
def height_figure(up: Tracking, laws: Sequence[str]) -> Figure:
    """Figures 8 and 10: height, and the distance from the reference, under some controllers."""
    labels = ("", "height (mm)"), ("time (s)", "error (mm)")
    figure, (place, error) = panels(4.9, *labels, sharex=True, height_ratios=[3, 2])
    start = up.reference[0, UP]
    place.plot(up.time, 1e3 * (up.reference[:, UP] - start), **REFERENCE.of(zorder=4))
    for law in laws:
        z = up.position[law][:, UP]
        place.plot(up.time, 1e3 * (z - start), **LAWS[law].of())
        error.plot(up.time, 1e3 * (z - up.reference[:, UP]), **LAWS[law].of())
    error.axhline(0.0, color=FAINT, linewidth=0.8)
    error.set_xlim(up.time[0], up.time[-1])
    legend(figure, place, columns=3)
    return figure


def curve_figure(around: Tracking) -> Figure:
    """Figure 9: the path from above, and the distance from where the reference is."""
    figure = new_figure(4.3)
    path, error = figure.subplots(1, 2, width_ratios=[1.15, 1.0])
    dressed(path, "x (mm)", "y (mm)", "path, from lower right to upper left")
    dressed(error, "time (s)", "distance (mm)", "distance from the reference")
    start = around.reference[0]
    path.plot(*(1e3 * (around.reference - start)[:, :2].T), **REFERENCE.of(zorder=4))
    for law in ("pid", "dynamic", "friction"):
        if law in around.position:
            at = around.position[law]
            path.plot(*(1e3 * (at - start)[:, :2].T), **LAWS[law].of())
            error.plot(around.time, 1e3 * np.linalg.norm(at - around.reference, axis=1), **LAWS[law].of())
    path.set_aspect("equal", adjustable="datalim")
    error.set_xlim(around.time[0], around.time[-1])
    error.set_ylim(bottom=0.0)
    legend(figure, path)
    return figure


# -- accelerations --------------------------------------------------------------------------------------------------
def slow_figure(without: Jump, after: Jump, slow: Jump) -> Figure:
    """The rise with the paper's own wanted response beside the faster one."""
    figure, (ax,) = panels(3.4, ("time after the step (ms)", "acceleration (m/s²)"))
    for line, one in ((REFERENCE, None), (WITHOUT, without), (PAPERS, slow), (WITH, after)):
        series = without.reference if one is None else one.measured
        ax.plot(1e3 * (without.time - BEFORE), series, drawstyle=_steps(one), **line.of())
    w = 100.0
    t = np.linspace(0.0, STEP_TIME, 300)
    alone = STEP * (1.0 - (1.0 + w * t) * np.exp(-w * t))
    ax.plot(1e3 * t, alone, **Line("$100^2/(s+100)^2$ itself", INK, (0, (1, 1.4))).of(linewidth=1.2))
    ax.axhline(STEP / 2.0, color=FAINT, linewidth=0.8)
    ax.annotate(
        "half",
        (1e3 * (STEP_TIME - 1e-3), STEP / 2.0),
        xytext=(-4, 3),
        textcoords="offset points",
        ha="right",
        color=FAINT,
    )
    ax.set_xlim(-5.0, 1e3 * (STEP_TIME - 1e-3))
    ax.set_ylim(bottom=-0.2 * STEP)
    legend(figure, ax)
    return figure


def _steps(one: Any) -> str:
    return "steps-post" if one is None else "default"


def jump_figure(*shown: tuple[Line, Jump]) -> Figure:
    """Figures 11 and 14: measured accelerations; of two, the first step at a larger scale too."""
    zoom = len(shown) > 1
    figure = new_figure(5.2 if zoom else 3.0)
    axes = list(figure.subplots(2 if zoom else 1, 1, squeeze=False)[:, 0])
    whole, time = axes[0], shown[0][1].time
    dressed(whole, "" if zoom else "time (s)", "acceleration (m/s²)")
    whole.axvspan(BEFORE + 0.5 * STEP_TIME, BEFORE + STEP_TIME, color="#eef3f8", label="where vibration is measured")
    for ax in axes:
        ax.plot(time, shown[0][1].reference, drawstyle="steps-post", **REFERENCE.of())
        for line, one in shown:
            ax.plot(one.time, one.measured, **line.of())
    whole.set_xlim(time[0], time[-1])
    if zoom:
        near = dressed(axes[1], "time (s)", "acceleration (m/s²)", "the first step: time to half of it (t50)")
        near.axhline(STEP / 2.0, color=FAINT, linewidth=0.8)
        near.set_xlim(0.0, BEFORE + STEP_TIME - 1e-3)
        near.set_ylim(bottom=-0.2 * STEP)
        for line, one in shown:
            if not np.isfinite(one.t50):
                continue
            at = BEFORE + one.t50
            near.plot(at, STEP / 2.0, "o", color=line.color, markeredgecolor="white", markersize=7, zorder=5)
            text = f"{1e3 * one.t50:.1f} ms"
            near.annotate(
                text, (at, STEP / 2.0), xytext=(8, -14), textcoords="offset points", color=line.color, fontweight="bold"
            )
    legend(figure, whole)
    return figure


def torque_figure(limit: float, up: Tracking, without: Jump, after: Jump) -> Figure:
    """The largest of the six motors' torques over time, with their limit."""
    figure, (straight, jump) = panels(5.4, ("", "largest torque (N m)"), ("time (s)", "largest torque (N m)"))
    for law, run in up.runs.items():
        straight.plot(run.time, np.abs(run.torque).max(axis=1), **LAWS[law].of(linewidth=1.2))
    for line, one in ((WITHOUT, without), (WITH, after)):
        jump.plot(one.run.time, np.abs(one.run.torque).max(axis=1), **line.of(linewidth=1.2))
    for ax, title in ((straight, "straight up"), (jump, f"± {STEP:g} m/s²")):
        ax.axhline(limit, color=ALARM, linewidth=1.2, linestyle=(0, (5, 1.6)), label="limit")
        ax.set_ylim(0.0, 1.08 * limit)
        ax.margins(x=0.0)
        above: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "alignment": "left"}
        ax.legend(title=title, ncols=4, frameon=False, columnspacing=1.2, **above)
    return figure


# -- sines ----------------------------------------------------------------------------------------------------------
def wave_figure(one: Wave, last: float = 0.4) -> Figure:
    """Figures 15 and 16: a sine without and with feedback."""
    labels = ("", "acceleration (m/s²)"), ("time (s)", "acceleration (m/s²)")
    figure, axes = panels(4.9, *labels, sharex=True, sharey=True)
    begin = max(one.time[0], one.time[-1] - last)
    shown = one.time >= begin - 1e-9
    for ax, line, y in zip(axes, (WITHOUT, WITH), (one.without, one.with_feedback), strict=True):
        ax.plot(one.time[shown], one.reference[shown], **REFERENCE.of())
        ax.plot(one.time[shown], y[shown], **line.of())
    axes[1].set_xlim(begin, one.time[-1])
    legend(figure, *axes, columns=3)
    return figure


def sweep_figure(many: Waves) -> Figure:
    """Gain and phase of the measured acceleration over the reference, by sines of one frequency each."""
    labels = ("", "gain"), ("frequency (Hz)", "phase (°)")
    figure, (gain, phase) = panels(4.9, *labels, sharex=True, height_ratios=[3, 2])
    for line, ratio in ((WITHOUT, many.without), (WITH, many.with_feedback)):
        gain.plot(many.frequencies, np.abs(ratio), **line.of(marker="o", markersize=4))
        phase.plot(many.frequencies, np.degrees(np.unwrap(np.angle(ratio))), **line.of(marker="o", markersize=4))
    gain.axhline(1.0, color=FAINT, linewidth=0.8)
    gain.axhline(1.2, color=ALARM, linewidth=1.1, linestyle=(0, (5, 1.6)), label="bound: 1.2")
    gain.set_ylim(bottom=0.0)
    gain.set_xscale("log")
    _plain_ticks(gain, many.frequencies)
    legend(figure, gain, columns=3)
    return figure


def _plain_ticks(ax: Axes, values: Floats) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator  # weight: matplotlib

    places = [
        x for x in (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 30, 40, 60, 100) if values.min() <= x <= values.max()
    ]
    ax.xaxis.set_major_locator(FixedLocator(places))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))


# -- perturbed plants and time ----------------------------------------------------------------------------------------
def plants_figure(plants: Sequence[Perturbed]) -> Figure:
    """Every perturbed plant's t50 and vibration over those without feedback, with the bounds."""
    from matplotlib.patches import Rectangle  # weight: matplotlib

    figure, (ax,) = panels(4.6, ("t50 with feedback / t50 without", "vibration with feedback / without"))
    largest = np.array([0.65, 0.65])
    for which, line, mark in (("fixed", FIXED, "o"), ("redesigned", OWN, "^")):
        at = np.array([plant.ratios(which) for plant in plants])
        at = at[np.isfinite(at).all(axis=1)]
        wide, high = BOUNDS[which]
        area = Rectangle((0.0, 0.0), wide, high, facecolor="none", edgecolor=line.color, linestyle=(0, (5, 1.6)))
        ax.add_patch(area)
        text = f"bound: {line.label}"
        ax.annotate(text, (0.0, high), xytext=(5, 3), textcoords="offset points", color=line.color)
        if not len(at):
            continue
        largest = np.maximum(largest, at.max(axis=0))
        ax.plot(*at.T, mark, color=line.color, markeredgecolor="white", markersize=8, label=f"{line.label} ({len(at)})")
    ax.set_xlim(0.0, 1.06 * largest[0])
    ax.set_ylim(0.0, 1.06 * largest[1])
    legend(figure, ax)
    return figure


def latency_figure(timing: Timing) -> Figure:
    """How late steps began, and how long they took, of all steps of the loop."""
    figure, (ax,) = panels(3.6, ("time (µs)", "steps"))
    deadline = 1e6 / timing.rate
    shown = [x[np.isfinite(x)] for x in (timing.late, timing.took)]
    top = max([deadline, *(float(x.max(initial=0.0)) for x in shown)])
    low = max(0.05, min([1.0, *(float(x[x > 0].min(initial=1.0)) for x in shown)]))
    bins = np.geomspace(low, 1.2 * top, 90).tolist()
    names = (("began late by", "#0072B2"), ("took", "#D55E00"))
    for values, (label, color) in zip(shown, names, strict=True):
        ax.hist(np.clip(values, low, None), bins=bins, histtype="stepfilled", alpha=0.35, color=color)
        ax.hist(np.clip(values, low, None), bins=bins, histtype="step", color=color, linewidth=1.3, label=label)
    ax.axvline(deadline, color=ALARM, linestyle=(0, (5, 1.6)), linewidth=1.2, label=f"period: {deadline:g} µs")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(bottom=0.7)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_major_formatter("{x:,.0f}")
    legend(figure, ax, columns=3)
    return figure
