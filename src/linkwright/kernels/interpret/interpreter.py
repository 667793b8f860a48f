"""Programs run over scalars of any kind, statement by statement: scans, walks and loops come out unrolled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from linkwright.tape import operations as O
from linkwright.tape.block import Block
from linkwright.tape.operations import Table
from linkwright.tape.program import Buffer
from linkwright.tape.running import Runner
from linkwright.tape.statements import Loop, Solve


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

    def add(self, a: Any, b: Any) -> Any:
        return self.operation(O.ADD, [a, b])

    def start_memory(self, inputs: Iterable[Any]) -> None:
        super().start_memory(map(list, inputs))

    def fresh(self, buffer: Buffer) -> list[Any]:
        return [0.0] * buffer.size if buffer.data is None else buffer.data.reshape(-1).tolist()

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
