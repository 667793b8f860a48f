"""Programs as SymPy expressions and CasADi functions: one interpreter, two algebras.

The interpreter runs the statements over scalars of any kind, so that scans, walks and loops come out unrolled. The
libraries are imported when they are asked for.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from linkwright.errors import KernelError
from linkwright.kernels.c.spelling import distinct
from linkwright.kernels.interpret.interpreter import Interpreter
from linkwright.tape import operations as O
from linkwright.tape.operations import CASADI_NAMES, SYMPY_NAMES, Table, spellings
from linkwright.tape.program import Buffer, Program
from linkwright.tape.statements import Loop, Solve

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
    sympy = imported("sympy")
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
    casadi = imported("casadi")
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


def imported(name: str) -> Any:
    """A library, or an error that says how to get it."""
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
