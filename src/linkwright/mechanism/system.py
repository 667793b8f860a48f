"""What a model file asks to be done with its mechanism: kind of analysis, times, tolerances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AnalysisKind = Literal["kinematic"]
Freedom = Literal["minimum-norm", "pivoting"]


@dataclass(frozen=True)
class System:
    """An analysis, as `SYSTEM (...)` in a model file says it.

    Times are in seconds. The assembly tolerance is how far, in metres or radians, the mechanism as drawn may miss
    its joints after assembly; Newton's own tolerance is tight, and the LU tolerance is the pivot, as a part of its
    row, below which `pivoting` takes an equation for dependent.
    """

    analysis: AnalysisKind = "kinematic"
    start: float = 0.0
    end: float = 1.0
    interval: float = 0.01
    lu_tolerance: float = 1e-10
    assembly_tolerance: float = 1e-3
    freedom: Freedom = "minimum-norm"
