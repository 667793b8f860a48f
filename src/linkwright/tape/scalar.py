"""Recorded scalars: arithmetic on them leaves a hash-consed graph, with zeros, ones and signs folded away.

A scalar lives in NumPy object arrays and answers NumPy's element-wise functions (`np.sin` calls `.sin()`).
Folding never leaves the class: a constant result is a constant scalar, not a float.

Folding treats x as a finite number: 0·x = 0, x − x = 0, x/x = 1, and −0.0 is 0.0. Products with constants are
regrouped, and a division by a constant becomes a product, so that the last bit may differ from NumPy's.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.errors import RecordingError
from linkwright.tape import operations as O
from linkwright.tape.operations import ADD, DIV, MUL, NEG, SUB, Table

if TYPE_CHECKING:
    from linkwright.tape.block import Recorder

# What a node is when it is no operation. Their places matter: `op > NEG` says neither constant nor negation.
CONSTANT, INPUT = -1, 255


class Scalar:
    """One node of a recording: `op` of the nodes a, b, c; `value` is its number if it is a constant, else None.

    `c` is a number, not a node, in two cases: an input's position, and a table's in `Recorder.tables`.
    """

    __slots__ = ("a", "b", "c", "index", "op", "recorder", "value")

    a: Scalar
    b: Any
    c: Any

    def __init__(
        self, recorder: Recorder, op: int, a: Any, b: Any = None, c: Any = None, value: float | None = None
    ) -> None:
        nodes = recorder.nodes
        self.recorder = recorder
        self.op = op
        self.a = a
        self.b = b
        self.c = c
        self.value = value
        self.index = len(nodes)
        nodes.append(self)

    # -- arithmetic ----------------------------------------------------------------------------
    # The three that recording mostly consists of look for the plain case first: two operands of this
    # recording, neither a constant nor a negation, where nothing can be folded.
    def __add__(self, other: Any) -> Scalar:
        rec = self.recorder
        if type(other) is not Scalar or other.recorder is not rec:
            if type(other) is np.ndarray:
                return NotImplemented
            other = rec.lift(other)
        if self.op > NEG and other.op > NEG:
            i, j = self.index, other.index
            if i < j:
                key = i << 32 | j
                node = rec.sums.get(key)
                if node is None:
                    node = rec.sums[key] = Scalar(rec, ADD, self, other)
                return node
            return rec.sum(other, self)
        a, b = self.value, other.value
        if a is not None:
            if b is not None:
                return rec.constant(a + b)
            if a == 0.0:
                return other  # type: ignore[no-any-return]
        elif b == 0.0:
            return self
        if other.op == NEG:
            return self - other.a  # type: ignore[no-any-return]
        if self.op == NEG:
            return other - self.a  # type: ignore[no-any-return]
        return rec.sum(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Scalar:
        rec = self.recorder
        if type(other) is not Scalar or other.recorder is not rec:
            if type(other) is np.ndarray:
                return NotImplemented
            other = rec.lift(other)
        if self.op <= NEG or other.op <= NEG:
            a, b = self.value, other.value
            if a is not None:
                if b is not None:
                    return rec.constant(a - b)
                if a == 0.0:
                    return -other  # type: ignore[no-any-return]
            elif b is not None:
                return self + rec.constant(-b)
            if other.op == NEG:
                return self + other.a  # type: ignore[no-any-return]
            if self.op == NEG:
                return -(self.a + other)  # type: ignore[no-any-return]
        i, j = self.index, other.index
        if i == j:
            return rec.zero
        key = i << 32 | j
        node = rec.differences.get(key)
        if node is None:
            # a − b is kept in the one order that was met first.
            node = rec.differences.get(j << 32 | i)
            if node is not None:
                return -node
            node = rec.differences[key] = Scalar(rec, SUB, self, other)
        return node

    def __rsub__(self, other: Any) -> Scalar:
        return self.recorder.lift(other) - self

    def __mul__(self, other: Any) -> Scalar:
        rec = self.recorder
        if type(other) is not Scalar or other.recorder is not rec:
            if type(other) is np.ndarray:
                return NotImplemented
            other = rec.lift(other)
        if self.op > NEG and other.op > NEG:
            i, j = self.index, other.index
            if i < j:
                key = i << 32 | j
                node = rec.products.get(key)
                if node is None:
                    node = rec.products[key] = Scalar(rec, MUL, self, other)
                return node
            return rec.product(other, self)
        if other.value is not None:
            return self._scaled(other.value)
        if self.value is not None:
            return other._scaled(self.value)  # type: ignore[no-any-return]
        if self.op == NEG:
            return -(self.a * other)  # type: ignore[no-any-return]
        return -(self * other.a)  # type: ignore[no-any-return]

    __rmul__ = __mul__

    def _scaled(self, factor: float) -> Scalar:
        """This scalar times a number; signs go outward, and two numbers become one."""
        rec = self.recorder
        if self.value is not None:
            return rec.constant(self.value * factor)
        if factor == 0.0:
            return rec.zero
        if factor == 1.0:
            return self
        if factor == -1.0:
            return -self
        if self.op == NEG:
            return -(self.a._scaled(factor))
        if self.op == MUL:
            for number, x in ((self.a, self.b), (self.b, self.a)):
                if number.value is not None:
                    both = number.value * factor
                    if both != 0.0 and math.isfinite(both):
                        return x._scaled(both)
        if factor < 0.0:
            return -rec.product(self, rec.constant(-factor))
        return rec.product(self, rec.constant(factor))

    def __neg__(self) -> Scalar:
        rec = self.recorder
        if self.value is not None:
            return rec.constant(-self.value)
        if self.op == NEG:
            return self.a
        if self.op == SUB:
            known = rec.differences.get(self.b.index << 32 | self.a.index)
            if known is not None:
                return known
        return rec.node(NEG, self)

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
            if self.value is not None:
                return rec.constant(self.value / other.value)
            inverse = 1.0 / other.value
            if math.isfinite(inverse):
                return self._scaled(inverse)
        if self.value == 0.0:
            return rec.zero
        if other.op == NEG:
            return -(self / other.a)  # type: ignore[no-any-return]
        if self.op == NEG:
            return -(self.a / other)  # type: ignore[no-any-return]
        if self is other:
            return rec.constant(1.0)
        return rec.node(DIV, self, other)

    def quotient(self, other: Scalar) -> Scalar:
        """self / other where the constant zero may divide, as it does in arithmetic: what is recorded was so meant."""
        return self * math.inf if other.value == 0.0 else self / other

    def __rtruediv__(self, other: Any) -> Scalar:
        return self.recorder.lift(other) / self

    def __pow__(self, exponent: Any) -> Scalar:
        if type(exponent) is np.ndarray:
            return NotImplemented
        rec = self.recorder
        exponent = rec.lift(exponent)
        n = exponent.value
        if n is not None:
            if self.value is not None:
                return self._fold(O.POW, exponent)
            if n == 0.5:
                return self.sqrt()
            if abs(n) <= 64 and n == int(n):
                return self._integer_power(int(n))
        return rec.node(O.POW, self, exponent)

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
    def _fold(self, op: int, *others: Scalar) -> Scalar:
        """op of constants, as NumPy computes it: the root of −1 is NaN, not an error."""
        with np.errstate(all="ignore"):
            value = O.OPERATIONS[op].value(self.value, *(x.value for x in others))
        return self.recorder.constant(float(value))

    def _unary(self, op: int) -> Scalar:
        return self._fold(op) if self.value is not None else self.recorder.node(op, self)

    def _binary(self, op: int, other: Any) -> Scalar:
        rec = self.recorder
        other = rec.lift(other)
        if self.value is not None and other.value is not None:
            return self._fold(op, other)
        if O.OPERATIONS[op].commutes and other.index < self.index:
            return rec.node(op, other, self)
        return rec.node(op, self, other)

    def sqrt(self) -> Scalar:
        return self._unary(O.SQRT)

    def sin(self) -> Scalar:
        return -(self.a.sin()) if self.op == NEG else self._unary(O.SIN)

    def cos(self) -> Scalar:
        return self.a.cos() if self.op == NEG else self._unary(O.COS)

    def tan(self) -> Scalar:
        return -(self.a.tan()) if self.op == NEG else self._unary(O.TAN)

    def exp(self) -> Scalar:
        return self._unary(O.EXP)

    def log(self) -> Scalar:
        return self._unary(O.LOG)

    def floor(self) -> Scalar:
        return self._unary(O.FLOOR)

    __floor__ = floor

    def __abs__(self) -> Scalar:
        return abs(self.a) if self.op == NEG else self._unary(O.ABS)

    fabs = __abs__
    absolute = __abs__

    def sign(self) -> Scalar:
        return -(self.a.sign()) if self.op == NEG else self._unary(O.SIGN)

    def arctan2(self, x: Any) -> Scalar:
        return self._binary(O.ATAN2, x)

    def arctan(self) -> Scalar:
        return self.arctan2(1.0)

    def arcsin(self) -> Scalar:
        return self.arctan2((1.0 - self * self).sqrt())

    def arccos(self) -> Scalar:
        return (1.0 - self * self).sqrt().arctan2(self)

    def hypot(self, other: Any) -> Scalar:
        other = self.recorder.lift(other)
        return (self * self + other * other).sqrt()  # type: ignore[no-any-return]

    def square(self) -> Scalar:
        return self * self

    def reciprocal(self) -> Scalar:
        return 1.0 / self

    def deg2rad(self) -> Scalar:
        return self * (math.pi / 180.0)

    radians = deg2rad

    def rad2deg(self) -> Scalar:
        return self * (180.0 / math.pi)

    degrees = rad2deg

    def log10(self) -> Scalar:
        return self.log() * (1.0 / math.log(10.0))

    def sinh(self) -> Scalar:
        return 0.5 * (self.exp() - (-self).exp())

    def cosh(self) -> Scalar:
        return 0.5 * (self.exp() + (-self).exp())

    def tanh(self) -> Scalar:
        # Of exp(−2|x|), so that nothing overflows; the side is a `where`, whose slope at 0 is that of one side.
        side = self.less(0.0).where(-1.0, 1.0)
        decay = (self * side * -2.0).exp()
        return side * ((1.0 - decay) / (1.0 + decay))

    def conjugate(self) -> Scalar:
        return self

    def minimum(self, other: Any) -> Scalar:
        return self if other is self else self._binary(O.MIN, other)

    def maximum(self, other: Any) -> Scalar:
        return self if other is self else self._binary(O.MAX, other)

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
        return rec.node(O.WHERE, self, yes, no)

    def table(self, table: Table) -> Scalar:
        """The piecewise cubic `table` at this scalar."""
        rec = self.recorder
        if self.value is not None:
            return rec.constant(float(table(self.value)))
        return rec.zero if table.is_zero else rec.table(table, self)

    def table_data(self) -> Table:
        """The table of a node made by `table`."""
        number: int = self.c
        return self.recorder.tables[number]

    # -- comparisons are recorded; what a recorded scalar has not got is an error that says what to use ----
    def __lt__(self, other: Any) -> Scalar:
        return NotImplemented if type(other) is np.ndarray else self.less(other)

    def __le__(self, other: Any) -> Scalar:
        return NotImplemented if type(other) is np.ndarray else self.less_equal(other)

    def __gt__(self, other: Any) -> Scalar:
        return NotImplemented if type(other) is np.ndarray else self.recorder.lift(other).less(self)

    def __ge__(self, other: Any) -> Scalar:
        return NotImplemented if type(other) is np.ndarray else self.recorder.lift(other).less_equal(self)

    def __eq__(self, other: Any) -> Scalar:  # type: ignore[override]
        return NotImplemented if type(other) is np.ndarray else self.equals(other)

    def __ne__(self, other: Any) -> Scalar:  # type: ignore[override]
        return NotImplemented if type(other) is np.ndarray else 1.0 - self.equals(other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        if self.value is not None:
            return self.value != 0.0
        raise RecordingError(
            "the truth of a recorded scalar is not known while recording; "
            "use lw.where(condition, a, b), lw.minimum, lw.maximum or lw.sign instead of if, min, max, np.where and "
            "np.sign, and lw.less(a, b), lw.less_equal or lw.equal to compare arrays"
        )

    def __float__(self) -> float:
        if self.value is not None:
            return self.value
        raise RecordingError(
            "a recorded scalar has no number yet, as float(), math.sin() and writing into np.zeros need; "
            "use np.sin and its like, and build arrays with np.array, np.stack or np.block"
        )

    def __repr__(self) -> str:
        if self.value is not None:
            return f"Scalar({self.value!r})"
        name = "input" if self.op == INPUT else O.OPERATIONS[self.op].name
        return f"<recorded {name} #{self.index}>"


def has_scalars(*values: Any) -> bool:
    """Whether any of the values is a recorded scalar, or an array with one in it."""
    return any(
        isinstance(v, Scalar)
        or (isinstance(v, np.ndarray) and v.dtype == object and any(isinstance(x, Scalar) for x in v.flat))
        for v in values
    )


def is_recorded(*values: Any) -> bool:
    """Whether any of the values is a recorded scalar or an array of objects, such as recorded scalars or symbols."""
    return any(isinstance(v, Scalar) or (isinstance(v, np.ndarray) and v.dtype == object) for v in values)
