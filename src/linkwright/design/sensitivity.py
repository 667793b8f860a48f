"""`lw.sensitivities`: outputs of an analysis with their first and second derivatives by parameters, from the tape; and
the question behind it: a mechanism, its free parameters, the outputs wanted, and the analysis that computes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.analysis.analyse import refuse_massless
from linkwright.base.arguments import check_names, takes_settings
from linkwright.base.arrays import Floats
from linkwright.design.dynamic_slopes import Dynamic
from linkwright.design.kinematic_slopes import Kinematic, Static
from linkwright.design.recorded_functions import Evaluator, Undefined, checked_finite
from linkwright.errors import ModelError, NameNotFound
from linkwright.mechanism import Mechanism, mechanism_of
from linkwright.model.description import Description
from linkwright.model.model_checks import parameters_used
from linkwright.outputs.derivatives import Answer, Outputs, Rows
from linkwright.outputs.output_language import AnalysisSettings, kind_of, named, times_asked

MODES = ("forward", "reverse")
#: Parameters for each output from which it is cheaper to go back through the steps.
MANY = 8
KINDS = ("kinematic", "dynamic", "static")


class Problem:
    """Outputs of one mechanism as functions of some of its parameters.

    `parameters` are names, or have the values to start at, None for the model's. Programs are those of the mechanism
    as it is given, so that other values to start at have the same programs.
    """

    def __init__(
        self,
        mech: Mechanism,
        parameters: Sequence[str] | Mapping[str, float | None],
        outputs: Outputs,
        *,
        analysis: str | AnalysisSettings | None = None,
        times: ArrayLike | None = None,
        mode: str | None = None,
    ) -> None:
        if mode not in (None, *MODES):
            raise NameNotFound("mode", str(mode), list(MODES))
        start = as_mapping(parameters)
        self.mech, self.names, self.outputs, self.mode = mech, tuple(start), outputs, mode
        settings = AnalysisSettings.of(analysis)
        self.kind = _differentiable_kind(mech.description, settings)
        self.times = times_asked(mech.description, self.kind, times)
        _check_parameters(mech, self.names, outputs)
        self.start = np.array([mech.parameters[n] if x is None else float(x) for n, x in start.items()])
        self.evaluator = self._evaluator(settings)

    def _evaluator(self, settings: AnalysisSettings) -> Evaluator:
        mech, names, o = self.mech, self.names, self.outputs
        if self.kind == "kinematic":
            return Kinematic(mech, names, o.series, self.times)

        refuse_massless(mech.with_parameters(**dict(zip(names, self.start.tolist(), strict=True))))
        if self.kind == "static":
            return Static(mech, names, o.series, self.times)

        return Dynamic(mech, names, o.series, self.times, method=settings.method or "rk4", dt=settings.dt)

    def rows(self, values: Floats, order: int) -> Rows:
        """The rows at these values of the parameters."""
        return checked_finite(self.evaluator(values, order), self.outputs.labels)

    def answers(self, values: Floats, order: int) -> tuple[Rows, dict[str, Answer]]:
        """The rows and every output, with derivatives up to this order."""
        if order == 1 and self._backward:
            return self._pulled(values)
        rows = self.rows(values, order)
        return rows, _checked(self.outputs.answers(rows, self.names, values))

    @property
    def _backward(self) -> bool:
        """Whether first derivatives come in reverse: of simulations, where many parameters change few numbers."""
        can = self.kind == "dynamic" and not any(x.series for x in self.outputs.list)
        if self.mode == "reverse" and not can:
            raise ModelError("mode='reverse' is for numbers of a whole simulated motion; leave it out")
        return can and (
            self.mode == "reverse" or (self.mode is None and len(self.names) >= MANY * len(self.outputs.list))
        )

    def _pulled(self, values: Floats) -> tuple[Rows, dict[str, Answer]]:
        assert isinstance(self.evaluator, Dynamic)
        rows, gradient = self.evaluator.pulled(values, lambda x: self.outputs.adjoints(x, self.names, values))
        by_name = self.outputs.answers(checked_finite(rows, self.outputs.labels), self.names, values)
        answers = {name: Answer(x.value, gradient[k]) for k, (name, x) in enumerate(by_name.items())}
        return rows, _checked(answers)


def _checked(answers: dict[str, Answer]) -> dict[str, Answer]:
    """The answers, if all their numbers are finite: rows that are may be put together by a root of nothing."""
    for name, one in answers.items():
        for what, x in (("value", one.value), ("derivative", one.first), ("second derivative", one.second)):
            if x is not None and not np.isfinite(x).all():
                raise Undefined(f"{name!r} has no finite {what} here")
    return answers


def _differentiable_kind(d: Description, settings: AnalysisSettings) -> str:
    """The kind of analysis, if it has derivatives with these settings."""
    kind = kind_of(d, settings)
    if kind not in KINDS:
        raise ModelError(f"there are no derivatives of {kind} analysis; use one of {', '.join(KINDS)}")
    for name in settings.chosen:
        if name not in ("method", "dt"):
            text = f"{name!r} is no setting of derivatives"
            raise ModelError(f"{text}, which are of simulations with fixed steps; give method and dt alone")
    return kind


def _check_parameters(mech: Mechanism, names: Sequence[str], outputs: Outputs) -> None:
    """Each parameter is there, and something depends on it."""
    d = mech.description
    if not names:
        raise ModelError(f"no parameter was named; {d.name!r} has {', '.join(list(d.parameters)[:8]) or 'none'}")
    check_names("parameter", names, d.parameters)
    used = parameters_used(d) | {x for output in outputs.list for x in output.names}
    for name in names:
        if name not in used:
            raise ModelError(
                f"parameter {name!r} changes nothing of the mechanism's motion; is another one computed from it when "
                "the file is read, or is it for drawing alone?",
                element=name,
            )


def as_mapping(parameters: Any) -> Mapping[str, Any]:
    """Parameters with their values or bounds; names alone are mapped to None."""
    if isinstance(parameters, str):
        return {parameters: None}
    if isinstance(parameters, Mapping):
        return parameters
    return dict.fromkeys(parameters)


@dataclass(frozen=True, eq=False)
class Sensitivities:
    """Outputs and their derivatives: `value`, `gradient` and `hessian` of an output by its name.

    An output that varies in time has the time points as its first axis: (T,), (T, k) and (T, k, k).
    """

    parameters: dict[str, float]
    time: Floats
    answers: dict[str, Answer]
    order: int

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs."""
        return list(self.answers)

    def value(self, output: str | None = None) -> Any:
        """A number, or (T,) of a series: the value of an output by its name; without a name, of the only one."""
        number = self._one(output).value
        return float(number) if np.ndim(number) == 0 else number

    def gradient(self, output: str | None = None) -> Floats:
        """(..., k): first derivatives, in the order of `parameters`."""
        first = self._one(output).first
        assert first is not None
        return first

    def hessian(self, output: str | None = None) -> Floats:
        """(..., k, k): second derivatives; they have to be asked for with order=2."""
        second = self._one(output).second
        if second is None:
            raise ModelError("second derivatives were not asked for; call lw.sensitivities with order=2")
        return second

    def relative(self, output: str | None = None) -> Floats:
        """(..., k): p/y · ∂y/∂p, by how many per cent the output changes for one per cent of a parameter."""
        one = self._one(output)
        p = np.array(list(self.parameters.values()))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.gradient(output) * p / np.asarray(one.value)[..., None])

    def _one(self, output: str | None) -> Answer:
        if output is None:
            if len(self.answers) > 1:
                raise ModelError(f"there are several outputs; name one of {', '.join(self.answers)}")
            return next(iter(self.answers.values()))
        check_names("output", [output], self.answers)
        return self.answers[output]

    def report(self) -> str:
        """A table: of outputs that vary in time, the largest sizes."""
        names = list(self.parameters)
        wide = max([12, *(len(n) + 2 for n in names)])
        first = max([8, *(len(n) for n in self.answers)]) + 2
        lines = [" " * first + "value".rjust(wide) + "".join(f"d/d {n}".rjust(wide + 4) for n in names)]
        for name, one in self.answers.items():
            assert one.first is not None
            varies = np.ndim(one.value) > 0
            value = np.abs(one.value).max() if varies else one.value
            slopes = np.abs(one.first).max(axis=0) if varies else one.first
            text = f"{value:.6g}".rjust(wide) + "".join(f"{x:.6g}".rjust(wide + 4) for x in slopes)
            lines.append(f"{name}{' |max|' if varies else ''}".ljust(first) + text)
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Sensitivities of {', '.join(self.answers)} by {', '.join(self.parameters)}, order {self.order}>"


