"""A question of design: a mechanism, its free parameters, the outputs wanted, and the analysis that finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.analysis.analyse import refuse_massless
from linkwright.base.arguments import check_names
from linkwright.base.arrays import Floats
from linkwright.design.dynamic_slopes import Dynamic
from linkwright.design.kinematic_slopes import Kinematic, Static
from linkwright.design.recorded_functions import Evaluator, Undefined, checked_finite
from linkwright.errors import ModelError, NameNotFound
from linkwright.mechanism import Mechanism
from linkwright.model.description import Description
from linkwright.model.model_checks import parameters_used
from linkwright.outputs.derivatives import Answer, Outputs, Rows
from linkwright.outputs.output_language import AnalysisSettings, kind_of, times_asked

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
