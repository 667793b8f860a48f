"""The language of outputs: texts such as `max(block.x) - min(block.x)` as expressions, and the analysis that they
are of.

An expression of the motion, as `block.x - crank_length`, is a series in time. A function of time in one of `REDUCTIONS`
is one number of the whole motion, which may stand in further expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.analysis.analyse import check_kind
from linkwright.base.arguments import real_array
from linkwright.base.arrays import Floats
from linkwright.constraints.kinematic_motion import times_of
from linkwright.errors import LinkwrightError, ModelError, NameNotFound
from linkwright.model.description import Description
from linkwright.model.expression import FUNCTIONS, TIME, Call, Expression, Name, Number, as_expression
from linkwright.model.quantities import titled
from linkwright.model.requested_analysis import System
from linkwright.outputs.output_functions import (
    DISTANCES,
    REDUCTIONS,
    Force,
    Reduced,
    State,
    all_parts,
    distance,
    example,
    names_outside,
    of_machine,
    quantity,
)


@dataclass(frozen=True)
class AnalysisSettings:
    """An analysis of `lw.sweep`, `lw.optimise` or `lw.sensitivities` with its settings; None leaves one to the model.

    Main arguments:

    - `kind`: "kinematic", "dynamic", "static" or "inverse dynamic"; by default that of the model's SYSTEM.
      `analysis="dynamic"` is short for `analysis=lw.AnalysisSettings("dynamic")`.
    - `method`: of dynamic analysis, as `lw.simulate` has it. Derivatives are of methods with fixed steps, by default
      "rk4".
    - `dt`: the step of dynamic analysis (s); by default that of the SYSTEM, or one that suits the motion.

    Other arguments, of studies alone:

    - `rtol`, `atol`: the relative and absolute tolerance of methods that choose their steps; None as `lw.simulate` has
      it.
    - `freedom`: of kinematic and inverse dynamic analysis, "minimum-norm" or "pivoting", as `lw.analyse` has it.

    The function that takes the settings raises ModelError or NameNotFound for what an analysis does not take.

    >>> mech = lw.from_dh([{"a": "length", "mass": 1.0}], gravity=(0, -9.81, 0))  # falls from the horizontal
    >>> dynamic = lw.AnalysisSettings.of(lw.AnalysisSettings("dynamic", dt=1e-3))
    >>> lw.sensitivities(mech, "final(joint1.angle)", "length", times=[0.0, 0.1], analysis=dynamic).gradient().round(4)
    array([0.049])
    """

    kind: str | None = None
    method: str | None = None
    dt: float | None = None
    rtol: float | None = None
    atol: float | None = None
    freedom: str | None = None

    @classmethod
    def of(cls, analysis: Any) -> AnalysisSettings:
        """Settings of an `analysis` as it is given: settings, the kind alone, or None."""
        return analysis if isinstance(analysis, cls) else cls(analysis)

    @property
    def chosen(self) -> dict[str, Any]:
        """The settings other than the kind that are not left to the model."""
        values = {x.name: getattr(self, x.name) for x in fields(self) if x.name != "kind"}
        return {name: value for name, value in values.items() if value is not None}


def kind_of(d: Description, analysis: AnalysisSettings) -> str:
    """The kind of analysis that is asked for; settings must be of this kind."""
    kind = analysis.kind or (d.system or System()).analysis
    check_kind(d, kind, analysis.chosen)
    return kind


def times_asked(d: Description, kind: str, times: ArrayLike | None) -> Floats:
    """(T,): the times that are asked for, or the model's; a state of rest needs none."""
    if times is None:
        if d.system is None and kind != "static":
            raise ModelError(f"{d.name!r} has no time range; give times=..., or a SYSTEM in the model", element=d.name)
        system = d.system or System()
        return times_of(system.start, system.end, system.interval)
    try:
        points = np.atleast_1d(real_array("times", times))
    except (TypeError, ValueError):
        raise ModelError(f"times are {times!r}; give numbers of seconds") from None
    if points.ndim != 1 or not len(points) or not np.isfinite(points).all() or np.any(np.diff(points) <= 0.0):
        raise ModelError("times are one row of finite numbers that grow; give times=[0.0, 0.1, ...]")
    return points


#: What an output may be: a text, or a function. What the function takes is a matter of who computes the output.
Wanted = str | Callable[[Any], Any]
LONGEST = 20_000  # letters of a text
_HEAD = "PARAMETER output = "  # the grammar reads statements


