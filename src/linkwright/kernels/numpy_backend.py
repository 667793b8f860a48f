"""Programs over a batch in plain NumPy: slow, simple, and the oracle of the other back-ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.errors import KernelError
from linkwright.tape.program import Program
from linkwright.tape.statements import Case, Copy, Each, Loop, Operand, Solve, Walk, Zero

Floats = NDArray[np.float64]


def run(program: Program, inputs: Sequence[Floats], batch: int) -> list[Floats]:
    """The outputs, each (batch, size), for inputs of (batch, size)."""
    return _Run(program, inputs, batch).outputs()


class _Run:
    """One evaluation: every buffer is an array (size, batch)."""

    def __init__(self, program: Program, inputs: Sequence[Floats], batch: int) -> None:
        self.program = program
        self.columns = [c.tolist() for c in program.columns]
        self.memory: list[Floats] = []
        given = iter(inputs)
        for buffer in program.buffers:
            if buffer.role == "input":
                rows = np.array(next(given), dtype=np.float64).reshape(batch, buffer.size).T.copy()
            elif buffer.role == "data":
                assert buffer.data is not None
                rows = np.broadcast_to(buffer.data.reshape(-1, 1), (buffer.size, batch))
            else:
                rows = np.zeros((buffer.size, batch))
            self.memory.append(rows)
        self.batch = batch
        with np.errstate(all="ignore"):
            for statement in program.statements:
                statement.accept(self)

    def outputs(self) -> list[Floats]:
        pairs = zip(self.program.buffers, self.memory, strict=True)
        return [np.ascontiguousarray(rows.T) for buffer, rows in pairs if buffer.role == "output"]

    def rows(self, operand: Operand, item: int = 0, ancestor: int = 0) -> Floats:
        """The numbers of an operand for one item: a view (size, batch)."""
        start = operand.start(lambda column, i: self.columns[column][i], item, ancestor)
        return self.memory[operand.buffer][start : start + operand.size]

    def each(self, each: Each) -> None:
        dispatch = None if each.dispatch is None else self.columns[each.dispatch]
        for i in each.order_of_items():
            self.case(each.cases[dispatch[i] if dispatch else 0], i)

    def zero(self, zero: Zero) -> None:
        self.rows(zero.target)[:] = 0.0

    def copy(self, copy: Copy) -> None:
        self.rows(copy.target)[:] = self.rows(copy.source)

    def case(self, case: Case, item: int, ancestor: int = 0, carry: list[Any] | None = None) -> list[Any]:
        """Run a block for one item; the numbers of the carry, if any, come in and go out as a list."""
        inputs: list[Any] = []
        for operand in case.inputs:
            inputs.extend(carry or [] if operand.buffer < 0 else self.rows(operand, item, ancestor))
        values = self.program.blocks[case.block].evaluate(inputs)
        results = [np.array(np.broadcast_to(v, self.batch)) for v in values]
        kept: list[Any] = []
        at = 0
        for operand in case.outputs:
            part = results[at : at + operand.size]
            at += operand.size
            if operand.buffer < 0:
                kept = part
                continue
            target = self.rows(operand, item, ancestor)
            for k, value in enumerate(part):
                if operand.add:
                    target[k] += value
                else:
                    target[k] = value
        return kept

    def walk(self, statement: Walk) -> None:
        kinds = self.program.kinds(statement)
        for i, ancestors in self.program.walks(statement):
            carry = self.case(statement.start[kinds[i]], i)
            for j in ancestors:
                step = statement.step[kinds[i] * len(statement.start) + kinds[j]]
                carry = self.case(step, i, j, carry)

    def loop(self, statement: Loop) -> None:
        active = np.ones(self.batch, dtype=bool)
        for _ in range(statement.count):
            for inner in statement.body:
                inner.accept(self)
            for current, following in statement.carry:
                np.copyto(self.rows(current), self.rows(following), where=active)
            if statement.done is not None:
                active &= self.rows(statement.done)[0] == 0
                if not active.any():
                    break

    def solve(self, s: Solve) -> None:
        a = np.moveaxis(self.rows(s.matrix).reshape(s.rows, s.columns, self.batch), -1, 0)
        b = np.moveaxis(self.rows(s.rhs).reshape(s.rows, s.right, self.batch), -1, 0)
        x = np.full((self.batch, s.columns, s.right), np.nan)
        for state in range(self.batch):
            if np.all(np.isfinite(a[state])):
                x[state] = _solve_one(s.method, a[state], b[state])
        self.rows(s.solution)[:] = np.moveaxis(x, 0, -1).reshape(-1, self.batch)


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
