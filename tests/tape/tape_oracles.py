"""Independent ways to evaluate and differentiate a program: plain NumPy, finite differences, CasADi."""

from __future__ import annotations

import numpy as np
import pytest

from linkwright.kernels.interpret import interpreter as numpy_runner
from linkwright.tape import operations as O
from linkwright.tape.build import ProgramBuilder
from linkwright.tape.program import ITEM, Copy, Each, Loop, Operand, Program, Solve, Walk, Zero

ca = pytest.importorskip("casadi", reason="CasADi is the oracle: pip install casadi")


def evaluate(program: Program, *arrays) -> list[np.ndarray]:
    """The outputs for one state, by the reference back-end."""
    given = [np.asarray(a, dtype=float).reshape(1, -1) for a in arrays]
    found = numpy_runner.run(program, given, 1)
    return [y.reshape(b.shape) for y, b in zip(found, program.outputs, strict=True)]


def poisoned(program: Program) -> Program:
    """The program with NaN in all memory that it must write before it reads."""
    builder = ProgramBuilder.onto(program, program.name)
    for k, buffer in enumerate(program.buffers):
        if buffer.role in ("temporary", "output") and buffer.size:
            poison = builder.data(f"poison_{k}", np.full(buffer.size, np.nan))
            builder.add(Copy(poison.operand, Operand(k, buffer.size)))
    builder.statements.extend(program.statements)
    return builder.build(single=program.single)


def flat(arrays) -> np.ndarray:
    return np.concatenate([np.ravel(a) for a in arrays]) if len(arrays) else np.zeros(0)


def split(program: Program, vector: np.ndarray) -> list[np.ndarray]:
    """A vector of all inputs as the arrays of the inputs."""
    cuts = np.cumsum([b.size for b in program.inputs])[:-1]
    return [part.reshape(b.shape) for part, b in zip(np.split(vector, cuts), program.inputs, strict=True)]


def state(program: Program, seed: int = 0, low: float = 0.2, high: float = 1.2) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(low, high, b.shape) for b in program.inputs]


def differences(program: Program, arrays, step: float = 1e-6) -> np.ndarray:
    """The Jacobian of all outputs by all inputs, by central differences."""
    x = flat(arrays)
    columns = []
    for k in range(len(x)):
        e = np.zeros(len(x))
        e[k] = step
        up, down = (flat(evaluate(program, *split(program, x + s * e))) for s in (1, -1))
        columns.append((up - down) / (2 * step))
    return np.stack(columns, axis=1)


def by_forward(program: Program, arrays) -> np.ndarray:
    """The same matrix, a column a call of the forward program."""
    tangent = program.forward()
    n = sum(b.size for b in program.inputs)
    outputs = len(program.outputs)
    columns = [flat(evaluate(tangent, *arrays, *split(program, e))[outputs:]) for e in np.eye(n)]
    return np.stack(columns, axis=1)


def by_reverse(program: Program, arrays) -> np.ndarray:
    """The same matrix, a row a call of the reverse program."""
    adjoint = program.reverse()
    outputs = len(program.outputs)
    cuts = np.cumsum([b.size for b in program.outputs])
    rows = []
    for e in np.eye(cuts[-1]):
        bars = [p.reshape(b.shape) for p, b in zip(np.split(e, cuts[:-1]), program.outputs, strict=True)]
        rows.append(flat(evaluate(adjoint, *arrays, *bars)[outputs:]))
    return np.stack(rows)


def casadi_function(program: Program) -> ca.Function:
    """All inputs, as one vector, to all outputs, as one vector: the program run over CasADi's symbols."""
    return _Symbols(program).function()


def by_casadi(program: Program, arrays) -> np.ndarray:
    f = casadi_function(program)
    x = ca.SX.sym("x", f.size1_in(0))
    return np.array(ca.Function("J", [x], [ca.jacobian(f(x), x)])(flat(arrays)))


def close(a, b, tolerance: float = 1e-10) -> bool:
    """Whether two arrays agree relative to the largest number in them."""
    a, b = np.asarray(a), np.asarray(b)
    scale = max(1.0, float(np.max(np.abs(b), initial=0.0)))
    return a.shape == b.shape and bool(np.all(np.abs(a - b) <= tolerance * scale))


