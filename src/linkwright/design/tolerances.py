r"""`lw.tolerances`: what the tolerances of dimensions and the clearances of joints make of outputs.

With g the derivatives of an output, a dimension within [l, u] moves it by g l … g u to first order, and a clearance of
radius c by c |g| in its worst direction. The worst case is the sum of these, checked on the mechanism itself at the
vertices; the root sum of squares adds them as independent ones, and Monte Carlo draws whole mechanisms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import check_names, first_few, shown, takes_settings
from linkwright.base.arrays import Floats
from linkwright.design.clearances import with_clearances
from linkwright.design.output_tolerance import Contribution, MonteCarlo, OutputTolerance, WorstCase
from linkwright.design.sensitivity import Problem
from linkwright.design.tolerance_inputs import (
    Clearance,
    Dimension,
    ToleranceSettings,
    clearance_dimension,
    laws_of,
    parameter_dimension,
)
from linkwright.design.tolerance_report import Tolerances
from linkwright.errors import LinkwrightError, ModelError
from linkwright.mechanism import Mechanism, mechanism_of
from linkwright.model.model_checks import parameters_used
from linkwright.model.units import Shown
from linkwright.outputs.derivatives import Answer, Outputs, Series
from linkwright.outputs.output_language import AnalysisSettings, Output, Wanted, kind_of, named, output_of, times_asked
from linkwright.outputs.output_units import output_shown, parameter_shown
from linkwright.sweeps.case_engine import Engine, run_cases
from linkwright.sweeps.plan import Sampling
from linkwright.sweeps.sweep import sweep
from linkwright.sweeps.task import make_task

AT_ONCE = 16  # vertices that are computed together: where one has no value, the others are left out
HALVINGS = 10  # of the way to such a vertex, to find where it ends
ROUNDING = 1e-13  # of an output, what a dimension may change by rounding alone
_DIFFERENCES = "settings=lw.ToleranceSettings(derivatives='differences') computes both ends of each tolerance instead"


@takes_settings(settings=ToleranceSettings, analysis=AnalysisSettings)
def tolerances(
    mech: Mechanism | str | PathLike[str],
    outputs: Any,
    tolerances: Mapping[str, Any] | None = None,
    *,
    clearances: Mapping[str, Any] | None = None,
    distributions: str | Mapping[str, str] = "normal",
    analysis: str | AnalysisSettings | None = None,
    times: ArrayLike | None = None,
    settings: ToleranceSettings | None = None,
) -> Tolerances:
    """What tolerances of dimensions and clearances of joints make of outputs: four methods beside each other.

    Main arguments:

    - `mech`: a `Mechanism`, or the path of a model file.
    - `outputs`: a text as "stroke = max(block.x) - min(block.x)", one number of the whole motion, or several of them.
    - `tolerances`: of parameters, by name: 0.05 for ±0.05 (in SI units), (lower, upper) deviations, or texts
      as "0.5 deg" and "1 %"; none by default.
    - `clearances`: of revolute, prismatic and cylindrical joints, by name: a radius (m), by which their frames may be
      apart across the joint's axis in any direction, a text as "0.02 mm", or an `lw.Clearance`; none by default. A
      text without a unit is in the model's.
    - `distributions`: of the dimensions, "normal" (the default: the limits are at three standard deviations),
      "normal(2)" (at two), "uniform" or "triangular"; one for all, or by parameter.

    Other arguments:

    - `analysis`: "kinematic", "dynamic", "static" or "inverse dynamic", or an `lw.AnalysisSettings`; by default that
      of the model's SYSTEM.
    - `times`: (T,), growing (s); by default those of the model's SYSTEM.
    - `settings`: an `lw.ToleranceSettings`: draws, seed, vertices, second derivatives, differences.

    Returns `Tolerances`. Raises ModelError and NameNotFound for invalid arguments, ModelError where the mechanism has
    no value at a dimension within its tolerance (it says which, and how far it goes), and LinkwrightError where
    outputs have no derivative.

    >>> arm = lw.from_dh([{"a": "length", "mass": 1.0}], gravity=(0, -9.81, 0))  # falls from the horizontal
    >>> options = {"analysis": "dynamic", "times": [0.0, 0.1], "settings": lw.ToleranceSettings(draws=50)}
    >>> fall = lw.tolerances(arm, "final(joint1.angle)", {"length": 0.01}, **options)
    >>> {name: f"±{part.half:.2g}" for name, part in fall.contributions.items()}
    {'length': '±0.00049'}
    """
    mech = mechanism_of(mech)
    chosen, analysis_settings = settings or ToleranceSettings(), AnalysisSettings.of(analysis)
    d = mech.description
    texts = named(outputs)
    asked = _outputs(mech, texts)
    kind = kind_of(d, analysis_settings)
    times = times_asked(d, kind, times)
    dimensions = _parameter_dimensions(mech, tolerances, distributions, clearances)
    mech, joints = _joint_dimensions(mech, clearances, times)
    used = parameters_used(mech.description, kinematic=kind == "kinematic") | {x for one in asked for x in one.names}
    active = [x for x in (*dimensions, *joints) if x.kind != "parameter" or x.name in used]
    if not active:
        names = first_few([x.name for x in dimensions], 4)
        raise ModelError(f"{names}: no motion or output depends on any of these; give tolerances of other dimensions")
    response = _Response(mech, (asked, texts), active, (analysis_settings, times), chosen)
    values, gradients, hessians = response.derivatives()
    idle = [x for x in dimensions if x not in active]
    worst = [_worst_case(response, k, float(values[k]), gradients[k]) for k in range(len(asked))]
    drawn = _monte_carlo(response)
    by_name: dict[str, OutputTolerance] = {}
    units = {x.label: _dimension_shown(d, x) for x in (*dimensions, *joints)}
    for k, output in enumerate(asked):
        nominal = float(values[k])
        contributions = _contributions(active, idle, response.places, (nominal, gradients[k]))
        shift, curved = (None, None) if hessians is None else _second(response, hessians[k])
        name = output.name
        text, shown = str(texts[name]).strip(), output_shown(d, output.expression)
        methods = contributions, worst[k], drawn.get(name), shift, curved
        by_name[name] = OutputTolerance(name, text, nominal, *methods, shown, units)
    return Tolerances(d.name, by_name, _notes(joints))


def _dimension_shown(d: Any, dimension: Dimension) -> Shown:
    """How a dimension is shown: a parameter as it was written, a clearance as a length of the model, a tilt in radians
    or in degrees."""
    if dimension.kind == "parameter":
        return parameter_shown(d, dimension.name)
    shown: Shown = d.units.shown("m" if dimension.kind == "clearance" else "rad")
    return shown


def _deviation(d: Any, dimension: Dimension, size: float, digits: int) -> str:
    """How far a dimension is off, with its unit."""
    shown = _dimension_shown(d, dimension)
    return f"{shown.of(size):+.{digits}g} {shown.text}".strip()


def _outputs(mech: Mechanism, texts: Mapping[str, Wanted]) -> list[Output]:
    """The outputs as expressions, each one number of the whole motion."""
    asked = []
    for name, wanted in texts.items():
        if not isinstance(wanted, str):
            raise ModelError(f"the output {name!r} is a function; write it as a text, as in 'reach = max(pen.x)'")
        output = output_of(mech.description, name, wanted)
        if output.series:
            text = f"the output {name!r} varies in time; reduce it to one number"
            raise ModelError(f"{text}, as in max({output.expression}) or final({output.expression})", element=name)
        asked.append(output)
    return asked


def _parameter_dimensions(mech: Mechanism, asked: Any, distributions: Any, clearances: Any) -> list[Dimension]:
    if asked is not None and not isinstance(asked, Mapping):
        raise ModelError(f"tolerances are {shown(asked)}; give them by parameter, as in {{'crank': 0.05}}")
    if not asked and not clearances:
        raise ModelError("no tolerance was given; give some by parameter, as in {'crank': 0.05}, or clearances=...")
    sizes = dict(asked or {})
    check_names("parameter", sizes, mech.parameters)
    laws, units = laws_of(distributions, sizes), mech.description.units
    return [parameter_dimension(name, size, mech.parameters[name], laws[name], units) for name, size in sizes.items()]


def _joint_dimensions(
    mech: Mechanism, clearances: Mapping[str, Any] | None, times: Floats
) -> tuple[Mechanism, list[Dimension]]:
    """The mechanism with parameters for the clearances of joints, and these as dimensions."""
    if clearances is not None and not isinstance(clearances, Mapping):
        raise ModelError(f"clearances are {shown(clearances)}; give them by joint, as in {{'pin': 2e-5}}")
    units = mech.description.units
    by_joint = {joint: Clearance.of(joint, x, units) for joint, x in (clearances or {}).items()}
    wanted = [
        (joint, tilts) for joint, x in by_joint.items() for tilts in (False, True) if (x.tilt if tilts else x.radius)
    ]
    series = Series((), lambda names: np.zeros(0), (), "")
    mech, plays = with_clearances(mech, wanted, series, times)
    sizes = [float(by_joint[play.joint].tilt if play.tilts else by_joint[play.joint].radius) for play in plays]
    spreads = [by_joint[play.joint].spread for play in plays]
    return mech, [clearance_dimension(*x) for x in zip(plays, sizes, spreads, strict=True)]


def _notes(joints: Sequence[Dimension]) -> tuple[str, ...]:
    """What is to be said of clearances that have one direction alone."""
    notes = []
    for x in joints:
        if len(x.along) == 1 and x.directions is not None:
            angle = np.degrees(np.arctan2(x.directions[1, 0], x.directions[0, 0]))
            text = f"the {x.label} is taken at {angle:.0f}° from f to g of the joint's frame alone"
            notes.append(f"{text}: across it, redundant constraints would open")
    return tuple(notes)


class _Response:
    """Outputs of the mechanism at dimensions away from their nominal values.

    `places` are the columns of each dimension among the parameters `names`, which have the values `start`.
    """

    def __init__(
        self,
        mech: Mechanism,
        outputs: tuple[Sequence[Output], Mapping[str, Wanted]],
        dimensions: Sequence[Dimension],
        analysis: tuple[AnalysisSettings, Floats],
        settings: ToleranceSettings,
    ) -> None:
        self.mech, self.dimensions, self.settings = mech, dimensions, settings
        self.outputs, self.texts = outputs
        self.analysis, self.times = analysis
        self.names = tuple(name for x in dimensions for name in x.along)
        ends = np.cumsum([len(x.along) for x in dimensions]).tolist()
        self.places = [slice(end - len(x.along), end) for x, end in zip(dimensions, ends, strict=True)]
        self.start = np.array([mech.parameters[name] for name in self.names])
        self.engine = Engine(make_task(mech, self.names, self.texts, analysis=self.analysis, times=self.times))
        self.nominal = self._nominal()

    def _nominal(self) -> Floats:
        values, reasons = self.run(np.zeros((1, len(self.names))))
        if reasons[0]:
            raise ModelError(f"at the nominal dimensions {reasons[0]}; correct them, and give tolerances then")
        return np.asarray(values[0])

    def run(self, changes: Floats) -> tuple[Floats, list[str]]:
        """(n, o): the outputs at these changes (n, k) of the parameters, and why some have no value."""
        batch = run_cases(self.engine, self.start + changes)
        none = np.full(len(changes), np.nan)
        values = np.stack([batch.arrays.get(output.name, none) for output in self.outputs], axis=1)
        reasons = list(batch.reasons)
        for n, k in np.argwhere(~np.isfinite(values)).tolist():
            reasons[n] = reasons[n] or f"the output {self.outputs[k].name!r} is not a finite number"
        return values, reasons

    def good(self, changes: Floats) -> Floats:
        """(n, o): the outputs, which all have values; else an error that says which dimension goes how far."""
        parts = []
        for first in range(0, len(changes), AT_ONCE):
            some = changes[first : first + AT_ONCE]
            values, reasons = self.run(some)
            parts.append(values)
            for change, reason in zip(some, reasons, strict=True):
                if reason:
                    raise self._beyond(change, reason)
        return np.concatenate(parts)

    def _comes(self, change: Floats) -> bool:
        """Whether the mechanism has a motion at this change of the parameters."""
        try:
            return bool(self.engine.task.solution(self.start + change).status)
        except LinkwrightError:
            return False

    def _beyond(self, change: Floats, reason: str) -> ModelError:
        """The error for a change that is too large: how far it goes from the nominal dimensions."""
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._comes(middle * change) else (low, middle)
        d = self.mech.description
        sizes = {
            x: float(change[place][0] if x.kind == "parameter" else np.linalg.norm(change[place]))
            for x, place in zip(self.dimensions, self.places, strict=True)
            if change[place].any()
        }
        if len(sizes) == 1:
            x, size = next(iter(sizes.items()))
            whole, part = _deviation(d, x, size, 6), _deviation(d, x, low * size, 4)
            text = f"the tolerance of {x.label} is too large: of {whole} the mechanism takes {part}"
            return ModelError(f"{text} ({reason}); take a smaller tolerance, or change the dimensions")
        at = first_few([f"{x.label} {_deviation(d, x, low * size, 4)}" for x, size in sizes.items()], 6)
        text = f"the tolerances are too large together: the mechanism takes {100.0 * low:.1f} % of the way to a vertex"
        return ModelError(f"{text}, {at} ({reason}); take smaller tolerances, or change the dimensions")

    def ends(self) -> Floats:
        """(2 k, k): each parameter alone at its lower and at its upper limit."""
        changes = np.zeros((2 * len(self.names), len(self.names)))
        for x, place in zip(self.dimensions, self.places, strict=True):
            for k in range(place.start, place.stop):
                changes[2 * k, k], changes[2 * k + 1, k] = x.lower, x.upper
        return changes

    def derivatives(self) -> tuple[Floats, Floats, list[Floats] | None]:
        """The outputs (o,) with their first derivatives (o, k), and their second ones where they are asked for."""
        changes = self.ends()
        values = self.good(changes)
        if self.settings.derivatives == "differences":
            width = (changes[1::2] - changes[::2]).sum(axis=1)
            return self.nominal, ((values[1::2] - values[::2]) / width[:, None]).T, None
        answers = self._answers()
        gradients = np.array([answers[output.name].first for output in self.outputs])
        second = [answers[output.name].second for output in self.outputs]
        return self.nominal, gradients, None if self.settings.order == 1 else [x for x in second if x is not None]

    def _answers(self) -> dict[str, Answer]:
        try:
            asked = Outputs(self.mech.description, self.texts)
            analysis = self.analysis
            plain = AnalysisSettings(analysis.kind, method=analysis.method, dt=analysis.dt)
            problem = Problem(self.mech, self.names, asked, analysis=plain, times=self.times)
        except ModelError as error:
            raise ModelError(f"{error}; {_DIFFERENCES}", element=error.element) from error
        return problem.answers(problem.start, self.settings.order)[1]


def _contributions(
    active: Sequence[Dimension], idle: Sequence[Dimension], places: Sequence[slice], output: tuple[float, Floats]
) -> dict[str, Contribution]:
    """What each dimension adds to an output of this value and gradient, the largest first."""
    nominal, gradient = output
    parts = []
    for x, place in zip(active, places, strict=True):
        g = gradient[place]
        direction = None
        if x.directions is not None:
            across = x.directions @ g
            direction, slope = float(np.arctan2(across[1], across[0])), float(np.linalg.norm(g))
        else:
            slope = float(g[0])
        if abs(slope) * x.half <= ROUNDING * abs(nominal):
            slope, direction = 0.0, None
        low, high = sorted((slope * x.lower + 0.0, slope * x.upper + 0.0))
        parts.append(Contribution(x, slope, low, high, abs(slope) * x.deviation, 0.0, direction))
    parts += [Contribution(x, 0.0, 0.0, 0.0, 0.0, 0.0) for x in idle]
    total = sum(part.half**2 for part in parts) or 1.0
    parts = [replace(part, percent=100.0 * part.half**2 / total) for part in parts]
    return {part.dimension.label: part for part in sorted(parts, key=lambda part: -part.half)}


def _worst_case(response: _Response, k: int, nominal: float, gradient: Floats) -> WorstCase:
    """The worst case of an output by its derivatives, and at the vertices."""
    ends = [_two_ends(x, gradient[place]) for x, place in zip(response.dimensions, response.places, strict=True)]
    linear = tuple(
        nominal + sum(float(g @ end[side]) for g, end in _with(gradient, response.places, ends)) for side in (0, 1)
    )
    complete = 2 ** len(ends) <= response.settings.vertices
    sides = product((0, 1), repeat=len(ends)) if complete else [(0,) * len(ends), (1,) * len(ends)]
    changes = np.array([np.concatenate([end[side] for end, side in zip(ends, row, strict=True)]) for row in sides])
    values = response.good(changes)[:, k]
    low, high = int(np.argmin(values)), int(np.argmax(values))
    at = [_dimensions_at(response, changes[row]) for row in (low, high)]
    return WorstCase(float(values[low]), float(values[high]), (linear[0], linear[1]), len(values), complete, *at)


def _with(gradient: Floats, places: Sequence[slice], ends: Sequence[Any]) -> Any:
    return zip((gradient[place] for place in places), ends, strict=True)


def _two_ends(x: Dimension, g: Floats) -> tuple[Floats, Floats]:
    """The changes of a dimension's parameters at which an output is least and greatest, to first order."""
    if x.kind == "parameter":
        low, high = (x.lower, x.upper) if g[0] >= 0.0 else (x.upper, x.lower)
        return np.array([low]), np.array([high])
    size = float(np.linalg.norm(g))
    along = g / size if size else np.eye(len(g))[0]
    return -x.upper * along, x.upper * along


