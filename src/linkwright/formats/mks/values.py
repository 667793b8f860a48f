"""Values of a `.mks` text: arithmetic, units, parameters and tables, as numbers and expressions in SI units.

What reads an attribute asks the scope for a value of a dimension (`model/units.py` has them: LENGTH, MASS, FORCE, ...)
and has it in SI; a number without a unit is in the model's unit of that dimension, and a unit that does not fit is
a Fault at its place.

- `scope.numeric(node, LENGTH)`: a number, or an expression of parameters; `scope.constant(node, LENGTH)`: a number
  that depends on no parameter; `scope.vector(node, LENGTH, 3)` and `scope.constants(node, LENGTH, 3)`: three of them.
- `scope.value(node, LENGTH, time=True)`: an expression that may have TIME in it; with `measure=`, coordinates too.
- NUMBER is a plain number. None is any dimension, without conversion: a direction, or a PARAMETER.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from lark.exceptions import UnexpectedInput

from linkwright.base.arguments import shortened
from linkwright.errors import FormatError
from linkwright.formats.mks.cam_segments import cam_expression
from linkwright.formats.mks.dimensions import ANY_TIME, Dimensions, Value, last_measured, measured, scaled, si_number
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
from linkwright.model import units
from linkwright.model.expression import FUNCTIONS, TIME, Call, Expression, Name, Number, tabulated
from linkwright.model.quantities import Numeric
from linkwright.model.units import SI, Dimension, Unit, Units

#: What makes an expression of a coordinate or a distance in a law, and knows its dimension.
Measure = Callable[[Node], tuple[Expression, Dimension]]
OPERATIONS = ("neg", "add", "sub", "mul", "div", "pow", "lt", "le")
#: The functions that a text may call, and what they are called in expressions.
CALLS = {name: name for name in FUNCTIONS if name not in OPERATIONS} | {"ln": "log"}
CONSTANTS = {"pi": math.pi}
DISTANCES = ("distance", "distance_rate")
MAX_SIZE = 100_000  # operations in an expression, with the parameters put in
MAX_TOTAL = 3_000_000  # operations in all expressions of a file
MAX_POINTS = 100_000  # of a table
_TABLE_MISS = 1e-9  # of the largest y: how far rounding may take a spline from its last point


class Given(Value):
    """A value from outside that was written as text: its unit is known, if it has one."""


class Scope(Dimensions):
    """The parameters so far, and how values are read with them; `source` is the text, for messages."""

    def __init__(self, source: str = "") -> None:
        super().__init__(source)
        self._known: dict[str, tuple[str, Value | None]] = {}
        self.values: dict[str, float] = {}
        self.overridden: dict[str, Value] = {}
        self.later: dict[str, tuple[int, int]] = {}  # where each PARAMETER is defined: place and line
        self.fixed: frozenset[str] = frozenset()  # names of parameters, in small letters, that are plain numbers
        self.misfits: list[tuple[str, Value, Value]] = []  # values from outside without the parameter's unit
        self.parameter_units: dict[str, str] = {}
        self._total = 0
        self._measure: Measure | None = None
        self._bare = False  # whether a law has no units, so that TIME and coordinates are numbers in the model's

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
        if number is not None and key in self.fixed:
            self._known[key] = (name.text, Value(Number(number), number))
        elif number is not None:
            self.values[name.text] = number
            parameter = Value(Name(name.text), None, value.dimension, mixed=value.mixed, known=value.known)
            written = value
            if isinstance(override, Given):
                parameter.mixed = None
                if override.dimension is not None:
                    written, parameter.dimension, parameter.known = override, override.dimension, override.known
                wanted = value.dimension or override.dimension
                if wanted and number != 0.0 and not (override.dimension and wanted.like(override.dimension)):
                    self.misfits.append((name.text, value, override))
            elif override is not None:
                parameter.mixed = None
            if parameter.dimension is not None:
                unit = written.expression.unit if isinstance(written.expression, Number) else ""
                self.parameter_units[name.text] = unit or self.units.of(parameter.dimension).text
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
    def value(
        self, node: Node, dimension: Dimension | None, *, time: bool = False, measure: Measure | None = None
    ) -> Value:
        """An expression of parameters, of TIME where that is allowed, and of what `measure` makes of hinge.angle.

        It is in SI units, where the dimension belongs. In a law without units, other than those of angles, coordinates
        and TIME are numbers in the model's units, but angles are in radians.
        """
        before = self._measure, self._bare, self.unchecked
        self._measure = measure
        self._bare = (time or measure is not None) and not self._has_units(node)
        self.unchecked = plain = self._bare and measure is not None
        try:
            value = self._value(node, time)
        finally:
            self._measure, self._bare, self.unchecked = before
        self._total += value.size
        if value.size > MAX_SIZE or self._total > MAX_TOTAL:
            raise Fault(node, "this becomes too large when the parameters are put in; simplify the PARAMETERs")
        if value.depth > MAX_DEPTH:
            text = f"more than {MAX_DEPTH} operations one inside the other, with the parameters put in; simplify it"
            raise Fault(node, text)
        return self.fitted(value, node, dimension, plain)

    def _has_units(self, node: Node) -> bool:
        """Whether a law has numbers with units, or parameters, whose numbers are not the model's own."""
        left = [node]
        while left:
            part = left.pop()
            number = measured(part, self._known)
            ending = last_measured(part, self._known) if number is None else None
            if number is not None:
                d: Dimension | None = number[1].dimension
            elif ending is not None:
                d = ending[2].dimension
                left.append(ending[0].arguments[0])
            elif isinstance(part, Word) and not part.quoted:
                known = self._known.get(part.text.lower())
                d = known[1].dimension if known is not None and known[1] is not None else None
            else:
                d = None
                left.extend(getattr(part, "arguments", ()) or getattr(part, "entries", ()))
            if d is not None and (d.length or d.mass or (d.time and not (d.angle and self.units.time == "s"))):
                return True
        return False

    def _value(self, node: Node, time: bool) -> Value:
        number = measured(node, self._known)
        if number is not None:
            return self._measured(node, *number)
        if isinstance(node, Num):
            return self._number(node)
        if isinstance(node, Word):
            return self._name(node, time)
        if isinstance(node, Applied):
            return self._applied(node, time)
        if isinstance(node, Dotted):
            if self._measure is not None:
                return self._coordinate(self._measure, node)
            raise Fault(node, "coordinates can be used in the laws of forces only; here, use parameters and TIME")
        if isinstance(node, Vector | Listed):
            raise Fault(node, f"expected one number, not {'a vector' if isinstance(node, Vector) else 'a list'}")
        raise Fault(node, "expected a number or an expression")

    def _number(self, node: Num) -> Value:
        if not math.isfinite(node.value):
            raise Fault(node, "this number is too large")
        return Value(Number(node.value), node.value)

    @staticmethod
    def _measured(node: Node, number: float, unit: Unit) -> Value:
        if not math.isfinite(number):
            raise Fault(node, "this number is too large")
        number = si_number(number, unit, node)
        return Value(Number(number, unit.text), number, unit.dimension, literal=True)

    def _coordinate(self, measure: Measure, node: Node) -> Value:
        expression, dimension = measure(node)
        if self._bare:
            return Value(scaled(expression, self.units.of(dimension._replace(angle=0)), back=True))
        return Value(expression, dimension=dimension, moving=True)

    def _time(self) -> Value:
        unit = self.units.of(units.TIME)
        if self._bare or unit.is_si:
            return Value(scaled(TIME, unit, back=True), known=ANY_TIME if unit.is_si else 0)
        return Value(TIME, dimension=units.TIME)

    def _name(self, node: Word, time: bool) -> Value:
        key = node.text.lower()
        if not node.quoted and key in CONSTANTS:
            return Value(Number(CONSTANTS[key]), CONSTANTS[key])
        if not node.quoted and key == "time":
            if not time:
                raise Fault(node, "TIME can be used in the laws of drivers and forces only")
            return self._time()
        if not node.quoted and key in self.variables:
            return self.variables[key]
        known = self._known.get(key)
        if known is None:
            extra = ["TIME"] if time else []
            place, line = self.later.get(key, (-1, 0))
            if place > node.start:
                text = f"parameter {node.text!r} is defined later, in line {line}; move its PARAMETER before this one"
                raise Fault(node, text)
            hint = did_you_mean(node.text, [*self.names, *self.variables, *extra, *CONSTANTS])
            raise Fault(node, f"there is no parameter {node.text!r}{hint}")
        if known[1] is None:
            raise Fault
        return known[1]

    def _applied(self, node: Applied, time: bool) -> Value:
        function = node.function.text if node.operation else node.function.text.lower()
        if not node.operation:
            if function == "table":
                return self._table(node, time)
            if function == "cam":
                return self._cam(node, time)
            if function in DISTANCES and self._measure is not None:
                return self._coordinate(self._measure, node)
            if function not in CALLS:
                hint = did_you_mean(function, [*CALLS, "table", "cam"])
                raise Fault(node.function, f"there is no function {node.function.text!r}{hint}")
            function = CALLS[function]
        ending = last_measured(node, self._known)
        if ending is not None:
            product, x, unit = ending
            terms = [self._value(product.arguments[0], time), self._measured(node, x, unit)]
            return self._call(product, product.function.text, terms, product.arguments)
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

    def _call(self, node: Applied, function: str, arguments: list[Value], nodes: tuple[Node, ...]) -> Value:
        size = 1 + sum(a.size for a in arguments)
        if size > MAX_SIZE:
            raise Fault(node, "this becomes too large when the parameters are put in; simplify the PARAMETERs")
        value = Value(Call(function, tuple(a.expression for a in arguments)), size=size)
        value.depth = 1 + max(a.depth for a in arguments)
        self.settle(value, function, arguments, nodes)
        factor = arguments[-1]
        if function in ("mul", "div") and factor.literal and factor.number == 1.0 and arguments[0].number is None:
            value.expression, value.size = arguments[0].expression, arguments[0].size  # times 1 m: in SI units
        if all(a.number is not None for a in arguments):
            value.number = computed(FUNCTIONS[function][1], *(a.number for a in arguments))
            if value.number is None:
                raise Fault(node, "this is not a finite real number")
        return value

    def _cam(self, node: Applied, time: bool) -> Value:
        read = cam_expression(node, lambda x, moving: self._value(x, moving and time), self.now)
        self.join(read.places)
        height = self.join(read.heights, angles=True)
        lift = Value(read.expression, None, height.dimension, read.operations, read.expression.depth, height.mixed)
        lift.moving = read.places[0][0].moving
        return lift

    def _table(self, node: Applied, time: bool) -> Value:
        points = node.arguments[1:]
        if len(points) < 2:
            raise Fault(node.function, "a table needs an argument and at least two points: table(x, (0, 0), (1, 2))")
        if len(points) > MAX_POINTS:
            raise Fault(node.function, f"a table has at most {MAX_POINTS} points, not {len(points)}")
        rows: list[tuple[float, ...]] = []
        places: list[tuple[Value, Node]] = []
        heights: list[tuple[Value, Node]] = []
        for point in points:
            if not isinstance(point, Vector) or len(point) != 2:
                raise Fault(point, "a point of a table is two numbers in parentheses: (x, y)")
            terms = [(self._value(entry, False), entry) for entry in point.entries]
            terms = terms or [(self._number(Num(point.start, point.end, x)), point) for x in point.values]
            rows.append(tuple(self.plain(*term) for term in terms))
            places.append(terms[0])
            heights.append(terms[1])
            if len(rows) > 1 and not rows[-1][0] > rows[-2][0]:
                raise Fault(point, "the x of a table must increase from point to point")
        argument = self._value(node.arguments[0], time)
        self.join([(argument, node.arguments[0]), *places])
        height = self.join(heights, angles=True)
        try:
            with np.errstate(all="ignore"):
                lookup = tabulated(argument.expression, rows)
        except (ValueError, ArithmeticError):
            raise Fault(node, "there is no spline through these points; move them apart") from None
        with np.errstate(all="ignore"):
            miss = abs(float(lookup.table(rows[-1][0])) - rows[-1][1])
        if not miss <= _TABLE_MISS * max(abs(row[1]) for row in rows):
            raise Fault(node, "the spline misses these points by rounding alone: they are too close, or too far apart")
        spline = Value(lookup, None, height.dimension, argument.size + 1, argument.depth + 1, height.mixed)
        spline.moving = argument.moving
        return spline

    # -- numbers ------------------------------------------------------------------------------------------
    def constant(self, node: Node, dimension: Dimension | None) -> float:
        """A number without parameters."""
        return self.plain(self.value(node, dimension), node)

    def plain(self, value: Value, node: Node) -> float:
        """The number of a value that depends on no parameter."""
        if value.number is None:
            raise Fault(node, "this cannot depend on a parameter; give a plain number")
        return value.number

    def numeric(self, node: Node, dimension: Dimension | None) -> Numeric:
        """A number, or an expression of parameters that has a finite value now."""
        return self.bound_number(self.value(node, dimension), node)

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

    def vector(self, node: Node, dimension: Dimension | None, *counts: int) -> list[Numeric]:
        """A vector of numbers or expressions, of so many entries."""
        if not isinstance(node, Vector) or len(node) not in counts:
            count = f"; {len(node)} given" if isinstance(node, Vector) else ""
            wanted = " or ".join(map(str, counts))
            raise Fault(node, f"expected {wanted} numbers in parentheses{count}")
        if node.values:
            if not all(map(math.isfinite, node.values)):
                raise Fault(node, "a number here is too large")
            unit = self.units.of(dimension) if dimension is not None else None
            return list(node.values) if unit is None else [si_number(x, unit, node) for x in node.values]
        entries = [self.value(entry, dimension) for entry in node.entries]
        if dimension is None:
            self.check_direction(list(zip(entries, node.entries, strict=True)))
        return [self.bound_number(value, entry) for value, entry in zip(entries, node.entries, strict=True)]

    def point(self, node: Node, dimension: Dimension | None) -> list[Numeric]:
        """A point or direction: three numbers or expressions, or two, whose z is 0."""
        entries = self.vector(node, dimension, 2, 3)
        return entries if len(entries) == 3 else [*entries, 0.0]

    def constants(self, node: Node, dimension: Dimension | None, *counts: int) -> list[float]:
        """A vector of plain numbers."""
        entries = self.vector(node, dimension, *counts)
        for k, entry in enumerate(entries):
            if isinstance(entry, Expression):
                raise Fault(node.entries[k], "this cannot depend on a parameter; give a plain number")  # type: ignore[attr-defined]
        return entries  # type: ignore[return-value]


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


