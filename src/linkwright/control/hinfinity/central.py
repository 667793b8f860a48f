"""The central H∞ controller at one γ: two Riccati equations after Glover and Doyle, for any D11 and D22."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.control.hinfinity.systems import System, balanced


@dataclass(frozen=True)
class Plant:
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


def normalised(P: System, nmeas: int, ncon: int) -> Plant:
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
    return Plant(
        P.A, B1 @ spin, B2 @ scale_u, turn.T @ C1, scale_y @ C2, turn.T @ D11 @ spin, scale_u, scale_y, D22, rate
    )


def central(plant: Plant, gamma: float) -> System | None:
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
    from scipy.linalg import solve_continuous_are, solve_continuous_lyapunov  # type: ignore[import-untyped]  # SciPy has no types

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
    from scipy.linalg import schur

    n = A.shape[0]
    A = A - B @ inverse @ D.T @ C
    Q = C.T @ C - C.T @ D @ inverse @ D.T @ C
    _, U, count = schur(np.block([[A, -B @ inverse @ B.T], [-Q, -A.T]]), sort="lhp")
    if count != n or np.linalg.cond(U[:n, :n]) > 1e14:
        return None
    X = np.linalg.solve(U[:n, :n].T, U[n:, :n].T)
    return _wide((X + X.T) / 2)
