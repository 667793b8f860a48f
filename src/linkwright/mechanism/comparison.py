"""Whether two descriptions are the same mechanism but for rounding; nothing is computed with either."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.mechanism.description import BODY_ARRAYS, JOINT_ARRAYS, LIMITS, Description
from linkwright.mechanism.elements import Rod, laws_of
from linkwright.mechanism.system import System

#: What changes a prescribed motion, or where something of it is looked at.
GEOMETRY = ("ri", "pi", "rj", "pj", "pitch", "gear", "frame_r", "frame_p", "start_r", "start_p")


def parameters_used(d: Description, *, kinematic: bool = False) -> set[str]:
    """The parameters that numbers and laws of a mechanism depend on; those of its prescribed motion alone, if asked."""
    laws = [x for (array, _), x in d.bindings.items() if (array in GEOMETRY if kinematic else array not in LIMITS)]
    laws += [driver.law for driver in d.drivers] + [tie.length for tie in d.ties if isinstance(tie, Rod)]
    laws += [x.value for x in d.initial]
    if not kinematic:
        laws += [law for element in d.elements for law in laws_of(element)]
    return {name for law in laws for name in law.names()} & d.parameters.keys()


def alike(one: Description, other: Description, *, kinematic: bool = False) -> bool:
    """Whether two mechanisms with the same parts move alike, but for rounding."""
    if list(one.parameters) != list(other.parameters) or one.nb != other.nb or one.nj != other.nj:
        return False
    arrays = [x for x in (*BODY_ARRAYS, *JOINT_ARRAYS) if x not in LIMITS]  # no analysis looks at limits
    arrays += ["gravity", "frame_r", "frame_p", "start_r", "start_p", "gear"]
    if kinematic:
        arrays = [x for x in arrays if x in (*GEOMETRY, "kind", "parent", "child")]
    for name in arrays:
        x, y = (np.asarray(getattr(d, name), dtype=np.float64) for d in (one, other))
        rounding = 1e-13 * float(np.max(np.abs(y), initial=0.0))  # an inertia in µm and mg is 1e-18 kg m²
        if x.shape != y.shape or not np.allclose(x, y, rtol=1e-12, atol=rounding):
            return False
    parts = ["drivers", "ties", "initial", *(() if kinematic else ("elements",))]
    if any(getattr(one, name) != getattr(other, name) for name in parts):
        return False
    return _asked(one.system, kinematic) == _asked(other.system, kinematic)


def _asked(system: System | None, kinematic: bool) -> tuple[Any, ...]:
    """What of a SYSTEM changes numbers, where the times are given."""
    s = system or System()
    settings = (s.assembly_tolerance, s.lu_tolerance, s.freedom, s.newton_tolerance, s.constraint_tolerance)
    return settings if kinematic else (*settings, s.method, s.rtol, s.atol, s.dt)
