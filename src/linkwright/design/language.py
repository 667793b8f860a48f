"""Outputs as people write them: texts in the language of models, or functions of a state, as expressions.

`max(block.x) - min(block.x)`: a function of time in one of `REDUCTIONS` is one number of the whole motion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.design.quantities import leaf
from linkwright.errors import LinkwrightError, ModelError, NameNotFound
from linkwright.mechanism.description import Description
from linkwright.mechanism.expression import TIME, Call, Expression, Lookup, Name, Number, as_expression
from linkwright.spatial.algebra import Array

REDUCTIONS = ("max", "min", "mean", "rms", "integral", "range", "initial", "final")
LONGEST = 20_000  # letters


@dataclass(frozen=True)
class Reduced(Expression):
    """One number of all time points."""

    kind: str
    inner: Expression

    @property
    def key(self) -> str:
        """The name under which its value is found; no parameter has such a name."""
        return str(self)

    def evaluate(self, names: Mapping[str, Any]) -> Any:
        return names[self.key]

    def names(self) -> frozenset[str]:
        return frozenset((self.key,))

    def __str__(self) -> str:
        return f"{self.kind}({self.inner})"


class State:
    """What a function of a state may ask: `state["pen.x"]`, places, TIME, parameters, and numbers of all times."""

    def __init__(self, description: Description) -> None:
        self._description = description

    def __getitem__(self, name: str) -> Expression:
        d = self._description
        if name in d.parameters:
            return Name(name)
        return Name(leaf(d, name).name)

    @property
    def time(self) -> Expression:
        """The time."""
        return TIME

    def position(self, name: str) -> Array:
        """(3,): the origin of a body or triad."""
        return self._three(name, ("x", "y", "z"))

    def velocity(self, name: str) -> Array:
        """(3,): its velocity."""
        return self._three(name, ("vx", "vy", "vz"))

    def acceleration(self, name: str) -> Array:
        """(3,): its acceleration."""
        return self._three(name, ("ax", "ay", "az"))

    def _three(self, name: str, parts: tuple[str, ...]) -> Array:
        return np.array([self[f"{name}.{part}"] for part in parts], dtype=object)

    def max(self, x: Any) -> Expression:
        """The largest of all times."""
        return reduced("max", x)

    def min(self, x: Any) -> Expression:
        """The smallest of all times."""
        return reduced("min", x)

    def mean(self, x: Any) -> Expression:
        """The mean over the time points."""
        return reduced("mean", x)

    def rms(self, x: Any) -> Expression:
        """The root of the mean square over the time points."""
        return reduced("rms", x)

    def integral(self, x: Any) -> Expression:
        """The integral over time, by trapezoids between the time points."""
        return reduced("integral", x)

    def range(self, x: Any) -> Expression:
        """The largest less the smallest."""
        return reduced("range", x)

    def initial(self, x: Any) -> Expression:
        """The value at the first time."""
        return reduced("initial", x)

    def final(self, x: Any) -> Expression:
        """The value at the last time."""
        return reduced("final", x)


def reduced(kind: str, x: Any) -> Reduced:
    """A reduction of an expression that has none in it."""
    inner = as_expression(x)
    if any(True for _ in reductions(inner)):
        text = f"{kind}(...) has another number of the whole motion in it; write it as an output of its own"
        raise ModelError(text, element=kind)
    return Reduced(kind, inner)


def reductions(expression: Expression) -> Iterator[Reduced]:
    """The reductions in an expression, in the order of their appearance."""
    for part in _parts(expression):
        if isinstance(part, Reduced):
            yield part


def varying(expression: Expression) -> set[str]:
    """The names outside all reductions."""
    return {part.name for part in _parts(expression) if isinstance(part, Name)}


def _parts(expression: Expression) -> Iterator[Expression]:
    left = [expression]
    while left:
        part = left.pop()
        yield part
        if isinstance(part, Call):
            left.extend(reversed(part.arguments))
        elif isinstance(part, Lookup):
            left.append(part.argument)


def from_function(d: Description, name: str, function: Callable[[Any], Any]) -> list[Expression]:
    """What a function of a state gives: one expression, or those of an array."""
    try:
        made = function(State(d))
    except LinkwrightError:
        raise
    except (TypeError, AttributeError, ValueError, IndexError) as error:
        text = f"{name} cannot be recorded: {error}; write it in NumPy syntax, of what `state` gives"
        raise ModelError(text, element=name) from error
    entries = np.asarray(made, dtype=object).reshape(-1)
    try:
        return [as_expression(x) for x in entries]
    except (TypeError, ValueError):
        raise ModelError(f"{name} returned {made!r}; return a number or an array of them", element=name) from None


def from_text(d: Description, text: str) -> Expression:
    """The expression of a text such as `max(block.x) - min(block.x)`."""
    from lark.exceptions import LarkError

    from linkwright.formats.mks.parser import check_nesting, parsed_by_grammar
    from linkwright.formats.mks.problems import Fault

    begin = "PARAMETER y = "
    if not isinstance(text, str) or not text.strip():
        raise ModelError("an output is a text such as 'max(block.x)', or a function; this one is empty")
    if len(text) > LONGEST:
        raise ModelError(f"an output has {len(text)} letters; {LONGEST} are the most")
    whole = f"{begin}{text};"
    try:
        check_nesting(whole, 0, len(whole))
        if ";" in text:
            raise Fault(None, "it has a semicolon in it")
        node = parsed_by_grammar(whole, 0, len(whole)).items[0].value
        return _Reader(d).read(node)
    except LarkError as error:
        at = max(0, min((getattr(error, "column", None) or len(begin) + 1) - 1 - len(begin), len(text)))
        shown = text[at : at + 20] or "its end"
        raise ModelError(f"output {text!r} cannot be read at {shown!r}; write it as in a model", element=text) from None
    except Fault as error:
        raise ModelError(f"output {text!r}: {error.message}", element=text) from None


class _Reader:
    """Makes expressions of parsed pieces."""

    def __init__(self, d: Description) -> None:
        from linkwright.formats.mks.values import Scope

        self.d = d
        self.known = {name.lower(): name for name in d.parameters}
        self.scope = Scope()

    def read(self, node: Any) -> Expression:
        from linkwright.formats.mks.problems import Fault
        from linkwright.formats.mks.syntax import Applied, Dotted, Num, Word

        if isinstance(node, Num):
            return self.scope.value(node).expression
        if isinstance(node, Dotted):
            return Name(leaf(self.d, f"{node.name.text}.{node.part.text}").name)
        if isinstance(node, Word):
            return self._word(node)
        if isinstance(node, Applied):
            return self._applied(node)
        raise Fault(node, "expected a number, a name or an expression")

    def _word(self, node: Any) -> Expression:
        from linkwright.formats.mks.values import CONSTANTS

        key = node.text.lower()
        if key in self.known:
            return Name(self.known[key])
        if key == "time":
            return TIME
        if key in CONSTANTS:
            return Number(CONSTANTS[key])
        d = self.d
        if any(names.find(node.text) is not None for names in (d.body_names, d.frames.names, d.joint_names)):
            text = f"{node.text!r} is no number; name one of its quantities, as {node.text}.x or {node.text}.angle"
            raise ModelError(text, element=node.text)
        raise NameNotFound("parameter or quantity", node.text, [*d.parameters, "TIME"])

    def _applied(self, node: Any) -> Expression:
        from linkwright.formats.mks.syntax import Word
        from linkwright.formats.mks.values import CALLS

        function = node.function.text if node.operation else node.function.text.lower()
        if not node.operation:
            if function.startswith("distance"):
                ends = [x.text if isinstance(x, Word) else "?" for x in node.arguments]
                return Name(leaf(self.d, f"{function}({','.join(ends)})").name)
            if function in REDUCTIONS and len(node.arguments) == 1:
                return reduced(function, self.read(node.arguments[0]))
            if function in ("argmax", "argmin"):
                text = f"{function}(...) is one of the time points and has no derivative; use {function[3:]}(...)"
                raise ModelError(text, element=function)
            if function not in CALLS:
                raise NameNotFound("function", function, [*CALLS, *REDUCTIONS, "distance"])
            function = CALLS[function]
        arguments = [self.read(x) for x in node.arguments]
        if function in ("min", "max") and len(arguments) > 2:
            made = arguments[0]
            for more in arguments[1:]:
                made = Call(function, (made, more))
            return made
        try:
            return Call(function, tuple(arguments))
        except ValueError as error:
            raise ModelError(str(error), element=function) from None
