"""Bode plots of models, their bands, measured spectra and linear systems; and records over time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwright.base.arguments import real_array
from linkwright.base.arrays import Floats
from linkwright.control.identification.models import Model
from linkwright.control.identification.records import Record
from linkwright.control.identification.spectra import Spectrum
from linkwright.errors import LinkwrightError
from linkwright.results.solution_plots import check_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COHERENT = 0.5  # below it the phase is mostly noise
COLORS = ("#1f5fa8", "#c4491d", "#2e8b57", "#8a4fa3", "#946c00", "#444444")


def bode(
    *things: Any,
    w: ArrayLike | None = None,
    labels: list[str] | None = None,
    level: float = 0.95,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Magnitude (dB) and phase (degrees) over Hz of models, measured spectra and python-control systems, as a figure.

    - `things`: `Model`s, `Spectrum`s and linear systems. Models that carry a covariance are drawn with their bands of
      `level` (0.95); spectra as dots with their coherence in a third pair of axes.
    - `w` (n) rad/s: the frequencies of models and systems; chosen unless given. `labels`: one for each thing; none.
    - `path`: also writes the picture, in the format of its ending; none.

    >>> import linkwright as lw
    >>> figure = lw.control.bode(lw.control.Model([0.1], [1.0, -0.9]), labels=["lag"])
    >>> len(figure.axes)
    2

    Raises `LinkwrightError` for nothing to draw, other things, as many labels as there are not things, and without
    matplotlib.
    """
    check_figure(path)
    if not things:
        raise LinkwrightError("bode needs something to draw: a model, a spectrum, a linear system")
    if labels is not None and len(labels) != len(things):
        raise LinkwrightError(f"there are {len(things)} things to draw and {len(labels)} labels")
    names = labels or [_name(x, k) for k, x in enumerate(things, 1)]
    at = _frequencies(things) if w is None else np.atleast_1d(real_array("w", w))
    model = next((_response(x, at) for x in things if not isinstance(x, Spectrum)), None)
    coherent = any(isinstance(x, Spectrum) for x in things)
    figure = _new_figure(7.2 if coherent else 5.6)
    ratios = [3, 2, 1] if coherent else [3, 2]
    axes = figure.subplots(len(ratios), 1, sharex=True, height_ratios=ratios)
    for k, (thing, name) in enumerate(zip(things, names, strict=True)):
        color = COLORS[k % len(COLORS)]
        if isinstance(thing, Spectrum):
            style = {"linestyle": "none", "marker": ".", "markersize": 3, "color": color}
            phase = _measured_phase(thing, at, model)
            _curve(axes, thing.hertz, thing.response, phase, label=name, **style)
            axes[2].semilogx(thing.hertz, thing.coherence, color=color, linewidth=1)
            continue
        response = _response(thing, at)
        _curve(axes, at / (2 * np.pi), response, label=name, color=color, linewidth=1.4)
        if isinstance(thing, Model) and thing.covariance is not None:
            band = thing.band(at, level)
            shade = {"color": color, "alpha": 0.2, "linewidth": 0}
            low, high = 20 * np.log10(np.maximum(band.magnitude, 1e-300))
            axes[0].fill_between(at / (2 * np.pi), low, high, **shade)
            axes[1].fill_between(at / (2 * np.pi), *np.degrees(band.phase), **shade)
    axes[0].set_ylabel("magnitude (dB)")
    axes[1].set_ylabel("phase (°)")
    if coherent:
        axes[2].set_ylabel("coherence")
        axes[2].set_ylim(0, 1.05)
    axes[-1].set_xlabel("frequency (Hz)")
    for ax in axes:
        ax.grid(which="both", color="#dddddd", linewidth=0.6)
    axes[0].legend(fontsize=8, loc="best")
    from linkwright.results.figures import save_figure  # weight: matplotlib

    save_figure(figure, path)
    return figure


