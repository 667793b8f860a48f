"""Two degrees of freedom: a feedforward that inverts the plant for a reference model, and feedback for the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.signal import zpk2sos  # type: ignore[import-untyped]  # SciPy has no types

from linkwright.control.hinfinity.robustness import Margins, loop_margins
from linkwright.control.linear_systems import (
    Complexes,
    System,
    delay,
    from_polynomials,
    gains,
    in_hertz,
    invariant_zeros,
    parallel,
    row,
    sampled,
    series,
    system,
)
from linkwright.control.loop.compensators import Compensator
from linkwright.errors import DesignError, ModelError, ShapeError


@dataclass(frozen=True)
class TwoDof:
    """u = Q r + K F (R r − y), sampled: `system` has the inputs (r, y) and the output u.

    `reference` is R: the reference model G_D times what the inverse leaves of the plant (its delay and the zeros that
    cannot be cancelled); with the plant as modelled y = R r. `feedforward` is Q = G⁻¹ R, `feedback_from` the first
    state of the feedback controller, `margins` those of its loop. `notes` say what was left out. `two_dof` makes it;
    `compensator()` gives what runs in a loop.

    >>> import linkwright as lw
    >>> both = lw.control.two_dof(([1.0], [1.0, 1.0]), 0.5, ([9.0], [1.0, 6.0, 9.0]), dt=0.1)
    >>> both.compensator().step(0.0, 0.0)
    0.0

    See `two_dof` for the errors.
    """

    system: System
    reference: System
    feedforward: System
    feedback_from: int
    margins: Margins
    notes: tuple[str, ...]

    @property
    def K_hat(self) -> Any:
        """The whole compensator as python-control's `StateSpace`, inputs (r, y), output u."""
        return self.system.to_control()

    def compensator(self) -> Compensator:
        """A fresh compensator with `.step(r, y)`."""
        S = self.system
        return Compensator(S.A, S.B, S.C, S.D, references=1, feedback=self.feedback_from)

    def __str__(self) -> str:
        text = f"two degrees of freedom, {self.system.order} states at {self.system.dt:g} s; {self.margins}"
        return "\n".join([text, *(f"  note: {note}" for note in self.notes)])


def two_dof(
    G: Any,
    K: Any,
    G_D: Any,
    F: Any = None,
    *,
    dt: float,
    prewarp: float | None = None,
    ringing: float = 0.8,
    leak: float = 0.1,
) -> TwoDof:
    """The compensator u = Q r + K F (R r − y) for one input and one output, as a `TwoDof`.

    - `G`: the plant's model. `K`, `F`: feedback controller and filter; F is 1 unless given. `G_D`: the wanted response
      from r to y. Continuous ones are sampled first: G and G_D with a hold, K and F by Tustin's rule.
    - `dt`: the period (s). `prewarp`: a frequency (rad/s) at which Tustin's rule is exact; None.
    - `ringing`: zeros on the left half of the plane between the radii `ringing` (0.8) and 1/`ringing`, on the circle
      too, are not inverted: the inverse would ring from sample to sample.
    - `leak` (Hz): zeros on the unit circle are inverted that much inside it; 0.1.

    Q = G⁻¹ R is stable and proper, because R = G_D · A takes over what must not be inverted: those zeros; zeros outside
    the unit circle with their mirror images as poles (A is all-pass there); delay beyond that of G_D. `notes` name
    each.

    >>> import linkwright as lw
    >>> both = lw.control.two_dof(([1.0], [1.0, 1.0]), 0.5, ([9.0], [1.0, 6.0, 9.0]), dt=0.1)
    >>> both.margins.stable
    True

    Raises `DesignError` where the loop of G, K and F is not stable or G has no inverse, `ShapeError` for more than one
    input or output, `ModelError` for arguments that cannot be used.
    """
    plant = sampled(system(G, "G"), dt, "zoh")
    model = sampled(system(G_D, "G_D"), dt, "zoh")
    controller = sampled(system(K, "K"), dt, "tustin", prewarp)
    low_pass = gains(1.0, dt) if F is None else sampled(system(F, "F"), dt, "tustin", prewarp)
    for name, part in (("G", plant), ("K", controller), ("G_D", model), ("F", low_pass)):
        if (part.inputs, part.outputs) != (1, 1):
            text = f"{name} has {part.inputs} inputs and {part.outputs} outputs; a compensator is made for one axis"
            raise ShapeError(f"{text} at a time", given=(part.outputs, part.inputs), wanted=(1, 1))
    if not (0 < ringing <= 1 and leak > 0):
        raise ModelError(f"ringing is a radius up to 1 and leak a positive frequency in Hz, not {ringing!r}, {leak!r}")
    for name, part in (("G_D", model), ("F", low_pass)):
        if not part.stable():
            raise DesignError(f"{name} is not stable: nothing can follow it")
    margin = loop_margins(plant, controller, low_pass, None)
    if not margin.stable:
        text = f"at {dt:g} s the feedback loop of G, K and F is not stable"
        raise DesignError(f"{text}: design K for the sampled plant with its delay, or sample faster")
    R, Q, notes = _inverse(plant, model, ringing, leak)
    whole, first = _assembled(Q, R, low_pass, controller)
    return TwoDof(whole, R, Q, first, margin, tuple(notes))


def _assembled(Q: System, R: System, F: System, K: System) -> tuple[System, int]:
    """States in the order Q, R, F, K: the last are those of the feedback controller."""
    # e = R r − y goes through F, then K.
    error = row([R, gains(-1.0, R.dt)])
    feedforward = row([Q, gains(0.0, Q.dt)])
    return parallel([feedforward, series(K, series(F, error))]), Q.order + R.order + F.order


