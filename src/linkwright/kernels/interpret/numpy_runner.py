"""Programs over a batch in plain NumPy: slow, simple, and the oracle of the other back-ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.errors import KernelError
from linkwright.tape.block import Block
from linkwright.tape.program import Buffer, Program
from linkwright.tape.running import Runner
from linkwright.tape.statements import Loop, Operand, Solve


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


def _solve_one(method: str, a: Floats, b: Floats) -> Floats:
    try:
        if method in ("cholesky", "ltl"):
            # Both read one triangle: the lower one.
            lower = np.tril(a)
            return np.asarray(np.linalg.solve(lower + np.tril(a, -1).T, b), dtype=np.float64)
        if method == "lu":
            return np.asarray(np.linalg.solve(a, b), dtype=np.float64)
        if method == "least-norm":
            return np.asarray(np.linalg.lstsq(a, b, rcond=None)[0], dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.full((a.shape[1], b.shape[1]), np.nan)
    raise KernelError(f"no way to solve a linear system by {method!r}")
