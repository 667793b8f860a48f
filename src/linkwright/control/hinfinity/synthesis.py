"""H∞ design for a generalised plant: γ by bisection, where only a measured closed-loop norm counts as a γ."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.control.hinfinity.central import Plant, central, normalised
from linkwright.control.hinfinity.generalised import (
    checked,
    jomega_zeros,
    regularised,
    singular_parts,
)
from linkwright.control.hinfinity.norms import Norm, hinf_norm
from linkwright.control.hinfinity.systems import HasSystem, System, lft, system, to_continuous, to_sampled
from linkwright.errors import DesignError, LinkwrightWarning, ModelError

Complexes = NDArray[np.complex128]
_ABOVE = "the measured norm is above γ"
_SURE = 1e-6  # by so much, relatively, may a measured norm exceed the γ it was designed for
_EPSILONS = (1e-3, 1e-5)  # relative sizes of what makes a singular problem regular; the best verified one is kept
_GENTLE = (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)  # those tried for the backed-off controller, the largest first


@dataclass(frozen=True)
class Trial:
    """One γ of the bisection: whether it was accepted, the norm that was measured, and why it was not."""

    gamma: float
    accepted: bool
    norm: float
    reason: str = ""


@dataclass(frozen=True)
class Design(HasSystem):
    """A controller u = K y for the last inputs and outputs of a generalised plant, and what was measured of it.

    `gamma_opt` is the smallest γ that some stabilising controller was measured to reach. `K` is designed at
    `gamma` = (1 + back_off) γ_opt, where it is well conditioned; `norm` bounds its closed loop's H∞ norm from both
    sides, on the plant as given. `system` is K as matrices, `plant` the generalised plant.
    """

    system: System
    gamma_opt: float
    gamma: float
    norm: Norm
    plant: System
    history: tuple[Trial, ...] = field(repr=False)
    warnings: tuple[str, ...] = ()
    epsilon: float = 0.0
    optimal: System | None = field(default=None, repr=False)

    @property
    def closed_loop(self) -> System:
        """From w to z."""
        return lft(self.plant, self.system)

    @property
    def poles(self) -> Complexes:
        """The closed loop's poles, in s (1/s) or in z."""
        return self.closed_loop.poles()

    @property
    def stable(self) -> bool:
        """Whether the closed loop is stable: always, for a design that was returned."""
        return self.closed_loop.stable()

    def __str__(self) -> str:
        where = self.norm.frequency / (2 * np.pi)
        text = f"H∞ controller of order {self.system.order}: γ_opt {self.gamma_opt:.6g}, verified norm "
        text += f"{self.norm.upper:.6g} (peak at {where:.4g} Hz) of the controller backed off to {self.gamma:.6g}"
        return "\n".join([text, *(f"  note: {w}" for w in self.warnings)])


def hinf(
    P: Any,
    nmeas: int,
    ncon: int,
    *,
    tolerance: float = 1e-4,
    back_off: float = 0.05,
    gamma_max: float = 1e6,
    epsilon: float | None = None,
) -> Design:
    """The H∞ controller u = K y of a generalised plant [z; y] = P [w; u], continuous or sampled.

    nmeas and ncon count the measured outputs y and the controls u: P's last outputs and inputs. γ is bisected to a
    relative tolerance; a γ is accepted only if the closed loop with the plant as given is stable and its measured norm
    is not above γ. K is designed at (1 + back_off) γ_opt. A singular problem (D12 or D21 without full rank, zeros on
    the imaginary axis or the unit circle) is made regular by ε times a fictitious noise and control cost, relative to
    the plant's own sizes; the norm is still that of the plant as given. epsilon chooses ε; 0 forbids it.

    Raises DesignError where P cannot be stabilised from u or detected from y (it names the modes in Hz), or where no K
    brings the norm under gamma_max.
    """
    for name, value, good, what in (
        ("tolerance", tolerance, 0 < tolerance < 1, "a number between 0 and 1"),
        ("back_off", back_off, 0 <= back_off < np.inf, "a number that is not negative"),
        ("gamma_max", gamma_max, 0 < gamma_max < np.inf, "a positive number"),
        ("epsilon", epsilon, epsilon is None or 0 <= epsilon < np.inf, "None or a number that is not negative"),
    ):
        if not good:
            raise ModelError(f"{name} is {what}, not {value!r}")
    original = system(P, "the generalised plant")
    checked(original, nmeas, ncon)
    # The bilinear map makes a sampled problem continuous and keeps its norm.
    flat = to_continuous(original)
    notes = [*singular_parts(flat, nmeas, ncon), *jomega_zeros(flat, nmeas, ncon, original.dt)]
    if notes and epsilon == 0.0:
        raise DesignError(f"the problem is singular: {'; '.join(notes)}; let epsilon make it regular (leave it out)")
    tried = [0.0] if not notes else [float(epsilon)] if epsilon else list(_EPSILONS)
    history: list[Trial] = []
    best: tuple[float, System, Plant, float] | None = None
    for size in tried:
        shaped, ny, nu = regularised(flat, nmeas, ncon, size)
        search = _Search(original, normalised(shaped, ny, nu), history)
        verified = search.bisect(tolerance, gamma_max, best[0] if best else None)
        if verified is not None and (best is None or verified[0] < best[0]):
            best = (*verified, search.plant, size)
    if best is None:
        raise DesignError(_nothing(history, gamma_max), history=tuple(history))
    gamma_opt, optimal, plant, size = best
    # The largest ε that serves gives the controller with the least bandwidth.
    for trial in [e for e in _GENTLE if e > size] if notes and not epsilon else []:
        gentle = _Search(original, normalised(*regularised(flat, nmeas, ncon, trial)), history)
        under = gentle.under((1 + back_off) * gamma_opt)
        if under is not None:
            size, (K, norm) = trial, under
            gamma = (1 + back_off) * gamma_opt
            break
    else:
        gamma, K, norm = _backed_off(_Search(original, plant, history), gamma_opt, optimal, back_off)
    if notes:
        text = f"made regular by ε = {size:g} of the plant's own sizes; the norm is verified without it"
        notes = [f"{'; '.join(notes)}: {text}"]
    if gamma > 1.5 * (1 + back_off) * gamma_opt:
        note = f"no well-conditioned controller near γ_opt = {gamma_opt:.4g}: backed off to {gamma:.4g}"
        warnings.warn(note, LinkwrightWarning, stacklevel=2)
        notes.append(note)
    return Design(K, gamma_opt, gamma, norm, original, tuple(history), tuple(notes), size, optimal)