def plot_record(record: Record) -> Figure:
    """Input and output (and reference) over time."""
    signals = [("u", record.u), ("y", record.y), *([("r", record.r)] if record.r is not None else [])]
    figure = _new_figure(1.0 + 1.8 * len(signals))
    axes = figure.subplots(len(signals), 1, sharex=True)
    for ax, (name, values), color in zip(axes, signals, COLORS, strict=False):
        ax.plot(record.time, values, linewidth=0.9, color=color)
        ax.set_ylabel(name)
        ax.grid(color="#dddddd", linewidth=0.6)
    axes[-1].set_xlabel("time (s)")
    return figure


def _measured_phase(spectrum: Spectrum, at: Floats, model: NDArray[np.complex128] | None) -> Floats:
    """Degrees: beside the model's phase, if there is one; else unwrapped where it is coherent, the rest beside that."""
    angle = np.angle(spectrum.response)
    if model is not None:
        known = np.isfinite(model)
        if known.sum() > 1:
            beside = np.interp(spectrum.w, at[known], np.unwrap(np.angle(model[known])))
            return np.asarray(np.degrees(beside + _wrapped(angle - beside)))
    good = np.flatnonzero((spectrum.coherence >= COHERENT) & np.isfinite(angle))
    if not len(good):
        return np.asarray(np.degrees(angle))
    followed = np.unwrap(angle[good])
    nearest = followed[np.clip(np.searchsorted(good, np.arange(len(angle)), side="right") - 1, 0, None)]
    phase = nearest + _wrapped(angle - nearest)
    phase[good] = followed
    return np.asarray(np.degrees(phase))


def _wrapped(angle: Floats) -> Floats:
    return np.asarray((angle + np.pi) % (2 * np.pi) - np.pi)


def _curve(
    axes: Any, hertz: Floats, response: NDArray[np.complex128], known: Floats | None = None, **style: Any
) -> None:
    with np.errstate(divide="ignore", invalid="ignore"):
        decibel = 20 * np.log10(np.abs(response))
    axes[0].semilogx(hertz, decibel, **style)
    ok = np.isfinite(response)
    phase = np.full(len(hertz), np.nan)
    phase[ok] = np.degrees(np.unwrap(np.angle(response[ok]))) if known is None else known[ok]
    axes[1].semilogx(hertz, phase, **style)


def _response(thing: Any, w: Floats) -> NDArray[np.complex128]:
    if isinstance(thing, Model):
        return thing.frequency_response(w)
    dt: Any = getattr(thing, "dt", None)
    if not callable(thing):
        raise LinkwrightError(f"bode draws models, spectra and linear systems, not a {type(thing).__name__}")
    sampled = dt not in (None, 0, True)
    at = np.exp(1j * w * dt) if sampled else 1j * w
    return np.asarray(thing(at), np.complex128).reshape(-1)


def _frequencies(things: tuple[Any, ...]) -> Floats:
    dts = [x.dt for x in things if getattr(x, "dt", None) not in (None, 0, True)]
    spectra = [x for x in things if isinstance(x, Spectrum)]
    top = np.pi / min(dts) if dts else 1e3
    low = min((float(x.w[0]) for x in spectra), default=1e-3 * top)
    sharp = [x.near_modes() for x in things if isinstance(x, Model)]
    grid = np.sort(np.concatenate([np.geomspace(low, 0.999 * top, 600), *sharp]))
    return np.asarray(grid[(grid > 0) & (grid < top)])


def _name(thing: Any, number: int) -> str:
    if isinstance(thing, Model):
        return f"{thing.family} ({thing.orders})"
    return "measured" if isinstance(thing, Spectrum) else f"system {number}"


def _new_figure(height: float) -> Figure:
    """An empty figure of a height in inches."""
    from linkwright.results.figures import ShownFigure  # weight: matplotlib

    return ShownFigure(figsize=(7.5, height), layout="constrained", facecolor="white")
