"""The H∞ norm of a linear system, and gain, phase and delay margins of a feedback loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.control.linear_systems import System, balanced, gains, lft, series, system, to_continuous, unmapped


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


def hinf_norm(model: Any, *, tolerance: float = 1e-8, grid: int = 0) -> Norm:
    """The H∞ norm of a continuous or sampled system, as a `Norm` with both bounds; infinite where it is unstable.

    Bruinsma and Steinbuch's iteration (1990): a lower bound is raised to the middles of the intervals where a singular
    value exceeds it, found as the imaginary eigenvalues of a Hamiltonian matrix, until there are none. A sampled
    system goes through z = (1+s)/(1−s), which keeps the norm.

    - `model`: a `System`, or what `lw.control.system` takes.
    - `tolerance`: the relative distance of the two bounds, 1e-8, where rounding allows it.
    - `grid`: adds a lower bound of so many frequencies; 0.

    >>> import linkwright as lw
    >>> round(float(lw.control.hinf_norm(([2.0], [1.0, 1.0]))), 6)
    2.0

    Raises `ModelError` and `ShapeError` where `system` does, and `ModelError` for a sampled pole at z = −1.
    """
    S = system(model)
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


_LARGEST = 1e12  # a loop gain beyond it, or below its inverse, counts as infinite or zero


@dataclass(frozen=True)
class Margins:
    """What the loop endures. Of a plant with several inputs the values are the least over the loops, each cut in turn.

    gain_up, gain_down: factors of the loop gain (> 1, < 1) at which it becomes unstable, inf or 0 where none does;
    phase (rad) and delay (s) that may be added; sensitivity = ‖S‖∞ at the plant's input (1/it is the distance from −1);
    error: the multiplicative error of G that is endured at every frequency, 1/‖T‖∞; weighted_error: the largest α for
    which every error below α |W_T(jω)| is endured (None without W_T).
    """

    stable: bool
    gain_up: float
    gain_down: float
    phase: float
    delay: float
    sensitivity: float
    error: float
    weighted_error: float | None

    def __str__(self) -> str:
        if not self.stable:
            return "margins: the loop is not stable"
        weighted = "" if self.weighted_error is None else f", {self.weighted_error:.3g} × W_T"
        return (
            f"margins: gain × {self.gain_down:.3g} … × {self.gain_up:.3g}, phase {np.degrees(self.phase):.1f}°, "
            f"delay {self.delay * 1e3:.3g} ms, ‖S‖ {self.sensitivity:.3g}, error {self.error:.3g}{weighted}"
        )


def margins(G: Any, K: Any, *, filter: Any = None, W_T: Any = None) -> Margins:
    """The margins of the loop u = −K F G u, as a `Margins`; G and K continuous or sampled with one period.

    - `G`, `K`: plant and controller, as `lw.control.system` takes them. `filter`: F, the identity unless given.
    - `W_T`: weighs the multiplicative error at the plant's input; None for no `weighted_error`.

    >>> import linkwright as lw
    >>> round(lw.control.margins(([4.0], [1.0, 3.0, 3.0, 1.0]), 1.0).gain_up, 6)
    2.0

    Raises `ModelError` and `ShapeError` for systems that cannot be connected. An unstable loop is no error: see
    `stable`.
    """
    plant, controller = system(G, "G"), system(K, "K")
    F = gains(np.eye(plant.outputs), plant.dt) if filter is None else system(filter, "the filter", plant.dt)
    return loop_margins(plant, controller, F, None if W_T is None else system(W_T, "W_T", plant.dt))


def loop_margins(G: System, K: System, F: System, W_T: System | None) -> Margins:
    """The margins at the plant's input."""
    L = series(K, series(F, G))
    nu = L.inputs
    loop = _feedback(L)
    if not loop.stable():
        return Margins(False, 1.0, 1.0, 0.0, 0.0, np.inf, 0.0, None if W_T is None else 0.0)
    S, T = loop.select(slice(0, nu), slice(None)), loop.select(slice(nu, None), slice(None))
    weighted = None
    if W_T is not None and W_T.inputs == nu:
        weighted = _over(hinf_norm(series(W_T, T)).upper)
    each = [_cut_at(L, i) for i in range(nu)]
    up, down, phase, delay = (
        min(e[0] for e in each),
        max(e[1] for e in each),
        *(min(e[i] for e in each) for i in (2, 3)),
    )
    return Margins(True, up, down, phase, delay, hinf_norm(S).upper, _over(hinf_norm(T).upper), weighted)


