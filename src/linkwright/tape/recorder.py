"""The graph under construction, and element-wise functions that NumPy cannot dispatch on recorded scalars.

Two scalars are compared by <, two arrays by `less`: for arrays of objects NumPy turns the answers into truths.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from linkwright.errors import RecordingError
from linkwright.tape.operations import ADD, MUL, TABLE, Table
from linkwright.tape.scalar import CONSTANT, INPUT, Scalar, is_recorded


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold the garbage collector off: all that recording makes stays, and walking it costs as much as making it."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class Recorder:
    """The graph under construction: its nodes in the order of recording; equal nodes are one node."""

    __slots__ = ("constants", "differences", "nan", "nodes", "others", "products", "sums", "tables", "zero")

    def __init__(self) -> None:
        self.nodes: list[Scalar] = []
        # One table an operation, keyed by both operands in one number: the look-up is most of recording.
        self.sums: dict[int, Scalar] = {}
        self.differences: dict[int, Scalar] = {}
        self.products: dict[int, Scalar] = {}
        self.others: dict[tuple[int, ...], Scalar] = {}
        self.constants: dict[float, Scalar] = {}
        self.tables: list[Table] = []
        self.nan: Scalar | None = None
        self.zero = self.constant(0.0)

    def constant(self, value: float) -> Scalar:
        """The node of a constant; one node a value."""
        node = self.constants.get(value)
        if node is None:
            value = float(value)
            if value != value:  # NaN is not equal to itself, so the dictionary cannot find it
                if self.nan is None:
                    self.nan = Scalar(self, CONSTANT, None, value=value)
                return self.nan
            node = self.constants[value] = Scalar(self, CONSTANT, None, value=value)
        return node

    def input(self, position: int) -> Scalar:
        """A fresh input node."""
        return Scalar(self, INPUT, None, c=position)

    def node(self, op: int, a: Scalar, b: Scalar | None = None, c: Scalar | None = None) -> Scalar:
        """The node op(a, b, c), made at its first use."""
        key: tuple[int, ...] = (op, a.index)
        if b is not None:
            key = (op, a.index, b.index) if c is None else (op, a.index, b.index, c.index)
        node = self.others.get(key)
        if node is None:
            node = self.others[key] = Scalar(self, op, a, b, c)
        return node

    def sum(self, x: Scalar, y: Scalar) -> Scalar:
        """The node x + y, with nothing folded."""
        return self._symmetric(ADD, self.sums, x, y)

    def product(self, x: Scalar, y: Scalar) -> Scalar:
        """The node x·y, with nothing folded."""
        return self._symmetric(MUL, self.products, x, y)

    def _symmetric(self, op: int, known: dict[int, Scalar], x: Scalar, y: Scalar) -> Scalar:
        if x.index > y.index:
            x, y = y, x
        key = x.index << 32 | y.index
        node = known.get(key)
        if node is None:
            node = known[key] = Scalar(self, op, x, y)
        return node

    def lift(self, value: Any) -> Scalar:
        """A number as a scalar of this recording; scalars of another recording are refused."""
        if type(value) is float:
            return self.constant(value)
        if isinstance(value, Scalar):
            if value.recorder is not self:
                raise RecordingError(
                    "a recorded scalar of another recording was used here; "
                    "pass it in as an argument of the recorded function"
                )
            return value
        try:
            if isinstance(value, (str, bytes)):
                raise TypeError
            return self.constant(float(value))
        except (TypeError, ValueError):
            raise RecordingError(
                f"a recorded scalar cannot be combined with {type(value).__name__} {value!r}"
            ) from None

    def table(self, table: Table, x: Scalar) -> Scalar:
        """The node of a table at x, which carries the table's position in this recording; equal tables are one."""
        if table not in self.tables:
            self.tables.append(table)
        number = self.tables.index(table)
        key = (TABLE, x.index, number)
        node = self.others.get(key)
        if node is None:
            node = self.others[key] = Scalar(self, TABLE, x, None, number)
        return node


class Symbol:
    """A scalar that is written down and not computed; the functions here ask it for `written(name, values)`."""

    def written(self, name: str, values: tuple[Any, ...]) -> Any:
        raise NotImplementedError(name)


def _elementwise(
    recorded: Callable[..., Any], plain: Callable[..., Any], name: str, arguments: int, doc: str
) -> Callable[..., Any]:
    over_objects = np.frompyfunc(recorded, arguments, 1)

    def function(*values: Any) -> Any:
        if is_recorded(*values) or any(isinstance(v, Symbol) for v in values):
            return over_objects(*values)
        return plain(*values)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc}, element by element, over floats or recorded scalars."
    return function


def _recorder_of(*values: Any) -> Any:
    return next((v.recorder for v in values if isinstance(v, Scalar)), None)


def _method(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    def apply(*values: Any) -> Any:
        recorder = _recorder_of(*values)
        if recorder is None:
            symbol = next((v for v in values if isinstance(v, Symbol)), None)
            return plain(*values) if symbol is None else symbol.written(name, values)
        first, *others = (recorder.lift(v) for v in values)
        return getattr(first, name)(*others)

    return apply


def _plain_where(condition: Any, yes: Any, no: Any) -> Any:
    return np.where(np.asarray(condition, dtype=bool), yes, no)


where = _elementwise(_method("where", _plain_where), _plain_where, "where", 3, "yes where the condition holds, else no")
minimum = _elementwise(_method("minimum", np.minimum), np.minimum, "minimum", 2, "The smaller of a and b")
maximum = _elementwise(_method("maximum", np.maximum), np.maximum, "maximum", 2, "The larger of a and b")
sign = _elementwise(_method("sign", np.sign), np.sign, "sign", 1, "−1, 0 or 1")
arctan2 = _elementwise(_method("arctan2", np.arctan2), np.arctan2, "arctan2", 2, "The angle of the point (x, y)")
floor = _elementwise(_method("floor", np.floor), np.floor, "floor", 1, "The largest whole number not above x")
absolute = _elementwise(_method("fabs", np.abs), np.abs, "absolute", 1, "|x|")
less = _elementwise(_method("less", np.less), np.less, "less", 2, "Whether a < b")
less_equal = _elementwise(_method("less_equal", np.less_equal), np.less_equal, "less_equal", 2, "Whether a ≤ b")
equal = _elementwise(_method("equals", np.equal), np.equal, "equal", 2, "Whether a = b")


def greater(a: Any, b: Any) -> Any:
    """1 where a > b, else 0."""
    return less(b, a)


def greater_equal(a: Any, b: Any) -> Any:
    """1 where a ≥ b, else 0."""
    return less_equal(b, a)


def table(x: Any, spline: Table) -> Any:
    """The piecewise cubic `spline` at x, over floats or recorded scalars."""
    return spline(x)
