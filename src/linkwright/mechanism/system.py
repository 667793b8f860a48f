"""What a model file asks to be done with its mechanism: kind of analysis, times, tolerances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AnalysisKind = Literal["kinematic", "dynamic", "static", "inverse dynamic"]
Freedom = Literal["minimum-norm", "pivoting"]
#: The ways to simulate; the first is the default.
SIMULATION_METHODS = ("rk45", "dop853", "rk4", "semi-implicit-euler", "radau")

#: Those of them that take steps of one length, which has to be said.
FIXED_STEP_METHODS = ("rk4", "semi-implicit-euler")


@dataclass(frozen=True)
class System:
    """An analysis, as `SYSTEM (...)` in a model file says it.

    Times are in seconds. The assembly tolerance is how far, in metres or radians, the mechanism as drawn may miss
    its joints after assembly; Newton's own tolerance is tight, and the LU tolerance is the pivot, as a part of its
    row, below which `pivoting` takes an equation for dependent. Simulation has its `method`, relative and absolute
    tolerances, and `dt`, the step; None leaves the step to the method, and the absolute tolerance to the relative one.
    """

    analysis: AnalysisKind = "kinematic"
    start: float = 0.0
    end: float = 1.0
    interval: float = 0.01
    lu_tolerance: float = 1e-10
    assembly_tolerance: float = 1e-3
    freedom: Freedom = "minimum-norm"
    method: str = "rk45"
    rtol: float = 1e-8
    atol: float | None = None
    dt: float | None = None
