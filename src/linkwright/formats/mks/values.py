"""Values of a `.mks` text: arithmetic, units, parameters, tables and colours, as numbers and expressions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from lark.exceptions import UnexpectedInput

from linkwright.base.arguments import shortened
from linkwright.errors import FormatError
from linkwright.formats.mks.cam_segments import cam_expression
from linkwright.formats.mks.parser import check_nesting, parsed_by_grammar
from linkwright.formats.mks.syntax import (
    MAX_DEPTH,
    Applied,
    Dotted,
    Fault,
    Listed,
    Node,
    Num,
    Phrase,
    Vector,
    Word,
    did_you_mean,
)
from linkwright.model.description import colour_text
from linkwright.model.expression import FUNCTIONS, TIME, Call, Expression, Name, Number, tabulated
from linkwright.model.motion_laws import MOTION_LAWS
from linkwright.model.quantities import Numeric

COLOURS = {
    "black": "#000000",
    "silver": "#c0c0c0",
    "gray": "#808080",
    "grey": "#808080",
    "white": "#ffffff",
    "maroon": "#800000",
    "red": "#ff0000",
    "purple": "#800080",
    "fuchsia": "#ff00ff",
    "magenta": "#ff00ff",
    "green": "#008000",
    "lime": "#00ff00",
    "olive": "#808000",
    "yellow": "#ffff00",
    "navy": "#000080",
    "blue": "#0000ff",
    "teal": "#008080",
    "aqua": "#00ffff",
    "cyan": "#00ffff",
    "orange": "#ffa500",
    "gold": "#ffd700",
    "brown": "#a52a2a",
    "pink": "#ffc0cb",
    "steelblue": "#4682b4",
    "crimson": "#dc143c",
}


def colour_of(node: Node, scope: Scope) -> str:
    """#rrggbb from a name, a text or three numbers from 0 to 1."""
    if isinstance(node, Vector):
        parts = scope.constants(node, 3)
        if any(not 0.0 <= x <= 1.0 for x in parts):
            raise Fault(node, "red, green and blue are numbers from 0 to 1")
        return colour_text(parts)
    if not isinstance(node, Word):
        raise Fault(node, 'expected a colour: a name, "#rrggbb" or (red, green, blue)')
    text = node.text.lower()
    if node.quoted and re.fullmatch("#[0-9a-f]{6}", text):
        return text
    if text not in COLOURS:
        hint = did_you_mean(text, COLOURS) or '; give a name, "#rrggbb" or (red, green, blue)'
        raise Fault(node, f"there is no colour {node.text!r}{hint}")
    return COLOURS[text]


#: What makes an expression of a coordinate or a distance in a law.
Measure = Callable[[Node], Expression]
UNITS = {"deg": math.pi / 180.0, "degree": math.pi / 180.0, "degrees": math.pi / 180.0, "°": math.pi / 180.0}
UNITS.update(rad=1.0, radian=1.0, radians=1.0)
OPERATIONS = ("neg", "add", "sub", "mul", "div", "pow", "lt", "le")
#: The functions that a text may call, and what they are called in expressions.
CALLS = {name: name for name in FUNCTIONS if name not in OPERATIONS} | {"ln": "log"}
CONSTANTS = {"pi": math.pi}
DISTANCES = ("distance", "distance_rate")
MAX_SIZE = 100_000  # operations in an expression, with the parameters put in
MAX_TOTAL = 3_000_000  # operations in all expressions of a file
MAX_POINTS = 100_000  # of a table
_TABLE_MISS = 1e-9  # of the largest y: how far rounding may take a spline from its last point
# An angle stays one in these; those that give an angle; which arguments carry it.
_KEEP_ANGLE = {"neg": (0,), "add": (0, 1), "sub": (0, 1), "mul": (0, 1), "div": (0,), "abs": (0,), "min": (0, 1)}
_KEEP_ANGLE.update({"max": (0, 1), "if": (1, 2), "mod": (0, 1), **dict.fromkeys(("step", *MOTION_LAWS), (2, 4))})
_GIVE_ANGLE = ("asin", "acos", "atan", "atan2")
# These take like and like: an angle beside a plain number is a mixture.
_ALIKE = ("add", "sub", "min", "max", "if", "mod", "step", *MOTION_LAWS)


@dataclass(slots=True)
class Value:
    """An expression, its number if it is constant, and whether it is an angle by its units."""

    expression: Expression
    number: float | None = None
    angle: bool = False
    size: int = 1
    depth: int = 0
    mixed: tuple[Node, Node] | None = None  # a term with a unit of angle, and one beside it that has none


class Given(Value):
    """A value from outside that was written as text: whether it is an angle is known. Numbers are in SI units."""


