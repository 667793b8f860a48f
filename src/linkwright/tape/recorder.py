"""The graph of recorded scalars under construction: its nodes in the order of recording, equal nodes as one node."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from linkwright.errors import RecordingError
from linkwright.tape.operations import ADD, MUL, TABLE
from linkwright.tape.scalar import CONSTANT, INPUT, Scalar
from linkwright.tape.table import Table


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
