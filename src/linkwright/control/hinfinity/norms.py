"""The H∞ norm of a linear system, from below by its frequency response and from above by a Hamiltonian matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.control.linear_systems import System, balanced, system, to_continuous, unmapped


@dataclass(frozen=True)
class Norm:
    """An H∞ norm between two bounds, and where the peak is.

    `lower` is the largest singular value at `frequency` (rad/s): it is attained. No frequency has more than `upper`.
    """

    lower: float
    upper: float
    frequency: float

    @property
    def value(self) -> float:
        """The upper bound, which is safe to promise."""
        return self.upper

    def __float__(self) -> float:
        return self.upper

    def __repr__(self) -> str:
        if not np.isfinite(self.upper):
            return "Norm: infinite (unstable)"
        between = f" (at least {self.lower:.6g})" if self.upper - self.lower > 1e-5 * self.upper else ""
        return f"Norm: {self.upper:.6g}{between} at {self.frequency / (2 * np.pi):.4g} Hz"


def hinf_norm(given: Any, *, tolerance: float = 1e-8, grid: int = 0) -> Norm:
    """The H∞ norm of a continuous or sampled system, with both bounds; infinite where it is unstable.

    Bruinsma and Steinbuch's iteration (1990): a lower bound is raised to the middles of the intervals where a singular
    value exceeds it, found as the imaginary eigenvalues of a Hamiltonian matrix, until there are none. A sampled
    system goes through z = (1+s)/(1−s), which keeps the norm. grid adds a lower bound of so many frequencies.
    """
    S = system(given)
    if not S.stable():
        return Norm(np.inf, np.inf, _worst_pole(S))
    C = balanced(to_continuous(S))
    if not C.order or not C.inputs or not C.outputs:
        size = _sigma(C.D[None])[0]
        return Norm(size, size, 0.0)
    w = _about_poles(C, 1e2, 60, 9)
    if grid:
        w = np.concatenate([w, _about_poles(C, 1e3, grid, 0)])
    response = _response(S)
    lower, peak = _largest(response, w)
    top = _sigma(C.D[None])[0]
    if top > lower:
        lower, peak = top, np.inf
    if lower == 0.0:
        # Zero on a whole set of frequencies: zero everywhere.
        return Norm(0.0, 0.0, 0.0)
    check = _about_poles(C, 1e2, 200, 21)
    for _ in range(60):
        level = lower * (1 + tolerance)
        crossings, clear = _crossings(C, level)
        middles = np.concatenate([crossings, (crossings[1:] + crossings[:-1]) / 2]) if crossings.size else crossings
        if clear:
            # The response itself has the last word: near a flat peak the eigenvalues leave the axis too early.
            middles = _polished(response, np.append(check, peak), lower)
        better, where = _largest(response, middles)
        if better > lower:
            rise, lower, peak = better / lower - 1, better, where
            if rise > tolerance / 2:
                continue
        if clear:
            peak = 0.0 if _largest(response, np.zeros(1))[0] >= lower * (1 - 1e-12) else peak
            return Norm(lower, level * (1 + _noise(C, response, check, lower)), float(unmapped(peak, S.dt)))
        break
    # Rounding leaves eigenvalues near the axis: go up until they have left it.
    for step in range(40):
        level = lower * (1 + tolerance * 2.0**step)
        if _crossings(C, level)[1]:
            return Norm(lower, level, float(unmapped(peak, S.dt)))
    return Norm(lower, np.inf, float(unmapped(peak, S.dt)))


def _polished(response: Callable[[Floats], Any], w: Floats, lower: float) -> Floats:
    """The tops of the response's highest hills, each climbed between the neighbours of its best grid point."""
    w = np.unique(w[np.isfinite(w)])
    values = _sigma(response(w))
    padded = np.concatenate([[-np.inf], values, [-np.inf]])
    hills = np.flatnonzero((values >= padded[:-2]) & (values >= padded[2:]) & (values > 0.99 * lower))
    hills = np.array(sorted(hills, key=lambda i: float(values[i]))[-4:], dtype=int)
    tops = []
    for i in map(int, hills):
        a, b = w[max(i - 1, 0)], w[min(i + 1, w.size - 1)]
        for _ in range(9):
            inner = np.linspace(a, b, 13)
            best = int(np.argmax(_sigma(response(inner))))
            tops.append(inner[best])
            a, b = inner[max(best - 1, 0)], inner[min(best + 1, 12)]
    return np.array(tops)


