"""What a generalised plant must be for H∞ design: checks that name the modes; singular plants made regular."""

from __future__ import annotations

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.control.linear_systems import System, balanced, in_hertz, invariant_zeros, unmapped
from linkwright.errors import DesignError, ShapeError

_RANK = 1e-8  # a singular value below so much of the largest counts as zero


def checked(P: System, nmeas: int, ncon: int) -> None:
    """An error where the numbers do not fit, or where P cannot be stabilised from u or detected from y."""
    if not (0 < nmeas < P.outputs and 0 < ncon < P.inputs):
        text = f"of {P.outputs} outputs and {P.inputs} inputs {nmeas} cannot be measured and {ncon} be controls"
        raise ShapeError(f"{text}: at least one of each must be left for the cost", given=(nmeas, ncon))
    B2, C2 = P.B[:, P.inputs - ncon :], P.C[P.outputs - nmeas :]
    for kind, A, B, verb, hint in (
        ("stabilisable", P.A, B2, "moved by no control", "from u"),
        ("detectable", P.A.T, C2.T, "seen by no measurement", "from y"),
    ):
        fixed = _out_of_reach(System(A, B, np.zeros((1, P.order)), np.zeros((1, B.shape[1])), P.dt))
        if fixed:
            named = ", ".join(f"{in_hertz(p, P.dt):.4g} Hz ({_written(p)})" for p in fixed)
            text = f"the plant is not {kind} {hint}: the modes at {named} are not stable and are {verb}"
            advice = "measure or drive it, or leave it out of the model"
            if any(in_hertz(p, P.dt) < 1e-6 for p in fixed):
                advice += "; if it is an integrator in a weight, give that a slow stable pole instead"
            raise DesignError(f"{text}; {advice}", modes=tuple(fixed))


def _written(pole: complex) -> str:
    return f"pole {pole.real:.4g}" if pole.imag == 0 else f"pole {pole.real:.4g} ± {abs(pole.imag):.4g}j"


def _out_of_reach(S: System) -> list[complex]:
    """The unstable or marginal poles that the inputs do not move (Popov, Belevitch, Hautus), one of each pair."""
    S = balanced(S)
    fixed = []
    size = max(float(np.linalg.norm(S.A, 2)) if S.order else 0.0, 1e-300)
    for pole in S.poles():
        marginal = pole.real > -1e-9 * size if S.dt is None else abs(pole) > 1 - 1e-9
        if not marginal or pole.imag < 0:
            continue
        test = np.hstack([S.A - pole * np.eye(S.order), S.B])
        values = np.linalg.svd(test, compute_uv=False)
        if values[-1] <= 1e-10 * max(values[0], 1e-300):
            fixed.append(complex(pole))
    return fixed


def _parts(P: System, nmeas: int, ncon: int) -> tuple[slice, slice, slice, slice]:
    p1, m1 = P.outputs - nmeas, P.inputs - ncon
    return slice(0, p1), slice(p1, None), slice(0, m1), slice(m1, None)


def singular_parts(P: System, nmeas: int, ncon: int) -> list[str]:
    """What D12 and D21 lack in rank, in words."""
    z, y, w, u = _parts(P, nmeas, ncon)
    lacks = []
    if not _full(P.D[z, u], _size(P, z, u), ncon):
        lacks.append("D12 has not full column rank: some control costs nothing at high frequencies")
    if not _full(P.D[y, w], _size(P, y, w), nmeas):
        lacks.append("D21 has not full row rank: some measurement has no noise at high frequencies")
    return lacks


def _size(P: System, rows: slice, columns: slice) -> float:
    """How large a part of P is: over its poles' frequencies and at infinity."""
    part = P.select(rows, columns)
    rates = np.abs(part.poles())
    rates = rates[rates > 0]
    w = np.concatenate([rates, np.geomspace(0.1 * rates.min(), 10 * rates.max(), 30)]) if rates.size else np.ones(1)
    values = np.abs(part.at(w))
    values = values[np.isfinite(values)]
    middle = float(np.median(values[values > 0])) if np.any(values > 0) else 0.0
    return max(middle, float(np.abs(part.D).max(initial=0.0)), 1e-300)


