"""Identification and design by turns: identify the plant, design a compensator, insert it, identify again.

The experiment is a function: given the compensator in the loop (None at first), it excites the plant and returns the
record of what went into the plant, what came out, and the excitation from outside.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from linkwright.base.arguments import takes_settings
from linkwright.base.arrays import Floats
from linkwright.control.hinfinity.mixed_sensitivity import MixedSensitivity, mixed_sensitivity
from linkwright.control.hinfinity.reduction import reduce
from linkwright.control.hinfinity.two_dof import TwoDof, two_dof
from linkwright.control.hinfinity.weights import magnitude_from_above
from linkwright.control.identification.identify import identify
from linkwright.control.identification.models import Model
from linkwright.control.identification.records import Record
from linkwright.control.identification.spectra import Spectrum, multiplicative_error, spectrum
from linkwright.control.linear_systems import from_polynomials, sampled, system
from linkwright.errors import DesignError, LinkwrightError, LinkwrightWarning, ModelError, UnstableModelError

Experiment = Callable[[TwoDof | None], Record]


@dataclass(frozen=True)
class Weighting:
    """How W_T and W_S come from a round's spectra.

    - `bandwidth` (Hz): W_S has the gain 1 up to it and falls beyond; 50.0.
    - `floor`: W_T lies above it everywhere; 0.2.
    - `trusted` (Hz): beyond it nothing is believed, and W_T rises as ω/(2π·trusted); 16.0.
    - `coherence`: W_T lies above the multiplicative error of the model where the record is that coherent; 0.8.
    - `safety`: a factor of that error; 1.0.
    - `order`: that of W_T; 2.

    >>> import linkwright as lw
    >>> u, weighting = lw.control.m_sequence(8), lw.control.Weighting(bandwidth=30.0)
    >>> measured = lw.control.spectrum(lw.control.Record(u, 2.0 * u, 1e-3))
    >>> W_T = weighting.robustness(measured, lw.control.Model([2.0], delay=0, dt=1e-3))
    >>> weighting.performance(1e-3).order, W_T.nstates
    (1, 2)

    Numbers that cannot be used raise `ModelError` when a weight is made.
    """

    bandwidth: float = 50.0
    floor: float = 0.2
    trusted: float = 16.0
    coherence: float = 0.8
    safety: float = 1.0
    order: int = 2

    def robustness(self, measured: Spectrum, model: Model) -> Any:
        """W_T, sampled as `measured`, a `Spectrum`, above the error of `model` there; a `StateSpace`."""
        top = np.pi / measured.dt
        w = np.geomspace(0.5, 0.99 * top, 120)
        need = np.maximum(self.floor, self.floor * w / (2.0 * np.pi * self.trusted))
        try:
            seen = measured.where(coherence=self.coherence, low=2.0, high=0.9 * top)
        except LinkwrightError:
            seen = None
        if seen is not None and len(seen.w) > 1:
            need = np.maximum(need, self.safety * _envelope(w, seen.w, multiplicative_error(seen, model)))
        return magnitude_from_above(w, np.minimum(need, 50.0), self.order, dt=measured.dt)

    def performance(self, dt: float) -> Any:
        """W_S, sampled every `dt` (s): (1 + s/w₂)/(1 + s/w₁); a `System`."""
        w = 2.0 * np.pi * self.bandwidth
        return sampled(from_polynomials([1.0 / (8.0 * w), 1.0], [1.0 / w, 1.0]), dt)


@dataclass(frozen=True)
class Round:
    """One round: what was recorded and identified, the design for it, and the compensator that it gave.

    - `number`: from 1 on. `record`, `model`, `measured`: the experiment, the model of it, the response without a model.
    - `W_T`, `W_S`, `design`: the weights, and the design with them. `K`: its controller after reduction, with `order`
      of `full_order` states.
    - `compensator`: the `TwoDof`, for wanted response number `which`.
    - `notes`: warnings. `score`: of the compensator, by `RoundSettings.judge`; None where nothing judges.

    >>> def table(design):  # of repeated_design
    ...     return [(round.number, round.order, round.full_order, round.score) for round in design.rounds]

    `Repeated.rounds` has them.
    """

    number: int
    record: Record
    model: Model
    measured: Spectrum
    W_T: Any
    W_S: Any
    design: MixedSensitivity
    K: Any  # after reduction
    order: int  # of it, of `full_order`
    full_order: int
    compensator: TwoDof
    which: int  # of the wanted responses
    notes: tuple[str, ...] = ()
    score: float | None = None  # of the compensator, by `judge`

    def __str__(self) -> str:
        modes = sorted({f"{p.frequency:.1f} Hz (ζ = {p.damping:.3f})" for p in self.model.poles() if p.z.imag > 0})
        judged = "inserted, judged in the loop (less is better)"
        lines = [
            f"round {self.number}: fit {100.0 * self.model.fit:.1f} % on held-out data; modes: {', '.join(modes)}",
            f"  γ = {self.design.gamma_opt:.3g}, verified {self.design.norm.upper:.3g}; without control "
            f"{'unstable' if self.design.baseline is None else f'{self.design.baseline:.3g}'}",
            f"  K has {self.order} states of {self.full_order}; {self.compensator.margins}",
            *([] if self.score is None else [f"  {judged}: {self.score:.4g}"]),
        ]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


@dataclass(frozen=True)
class Repeated:
    """The rounds of a repeated design, as `repeated_design` gives them.

    `rounds` are `Round`s; `best` is the last, or the best judged, and `compensator` that round's. `ended` says why the
    repetition ended, `refused` what a last round without a compensator lacked.

    >>> import linkwright as lw
    >>> design = lw.control.Repeated((), "interrupted")
    >>> len(design.rounds), design.ended
    (0, 'interrupted')

    `best` raises `IndexError` where there is no round.
    """

    rounds: tuple[Round, ...]
    ended: str
    refused: tuple[str, ...] = field(default=())

    @property
    def best(self) -> Round:
        """The round with the least score; the last one where nothing was judged."""
        return min(reversed(self.rounds), key=lambda one: 0.0 if one.score is None else one.score)

    @property
    def compensator(self) -> TwoDof:
        """The compensator of the best round."""
        return self.best.compensator

    def __str__(self) -> str:
        why = "the last" if self.best.score is None else f"judged best, {self.best.score:.4g}"
        best = f"kept: the compensator of round {self.best.number} of {len(self.rounds)} ({why})"
        return "\n".join([*map(str, self.rounds), *self.refused, self.ended, best])


@dataclass(frozen=True, kw_only=True)
class RoundSettings:
    """Settings of `repeated_design` beyond its main arguments: `settings=lw.control.RoundSettings(keep=0.1)`.

    - `weighting`: the `Weighting` by which W_T and W_S come from a round's record; `Weighting()`.
    - `keep`: K is reduced as long as the cost grows by no more than this part; 0.05.
    - `tolerance`: the repetition ends when γ changes by less than this part; 0.02.
    - `judge`: a function of a compensator that measures it on the machine itself, less being better; none. The costs of
      two rounds cannot be compared, as each has the weights of its own record.
    - `progress`: a function that is called with a sentence when a round begins; none.

    >>> import linkwright as lw
    >>> lw.control.RoundSettings(keep=0.1).tolerance
    0.02

    The numbers are used as they are given.
    """

    weighting: Weighting = field(default_factory=Weighting)
    keep: float = 0.05
    tolerance: float = 0.02
    judge: Callable[[TwoDof], float] | None = None
    progress: Callable[[str], None] | None = None


@takes_settings(settings=RoundSettings)
def repeated_design(
    experiment: Experiment,
    G_D: Any,
    F: Any,
    *,
    dt: float,
    effort: float | None = None,
    rounds: int = 2,
    orders: Any = (4, 5, 2, 2, 1),
    settings: RoundSettings | None = None,
) -> Repeated:
    """Identify → design → insert → repeat, until γ changes little or the rounds are over; as a `Repeated`.

    - `experiment`: a function of the compensator in the loop (None at first) that gives the `Record` of an experiment
      with it, sampled every `dt` (s).
    - `G_D`: the wanted response, or several: the first is taken whose compensator answers a unit step of the reference
      with no more than `effort` at its peak (where none does, the last, with a note). `effort` is None for no limit.
    - `F`: the sensor's low-pass.
    - `rounds`: how many rounds at most; 2.
    - `orders`: (nb, nf, nc, nd, nk) of the Box–Jenkins model; (4, 5, 2, 2, 1), and None selects them.
    - `settings`: `RoundSettings`; their defaults.

    >>> import linkwright as lw
    >>> u = lw.control.m_sequence(10)
    >>> plant = lw.control.Model([0.1], [1.0, -0.9], dt=0.01)
    >>> record = lw.control.Record(u, plant.simulate(u, noise=0.01 * lw.control.m_sequence(10, seed=77)), 0.01)
    >>> wanted, low_pass = ([20.0], [1.0, 20.0]), ([30.0], [1.0, 30.0])
    >>> design = lw.control.repeated_design(
    ...     lambda compensator: record, wanted, low_pass, dt=0.01, rounds=1, orders=(1, 1, 1, 1, 1)
    ... )
    >>> design.compensator.margins.stable
    True

    A round whose model is unstable or has no stabilising K ends the repetition with what the rounds before gave; in the
    first round it raises `UnstableModelError` or `DesignError`. Arguments that cannot be used raise `ModelError`.
    """
    if rounds < 1:
        raise ModelError(f"rounds must be a whole number from 1 on, not {rounds!r}")
    s = RoundSettings() if settings is None else settings
    wanted = [G_D] if _is_one(G_D) else list(G_D)
    if not wanted:
        raise ModelError("G_D holds no wanted response: give one, or several to choose from")
    done: list[Round] = []
    for number in range(1, rounds + 1):
        if s.progress is not None:
            s.progress(f"round {number}: experiment and identification")
        record = experiment(done[-1].compensator if done else None)
        try:
            one = _round(number, record, wanted, F, dt, effort, orders, s)
        except (DesignError, UnstableModelError) as error:
            if not done:
                raise
            why = f"round {number} gave no compensator: {error}"
            return Repeated(tuple(done), f"kept the compensator of round {number - 1}", (why,))
        done.append(one if s.judge is None else replace(one, score=float(s.judge(one.compensator))))
        if len(done) > 1:
            before, now = done[-2].design.gamma_opt, one.design.gamma_opt
            if abs(now - before) <= s.tolerance * before:
                return Repeated(tuple(done), f"γ changed by less than {s.tolerance:.0%}: ended after round {number}")
    return Repeated(tuple(done), f"ended after {rounds} round{'s' if rounds > 1 else ''}, as asked")


def _round(
    number: int,
    record: Record,
    wanted: Sequence[Any],
    F: Any,
    dt: float,
    effort: float | None,
    orders: Sequence[int] | None,
    settings: RoundSettings,
) -> Round:
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", LinkwrightWarning)
        model = identify(record, "box-jenkins", orders, stable="refuse")
        measured = spectrum(record)
        W_T, W_S = settings.weighting.robustness(measured, model), settings.weighting.performance(dt)
        plant, low_pass = model.system(), sampled(system(F, "F"), dt)
        design = mixed_sensitivity(plant, W_T, W_S, filter=low_pass)
        small = reduce(design.system, keep_norm=settings.keep, loop=design)
        for which in range(len(wanted)):
            both = two_dof(plant, small.system, wanted[which], low_pass, dt=dt)
            peak = _peak(both)
            if effort is None or peak <= effort:
                break
        else:
            notes.append(
                f"no wanted response is reached with an effort of {effort:g} for a unit step: the last, which is "
                f"taken, needs {peak:.4g}; add a slower one to G_D, or allow more effort"
            )
    # That a strictly proper plant had to be made regular is in `design.warnings`, and true of every round.
    notes += [str(w.message) for w in warned if str(w.message) not in design.warnings]
    notes += [str(note) for note in both.notes]
    return Round(
        number,
        record,
        model,
        measured,
        W_T,
        W_S,
        design,
        small.system,
        small.system.order,
        design.system.order,
        both,
        which,
        tuple(dict.fromkeys(notes)),
    )


def _peak(both: TwoDof) -> float:
    """The largest answer of the feedforward to a unit step of the reference."""
    Q = both.feedforward
    x, largest = np.zeros(Q.order), 0.0
    for _ in range(250):
        largest = max(largest, abs(float((Q.C @ x)[0] + Q.D[0, 0])))
        x = Q.A @ x + Q.B[:, 0]
    return largest


def _is_one(responses: Any) -> bool:
    """Whether this is one response, and not several: a list is several; of tuples, what `system` reads as one."""
    if not isinstance(responses, tuple):
        return not isinstance(responses, list)
    try:
        one = system(responses)
    except (LinkwrightError, TypeError, ValueError):
        return False
    # Four pairs of polynomials of equal length are matrices too, but not those of one signal.
    return len(responses) in (2, 4) and one.inputs == one.outputs == 1


def _envelope(w: Floats, at: Floats, size: Floats) -> Floats:
    """The largest size within a third of an octave of each frequency; 0 where nothing was measured."""
    near = np.abs(np.log2(w[:, None] / at[None, :])) <= 1.0 / 3.0
    return np.asarray(np.max(np.where(near, size[None, :], 0.0), axis=1))
