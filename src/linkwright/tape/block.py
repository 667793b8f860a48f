"""A straight block: single-assignment operations as plain arrays; the graph under construction, and element-wise
functions on recorded scalars. Two scalars are compared by <, two arrays by `less`: for arrays of objects NumPy turns
the answers into truths.
"""

from __future__ import annotations

import gc
import hashlib
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Bools, Floats
from linkwright.base.locks import cached_property
from linkwright.errors import RecordingError
from linkwright.tape import operations as O
from linkwright.tape.operations import ADD, MUL, TABLE, Table
from linkwright.tape.scalar import CONSTANT, INPUT, Scalar, is_recorded


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold the garbage collector off: all that recording or reading makes stays, and walking it costs as much."""
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
            with np.errstate(invalid="ignore"):  # a NaN that is written down is no result of a computation
                return over_objects(*values)
        return plain(*values)

    function.__name__ = function.__qualname__ = name
    example = f">>> y = {name}({', '.join(['1.0', '2.0', '3.0'][:arguments])})"
    function.__doc__ = f"{doc}, element by element; `values` are floats, arrays or recorded scalars.\n\n{example}"
    return function


def _method(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    def apply(*values: Any) -> Any:
        recorder = next((v.recorder for v in values if isinstance(v, Scalar)), None)
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
    """1 where `a` > `b`, else 0, element by element, over floats or recorded scalars.

    >>> y = lw.greater([1.0, 2.0], 1.5)
    """
    return less(b, a)


def greater_equal(a: Any, b: Any) -> Any:
    """1 where `a` ≥ `b`, else 0, element by element, over floats or recorded scalars.

    >>> y = lw.greater_equal([1.0, 2.0], 1.5)
    """
    return less_equal(b, a)


def table(x: Any, spline: Table) -> Any:
    """The piecewise cubic `spline` at x, over floats or recorded scalars."""
    return spline(x)


Ints = NDArray[np.int32]


def operands_of(row: O.Row) -> tuple[int, ...]:
    """The values that an operation of a block reads."""
    return row[1 : 1 + O.ARITIES[row[0]]]


@dataclass(frozen=True, eq=False)
class Block:
    """Values are numbered: first the constants, then the inputs, then one per operation. `args[k]` holds the value
    numbers of operation k's operands (of a table: operand, table number).
    """

    constants: Floats
    n_inputs: int
    op: NDArray[np.uint8]
    args: Ints
    outputs: Ints
    tables: tuple[Table, ...] = ()

    @property
    def first_input(self) -> int:
        return len(self.constants)

    @property
    def first_operation(self) -> int:
        return len(self.constants) + self.n_inputs

    def __len__(self) -> int:
        return len(self.op)

    def count(self) -> dict[str, int]:
        """How many operations of each name."""
        numbers = np.bincount(self.op, minlength=len(O.OPERATIONS))
        return {o.name: int(n) for o, n in zip(O.OPERATIONS, numbers, strict=True) if n}

    def depth(self) -> int:
        """How many operations the longest chain has in which each needs the result of the one before."""
        base = self.first_operation
        level = [0] * (base + len(self))
        for k, row in enumerate(self.rows(), base):
            level[k] = 1 + max(level[x] for x in operands_of(row))
        return max((level[x] for x in self.outputs.tolist()), default=0)

    def needed(self) -> list[int]:
        """The operations, by their places, that an output needs."""
        first, rows = self.first_operation, self.rows()
        values = set(self.outputs.tolist())
        places = []
        for k in range(len(rows) - 1, -1, -1):
            if first + k in values:
                places.append(k)
                values.update(operands_of(rows[k]))
        return places[::-1]

    def crossing(
        self, pieces: Sequence[Sequence[int]], operands: Sequence[Sequence[int]], *, late: bool
    ) -> dict[int, int]:
        """Places for the values that another piece of the operations needs than the one that makes them.

        `operands` are those of each operation. A place is free again in the piece after the one that reads it last.
        With `late`, the last piece needs all outputs.
        """
        if len(pieces) < 2:
            return {}
        first = self.first_operation
        last = {first + k: p for p, piece in enumerate(pieces) for k in piece}
        for p, piece in enumerate(pieces):
            for k in piece:
                for value in operands[k]:
                    if value >= first:
                        last[value] = p
        if late:
            last.update({value: len(pieces) - 1 for value in self.outputs.tolist() if value >= first})
        places: dict[int, int] = {}
        free: list[int] = []
        unused = count()
        ending: list[list[int]] = [[] for _ in pieces]
        for p, piece in enumerate(pieces):
            free.extend(ending[p - 1] if p else ())
            for value in (first + k for k in piece if last[first + k] > p):
                places[value] = free.pop() if free else next(unused)
                ending[last[value]].append(places[value])
        return places

    @cached_property
    def digest(self) -> str:
        """A hash of the content."""
        h = hashlib.sha256()
        for array in (self.constants, self.op, self.args, self.outputs):
            h.update(str(array.shape).encode())
            h.update(np.ascontiguousarray(array).tobytes())
        h.update(repr((self.n_inputs, self.tables)).encode())
        return h.hexdigest()

    def rows(self) -> list[tuple[int, int, int, int]]:
        """(op, a, b, c) of each operation, as Python numbers for loops over the block."""
        return list(zip(self.op.tolist(), *self.args.T.tolist(), strict=True))

    def operand_places(self) -> Bools:
        """Which entries of `args` number values (the others are filled up, or number a table)."""
        return np.arange(3) < np.array(O.ARITIES)[self.op][:, None]

    def evaluate(self, inputs: Sequence[Any], dtype: type[np.floating[Any]] | None = None) -> list[Any]:
        """The outputs for inputs that are numbers or arrays of one shape (for recorded scalars: `replay`). With a
        `dtype`, constants and results of operations are rounded to it, as in code that has no other.
        """
        constants: Sequence[Any] = self.constants.tolist()
        functions: list[Callable[..., Any]] = [operation.value for operation in O.OPERATIONS]
        if dtype is not None:
            constants = list(self.constants.astype(dtype))
            functions = [lambda *x, f=f: np.asarray(f(*x), dtype) for f in functions]
        values = self.values([*constants, *inputs], functions, lambda table, x: np.asarray(table(x), dtype))
        return [values[k] for k in self.outputs.tolist()]

    def replay(self, recorder: Recorder, inputs: Sequence[Scalar]) -> list[Scalar]:
        """The nodes of this block's values, recorded again in `recorder` (folding anew)."""
        constants = [recorder.constant(x) for x in self.constants.tolist()]
        return self.values([*constants, *inputs], _RECORDED, lambda table, x: x.table(table))

    def values(
        self, leaves: Sequence[Any], functions: Sequence[Callable[..., Any]], look_up: Callable[[Table, Any], Any]
    ) -> list[Any]:
        """All values, those of the constants and inputs first, by a function of the operands for each operation.

        A table is `look_up(table, operand)`.
        """
        values = list(leaves)
        arity = O.ARITIES
        for op, a, b, c in self.rows():
            if arity[op] == 2:
                values.append(functions[op](values[a], values[b]))
            elif op == O.TABLE:
                values.append(look_up(self.tables[b], values[a]))
            elif arity[op] == 1:
                values.append(functions[op](values[a]))
            else:
                values.append(functions[op](values[a], values[b], values[c]))
        return values


