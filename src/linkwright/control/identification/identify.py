"""Identification of a sampled linear model from a record, by prediction errors; and the selection of its orders."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from linkwright.base.arguments import outside, takes_settings, whole_number
from linkwright.base.arrays import Floats
from linkwright.control.identification.fitting import Fitted, arx, fit, regressors
from linkwright.control.identification.models import FAMILIES, SHARED, Model
from linkwright.control.identification.prediction import Orders, Predictor, split
from linkwright.control.identification.records import SHORTEST, Record
from linkwright.control.identification.validation import predicted_fit, simulated_fit
from linkwright.errors import DataError, LinkwrightError, LinkwrightWarning, UnstableModelError

NAMES = {"bj": "box-jenkins", "box_jenkins": "box-jenkins", "output-error": "oe"}
SHOWN = 5  # candidates that are printed
ROUNDS = 6  # of moving to a better neighbour
CRITERIA = ("bic", "aic", "validation")


@dataclass(frozen=True, kw_only=True)
class IdentifySettings:
    """Settings of `identify` beyond its main arguments: `settings=lw.control.IdentifySettings(max_order=3)`.

    - `criterion`: by what orders are selected: "bic", "aic", or "validation" (one-step errors on the held-out part);
      "bic".
    - `max_order`: the largest order of the plant that is tried; 6.
    - `starts`: how many starting points are followed (ARX, instrumental variables, Steiglitz–McBride, perturbed ones);
      3.
    - `seed`: the perturbed starting points come from it; 0.

    >>> import linkwright as lw
    >>> lw.control.IdentifySettings(criterion="aic").max_order
    6

    Another criterion, and numbers that are not whole or below 1, raise `LinkwrightError`.
    """

    criterion: str = "bic"
    max_order: int = 6
    starts: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        if self.criterion not in CRITERIA:
            raise LinkwrightError(f"the criterion is one of {', '.join(CRITERIA)}, not {self.criterion!r}")
        for name in ("max_order", "starts"):
            whole_number(name, getattr(self, name), 1)


@takes_settings(settings=IdentifySettings)
def identify(
    record: Record,
    model: str = "box-jenkins",
    orders: Orders | Sequence[int] | Mapping[str, int] | None = None,
    *,
    delay: int | None = None,
    holdout: float = 0.25,
    initial: str = "estimate",
    stable: str = "keep",
    settings: IdentifySettings | None = None,
) -> Model:
    """A model y = q^-nk B/F u + C/D e of least squared prediction errors, with its Cramér–Rao covariance.

    - `record`: the `Record` of input and output.
    - `model`: "box-jenkins" (all four polynomials), "oe" (C = D = 1), "armax" (F = D) or "arx" (F = D, C = 1).
    - `orders`: (nb, nf, nc, nd, nk), or names to numbers, or `Orders`; nb counts the coefficients of B from q^-nk on.
      In ARX and ARMAX models nf is the order of A, and nd is ignored. None selects them as `settings` say.
    - `delay`: nk in samples; None leaves it to `orders`, or to their selection.
    - `holdout`: the last part of the record, 0.25, on which `Model.fit` is measured, by a model of the other part; the
      model that is returned uses the whole record. 0 leaves that out, and so does an input that is constant over one
      of the parts.
    - `initial`: "estimate" the conditions before the first sample, or "zero" for a start at rest.
    - `stable`: what to do with an unstable plant: "keep" it with a warning, "refuse" it, or "reflect" its poles.
    - `settings`: `IdentifySettings`.

    Data from a closed loop are fitted as they are (the direct method): with a noise model that is rich enough,
    "box-jenkins" (of a stable plant) and "armax" (of an unstable one too) are consistent there where the loop has a
    delay, and the bands hold; "oe", "arx" and spectral estimates are biased by feedback.

    >>> import linkwright as lw
    >>> u = lw.control.m_sequence(8)
    >>> y = lw.control.Model([0.5], [1.0, -0.8]).simulate(u)
    >>> lw.control.identify(lw.control.Record(u, y, 1.0), "oe", (1, 1, 0, 0, 1)).F.round(6).tolist()
    [1.0, -0.8]

    Raises `DataError` and `ExcitationError` for a record that does not determine a model, `UnstableModelError` where
    an unstable plant is to be refused, and `LinkwrightError` for arguments that cannot be used.
    """
    s = IdentifySettings() if settings is None else settings
    family = NAMES.get(model, model)
    if family not in FAMILIES:
        raise LinkwrightError(f"a model is one of {', '.join(FAMILIES)}, not {model!r}")
    if stable not in ("keep", "refuse", "reflect"):
        raise LinkwrightError(f"stable is 'keep', 'refuse' or 'reflect', not {stable!r}")
    if not isinstance(record, Record):
        raise LinkwrightError(f"identify takes a Record, lw.control.Record(u, y, dt), not a {type(record).__name__}")
    if not 0.0 <= holdout < 0.9:
        raise LinkwrightError(f"holdout is a fraction of the record from 0 to 0.9, not {holdout!r}")
    if np.ptp(record.y) == 0.0:
        raise DataError(
            f"the output is constant ({record.y[0]:g}) over all {len(record)} samples: there is no response to model. "
            "Check the column, the sensor, and that the input reached the plant"
        )
    notes = _notes(record)
    shared = family in SHARED
    options: dict[str, Any] = {"shared": shared, "initial": initial, "most_starts": s.starts, "seed": s.seed}
    seen, unseen = _held_out(record, holdout, notes)
    if unseen is None and holdout and orders is None and s.criterion == "validation":
        raise DataError(f"criterion='validation' cannot be used here. {notes[-1]}")
    selection: tuple[Any, ...] = ()
    if orders is None:
        wanted, selection = select(seen, unseen, family, delay, s, initial)
    else:
        wanted = _orders(orders, family, delay)
    smallness = record.require_excitation(wanted.nb + wanted.nf)
    if smallness < 1e-4:
        notes.append(
            f"The input is a poor one for {wanted.nb + wanted.nf} plant coefficients (its weakest combination is "
            f"{-20 * np.log10(smallness):.0f} dB below the strongest): decimate the record, or excite more widely."
        )
    scores = (float("nan"), float("nan"))
    before = None
    if unseen is not None:
        early = fit(seen.u, seen.y, wanted, **options)
        judged = _model(early, family, seen, initial)
        scores = (simulated_fit(judged, unseen), predicted_fit(judged, unseen))
        before = early.theta
        options["most_starts"] = min(2, s.starts)
    fitted = fit(record.u, record.y, wanted, first=before, **options)
    if not fitted.converged:
        notes.append(
            "The fit did not converge: the orders may be too large for the data (poles and zeros that cancel), or the "
            "record too short; try smaller orders, or more starts."
        )
    identified = replace(
        _model(fitted, family, record, initial),
        fit=scores[0],
        prediction_fit=scores[1],
        selection=selection,
        notes=tuple(notes),
    )
    if _explains_nothing(identified):
        text = (
            f"The model explains nothing of the output (fit {100 * identified.fit:.1f} % held out, B is in its noise): "
            "see that the columns belong together and that the input reached the plant, or excite more strongly."
        )
        warnings.warn(text, LinkwrightWarning, stacklevel=outside())
        identified = identified.with_notes(text)
    return _judge(identified, stable)


def _explains_nothing(model: Model) -> bool:
    """Whether held-out data are simulated no better than by their mean, and B is zero within its noise."""
    if model.covariance is None or not model.fit < 0.05:
        return False
    b = model.B
    covariance = model.covariance[: len(b), : len(b)]
    # χ² of B = 0; much is allowed, as F has been chosen to make it large.
    return bool(b @ np.linalg.pinv(covariance, hermitian=True) @ b < 30.0 + 10.0 * len(b))


def _held_out(record: Record, holdout: float, notes: list[str]) -> tuple[Record, Record | None]:
    """What is fitted first, and what it is judged on: nothing where one of them would have an input without change."""
    if holdout == 0.0:
        return record, None
    at = round((1.0 - holdout) * len(record))
    late = len(record) - at
    if min(at, late) < SHORTEST:
        raise DataError(
            f"a record of {len(record)} samples is too short to hold out {holdout:.0%} of it ({at} and {late} samples, "
            f"each at least {SHORTEST}): record for longer, or pass holdout=0"
        )
    for which, part in ((f"first {at}", record.u[:at]), (f"last {late}", record.u[at:])):
        if np.ptp(part) == 0.0:
            notes.append(
                f"The input is constant over the {which} samples of {len(record)}: nothing was held out, and the fit "
                "is not judged on unseen data. Let the input change throughout the record, or choose another holdout."
            )
            return record, None
    return record.part(0, at), record.part(at)


def _model(fitted: Fitted, family: str, record: Record, initial: str) -> Model:
    p = split(fitted.theta, fitted.orders, fitted.shared)
    known = (record.dt, fitted.variance, family, fitted.covariance, record)
    return Model(p.B, p.F, p.C, p.D, fitted.orders.nk, *known, initial=initial)


def _orders(wanted: Orders | Sequence[int] | Mapping[str, int], family: str, delay: int | None) -> Orders:
    if isinstance(wanted, Orders):
        orders = wanted
    elif isinstance(wanted, Mapping):
        names = sorted(wanted)
        if set(names) - {"nb", "nf", "nc", "nd", "nk"} or not {"nb", "nf"} <= set(names):
            raise LinkwrightError(f"orders are nb, nf, nc, nd and nk, the first two needed; given were {names}")
        orders = Orders(**{key: int(value) for key, value in wanted.items()})
    else:
        if len(wanted) != 5:
            raise LinkwrightError(f"orders are five numbers (nb, nf, nc, nd, nk), not {tuple(wanted)!r}")
        orders = Orders(*(int(x) for x in wanted))
    if delay is not None:
        orders = replace(orders, nk=delay)
    if family in ("oe", "arx"):
        orders = replace(orders, nc=0, nd=0)
    return replace(orders, nd=orders.nf) if family in SHARED else orders


def _notes(record: Record) -> list[str]:
    notes = []
    for name, signal in (("u", record.u), ("y", record.y)):
        mean, spread = abs(float(signal.mean())), float(signal.std())
        if mean > 3 * spread:
            notes.append(
                f"The mean of {name} is {mean / max(spread, 1e-300):.3g} times its standard deviation, which a linear "
                "model takes for a response: consider record.detrend()."
            )
    return notes


def _judge(model: Model, wanted: str) -> Model:
    """Warn of an unstable plant, refuse it, or reflect its poles."""
    unstable = [p for p in model.poles() if not p.stable and p.z.imag >= 0]
    edge = [p for p in model.poles() if 1.0 - 1e-7 < abs(p.z) < 1.0]
    if edge and not unstable and not model.shared:
        text = (
            f"The fit ended on the edge of stability (pole at {edge[0].frequency:.4g} Hz): the plant may be unstable "
            "or integrate, which this predictor cannot follow. Try model='armax', or differentiate the output."
        )
        warnings.warn(text, LinkwrightWarning, stacklevel=outside())
        return model.with_notes(text)
    if not unstable:
        return model
    places = ", ".join(f"{p.frequency:.4g} Hz (|z| = {abs(p.z):.5g})" for p in unstable)
    text = (
        f"The identified plant is unstable: poles at {places}. If the real one is stable, try fewer or other orders, a "
        "longer or less noisy record, record.detrend(), or model='box-jenkins', which stays stable"
    )
    if wanted == "refuse":
        raise UnstableModelError(f"{text}; stable='reflect' mirrors the poles", model=model)
    if wanted == "reflect":
        return model.with_notes(text + ".").reflect()
    warnings.warn(text + ".", LinkwrightWarning, stacklevel=outside())
    return model.with_notes(text + ".")


@dataclass(frozen=True)
class Candidate:
    """One point of the grid: its orders, its criteria (smaller is better), and its one-step error on held-out data."""

    orders: Orders
    bic: float
    aic: float
    validation: float

    def score(self, criterion: str) -> float:
        return float(getattr(self, criterion))

    def __str__(self) -> str:
        held = f", held-out error {self.validation:.4g}" if np.isfinite(self.validation) else ""
        return f"{self.orders}: BIC {self.bic:.1f}, AIC {self.aic:.1f}{held}"


class Selection(tuple[Candidate, ...]):
    """The candidates of an order selection, best first; printed are the first few."""

    __slots__ = ()

    def __repr__(self) -> str:
        left = len(self) - SHOWN
        lines = [f"{len(self)} candidates, best first", *(f"  {one}" for one in self[:SHOWN])]
        return "\n".join([*lines, *([f"  and {left} more"] if left > 0 else [])])


def select(
    seen: Record,
    unseen: Record | None,
    family: str,
    delay: int | None,
    settings: IdentifySettings,
    initial: str,
) -> tuple[Orders, Selection]:
    """The best orders and all candidates, best first.

    The whole grid of five orders would be thousands of fits: the plant's orders are searched with a noise model of
    order two, then the noise's with the best plant, then both and the delay from neighbour to better neighbour.
    """
    if settings.criterion == "validation" and unseen is None:
        raise LinkwrightError("criterion='validation' needs data that are held out: give holdout=0.25 for instance")
    max_order = settings.max_order
    grid = _Grid(seen, unseen, family, settings.criterion, initial)
    excited, _ = seen.excitation(2 * max_order + 1)
    top = min(max_order, max(1, excited // 2), max(1, (len(seen) - 40) // 24))
    nk = estimated_delay(seen) if delay is None else delay
    noise = (2, 2) if family == "box-jenkins" else (1, 0) if family == "armax" else (0, 0)
    grid.run(Orders(nb, nf, *noise, nk) for nf in range(1, top + 1) for nb in {max(1, nf - 1), nf, nf + 1})
    best = grid.best
    if family == "box-jenkins":
        grid.run(replace(best, nc=nc, nd=nd) for nc in range(4) for nd in range(4))
    elif family == "armax":
        grid.run(replace(best, nc=nc) for nc in range(1, top + 1))
    # Then downhill from neighbour to neighbour: one sample less of delay, one more coefficient of B and one fewer of F
    # describe nearly the same plant, so all three move together.
    least = min(nk, 1)
    for _ in range(ROUNDS):
        best = grid.best
        grid.run(_plants_around(best, top, None if delay is not None else least))
        if family in ("box-jenkins", "armax"):
            grid.run(_noises_around(grid.best, family))
        if grid.best == best:
            break
    return grid.best, Selection(grid.ranked)


def _plants_around(best: Orders, top: int, least_delay: int | None) -> Iterator[Orders]:
    steps = (-1, 0, 1)
    for i, j, k in product(steps, steps, steps if least_delay is not None else (0,)):
        nb, nf, nk = best.nb + i, best.nf + j, best.nk + k
        if 1 <= nb <= top + 1 and 0 <= nf <= top and nk >= (least_delay or 0):
            yield replace(best, nb=nb, nf=nf, nk=nk)


def _noises_around(best: Orders, family: str) -> Iterator[Orders]:
    for i, j in product((-1, 0, 1), (-1, 0, 1) if family == "box-jenkins" else (0,)):
        if best.nc + i >= 0 and best.nd + j >= 0:
            yield replace(best, nc=best.nc + i, nd=best.nd + j)


class _Grid:
    def __init__(self, seen: Record, unseen: Record | None, family: str, criterion: str, initial: str) -> None:
        self.seen, self.unseen, self.criterion, self.initial = seen, unseen, criterion, initial
        self.shared, self.family = family in SHARED, family
        self.done: dict[Orders, Candidate] = {}

    def run(self, grid: Iterable[Orders]) -> None:
        for orders in grid:
            if self.shared:
                orders = replace(orders, nd=orders.nf)
            if orders in self.done:
                continue
            try:
                fitted = fit(
                    self.seen.u,
                    self.seen.y,
                    orders,
                    shared=self.shared,
                    initial=self.initial,
                    most_starts=1,
                    evaluations=60,
                    tolerance=1e-7,
                )
            except DataError:
                continue  # too few samples for so many coefficients
            self.done[orders] = Candidate(orders, fitted.bic, fitted.aic, self._validation(fitted.theta, orders))
        if not self.done:
            raise DataError(f"{len(self.seen)} samples are too few to select orders: record more, or give orders=...")

    def _validation(self, theta: Floats, orders: Orders) -> float:
        if self.unseen is None:
            return float("nan")
        predictor = Predictor(self.unseen.u, self.unseen.y, orders, shared=self.shared, initial=self.initial)
        e = predictor.residuals(predictor.start(theta))
        skip = min(predictor.size - predictor.count, len(e) // 2)
        return float(np.sqrt(np.mean(e[skip:] ** 2)))

    @property
    def ranked(self) -> list[Candidate]:
        """Best first. Held-out errors differ by chance: of those within a standard error of the least, the smallest."""
        candidates = sorted(self.done.values(), key=lambda c: c.score(self.criterion))
        if self.criterion == "validation" and self.unseen is not None:
            limit = candidates[0].validation * (1.0 + 1.0 / np.sqrt(2.0 * len(self.unseen)))
            alike = [c for c in candidates if c.validation <= limit]
            first = min(alike, key=lambda c: (c.orders.count(self.shared), c.validation))
            candidates.remove(first)
            candidates.insert(0, first)
        return candidates

    @property
    def best(self) -> Orders:
        return self.ranked[0].orders


def estimated_delay(record: Record, most: int = 20) -> int:
    """The first lag at which a long ARX model's B is five standard deviations from zero (samples)."""
    n = len(record)
    order = max(4, min(30, n // 12))
    nb = max(2, min(most, n // 12))
    b, a = arx(record.u, record.y, nb, order, 0)
    skip = max(order, nb - 1)
    psi = regressors([(-record.y, 1, order), (record.u, 0, nb)], skip)
    e = record.y[skip:] - psi @ np.concatenate([a[1:], b])
    inverse = np.linalg.pinv(psi.T @ psi, hermitian=True)
    errors = np.sqrt(np.maximum(np.diag(inverse)[order:], 0.0) * float(e @ e) / max(1, len(e) - psi.shape[1]))
    clear = np.flatnonzero(np.abs(b) > 5 * errors)
    return int(clear[0]) if len(clear) else 1
