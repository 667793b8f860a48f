"""A straight block: single-assignment operations as plain arrays, independent of what recorded them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.tape import operations as O
from linkwright.tape.scalar import CONSTANT, INPUT, Recorder, Scalar
from linkwright.tape.table import Table

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Block:
    """Values are numbered: first the constants, then the inputs, then one per operation.

    `args[k]` holds the value numbers of operation k's operands (of a table: operand, table number).
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

    def evaluate(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs for inputs that are scalars, arrays of one shape, or recorded scalars."""
        values: list[Any] = [*self.constants.tolist(), *inputs]
        table = O.OPERATIONS
        for op, a, b, c in self.rows():
            arity = table[op].arity
            if op == O.TABLE:
                x = values[a]
                values.append(x.table(self.tables[b]) if isinstance(x, Scalar) else self.tables[b](x))
            elif arity == 2:
                values.append(table[op].value(values[a], values[b]))
            elif arity == 1:
                values.append(table[op].value(values[a]))
            else:
                values.append(table[op].value(values[a], values[b], values[c]))
        return [values[k] for k in self.outputs.tolist()]

    def replay(self, recorder: Recorder, inputs: Sequence[Scalar]) -> list[Scalar]:
        """The nodes of this block's values, recorded again in `recorder` (folding anew)."""
        nodes: list[Scalar] = [recorder.constant(x) for x in self.constants.tolist()]
        nodes.extend(inputs)
        tables = self.tables
        for op, a, b, c in self.rows():
            nodes.append(_apply(op, nodes, a, b, c, tables))
        return nodes


def _apply(op: int, x: list[Scalar], a: int, b: int, c: int, tables: tuple[Table, ...]) -> Scalar:
    if op == O.MUL:
        return x[a] * x[b]
    if op == O.ADD:
        return x[a] + x[b]
    if op == O.SUB:
        return x[a] - x[b]
    if op == O.NEG:
        return -x[a]
    if op == O.DIV:
        return x[a] / x[b]
    if op == O.POW:
        return x[a] ** x[b]
    if op == O.WHERE:
        return x[a].where(x[b], x[c])
    if op == O.TABLE:
        return x[a].table(tables[b])
    method = getattr(x[a], _METHODS[op])
    result: Scalar = method(x[b]) if O.OPERATIONS[op].arity == 2 else method()
    return result


_METHODS = {
    O.SQRT: "sqrt",
    O.SIN: "sin",
    O.COS: "cos",
    O.TAN: "tan",
    O.ATAN2: "arctan2",
    O.EXP: "exp",
    O.LOG: "log",
    O.ABS: "fabs",
    O.SIGN: "sign",
    O.MIN: "minimum",
    O.MAX: "maximum",
    O.FLOOR: "floor",
    O.LT: "less",
    O.LE: "less_equal",
    O.EQ: "equals",
}


def finish(recorder: Recorder, n_inputs: int, outputs: Sequence[Scalar]) -> Block:
    """The block that computes `outputs`: what they do not need is left out, the order is kept."""
    op, a, b, c = recorder.op, recorder.a, recorder.b, recorder.c
    arity = [o.arity for o in O.OPERATIONS]
    needed = bytearray(len(op))
    for node in outputs:
        needed[node.index] = 1
    for k in range(len(op) - 1, -1, -1):
        if needed[k] and op[k] >= 0:
            n = arity[op[k]]
            needed[a[k]] = 1
            if n > 1:
                needed[b[k]] = 1
                if n > 2:
                    needed[c[k]] = 1
    live = [k for k in range(len(op)) if needed[k]]
    constants = [k for k in live if op[k] == CONSTANT]
    number: dict[int, int] = {k: i for i, k in enumerate(constants)}
    base = len(constants)
    for k, code in enumerate(op):
        if code == INPUT:
            number[k] = base + a[k]
    following = base + n_inputs
    ops: list[int] = []
    args: list[tuple[int, int, int]] = []
    used: dict[int, int] = {}
    for k in live:
        code = op[k]
        if code < 0:
            continue
        number[k] = following
        following += 1
        ops.append(code)
        n = arity[code]
        if code == O.TABLE:
            args.append((number[a[k]], used.setdefault(b[k], len(used)), 0))
        elif n == 2:
            args.append((number[a[k]], number[b[k]], 0))
        elif n == 1:
            args.append((number[a[k]], 0, 0))
        else:
            args.append((number[a[k]], number[b[k]], number[c[k]]))
    return Block(
        constants=np.array([a[k] for k in constants], dtype=np.float64),
        n_inputs=n_inputs,
        op=np.array(ops, dtype=np.uint8),
        args=np.array(args, dtype=np.int32).reshape(-1, 3),
        outputs=np.array([number[node.index] for node in outputs], dtype=np.int32),
        tables=tuple(recorder.tables[k] for k in used),
    )
