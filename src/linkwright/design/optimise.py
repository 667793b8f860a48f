"""`lw.optimise`: the parameters at which an output of an analysis is best, by SciPy with exact derivatives; its
settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import check_names, finite_number, takes_settings, whole_number
from linkwright.base.arrays import Floats
from linkwright.design.search_space import (
    Evaluations,
    Goal,
    Limit,
    NoSlope,
    Optimum,
    Point,
    Space,
    limits_of,
    overstepped,
    space_of,
)
from linkwright.design.sensitivity import Problem
from linkwright.errors import ModelError
from linkwright.mechanism import Mechanism, mechanism_of
from linkwright.outputs.derivatives import Outputs
from linkwright.outputs.output_language import AnalysisSettings, Wanted, named
from linkwright.results.status import Status

SOLVERS = ("SLSQP", "trust-constr", "L-BFGS-B", "least-squares")


@dataclass(frozen=True)
class Search:
    """How an optimum is searched for.

    Main arguments:

    - `solver`: one of SciPy's "SLSQP", "trust-constr" and "L-BFGS-B" (bounds of parameters only), or "least-squares"
      for differences from targets; by default "least-squares" for targets without constraints, else "SLSQP".
    - `starts`: from how many places, 1 by default. The first is the model's own values; the others are drawn from
      within the bounds by a Latin hypercube, and the best end counts.
    - `seed`: of these places, a whole number, 0 by default.

    Other arguments:

    - `tolerance`: a number between 0 and 1, 1e-9 by default: the relative change of the objective at which the solver
      ends, and the part of a limit's size by which it may be overstepped, where that is more than 1e-6.
    - `iterations`: the most that a solver takes from each start, 200 by default.
    - `progress`: a function that is called with the evaluations so far and the best objective, after each evaluation;
      none by default.

    Raises NameNotFound for another solver, ModelError for other numbers.

    >>> search = lw.Search(starts=8, seed=1)  # for lw.optimise(..., search=search)
    """

    solver: str | None = None
    starts: int = 1
    seed: int = 0
    tolerance: float = 1e-9
    iterations: int = 200
    progress: Callable[[int, float], None] | None = None

    def __post_init__(self) -> None:
        if self.solver is not None:
            check_names("solver", [self.solver], SOLVERS)
        whole_number("starts", self.starts, 1)
        whole_number("iterations", self.iterations, 1)
        if not 0.0 < finite_number("tolerance", self.tolerance) < 1.0:
            raise ModelError(f"tolerance must be a number between 0 and 1, not {self.tolerance!r}")


WITHIN = 1e-6  # of a limit's size may be overstepped, or as much as the tolerance that is asked for
GAIN = 1e-9  # of the objective's size: less is no gain


@takes_settings(analysis=AnalysisSettings, search=Search)
def optimise(
    mech: Mechanism | str | PathLike[str],
    objective: Any,
    parameters: Any,
    constraints: Any = (),
    *,
    maximise: bool = False,
    times: ArrayLike | None = None,
    analysis: str | AnalysisSettings | None = None,
    search: Search | None = None,
) -> Optimum:
    """The values of parameters at which an objective is least, or greatest.

    Main arguments:

    - `mech`: a `Mechanism`, or the path of a model file.
    - `objective`: an output of the whole motion ("range(block.x)", or a function of a state), or series with targets,
      {"pen.x": x, "pen.y": y}, each (T,) or one number: then the sum of squares of the differences is made least.
    - `parameters`: {"crank": (lower, upper)} or (lower, start, upper), None where open; the start is by default the
      model's value.
    - `constraints`: outputs with limits, {"max(d.angle)": (0.2, None)}, none by default; one that varies in time is
      limited at all times, and one number is an equation.
    - `maximise`: make the objective greatest (False by default).
    - `times`: (T,), growing (s); by default those of the model's SYSTEM.
    - `analysis`: "kinematic", "dynamic" or "static", or an `lw.AnalysisSettings` with method and step; by default that
      of the model's SYSTEM.

    Other arguments:

    - `search`: an `lw.Search`: solver, several starts, tolerance, iterations, progress; by default `lw.Search()`.

    Returns an `Optimum`. Derivatives are exact, as `lw.sensitivities` has them. A place where the mechanism cannot be
    assembled makes the step shorter; an interrupt ends with the best so far. Raises ModelError and NameNotFound for
    invalid arguments, and where the start cannot be evaluated.

    >>> mech = lw.from_dh([{"a": "length", "mass": 1.0}], gravity=(0, -9.81, 0))  # falls from the horizontal
    >>> options = {"analysis": lw.AnalysisSettings("dynamic", dt=0.05), "times": [0.0, 0.1]}
    >>> best = lw.optimise(mech, "final(joint1.angle)", {"length": (0.5, 2.0)}, maximise=True, **options)
    >>> round(best.parameters["length"], 6)
    2.0
    """
    since = perf_counter()
    mech = mechanism_of(mech)
    space = space_of(mech.parameters, parameters)
    limits = limits_of(constraints)
    search = search or Search()
    goal, wanted = _goal(objective, maximise)
    for name in set(wanted) & set(limits):
        raise ModelError(f"{name!r} is both the objective and a constraint; give the constraint a name of its own")
    outputs = Outputs(mech.description, {**wanted, **{name: x[0] for name, x in limits.items()}})
    _check_goal(outputs, goal)
    start = dict(zip(space.names, space.start.tolist(), strict=True))
    problem = Problem(mech, start, outputs, analysis=analysis, times=times)
    bounds = [Limit(name, low, high) for name, (_, low, high) in limits.items()]
    _check_targets(goal, problem)
    evaluations = Evaluations(problem, space, goal, bounds, search.progress, max(WITHIN, search.tolerance))
    chosen = _solver(search.solver, goal, bounds)
    starts = _starts(evaluations, space, search)
    first, message = evaluations.at(starts[0], slopes=False), ""
    try:
        for z in starts:
            before = evaluations.best
            complaint = _solved(chosen, evaluations, z, search)
            best = evaluations.best
            if best is not None and (best is not before or np.array_equal(best.z, z)):
                message = complaint  # that of the start which led to the best
    except KeyboardInterrupt:  # what was found is there, and may have taken hours
        message = "it was interrupted"
    return _optimum(evaluations, first, chosen, message, maximise, perf_counter() - since)


def _goal(objective: Any, maximise: bool) -> tuple[Goal, dict[str, Wanted]]:
    if isinstance(objective, Mapping):
        if maximise:
            raise ModelError("differences from targets are made small; leave maximise out")
        if not objective:
            raise ModelError("no target was given; give a series and what it should be, as {'pen.y': 1.2}")
        targets: dict[str, Floats] = {}
        wanted: dict[str, Wanted] = {}
        for output, target in objective.items():
            ((name, one),) = named(output).items()
            array = np.asarray(target)
            if array.dtype.kind not in "fiu" or not np.isfinite(array.astype(float)).all():
                raise ModelError(f"the target of {name!r} must be finite numbers, not {target!r}", element=name)
            targets[name], wanted[name] = array.astype(float), one
        return Goal(" and ".join(targets), 1.0, targets), wanted
    wanted = named(objective)
    if len(wanted) != 1:
        raise ModelError(f"one objective is optimised, not {len(wanted)}; weigh them in one expression, or limit some")
    (name,) = wanted
    return Goal(name, -1.0 if maximise else 1.0), wanted


def _check_goal(outputs: Outputs, goal: Goal) -> None:
    if goal.targets is not None:
        return
    output = next((x for x in outputs.list if x.name == goal.name), None)
    if output is None:
        raise ModelError(f"the objective {goal.name!r} is an array; return one number, as the sum of its squares")
    if output.series:
        text = (
            f"the objective {goal.name!r} is a number at every time; take one of the whole motion, as max({goal.name})"
        )
        raise ModelError(f"{text}, or give a target: {{{goal.name!r}: values}}", element=goal.name)


def _check_targets(goal: Goal, problem: Problem) -> None:
    for name, target in (goal.targets or {}).items():
        points = len(problem.times)
        if target.ndim and target.shape != (points,):
            text = f"the target of {name!r} has shape {target.shape}; there are {points} time points"
            raise ModelError(f"{text}: give one number, or one per time point", element=name)


def _solver(solver: str | None, goal: Goal, limits: list[Limit]) -> str:
    if solver is None:
        if goal.targets is not None and not limits:
            return "least-squares"
        return "SLSQP"
    if solver == "least-squares" and goal.targets is None:
        raise ModelError("least-squares needs series with targets, as {'pen.y': values}; use SLSQP")
    if limits and solver in ("least-squares", "L-BFGS-B"):
        raise ModelError(f"{solver} takes bounds of parameters and no other constraints; use SLSQP or trust-constr")
    return solver


def _starts(evaluations: Evaluations, space: Space, search: Search) -> list[Floats]:
    """The places to start from; the model's own must be one at which the objective has a value and a slope."""
    drawn = space.drawn(search.starts, search.seed)
    first = evaluations.at(drawn[0], slopes=True)
    if first.reason and search.starts == 1:
        where = ", ".join(f"{n} = {x:.6g}" for n, x in zip(space.names, first.values, strict=True))
        raise ModelError(
            f"the start {where} cannot be evaluated: {first.reason}. Give another start, as "
            f"{{{space.names[0]!r}: (lower, start, upper)}}, other times, or several starts",
            element=space.names[0],
        )
    good = [z for z in drawn if not evaluations.at(z, slopes=True).reason]
    if not good:
        text = f"none of {search.starts} starts can be evaluated; the first: {first.reason}"
        raise ModelError(text, element=space.names[0])
    return good