class _Symbols:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.x = ca.SX.sym("x", sum(b.size for b in program.inputs))
        given = iter(ca.vertsplit(self.x)) if self.x.numel() else iter(())
        self.memory = []
        for b in program.buffers:
            if b.role == "input":
                self.memory.append([next(given) for _ in range(b.size)])
            elif b.role == "data":
                self.memory.append([ca.SX(v) for v in b.data.ravel().tolist()])
            else:
                self.memory.append([ca.SX(0)] * b.size)
        self.columns = [c.tolist() for c in program.columns]

    def function(self) -> ca.Function:
        for statement in self.program.statements:
            self.run(statement)
        outputs = [v for b, m in zip(self.program.buffers, self.memory, strict=True) if b.role == "output" for v in m]
        return ca.Function("f", [self.x], [ca.vertcat(*outputs)])

    def start(self, o, i, j):
        near = sum(s * (i if c == ITEM else self.columns[c][i]) for s, c in o.steps)
        return o.base + near + sum(s * (j if c == ITEM else self.columns[c][j]) for s, c in o.far)

    def get(self, o, i=0, j=0):
        at = self.start(o, i, j)
        return self.memory[o.buffer][at : at + o.size]

    def put(self, o, values, i=0, j=0):
        at = self.start(o, i, j)
        self.memory[o.buffer][at : at + o.size] = values

    def run(self, s) -> None:
        if isinstance(s, Each):
            order = range(s.items)
            for i in reversed(order) if s.order == "inward" else order:
                self.case(s.cases[0 if s.dispatch is None else self.columns[s.dispatch][i]], i)
        elif isinstance(s, Walk):
            kind = self.program.kinds(s)
            for i, above in self.program.walks(s):
                carry = self.case(s.start[kind[i]], i)
                for j in above:
                    carry = self.case(s.step[kind[i] * len(s.start) + kind[j]], i, j, carry)
        elif isinstance(s, Loop):
            active = ca.SX(1)
            for _ in range(s.count):
                for inner in s.body:
                    self.run(inner)
                for now, after in s.carry:
                    pairs = zip(self.get(now), self.get(after), strict=True)
                    self.put(now, [ca.if_else(active, b, a) for a, b in pairs])
                if s.done is not None:
                    active = ca.logic_and(active, self.get(s.done)[0] == 0)
        elif isinstance(s, Solve):
            self.put(s.solution, _solved(s, self.get(s.matrix), self.get(s.rhs)))
        elif isinstance(s, Zero):
            self.put(s.target, [ca.SX(0)] * s.target.size)
        elif isinstance(s, Copy):
            self.put(s.target, self.get(s.source))

    def case(self, case, i, j=0, carry=()):
        values = []
        for o in case.inputs:
            values.extend(carry if o.buffer < 0 else self.get(o, i, j))
        results = _block(self.program.blocks[case.block], values)
        kept = []
        for o in case.outputs:
            part, results = results[: o.size], results[o.size :]
            if o.buffer < 0:
                kept = part
            elif o.add:
                self.put(o, [a + b for a, b in zip(self.get(o, i, j), part, strict=True)], i, j)
            else:
                self.put(o, part, i, j)
        return kept


def _block(block, inputs):
    values = [*map(ca.SX, block.constants.tolist()), *inputs]
    for op, a, b, c in block.rows():
        if op == O.TABLE:
            values.append(_table(block.tables[b], values[a]))
        else:
            values.append(_CASADI[op](*[values[k] for k in (a, b, c)[: O.OPERATIONS[op].arity]]))
    return [values[k] for k in block.outputs.tolist()]


def _table(table, x):
    pieces = []
    for start, c in zip(table.breaks, table.coefficients, strict=False):
        d = x - start
        pieces.append(c[0] + d * (c[1] + d * (c[2] + d * c[3])))
    found = pieces[0]
    for start, piece in zip(table.breaks[1:], pieces[1:], strict=False):
        found = ca.if_else(x >= start, piece, found)
    return found


def _solved(s, matrix, rhs):
    a = ca.reshape(ca.vertcat(*matrix), s.columns, s.rows).T
    b = ca.reshape(ca.vertcat(*rhs), s.right, s.rows).T
    if s.method in ("cholesky", "ltl"):
        a = ca.tril(a) + ca.tril(a, False).T
    x = a.T @ ca.solve(a @ a.T, b) if s.method == "least-norm" else ca.solve(a, b)
    return [x[i, k] for i in range(s.columns) for k in range(s.right)]


_CASADI = {
    O.NEG: lambda a: -a,
    O.ADD: lambda a, b: a + b,
    O.SUB: lambda a, b: a - b,
    O.MUL: lambda a, b: a * b,
    O.DIV: lambda a, b: a / b,
    O.SQRT: ca.sqrt,
    O.SIN: ca.sin,
    O.COS: ca.cos,
    O.TAN: ca.tan,
    O.ATAN2: ca.atan2,
    O.EXP: ca.exp,
    O.LOG: ca.log,
    O.POW: lambda a, b: a**b,
    O.ABS: ca.fabs,
    O.SIGN: ca.sign,
    O.MIN: ca.fmin,
    O.MAX: ca.fmax,
    O.WHERE: lambda c, a, b: ca.if_else(c != 0, a, b),
    O.FLOOR: ca.floor,
    O.LT: lambda a, b: a < b,
    O.LE: lambda a, b: a <= b,
    O.EQ: lambda a, b: a == b,
}
