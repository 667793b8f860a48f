"""State-space forms of identified models: sampled, continuous, and with mirrored poles."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, logm  # type: ignore[import-untyped]  # SciPy has no types

from linkwright.control.prediction import reflected, stable
from linkwright.errors import LinkwrightError

if TYPE_CHECKING:
    from linkwright.control.models import Model

Array = NDArray[np.float64]
Matrices = tuple[Array, Array, Array, Array]


def companion(numerator: Array, denominator: Array) -> Matrices:
    """The observer form of a transfer function in q^-1 (the denominator's first coefficient is one)."""
    n = max(len(numerator), len(denominator)) - 1
    num = np.concatenate([numerator, np.zeros(n + 1 - len(numerator))])
    den = np.concatenate([denominator, np.zeros(n + 1 - len(denominator))])
    a = np.zeros((n, n))
    a[:, :1] = -den[1:, None]
    a[: n - 1, 1:] = np.eye(max(n - 1, 0))
    return a, (num[1:] - den[1:] * num[0])[:, None], np.eye(1, n), num[:1, None]


def sampled(model: Model, *, noise: bool = False) -> Matrices:
    """A, B, C, D of the plant with its delay; with `noise`, of [G, H] from (u, e)."""
    plant = companion(np.concatenate([np.zeros(model.delay), model.B]), model.F)
    if not noise:
        return plant
    shaping = companion(model.C, model.D)
    return (
        block_diag(plant[0], shaping[0]),
        block_diag(plant[1], shaping[1]),
        np.hstack([plant[2], shaping[2]]),
        np.hstack([plant[3], shaping[3]]),
    )


def state_space(a: Array, b: Array, c: Array, d: Array, dt: float) -> Any:
    """python-control's `StateSpace`; dt = 0 is continuous."""
    try:
        from control import StateSpace
    except ImportError as error:
        raise LinkwrightError('state-space systems need python-control: pip install "linkwright[control]"') from error
    return StateSpace(a, b, c, d, dt, remove_useless_states=False)


def continuous(model: Model, method: str, pade: int | None) -> Any:
    """The continuous plant; see `Model.continuous`."""
    held = min(model.delay, 1)
    extra = held + len(model.B) - 1 - (len(model.F) - 1)
    a, b, c, d = companion(np.concatenate([np.zeros(held), model.B]), model.F)
    n = len(a)
    if method == "tustin":
        if n and np.linalg.cond(a + np.eye(n)) > 1e14:
            raise LinkwrightError(
                "a pole at z = −1 has no continuous counterpart by 'tustin'. Identify with nf one smaller or larger, "
                "or sample at another period"
            )
        inverse = np.linalg.inv(a + np.eye(n))
        half = 2.0 / model.dt
        matrices = (
            half * inverse @ (a - np.eye(n)),
            2.0 / np.sqrt(model.dt) * inverse @ b,
            2.0 / np.sqrt(model.dt) * c @ inverse,
            d - c @ inverse @ b,
        )
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
        whole = np.block([[a, b], [np.zeros((1, n)), np.ones((1, 1))]])
        rate = np.real(logm(whole)) / model.dt
        matrices = (rate[:n, :n], rate[:n, n:], c, d)
    plant = state_space(*matrices, 0)
    if pade is None or model.dead_time == 0.0:
        return plant
    import control

    late = control.ss(control.tf(*control.pade(model.dead_time, int(pade))))
    return plant * late


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


def _outside(polynomial: Array) -> float:
    """By how much mirroring makes the polynomial smaller on the circle: the product of the moduli beyond one."""
    size = np.abs(np.roots(polynomial))
    return float(np.prod(size[size > 1.0]))