@dataclass(frozen=True, eq=False)
class Output:
    """A named expression; a series has one value at each time point, any other output one of the whole motion."""

    name: str
    expression: Expression
    series: bool

    @property
    def names(self) -> set[str]:
        """The names of parameters and quantities in the expression."""
        return {part.name for part in all_parts(self.expression) if isinstance(part, Name)}

    @property
    def forces(self) -> list[str]:
        """The series of forces in the expression."""
        return [part.name for part in all_parts(self.expression) if isinstance(part, Force)]

    def refuse_forces(self, reason: str) -> None:
        """An error, with this reason, for an output that has a force in it."""
        for force in self.forces:
            raise ModelError(f"the output {self.name!r}: {force} is a force, {reason}", element=self.name)


def named(outputs: Any) -> dict[str, Wanted]:
    """Outputs by name: a text, a function, several of them, or with their names; "stroke = max(x)" names itself."""
    if isinstance(outputs, str) or callable(outputs):
        outputs = [outputs]
    pairs = outputs.items() if isinstance(outputs, Mapping) else ((None, one) for one in outputs)
    by_name: dict[str, Wanted] = {}
    for label, one in pairs:
        if not isinstance(one, str) and not callable(one):
            raise ModelError(f"an output is a text or a function, not {one!r}; write it as 'name = expression'")
        title_and_output = titled(one) if isinstance(one, str) else (getattr(one, "__name__", "function"), one)
        name, wanted = title_and_output if label is None else (str(label), one)
        name = " ".join(name.split())
        if not name or not name.isprintable():
            raise ModelError(f"the output {name[:200]!r} needs another name, as in 'ratio = {name[:60]}'")
        if isinstance(wanted, str) and not wanted.strip():
            raise ModelError(f"the output {one!r} has no expression; write it as 'name = expression'")
        if name in by_name:
            raise ModelError(f"there are two outputs named {name!r}; name them apart, as in 'other = {name}'")
        by_name[name] = wanted
    if not by_name:
        text = "no output was asked for, and without outputs there is nothing to compute"
        raise ModelError(f"{text}; give a text such as 'max(block.x)', or a function")
    return by_name


def outputs_of(d: Description, name: str, wanted: Wanted) -> list[Output]:
    """The outputs of a text, or of a function of a `State`: one, or one for each entry of its array."""
    if isinstance(wanted, str):
        return [output_of(d, name, wanted)]
    try:
        returned = wanted(State(d))
    except LinkwrightError:
        raise
    except (TypeError, AttributeError, ValueError, IndexError) as error:
        text = f"{name} cannot be recorded: {error}; write it in NumPy syntax, of what `state` gives"
        raise ModelError(text, element=name) from error
    try:
        expressions = [as_expression(x) for x in np.asarray(returned, dtype=object).reshape(-1)]
    except (TypeError, ValueError):
        raise ModelError(f"{name} returned {returned!r}; return a number or an array of them", element=name) from None
    labels = [name] if len(expressions) == 1 else [f"{name}[{k}]" for k in range(len(expressions))]
    return [_output(d, label, x) for label, x in zip(labels, expressions, strict=True)]


def output_of(d: Description, name: str, text: str) -> Output:
    """The output of a text; errors name the output."""
    try:
        return _output(d, name, expression_of(d, text))
    except LinkwrightError as error:
        raise ModelError(f"the output {name!r}: {error}", element=name) from error


def _output(d: Description, name: str, expression: Expression) -> Output:
    return Output(name, expression, any(x.name not in d.parameters for x in names_outside(expression)))


def expression_of(d: Description, text: str) -> Expression:
    """The expression of a text such as `max(block.x) - min(block.x)`."""
    if len(text) > LONGEST or ";" in text:
        raise ModelError(f"an expression is one line of arithmetic, without ';' and of {LONGEST:,} letters at most")
    from lark.exceptions import UnexpectedInput

    from linkwright.formats.mks.parser import check_nesting, parsed_by_grammar  # weight: lark
    from linkwright.formats.mks.syntax import Fault

    line = f"{_HEAD}{text};"
    try:
        check_nesting(line, 0, len(line))
        return _Reader(d).read(parsed_by_grammar(line, 0, len(line)).items[0].value)
    except Fault as fault:
        raise ModelError(f"{text!r} cannot be read: {fault.message}") from None
    except UnexpectedInput as error:
        at = max(0, (getattr(error, "pos_in_stream", None) or 0) - len(_HEAD))
        where = f"at {text[at : at + 20]!r}" if at < len(text) else "at its end"
        raise ModelError(f"{text!r} is no expression, {where}; write one such as max(block.x) - min(block.x)") from None