def _dimensions_at(response: _Response, change: Floats) -> dict[str, Any]:
    """The dimensions at a vertex, clearances as vectors."""
    return {
        x.label: float(x.nominal + change[place][0]) if x.kind == "parameter" else change[place].tolist()
        for x, place in zip(response.dimensions, response.places, strict=True)
    }


def _second(response: _Response, hessian: Floats) -> tuple[float, float]:
    """How far second derivatives move the mean, and how much they can add to the worst case."""
    halves = np.array([x.half for x in response.dimensions for _ in x.along])
    squares = np.array([x.deviation for x in response.dimensions for _ in x.along]) ** 2
    return 0.5 * float(np.diagonal(hessian) @ squares), 0.5 * float(halves @ np.abs(hessian) @ halves)


def _monte_carlo(response: _Response) -> dict[str, MonteCarlo]:
    """The draws of each output."""
    settings = response.settings
    if not settings.draws:
        return {}
    study = sweep(
        response.mech,
        {name: law for x in response.dimensions for name, law in x.draws.items()},
        response.texts,
        sampling=Sampling(settings.sampling, cases=settings.draws, seed=settings.seed),
        analysis=response.analysis,
        times=response.times,
        execution=settings.execution,
    )
    reasons = tuple(study.reason_counts)
    return {
        name: MonteCarlo(study[name][study.ok & np.isfinite(study[name])], settings.draws, settings.seed, reasons)
        for name in response.texts
    }