def _inverse(G: System, G_D: System, ringing: float, leak: float) -> tuple[System, System, list[str]]:
    """R and Q = G⁻¹ R, and what was left out of the inverse."""
    assert G.dt is not None
    dt = G.dt
    zeros, poles, gain, late = zpk(G)
    zeros_d, poles_d, gain_d, late_d = zpk(G_D)
    if gain == 0.0:
        raise DesignError("G is zero: it has no inverse")
    inner = float(np.exp(-2 * np.pi * leak * dt))
    placed, factor, notes = zeros.copy(), 1.0 + 0.0j, []
    for i, z in enumerate(zeros):
        remark = ""
        if z.real < 0 and ringing < abs(z) < 1 / ringing:
            # Neither the zero nor its mirror image may become a pole there: both alternate from sample to sample.
            placed[i], remark = 0.0, "whose inverse would ring: R has it"
        elif abs(z) > 2 - inner:
            placed[i], remark = 1 / np.conj(z), "outside the unit circle: R has it, all-pass"
        elif abs(z) > inner:
            placed[i], remark = inner * np.exp(1j * np.angle(z)), f"on the unit circle: inverted {leak:g} Hz inside it"
        if remark:
            # Unit gain at frequency zero, but for a zero that is there itself.
            factor *= (1 - placed[i]) / (1 - z) if abs(1 - z) > 1 - inner + 1e-12 else 1.0
            if z.imag >= 0:
                notes.append(f"zero at {_place(z, dt)} {remark}")
    extra = max(0, late - late_d)
    if extra:
        periods = "period" if extra == 1 else "periods"
        notes.append(f"R is later than G_D by {extra} {periods} of {dt:g} s: the plant's own delay")
    changed = placed != zeros
    pure = np.zeros(extra)
    scale = float(np.real(factor))
    R = from_zpk(
        np.concatenate([zeros_d, zeros[changed]]),
        np.concatenate([poles_d, placed[changed], pure]),
        gain_d * scale,
        dt,
    )
    # Q = R / G; the changed zeros and the delay cancel exactly, on paper.
    Q = from_zpk(np.concatenate([zeros_d, poles]), np.concatenate([poles_d, placed, pure]), gain_d * scale / gain, dt)
    return R, Q, notes


def _place(z: complex, dt: float) -> str:
    text = f"z = {z.real:.4g}" if z.imag == 0 else f"z = {z.real:.4g} ± {abs(z.imag):.4g}j"
    return f"{text} ({in_hertz(complex(z), dt):.3g} Hz)"


def zpk(S: System) -> tuple[Complexes, Complexes, float, int]:
    """Zeros, poles, gain and the excess of poles over zeros of a sampled system with one input and one output."""
    poles = S.poles()
    # The excess is the index of the first value of the pulse response that is not zero.
    pulse, x = [float(S.D[0, 0])], S.B
    for _ in range(S.order + 1):
        pulse.append(float((S.C @ x)[0, 0]))
        x = S.A @ x
    size = np.abs(pulse)
    if not size.max() > 0:
        return np.zeros(0, complex), poles, 0.0, 0
    late = int(np.argmax(size > 1e-10 * size.max()))
    n = S.order
    zeros = np.zeros(0, complex)
    if n - late > 0:
        values = invariant_zeros(S.A, S.B, S.C, S.D)
        zeros = values[np.argsort(np.abs(values))[: n - late]]
    zeros, poles = _cancelled(_paired(zeros), _paired(poles))
    return zeros, poles, pulse[late], late


def _paired(values: Complexes) -> Complexes:
    """Exactly conjugate pairs and exactly real numbers, as rounding leaves neither."""
    real = values[np.abs(values.imag) <= 1e-9 * np.maximum(np.abs(values), 1e-9)].real
    upper = values[values.imag > 1e-9 * np.maximum(np.abs(values), 1e-9)]
    return np.concatenate([real.astype(complex), upper, np.conj(upper)])


def _cancelled(zeros: Complexes, poles: Complexes) -> tuple[Complexes, Complexes]:
    """Without the pairs of a pole and a zero at one place."""
    poles_left, zeros_left = list(poles), []
    for z in zeros:
        near = [i for i, p in enumerate(poles_left) if abs(p - z) <= 1e-9 * max(1.0, abs(z))]
        if near:
            poles_left.pop(near[0])
        else:
            zeros_left.append(z)
    return np.array(zeros_left, complex), np.array(poles_left, complex)


def from_zpk(zeros: Complexes, poles: Complexes, gain: float, dt: float) -> System:
    """A cascade of sections of second order: products of polynomials would lose digits of poles near z = 1."""
    zeros, poles = _cancelled(zeros, poles)
    if zeros.size > poles.size:
        raise DesignError("the inverse is improper: give G_D more delay or roll-off")
    whole = gains(1.0, dt)
    if not poles.size:
        return gains(gain, dt)
    # zpk2sos would fill up with zeros at z = 0, which the poles' excess does not have: delays are appended apart.
    late = poles.size - zeros.size
    for section in zpk2sos(np.concatenate([zeros, np.zeros(late)]), poles, 1.0):
        num, den = section[:3], section[3:]
        while den.size > 1 and den[-1] == 0 and num[-1] == 0:
            num, den = num[:-1], den[:-1]
        whole = series(from_polynomials(num, den, dt), whole)
    whole = series(delay(late * dt, dt), whole)
    return System(whole.A, whole.B, gain * whole.C, gain * whole.D, dt)
