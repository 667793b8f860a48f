"""Programs in JAX's own operations, for any device: what runs where XLA cannot call machine code of ours.

Buffers are arrays, so that long scans, walks and loops stay loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from linkwright.kernels.interpret.interpreter import Interpreter
from linkwright.tape import operations as O
from linkwright.tape.block import Block
from linkwright.tape.operations import Table, spellings
from linkwright.tape.program import Buffer, Program
from linkwright.tape.runner import Runner
from linkwright.tape.statements import Each, Loop, Operand, Solve, Walk, written


def in_operations(program: Program, jax: Any, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The outputs for JAX arrays of one state and one floating-point type, in this type.

    A loop that may end early is a loop of fixed length whose later rounds do nothing, since JAX cannot reverse any
    other.
    """
    dtype = jax.numpy.result_type(float, *arrays)
    outputs = JaxInterpreter(program, jax, dtype).run([x.astype(dtype).reshape(-1) for x in arrays])
    return tuple(x.reshape(b.shape) for x, b in zip(outputs, program.outputs, strict=True))


class JaxInterpreter(Interpreter):
    """Buffers are arrays; scans and walks of more than `short` steps stay loops.

    A block of more than `long` operations is a loop over its operations. On CPUs, XLA takes ten seconds and more
    for the text of a thousand scalar operations, and what comes out is slower than the loop; on GPUs each round of
    a loop is a launch, and the text is a hundred times faster.
    """

    short = 4
    long = 200
    long_on_gpu = 4000

    def __init__(self, program: Program, jax: Any, dtype: Any) -> None:
        super().__init__(program)
        self.jax, self.np, self.lax, self.dtype = jax, jax.numpy, jax.lax, dtype
        self.room = 0  # numbers that a walk carries at most
        names = {O.NEG: "negative", O.ADD: "add", O.SUB: "subtract", O.MUL: "multiply", O.DIV: "divide", O.POW: "power"}
        names |= {O.SQRT: "sqrt", O.SIN: "sin", O.COS: "cos", O.TAN: "tan", O.ATAN2: "arctan2", O.EXP: "exp"}
        names |= {O.LOG: "log", O.ABS: "abs", O.SIGN: "sign", O.MIN: "minimum", O.MAX: "maximum", O.FLOOR: "floor"}
        truths = {O.LT: self.np.less, O.LE: self.np.less_equal, O.EQ: self.np.equal}
        self.functions = spellings(
            "JAX",
            {op: getattr(self.np, name) for op, name in names.items()}
            | {op: lambda a, b, truth=truth: truth(a, b).astype(dtype) for op, truth in truths.items()}
            | {O.WHERE: lambda c, a, b: self.np.where(c != 0, a, b), O.TABLE: self.table},
        )

    def table(self, table: Table, x: Any) -> Any:
        breaks = self.np.asarray(table.breaks, dtype=self.dtype)
        pieces = self.np.asarray(table.coefficients, dtype=self.dtype)
        i = self.np.clip(self.np.searchsorted(breaks, x, side="right") - 1, 0, len(table.coefficients) - 1)
        d, c = x - breaks[i], pieces[i]
        return ((c[3] * d + c[2]) * d + c[1]) * d + c[0]

    def evaluate(self, block: Block, inputs: list[Any]) -> list[Any]:
        if len(block) <= (self.long if self.jax.default_backend() == "cpu" else self.long_on_gpu):
            return super().evaluate(block, inputs)
        leaves = self.array([*block.constants.tolist(), *inputs])
        values = self.np.concatenate([leaves, self.np.zeros(len(block), self.dtype)])
        rows = block.rows()
        # Each table is an operation of its own.
        kinds = sorted({(op, b if op == O.TABLE else 0) for op, _, b, _ in rows})
        number = {kind: k for k, kind in enumerate(kinds)}
        code = [(number[op, b if op == O.TABLE else 0], a, 0 if op == O.TABLE else b, c) for op, a, b, c in rows]

        def branch(op: int, table: int) -> Callable[..., Any]:
            if op == O.TABLE:
                return lambda a, b, c: self.table(block.tables[table], a)
            return lambda *x: self.apply(op, list(x[: O.OPERATIONS[op].arity]))

        branches = [branch(*kind) for kind in kinds]

        def step(values: Any, now: Any) -> tuple[Any, None]:
            (kind, *operands), place = now
            outcome = self.lax.switch(kind, branches, *(values[k] for k in operands))
            return self.lax.dynamic_update_index_in_dim(values, outcome, place, 0), None

        places = block.first_operation + self.np.arange(len(block))
        values, _ = self.lax.scan(step, values, (tuple(self.np.asarray(code).T), places))
        results = values[self.np.asarray(block.outputs)]
        return [results[k] for k in range(len(block.outputs))]

    def solution(self, s: Solve, matrix: list[Any], right: list[Any]) -> list[Any]:
        a = self.array(matrix).reshape(s.rows, s.columns)
        b = self.array(right).reshape(s.rows, s.right)
        if s.method == "least-norm":
            q, r = self.np.linalg.qr(a.T)
            x = q @ self.jax.scipy.linalg.solve_triangular(r, b, trans="T")
        else:
            x = self.np.linalg.solve(a, b)
        return list(x.reshape(-1))

    # -- memory ----------------------------------------------------------------------------------------
    def start_memory(self, inputs: Iterable[Any]) -> None:
        Runner.start_memory(self, inputs)
        self.columns = [self.np.asarray(c) for c in self.program.columns]

    def fresh(self, buffer: Buffer) -> Any:
        if buffer.data is None:
            return self.np.zeros(buffer.size, self.dtype)
        return self.array(buffer.data.reshape(-1))

    def array(self, values: Any) -> Any:
        if isinstance(values, np.ndarray) or not len(values):
            return self.np.asarray(values, dtype=self.dtype)
        return self.np.stack([self.np.asarray(x, dtype=self.dtype) for x in values])

    def entry(self, column: int, item: Any) -> Any:
        return int(self.program.columns[column][item]) if isinstance(item, int) else self.columns[column][item]

    def read(self, operand: Operand, item: Any = 0, ancestor: Any = 0) -> list[Any]:
        at = operand.start(self.entry, item, ancestor)
        part = self.lax.dynamic_slice(self.memory[operand.buffer], (at,), (operand.size,))
        return [part[k] for k in range(operand.size)]

    def write(self, operand: Operand, values: Sequence[Any], item: Any = 0, ancestor: Any = 0) -> None:
        if operand.size:
            at = operand.start(self.entry, item, ancestor)
            memory = self.memory[operand.buffer]
            self.memory[operand.buffer] = self.lax.dynamic_update_slice(memory, self.array(values), (at,))

    # -- loops -----------------------------------------------------------------------------------------
    def rolled(self, buffers: Iterable[int], steps: int, body: Callable[[Any], None]) -> None:
        """body(n) for n = 0..steps−1 as one loop that carries the buffers written and the walk's carry."""
        carried = sorted(buffers)

        def once(n: Any, state: Any) -> Any:
            return self.pure(carried, lambda: body(n))(state)

        self.restore(carried, self.lax.fori_loop(0, steps, once, self.state(carried)))

    def pure(self, buffers: list[int], run: Callable[[], None]) -> Callable[[Any], Any]:
        """The state of these buffers after `run` as a function of that before."""

        def function(state: Any) -> Any:
            self.restore(buffers, state)
            run()
            return self.state(buffers)

        return function

    def state(self, buffers: list[int]) -> Any:
        unused = [0.0] * (self.room - len(self.carry))
        return [self.memory[b] for b in buffers], self.array([*self.carry, *unused])

    def restore(self, buffers: list[int], state: Any) -> None:
        for b, values in zip(buffers, state[0], strict=True):
            self.memory[b] = values
        self.carry = list(state[1])

    def choose(self, buffers: Iterable[int], key: Any, branches: Sequence[Callable[[], None]]) -> None:
        """Run the branch that `key` names."""
        if len(branches) == 1:
            return branches[0]()
        carried = sorted(buffers)
        states = [self.pure(carried, run) for run in branches]
        self.restore(carried, self.lax.switch(key, states, self.state(carried)))

    def each(self, s: Each) -> None:
        if s.items <= self.short:
            return super().each(s)
        buffers = written([s])

        def body(n: Any) -> None:
            i = s.items - 1 - n if s.order == "inward" else n
            key = 0 if s.dispatch is None else self.columns[s.dispatch][i]
            self.choose(buffers, key, [lambda case=case: self.case(case, i) for case in s.cases])  # type: ignore[misc]

        self.rolled(buffers, s.items, body)

    def walk(self, s: Walk) -> None:
        kinds, steps = self.program.kinds(s), []
        for i, ancestors in self.program.walks(s):
            steps.append((kinds[i], i, 0))
            steps.extend((len(s.start) * (1 + kinds[i]) + kinds[j], i, j) for j in ancestors)
        if len(steps) <= self.short:
            return super().walk(s)
        cases, buffers = s.cases, written([s])
        path = self.np.asarray(steps)
        self.room = max(case.outputs[-1].size for case in s.start)

        def body(n: Any) -> None:
            key, i, j = path[n]
            self.choose(buffers, key, [lambda case=case: self.case(case, i, j) for case in cases])  # type: ignore[misc]

        self.rolled(buffers, len(steps), body)
        self.room, self.carry = 0, []

    def loop(self, s: Loop) -> None:
        if s.count <= 0:
            return
        carried = sorted(written([s]))

        def once(_: Any, state: Any) -> Any:
            active, values = state

            def run(values: Any) -> Any:
                self.restore(carried, values)
                self.round(s)
                going = self.np.asarray(True) if s.done is None else self.read(s.done)[0] == 0
                return going, self.state(carried)

            if s.done is None:
                return run(values)
            return self.lax.cond(active, run, lambda values: (active, values), values)

        _, values = self.lax.fori_loop(0, s.count, once, (self.np.asarray(True), self.state(carried)))
        self.restore(carried, values)
