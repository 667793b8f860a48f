"""Mixed-sensitivity and H∞ examples with a published γ, each with its source."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.control.hinfinity import hinf
from linkwright.control.mixed_sensitivity import mixed_sensitivity
from linkwright.control.systems import System, block_diagonal, from_polynomials, stack


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
        return mixed_sensitivity(G, W_T, W_S, W_U, cost="standard", tolerance=1e-5)

    return Published(name, source, gamma, rounding, design, (G, W_S, W_U, W_T))


def performance(bandwidth: float, M: float, A: float) -> System:
    """(s/M + ω_B)/(s + ω_B A)."""
    return from_polynomials([1 / M, bandwidth], [1.0, bandwidth * A])
