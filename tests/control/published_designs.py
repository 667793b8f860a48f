"""Mixed-sensitivity and H∞ examples with a published γ, each with its source."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.control.hinfinity.mixed_sensitivity import mixed_sensitivity
from linkwright.control.hinfinity.synthesis import HinfSettings, hinf
from linkwright.control.linear_systems import System, block_diagonal, from_polynomials, stack


@dataclass(frozen=True)
class Published:
    """A problem, the γ that its source prints, and half a unit of that number's last digit."""

    name: str
    source: str
    gamma: float
    rounding: float
    design: Callable[[], Any]
    #: Plant, weights on S, KS and T for another tool; None where the problem is a generalised plant.
    plain: tuple[Any, Any, Any, Any] | None = None
    plant: System | None = None


def _standard(name: str, source: str, gamma: float, rounding: float, G: Any, W_S: Any, W_U: Any, W_T: Any) -> Published:
    def design() -> Any:
        return mixed_sensitivity(G, W_T, W_S, W_U, cost="standard", settings=HinfSettings(tolerance=1e-5))

    return Published(name, source, gamma, rounding, design, (G, W_S, W_U, W_T))


def performance(bandwidth: float, M: float, A: float) -> System:
    """(s/M + ω_B)/(s + ω_B A)."""
    return from_polynomials([1 / M, bandwidth], [1.0, bandwidth * A])


def two_by_two() -> System:
    """1/((0.2 s + 1)(s + 1)) [1 1; 1 + 2s 2], with a zero at s = 0.5."""
    den = [0.2, 1.2, 1.0]
    rows = []
    for numerators in (([1.0], [1.0]), ([2.0, 1.0], [2.0])):
        both = block_diagonal([from_polynomials(n, den) for n in numerators])
        rows.append(System(both.A, both.B, np.ones((1, 2)) @ both.C, np.ones((1, 2)) @ both.D))
    return stack(rows)


def _two_by_two(number: int, gamma: float, first: float, second: float) -> Published:
    W_S = block_diagonal([performance(first, 1.5, 1e-4), performance(second, 1.5, 1e-4)])
    source = f"Skogestad and Postlethwaite, 1st edition, example 3.8, design {number}"
    return _standard(f"right half-plane zero, {number}", source, gamma, 0.005, two_by_two(), W_S, 1.0, None)


def disturbance_process() -> System:
    """200/((10 s + 1)(0.05 s + 1)²)."""
    return from_polynomials([200.0], np.polymul([10.0, 1.0], np.polymul([0.05, 1.0], [0.05, 1.0])))


_LOOP_SHAPING = from_polynomials([0.1, 10.0], [100.0, 1.0])

PUBLISHED = [
    _standard(
        "disturbance process",
        "Skogestad and Postlethwaite, 1st edition, example 2.11, design 1",
        1.37,
        0.005,
        disturbance_process(),
        performance(10.0, 1.5, 1e-4),
        1.0,
        None,
    ),
    _two_by_two(1, 2.80, 0.25, 0.25),
    _two_by_two(2, 2.92, 0.25, 25.0),
    _two_by_two(3, 6.73, 25.0, 0.25),
    _standard(
        "all-pass plant",
        "the mixed-sensitivity example of MATLAB's hinfsyn, as others quote it",
        0.1844,
        0.00005,
        from_polynomials([1.0, -1.0], [1.0, 1.0]),
        _LOOP_SHAPING,
        0.1,
        None,
    ),
]


def closed_form() -> Published:
    """x' = w₁ + u, y = x + w₂, z = (x, u): both Riccati equations read X² (1 − γ⁻²) = 1, and XY = γ² at γ = √2."""
    P = System([[0.0]], [[1.0, 0.0, 1.0]], [[1.0], [0.0], [1.0]], [[0, 0, 0], [0, 0, 1.0], [0, 1.0, 0]])
    root = float(np.sqrt(2))
    name, source = "integrator with noise", "closed form: √2"
    return Published(name, source, root, 1e-4, lambda: hinf(P, 1, 1, settings=HinfSettings(tolerance=1e-6)), None, P)


PUBLISHED.append(closed_form())
