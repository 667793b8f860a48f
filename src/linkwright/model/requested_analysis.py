"""What a model file asks to be done with its mechanism: kind of analysis, times, tolerances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

AnalysisKind = Literal["kinematic", "dynamic", "static", "inverse dynamic"]
Freedom = Literal["minimum-norm", "pivoting"]


FREEDOMS: tuple[str, ...] = get_args(Freedom)
#: The ways to simulate; the first is the default.
SIMULATION_METHODS = ("rk45", "dop853", "rk4", "semi-implicit-euler", "radau")

#: Those of them that take steps of one length, which has to be given.
FIXED_STEP_METHODS = ("rk4", "semi-implicit-euler")

#: Newton's method converges quadratically: what is left after a correction of this size is rounding.
NEWTON_TOLERANCE = 3e-9
#: What rounding lets the two tolerances of Newton's method be at least, as parts of sizes.
LEAST_TOLERANCE = 1e-14


@dataclass(frozen=True)
class System:
    """An analysis, as `SYSTEM (...)` in a model file says it.

    Times are in seconds. The assembly tolerance (m) is the gap that assembly may leave, and never more than 1e-3 of the
    mechanism's size (None: that alone). Newton's method ends at a time point when its last correction is below the
    Newton tolerance, a part of the bodies' sizes (of a turn: radians), and the constraints are met to the constraint
    tolerance (m, angles by the arc they make at the mechanism's size; None: 1e-9 of that size). The LU tolerance is the
    pivot, as a part of its row, below which `pivoting` takes an equation for dependent. Simulation has its `method`,
    relative and absolute tolerances, and `dt`, the step; None leaves the step to the method, and the absolute tolerance
    to the relative one.
    """

    analysis: AnalysisKind = "kinematic"
    start: float = 0.0
    end: float = 1.0
    interval: float = 0.01
    lu_tolerance: float = 1e-10
    assembly_tolerance: float | None = None
    newton_tolerance: float = NEWTON_TOLERANCE
    constraint_tolerance: float | None = None
    freedom: Freedom = "minimum-norm"
    method: str = "rk45"
    rtol: float = 1e-8
    atol: float | None = None
    dt: float | None = None


#: What the settings that are numbers are called in a model file.
LABELS = {
    "start": "starting time",
    "end": "ending time",
    "interval": "print interval",
    "lu_tolerance": "lu tolerance",
    "rtol": "relative tolerance",
    "atol": "absolute tolerance",
    "dt": "step",
    "assembly_tolerance": "assembly tolerance",
    "newton_tolerance": "newton tolerance",
    "constraint_tolerance": "constraint tolerance",
}
#: The settings of each kind of analysis; what is in none of these serves all.
_OF_SIMULATION = ("method", "rtol", "atol", "dt")
_OF_NEWTON = ("newton_tolerance", "constraint_tolerance", "freedom")


def idle_settings(system: System, kind: str, freedom: str | None = None) -> list[str]:
    """A line for every setting that a model gives another value than the usual one, and that its analysis ignores."""
    usual = System()
    changed = {name: getattr(system, name) for name in system.__dataclass_fields__}
    changed = {name: value for name, value in changed.items() if value != getattr(usual, name)}
    simulates, follows = kind == "dynamic", kind in ("kinematic", "inverse dynamic")
    idle: dict[str, str] = {}
    if not simulates:
        idle |= {name: f"{LABELS.get(name, name)} is for dynamic analysis" for name in _OF_SIMULATION}
    elif system.method in FIXED_STEP_METHODS or system.dt is not None:
        for name in ("rtol", "atol"):
            idle[name] = f"{LABELS[name]} is for methods that choose their steps, and this one has a step"
    if not follows:
        idle |= {name: f"{LABELS.get(name, name)} is for kinematic analysis" for name in _OF_NEWTON}
    if not follows or (freedom or system.freedom) != "pivoting":
        idle["lu_tolerance"] = "lu tolerance is for kinematic analysis with freedom = pivoting"
    return [f"{idle[name]}; it does nothing here" for name in changed if name in idle]
