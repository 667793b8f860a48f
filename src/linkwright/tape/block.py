"""A straight block: single-assignment operations as plain arrays, independent of what recorded them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.tape import operations as O
from linkwright.tape.operations import Table
from linkwright.tape.recorder import Recorder
from linkwright.tape.scalar import CONSTANT, INPUT, Scalar

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

    def depth(self) -> int:
        """How many operations the longest chain has in which each needs the result of the one before."""
        base = self.first_operation
        level = [0] * (base + len(self))
        for k, row in enumerate(self.rows(), base):
            level[k] = 1 + max(level[x] for x in O.operands_of(row))
        return max((level[x] for x in self.outputs.tolist()), default=0)

    def needed(self) -> list[int]:
        """The operations, by their places, that an output needs."""
        first, rows = self.first_operation, self.rows()
        values = set(self.outputs.tolist())
        places = []
        for k in range(len(rows) - 1, -1, -1):
            if first + k in values:
                places.append(k)
                values.update(O.operands_of(rows[k]))
        return places[::-1]

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

    def evaluate(self, inputs: Sequence[Any], dtype: type[np.floating[Any]] | None = None) -> list[Any]:
        """The outputs for inputs that are numbers or arrays of one shape (for recorded scalars: `replay`).

        With a `dtype`, constants and results of operations are rounded to it, as in code that has no other.
        """
        constants = self.constants.tolist() if dtype is None else list(self.constants.astype(dtype))
        values: list[Any] = [*constants, *inputs]
        table = O.OPERATIONS
        for op, a, b, c in self.rows():
            arity = table[op].arity
            if op == O.TABLE:
                value = self.tables[b](values[a])
            elif arity == 2:
                value = table[op].value(values[a], values[b])
            elif arity == 1:
                value = table[op].value(values[a])
            else:
                value = table[op].value(values[a], values[b], values[c])
            values.append(value if dtype is None else np.asarray(value, dtype))
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
        return x[a].quotient(x[b])
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
    nodes = recorder.nodes
    needed = bytearray(len(nodes))
    for node in outputs:
        needed[node.index] = 1
    constants: list[Scalar] = []
    inputs: list[Scalar] = []
    numbers: list[int] = []  # five numbers an operation, the last operation first
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


class _Longer:
    """A block with more operations after its own."""

    def __init__(self, block: Block) -> None:
        self.shorter, self.op, self.args = block, block.op.tolist(), block.args.tolist()

    def add(self, op: int, a: int, b: int) -> int:
        """Append an operation of two values; the number of its value."""
        self.op.append(op)
        self.args.append([a, b, 0])
        return self.shorter.first_operation + len(self.op) - 1

    def block(self, outputs: list[int]) -> Block:
        """The longer block with these outputs; the same block if nothing was added."""
        if len(self.op) == len(self.shorter):
            return self.shorter
        op, args = np.array(self.op, dtype=np.uint8), np.array(self.args, dtype=np.int32)
        return replace(self.shorter, op=op, args=args, outputs=np.array(outputs, dtype=np.int32))


def spoiled_together(block: Block, groups: Sequence[Sequence[int]]) -> Block:
    """The same block, but where an output is NaN for one of these groups of inputs, all outputs are.

    An output may not depend on Euler parameters that others depend on (a moment of gravity about an axis through the
    mass centre): where these have no length, an answer is NaN as a whole. y − y is 0 for finite y.
    """
    first, base = block.first_input, block.first_operation
    outputs = block.outputs.tolist()
    longer = _Longer(block)
    for group in groups:
        depends = np.zeros(base + len(block), bool)
        depends[[first + k for k in group]] = True
        for k, row in enumerate(block.rows(), base):
            depends[k] = depends[list(O.operands_of(row))].any()
        one = next((x for x in block.outputs.tolist() if depends[x]), None)
        lacking = np.flatnonzero(~depends[block.outputs]).tolist()
        if one is None or not lacking:
            continue
        nothing = longer.add(O.SUB, one, one)
        for k in lacking:
            outputs[k] = longer.add(O.ADD, outputs[k], nothing)
    return longer.block(outputs)


def with_every_input(block: Block) -> Block:
    """The same block, but an input that it does not use spoils its outputs where it is NaN or infinite.

    A mechanism's answer may not depend on a coordinate (a turn about a vertical axis, say); a NaN there is still
    a NaN that somebody passed. x − x is 0 for finite x; it is added to every output that is computed.
    """
    first, base = block.first_input, block.first_operation
    outputs = block.outputs.tolist()
    used = set(outputs).union(*map(O.operands_of, block.rows()))
    unused = [x for x in range(first, base) if x not in used]
    computed = sorted({x for x in outputs if x >= base})
    if not unused or not computed:
        return block
    longer = _Longer(block)
    total = longer.add(O.SUB, unused[0], unused[0])
    for x in unused[1:]:
        total = longer.add(O.ADD, total, longer.add(O.SUB, x, x))
    moved = {x: longer.add(O.ADD, x, total) for x in computed}
    return longer.block([moved.get(x, x) for x in outputs])
