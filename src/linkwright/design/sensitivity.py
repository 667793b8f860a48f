"""`lw.sensitivities`: outputs of an analysis with their first and second derivatives by parameters, from the tape."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import check_names, takes_settings
from linkwright.base.arrays import Floats
from linkwright.design.problem import Problem
from linkwright.errors import ModelError
from linkwright.mechanism import Mechanism, mechanism_of
from linkwright.model.model_checks import parameters_used
from linkwright.outputs.derivatives import Answer, Outputs
from linkwright.outputs.output_language import AnalysisSettings, named


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
    Raises ModelError and NameNotFound for a question that cannot be asked, and a LinkwrightError where outputs have no
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
