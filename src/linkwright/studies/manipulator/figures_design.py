"""The study's figures of identification and design: Bode plots with bands, weights, the loop and its cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.control import bode, multiplicative_error, system
from linkwright.studies.manipulator.machine_figures import ALARM, FAINT, INK, dressed, legend, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from linkwright.control import Model, Round

MODEL, MEASURED, OTHER = "#0072B2", "#D55E00", "#009E73"
LEVEL, LOW = 0.95, 0.5  # of the band; Hz, where the plots begin
COHERENT = 0.8  # what counts as coherent for the weights


def frequencies(model: Model) -> Floats:
    """Frequencies (Hz) for curves up to half the sampling rate, dense about lightly damped modes."""
    top = 0.5 / model.dt
    grid = np.unique(np.concatenate([np.geomspace(LOW, 0.999 * top, 400), model.near_modes() / (2.0 * np.pi)]))
    return np.asarray(grid[(grid >= LOW) & (grid < top)])


def bode_figure(one: Round) -> Figure:
    """Figure 12: the identified model with its band, the measured response and its coherence."""
    hertz = frequencies(one.model)
    seen = one.measured.where(low=2.0 * np.pi * LOW)
    labels = ["measured", f"Box–Jenkins model G, its {LEVEL:.0%} band"]
    figure = bode(seen, one.model, w=2.0 * np.pi * hertz, labels=labels, level=LEVEL)
    figure.set_size_inches(6.0, 6.4)
    for ax, label in zip(figure.axes, ("gain (dB)", "phase (°)", "coherence"), strict=True):
        dressed(ax, "frequency (Hz)" if label == "coherence" else "", label)
    gain, phase, coherence = figure.axes
    for ax, room in ((gain, 12.0), (phase, 60.0)):
        values = ax.lines[-1].get_ydata()  # the model's
        ax.set_ylim(np.nanmin(values) - room, np.nanmax(values) + room)
    _by_frequency(coherence, hertz)
    return figure


def weights_figure(one: Round) -> Figure:
    """The weights: W_T above what the measured response differs from the model, W_S over what is to be improved."""
    figure, (ax,) = panels(3.7, ("frequency (Hz)", "gain"))
    hertz = frequencies(one.model)
    w = 2.0 * np.pi * hertz
    at, error, _ = coherent_error(one)
    ax.plot(at, error, ".", color=MEASURED, markersize=4, label=f"|measured/model − 1|, coherence ≥ {COHERENT:g}")
    for weight, label, color, dashes in (
        (one.W_T, "$|W_T|$", MODEL, "solid"),
        (one.W_S, "$|W_S|$", OTHER, (0, (5, 1.6))),
    ):
        values = np.abs(system(weight).at(w)[:, 0, 0])
        ax.plot(hertz, values, color=color, linestyle=dashes, linewidth=1.6, label=label)
    ax.set_yscale("log")
    ax.set_ylim(bottom=max(ax.get_ylim()[0], 3e-3))
    _by_frequency(ax, hertz)
    legend(figure, ax, columns=3)
    return figure


def coherent_error(one: Round) -> tuple[Floats, Floats, Floats]:
    """Frequencies (Hz) where the record is coherent, the model's relative error there, and |W_T|."""
    seen = (one.measured.hertz >= LOW) & (one.measured.coherence >= COHERENT)
    error = multiplicative_error(one.measured, one.model)[seen]
    return one.measured.hertz[seen], error, np.abs(system(one.W_T).at(one.measured.w[seen])[:, 0, 0])


def loop_figure(one: Round) -> Figure:
    """The stacked cost over frequency under γ, and the loop's S and T under what W_T allows."""
    labels = ("", "largest singular value", "the cost"), ("frequency (Hz)", "gain", "the loop")
    figure, (cost, loop) = panels(5.9, *labels, sharex=True)
    problem, K = one.design.problem, system(one.K, "K")
    hertz = frequencies(one.model)
    w = 2.0 * np.pi * hertz
    nothing = system(np.zeros((problem.G.inputs, problem.F.outputs)), dt=problem.G.dt)
    for closed, label, color, dashes in (
        (problem.loop(nothing), "K = 0", FAINT, (0, (4, 2))),
        (problem.loop(one.design.system), f"K as designed, {one.full_order} states", MODEL, "solid"),
        (problem.loop(K), f"K reduced, {one.order} states", MEASURED, (0, (1.6, 1.2))),
    ):
        values = np.linalg.svd(closed.at(w), compute_uv=False)[:, 0]
        cost.plot(hertz, values, color=color, linestyle=dashes, linewidth=1.5, label=label)
    cost.axhline(
        one.design.gamma_opt, color=INK, linewidth=0.9, label=rf"$\gamma_{{opt}}$ = {one.design.gamma_opt:.3g}"
    )
    L = (K @ (problem.F @ problem.G)).at(w)[:, 0, 0]
    S, T = np.abs(1.0 / (1.0 + L)), np.abs(L / (1.0 + L))
    loop.plot(hertz, S, color=MODEL, linewidth=1.5, label="|S| = |1/(1 + KFG)|")
    loop.plot(hertz, T, color=OTHER, linestyle=(0, (5, 1.6)), linewidth=1.5, label="|T| = |KFG/(1 + KFG)|")
    allowed = one.design.gamma_opt / np.abs(system(one.W_T).at(w)[:, 0, 0])
    loop.plot(hertz, allowed, color=ALARM, linestyle=(0, (1.6, 1.2)), linewidth=1.2, label=r"$\gamma_{opt}/|W_T|$")
    loop.axhline(1.0, color=FAINT, linewidth=0.8)
    for ax in (cost, loop):
        ax.set_yscale("log")
        ax.set_ylim(bottom=max(ax.get_ylim()[0], 1e-2))
        ax.legend(frameon=False, loc="best")
    _by_frequency(loop, hertz)
    return figure


def _by_frequency(ax: Axes, hertz: Floats) -> None:
    ax.set_xscale("log")
    ax.set_xlim(hertz[0], hertz[-1])
    ax.xaxis.set_major_formatter("{x:g}")
