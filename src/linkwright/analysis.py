"""`lw.analyse`: kinematic analysis of a mechanism or a model file, ending in a `Solution`."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.errors import ModelError, NameNotFound
from linkwright.model import Mechanism

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwright.constraints.kinematics import Motion
    from linkwright.mechanism.system import System
    from linkwright.results.solution import Solution


def analyse(
    mechanism: Mechanism | str | PathLike[str],
    *,
    times: ArrayLike | None = None,
    freedom: str | None = None,
    parameters: dict[str, float] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Solution:
    """Position, velocity and acceleration of every body, as the model's SYSTEM says; `times` overrides its times.

    `parameters` are other values for the model's parameters; a file is read with them, as by `linkwright run --set`.
    Motion that the constraints leave free is the one of least norm, or with freedom="pivoting" the paper's. A motion
    that cannot go on is returned as far as it went, and `sol.status` says why. Raises AssemblyError if the mechanism
    does not go together at the start.
    """
    from linkwright.constraints.kinematics import Kinematics
    from linkwright.constraints.motion import times_of
    from linkwright.mechanism.system import System
    from linkwright.results.solution import Solution
    from linkwright.results.status import Counters, Status
    from linkwright.sources import load

    if isinstance(mechanism, Mechanism):
        mech = mechanism.with_parameters(**parameters) if parameters else mechanism
    else:  # its reader alone knows the parameters that depend on others
        mech = load(fspath(mechanism), **({"parameters": parameters} if parameters else {}))
    d = mech.description
    system: System = d.system or System()
    if times is None and d.system is None:
        raise ModelError(f"{d.name!r} says no times; give times=..., or a SYSTEM in the model", element=d.name)
    points = times_of(system.start, system.end, system.interval) if times is None else np.asarray(times, float)
    choice: Any = freedom or system.freedom
    if choice not in ("minimum-norm", "pivoting"):
        raise NameNotFound("way with freedom", str(choice), ["minimum-norm", "pivoting"])
    count = len(np.atleast_1d(points))
    motion = Kinematics(d).motion(
        points,
        assembly_tolerance=system.assembly_tolerance,
        lu_tolerance=system.lu_tolerance,
        freedom=choice,
        progress=None if progress is None else (lambda k: progress(k, count)),
    )
    stop = motion.stop
    if stop is None:
        status = Status(True, notes=motion.notes, time=float(motion.times[-1]))
    else:
        status = Status(
            False, stop.message, stop.reason, stop.time, stop.element, stop.residual, motion.notes, stop.advice
        )
    counters = Counters(
        motion.newton_iterations, motion.tape_evaluations, motion.linear_solves, motion.substeps, len(motion.times)
    )
    arrays = (motion.times, *(x[..., part] for x, part in _parts(motion)))
    made = Solution.of(d, *arrays, status=status, counters=counters, iterations=motion.iterations)
    beyond = _beyond_limits(made)
    if beyond:
        status = replace(status, notes=(*status.notes, *beyond))
        made = Solution.of(d, *arrays, status=status, counters=counters, iterations=motion.iterations)
    return made


def _parts(motion: Motion) -> list[tuple[Any, slice]]:
    """Position and orientation, velocities, accelerations, as a Solution takes them."""
    first, second = slice(0, 3), slice(3, None)
    return [(x, part) for x in (motion.q, motion.v, motion.a) for part in (first, second)]


def _beyond_limits(solution: Solution) -> list[str]:
    """A line for every joint that goes beyond its limits, which an analysis does not apply."""
    d = solution.description
    told = []
    for j in np.flatnonzero(np.isfinite(d.lower) | np.isfinite(d.upper)).tolist():
        name = d.joint_names[j]
        if d.kind_of(j).nq != 1 or not len(solution):
            continue
        value = solution.joint(name)[:, 0]
        out = np.flatnonzero((value < d.lower[j] - 1e-9) | (value > d.upper[j] + 1e-9))
        if len(out):
            when = solution.time[out[0]]
            told.append(f"joint {name!r} goes beyond its limits from t = {when:.6g} on; they are not applied")
    return told
