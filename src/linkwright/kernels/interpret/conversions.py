"""Programs as SymPy expressions, CasADi functions and JAX functions: one interpreter, three algebras.

The interpreter runs the statements over scalars of any kind, so that scans, walks and loops come out unrolled; JAX's
has buffers as arrays, so that long ones stay loops. The libraries are imported when they are asked for.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from linkwright.errors import KernelError, ShapeError
from linkwright.kernels.c.spelling import distinct, identifier
from linkwright.kernels.interpret.interpreter import Interpreter
from linkwright.tape import operations as O
from linkwright.tape.block import Block
from linkwright.tape.operations import CASADI_NAMES, SYMPY_NAMES, Table, spellings
from linkwright.tape.program import Buffer, Program
from linkwright.tape.runner import Runner
from linkwright.tape.statements import Each, Loop, Operand, Solve, Walk, written

#: What scalars of any kind take as Python's own operators.
_PYTHON: dict[int, Callable[..., Any]] = {
    O.NEG: operator.neg,
    O.ADD: operator.add,
    O.SUB: operator.sub,
    O.MUL: operator.mul,
    O.DIV: operator.truediv,
    O.POW: operator.pow,
}
_UNROLLED = {"SymPy": 200_000, "CasADi": 2_000_000}  # operations that are still handled in reasonable time


def to_sympy(program: Program) -> tuple[list[Any], list[Any]]:
    """(inputs, outputs): lists of SymPy arrays of the buffers' shapes, a scalar as a plain expression.

    Symbols are real and named after their input: q0, q1, ...; m0_0, m0_1, ... of a matrix; t of a scalar.
    """
    sympy = _library("sympy")
    _bounded(program, "SymPy")

    def shaped(values: list[Any], buffer: Buffer) -> Any:
        return sympy.ImmutableDenseNDimArray(values, buffer.shape) if buffer.shape else values[0]

    symbols = [[sympy.Symbol(name, real=True) for name in names] for names in _symbol_names(program)]
    algebra = _SymPy(program, sympy)
    outputs = [[algebra.lift(x) for x in values] for values in algebra.run(symbols)]
    return (
        [shaped(x, b) for x, b in zip(symbols, program.inputs, strict=True)],
        [shaped(x, b) for x, b in zip(outputs, program.outputs, strict=True)],
    )


def to_casadi(program: Program) -> Any:
    """A `casadi.Function` with the program's inputs and outputs by name (odd names made identifiers).

    A vector is a column and a matrix a matrix; of an array of more dimensions, (a, b, c, ...) is the matrix
    a × (b·c·...), each row in row-major order. A loop that may end early runs all its rounds, the later ones
    switched off. CasADi's fmin and fmax ignore a NaN, where NumPy's pass it on.
    """
    casadi = _library("casadi")
    _bounded(program, "CasADi")
    names = distinct(buffer.name for buffer in (*program.inputs, *program.outputs))
    inputs, scalars = [], []
    for name, buffer in zip(names, program.inputs, strict=False):
        rows, columns = _matrix_shape(buffer)
        inputs.append(casadi.SX.sym(name, rows, columns))
        entries = inputs[-1].T.nonzeros()  # CasADi counts down the columns
        scalars.append(list(entries))
    outputs = []
    for values, buffer in zip(_CasADi(program, casadi).run(scalars), program.outputs, strict=True):
        rows, columns = _matrix_shape(buffer)
        column = casadi.vertcat(casadi.SX(0, 1), *(casadi.SX(x) for x in values))
        outputs.append(casadi.reshape(column, columns, rows).T)
    n = len(inputs)
    return casadi.Function(casadi.Function.fix_name(program.name), inputs, outputs, names[:n], names[n:])


def to_jax(program: Program) -> Callable[..., Any]:
    """A function of JAX arrays for one state; it can be jitted, mapped and differentiated, also in reverse.

    It computes in the arguments' precision (JAX makes float64 only with `jax_enable_x64`). A loop that may end
    early is a loop of fixed length whose later rounds do nothing, since JAX cannot reverse any other.
    """
    jax = _library("jax")
    single = program.returns_one

    def function(*arrays: Any) -> Any:
        jnp = jax.numpy
        if len(arrays) != len(program.inputs):
            raise ShapeError(
                f"program {program.name} takes {len(program.inputs)} arrays, not {len(arrays)}",
                given=len(arrays),
                wanted=len(program.inputs),
            )
        operands = []
        for array, buffer in zip(arrays, program.inputs, strict=True):
            if jnp.shape(array) != buffer.shape:
                raise ShapeError(
                    f"{buffer.name} of program {program.name} has shape {buffer.shape}, not {jnp.shape(array)}",
                    given=jnp.shape(array),
                    wanted=buffer.shape,
                )
            operands.append(jnp.asarray(array))
        dtype = jnp.result_type(float, *operands)
        results = JaxInterpreter(program, jax, dtype).run([x.astype(dtype).reshape(-1) for x in operands])
        shaped = tuple(x.reshape(b.shape) for x, b in zip(results, program.outputs, strict=True))
        return shaped[0] if single else shaped

    function.__name__ = identifier(program.name)
    return function


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise KernelError(f"{name} is not installed; pip install {name}") from None


def _bounded(program: Program, what: str) -> None:
    operations = sum(program.count().values())
    if operations > _UNROLLED[what]:
        raise KernelError(
            f"program {program.name} unrolls to {operations} operations, too many for {what}; "
            "take a smaller mechanism, or .to_jax(), which keeps loops"
        )


def _matrix_shape(buffer: Buffer) -> tuple[int, int]:
    rows, *others = buffer.shape or (1,)
    return rows, int(np.prod(others, dtype=np.int64))


def _symbol_names(program: Program) -> list[list[str]]:
    """One name a number, none twice: the inputs q (3) and q1 () give q_0, q_1, q_2 and q1."""
    names: list[list[str]] = []
    for buffer in program.inputs:
        gap = "_" if buffer.shape and buffer.name[-1:].isdigit() else ""
        while True:
            mine = [buffer.name + gap + "_".join(map(str, at)) for at in np.ndindex(buffer.shape)]
            others = {b.name for b in program.inputs if b is not buffer}.union(*names)
            if others.isdisjoint(mine):
                break
            gap += "_"
        names.append(mine)
    return names


class _SymPy(Interpreter):
    def __init__(self, program: Program, sympy: Any) -> None:
        super().__init__(program)
        self.sympy = sympy
        self.functions = spellings(
            "SymPy",
            _PYTHON
            | {op: getattr(sympy, name) for op, name in SYMPY_NAMES.items()}
            | {
                O.LT: lambda a, b: self.truth(sympy.Lt(a, b)),
                O.LE: lambda a, b: self.truth(sympy.Le(a, b)),
                O.EQ: lambda a, b: self.truth(sympy.Eq(a, b)),
                O.WHERE: lambda c, a, b: sympy.Piecewise((a, self.condition(c)), (b, True)),
                O.TABLE: self.table,
            },
        )

    def lift(self, x: Any) -> Any:
        """Whole numbers are exact, so that 1·x is x."""
        if type(x) is not float:
            return x
        return self.sympy.Integer(int(x)) if x.is_integer() and abs(x) < 2**53 else self.sympy.sympify(x)

    def apply(self, op: int, x: list[Any]) -> Any:
        return super().apply(op, list(map(self.lift, x)))

    def truth(self, condition: Any) -> Any:
        return self.sympy.Piecewise((1, condition), (0, True))

    def condition(self, x: Any) -> Any:
        """x ≠ 0; of a truth value, its own condition."""
        if isinstance(x, self.sympy.Piecewise) and [value for value, _ in x.args] == [1, 0]:
            return x.args[0][1]
        return self.sympy.Ne(x, 0)

    def table(self, table: Table, x: Any) -> Any:
        pieces = []
        for k, (c0, c1, c2, c3) in enumerate(table.coefficients):
            d = x - table.breaks[k]
            last = k == len(table.coefficients) - 1
            pieces.append((((c3 * d + c2) * d + c1) * d + c0, True if last else x < table.breaks[k + 1]))
        return self.sympy.Piecewise(*pieces)

    def loop(self, s: Loop) -> None:
        if s.done is not None:
            raise KernelError(
                f"program {self.program.name} has a loop that ends early by its numbers, which has no closed form"
            )
        super().loop(s)

    def solution(self, s: Solve, matrix: list[Any], right: list[Any]) -> list[Any]:
        a = self.sympy.Matrix(s.rows, s.columns, [self.lift(x) for x in matrix])
        b = self.sympy.Matrix(s.rows, s.right, [self.lift(x) for x in right])
        try:
            x = a.T * (a * a.T).LUsolve(b) if s.method == "least-norm" else a.LUsolve(b)
        except ValueError as error:
            raise KernelError(f"program {self.program.name} solves a singular system: {error}") from None
        return list(x)


class _CasADi(Interpreter):
    def __init__(self, program: Program, casadi: Any) -> None:
        super().__init__(program)
        self.casadi = casadi
        infix = {O.ADD: "plus", O.SUB: "minus", O.MUL: "times", O.DIV: "rdivide", O.POW: "power"}
        library = {op: getattr(casadi, name) for op, name in (CASADI_NAMES | infix).items()}
        self.functions = spellings("CasADi", _PYTHON | library | {O.TABLE: self.table})

    def solution(self, s: Solve, matrix: list[Any], right: list[Any]) -> list[Any]:
        ca = self.casadi

        def shaped(values: list[Any], rows: int, columns: int) -> Any:
            return ca.reshape(ca.vertcat(*(ca.SX(x) for x in values)), columns, rows).T

        a, b = shaped(matrix, s.rows, s.columns), shaped(right, s.rows, s.right)
        if s.method in ("cholesky", "ltl"):
            x = ca.ldl_solve(b, *ca.ldl(ca.sparsify(a)))
        elif s.method == "lu":
            x = ca.solve(a, b)
        else:
            q, r = ca.qr(a.T)
            x = ca.mtimes(q, ca.solve(r.T, b))
        return list(ca.densify(x).T.nonzeros())


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
            result = self.lax.switch(kind, branches, *(values[k] for k in operands))
            return self.lax.dynamic_update_index_in_dim(values, result, place, 0), None

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