_RECORDED: tuple[Callable[..., Scalar], ...] = O.spellings(
    "recording",
    {
        O.NEG: operator.neg,
        O.ADD: operator.add,
        O.SUB: operator.sub,
        O.MUL: operator.mul,
        O.DIV: Scalar.quotient,
        O.SQRT: Scalar.sqrt,
        O.SIN: Scalar.sin,
        O.COS: Scalar.cos,
        O.TAN: Scalar.tan,
        O.ATAN2: Scalar.arctan2,
        O.EXP: Scalar.exp,
        O.LOG: Scalar.log,
        O.POW: operator.pow,
        O.ABS: operator.abs,
        O.SIGN: Scalar.sign,
        O.MIN: Scalar.minimum,
        O.MAX: Scalar.maximum,
        O.WHERE: Scalar.where,
        O.FLOOR: Scalar.floor,
        O.LT: Scalar.less,
        O.LE: Scalar.less_equal,
        O.EQ: Scalar.equals,
        O.TABLE: Scalar.table,
    },
)


def finish(recorder: Recorder, n_inputs: int, outputs: Sequence[Scalar]) -> Block:
    """The block that computes `outputs`: what they do not need is left out, the order is kept."""
    nodes = recorder.nodes
    needed = bytearray(len(nodes))
    for node in outputs:
        needed[node.index] = 1
    constants: list[Scalar] = []
    inputs: list[Scalar] = []
    numbers: list[int] = []  # five numbers per operation, the last operation first
    for node in reversed(nodes):
        index, op = node.index, node.op
        if not needed[index]:
            continue
        if op == CONSTANT:
            constants.append(node)
        elif op == INPUT:
            inputs.append(node)
        else:
            i, j, k = node.a.index, 0, 0
            needed[i] = 1
            if node.b is not None:
                j = node.b.index
                needed[j] = 1
                if node.c is not None:
                    k = node.c.index
                    needed[k] = 1
            numbers += (op, index, i, j, k)
    constants.reverse()
    rows = np.array(numbers, dtype=np.int32).reshape(-1, 5)[::-1]
    base = len(constants)
    # Node 0 is the constant 0, so that an operand that is not there gets the number 0.
    number = np.zeros(len(nodes), dtype=np.int32)
    number[[x.index for x in constants]] = np.arange(base)
    number[[x.index for x in inputs]] = [base + x.c for x in inputs]
    number[rows[:, 1]] = np.arange(len(rows)) + base + n_inputs
    codes, args = rows[:, 0].astype(np.uint8), number[rows[:, 2:]]
    tables: dict[int, int] = {}
    for k in np.flatnonzero(codes == O.TABLE).tolist():
        args[k, 1] = tables.setdefault(nodes[rows[k, 1]].c, len(tables))
    return Block(
        constants=np.array([x.value for x in constants], dtype=np.float64),
        n_inputs=n_inputs,
        op=codes,
        args=args,
        outputs=number[[x.index for x in outputs]],
        tables=tuple(recorder.tables[k] for k in tables),
    )


def depends(block: Block, marked: Sequence[Any]) -> list[bool]:
    """Which of the block's values change with the marked inputs."""
    flags = [False] * len(block.constants) + [bool(x) for x in marked]
    for row in block.rows():
        flags.append(any(flags[x] for x in O.differentiable(*row)))
    return flags


def needs(block: Block, marked: Sequence[Any]) -> list[bool]:
    """Which of the block's inputs the marked outputs change with."""
    first = block.first_operation
    flags = [False] * (first + len(block))
    for number, mark in zip(block.outputs.tolist(), marked, strict=True):
        flags[number] |= bool(mark)
    for k, row in zip(range(first + len(block) - 1, first - 1, -1), reversed(block.rows()), strict=True):
        if flags[k]:
            for x in O.differentiable(*row):
                flags[x] = True
    return flags[block.first_input : first]
