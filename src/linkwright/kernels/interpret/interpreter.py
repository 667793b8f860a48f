"""Programs run over scalars of any kind or over NumPy arrays, statement by statement: the oracle of the other back-
ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.tape import operations as O
from linkwright.tape.block import Block
from linkwright.tape.operations import Table
from linkwright.tape.program import Buffer, Program
from linkwright.tape.runner import Runner
from linkwright.tape.statements import Loop, Method, Operand, Solve


class Interpreter(Runner):
    """Runs a program over scalars: plain floats, and whatever `apply` and `solution` of the algebra make of them."""

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
                d = self.operation(O.SUB, x, table.breaks[low])
                value: Any = table.coefficients[low][3]
                for c in table.coefficients[low][2::-1]:
                    value = self.operation(O.ADD, self.operation(O.MUL, value, d), c)
                return value
            middle = (low + high) // 2
            right = self.operation(O.LE, table.breaks[middle], x)
            return self.operation(O.WHERE, right, between(middle, high), between(low, middle))

        return between(0, len(table.coefficients))

    def operation(self, op: int, *x: Any) -> Any:
        """A primitive of any scalars."""
        if all(type(value) is float for value in x):
            with np.errstate(all="ignore"):
                return float(O.OPERATIONS[op].value(*x))
        return self.apply(op, list(x))

    def add(self, a: Any, b: Any) -> Any:
        return self.operation(O.ADD, a, b)

    def start_memory(self, inputs: Iterable[Any]) -> None:
        super().start_memory(map(list, inputs))

    def fresh(self, buffer: Buffer) -> list[Any]:
        return [0.0] * buffer.size if buffer.data is None else buffer.data.reshape(-1).tolist()

    def evaluate(self, block: Block, inputs: list[Any]) -> list[Any]:
        """A block's outputs."""
        functions = [partial(self.operation, op) for op in range(len(O.OPERATIONS))]

        def look_up(table: Table, x: Any) -> Any:
            return float(table(x)) if type(x) is float else self.table(table, x)

        values = block.values([*block.constants.tolist(), *inputs], functions, look_up)
        return [values[k] for k in block.outputs.tolist()]

    # -- statements ------------------------------------------------------------------------------------
    def run(self, inputs: Sequence[Any]) -> list[Any]:
        self.start_memory(inputs)
        self.statements(self.program.statements)
        return self.outputs()

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
                        new[k] = self.operation(O.WHERE, active, value, old[k])
            going = self.operation(O.EQ, self.read(s.done)[0], 0.0)
            active = going if active is None else self.operation(O.MUL, active, going)

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


def run(program: Program, inputs: Sequence[Floats], batch: int) -> list[Floats]:
    """The outputs, each (batch, size), for inputs of (batch, size)."""
    return [np.ascontiguousarray(rows.T) for rows in _Run(program, inputs, batch).outputs()]


class _Run(Runner):
    """One evaluation: every buffer is an array (size, batch)."""

    def __init__(self, program: Program, inputs: Sequence[Floats], batch: int) -> None:
        super().__init__(program)
        self.batch = batch
        arrays = zip(inputs, program.inputs, strict=True)
        self.start_memory(np.array(x, dtype=np.float64).reshape(batch, b.size).T.copy() for x, b in arrays)
        with np.errstate(all="ignore"):
            self.statements(program.statements)

    def fresh(self, buffer: Buffer) -> Floats:
        if buffer.data is None:
            return np.zeros((buffer.size, self.batch))
        return np.broadcast_to(buffer.data.reshape(-1, 1), (buffer.size, self.batch))

    def evaluate(self, block: Block, inputs: list[Any]) -> list[Any]:
        return [np.array(np.broadcast_to(v, self.batch)) for v in block.evaluate(inputs)]

    def write(self, operand: Operand, values: Any, item: int = 0, ancestor: int = 0) -> None:
        if operand.size:
            self.read(operand, item, ancestor)[:] = np.reshape(values, (operand.size, -1))

    def loop(self, statement: Loop) -> None:
        active = np.ones(self.batch, dtype=bool)
        for _ in range(statement.count):
            self.statements(statement.body)
            for current, following in statement.carry:
                np.copyto(self.read(current), self.read(following), where=active)
            if statement.done is not None:
                active &= self.read(statement.done)[0] == 0
                if not active.any():
                    break

    def solve(self, s: Solve) -> None:
        a = np.moveaxis(self.read(s.matrix).reshape(s.rows, s.columns, self.batch), -1, 0)
        b = np.moveaxis(self.read(s.rhs).reshape(s.rows, s.right, self.batch), -1, 0)
        x = np.full((self.batch, s.columns, s.right), np.nan)
        for state in range(self.batch):
            if np.all(np.isfinite(a[state])):
                x[state] = _solve_one(s.method, a[state], b[state])
        self.write(s.solution, np.moveaxis(x, 0, -1).reshape(-1, self.batch))


def _solve_one(method: Method, a: Floats, b: Floats) -> Floats:
    try:
        if method in ("cholesky", "ltl"):
            # Both read one triangle: the lower one.
            lower = np.tril(a)
            return np.asarray(np.linalg.solve(lower + np.tril(a, -1).T, b), dtype=np.float64)
        if method == "lu":
            return np.asarray(np.linalg.solve(a, b), dtype=np.float64)
        return np.asarray(np.linalg.lstsq(a, b, rcond=None)[0], dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.full((a.shape[1], b.shape[1]), np.nan)
