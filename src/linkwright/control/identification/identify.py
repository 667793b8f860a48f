"""Identification of a sampled linear model from a record, by prediction errors."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linkwright.base.arguments import whole_number
from linkwright.control.identification.fitting import Fitted, fit
from linkwright.control.identification.models import FAMILIES, SHARED, Model
from linkwright.control.identification.prediction import Orders, split
from linkwright.control.identification.records import SHORTEST, Record
from linkwright.control.identification.residual_tests import predicted_fit, simulated_fit
from linkwright.control.identification.selection import select
from linkwright.errors import DataError, LinkwrightError, LinkwrightWarning, UnstableModelError

NAMES = {"bj": "box-jenkins", "box_jenkins": "box-jenkins", "output-error": "oe"}


def identify(
    record: Record,
    model: str = "box-jenkins",
    orders: Orders | Sequence[int] | Mapping[str, int] | None = None,
    *,
    delay: int | None = None,
    criterion: str = "bic",
    max_order: int = 6,
    holdout: float = 0.25,
    initial: str = "estimate",
    starts: int = 3,
    stable: str = "keep",
    seed: int = 0,
) -> Model:
    """A model y = q^-nk B/F u + C/D e of least squared prediction errors, with its Cramér–Rao covariance.

    `model`: "box-jenkins" (all four polynomials), "oe" (C = D = 1), "armax" (F = D), "arx" (F = D, C = 1).
    `orders`: (nb, nf, nc, nd, nk), or names to numbers, or `Orders`; nb counts the coefficients of B from q^-nk on. In
    ARX and ARMAX models nf is the order of A, and nd is ignored. None selects them up to `max_order` by `criterion`:
    "bic", "aic", or "validation" (one-step errors on the held-out part); `delay` then fixes nk (samples).
    `holdout`: the last part of the record on which `Model.fit` is measured, by a model of the rest; the model that
    is returned uses the whole record. 0 leaves that out, and so does an input that is constant over one of the parts.
    `initial`: "estimate" the conditions before the first sample, or "zero" for a start at rest.
    `starts`: how many starting points are followed (ARX, instrumental variables, Steiglitz–McBride, perturbed ones).
    `stable`: what to do with an unstable plant: "keep" it with a warning, "refuse" it, or "reflect" its poles.

    Data from a closed loop are fitted as they are (the direct method): with a noise model that is rich enough,
    "box-jenkins" (of a stable plant) and "armax" (of an unstable one too) are consistent there where the loop has a
    delay, and the bands hold; "oe", "arx" and spectral estimates are biased by feedback.
    """
    family = NAMES.get(model, model)
    if family not in FAMILIES:
        raise LinkwrightError(f"a model is one of {', '.join(FAMILIES)}, not {model!r}")
    if stable not in ("keep", "refuse", "reflect"):
        raise LinkwrightError(f"stable is 'keep', 'refuse' or 'reflect', not {stable!r}")
    if not isinstance(record, Record):
        raise LinkwrightError(f"identify takes a Record, lw.control.Record(u, y, dt), not a {type(record).__name__}")
    if not 0.0 <= holdout < 0.9:
        raise LinkwrightError(f"holdout is a fraction of the record from 0 to 0.9, not {holdout!r}")
    whole_number("starts", starts, 1)
    if np.ptp(record.y) == 0.0:
        raise DataError(
            f"the output is constant ({record.y[0]:g}) over all {len(record)} samples: there is no response to model. "
            "Check the column, the sensor, and that the input reached the plant"
        )
    notes = _notes(record)
    shared = family in SHARED
    options: dict[str, Any] = {"shared": shared, "initial": initial, "most_starts": starts, "seed": seed}
    seen, unseen = _held_out(record, holdout, notes)
    if unseen is None and holdout and orders is None and criterion == "validation":
        raise DataError(f"criterion='validation' cannot be used here. {notes[-1]}")
    selection: tuple[Any, ...] = ()
    if orders is None:
        wanted, selection = select(seen, unseen, family, delay, criterion, max_order, initial)
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
        options["most_starts"] = min(2, starts)
    fitted = fit(record.u, record.y, wanted, first=before, **options)
    if not fitted.converged:
        notes.append(
            "The fit did not converge: the orders may be too large for the data (poles and zeros that cancel), or the "
            "record too short; try smaller orders, or more starts."
        )
    out = replace(
        _model(fitted, family, record, initial),
        fit=scores[0],
        prediction_fit=scores[1],
        selection=selection,
        notes=tuple(notes),
    )
    if _explains_nothing(out):
        text = (
            f"The model explains nothing of the output (fit {100 * out.fit:.1f} % held out, B is in its noise): "
            "see that the columns belong together and that the input reached the plant, or excite more strongly."
        )
        warnings.warn(text, LinkwrightWarning, stacklevel=2)
        out = out.with_notes(text)
    return _judge(out, stable)


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
    out = []
    for name, signal in (("u", record.u), ("y", record.y)):
        mean, spread = abs(float(signal.mean())), float(signal.std())
        if mean > 3 * spread:
            out.append(
                f"The mean of {name} is {mean / max(spread, 1e-300):.3g} times its standard deviation, which a linear "
                "model takes for a response: consider record.detrend()."
            )
    return out


def _judge(model: Model, wanted: str) -> Model:
    """Warn of an unstable plant, refuse it, or reflect its poles."""
    outside = [p for p in model.poles() if not p.stable and p.z.imag >= 0]
    edge = [p for p in model.poles() if 1.0 - 1e-7 < abs(p.z) < 1.0]
    if edge and not outside and not model.shared:
        text = (
            f"The fit ended on the edge of stability (pole at {edge[0].frequency:.4g} Hz): the plant may be unstable "
            "or integrate, which this predictor cannot follow. Try model='armax', or differentiate the output."
        )
        warnings.warn(text, LinkwrightWarning, stacklevel=3)
        return model.with_notes(text)
    if not outside:
        return model
    places = ", ".join(f"{p.frequency:.4g} Hz (|z| = {abs(p.z):.5g})" for p in outside)
    text = (
        f"The identified plant is unstable: poles at {places}. If the real one is stable, try fewer or other orders, a "
        "longer or less noisy record, record.detrend(), or model='box-jenkins', which stays stable"
    )
    if wanted == "refuse":
        raise UnstableModelError(f"{text}; stable='reflect' mirrors the poles", model=model)
    if wanted == "reflect":
        return model.with_notes(text + ".").reflect()
    warnings.warn(text + ".", LinkwrightWarning, stacklevel=3)
    return model.with_notes(text + ".")