class Scope:
    """The parameters so far, and how values are read with them."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, Value | None]] = {}
        self.values: dict[str, float] = {}
        self.overridden: dict[str, Value] = {}
        self.later: dict[str, tuple[int, int]] = {}  # where each PARAMETER is defined: place and line
        self.without_unit: list[tuple[str, float]] = []  # angles that were given from outside as plain text
        self._total = 0
        self._measure: Measure | None = None

    def define(self, name: Word, value: Value | None) -> None:
        """A parameter; None for one that could not be read."""
        key = name.text.lower()
        if key in self._known:
            raise Fault(name, f"there is a parameter {self._known[key][0]!r} already; choose another name")
        self._known[key] = (name.text, value)
        if value is None:
            return
        override = self.overridden.pop(key, None)
        number = value.number if override is None else override.number
        if number is not None:
            self.values[name.text] = number
            parameter = Value(Name(name.text), None, value.angle, mixed=value.mixed)
            if isinstance(override, Given):
                parameter = Value(Name(name.text), None, override.angle)
                if value.angle and not override.angle and number != 0.0:
                    self.without_unit.append((name.text, number))
            elif override is not None:
                parameter.mixed = None
            self._known[key] = (name.text, parameter)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self._known.values()]

    def all_values(self) -> dict[str, float]:
        """Every parameter as it stands, by name; one without a value is left out."""
        values = {}
        for name, value in self._known.values():
            number = None if value is None else computed(value.expression.evaluate, self.values)
            if number is not None:
                values[name] = number
        return values

    # -- expressions --------------------------------------------------------------------------------------
    def value(self, node: Node, *, time: bool = False, measure: Measure | None = None) -> Value:
        """An expression of parameters, of TIME where that is allowed, and of what `measure` makes of hinge.angle."""
        before, self._measure = self._measure, measure
        try:
            value = self._value(node, time)
        finally:
            self._measure = before
        self._total += value.size
        if value.size > MAX_SIZE or self._total > MAX_TOTAL:
            raise Fault(node, "this becomes too large when the parameters are put in; simplify the PARAMETERs")
        if value.depth > MAX_DEPTH:
            text = f"more than {MAX_DEPTH} operations one inside the other, with the parameters put in; simplify it"
            raise Fault(node, text)
        return value

    def _value(self, node: Node, time: bool) -> Value:
        if isinstance(node, Num):
            return self._number(node)
        if isinstance(node, Word):
            return self._name(node, time)
        if isinstance(node, Applied):
            return self._applied(node, time)
        if isinstance(node, Dotted):
            if self._measure is not None:
                return Value(self._measure(node))
            raise Fault(node, "coordinates can be used in the laws of forces only; here, use parameters and TIME")
        if isinstance(node, Vector | Listed):
            raise Fault(node, f"expected one number, not {'a vector' if isinstance(node, Vector) else 'a list'}")
        raise Fault(node, "expected a number or an expression")

    def _number(self, node: Num) -> Value:
        value, angle = node.value, False
        if node.unit is not None:
            factor = UNITS.get(node.unit.text.lower())
            if factor is None:
                known = did_you_mean(node.unit.text, UNITS) or "; angles may have deg or rad, all else is in SI units"
                raise Fault(node.unit, f"there is no unit {node.unit.text!r}{known}")
            value, angle = math.copysign(abs(value) * factor, value), True
        if not math.isfinite(value):
            raise Fault(node, "this number is too large")
        return Value(Number(value), value, angle)

    def _name(self, node: Word, time: bool) -> Value:
        key = node.text.lower()
        if not node.quoted and key in CONSTANTS:
            return Value(Number(CONSTANTS[key]), CONSTANTS[key])
        if not node.quoted and key == "time":
            if not time:
                raise Fault(node, "TIME can be used in the laws of drivers and forces only")
            return Value(TIME)
        known = self._known.get(key)
        if known is None:
            extra = ["TIME"] if time else []
            place, line = self.later.get(key, (-1, 0))
            if place > node.start:
                text = f"parameter {node.text!r} is defined later, in line {line}; move its PARAMETER before this one"
                raise Fault(node, text)
            hint = did_you_mean(node.text, [*self.names, *extra, *CONSTANTS])
            raise Fault(node, f"there is no parameter {node.text!r}{hint}")
        if known[1] is None:
            raise Fault
        return known[1]

    def _applied(self, node: Applied, time: bool) -> Value:
        function = node.function.text if node.operation else node.function.text.lower()
        if node.operation and function == "div" and self._is_rate(node):
            return self._value(node.arguments[0], time)
        if not node.operation:
            if function == "table":
                return self._table(node, time)
            if function == "cam":
                expression, operations = cam_expression(
                    node, lambda x, moving: self._value(x, moving and time), self.now
                )
                return Value(expression, size=operations, depth=expression.depth)
            if function in DISTANCES and self._measure is not None:
                return Value(self._measure(node))
            if function not in CALLS:
                hint = did_you_mean(function, [*CALLS, "table", "cam"])
                raise Fault(node.function, f"there is no function {node.function.text!r}{hint}")
            function = CALLS[function]
        arguments = [self._value(a, time) for a in node.arguments]
        if function in ("min", "max") and len(arguments) > 2:
            nested = arguments[0]
            for k, argument in enumerate(arguments[1:], 1):
                nested = self._call(node, function, [nested, argument], node.arguments[k - 1 : k + 1])
            return nested
        wanted = FUNCTIONS[function][0]
        if len(arguments) != wanted:
            least = "at least " if function in ("min", "max") else ""
            count = f"{wanted} argument{'s' * (wanted != 1)}"
            raise Fault(node.function, f"{node.function.text} takes {least}{count}, not {len(arguments)}")
        if function == "div" and arguments[1].number == 0.0:
            raise Fault(node.arguments[1], "division by zero")
        return self._call(node, function, arguments, node.arguments)

    def _is_rate(self, node: Applied) -> bool:
        """Whether a quotient is a unit: rad/s, where no parameter is called s."""
        angle, second = node.arguments
        unit = isinstance(angle, Num) and angle.unit is not None
        return unit and isinstance(second, Word) and not second.quoted and second.text == "s" and "s" not in self._known

    def _call(self, node: Applied, function: str, arguments: list[Value], nodes: tuple[Node, ...]) -> Value:
        size = 1 + sum(a.size for a in arguments)
        if size > MAX_SIZE:
            raise Fault(node, "this becomes too large when the parameters are put in; simplify the PARAMETERs")
        value = Value(Call(function, tuple(a.expression for a in arguments)), size=size)
        value.depth = 1 + max(a.depth for a in arguments)
        terms = [(arguments[k], nodes[k]) for k in _KEEP_ANGLE.get(function, ())]
        value.angle = function in _GIVE_ANGLE or any(a.angle for a, _ in terms)
        value.mixed = next((a.mixed for a, _ in terms if a.mixed), None)
        if value.angle and not value.mixed and function in _ALIKE:
            value.mixed = mixture(terms)
        if all(a.number is not None for a in arguments):
            value.number = computed(FUNCTIONS[function][1], *(a.number for a in arguments))
            if value.number is None:
                raise Fault(node, "this is not a finite real number")
        return value

    def _table(self, node: Applied, time: bool) -> Value:
        points = node.arguments[1:]
        if len(points) < 2:
            raise Fault(node.function, "a table needs an argument and at least two points: table(x, (0, 0), (1, 2))")
        if len(points) > MAX_POINTS:
            raise Fault(node.function, f"a table has at most {MAX_POINTS} points, not {len(points)}")
        rows: list[list[float]] = []
        heights: list[tuple[Value, Node]] = []
        for point in points:
            if not isinstance(point, Vector) or len(point) != 2:
                raise Fault(point, "a point of a table is two numbers in parentheses: (x, y)")
            rows.append(self.constants(point, 2))
            y = rows[-1][1]
            heights.append((self._value(point.entries[1], False) if point.entries else Value(Number(y), y), point))
            if len(rows) > 1 and not rows[-1][0] > rows[-2][0]:
                raise Fault(point, "the x of a table must increase from point to point")
        argument = self.value(node.arguments[0], time=time, measure=self._measure)
        try:
            with np.errstate(all="ignore"):
                lookup = tabulated(argument.expression, rows)
        except (ValueError, ArithmeticError):
            raise Fault(node, "there is no spline through these points; move them apart") from None
        with np.errstate(all="ignore"):
            miss = abs(float(lookup.table(rows[-1][0])) - rows[-1][1])
        if not miss <= _TABLE_MISS * max(abs(row[1]) for row in rows):
            raise Fault(node, "the spline misses these points by rounding alone: they are too close, or too far apart")
        angle = any(y.angle for y, _ in heights)
        return Value(lookup, None, angle, argument.size + 1, argument.depth + 1, mixture(heights) if angle else None)

    # -- numbers ------------------------------------------------------------------------------------------
    def constant(self, node: Node) -> float:
        """A number without parameters."""
        return self.plain(self.value(node), node)

    def plain(self, value: Value, node: Node) -> float:
        """The number of a value that depends on no parameter."""
        if value.number is None:
            raise Fault(node, "this cannot depend on a parameter; give a plain number")
        return value.number

    def numeric(self, node: Node) -> Numeric:
        """A number, or an expression of parameters that has a finite value now."""
        return self.bound_number(self.value(node), node)

    def bound_number(self, value: Value, node: Node) -> Numeric:
        if value.number is not None:
            return value.number
        self.now(value, node)
        return value.expression

    def now(self, value: Value, node: Node) -> float:
        """The value with the present parameters."""
        if value.number is not None:
            return value.number
        number = computed(value.expression.evaluate, self.values)
        if number is None:
            raise Fault(node, "this is not a finite real number with these values of the parameters")
        return number

    def vector(self, node: Node, *counts: int) -> list[Numeric]:
        """A vector of numbers or expressions."""
        if not isinstance(node, Vector) or len(node) not in counts:
            count = f"; {len(node)} given" if isinstance(node, Vector) else ""
            wanted = " or ".join(map(str, counts))
            raise Fault(node, f"expected {wanted} numbers in parentheses{count}")
        if node.values:
            if not all(map(math.isfinite, node.values)):
                raise Fault(node, "a number here is too large")
            return list(node.values)
        return [self.numeric(entry) for entry in node.entries]

    def point(self, node: Node) -> list[Numeric]:
        """A point or direction: three numbers or expressions, or two, whose z is 0."""
        entries = self.vector(node, 2, 3)
        return entries if len(entries) == 3 else [*entries, 0.0]

    def constants(self, node: Node, *counts: int) -> list[float]:
        """A vector of plain numbers."""
        entries = self.vector(node, *counts)
        for k, entry in enumerate(entries):
            if isinstance(entry, Expression):
                raise Fault(node.entries[k], "this cannot depend on a parameter; give a plain number")  # type: ignore[attr-defined]
        return entries  # type: ignore[return-value]


def mixture(terms: list[tuple[Value, Node]]) -> tuple[Node, Node] | None:
    """A term with a unit of angle and one without, if there are both; zero is zero in any unit."""
    angles = [node for value, node in terms if value.angle]
    plain = [node for value, node in terms if not value.angle and value.number != 0.0]
    return (angles[0], plain[0]) if angles and plain else None


def computed(function: Any, *arguments: Any) -> float | None:
    """A function's value, or None where it is not a finite real number."""
    try:
        with np.errstate(all="ignore"):
            value = function(*arguments)
        number = float(value) if not isinstance(value, complex) else math.nan
    except (ArithmeticError, ValueError, TypeError):
        return None
    return number if math.isfinite(number) else None