@takes_settings(analysis=AnalysisSettings)
def sensitivities(
    mech: Mechanism | str | PathLike[str],
    outputs: Any,
    parameters: Any = None,
    *,
    order: int = 1,
    times: ArrayLike | None = None,
    analysis: str | AnalysisSettings | None = None,
    mode: str | None = None,
) -> Sensitivities:
    """Outputs of an analysis, and their derivatives with respect to parameters.

    Main arguments:

    - `mech`: a `Mechanism`, or the path of a model file.
    - `outputs`: a text as "stroke = max(block.x) - min(block.x)" or "pen.y", a function of a state in NumPy syntax, or
      several of them, with names or without.
    - `parameters`: names, or values {"crank": 1.2} at which to differentiate; by default all that change the motion.
    - `order`: 1 (the default) for first derivatives, 2 for second derivatives too.
    - `times`: (T,), growing (s); by default those of the model's SYSTEM.
    - `analysis`: "kinematic", "dynamic" or "static", or an `lw.AnalysisSettings` with method and step; by default that
      of the model's SYSTEM.

    Other arguments:

    - `mode`: "forward" or "reverse" through the steps of a simulation, by default as their numbers suggest; "reverse"
      is for numbers of the whole motion.

    Returns `Sensitivities`. Kinematic and static analysis have the derivatives of the exact motion, dynamic analysis
    those of a simulation with fixed steps. The derivative of a largest value is that of the time point where it is.
    Raises ModelError and NameNotFound for invalid arguments, and a LinkwrightError where outputs have no
    value or no derivative.

    >>> mech = lw.from_dh([{"a": "length", "mass": 1.0}], gravity=(0, -9.81, 0))  # falls from the horizontal
    >>> options = {"analysis": "dynamic", "times": [0.0, 0.1]}
    >>> lw.sensitivities(mech, "final(joint1.angle)", {"length": 0.5}, **options).gradient().round(3)
    array([0.196])
    """
    mech = mechanism_of(mech)
    if order not in (1, 2):
        raise ModelError(f"order is 1 or 2, not {order!r}")
    asked = Outputs(mech.description, named(outputs))
    if parameters is None:
        used = parameters_used(mech.description)
        parameters = [name for name in mech.parameters if name in used]
    problem = Problem(mech, parameters, asked, analysis=analysis, times=times, mode=mode)
    rows, answers = problem.answers(problem.start, order)
    return Sensitivities(dict(zip(problem.names, problem.start.tolist(), strict=True)), rows.time, answers, order)
