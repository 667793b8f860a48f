"""How much a feedback loop endures: gain, phase and delay margins, and multiplicative errors of the plant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.control.hinfinity.norms import hinf_norm
from linkwright.control.linear_systems import System, gains, lft, series, system

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
    """The margins of the loop u = −K F G u; G and K continuous or sampled with one period.

    W_T weighs the multiplicative error at the plant's input.
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
    from scipy.optimize import brentq  # type: ignore[import-untyped]  # SciPy has no types

    return float(brentq(f, a, b, xtol=1e-12 * b, rtol=1e-12))