def words_of(node: Node) -> str | None:
    """A value that is words, in small letters; None for any other."""
    if isinstance(node, Phrase):
        return " ".join(node.words).lower()
    return node.text.lower() if isinstance(node, Word) and not node.quoted else None


def now_of(entries: list[Numeric], parameters: Mapping[str, float]) -> list[float]:
    """The present values of numbers and expressions that are known to have some."""
    return [float(x.evaluate(parameters)) if isinstance(x, Expression) else x for x in entries]


MAX_LETTERS = 1000


class _Symbols(Scope):
    """A scope in which every name but pi is a symbol."""

    def _name(self, node: Word, time: bool) -> Value:
        known = not node.quoted and node.text.lower() in CONSTANTS
        return super()._name(node, time) if known else Value(Name(node.text))


def constant(text: str, what: str = "this") -> Given:
    """The value of a text such as `0.3`, `25 deg`, `1/3` or `2*pi`; `what` is how messages call it."""
    return _valued(text, what, Scope(), "give a number or an expression, such as 0.3, 25 deg or 2*pi")


def symbolic(text: str, what: str = "this") -> Given:
    """The value of a text that may have symbols besides, such as `2*l` or `l1 + pi/2`."""
    return _valued(text, what, _Symbols(), "give a number, a symbol or an expression, such as 0.3, 25 deg, pi/2 or 2*l")


def _valued(text: str, what: str, scope: Scope, use: str) -> Given:
    if len(text) > MAX_LETTERS:
        raise FormatError(f"{what} has {len(text)} letters; {MAX_LETTERS} at most")
    shown = shortened(text.strip(), 60)
    line = f"PARAMETER x = {text};"
    try:
        check_nesting(line, 0, len(line))
        value = scope.value(parsed_by_grammar(line, 0, len(line)).items[0].value)
    except UnexpectedInput:
        raise FormatError(f"{what} is {shown}; {use}") from None
    except Fault as fault:
        raise FormatError(f"{what} is {shown}: {fault.message}; {use}") from None
    return Given(value.expression, value.number, value.angle, value.size, value.depth, value.mixed)