def _solved(solver: str, e: Evaluations, z: Floats, search: Search) -> str:
    """Run a solver from z; why it did not converge, empty if it did."""
    try:
        return _minimised(solver, e, z, search)
    except NoSlope as error:
        return f"it came to a place without slopes: {error}"


def _minimised(solver: str, e: Evaluations, z: Floats, search: Search) -> str:
    from scipy import optimize  # type: ignore[import-untyped]  # weight: scipy

    tolerance, iterations = search.tolerance, search.iterations
    e.at(z, slopes=True)
    low, high = e.space.bounds
    if solver == "least-squares":
        open_ = np.isinf(low).all() and np.isinf(high).all()
        inside = z if open_ else np.clip(z, low, high)
        # SciPy's bound of the gradient has units: without a measure a mechanism in millimetres would end too early.
        slopes = float(np.linalg.norm(e.residual_slopes(inside)))
        size = max(float(np.linalg.norm(e.residuals(inside))), 1e-3 * slopes) or 1.0
        outcome = optimize.least_squares(
            lambda x: e.residuals(x) / size,
            inside,
            jac=lambda x: e.residual_slopes(x) / size,
            bounds=(low, high),
            ftol=tolerance,
            xtol=tolerance,
            gtol=1e-3 * tolerance,
            max_nfev=iterations,
        )
        return "" if outcome.status > 0 else f"it stopped after {iterations} evaluations, before it had converged"
    options: dict[str, Any] = {"maxiter": iterations}
    if solver == "trust-constr":
        options |= {"gtol": tolerance, "xtol": 1e-10}
    elif solver == "SLSQP":
        options["ftol"] = tolerance
    else:
        options |= {"ftol": tolerance, "gtol": tolerance}
    # An objective that is nothing at its start is measured by how it changes.
    size = max(abs(e.value(z)), 1e-3 * float(np.linalg.norm(e.gradient(z)))) or 1.0
    outcome = optimize.minimize(
        lambda x: e.value(x) / size,
        z,
        jac=lambda x: e.gradient(x) / size,
        bounds=optimize.Bounds(low, high, keep_feasible=True),
        method=solver,
        options=options,
        constraints=[_constraint(e, limit) for limit in e.limits],
    )
    if outcome.success or (solver == "trust-constr" and outcome.status in (1, 2)):
        return ""
    if outcome.nit >= iterations:
        return f"it stopped after {iterations} iterations, before it had converged"
    return f"the solver stopped early: {str(outcome.message).strip().rstrip('.').lower()}"


