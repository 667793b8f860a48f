"""The analysis that outputs are of: kind, times and settings, as they are asked for or as the model's SYSTEM says."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import real_array
from linkwright.base.arrays import Floats
from linkwright.constraints.kinematic_motion import times_of
from linkwright.errors import ModelError, NameNotFound
from linkwright.model.description import Description
from linkwright.model.system import AnalysisKind, System

KINDS: tuple[str, ...] = get_args(AnalysisKind)


@dataclass(frozen=True)
class AnalysisSettings:
    """An analysis of `lw.sweep`, `lw.optimise` or `lw.sensitivities` with its settings; None leaves one to the model.

    Main arguments:

    - `kind`: "kinematic", "dynamic", "static" or "inverse dynamic"; by default that of the model's SYSTEM.
      `analysis="dynamic"` is short for `analysis=lw.AnalysisSettings("dynamic")`.
    - `method`: of dynamic analysis, as `lw.simulate` has it. Derivatives are of methods with fixed steps, by default
      "rk4".
    - `dt`: the step of dynamic analysis (s).

    Other arguments, of studies alone:

    - `rtol`, `atol`: the relative and absolute tolerance of methods that choose their steps.
    - `freedom`: of kinematic and inverse dynamic analysis, "minimum-norm" or "pivoting", as `lw.analyse` has it.

    `lw.sensitivities(model, "final(block.x)", "mass", analysis=lw.AnalysisSettings("dynamic", dt=1e-3))`
    """

    kind: str | None = None
    method: str | None = None
    dt: float | None = None
    rtol: float | None = None
    atol: float | None = None
    freedom: str | None = None

    @classmethod
    def of(cls, analysis: Any) -> AnalysisSettings:
        """An analysis as it is given: settings, the kind alone, or None."""
        return analysis if isinstance(analysis, cls) else cls(analysis)

    @property
    def chosen(self) -> dict[str, Any]:
        """The settings other than the kind that are not left to the model."""
        values = {x.name: getattr(self, x.name) for x in fields(self) if x.name != "kind"}
        return {name: value for name, value in values.items() if value is not None}


#: Settings by the kinds of analysis that take them.
_TAKEN_BY = {
    "method": ("dynamic",),
    "dt": ("dynamic",),
    "rtol": ("dynamic",),
    "atol": ("dynamic",),
    "freedom": ("kinematic", "inverse dynamic"),
}


def kind_of(d: Description, analysis: AnalysisSettings) -> str:
    """The kind of analysis that is asked for; settings must be of this kind."""
    kind = analysis.kind or (d.system or System()).analysis
    if kind not in KINDS:
        raise NameNotFound("analysis", str(kind), list(KINDS))
    for name in analysis.chosen:
        if kind not in _TAKEN_BY[name]:
            text = f"{kind} analysis takes no {name!r}; it is a setting of {_TAKEN_BY[name][0]} analysis"
            raise ModelError(text, element=d.name)
    return kind


def times_asked(d: Description, kind: str, times: ArrayLike | None) -> Floats:
    """(T,): the times that are asked for, or the model's; a state of rest needs none."""
    if times is None:
        if d.system is None and kind != "static":
            raise ModelError(f"{d.name!r} says no times; give times=..., or a SYSTEM in the model", element=d.name)
        system = d.system or System()
        return times_of(system.start, system.end, system.interval)
    try:
        points = np.atleast_1d(real_array("times", times))
    except (TypeError, ValueError):
        raise ModelError(f"times are {times!r}; give numbers of seconds") from None
    if points.ndim != 1 or not len(points) or not np.isfinite(points).all() or np.any(np.diff(points) <= 0.0):
        raise ModelError("times are one row of finite numbers that grow; give times=[0.0, 0.1, ...]")
    return points