def _over(value: float) -> float:
    return 1.0 / value if value > 0 else np.inf


def _feedback(L: System) -> System:
    """[S; T] of the loop, with the states held once: v = w − L v."""
    nu = L.inputs
    eye, zero = np.eye(nu), np.zeros((L.order, nu))
    P = System(
        L.A,
        np.hstack([zero, L.B]),
        np.vstack([np.zeros((nu, L.order)), L.C, -L.C]),
        np.block([[np.zeros((nu, nu)), eye], [np.zeros((nu, nu)), L.D], [eye, -L.D]]),
        L.dt,
    )
    return lft(P, gains(eye, L.dt))


def _cut_at(L: System, i: int) -> tuple[float, float, float, float]:
    """Gain up, gain down, phase and delay of the loop cut at one signal, the others closed."""
    others = [j for j in range(L.inputs) if j != i]
    one = L.select([i, *others], [i, *others])
    if others:
        P = System(one.A, one.B, np.vstack([one.C[:1], -one.C[1:]]), np.vstack([one.D[:1], -one.D[1:]]), L.dt)
        one = lft(P, gains(np.eye(len(others)), L.dt))
    w = _grid(one)
    values = one.at(w)[:, 0, 0]

    def response(x: float) -> complex:
        return complex(one.at(np.array([x]))[0, 0, 0])

    # Where the response crosses the real axis. At both ends of the frequencies it is real, and no sign changes there.
    crossings = [response(_root(lambda x: response(x).imag, *pair)) for pair in _changes(w, values.imag)]
    real = [v.real for v in crossings if abs(v.imag) < 1e-6 * abs(v)]
    real += [float(v.real) for v in one.evaluate([0.0, np.inf] if L.dt is None else [1.0, -1.0])[:, 0, 0]]
    # A pole at an end, or a response that vanishes there, is only nearly so after rounding.
    factors = [-1.0 / v for v in real if -_LARGEST < v < -1.0 / _LARGEST]
    up = min((f for f in factors if f > 1), default=np.inf)
    down = max((f for f in factors if f <= 1), default=0.0)
    phase, late = np.inf, np.inf
    for x in [_root(lambda x: abs(response(x)) - 1.0, *pair) for pair in _changes(w, np.abs(values) - 1.0)]:
        angle = float(np.angle(-response(x)))  # from −1, counter-clockwise
        phase = min(phase, abs(angle))
        if x > 0:
            late = min(late, (angle % (2 * np.pi)) / x)
    return up, down, phase, late


def _grid(L: System) -> Floats:
    poles = L.poles()
    s = poles if L.dt is None else np.log(np.where(np.abs(poles) < 1e-12, 1e-12, poles)) / L.dt
    rates = np.abs(s)
    rates = rates[rates > 1e-9] if np.any(rates > 1e-9) else np.ones(1)
    top = 1e3 * rates.max() if L.dt is None else np.pi / L.dt
    low = min(1e-3 * rates.min(), 1e-3 * top)
    spread = np.concatenate([-np.geomspace(1e-2, 30, 40), [0.0], np.geomspace(1e-2, 30, 40)])
    near = np.abs(np.abs(s.imag)[:, None] + np.abs(s.real)[:, None] * spread).ravel()
    w = np.concatenate([np.geomspace(low, top, 4000), near])
    return np.unique(w[(w >= low) & (w <= top)])


def _changes(w: Floats, f: Floats) -> list[tuple[float, float]]:
    at = np.flatnonzero(np.isfinite(f[:-1]) & np.isfinite(f[1:]) & (np.sign(f[:-1]) * np.sign(f[1:]) < 0))
    return [(float(w[i]), float(w[i + 1])) for i in at]


def _root(f: Any, a: float, b: float) -> float:
    from scipy.optimize import brentq  # type: ignore[import-untyped]  # weight: scipy, which has no types

    return float(brentq(f, a, b, xtol=1e-12 * b, rtol=1e-12))
