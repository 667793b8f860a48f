"""Known Box–Jenkins systems, their records in open and closed loop, and how often bands hold the truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.signal import lfilter
from scipy.stats import binom, chi2, norm

import linkwright as lw

FEW = lw.control.IdentifySettings(starts=2)
BURN_IN = 3000  # samples before the record, so that it does not start at rest


@dataclass(frozen=True)
class System:
    """A model and, for the closed loop, the controller u = r − (P/L) y."""

    name: str
    model: lw.control.Model
    P: Any
    L: Any = field(default_factory=lambda: np.ones(1))

    @property
    def orders(self) -> lw.control.Orders:
        return self.model.orders

    def frequencies(self) -> Any:
        """Twelve over two decades up to 0.8 of half the sampling rate, and the resonance (rad/s)."""
        grid = np.geomspace(0.008, 0.8, 12) * np.pi / self.model.dt
        return np.sort(np.append(grid, abs(self.model.poles()[0].s)))


def resonance(damping: float = 0.02, hertz: float = 16.0, dt: float = 2e-3) -> System:
    """ω²/(s² + 2ζωs + ω²) behind a hold and one more sample of delay; coloured noise; velocity feedback."""
    w = 2 * np.pi * hertz
    wd, decay = w * np.sqrt(1 - damping**2), np.exp(-damping * w * dt)
    c, s = np.cos(wd * dt), damping * w / wd * np.sin(wd * dt)
    F = np.array([1.0, -2 * decay * c, decay**2])
    B = np.array([1 - decay * (c + s), decay**2 + decay * (s - c)])
    noise = ([1.0, 0.5, 0.2], [1.0, -1.2, 0.5])
    return System("16 Hz resonance", lw.control.Model(B, F, *noise, delay=2, dt=dt), 0.6 * np.array([1.0, -1.0]))


def textbook() -> System:
    """The second-order system of many textbooks' examples, A = F = 1 − 1.5 q^-1 + 0.7 q^-2, with coloured noise."""
    noise = ([1.0, -1.0, 0.2], [1.0, 1.5, 0.7])
    return System("textbook", lw.control.Model([1.0, 0.5], [1.0, -1.5, 0.7], *noise, delay=1), np.array([0.15]))


def record(system: System, snr: float, loop: str, seed: int, length: int = 4095) -> lw.control.Record:
    """An M-sequence as u (open) or as r (closed), and noise so large that y has this signal-to-noise ratio (dB)."""
    m = system.model
    r = lw.control.m_sequence(12, length=length + BURN_IN, seed=7)
    # Every case has noise of its own: with common draws the cases would be one sample, seen several times.
    case = [seed, abs(round(10 * snr)), loop == "closed", *system.name.encode()]
    e = np.random.default_rng(case).standard_normal(length + BURN_IN)
    B = np.concatenate([np.zeros(m.delay), m.B])
    P, L = (system.P, system.L) if loop == "closed" else (np.zeros(1), np.ones(1))
    FL, BP = np.convolve(m.F, L), np.convolve(B, P)
    size = max(len(FL), len(BP))
    loop_poles = np.pad(FL, (0, size - len(FL))) + np.pad(BP, (0, size - len(BP)))
    assert np.abs(np.roots(loop_poles)).max() < 1, "the loop is unstable"
    v = lfilter(m.C, m.D, e)
    y_r, y_e = lfilter(np.convolve(B, L), loop_poles, r), lfilter(FL, loop_poles, v)
    u_r, u_e = lfilter(FL, loop_poles, r), -lfilter(np.convolve(P, m.F), loop_poles, v)
    k = np.sqrt(noise_variance(system, snr, loop))
    cut = slice(BURN_IN, None)
    return lw.control.Record((u_r + k * u_e)[cut], (y_r + k * y_e)[cut], m.dt, r[cut] if loop == "closed" else None)


def noise_variance(system: System, snr: float, loop: str) -> float:
    """The variance of e that gives the ratio (dB) of y's variance by r to that by e, from impulse responses."""
    m = system.model
    B = np.concatenate([np.zeros(m.delay), m.B])
    P, L = (system.P, system.L) if loop == "closed" else (np.zeros(1), np.ones(1))
    FL, BP = np.convolve(m.F, L), np.convolve(B, P)
    size = max(len(FL), len(BP))
    poles = np.pad(FL, (0, size - len(FL))) + np.pad(BP, (0, size - len(BP)))
    impulse = np.zeros(20000)
    impulse[0] = 1.0
    by_r = np.sum(lfilter(np.convolve(B, L), poles, impulse) ** 2)
    by_e = np.sum(lfilter(FL, poles, lfilter(m.C, m.D, impulse)) ** 2)
    return float(by_r / by_e / 10 ** (snr / 10))


def coverage(system: System, snr: float, loop: str, draws: int, *, model: str = "box-jenkins", first: int = 0) -> Any:
    """How many of the draws have the truth inside the 95 % regions: {"b0": count, ..., "all": ..., "band": (n)}."""
    truth = system.model
    w = system.frequencies()
    wanted = truth.frequency_response(w)
    inside = np.zeros(len(truth.parameters), int)
    together, band, misses = 0, np.zeros(len(w), int), []
    for seed in range(first, first + draws):
        found = lw.control.identify(record(system, snr, loop, seed), model, system.orders, holdout=0.0, settings=FEW)
        delta = found.parameters - truth.parameters
        inside += np.abs(delta) <= norm.ppf(0.975) * found.standard_errors
        together += delta @ np.linalg.solve(found.covariance, delta) <= chi2.ppf(0.95, len(delta))
        band += found.band(w, 0.95).contains(wanted)
        misses.append(np.abs(found.frequency_response(w) / wanted - 1.0))
    return {
        **dict(zip(found.names, inside.tolist(), strict=True)),
        "all": int(together),
        "band": band,
        "error": float(np.median(np.max(misses, axis=1))),
    }


def accepted(draws: int, probability: float = 0.95, level: float = 0.99) -> tuple[int, int]:
    """The counts between which a binomial count of so many draws lies with probability `level`."""
    tail = 0.5 * (1 - level)
    return int(binom.ppf(tail, draws, probability)), int(binom.ppf(1 - tail, draws, probability))
