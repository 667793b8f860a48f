"""`lw.analyse`: what a model's SYSTEM asks for, ending in a `Solution`: prescribed motion, caused motion, or rest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from os import PathLike
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from linkwright.analysis import fine_motion, force_series
from linkwright.analysis.curve_series import curve_series
from linkwright.base.activity import activity
from linkwright.base.arguments import check_names, real_array
from linkwright.base.arrays import Floats
from linkwright.constraints.kinematic_motion import times_of
from linkwright.constraints.kinematics import Kinematics, Motion
from linkwright.constraints.model_warnings import remarks
from linkwright.constraints.newton import EXACT
from linkwright.dynamics.closed.initial_state import at_initial_state
from linkwright.dynamics.equilibrium import NoEquilibrium
from linkwright.errors import AssemblyError, JammedError, LinkwrightError, ModelError
from linkwright.mechanism import Mechanism, mechanism_of
from linkwright.model.coupling_relation import timed_couplings
from linkwright.model.curve_elements import parts_of_curves
from linkwright.model.description import Description
from linkwright.model.elements import JointForce
from linkwright.model.expression import Name
from linkwright.model.model_checks import listed
from linkwright.model.quantities import recognised
from linkwright.model.requested_analysis import FREEDOMS, AnalysisKind, System, idle_settings
from linkwright.results.curve_ends import up_to_ends
from linkwright.results.solution import Solution
from linkwright.results.status import Counters, Status
from linkwright.simulation.python_laws import Law, LawFailed
from linkwright.simulation.run_settings import Saving, Stepping
from linkwright.simulation.simulate import simulate

#: Called as a run goes on, with how far it is and how far it goes: time points, or seconds.
Progress = Callable[[Any, Any], None]


KINDS: tuple[str, ...] = get_args(AnalysisKind)


#: Settings by the kinds of analysis that take them; all others are of simulations.
_PRESCRIBED = ("kinematic", "inverse dynamic")


_TAKEN_BY = dict.fromkeys(("freedom", "newton_tolerance", "constraint_tolerance"), _PRESCRIBED)


def check_kind(d: Description, kind: str, settings: Iterable[str]) -> None:
    """Refuse a kind of analysis that there is not, and settings (by name) that it does not take."""
    check_names("analysis", [kind], KINDS)
    for name in settings:
        kinds = _TAKEN_BY.get(name, ("dynamic",))
        if kind not in kinds:
            text = f"{kind} analysis takes no {name!r}; it is a setting of {kinds[0]} analysis"
            raise ModelError(text, element=d.name)


def analyse(
    mech: Mechanism | str | PathLike[str],
    *,
    times: ArrayLike | None = None,
    analysis: str | None = None,
    freedom: str | None = None,
    newton_tolerance: float | None = None,
    constraint_tolerance: float | None = None,
    parameters: dict[str, float] | None = None,
    progress: Progress | None = None,
    **simulation: Any,
) -> Solution:
    """The analysis that a model's SYSTEM asks for, as a Solution.

    mech: a Mechanism, or the path of a model file.

    times: the time points (s), (T,) and increasing; by default those of the SYSTEM.

    analysis: by default that of the SYSTEM, or one of

    - "kinematic": position, velocity and acceleration of every body as drivers prescribe;
    - "dynamic": the motion from the model's initial conditions under its forces, by `lw.simulate`;
    - "static": equilibria, at every time if the forces or drivers depend on time;
    - "inverse dynamic": the kinematic motion, and the forces of the drivers that cause it.

    freedom: how undriven degrees of freedom move in kinematic analysis: "minimum-norm" (the velocities of least norm)
    or "pivoting" (the method of the paper); by default as the SYSTEM says.

    newton_tolerance: of kinematic and inverse dynamic analysis; Newton's method ends when its last correction is at
    most this part of the bodies' sizes, and radians. 3e-9 by default, after which rounding is left.

    constraint_tolerance: of the same analyses; the gap (m, angles by the arc they make at the mechanism's size) at
    which constraints count as met. 1e-9 of the mechanism's size by default.

    parameters: other values of the model's parameters, by name; none by default. A file is read with them.

    progress: a function that is called with the time points, or seconds, so far and in all; none by default.

    simulation: arguments of `lw.simulate` for dynamic analysis: tau, method, rtol, dt, events, stepping, saving; those
    that are left out are the SYSTEM's.

    Forces are in `sol.series`. A run that cannot continue is returned as far as it went, and `sol.status` says why.
    Raises AssemblyError if the mechanism cannot be assembled at the start, ModelError for arguments that the analysis
    does not take, NameNotFound for a name that there is not.

    >>> import linkwright as lw
    >>> sol = lw.analyse(lw.chain(1), times=[0.0, 0.1, 0.2], analysis="dynamic")
    >>> sol.q.shape
    (3, 1)
    """
    mech = mechanism_of(mech, parameters)
    d = mech.description
    system: System = d.system or System()
    kind = analysis or system.analysis
    newton = {"newton_tolerance": newton_tolerance, "constraint_tolerance": constraint_tolerance}
    asked = {key: value for key, value in {"freedom": freedom, **newton}.items() if value is not None}
    check_kind(d, kind, [*asked, *simulation])
    if times is None and d.system is None:
        raise ModelError(f"{d.name!r} has no time range; give times=..., or a SYSTEM in the model", element=d.name)
    points = times_of(system.start, system.end, system.interval) if times is None else real_array("times", times)
    choice: Any = freedom or system.freedom
    check_names("value of freedom", [choice], FREEDOMS)
    system = replace(system, **_tolerances({key: value for key, value in asked.items() if key in newton}))
    notes = [*idle_settings(system, kind, choice), *remarks(d, kind, np.atleast_1d(points), mech.tree)]
    with activity("assembling") as work:
        progress = progress or work.progress
        if kind == "dynamic":
            return _with_notes(_dynamic(mech, system, points, simulation, progress), notes)
        if kind == "static":
            return _with_notes(_static(mech, points, progress), notes)
        if kind == "inverse dynamic":
            return _with_notes(_inverse_dynamic(mech, system, points, choice, progress), notes)
        return _with_notes(kinematic(mech, system, points, choice, progress), notes)


def _tolerances(asked: dict[str, Any]) -> dict[str, Any]:
    """Tolerances as numbers; an error names all that cannot be."""
    problems = []
    for name, value in asked.items():
        if not isinstance(value, int | float | np.number) or isinstance(value, bool) or not 0.0 < value < np.inf:
            problems.append(f"{name} must be a finite number greater than zero, not {value!r}")
    if problems:
        raise ModelError("; ".join(problems))
    return {name: float(value) for name, value in asked.items()}


def _with_notes(solution: Solution, notes: Collection[str]) -> Solution:
    """The solution with further notes in its status."""
    solution.add_notes(notes)
    return solution


def ready(mech: Mechanism) -> tuple[str, ...]:
    """What a person should know before the analysis that SYSTEM asks for; raises what the analysis would refuse.

    The same checks, of masses and drivers and of the initial state, without the motion.
    """
    d = mech.description
    kind = "kinematic" if d.system is None else d.system.analysis
    if kind != "kinematic":
        refuse_massless(mech)
    if kind == "inverse dynamic":
        refuse_undriven(mech)
    if not d.initial:
        return ()
    t = 0.0 if d.system is None else d.system.start
    if d.system is None or kind in ("dynamic", "static"):
        return mech.auxiliary.initial_state(t).notes
    return at_initial_state(mech, t)[1]


def _dynamic(
    mech: Mechanism, system: System, points: Floats, settings: dict[str, Any], progress: Progress | None
) -> Solution:

    refuse_massless(mech)
    if len(points) < 2:
        raise ModelError(f"{mech.name!r} has one time point only; a simulation needs a start and an end")
    chosen = {"method": system.method, "rtol": system.rtol, "dt": system.dt, **settings}
    if settings.get("method") not in (None, system.method) and "dt" not in settings:
        chosen["dt"] = None  # the model's step is meant for the model's method
    stepping, saving = chosen.pop("stepping", Stepping()), chosen.pop("saving", Saving())
    if isinstance(stepping, Stepping) and isinstance(saving, Saving):  # else `simulate` says so
        if stepping.t_start or saving.times is not None or saving.interval is not None:
            text = "the times of an analysis are the model's, or times=...; leave t_start, times and interval out"
            raise ModelError(f"{text} of lw.Stepping and lw.Saving")
        atol = system.atol if stepping.atol is None else stepping.atol
        stepping = replace(stepping, t_start=float(points[0]), atol=atol)
        saving = replace(saving, times=points, progress=progress or saving.progress)
    solution = simulate(mech, float(points[-1]), stepping=stepping, saving=saving, **chosen)
    solution.add_notes(_beyond_limits(solution, _stopped(mech.description)))
    return _with_forces(solution.mechanism, solution, settings.get("tau"))


def _static(mech: Mechanism, points: Floats, progress: Progress | None) -> Solution:
    """States of rest, each sought from the one before."""
    refuse_massless(mech)
    nearest = mech.auxiliary.nearest
    mech = nearest.mechanism
    when = points if mech.programs.needs_time else points[:1]
    state = mech.auxiliary.initial_state(float(when[0]))
    q = state.q
    rows: list[Floats] = []
    work, unstable = 0, ""
    status = Status(True, time=float(when[-1]))
    for k, t in enumerate(when):
        try:
            equilibrium = mech.equilibrium(q, t=float(t))
        except NoEquilibrium as error:
            reason, _, advice = str(error).partition("; ")
            message = f"at t = {t:.9g} s {reason}"
            status = Status(False, message, "no equilibrium", float(t), residual=error.acceleration, advice=advice)
            break
        q = equilibrium.q
        rows.append(q)
        work += equilibrium.iterations
        if not equilibrium.stable and not unstable:
            unstable = f"the equilibrium at t = {t:.6g} s is unstable: the least push takes the mechanism out of it"
        if progress is not None:
            progress(k + 1, len(when))
    further = [unstable] if unstable else []
    if mech.friction is not None:
        further.append(f"at rest there is no force of {listed(list(mech.friction.names))}, which follows reactions")
    status = replace(status, notes=(*nearest.notes, *state.notes, *further))
    none = np.zeros((len(rows), mech.nv))
    table = np.array(rows).reshape(len(rows), mech.nq)
    counters = Counters(newton_iterations=work, points=len(rows))
    d = mech.description
    solution = Solution.of_states(
        d, when[: len(rows)], table, none, none, status=status, counters=counters, mechanism=mech
    )
    return _with_forces(mech, solution)


def _inverse_dynamic(
    mech: Mechanism, system: System, points: Floats, freedom: Any, progress: Progress | None
) -> Solution:
    """The motion that drivers prescribe, and their forces."""
    refuse_massless(mech)
    refuse_undriven(mech)
    solution = kinematic(mech, system, points, freedom, progress)
    same = solution.description is mech.description
    return _with_forces(mech if same else mech.auxiliary.nearest.mechanism, solution)


def refuse_undriven(mech: Mechanism) -> None:
    """Inverse dynamics finds the forces of drivers: they must be there, and leave nothing free."""
    d = mech.description
    if not (d.drivers or timed_couplings(d)):
        text = f"{d.name!r} has no drivers, and inverse dynamic analysis finds the forces of drivers; add some, or "
        raise ModelError(text + "use DYNAMIC ANALYSIS", element=d.name)
    left = mech.dof().left
    if left:
        text = f"the drivers of {d.name!r} leave {left} degree{'s' if left > 1 else ''} of freedom to themselves; "
        raise ModelError(text + "drive these too, or use DYNAMIC ANALYSIS", element=d.name)


def _with_forces(mech: Mechanism, solution: Solution, tau: Any = None) -> Solution:
    """The solution with the forces that acted as its series; tau is what `lw.simulate` takes."""
    try:
        series, notes = force_series.forces(mech, solution, _along(solution, tau, mech.nv))
    except JammedError as error:
        message, _, advice = str(error).partition("; ")
        status = replace(solution.status, ok=False, message=message, reason="self-locking", time=error.time)
        solution.status = replace(status, element=error.element, advice=advice)
        return solution
    except LawFailed as error:
        series, notes = {}, [f"forces are left out: {error}"]
    except KeyboardInterrupt:  # the motion is there, and may have taken hours
        series, notes = {}, ["forces are left out: interrupted while they were computed"]
    return _with_notes(solution.with_series({**curve_series(solution), **series}), notes)


def _along(solution: Solution, tau: Any, nv: int) -> Floats:
    """Joint forces (T, nv) at the points of a motion, from an array or a law of t, q and v."""
    if not callable(tau):
        return np.array(np.broadcast_to(0.0 if tau is None else real_array("tau", tau), (len(solution), nv)))
    law, rows = Law("tau", tau, None, (nv,)), zip(solution.time.tolist(), solution.q, solution.v, strict=True)
    return np.array([law(t, q.copy(), v.copy()) for t, q, v in rows], float).reshape(len(solution), nv)


def refuse_massless(mech: Mechanism) -> None:
    """Forces move masses: a mechanism that has none of its own at all is an error that names the bodies."""
    d = mech.description
    if not np.any(d.mass > 0.0) and not np.any(d.armature > 0.0):
        text = f"no body of {d.name!r} has a mass, so that forces say nothing of its motion; give masses and inertias "
        raise LinkwrightError(text + f"to {listed(list(d.body_names[:20]))}")


def kinematic(
    mech: Mechanism,
    system: System,
    points: Floats,
    choice: Any,
    progress: Progress | None = None,
) -> Solution:
    """The motion that drivers prescribe; where rounded numbers leave redundant loops open, that of the nearest
    mechanism whose loops close."""
    d = placed = mech.description
    count = len(np.atleast_1d(points))
    begun: tuple[str, ...] = ()
    if d.initial and count and np.isfinite(np.atleast_1d(points)[0]):
        placed, begun = at_initial_state(mech, float(np.atleast_1d(points)[0]))
    placed = placed if placed.system == system else replace(placed, system=system)

    def motion_at(times: Floats) -> Motion:
        return Kinematics(placed).motion(
            times,
            assembly_tolerance=system.assembly_tolerance,
            lu_tolerance=system.lu_tolerance,
            freedom=choice,
            progress=None if progress is None else (lambda k: progress(k, count)),
        )

    try:
        fine = None if choice == "pivoting" else _fine(mech, system, points, motion_at, begun)
        if fine is not None:
            if progress is not None:
                progress(count, count)
            return fine
        motion = motion_at(points)
    except AssemblyError:
        nearest = mech.auxiliary.nearest
        if system.assembly_tolerance is not None or nearest.mechanism is mech:
            raise
        return _with_notes(kinematic(nearest.mechanism, system, points, choice, progress), nearest.notes)
    stop = motion.stop
    if motion.miss > EXACT * d.length_scale or stop is not None:
        nearest = mech.auxiliary.nearest
        if nearest.mechanism is not mech:
            return _with_notes(kinematic(nearest.mechanism, system, points, choice, progress), nearest.notes)
        begun = (*begun, *nearest.notes)
    if stop is None:
        status = Status(True, notes=(*begun, *motion.notes), time=float(motion.times[-1]))
    else:
        notes = (*begun, *motion.notes)
        status = Status(False, stop.message, stop.reason, stop.time, stop.element, stop.residual, notes, stop.advice)
    counters = Counters(
        motion.newton_iterations, motion.tape_evaluations, motion.linear_solves, motion.substeps, len(motion.times)
    )
    return _completed(_solution_of(d, motion, status, counters))


def _fine(
    mech: Mechanism, system: System, points: Floats, motion_at: Callable[[Floats], Motion], begun: tuple[str, ...]
) -> Solution | None:
    """The motion at many points in the spanning tree's coordinates, where all of it is plainly regular."""
    if not fine_motion.worthwhile(mech, points):
        return None

    def begin() -> tuple[Motion, Solution]:
        motion = motion_at(points[:1])
        return motion, _solution_of(mech.description, motion, Status(True), Counters())

    start = fine_motion.start_of(mech, float(points[0]), system, begin)
    solution = None if start is None else fine_motion.fine_motion(mech, points, start)
    if solution is not None:
        solution.status = replace(solution.status, notes=(*begun, *solution.status.notes))
        solution = _completed(solution)
    return solution


def _completed(solution: Solution) -> Solution:
    """A prescribed motion up to the ends of its curves, with where points are on them."""
    solution = up_to_ends(solution)
    return _with_notes(solution.with_series(curve_series(solution)), _beyond_limits(solution))


def _solution_of(d: Description, motion: Motion, status: Status, counters: Counters) -> Solution:
    arrays = (motion.times, *(x[..., part] for x, part in _parts(motion)))
    return Solution.of(d, *arrays, status=status, counters=counters, iterations=motion.iterations)


def _parts(motion: Motion) -> list[tuple[Any, slice]]:
    """Position and orientation, velocities, accelerations, as a Solution takes them."""
    first, second = slice(0, 3), slice(3, None)
    return [(x, part) for x in (motion.q, motion.v, motion.a) for part in (first, second)]


def _stopped(d: Description) -> set[str]:
    """The joints that have stops."""
    forces = [e for e in d.elements if isinstance(e, JointForce)]
    known = [recognised(e.law, Name("q"), Name("v"), d.parameters) for e in forces]
    return {e.joint for e, law in zip(forces, known, strict=True) if law is not None and law[0] == "stop"}


def _beyond_limits(solution: Solution, besides: Collection[str] = ()) -> list[str]:
    """A line for every joint (but some) that goes beyond its limits, which an analysis does not apply."""
    d = solution.description
    notes = []
    for j in np.flatnonzero(np.isfinite(d.lower) | np.isfinite(d.upper)).tolist():
        name = d.joint_names[j]
        if d.kind_of(j).nq != 1 or not len(solution) or name in (*besides, *parts_of_curves(d.point_constraints)):
            continue
        q = solution.joint(name)[:, 0]
        slack = 1e-9 * (d.length_scale if d.kind_of(j).lengths[0][0] else 1.0)
        beyond = np.flatnonzero((q < d.lower[j] - slack) | (q > d.upper[j] + slack))
        if len(beyond):
            when = solution.time[beyond[0]]
            notes.append(f"joint {name!r} goes beyond its limits from t = {when:.6g} on; they are not applied")
    return notes
