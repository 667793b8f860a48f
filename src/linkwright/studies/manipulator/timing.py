"""How long the control step takes on this machine: its parts, its forms, and its latency at a rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwright.studies.manipulator.geometry import Geometry

Floats = NDArray[np.float64]
#: The paper's tables 1 and 2: ms on Pentium Pro processors of 200 MHz, one of them and four.
PAPER = {"forward kinematics": 0.92, "six inverse dynamics": 6 * 0.43, "transformation": 0.19, "whole step": 3.69}
PAPER_PARALLEL = 1.02


@dataclass(frozen=True)
class Timing:
    """Times of the control step (µs)."""

    parts: dict[str, tuple[float, float]]  # native time of each part of `PAPER`: serial, in lanes
    forms: dict[str, float]  # one call from Python: "serial", "simd", "threads", "pipelined"
    corrections: tuple[float, int]  # of the forward kinematics: on average, at most
    counts: dict[str, int]  # operations of a leg's routines alone, their sum, and of the one program
    rate: float  # Hz, of the loop in which the following were measured
    late: Floats  # from the time at which a step should begin to when it does
    took: Floats  # that it takes
    missed: int  # steps that ended after the next one's time


def measured(geometry: Geometry, *, steps: int = 20_000, rate: float = 10_000.0, rounds: int = 5) -> Timing:
    """Measure all of it; the loop makes so many `steps` at a `rate` (Hz)."""
    raise NotImplementedError