def constant(text: str, what: str = "this", dimension: Dimension | None = None, model: Units = SI) -> Given:
    """The value of a text such as `0.3`, `25 deg`, `40 mm` or `2*pi`, in SI units; `what` is how messages call it.

    A unit must be of the dimension, if one is given; a number without one is in the unit that a model has for it.
    """
    advice = f"give a number or an expression, such as 0.3{'' if dimension else ', 25 deg'} or 2*pi"
    return _valued(text, what, Scope(), dimension, advice, model)


def symbolic(text: str, what: str = "this") -> Given:
    """The value of a text that may have symbols besides, such as `2*l` or `l1 + pi/2`."""
    advice = "give a number, a symbol or an expression, such as 0.3, 25 deg, pi/2 or 2*l"
    return _valued(text, what, _Symbols(), None, advice)


def _valued(text: str, what: str, scope: Scope, dimension: Dimension | None, use: str, model: Units = SI) -> Given:
    if len(text) > MAX_LETTERS:
        raise FormatError(f"{what} has {len(text)} letters; {MAX_LETTERS} at most")
    shown = shortened(text.strip(), 60)
    line = f"PARAMETER x = {text};"
    try:
        check_nesting(line, 0, len(line))
        scope.source, scope.units = line, model
        value = scope.value(parsed_by_grammar(line, 0, len(line)).items[0].value, None)
        if value.dimension is not None or model is not SI:
            value = scope.fitted(value, Node(14, len(line) - 1), dimension)
    except UnexpectedInput:
        raise FormatError(f"{what} is {shown}; {use}") from None
    except Fault as fault:
        raise FormatError(f"{what} is {shown}: {fault.message}; {use}") from None
    return Given(**{field.name: getattr(value, field.name) for field in fields(Value)})