def _full(D: Floats, size: float, rank: int) -> bool:
    if min(D.shape) < rank:
        return False
    return bool(np.linalg.svd(D, compute_uv=False)[rank - 1] > _RANK * size)


def jomega_zeros(P: System, nmeas: int, ncon: int, dt: float | None) -> list[str]:
    """The zeros of P12 and P21 on the imaginary axis, in words: the Riccati equations have no solution there."""
    z, y, w, u = _parts(P, nmeas, ncon)
    notes = []
    for name, part in (("P12", P.select(z, u)), ("P21", _transposed(P.select(y, w)))):
        zeros = _axis_zeros(part)
        if zeros:
            named = ", ".join(f"{unmapped(v, dt) / (2 * np.pi):.4g} Hz" for v in zeros)
            notes.append(f"{name} has zeros on the imaginary axis or the unit circle at {named}")
    return notes


def _transposed(S: System) -> System:
    return System(S.A.T, S.C.T, S.B.T, S.D.T, S.dt)


def _axis_zeros(S: System) -> list[float]:
    """Frequencies where [A − jω, B; C, D] loses column rank: tried at the poles, at 0 and at the zeros found."""
    S = balanced(S)
    size = max(float(np.linalg.norm(S.A, 2)) if S.order else 0.0, 1e-300)
    candidates = [0.0, *np.abs(S.poles().imag)]
    if S.order and S.inputs:
        # Two random squarings have the true zeros in common; a false one is thrown out by the rank below.
        mix = np.random.default_rng(0).normal(size=(S.inputs, S.outputs))
        values = invariant_zeros(S.A, S.B, mix @ S.C, mix @ S.D)
        candidates += list(np.abs(values.imag[np.abs(values.real) < 1e-4 * np.maximum(np.abs(values), 1e-3 * size)]))
    zeros: list[float] = []
    for w in candidates:
        test = np.block([[S.A - 1j * w * np.eye(S.order), S.B], [S.C, S.D]])
        values = np.linalg.svd(test, compute_uv=False)
        small = values[S.order + S.inputs - 1] if test.shape[0] >= test.shape[1] else 0.0
        if small < 1e-9 * values[0] and not any(abs(w - f) <= 1e-6 * max(size, w) for f in zeros):
            zeros.append(float(w))
    return sorted(zeros)


def regularised(P: System, nmeas: int, ncon: int, epsilon: float) -> tuple[System, int, int]:
    """P with ε-small costs on u and on the states, and ε-small noises on y and on the states; y and u stay last."""
    if epsilon == 0.0:
        return P, nmeas, ncon
    P = balanced(P)
    z, y, w, u = _parts(P, nmeas, ncon)
    n, m1, p1 = P.order, P.inputs - ncon, P.outputs - nmeas
    cost, noise = epsilon * _size(P, z, u), epsilon * _size(P, y, w)
    states_out = epsilon * max(float(np.abs(P.C[z]).max(initial=0.0)), 1e-12)
    states_in = epsilon * max(float(np.abs(P.B[:, w]).max(initial=0.0)), 1e-12)
    B = np.hstack([P.B[:, w], np.zeros((n, nmeas)), states_in * np.eye(n), P.B[:, u]])
    C = np.vstack([P.C[z], np.zeros((ncon, n)), states_out * np.eye(n), P.C[y]])
    D = np.zeros((C.shape[0], B.shape[1]))
    D[:p1, :m1], D[:p1, m1 + nmeas + n :] = P.D[z, w], P.D[z, u]
    D[p1 + ncon + n :, :m1], D[p1 + ncon + n :, m1 + nmeas + n :] = P.D[y, w], P.D[y, u]
    D[p1 : p1 + ncon, m1 + nmeas + n :] = cost * np.eye(ncon)
    D[p1 + ncon + n :, m1 : m1 + nmeas] = noise * np.eye(nmeas)
    return System(P.A, B, C, D), nmeas, ncon
