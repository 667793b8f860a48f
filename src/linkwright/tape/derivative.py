"""Derivatives of programs: forward, reverse, and sparse Jacobians and Hessians, all of them programs again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from linkwright.base.arrays import Floats, Longs
from linkwright.errors import RecordingError
from linkwright.tape.block import Block, Recorder, finish, undisturbed
from linkwright.tape.build import ProgramBuilder, Wiring
from linkwright.tape.dataflow import varied
from linkwright.tape.derivative_blocks import Directions, fixed, forward_solve, full, pull_back, push_forward
from linkwright.tape.derivative_reverse import reverse_program
from linkwright.tape.operations import differentiable
from linkwright.tape.program import Program, Role
from linkwright.tape.runner import straightened
from linkwright.tape.scalar import Scalar
from linkwright.tape.statements import Case, Copy, Each, Loop, Operand, Solve, Walk, Zero, parts


@undisturbed()
def forward_program(program: Program, wrt: Iterable[int] | None = None, output: int | None = None) -> Program:
    """(inputs, tangents "d_…" of the input buffers `wrt`, by default of all) → (outputs, their tangents "d_…").

    With `output`, the tangent of this output buffer is all that comes out.
    """
    return _Forward(program, tuple(program.with_role("input") if wrt is None else wrt), output).build()


class _Forward:
    def __init__(self, program: Program, wrt: tuple[int, ...], output: int | None) -> None:
        self.program = program
        self.marks = varied(program, wrt)
        self.only = output
        self.builder = builder = ProgramBuilder.onto(program, f"{program.name}_forward", blocks=False)
        self.tangents: dict[int, int] = {}  # buffer → the buffer of its tangents
        for k in wrt:
            self._tangent_buffer(k)
        for k in program.with_role("output") if output is None else [output]:
            tangent = Operand(self._tangent_buffer(k), program.buffers[k].size)
            if not self.marks.marks[k].all():
                builder.add(Zero(tangent))
        if output is not None:
            builder.hide_outputs(program)

    def _tangent_buffer(self, buffer: int) -> int:
        if buffer not in self.tangents:
            of = self.program.buffers[buffer]
            role = "temporary" if of.role == "output" and self.only not in (None, buffer) else of.role
            tangent = self.builder.buffer(self.builder.free_name(f"d_{of.name}"), role, of.shape)
            self.tangents[buffer] = tangent.operand.buffer
        return self.tangents[buffer]

    def build(self) -> Program:
        for statement in self.program.statements:
            statement.accept(self)
        return self.builder.build(single=self.only is not None)

    def tangent(self, operand: Operand) -> Operand:
        """The tangents of an operand's numbers."""
        return replace(operand, buffer=self._tangent_buffer(operand.buffer))

    def each(self, each: Each) -> None:
        self.builder.add(replace(each, cases=tuple(self.case(c, False) for c in each.cases)))

    def walk(self, walk: Walk) -> None:
        carried = self.marks.carried(walk)
        start, step = (tuple(self.case(c, carried) for c in cases) for cases in (walk.start, walk.step))
        self.builder.add(replace(walk, start=start, step=step))

    def zero(self, zero: Zero) -> None:
        self.builder.add(zero)
        if self.marks.any(zero.target):
            self.builder.add(Zero(self.tangent(zero.target)))

    def copy(self, copy: Copy) -> None:
        self.builder.add(copy)
        if self.marks.any(copy.source):
            self.builder.add(Copy(self.tangent(copy.source), self.tangent(copy.target)))
        elif self.marks.any(copy.target):
            self.builder.add(Zero(self.tangent(copy.target)))

    def case(self, case: Case, carried: bool) -> Case:
        """The block and its tangents in one block; a carry is followed by its tangents in the same operand."""
        wiring = Wiring()
        zero = wiring.recorder.zero
        block = self.program.blocks[case.block]
        values: list[list[Scalar]] = []
        tangents: list[list[Scalar]] = []
        for operand in case.inputs:
            if operand.buffer < 0:
                both = wiring.read(replace(operand, size=operand.size * (1 + carried)), keep=True)
                values.append(both[: operand.size])
                tangents.append(both[operand.size :] if carried else [zero] * operand.size)
            else:
                values.append(wiring.read(operand))
        for operand in case.inputs:
            if operand.buffer >= 0:
                marked = self.marks.of(operand).tolist()
                read = wiring.read(self.tangent(operand)) if any(marked) else [zero] * operand.size
                tangents.append([t if m else zero for t, m in zip(read, marked, strict=True)])
        nodes = block.replay(wiring.recorder, [x for part in values for x in part])
        pushed = push_forward(block, nodes, [{} if t.value == 0.0 else {0: t} for part in tangents for t in part])
        results = [nodes[k] for k in block.outputs.tolist()]
        slopes = parts(case.outputs, [d.get(0, zero) for d in pushed])
        late: list[tuple[Operand, list[Scalar]]] = []
        for (operand, part), (_, d_part) in zip(parts(case.outputs, results), slopes, strict=True):
            if operand.buffer < 0:
                late.append((replace(operand, size=operand.size * (1 + carried)), part + d_part if carried else part))
                continue
            wiring.write(operand, part)
            if self.marks.any(operand):
                wiring.write(self.tangent(operand), d_part)
        for operand, part in late:
            wiring.write(operand, part)
        return wiring.case(self.builder)

    def loop(self, loop: Loop) -> None:
        outside, self.builder.statements = self.builder.statements, []
        for statement in loop.body:
            statement.accept(self)
        body, self.builder.statements = tuple(self.builder.statements), outside
        carry = list(loop.carry)
        for current, following in loop.carry:
            if self.marks.any(current):
                carry.append((self.tangent(current), self.tangent(following)))
        self.builder.add(replace(loop, body=body, carry=tuple(carry)))

    def solve(self, solve: Solve) -> None:
        self.builder.add(solve)
        if not self.marks.any(solve.solution):
            return
        matrix, rhs, solution = (fixed(self.program, o) for o in (solve.matrix, solve.rhs, solve.solution))
        d_matrix = self.tangent(matrix) if self.marks.any(matrix) else None
        d_rhs = self.tangent(rhs) if self.marks.any(rhs) else None
        if d_matrix is None and d_rhs is None:
            self.builder.add(Zero(self.tangent(solution)))
        else:
            forward_solve(self.builder, self.program, solve, d_matrix, d_rhs, self.tangent(solution))


