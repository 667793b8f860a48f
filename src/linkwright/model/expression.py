"""Expressions of parameters, coordinates and TIME: a small immutable tree, evaluated over any scalar.

One table of functions serves floats, arrays and recorded scalars. Nothing here parses text. Trees are walked by
recursion, so their depth is bounded where they are made.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.errors import ModelError, NameNotFound
from linkwright.model.motion_laws import MOTION_LAWS, mod, quotient
from linkwright.tape.block import Symbol, absolute, arctan2, floor, maximum, minimum, sign, table, where
from linkwright.tape.operations import Table


def _step(x: Any, x0: Any, y0: Any, x1: Any, y1: Any) -> Any:
    """y0 before x0, y1 after x1, and between them the cubic with level ends."""
    s = minimum(maximum(quotient(x - x0, x1 - x0), 0.0), 1.0)
    return y0 + (y1 - y0) * s * s * (3.0 - 2.0 * s)


def _power(x: Any, y: Any) -> Any:
    """x to the power of y; of numbers, as floating-point arithmetic has it: NaN where it would be complex."""
    if isinstance(x, float) and isinstance(y, float):
        with np.errstate(all="ignore"):
            return np.float64(x) ** np.float64(y)
    return x**y


#: name → (number of arguments, function over any scalar).
FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "neg": (1, lambda x: -x),
    "add": (2, lambda x, y: x + y),
    "sub": (2, lambda x, y: x - y),
    "mul": (2, lambda x, y: x * y),
    "div": (2, quotient),
    "pow": (2, _power),
    "lt": (2, lambda x, y: where(x < y, 1.0, 0.0)),
    "le": (2, lambda x, y: where(x <= y, 1.0, 0.0)),
    "sqrt": (1, np.sqrt),
    "sin": (1, np.sin),
    "cos": (1, np.cos),
    "tan": (1, np.tan),
    "asin": (1, np.arcsin),
    "acos": (1, np.arccos),
    "atan": (1, np.arctan),
    "atan2": (2, arctan2),
    "exp": (1, np.exp),
    "log": (1, np.log),
    "sinh": (1, np.sinh),
    "cosh": (1, np.cosh),
    "tanh": (1, np.tanh),
    "abs": (1, absolute),
    "sign": (1, sign),
    "floor": (1, floor),
    "min": (2, minimum),
    "max": (2, maximum),
    "if": (3, where),
    "step": (5, _step),
    "mod": (2, mod),
    **{name: (5, law) for name, law in MOTION_LAWS.items()},
}

#: What the functions of the tape are called here.
_WRITTEN = {
    "where": "if",
    "minimum": "min",
    "maximum": "max",
    "sign": "sign",
    "arctan2": "atan2",
    "floor": "floor",
    "fabs": "abs",
    "less": "lt",
    "less_equal": "le",
}
_INFIX = {"add": ("+", 1), "sub": ("-", 1), "mul": ("*", 2), "div": ("/", 2), "lt": ("<", 0), "le": ("<=", 0)}


#: Operations inside operations; the terms of a sum count, each holds the ones before it.
MAX_DEPTH = 300


def _method(function: str) -> Callable[[Expression], Expression]:
    """A method of expressions that is a function of the table."""

    def method(self: Expression) -> Expression:
        return Call(function, (self,))

    return method


def _operator(function: str) -> Callable[[Expression, Any], Expression]:
    """An operator with an expression on its left; with an array on the other side, NumPy does it entry by entry."""

    def method(self: Expression, other: Any) -> Expression:
        return NotImplemented if _is_array(other) else Call(function, (self, as_expression(other)))

    return method


def _swapped(function: str) -> Callable[[Expression, Any], Expression]:
    """The same with the expression on its right."""

    def method(self: Expression, other: Any) -> Expression:
        return NotImplemented if _is_array(other) else Call(function, (as_expression(other), self))

    return method


def _is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.ndim > 0


@dataclass(frozen=True)
class Expression(Symbol):
    """A node of the tree; arithmetic on expressions and numbers makes larger ones."""

    depth: ClassVar[int] = 0

    def evaluate(self, names: Mapping[str, Any]) -> Any:
        """The value for these values of the names, over any scalar."""
        raise TypeError("an expression is a Number, a Name, a Call or a Lookup")

    def names(self) -> frozenset[str]:
        """The names that it uses."""
        return frozenset()

    __add__, __radd__ = _operator("add"), _swapped("add")
    __sub__, __rsub__ = _operator("sub"), _swapped("sub")
    __mul__, __rmul__ = _operator("mul"), _swapped("mul")
    __truediv__, __rtruediv__ = _operator("div"), _swapped("div")
    __pow__, __rpow__ = _operator("pow"), _swapped("pow")
    __neg__, __abs__, __floor__ = _method("neg"), _method("abs"), _method("floor")

    # NumPy's element-wise functions find these on the entries of object arrays.
    sin, cos, tan = _method("sin"), _method("cos"), _method("tan")
    arcsin, arccos, arctan = _method("asin"), _method("acos"), _method("atan")
    sinh, cosh, tanh = _method("sinh"), _method("cosh"), _method("tanh")
    sqrt, exp, log = _method("sqrt"), _method("exp"), _method("log")

    def arctan2(self, other: Any) -> Expression:
        return Call("atan2", (self, as_expression(other)))

    def square(self) -> Expression:
        return self * self

    def __pos__(self) -> Expression:
        return self

    def __lt__(self, other: Any) -> Expression:
        return Condition("lt", (self, as_expression(other)))

    def __le__(self, other: Any) -> Expression:
        return Condition("le", (self, as_expression(other)))

    def __gt__(self, other: Any) -> Expression:
        return Condition("lt", (as_expression(other), self))

    def __ge__(self, other: Any) -> Expression:
        return Condition("le", (as_expression(other), self))

    def written(self, name: str, values: tuple[Any, ...]) -> Expression:
        if name not in _WRITTEN:
            raise TypeError(f"{name} has no place in an expression")
        return Call(_WRITTEN[name], tuple(as_expression(x) for x in values))


@dataclass(frozen=True)
class Number(Expression):
    """A constant. `unit` is only how it was written, as `40 mm` for 0.04: no part of its value."""

    value: float
    unit: str = field(default="", compare=False, repr=False)

    def evaluate(self, names: Mapping[str, Any]) -> Any:
        return self.value

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True)
class Name(Expression):
    """A parameter, TIME, or a coordinate that the context defines."""

    name: str

    def evaluate(self, names: Mapping[str, Any]) -> Any:
        if self.name not in names:
            raise NameNotFound("parameter or variable", self.name, list(names))
        return names[self.name]

    def names(self) -> frozenset[str]:
        return frozenset((self.name,))

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Call(Expression):
    """A function of the table on other expressions."""

    function: str
    arguments: tuple[Expression, ...]
    depth: int = field(init=False, repr=False, compare=False)  # type: ignore[misc]  # of a leaf it is the class's

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS:
            raise NameNotFound("function", self.function, list(FUNCTIONS))
        wanted = FUNCTIONS[self.function][0]
        if len(self.arguments) != wanted:
            raise ValueError(f"{self.function} takes {wanted} arguments, {len(self.arguments)} given")
        object.__setattr__(self, "depth", _deeper(*self.arguments))

    def evaluate(self, names: Mapping[str, Any]) -> Any:
        # Loops, here and below, take one frame a level where comprehensions take two.
        values = []
        for a in self.arguments:
            values.append(a.evaluate(names))
        return FUNCTIONS[self.function][1](*values)

    def names(self) -> frozenset[str]:
        names = self.arguments[0].names()
        for a in self.arguments[1:]:
            names |= a.names()
        return names

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, Call) or self.function != other.function:
            return False
        for a, b in zip(self.arguments, other.arguments, strict=True):  # noqa: SIM110  (one frame a level)
            if not (a is b or a == b):
                return False
        return True

    def __repr__(self) -> str:
        texts = []
        for a in self.arguments:
            texts.append(a.__repr__())
        comma = "," if len(texts) == 1 else ""
        return f"{type(self).__name__}(function={self.function!r}, arguments=({', '.join(texts)}{comma}))"

    def __str__(self) -> str:
        texts = []
        for a in self.arguments:
            texts.append(a.__str__())
        if self.function == "neg":
            return f"-({texts[0]})"
        if self.function == "pow":
            return f"({texts[0]})**({texts[1]})"
        if self.function in _INFIX:
            return f"({texts[0]} {_INFIX[self.function][0]} {texts[1]})"
        return f"{self.function}({', '.join(texts)})"


@dataclass(frozen=True, eq=False, repr=False)
class Condition(Call):
    """A comparison while an expression is being written; it is no truth that Python could branch on."""

    def __bool__(self) -> bool:
        text = "whether an expression is larger is known only when it is computed: use lw.where(condition, yes, no), "
        raise TypeError(text + "lw.minimum and lw.maximum in place of if, min and max")


@dataclass(frozen=True)
class Lookup(Expression):
    """A piecewise cubic of one expression."""

    table: Table
    argument: Expression
    depth: int = field(init=False, repr=False, compare=False)  # type: ignore[misc]

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _deeper(self.argument))

    def evaluate(self, names: Mapping[str, Any]) -> Any:
        return table(self.argument.evaluate(names), self.table)

    def names(self) -> frozenset[str]:
        return self.argument.names()

    def __str__(self) -> str:
        points = ", ".join(f"({x!r}, {y!r})" for x, y in self.table.points())
        return f"table({self.argument}, {points})"


TIME = Name("TIME")


def _deeper(*arguments: Expression) -> int:
    """The depth of an operation on these."""
    depth = 1 + max(a.depth for a in arguments)
    if depth > MAX_DEPTH:
        text = f"an expression has more than {MAX_DEPTH} operations one inside the other"
        raise ModelError(f"{text}; give a part of it as a parameter of its own")
    return depth


def tabulated(argument: Expression, points: Sequence[Sequence[float]]) -> Lookup:
    """The natural cubic spline through points (x, y), of an expression."""
    x, y = zip(*points, strict=True)
    return Lookup(Table.spline(x, y), argument)


def as_expression(value: Any) -> Expression:
    """A number or an expression, as an expression."""
    return value if isinstance(value, Expression) else Number(float(value))


def numeric_values(expression: Expression, names: Mapping[str, float | Floats]) -> Floats:
    """The values where the names are numbers or arrays of one shape; infinite or NaN where the formula has none."""
    arrays = {name: np.asarray(x, dtype=np.float64)[()] for name, x in names.items()}
    with np.errstate(all="ignore"):
        return np.asarray(expression.evaluate(arrays), dtype=np.float64)


def by_parts(call: Call) -> Expression:
    """A motion law of cams or a remainder as an expression of the other functions; any other call as it is."""
    if call.function == "mod" or call.function in MOTION_LAWS:
        return replaced(as_expression(FUNCTIONS[call.function][1](*call.arguments)), {})
    return call


def total(terms: Sequence[Expression]) -> Expression:
    """The sum of one term or more, from the left."""
    return reduce(operator.add, terms)


def parts(*expressions: Expression) -> Iterator[Expression]:
    """Every node of these trees, each shared part once, in the order of their appearance."""
    seen: set[int] = set()
    left = list(reversed(expressions))
    while left:
        part = left.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, Call):
            left.extend(reversed(part.arguments))
        elif isinstance(part, Lookup):
            left.append(part.argument)


def replaced(expression: Expression, by: Mapping[Expression, Expression]) -> Expression:
    """The same tree with some of its leaves exchanged, and of plain nodes alone."""
    if isinstance(expression, Lookup):
        return Lookup(expression.table, replaced(expression.argument, by))
    if isinstance(expression, Call):
        return Call(expression.function, tuple(replaced(a, by) for a in expression.arguments))
    return by.get(expression, expression)


def simplified(expression: Expression) -> Expression:
    """The same value with constants folded: 0·x, 1·x, x + 0 and functions of numbers alone.

    Cosines and sines of numbers stay, so that closed forms know their angles.
    """
    if isinstance(expression, Lookup):
        return Lookup(expression.table, simplified(expression.argument))
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(simplified(a) for a in expression.arguments)
    if all(isinstance(a, Number) for a in arguments):
        value = float(Call(expression.function, arguments).evaluate({}))
        if expression.function not in ("cos", "sin") or value in (-1.0, 0.0, 1.0):
            return Number(value)
    fold = _FOLDS.get(expression.function)
    folded = fold(*arguments) if fold else None
    return Call(expression.function, arguments) if folded is None else folded


def _is(expression: Expression, value: float) -> bool:
    return isinstance(expression, Number) and expression.value == value


def _fold_add(x: Expression, y: Expression) -> Expression | None:
    return y if _is(x, 0.0) else x if _is(y, 0.0) else None


def _fold_sub(x: Expression, y: Expression) -> Expression | None:
    return simplified(-y) if _is(x, 0.0) else x if _is(y, 0.0) else None


def _fold_mul(x: Expression, y: Expression) -> Expression | None:
    if _is(x, 0.0) or _is(y, 0.0):
        return Number(0.0)
    if _is(x, -1.0) or _is(y, -1.0):
        return simplified(-(y if _is(x, -1.0) else x))
    return y if _is(x, 1.0) else x if _is(y, 1.0) else None


def _fold_div(x: Expression, y: Expression) -> Expression | None:
    return Number(0.0) if _is(x, 0.0) else x if _is(y, 1.0) else None


def _fold_neg(x: Expression) -> Expression | None:
    return x.arguments[0] if isinstance(x, Call) and x.function == "neg" else None


_FOLDS: dict[str, Callable[..., Expression | None]] = {
    "add": _fold_add,
    "sub": _fold_sub,
    "mul": _fold_mul,
    "div": _fold_div,
    "neg": _fold_neg,
}
