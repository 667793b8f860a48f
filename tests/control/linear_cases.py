"""Linear systems that several tests of the H∞ tools share, with published γ where there is one."""

import numpy as np

from linkwright.control.linear_systems import System, delay, from_polynomials, sampled, series

HZ16 = 2 * np.pi * 16.0


def resonance(damping: float = 0.01, frequency: float = HZ16) -> System:
    return from_polynomials([frequency**2], [1.0, 2 * damping * frequency, frequency**2])


def paper_case(damping: float = 0.01, late: float = 0.004) -> dict[str, object]:
    """The 16 Hz plant of the acceleration display with a delay, its filter and weights: continuous."""
    plant = resonance(damping)
    return {
        "G": series(plant, delay(late)) if late else plant,
        "W_T": from_polynomials([2.0, 20 * np.pi], [1.0, 200 * np.pi]),
        "W_S": 0.5,
        "filter": from_polynomials([300.0], [1.0, 300.0]),
    }


def sampled_case(dt: float = 0.002, late: int = 2, damping: float = 0.01) -> dict[str, object]:
    """The same, sampled, with whole periods of delay."""

    case = paper_case(damping, 0.0)
    held = sampled(case["G"], dt, "zoh")
    return {
        "G": series(held, delay(late * dt, dt)),
        "W_T": sampled(case["W_T"], dt),
        "W_S": 0.5,
        "filter": sampled(case["filter"], dt),
        "dt": dt,
    }


def random_system(rng: np.random.Generator, n: int, m: int, p: int, dt: float | None = None) -> System:
    """A stable one, some with poles close to the edge of stability."""
    if dt is None:
        A = rng.normal(size=(n, n)) * 10 ** rng.uniform(-1, 2, size=(n, 1))
        A -= np.eye(n) * (np.linalg.eigvals(A).real.max() + 10 ** rng.uniform(-3, 1))
    else:
        A = rng.normal(size=(n, n))
        A *= (1 - 10 ** rng.uniform(-4, -0.3)) / np.abs(np.linalg.eigvals(A)).max()
    D = rng.normal(size=(p, m)) * rng.integers(0, 2)
    return System(A, rng.normal(size=(n, m)), rng.normal(size=(p, n)), D, dt)


def grid_norm(S: System, points: int = 20000) -> float:
    """The largest singular value on a dense grid of frequencies, refined about every pole, and at both ends."""
    poles = S.poles() if S.dt is None else np.log(np.where(S.poles() == 0.0, 1e-300, S.poles())) / S.dt
    rates = np.abs(poles[poles != 0.0]) if np.any(poles != 0.0) else np.ones(1)
    spread = np.concatenate([-np.geomspace(1e-3, 30.0, 20), [0.0], np.geomspace(1e-3, 30.0, 20)])
    near = np.abs(np.abs(poles.imag)[:, None] + np.abs(poles.real)[:, None] * spread).ravel()
    w = np.concatenate([near, np.geomspace(1e-3 * rates.min(), 1e3 * rates.max(), points), [0.0]])
    ends = S.evaluate([np.inf if S.dt is None else -1.0])
    w = w if S.dt is None else w[w <= np.pi / S.dt]
    return float(np.linalg.svd(np.concatenate([S.at(w), ends]), compute_uv=False).max())
