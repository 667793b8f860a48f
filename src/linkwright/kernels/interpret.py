"""Programs run over scalars of any kind, statement by statement: scans, walks and loops come out unrolled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from linkwright.tape import operations as O
from linkwright.tape.block import Block
from linkwright.tape.program import Program
from linkwright.tape.statements import Case, Copy, Each, Loop, Operand, Solve, Statement, Walk, Zero
from linkwright.tape.table import Table


class Interpreter:
    """Runs a program over scalars: plain floats, and whatever `apply` and `solution` of the algebra make of them."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.columns: list[Any] = [c.tolist() for c in program.columns]
        self.memory: list[Any] = []
        self.carry: list[Any] = []

    # -- the algebra -----------------------------------------------------------------------------------
    #: How the algebra computes each primitive (`spellings`).
    functions: tuple[Callable[..., Any], ...]

    def apply(self, op: int, x: list[Any]) -> Any:
        """A primitive of scalars that are not all floats."""
        return self.functions[op](*x)

    def solution(self, s: Solve, matrix: list[Any], right: list[Any]) -> list[Any]:
        """The solution's numbers; a symmetric matrix comes with both triangles filled."""
        raise NotImplementedError

    def table(self, table: Table, x: Any) -> Any:
        """The piece is chosen by bisection."""

        def between(low: int, high: int) -> Any:
            if high - low == 1:
                d = self.operation(O.SUB, [x, table.breaks[low]])
                value: Any = table.coefficients[low][3]
                for c in table.coefficients[low][2::-1]:
                    value = self.operation(O.ADD, [self.operation(O.MUL, [value, d]), c])
                return value
            middle = (low + high) // 2
            right = self.operation(O.LE, [table.breaks[middle], x])
            return self.operation(O.WHERE, [right, between(middle, high), between(low, middle)])

        return between(0, len(table.coefficients))

    def operation(self, op: int, x: list[Any]) -> Any:
        if all(type(value) is float for value in x):
            with np.errstate(all="ignore"):
                return float(O.OPERATIONS[op].value(*x))
        return self.apply(op, x)

    def evaluate(self, block: Block, inputs: list[Any]) -> list[Any]:
        """A block's outputs."""
        values: list[Any] = [*block.constants.tolist(), *inputs]
        for op, *arguments in block.rows():
            if op == O.TABLE:
                x, table = values[arguments[0]], block.tables[arguments[1]]
                values.append(float(table(x)) if type(x) is float else self.table(table, x))
            else:
                values.append(self.operation(op, [values[k] for k in arguments[: O.OPERATIONS[op].arity]]))
        return [values[k] for k in block.outputs.tolist()]

    # -- memory ----------------------------------------------------------------------------------------
    def start_memory(self, inputs: Sequence[Any]) -> None:
        given = iter(inputs)
        for b in self.program.buffers:
            if b.role == "input":
                self.memory.append(list(next(given)))
            else:
                self.memory.append([0.0] * b.size if b.data is None else b.data.reshape(-1).tolist())

    def entry(self, column: int, item: Any) -> Any:
        """A column's number for an item."""
        return self.columns[column][item]

    def read(self, operand: Operand, item: Any = 0, ancestor: Any = 0) -> list[Any]:
        at = operand.start(self.entry, item, ancestor)
        return self.memory[operand.buffer][at : at + operand.size]  # type: ignore[no-any-return]

    def write(self, operand: Operand, values: Sequence[Any], item: Any = 0, ancestor: Any = 0) -> None:
        at = operand.start(self.entry, item, ancestor)
        self.memory[operand.buffer][at : at + operand.size] = values

    # -- statements ------------------------------------------------------------------------------------
    def run(self, inputs: Sequence[Any]) -> list[Any]:
        self.start_memory(inputs)
        self.statements(self.program.statements)
        pairs = zip(self.program.buffers, self.memory, strict=True)
        return [values for buffer, values in pairs if buffer.role == "output"]

    def statements(self, statements: Iterable[Statement]) -> None:
        for s in statements:
            s.accept(self)

    def zero(self, s: Zero) -> None:
        self.write(s.target, [0.0] * s.target.size)

    def copy(self, s: Copy) -> None:
        self.write(s.target, self.read(s.source))

    def case(self, case: Case, item: Any, ancestor: Any = 0) -> None:
        inputs: list[Any] = []
        for operand in case.inputs:
            inputs.extend(self.carry[: operand.size] if operand.buffer < 0 else self.read(operand, item, ancestor))
        results = self.evaluate(self.program.blocks[case.block], inputs)
        at = 0
        for operand in case.outputs:
            part = results[at : at + operand.size]
            at += operand.size
            if operand.buffer < 0:
                self.carry = part
                continue
            if operand.add:
                old = self.read(operand, item, ancestor)
                part = [self.operation(O.ADD, [a, b]) for a, b in zip(old, part, strict=True)]
            self.write(operand, part, item, ancestor)

    def each(self, s: Each) -> None:
        for i in s.order_of_items():
            self.case(s.cases[0 if s.dispatch is None else int(self.program.columns[s.dispatch][i])], i)

    def walk(self, s: Walk) -> None:
        kinds = self.program.kinds(s)
        for i, ancestors in self.program.walks(s):
            self.case(s.start[kinds[i]], i)
            for j in ancestors:
                self.case(s.step[kinds[i] * len(s.start) + kinds[j]], i, j)
        self.carry = []

    def loop(self, s: Loop) -> None:
        """All rounds; after the one that is done, what a round writes is switched off."""
        active: Any = None
        for _ in range(s.count):
            before = [list(values) for values in self.memory] if active is not None else []
            self.round(s)
            if s.done is None:
                continue
            for old, new in zip(before, self.memory, strict=bool(before)):
                for k, value in enumerate(new):
                    if value is not old[k]:
                        new[k] = self.operation(O.WHERE, [active, value, old[k]])
            going = self.operation(O.EQ, [self.read(s.done)[0], 0.0])
            active = going if active is None else self.operation(O.MUL, [active, going])

    def round(self, s: Loop) -> None:
        self.statements(s.body)
        for current, following in s.carry:
            self.write(current, self.read(following))

    def solve(self, s: Solve) -> None:
        matrix, right = list(self.read(s.matrix)), list(self.read(s.rhs))
        n = s.columns
        if s.method in ("cholesky", "ltl"):
            matrix = [matrix[max(i, j) * n + min(i, j)] for i in range(n) for j in range(n)]
        if n * s.right:
            self.write(s.solution, self.solution(s, matrix, right))