def _backed_off(search: _Search, gamma_opt: float, optimal: System, back_off: float) -> tuple[float, System, Norm]:
    """The controller at (1 + back_off) γ_opt, or a little above where rounding spoils it there."""
    for factor in (1.0, 1.02, 1.1, 1.5, 3.0):
        gamma = (1 + back_off) * gamma_opt * factor
        K, norm, accepted = search.attempt(gamma)
        if accepted and K is not None and norm is not None:
            return gamma, K, norm
    return gamma_opt, optimal, hinf_norm(lft(search.original, optimal))


class _Search:
    """The bisection over γ for one regular plant, verified on the plant as given."""

    def __init__(self, original: System, plant: Plant, history: list[Trial]) -> None:
        self.original, self.plant, self.history = original, plant, history
        self.best: tuple[float, System] | None = None

    def attempt(self, gamma: float) -> tuple[System | None, Norm | None, bool]:
        """A stabilising controller designed for γ, its measured norm, and whether that is under γ."""
        K = central(self.plant, gamma)
        if K is None:
            return self._refused(gamma, "the Riccati equations have no stabilising solution")
        try:
            if self.original.dt is not None:
                K = to_sampled(K, self.original.dt)
            loop = lft(self.original, K)
        except (np.linalg.LinAlgError, ValueError):
            return self._refused(gamma, "the controller is not well posed")
        norm = hinf_norm(loop)
        if not np.isfinite(norm.upper):
            return self._refused(gamma, "the closed loop is not stable")
        accepted = norm.upper <= gamma * (1 + _SURE)
        self.history.append(Trial(float(gamma), accepted, norm.upper, "" if accepted else _ABOVE))
        return K, norm, accepted

    def _refused(self, gamma: float, reason: str) -> tuple[None, None, bool]:
        self.history.append(Trial(float(gamma), False, np.inf, reason))
        return None, None, False

    def bisect(self, tolerance: float, gamma_max: float, known: float | None) -> tuple[float, System] | None:
        """The smallest norm that was measured, and its controller."""
        floor = self.plant.floor
        high = known * (1 + _SURE) if known is not None else min(max(2.0 * floor, 1.0), gamma_max)
        while not self._try(high):
            if high >= gamma_max:
                return self.best
            # `low` stays: far above the optimum rounding, not theory, may be what refused.
            high = min(high * 4.0, gamma_max)
        assert self.best is not None
        low, high = floor, self.best[0]
        for _ in range(200):
            if high - low <= tolerance * high or high < 1e-12:
                break
            middle = float(np.sqrt(low * high)) if low > 1e-3 * high else max((low + high) / 2, high / 4)
            if self._try(middle):
                high = min(middle, self.best[0])
            else:
                low = middle
        # Rounding makes refusals irregular: look about the best one too.
        first = self.best[0]
        spoiled = any(t.reason == _ABOVE for t in self.history)
        for factor in np.linspace(0.85, 1.04, 20) if spoiled else (0.99, 0.95):
            if factor * first > floor:
                self._try(factor * first)
        return self.best

    def under(self, gamma: float) -> tuple[System, Norm] | None:
        """A controller whose measured norm is under γ, whatever γ the regular plant was asked for."""
        for factor in (1.0, 1.03, 1.1, 1.3, 2.0):
            K, norm, _ = self.attempt(factor * gamma)
            if K is not None and norm is not None and norm.upper <= gamma:
                return K, norm
        return None

    def _try(self, gamma: float) -> bool:
        """Whether γ is accepted; a controller whose measured norm is the smallest so far is kept in any case."""
        K, norm, accepted = self.attempt(gamma)
        if K is not None and norm is not None and (self.best is None or norm.upper < self.best[0]):
            self.best = (norm.upper, K)
        return accepted


def _nothing(history: list[Trial], gamma_max: float) -> str:
    reasons = sorted({t.reason for t in history})
    text = f"no stabilising controller was found with a norm under {gamma_max:g}: {'; '.join(reasons)}"
    return f"{text}. Weaken the weights, check the plant for unstable poles near its zeros, or raise gamma_max"