def _constraint(e: Evaluations, limit: Limit) -> Any:
    """The limits of one output, as parts of their size."""
    from scipy.optimize import NonlinearConstraint  # type: ignore[import-untyped]  # weight: scipy

    return NonlinearConstraint(
        lambda z: e.rows_of(limit.name, z, slopes=False) / limit.size,
        limit.lower / limit.size,
        limit.upper / limit.size,
        jac=lambda z: e.rows_of(limit.name, z, slopes=True) / limit.size,
    )


def _optimum(e: Evaluations, first: Point, solver: str, message: str, maximise: bool, seconds: float) -> Optimum:
    best = e.best
    assert best is not None
    values = dict(zip(e.space.names, best.values.tolist(), strict=True))
    limited = [(x.name, best.outputs[x.name].value) for x in e.limits]
    spans = {name: (float(rows.min()), float(rows.max())) for name, rows in limited}
    limits = {x.name: (x.lower, x.upper) for x in e.limits}
    shown = [e.goal.sign * p.value for p in (best, first)]
    name = e.goal.name
    if e.goal.targets is not None:
        shown = [
            float(np.sqrt(2.0 * p.value / max(len(p.residuals), 1))) for p in (best, first) if p.residuals is not None
        ]
        name = f"rms difference of {name}"
    return Optimum(
        name, values, shown[0], shown[1], spans, _status(e, first, best, solver, message), e.history, e.count,
        e.gradients, e.failures, seconds, e.problem.mech, e.space, limits, maximise,
    )  # fmt: skip


def _status(e: Evaluations, first: Point, best: Point, solver: str, message: str) -> Status:
    if best.overstepped > e.within:
        worst = max(e.limits, key=lambda x: overstepped(x, best.outputs[x.name].value))
        limited = best.outputs[worst.name].value
        text = f"the limits of {worst.name!r} were not met: it is {limited.min():.6g}"
        text += f" … {limited.max():.6g}" if len(limited) > 1 else ""
        advice = "widen its limits or the bounds of the parameters, or try several starts"
        return Status(False, text, "constraint cannot be met", element=worst.name, advice=advice)
    if message:
        advice = "raise iterations=..., or start elsewhere" if "stopped after" in message else ""
        return Status(False, f"best of {e.count} evaluations; {message}", "not converged", advice=advice)
    gained = first.value - best.value
    if first.overstepped <= e.within and gained <= GAIN * abs(first.value):
        text = f"nothing to gain: the start is as good as any place near it, found by {solver}"
        return Status(
            True, text, "nothing to gain", advice="try several starts, or wider bounds" if e.count > 1 else ""
        )
    return Status(True, f"converged, by {solver}")
