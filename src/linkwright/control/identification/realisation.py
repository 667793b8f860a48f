"""State-space forms of identified models: sampled, continuous, and with mirrored poles."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import logm  # type: ignore[import-untyped]  # SciPy has no types

from linkwright.base.arrays import Floats
from linkwright.control.hinfinity.systems import System, delay, from_polynomials, row, series, to_continuous
from linkwright.control.identification.prediction import reflected, stable
from linkwright.errors import LinkwrightError

if TYPE_CHECKING:
    from linkwright.control.identification.models import Model


def realised(numerator: Floats, denominator: Floats, dt: float) -> System:
    """A transfer function in q^-1: the same coefficients in falling powers of z, once both are of one length."""
    n = max(len(numerator), len(denominator))
    num, den = (np.concatenate([p, np.zeros(n - len(p))]) for p in (numerator, denominator))
    return from_polynomials(num, den, dt)


def sampled(model: Model, *, noise: bool = False) -> System:
    """The plant with its delay; with `noise`, [G, H] from (u, e)."""
    plant = realised(np.concatenate([np.zeros(model.delay), model.B]), model.F, model.dt)
    if not noise:
        return plant
    return row([plant, realised(model.C, model.D, model.dt)])


def continuous(model: Model, method: str, pade: int | None) -> System:
    """The continuous plant; see `Model.continuous`."""
    held = min(model.delay, 1)
    extra = held + len(model.B) - 1 - (len(model.F) - 1)
    late = realised(np.concatenate([np.zeros(held), model.B]), model.F, model.dt)
    if method == "tustin":
        flat, half = to_continuous(late), 2.0 / model.dt  # s there is s dt/2
        plant = System(half * flat.A, np.sqrt(half) * flat.B, np.sqrt(half) * flat.C, flat.D)
    elif method != "zoh":
        raise LinkwrightError(f"a sampled model becomes continuous by 'zoh' or 'tustin', not {method!r}")
    elif extra > 0:
        raise LinkwrightError(
            f"B is too long for a continuous system: {extra} of the model's poles lie at z = 0, which no held "
            f"continuous plant has. Identify with nb ≤ {len(model.F) - held} and a larger delay, or take 'tustin'"
        )
    else:
        negative = [p for p in np.roots(model.F) if abs(p.imag) < 1e-12 and p.real <= 0]
        if negative:
            raise LinkwrightError(
                f"a pole at z = {negative[0].real:.3g} has no real continuous counterpart. Identify with nf one "
                "smaller or larger, sample faster, or take method='tustin'"
            )
        n = late.order
        whole = np.block([[late.A, late.B], [np.zeros((1, n)), np.ones((1, 1))]])
        rate = np.real(logm(whole)) / model.dt
        plant = System(rate[:n, :n], rate[:n, n:], late.C, late.D)
    if pade is None or model.dead_time == 0.0:
        return plant
    return series(plant, delay(model.dead_time, order=int(pade)))


def reflect(model: Model) -> Model:
    """Unstable poles of G and H mirrored into the unit circle, |G| and the noise's spectrum kept.

    The covariance no longer holds and is dropped.
    """
    notes = (
        []
        if model.stable
        else ["Unstable poles were mirrored into the unit circle: |G| is as identified, its phase is not."]
    )
    if not stable(model.D):
        notes.append("Unstable poles of the noise model were mirrored: its spectrum is as identified.")
    if not notes:
        return model
    return replace(
        model,
        B=model.B / _outside(model.F),
        F=reflected(model.F),
        D=reflected(model.D),
        variance=model.variance / _outside(model.D) ** 2,
        covariance=None,
        notes=(*model.notes, *notes),
    )


def _outside(polynomial: Floats) -> float:
    """By how much mirroring makes the polynomial smaller on the circle: the product of the moduli beyond one."""
    size = np.abs(np.roots(polynomial))
    return float(np.prod(size[size > 1.0]))