def _noise(C: System, response: Callable[[Floats], Any], w: Floats, peak: float) -> float:
    """How far two evaluations of the response are apart, relatively, where it is near its peak."""
    one, other = _sigma(response(w)), _sigma(C.at(w))
    near = one > 0.99 * peak
    return 2 * float(np.max(np.abs(one - other)[near], initial=0.0)) / peak


def grid_norm(model: Any, points: int = 20000) -> tuple[float, float]:
    """The largest singular value on a dense grid, refined about every pole's frequency; and where (rad/s)."""
    S = system(model)
    C = to_continuous(S)
    w = _about_poles(C, 1e3, points, 41)
    value, where = _largest(_response(S), w)
    top = float(_sigma(C.D[None])[0])
    return (value, float(unmapped(where, S.dt))) if value >= top else (top, float(unmapped(np.inf, S.dt)))


def _worst_pole(S: System) -> float:
    poles = S.poles()
    worst = poles[np.argmax(poles.real if S.dt is None else np.abs(poles))]
    return float(abs(worst.imag) if S.dt is None else abs(np.angle(worst)) / S.dt)


def _sigma(G: Any) -> Floats:
    """The largest singular value of each matrix."""
    if 0 in G.shape[1:]:
        return np.zeros(len(G))
    if 1 in G.shape[1:]:
        return np.asarray(np.sqrt(np.sum(np.abs(G) ** 2, axis=(1, 2))))
    return np.asarray(np.linalg.svd(G, compute_uv=False)[:, 0])


def _response(S: System) -> Callable[[Floats], Any]:
    """The response of S at the frequencies of its continuous image."""
    return lambda w: S.at(unmapped(w, S.dt))


def _largest(response: Callable[[Floats], Any], w: Floats) -> tuple[float, float]:
    if not w.size:
        return 0.0, 0.0
    values = _sigma(response(w))
    best = int(np.argmax(values))
    return float(values[best]), float(w[best])


def _about_poles(C: System, factor: float, points: int, near: int) -> Floats:
    """Frequencies from 0 to a factor beyond all poles, `points` of them evenly spread and `near` about each pole.

    A lightly damped peak is as wide as its pole is far from the axis.
    """
    poles = C.poles()
    rates = np.abs(poles[poles != 0.0]) if np.any(poles != 0.0) else np.ones(1)
    spread = np.concatenate([[0.0], np.geomspace(1e-3, 30.0, near // 2)])
    around = np.abs(poles.imag)[:, None] + np.abs(poles.real)[:, None] * np.concatenate([-spread[:0:-1], spread])
    grid = np.geomspace(rates.min() / factor, factor * rates.max(), points)
    return np.concatenate([[0.0], grid, np.abs(around.ravel()), np.abs(poles)])


def _crossings(C: System, level: float) -> tuple[Floats, bool]:
    """Frequencies near which a singular value may equal the level, rising; and whether surely none does."""
    n, m = C.order, C.inputs
    R = level**2 * np.eye(m) - C.D.T @ C.D
    try:
        inverse = np.linalg.inv(R)
    except np.linalg.LinAlgError:
        return np.zeros(0), False
    if np.linalg.eigvalsh(R)[0] <= 0:
        return np.zeros(0), False
    # With B and C both divided by the root of the level, the two off-diagonal blocks are of like size.
    A = C.A + C.B @ inverse @ C.D.T @ C.C
    upper = level * C.B @ inverse @ C.B.T
    lower = -C.C.T @ (np.eye(C.outputs) + C.D @ inverse @ C.D.T) @ C.C / level
    values = np.linalg.eigvals(np.block([[A, upper], [lower, -A.T]]))
    size = np.abs(values)
    scale = max(float(size.max(initial=0.0)), 1e-300)
    near = np.abs(values.real) <= 1e-5 * size + 1e-10 * scale
    sure = np.abs(values.real) <= 1e-9 * size + 1e-14 * scale * n
    w = np.unique(np.abs(values.imag[near]))
    if not np.any(near):
        return w, True
    # An eigenvalue near the axis is a crossing only if the response there reaches the level.
    reach = _sigma(C.at(w)).max(initial=0.0) >= level
    return w, not reach and not np.any(sure)
