"""Recorded scalars: arithmetic on them leaves a hash-consed graph, with zeros, ones and signs folded away.

A scalar lives in NumPy object arrays and answers NumPy's element-wise functions (`np.sin` calls `.sin()`).
Folding never leaves the class: a constant result is a constant scalar, not a float.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from linkwright.errors import RecordingError
from linkwright.tape import operations as O
from linkwright.tape.table import Table

CONSTANT, INPUT = -1, -2


class Recorder:
    """The graph under construction: parallel lists, one entry a node; equal nodes are one node."""

    __slots__ = ("a", "b", "c", "constants", "memo", "nodes", "op", "tables", "zero")

    def __init__(self) -> None:
        self.op: list[int] = []
        self.a: list[Any] = []  # an operand's node, a constant's value, an input's position
        self.b: list[int] = []
        self.c: list[int] = []
        self.nodes: list[Scalar] = []
        self.memo: dict[Any, Scalar] = {}
        self.constants: dict[float, Scalar] = {}
        self.tables: list[Table] = []
        self.zero = self.constant(0.0)

    def constant(self, value: float) -> Scalar:
        """The node of a constant; one node a value."""
        node = self.constants.get(value)
        if node is None:
            node = Scalar(self, len(self.op), float(value))
            self._append(node, CONSTANT, value, -1, -1)
            self.constants[value] = node
        return node

    def input(self, position: int) -> Scalar:
        """A fresh input node."""
        node = Scalar(self, len(self.op), None)
        self._append(node, INPUT, position, -1, -1)
        return node

    def _append(self, node: Scalar, op: int, a: Any, b: int, c: int) -> None:
        self.op.append(op)
        self.a.append(a)
        self.b.append(b)
        self.c.append(c)
        self.nodes.append(node)

    def node(self, op: int, a: int, b: int = -1, c: int = -1) -> Scalar:
        """The node op(a, b, c), made at its first use."""
        key = (op, a, b, c)
        node = self.memo.get(key)
        if node is None:
            node = Scalar(self, len(self.op), None)
            self.op.append(op)
            self.a.append(a)
            self.b.append(b)
            self.c.append(c)
            self.nodes.append(node)
            self.memo[key] = node
        return node

    def lift(self, value: Any) -> Scalar:
        """A number as a scalar of this recording; scalars of another recording are refused."""
        if isinstance(value, Scalar):
            if value.recorder is not self:
                raise RecordingError(
                    "a recorded scalar of another recording was used here; "
                    "pass it in as an argument of the recorded function"
                )
            return value
        try:
            return self.constant(float(value))
        except (TypeError, ValueError):
            raise RecordingError(
                f"a recorded scalar cannot be combined with {type(value).__name__} {value!r}"
            ) from None

    def table_index(self, table: Table) -> int:
        """The position of a table in this recording; equal tables are one."""
        for index, known in enumerate(self.tables):
            if known == table:
                return index
        self.tables.append(table)
        return len(self.tables) - 1

    def sources(self, index: int) -> tuple[int, ...]:
        """The operand nodes of a node."""
        op = self.op[index]
        if op < 0:
            return ()
        return (self.a[index], self.b[index], self.c[index])[: O.OPERATIONS[op].arity]


_NUMBERS = (float, int)


class Scalar:
    """One node of a recording; `value` is its number if it is a constant, else None."""

    __slots__ = ("index", "recorder", "value")

    def __init__(self, recorder: Recorder, index: int, value: float | None) -> None:
        self.recorder = recorder
        self.index = index
        self.value = value

    # -- arithmetic ----------------------------------------------------------------------------
    def __add__(self, other: Any) -> Scalar:
        if type(other) is not Scalar:
            if type(other) is np.ndarray:
                return NotImplemented
            if type(other) is float and other == 0.0:
                return self
            other = self.recorder.lift(other)
        a, b = self.value, other.value
        if a is not None:
            if b is not None:
                return self.recorder.constant(a + b)
            if a == 0.0:
                return other  # type: ignore[no-any-return]
        elif b == 0.0:
            return self
        rec = self.recorder
        if other.recorder is not rec:
            rec.lift(other)
        i, j = self.index, other.index
        op = rec.op
        if op[j] == O.NEG:
            return self - rec.nodes[rec.a[j]]
        if op[i] == O.NEG:
            return other - rec.nodes[rec.a[i]]  # type: ignore[no-any-return]
        return rec.node(O.ADD, i, j) if i < j else rec.node(O.ADD, j, i)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Scalar:
        if type(other) is not Scalar:
            if type(other) is np.ndarray:
                return NotImplemented
            if type(other) is float and other == 0.0:
                return self
            other = self.recorder.lift(other)
        a, b = self.value, other.value
        rec = self.recorder
        if a is not None:
            if b is not None:
                return rec.constant(a - b)
            if a == 0.0:
                return -other  # type: ignore[no-any-return]
        elif b is not None:
            if b == 0.0:
                return self
            return self + rec.constant(-b)
        if other.recorder is not rec:
            rec.lift(other)
        i, j = self.index, other.index
        if i == j:
            return rec.zero
        op = rec.op
        if op[j] == O.NEG:
            return self + rec.nodes[rec.a[j]]
        if op[i] == O.NEG:
            return -(rec.nodes[rec.a[i]] + other)
        known = rec.memo.get((O.SUB, j, i, -1))
        if known is not None:
            return -known
        return rec.node(O.SUB, i, j)

    def __rsub__(self, other: Any) -> Scalar:
        return self.recorder.lift(other) - self

    def __mul__(self, other: Any) -> Scalar:
        rec = self.recorder
        if type(other) is not Scalar:
            if type(other) is np.ndarray:
                return NotImplemented
            if type(other) is float:
                if other == 0.0:
                    return rec.zero
                if other == 1.0:
                    return self
            other = rec.lift(other)
        a, b = self.value, other.value
        if a is None and b is None:
            if other.recorder is not rec:
                rec.lift(other)
            i, j = self.index, other.index
            op = rec.op
            if op[i] == O.NEG:
                return -(rec.nodes[rec.a[i]] * other)
            if op[j] == O.NEG:
                return -(self * rec.nodes[rec.a[j]])
            return rec.node(O.MUL, i, j) if i < j else rec.node(O.MUL, j, i)
        if a is not None and b is not None:
            return rec.constant(a * b)
        factor: float
        if a is not None:
            factor, x = a, other
        else:
            factor, x = b, self
        if factor == 0.0:
            return rec.zero
        if factor == 1.0:
            return x  # type: ignore[no-any-return]
        if factor == -1.0:
            return -x  # type: ignore[no-any-return]
        i = x.index
        op_i = rec.op[i]
        if op_i == O.NEG:
            return -(rec.nodes[rec.a[i]] * factor)
        if op_i == O.MUL:
            inner = rec.nodes[rec.a[i]]
            if inner.value is not None:
                return rec.nodes[rec.b[i]] * (inner.value * factor)
            inner = rec.nodes[rec.b[i]]
            if inner.value is not None:
                return rec.nodes[rec.a[i]] * (inner.value * factor)
        if factor < 0.0:
            return -(x * -factor)  # type: ignore[no-any-return]
        return rec.node(O.MUL, rec.constant(factor).index, i)

    __rmul__ = __mul__

    def __neg__(self) -> Scalar:
        rec = self.recorder
        if self.value is not None:
            return rec.constant(-self.value) if self.value != 0.0 else rec.zero
        i = self.index
        op = rec.op[i]
        if op == O.NEG:
            return rec.nodes[rec.a[i]]
        if op == O.SUB:
            # a - b is kept in the one order that was met first.
            known = rec.memo.get((O.SUB, rec.b[i], rec.a[i], -1))
            if known is not None:
                return known
        return rec.node(O.NEG, i)

    def __pos__(self) -> Scalar:
        return self

    def __truediv__(self, other: Any) -> Scalar:
        if type(other) is np.ndarray:
            return NotImplemented
        rec = self.recorder
        other = rec.lift(other)
        if other.value is not None:
            if other.value == 0.0:
                raise ZeroDivisionError("division by a recorded constant zero")
            return self * (1.0 / other.value)
        if self.value == 0.0:
            return rec.zero
        if rec.op[other.index] == O.NEG:
            return -(self / rec.nodes[rec.a[other.index]])
        if rec.op[self.index] == O.NEG:
            return -(rec.nodes[rec.a[self.index]] / other)
        if self.index == other.index:
            return rec.constant(1.0)
        return rec.node(O.DIV, self.index, other.index)

    def __rtruediv__(self, other: Any) -> Scalar:
        return self.recorder.lift(other) / self

    def __pow__(self, exponent: Any) -> Scalar:
        rec = self.recorder
        exponent = rec.lift(exponent)
        if exponent.value is not None:
            n = exponent.value
            if self.value is not None:
                return rec.constant(self.value**n)
            if n == 0.5:
                return self.sqrt()
            if n == int(n) and abs(n) <= 64:
                return self._integer_power(int(n))
        return rec.node(O.POW, self.index, exponent.index)

    def __rpow__(self, base: Any) -> Scalar:
        return self.recorder.lift(base) ** self

    def _integer_power(self, n: int) -> Scalar:
        if n < 0:
            return 1.0 / self._integer_power(-n)
        result, square = self.recorder.constant(1.0), self
        while n:
            if n & 1:
                result = result * square
            n >>= 1
            if n:
                square = square * square
        return result

    # -- element-wise functions, as NumPy calls them ---------------------------------------------
    def _unary(self, op: int, fold: Any) -> Scalar:
        if self.value is not None:
            return self.recorder.constant(fold(self.value))
        return self.recorder.node(op, self.index)

    def sqrt(self) -> Scalar:
        return self._unary(O.SQRT, math.sqrt)

    def sin(self) -> Scalar:
        rec = self.recorder
        if rec.op[self.index] == O.NEG:
            return -(rec.nodes[rec.a[self.index]].sin())
        return self._unary(O.SIN, math.sin)

    def cos(self) -> Scalar:
        rec = self.recorder
        if rec.op[self.index] == O.NEG:
            return rec.nodes[rec.a[self.index]].cos()
        return self._unary(O.COS, math.cos)

    def tan(self) -> Scalar:
        return self._unary(O.TAN, math.tan)

    def exp(self) -> Scalar:
        return self._unary(O.EXP, math.exp)

    def log(self) -> Scalar:
        return self._unary(O.LOG, math.log)

    def floor(self) -> Scalar:
        return self._unary(O.FLOOR, math.floor)

    __floor__ = floor

    def __abs__(self) -> Scalar:
        return self._unary(O.ABS, abs)

    fabs = __abs__
    absolute = __abs__

    def sign(self) -> Scalar:
        return self._unary(O.SIGN, np.sign)

    def arctan2(self, x: Any) -> Scalar:
        rec = self.recorder
        x = rec.lift(x)
        if self.value is not None and x.value is not None:
            return rec.constant(math.atan2(self.value, x.value))
        return rec.node(O.ATAN2, self.index, x.index)

    def arctan(self) -> Scalar:
        return self.arctan2(1.0)

    def arcsin(self) -> Scalar:
        return self.arctan2((1.0 - self * self).sqrt())

    def arccos(self) -> Scalar:
        return (1.0 - self * self).sqrt().arctan2(self)

    def square(self) -> Scalar:
        return self * self

    def reciprocal(self) -> Scalar:
        return 1.0 / self

    def sinh(self) -> Scalar:
        return 0.5 * (self.exp() - (-self).exp())

    def cosh(self) -> Scalar:
        return 0.5 * (self.exp() + (-self).exp())

    def tanh(self) -> Scalar:
        decay = (abs(self) * -2.0).exp()
        return self.sign() * (1.0 - decay) / (1.0 + decay)

    def conjugate(self) -> Scalar:
        return self

    def _binary(self, op: int, other: Any) -> Scalar:
        rec = self.recorder
        other = rec.lift(other)
        if self.value is not None and other.value is not None:
            return rec.constant(float(O.OPERATIONS[op].value(self.value, other.value)))
        i, j = self.index, other.index
        if O.OPERATIONS[op].commutes and j < i:
            i, j = j, i
        return rec.node(op, i, j)

    def minimum(self, other: Any) -> Scalar:
        return self._binary(O.MIN, other)

    def maximum(self, other: Any) -> Scalar:
        return self._binary(O.MAX, other)

    def less(self, other: Any) -> Scalar:
        """1 where self < other, else 0."""
        return self._binary(O.LT, other)

    def less_equal(self, other: Any) -> Scalar:
        """1 where self ≤ other, else 0."""
        return self._binary(O.LE, other)

    def equals(self, other: Any) -> Scalar:
        """1 where self = other, else 0."""
        return self._binary(O.EQ, other)

    def where(self, yes: Any, no: Any) -> Scalar:
        """`yes` where self is not 0, else `no`."""
        rec = self.recorder
        yes, no = rec.lift(yes), rec.lift(no)
        if self.value is not None:
            return yes if self.value != 0.0 else no  # type: ignore[no-any-return]
        if yes is no:
            return yes  # type: ignore[no-any-return]
        return rec.node(O.WHERE, self.index, yes.index, no.index)

    def table(self, table: Table) -> Scalar:
        """The piecewise cubic `table` at this scalar."""
        rec = self.recorder
        if self.value is not None:
            return rec.constant(float(table(self.value)))
        return rec.node(O.TABLE, self.index, rec.table_index(table))

    def table_data(self) -> Table:
        """The table of a node made by `table`."""
        rec = self.recorder
        return rec.tables[rec.b[self.index]]

    # -- what a recorded scalar has not got --------------------------------------------------------
    __lt__ = less
    __le__ = less_equal

    def __gt__(self, other: Any) -> Scalar:
        return self.recorder.lift(other).less(self)

    def __ge__(self, other: Any) -> Scalar:
        return self.recorder.lift(other).less_equal(self)

    def __bool__(self) -> bool:
        if self.value is not None:
            return self.value != 0.0
        raise RecordingError(
            "the truth of a recorded scalar is not known while recording; "
            "use lw.where(condition, a, b), lw.minimum or lw.maximum instead of if, min, max and np.where"
        )

    def __float__(self) -> float:
        if self.value is not None:
            return self.value
        raise RecordingError(
            "a recorded scalar has no number yet; build arrays with np.array, np.stack or np.block "
            "instead of writing into np.zeros"
        )

    def __repr__(self) -> str:
        if self.value is not None:
            return f"Scalar({self.value!r})"
        op = self.recorder.op[self.index]
        name = "input" if op == INPUT else O.OPERATIONS[op].name
        return f"<recorded {name} #{self.index}>"


class Function(Protocol):
    """A function in NumPy syntax of arrays."""

    def __call__(self, *arrays: Any) -> Any: ...
