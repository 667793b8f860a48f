"""H-infinity design for a generalised plant: the central controller at one gamma, and gamma by bisection."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import schur, solve_continuous_are, solve_continuous_lyapunov  # type: ignore[import-untyped]  # no types

from linkwright.base.arguments import outside, takes_settings
from linkwright.base.arrays import Floats
from linkwright.control.hinfinity.regularity import checked, jomega_zeros, regularised, singular_parts
from linkwright.control.hinfinity.robustness import Norm, hinf_norm
from linkwright.control.linear_systems import (
    Complexes,
    HasSystem,
    System,
    balanced,
    lft,
    system,
    to_continuous,
    to_sampled,
)
from linkwright.errors import DesignError, LinkwrightWarning, ModelError


@dataclass(frozen=True)
class NormalForm:
    """A continuous generalised plant with D12 = [0; I], D21 = [0 I], D22 = 0, and the way back to its own signals."""

    A: Floats
    B1: Floats
    B2: Floats
    C1: Floats
    C2: Floats
    D11: Floats
    # u = from_control ũ, ỹ = to_measured y; D22 and the clock belong to the plant that was given.
    from_control: Floats
    to_measured: Floats
    D22: Floats
    rate: float

    @property
    def floor(self) -> float:
        """No γ at or below it is possible, whatever the dynamics (Parrott's bound on D11)."""
        m2, p2 = self.B2.shape[1], self.C2.shape[0]
        k, j = self.D11.shape[0] - m2, self.D11.shape[1] - p2
        rows, columns = self.D11[:k], self.D11[:, :j]
        return max((float(np.linalg.norm(M, 2)) if M.size else 0.0) for M in (rows, columns))


def normalised(P: System, nmeas: int, ncon: int) -> NormalForm:
    """The plant in normal form: unitary in w and z, so that the norm stays; scaled in u and y; time in its own unit."""
    rates = np.abs(P.poles())
    rates = rates[rates > 1e-12 * max(rates.max(initial=0.0), 1e-300)]
    rate = float(np.exp(np.mean(np.log(rates)))) if rates.size else 1.0
    P = balanced(System(P.A / rate, P.B / np.sqrt(rate), P.C / np.sqrt(rate), P.D))
    m1, p1 = P.inputs - ncon, P.outputs - nmeas
    B1, B2, C1, C2 = P.B[:, :m1], P.B[:, m1:], P.C[:p1], P.C[p1:]
    D11, D12, D21, D22 = P.D[:p1, :m1], P.D[:p1, m1:], P.D[p1:, :m1], P.D[p1:, m1:]
    U, s, Vt = np.linalg.svd(D12)
    turn = np.roll(U, -ncon, axis=1)  # the outputs that u reaches come last
    scale_u = Vt.T / s
    X, t, Yt = np.linalg.svd(D21)
    spin = np.roll(Yt.T, -nmeas, axis=1)
    scale_y = X.T / t[:, None]
    return NormalForm(
        P.A, B1 @ spin, B2 @ scale_u, turn.T @ C1, scale_y @ C2, turn.T @ D11 @ spin, scale_u, scale_y, D22, rate
    )


def central(plant: NormalForm, gamma: float) -> System | None:
    """The central controller u = K y at γ, or None where the Riccati equations have no stabilising solution.

    That X, Y ≥ 0 and ρ(XY) < γ² is left to the caller to see: these decide whether K stabilises, and where X or Y is
    nearly zero rounding spoils the test, but not the controller.
    Glover and Doyle (1988), in the form of Zhou, Doyle and Glover, "Robust and Optimal Control", theorem 17.1.
    """
    if gamma <= plant.floor:
        return None
    A, B1, B2, C1, C2, D11 = (_wide(M) for M in (plant.A, plant.B1, plant.B2, plant.C1, plant.C2, plant.D11))
    n, m1, m2, p1, p2 = A.shape[0], B1.shape[1], B2.shape[1], C1.shape[0], C2.shape[0]
    B, C = np.hstack([B1, B2]), np.vstack([C1, C2])
    D1 = np.hstack([D11, np.eye(p1, m2, k=m2 - p1)])
    D2 = np.vstack([D11, np.eye(p2, m1, k=m1 - p2)])
    R = D1.T @ D1
    R[:m1, :m1] -= _wide(gamma) ** 2 * np.eye(m1)
    Rt = D2 @ D2.T
    Rt[:p1, :p1] -= _wide(gamma) ** 2 * np.eye(p1)
    j, k = m1 - p2, p1 - m2
    D1111, D1112, D1121, D1122 = D11[:k, :j], D11[:k, j:], D11[k:, :j], D11[k:, j:]
    try:
        X = _riccati(A, B, C1, D1, R)
        Y = None if X is None else _riccati(A.T, C.T, B1.T, D2.T, Rt)
        if X is None or Y is None:
            return None
        F = -_inverse(R) @ (D1.T @ C1 + B.T @ X)
        L = -(B1 @ D2.T + Y @ C.T) @ _inverse(Rt)
        E = _inverse(_wide(gamma) ** 2 * np.eye(k) - D1111 @ D1111.T)
        Z = _inverse(np.eye(n) - Y @ X / _wide(gamma) ** 2)
    except (np.linalg.LinAlgError, ValueError):
        return None
    F12, F2, L12, L2 = F[j:m1], F[m1:], L[:, k:p1], L[:, p1:]
    K11 = -D1121 @ D1111.T @ E @ D1112 - D1122
    # Â = A + B F + B̂1 D̂21⁻¹ Ĉ2 with Ĉ2 = −D̂21 (C2 + F12): D̂12 and D̂21 cancel in the central controller.
    S = C2 + F12
    C_hat = F2 - K11 @ S
    B_hat = Z @ (-L2 + (B2 + L12) @ K11)
    A_hat = A + B @ F - B_hat @ S
    root = np.sqrt(plant.rate)
    parts = (
        A_hat * plant.rate,
        root * B_hat @ plant.to_measured,
        root * plant.from_control @ C_hat,
        plant.from_control @ K11 @ plant.to_measured,
    )
    if not all(np.isfinite(M).all() for M in parts):
        return None
    AK, BK, CK, DK = (np.asarray(M, dtype=float) for M in parts)
    return _without_feedthrough(balanced(System(AK, BK, CK, DK)), plant.D22)


def _wide(M: Any) -> Any:
    """In the widest floating point there is: the controller's slow poles are small differences of large numbers."""
    return np.asarray(M, dtype=np.longdouble)


def _inverse(M: Any) -> Any:
    """The inverse in wide numbers, by Newton's iteration from the double one."""
    if not M.size:
        return M
    X = _wide(np.linalg.inv(M.astype(float)))
    for _ in range(3):
        X = X @ (2 * np.eye(len(M)) - M @ X)
    return X


def _without_feedthrough(K: System, D22: Floats) -> System | None:
    """K (I + D22 K)⁻¹: the controller of the plant whose D22 was taken off."""
    if not np.any(D22):
        return K
    loop = np.eye(D22.shape[0]) + D22 @ K.D
    if np.linalg.cond(loop) > 1e12:
        return None
    E = np.linalg.inv(loop)
    A = K.A - K.B @ E @ D22 @ K.C
    C = K.C - K.D @ E @ D22 @ K.C
    return System(A, K.B @ E, C, K.D @ E)


def _riccati(A: Any, B: Any, C: Any, D: Any, R: Any) -> Any:
    """The stabilising solution X of AᵀX + XA + CᵀC − (XB + CᵀD) R⁻¹ (BᵀX + DᵀC) = 0, R indefinite; or None."""
    if not A.shape[0]:
        return np.zeros((0, 0))
    double = [M.astype(float) for M in (A, B, C.T @ C, R, C.T @ D)]
    inverse = _inverse(R)
    try:
        X = _wide(solve_continuous_are(*double[:4], s=double[4]))
    except (np.linalg.LinAlgError, ValueError):
        # It refuses whatever is near the axis, such as the slow pole of a weight.
        X = _by_hamiltonian(*[M.astype(float) for M in (A, B, C, D, inverse)])
        if X is None:
            return None
    for _ in range(4):
        # Newton's step on a residual in wide numbers: where X is nearly zero, the pencil's rounding is larger than it.
        feed = B.T @ X + D.T @ C
        gain = inverse @ feed
        closed = (A - B @ gain).astype(float)
        if not np.isfinite(closed).all() or not np.all(np.linalg.eigvals(closed).real < 0):
            return None
        residual = A.T @ X + X @ A + C.T @ C - feed.T @ gain
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # nearly singular: the closed loop's norm is measured later
            X = X - solve_continuous_lyapunov(closed.T, residual.astype(float))
        X = (X + X.T) / 2
    return X


def _by_hamiltonian(A: Floats, B: Floats, C: Floats, D: Floats, inverse: Floats) -> Any:
    """The same from the stable invariant subspace of the Hamiltonian matrix."""
    n = A.shape[0]
    A = A - B @ inverse @ D.T @ C
    Q = C.T @ C - C.T @ D @ inverse @ D.T @ C
    _, U, count = schur(np.block([[A, -B @ inverse @ B.T], [-Q, -A.T]]), sort="lhp")
    if count != n or np.linalg.cond(U[:n, :n]) > 1e14:
        return None
    X = np.linalg.solve(U[:n, :n].T, U[n:, :n].T)
    return _wide((X + X.T) / 2)


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

    `hinf` gives it. `system` is K as matrices, `K` as python-control's `StateSpace`, `plant` the generalised plant.
    `gamma_opt` is the smallest γ that some stabilising controller, `optimal`, was measured to reach. K is designed at
    `gamma` = (1 + back_off) γ_opt, where it is well conditioned; `norm` bounds its closed loop's H∞ norm from both
    sides, on the plant as given. `history` has every γ that was tried, `warnings` what was singular, and `epsilon` by
    how much that was made regular.

    >>> import linkwright as lw
    >>> P = ([[-1.0]], [[1.0, 0.0, 1.0]], [[1.0], [0.0], [1.0]], [[0, 0, 0], [0, 0, 1.0], [0, 1.0, 0]])
    >>> design = lw.control.hinf(P, 1, 1)
    >>> design.system.order, design.gamma >= design.gamma_opt, design.norm.upper <= design.gamma
    (1, True, True)

    `K` raises `ModelError` where python-control is not installed.
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


@dataclass(frozen=True, kw_only=True)
class HinfSettings:
    """Settings of the search for γ in `hinf` and `mixed_sensitivity`: `settings=lw.control.HinfSettings(back_off=0.1)`.

    - `tolerance`: the relative width to which γ is bisected; 1e-4.
    - `back_off`: K is designed at (1 + back_off) γ_opt, where it is well conditioned; 0.05.
    - `gamma_max`: the largest γ that is tried; 1e6.
    - `epsilon`: by how much a singular problem is made regular, relative to the plant's own sizes; None tries several
      and takes the best verified one, 0 forbids it.

    >>> import linkwright as lw
    >>> lw.control.HinfSettings(tolerance=1e-6).back_off
    0.05

    Numbers that are not finite or out of these ranges raise `ModelError`.
    """

    tolerance: float = 1e-4
    back_off: float = 0.05
    gamma_max: float = 1e6
    epsilon: float | None = None

    def __post_init__(self) -> None:
        for name, good, what in (
            ("tolerance", 0 < self.tolerance < 1, "a number between 0 and 1"),
            ("back_off", 0 <= self.back_off < np.inf, "a number that is not negative"),
            ("gamma_max", 0 < self.gamma_max < np.inf, "a positive number"),
            ("epsilon", self.epsilon is None or 0 <= self.epsilon < np.inf, "None or a number that is not negative"),
        ):
            if not good:
                raise ModelError(f"{name} is {what}, not {getattr(self, name)!r}")


@takes_settings(settings=HinfSettings)
def hinf(P: Any, nmeas: int, ncon: int, *, settings: HinfSettings | None = None) -> Design:
    """The H∞ controller u = K y of a generalised plant `P`, [z; y] = P [w; u], continuous or sampled, as a `Design`.

    `nmeas` and `ncon` count the measured outputs y and the controls u: P's last outputs and inputs. γ is bisected; a γ
    is accepted only if the closed loop with the plant as given is stable and its measured norm is not above γ. A
    singular problem (D12 or D21 without full rank, zeros on the imaginary axis or the unit circle) is made regular by ε
    times a fictitious noise and control cost, relative to the plant's own sizes; the norm is still that of the plant as
    given. `settings` are `HinfSettings`, by default with their defaults.

    >>> import linkwright as lw
    >>> P = ([[-1.0]], [[1.0, 0.0, 1.0]], [[1.0], [0.0], [1.0]], [[0, 0, 0], [0, 0, 1.0], [0, 1.0, 0]])
    >>> lw.control.hinf(P, 1, 1).stable
    True

    Raises `DesignError` where P cannot be stabilised from u or detected from y (it names the modes in Hz), or where no
    K brings the norm under gamma_max; `ShapeError` where P has not so many outputs and inputs.
    """
    s = HinfSettings() if settings is None else settings
    tolerance, back_off, gamma_max, epsilon = s.tolerance, s.back_off, s.gamma_max, s.epsilon
    original = system(P, "the generalised plant")
    checked(original, nmeas, ncon)
    # The bilinear map makes a sampled problem continuous and keeps its norm.
    flat = to_continuous(original)
    notes = [*singular_parts(flat, nmeas, ncon), *jomega_zeros(flat, nmeas, ncon, original.dt)]
    if notes and epsilon == 0.0:
        raise DesignError(f"the problem is singular: {'; '.join(notes)}; let epsilon make it regular (leave it out)")
    tried = [0.0] if not notes else [float(epsilon)] if epsilon else list(_EPSILONS)
    history: list[Trial] = []
    best: tuple[float, System, NormalForm, float] | None = None
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
        warnings.warn(note, LinkwrightWarning, stacklevel=outside())
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

    def __init__(self, original: System, plant: NormalForm, history: list[Trial]) -> None:
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