class _Reader:
    """Makes expressions of parsed pieces."""

    def __init__(self, d: Description) -> None:
        self.d = d
        self._names = {name.lower() for name in d.parameters}

    def read(self, node: Any) -> Expression:
        from linkwright.formats.mks.dimensions import measured  # weight: lark
        from linkwright.formats.mks.syntax import Applied, Num, Word  # weight: lark

        number = measured(node, self._names)
        if number is not None:
            return Number(number[1].si(number[0]), number[1].text)
        if isinstance(node, Num):
            return Number(float(node.value))
        if isinstance(node, Word):
            return self._word(node)
        if isinstance(node, Applied):
            return self._operation(node) if node.operation else self._call(node)
        names = _names_of(node)
        if len(names) > 1:
            return quantity(self.d, ".".join(names[:-1]), names[-1])
        raise ModelError("an output is made of numbers, names with plain numbers in brackets, and functions")

    def _word(self, node: Any) -> Expression:
        from linkwright.formats.mks.values import CONSTANTS  # weight: lark

        word, d = node.text, self.d
        if not node.quoted and word.lower() == "time":
            return TIME
        if not node.quoted and word.lower() in CONSTANTS:
            return Number(CONSTANTS[word.lower()])
        fits = [p for p in d.parameters if p == word] or [p for p in d.parameters if p.casefold() == word.casefold()]
        if len(fits) == 1:
            return Name(fits[0])
        if any(names.find(word) is not None for names in (d.body_names, d.frames.names, d.joint_names)):
            part = example(d, word)
            raise ModelError(f"{word!r} alone is no number; name one of its quantities, as in {word}.{part}")
        raise of_machine(word) or NameNotFound("parameter", word, [*d.parameters, "TIME"])

    def _operation(self, node: Any) -> Expression:
        from linkwright.formats.mks.dimensions import last_measured  # weight: lark

        ending = last_measured(node, self._names)
        if ending is not None:
            product, x, unit = ending
            return Call(product.function.text, (self.read(product.arguments[0]), Number(unit.si(x), unit.text)))
        return Call(node.function.text, tuple(self.read(x) for x in node.arguments))

    def _call(self, node: Any) -> Expression:
        from linkwright.formats.mks.values import CALLS  # weight: lark

        word = node.function.text.lower()
        if word in DISTANCES:
            return self._distance(word, node.arguments)
        arguments = [self.read(x) for x in node.arguments]
        if word in REDUCTIONS and len(arguments) == 1:
            return Reduced(word, arguments[0])
        if word not in CALLS:
            raise NameNotFound("function", node.function.text, list(dict.fromkeys([*CALLS, *REDUCTIONS, *DISTANCES])))
        function = CALLS[word]
        if function in ("min", "max") and len(arguments) > 2:  # of two or more, as in models
            return reduce(lambda x, y: Call(function, (x, y)), arguments)
        count = FUNCTIONS[function][0]
        if len(arguments) != count:
            over = f", or one to take it over time: {word}(block.x)" if word in REDUCTIONS else ""
            raise ModelError(f"{word} takes {count} arguments{over}; {len(arguments)} are given")
        return Call(function, tuple(arguments))

    def _distance(self, word: str, arguments: Any) -> Expression:
        names = [".".join(_names_of(x)) for x in arguments]
        if len(names) != 2 or not all(names):
            raise ModelError(f"{word} is between two bodies or frames, as in {word}(a, b)")
        return distance(self.d, word, names[0], names[1])


def _names_of(node: Any) -> list[str]:
    """The names with dots between of leg[2].slide.shift; none for anything else, or where an index is no number."""
    from linkwright.formats.mks.syntax import Dotted, Path, Word  # weight: lark

    words: tuple[Any, ...] = (node,)
    if isinstance(node, Dotted):
        words = node.name, node.part
    elif isinstance(node, Path):
        words = node.words
    return [x.text for x in words] if all(isinstance(x, Word) for x in words) else []