#: A Jacobian with more columns than this, of a program with loops over bodies, is refused.
COLUMNS = 4096


class Computed(Protocol):
    """A program, or its compiled form."""

    @property
    def inputs(self) -> Sequence[Any]: ...
    @property
    def outputs(self) -> Sequence[Any]: ...
    def __call__(self, *arrays: Any) -> Any: ...
    def jacobian(self, output: int = 0, wrt: int = 0) -> Any: ...


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A matrix of derivatives as a program: entry k stands at (rows[k], cols[k]), row by row.

    Rows and columns count the numbers of the output and of the input, flattened. `program` gives the entries; or,
    if `tangent` is set, it gives the derivative in the direction of this input of it, and is called with unit
    vectors, all of them at once.
    """

    program: Computed
    rows: Longs
    cols: Longs
    shape: tuple[int, int]
    tangent: int | None = None

    @property
    def density(self) -> float:
        """The share of entries that are not structurally zero."""
        m, n = self.shape
        return len(self.rows) / (m * n) if m * n else 0.0

    def values(self, *arrays: Any) -> Floats:
        """The entries (..., len(rows)) at states of any leading batch shape."""
        if self.tangent is None:
            entries: Floats = np.asarray(self.program(*arrays))
            return entries
        inputs = [b for k, b in enumerate(self.program.inputs) if k != self.tangent]
        n, operands = self.shape[1], []
        for array, buffer in zip(map(np.asarray, arrays), inputs, strict=True):
            # An axis for the directions, after the batch's.
            operands.append(np.expand_dims(array, array.ndim - len(buffer.shape)))
        operands.insert(self.tangent, np.eye(n).reshape(n, *self.program.inputs[self.tangent].shape))
        pushed = np.asarray(self.program(*operands))
        pushed = pushed.reshape(*pushed.shape[: pushed.ndim - len(self.program.outputs[0].shape)], self.shape[0])
        return np.ascontiguousarray(pushed[..., self.cols, self.rows])

    def __call__(self, *arrays: Any) -> Floats:
        """The dense matrix (..., m, n)."""
        values = self.values(*arrays)
        dense = np.zeros((*values.shape[:-1], *self.shape))
        dense[..., self.rows, self.cols] = values
        return dense

    def to_scipy(self, *arrays: Any) -> Any:
        """A `scipy.sparse.csr_array` of one state."""
        from scipy.sparse import csr_array  # type: ignore[import-untyped]  # weight: SciPy

        return csr_array((self.values(*arrays), (self.rows, self.cols)), shape=self.shape)


def jacobian(program: Program, output: int = 0, wrt: int = 0) -> SparseMatrix:
    """∂output/∂input. Straight programs get exactly their structural non-zeros, others all entries."""
    y, x = _chosen(program, output, wrt)
    m, n = program.buffers[y].size, program.buffers[x].size
    block = straightened(program)
    if block is None:
        _check_columns(program, n)
        return _by_directions(forward_program(program, (x,), y), m, n)
    with undisturbed():
        part = _part(program, block, y)
        first = sum(b.size for b in program.inputs[:wrt])
        candidates = [_recorded(part, way, first, n) for way in _ways(part, first, n)]
        values, rows, cols = min(candidates, key=lambda c: len(c[0]))
    return _sparse(program, f"{program.name}_jacobian", values, rows, cols, (m, n))


def hessian(program: Program, output: int = 0, wrt: int = 0) -> SparseMatrix:
    """∂²output/∂input² of an output of one number: forward over reverse; symmetric by construction."""
    y, x = _chosen(program, output, wrt)
    n = program.buffers[x].size
    if program.buffers[y].size != 1:
        shape = program.buffers[y].shape
        raise RecordingError(
            f"a Hessian is that of one number, but output {output} of {program.name} has the shape {shape}; "
            "record the component or the sum you mean"
        )
    block = straightened(program)
    if block is None:
        _check_columns(program, n)
        gradient = reverse_program(program, (x,), (y,), gradient=True)
        return _by_directions(forward_program(gradient, (x,), gradient.with_role("output")[0]), n, n)
    with undisturbed():
        part = _part(program, block, y)
        first = sum(b.size for b in program.inputs[:wrt])
        recorder, nodes = _replayed(part)
        bars = pull_back(part, nodes, [{0: recorder.constant(1.0)}], _flags(part, first, n))
        slopes = [d.get(0, recorder.zero) for d in bars[first : first + n]]
        part = finish(recorder, part.n_inputs, slopes)
        recorder, nodes = _replayed(part)
        pushed_slopes = push_forward(part, nodes, _units(recorder, part, first, n))
        # One triangle is recorded, and stands for both: what only the other needs is left out.
        entries = {(i, j): t for i, d in enumerate(pushed_slopes) for j, t in d.items() if j <= i}
        entries |= {(j, i): t for (i, j), t in entries.items()}
        values, rows, cols = _finished(recorder, part, entries)
    return _sparse(program, f"{program.name}_hessian", values, rows, cols, (n, n))


# -- parts of the above ----------------------------------------------------------------------------------
def _chosen(program: Program, output: int, wrt: int) -> tuple[int, int]:
    """The buffers of an output and an input, given by their numbers."""
    sides: tuple[tuple[Role, int], ...] = ("output", output), ("input", wrt)
    for role, number in sides:
        names = [program.buffers[k].name for k in program.with_role(role)]
        if not 0 <= number < len(names):
            text = f"{program.name} has no {role} number {number}; there are {len(names)}"
            raise RecordingError(f"{text}: {', '.join(names)}")
    return program.with_role("output")[output], program.with_role("input")[wrt]


def _check_columns(program: Program, n: int) -> None:
    if n > COLUMNS:
        raise RecordingError(
            f"a dense matrix of derivatives of {program.name} would have {n} columns; "
            "use .forward() for the derivative in a direction, or .reverse() for a gradient"
        )


def _by_directions(pushed: Program, m: int, n: int) -> SparseMatrix:
    """All entries of a matrix, by a program whose last input is a direction."""
    every = full(m, n)
    return SparseMatrix(pushed, every.row, every.column, (m, n), tangent=len(pushed.inputs) - 1)


def _part(program: Program, block: Block, buffer: int) -> Block:
    """The straight block of all outputs, cut down to one of them."""
    first = sum(b.size for b in program.buffers[:buffer] if b.role == "output")
    recorder, nodes = _replayed(block)
    wanted = block.outputs[first : first + program.buffers[buffer].size]
    return finish(recorder, block.n_inputs, [nodes[k] for k in wanted.tolist()])


def _replayed(block: Block) -> tuple[Recorder, list[Scalar]]:
    recorder = Recorder()
    return recorder, block.replay(recorder, [recorder.input(k) for k in range(block.n_inputs)])


def _flags(block: Block, first: int, n: int) -> list[bool]:
    return [first <= k < first + n for k in range(block.n_inputs)]


def _units(recorder: Recorder, block: Block, first: int, n: int) -> list[Directions]:
    one = recorder.constant(1.0)
    return [{k - first: one} if first <= k < first + n else {} for k in range(block.n_inputs)]


def _ways(block: Block, first: int, n: int) -> list[str]:
    """Forward or reverse, whichever takes fewer products; both where they are close, to be counted."""
    numbers = block.rows()
    base = block.first_operation
    columns = [0] * base
    for k in range(n):
        columns[block.first_input + first + k] = 1 << k
    for row in numbers:
        met = 0
        for x in differentiable(*row):
            met |= columns[x]
        columns.append(met)
    rows = [0] * len(columns)
    for i, k in enumerate(block.outputs.tolist()):
        rows[k] |= 1 << i
    down = up = 0
    for k in range(len(columns) - 1, base - 1, -1):
        if columns[k] and rows[k]:
            for x in differentiable(*numbers[k - base]):
                if columns[x]:
                    rows[x] |= rows[k]
                    down += columns[x].bit_count()
                    up += rows[k].bit_count()
    ways = ["forward"] if down <= 2 * up else []
    return [*ways, "reverse"] if up <= 2 * down else ways


def _recorded(block: Block, way: str, first: int, n: int) -> tuple[Block, Longs, Longs]:
    """The entries of a Jacobian, all columns (or all rows) in one recording."""
    recorder, nodes = _replayed(block)
    if way == "forward":
        pushed = push_forward(block, nodes, _units(recorder, block, first, n))
        entries = {(i, j): t for i, d in enumerate(pushed) for j, t in d.items()}
    else:
        one = recorder.constant(1.0)
        seeds = [{i: one} for i in range(len(block.outputs))]
        pulled = pull_back(block, nodes, seeds, _flags(block, first, n))
        entries = {(i, j): t for j, d in enumerate(pulled[first : first + n]) for i, t in d.items()}
    return _finished(recorder, block, entries)


def _finished(recorder: Recorder, block: Block, entries: dict[tuple[int, int], Scalar]) -> tuple[Block, Longs, Longs]:
    places = sorted(entries)
    rows, cols = np.array(places, dtype=np.int64).reshape(-1, 2).T
    return finish(recorder, block.n_inputs, [entries[p] for p in places]), rows.copy(), cols.copy()


def _sparse(
    program: Program, name: str, values: Block, rows: Longs, cols: Longs, shape: tuple[int, int]
) -> SparseMatrix:
    builder = ProgramBuilder(name)
    inputs = [builder.input(b.name, b.shape) for b in program.inputs]
    entries = builder.output("entries", (len(rows),))
    builder.add(Each(1, (builder.case(values, inputs, [entries]),)))
    return SparseMatrix(builder.build(single=True), rows, cols, shape)
