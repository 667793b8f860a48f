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
