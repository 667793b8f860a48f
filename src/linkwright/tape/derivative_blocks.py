"""Derivatives of one straight block and of one linear system, recorded.

Several directions go together: the tangents of a value are a dictionary direction → scalar, and what is not in
it is structurally zero. One direction gives the blocks of forward and reverse programs, one direction a column
or a row gives sparse Jacobians. Both directions of accumulation work on `nodes`, the values of the block replayed
in a recorder, so that everything they share is recorded once.

A x = b:                 A dx = db − dA x;            λ = A⁻ᵀ x̄,  b̄ += λ,  Ā −= λ xᵀ
x = A⁺ b, A wide:        y = A⁺ᵀ x,  w = dAᵀ y;       μ = A⁺ᵀ x̄,  b̄ += μ,
                         dx = w + A⁺(db − dA x − A w);  Ā += y (x̄ − Aᵀ μ)ᵀ − μ xᵀ

The second follows from x = Aᵀ y, A Aᵀ y = b with independent rows. A symmetric matrix is given by its lower
triangle: an entry below the diagonal stands for two, and its derivative counts twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from linkwright.base.arrays import Longs
from linkwright.tape import operations as O
from linkwright.tape.block import Block, Recorder, depends, operands_of
from linkwright.tape.build import ProgramBuilder, Wiring
from linkwright.tape.dataflow import first_start
from linkwright.tape.operations import choice, differentiable
from linkwright.tape.program import Program
from linkwright.tape.scalar import Scalar
from linkwright.tape.statements import ITEM, Case, Copy, Each, Operand, Solve, Zero

Directions: TypeAlias = dict[int, Scalar]

# The conditions under which an adjoint counts: (number of a condition's node, whether it holds), outermost first.
_Guard: TypeAlias = tuple[tuple[int, bool], ...]
_Guarded: TypeAlias = dict[_Guard, Scalar]

# An adjoint under more different guards than this is summed up at once.
_GUARDS = 4


# -- forward ---------------------------------------------------------------------------------------------
def push_forward(block: Block, nodes: Sequence[Scalar], tangents: Sequence[Directions]) -> list[Directions]:
    """The tangents of the outputs for those of the inputs."""
    none: Directions = {}
    directions: list[Directions] = [none] * len(block.constants) + list(tangents)
    for row, y in zip(block.rows(), nodes[block.first_operation :], strict=True):
        if y.value is not None or not any(directions[x] for x in differentiable(*row)):
            directions.append(none)
        else:
            directions.append(_tangents(row, y, nodes, directions))
    return [directions[k] for k in block.outputs.tolist()]


def _tangents(
    row: tuple[int, int, int, int], y: Scalar, nodes: Sequence[Scalar], directions: Sequence[Directions]
) -> Directions:
    op, operands = row[0], operands_of(row)
    if op in (O.ADD, O.SUB) and not directions[operands[1]]:
        return directions[operands[0]]
    x = tuple(nodes[k] for k in operands)
    zero = y.recorder.zero
    chosen = choice(op, x)
    tangents: Directions = {}
    if chosen is not None:
        condition, yes, no = chosen
        first, second = directions[operands[yes]], directions[operands[no]]
        for d in first | second:
            tangents[d] = condition.where(first.get(d, zero), second.get(d, zero))
    elif op == O.MUL and operands[0] == operands[1]:
        twice = 2.0 * x[0]
        tangents = {d: twice * t for d, t in directions[operands[0]].items()}
    else:
        for k, slope in zip(operands, O.OPERATIONS[op].slopes(x, y), strict=True):
            for d, t in directions[k].items():
                term = slope * t
                known = tangents.get(d)
                tangents[d] = term if known is None else known + term
    return {d: t for d, t in tangents.items() if t.value != 0.0}


# -- reverse ---------------------------------------------------------------------------------------------
def pull_back(
    block: Block, nodes: Sequence[Scalar], adjoints: Sequence[Directions], wanted: Sequence[Any]
) -> list[Directions]:
    """The adjoints of the wanted inputs (of the others: none) for those of the outputs.

    What a `where`, min or max does not take gets its adjoint under a guard: the products of the chain rule are
    formed inside, so that the slope of a branch not taken, be it ∞, never meets a 0.
    """
    active = depends(block, wanted)
    bars: list[dict[int, _Guarded]] = [{} for _ in nodes]
    for number, directions in zip(block.outputs.tolist(), adjoints, strict=True):
        if active[number]:
            for d, bar in directions.items():
                _add(bars[number].setdefault(d, {}), (), bar)
    first = block.first_operation
    rows = block.rows()
    for k in range(first + len(rows) - 1, first - 1, -1):
        if bars[k] and nodes[k].value is None:
            merged = {d: _merged(nodes[k].recorder, terms) for d, terms in bars[k].items()}
            _contribute(rows[k - first], nodes[k], nodes, merged, active, bars)
    inputs = zip(nodes[block.first_input : first], bars[block.first_input : first], strict=True)
    totals = [{d: _total(x.recorder, _merged(x.recorder, terms)) for d, terms in bar.items()} for x, bar in inputs]
    return [{d: bar for d, bar in directions.items() if bar.value != 0.0} for directions in totals]


def _contribute(
    row: tuple[int, int, int, int],
    y: Scalar,
    nodes: Sequence[Scalar],
    merged: dict[int, _Guarded],
    active: Sequence[bool],
    bars: list[dict[int, _Guarded]],
) -> None:
    """Add one operation's adjoints, times its slopes, to those of its operands."""
    op, operands = row[0], operands_of(row)
    x = tuple(nodes[k] for k in operands)
    chosen = choice(op, x)
    if chosen is not None:
        condition, yes, no = chosen
        for place, holds in ((yes, True), (no, False)):
            if active[operands[place]]:
                for d, terms in merged.items():
                    target = bars[operands[place]].setdefault(d, {})
                    for guard, bar in terms.items():
                        inner = _within(guard, condition, holds)
                        if inner is not None:
                            _add(target, inner, bar)
        return
    if op == O.MUL and operands[0] == operands[1]:
        operands, slopes = operands[:1], (2.0 * x[0],)
    else:
        slopes = O.OPERATIONS[op].slopes(x, y)
    for k, slope in zip(operands, slopes, strict=True):
        if active[k]:
            for d, terms in merged.items():
                target = bars[k].setdefault(d, {})
                for guard, bar in terms.items():
                    _add(target, guard, slope * bar)


def _add(terms: _Guarded, guard: _Guard, bar: Scalar) -> None:
    if bar.value != 0.0:
        known = terms.get(guard)
        terms[guard] = bar if known is None else known + bar


def _within(guard: _Guard, condition: Scalar, holds: bool) -> _Guard | None:
    """The guard with one more condition; None if they exclude each other."""
    if condition.value is not None:
        return guard if bool(condition) is holds else None
    if (condition.index, holds) in guard:
        return guard
    return None if (condition.index, not holds) in guard else (*guard, (condition.index, holds))


def _merged(recorder: Recorder, terms: _Guarded) -> _Guarded:
    """The same adjoint under as few guards as is safe.

    Two sides of one condition become a `where`. A value that also counts unguarded had better have finite
    slopes, so its guards are given up; so are more than a few, whose number would multiply upstream.
    """
    if len(terms) < 2:
        return terms
    terms = dict(terms)
    for length in range(max(map(len, terms)), 0, -1):
        for guard in [g for g in terms if len(g) == length]:
            condition, holds = guard[-1]
            other = (*guard[:-1], (condition, not holds))
            if guard in terms and other in terms:
                mine, theirs = terms.pop(guard), terms.pop(other)
                yes, no = (mine, theirs) if holds else (theirs, mine)
                _add(terms, guard[:-1], recorder.nodes[condition].where(yes, no))
    if len(terms) > _GUARDS or (() in terms and len(terms) > 1):
        return {(): _total(recorder, terms)}
    return terms


def _total(recorder: Recorder, terms: _Guarded) -> Scalar:
    """The sum of adjoints, each 0 where its guard does not hold."""
    total = recorder.zero
    for guard, bar in terms.items():
        for condition, holds in reversed(guard):
            node = recorder.nodes[condition]
            bar = node.where(bar, 0.0) if holds else node.where(0.0, bar)
        total = total + bar
    return total


def fixed(program: Program, operand: Operand) -> Operand:
    """The operand of a statement that has no items: its steps are those of item 0."""
    return Operand(operand.buffer, operand.size, first_start(program, operand))


@dataclass(frozen=True)
class Entries:
    """The entries of a matrix that count: their places in its numbers, rows and columns."""

    place: Longs
    row: Longs
    column: Longs

    @property
    def flipped(self) -> Entries:
        """The same numbers as entries of the transpose."""
        return Entries(self.place, self.column, self.row)

    def only(self, which: Any) -> Entries:
        return Entries(self.place[which], self.row[which], self.column[which])


def full(rows: int, columns: int) -> Entries:
    row, column = np.divmod(np.arange(rows * columns), max(columns, 1))
    return Entries(np.arange(rows * columns), row, column)


def stored(program: Program, solve: Solve) -> list[Entries]:
    """The entries that make up the matrix: of a symmetric one the lower triangle, then what it mirrors."""
    every = full(solve.rows, solve.columns)
    if solve.method not in ("cholesky", "ltl"):
        return [every]
    if solve.method == "ltl":
        assert solve.parent is not None
        lower = _ancestors(program.columns[solve.parent].tolist(), solve.columns)
    else:
        lower = every.only(every.row >= every.column)
    return [lower, lower.only(lower.row > lower.column).flipped]


def _ancestors(parent: list[int], n: int) -> Entries:
    pairs = []
    for i in range(n):
        j = i
        while j >= 0:
            pairs.append((i, j))
            j = parent[j]
    row, column = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Entries(row * n + column, row, column)


class Algebra:
    """Matrix products as statements, for matrices in buffers with `k` right sides."""

    def __init__(self, builder: ProgramBuilder, k: int) -> None:
        self.builder, self.k = builder, k

    def zeros(self, name: str, rows: int, columns: int | None = None) -> Operand:
        """A new cleared buffer."""
        buffer = self.uncleared(name, rows, columns)
        self.builder.add(Zero(buffer))
        return buffer

    def uncleared(self, name: str, rows: int, columns: int | None = None) -> Operand:
        """A new buffer that the next statement fills."""
        shape = (rows, self.k if columns is None else columns)
        return self.builder.temporary(self.builder.free_name(name), shape).operand

    def copy(self, source: Operand, name: str) -> Operand:
        buffer = self.builder.temporary(self.builder.free_name(name), (source.size,)).operand
        self.builder.add(Copy(source, buffer))
        return buffer

    def _rows(self, operand: Operand, numbers: Longs, *, add: bool = False) -> Operand:
        return replace(operand, size=self.k, steps=((self.k, self.builder.column(numbers)),), add=add)

    def _entry(self, matrix: Operand, entries: Entries, *, add: bool = False) -> Operand:
        return replace(matrix, size=1, steps=((1, self.builder.column(entries.place)),), add=add)

    def _each(self, items: int, make: Callable[[Wiring], None]) -> None:
        if items:
            wiring = Wiring()
            make(wiring)
            case: Case = wiring.case(self.builder)
            # Several entries add to one row, so that their order is kept.
            self.builder.add(Each(items, (case,), "outward"))

    def multiply(self, matrix: Operand, entries: Entries, x: Operand, to: Operand, sign: float) -> None:
        """to += sign · matrix · x."""

        def make(wiring: Wiring) -> None:
            (a,) = wiring.read(self._entry(matrix, entries))
            values = [sign * a * v for v in wiring.read(self._rows(x, entries.column))]
            wiring.write(self._rows(to, entries.row, add=True), values)

        self._each(len(entries.place), make)

    def outer(self, u: Operand, v: Operand, to: Operand, entries: Entries, sign: float) -> None:
        """to += sign · u vᵀ, at the entries."""

        def make(wiring: Wiring) -> None:
            us, vs = wiring.read(self._rows(u, entries.row)), wiring.read(self._rows(v, entries.column))
            total = wiring.recorder.zero
            for a, b in zip(us, vs, strict=True):
                total = total + a * b
            wiring.write(self._entry(to, entries, add=True), [sign * total])

        self._each(len(entries.place), make)

    def pseudo_inverse(self, solve: Solve, matrix: Operand) -> Operand:
        """A⁺ (n, m) by the system's own method."""
        m, n = solve.rows, solve.columns
        unit = self.builder.data(self.builder.free_name("unit"), np.eye(m)).operand
        inverse = self.uncleared("inverse", n, m)
        self.builder.add(replace(solve, matrix=matrix, rhs=unit, solution=inverse, right=m))
        return inverse


def add_numbers(builder: ProgramBuilder, source: Operand, to: Operand) -> None:
    """to += source, number by number."""
    step = ((1, ITEM),)
    _for_each(builder, source.size, replace(source, steps=step), replace(to, steps=step, add=True))


def _for_each(builder: ProgramBuilder, count: int, source: Operand, to: Operand) -> None:
    """to = source (or added to it), for as many single numbers."""
    wiring = Wiring()
    wiring.write(replace(to, size=1), wiring.read(replace(source, size=1)))
    if count:
        builder.add(Each(count, (wiring.case(builder),)))


def forward_solve(
    builder: ProgramBuilder, program: Program, s: Solve, d_matrix: Operand | None, d_rhs: Operand | None, dx: Operand
) -> None:
    """Add the statements that set dx, after those of the system itself; None stands for a tangent of 0."""
    matrix, x = fixed(program, s.matrix), fixed(program, s.solution)
    algebra = Algebra(builder, s.right)
    if d_matrix is None:
        assert d_rhs is not None
        builder.add(replace(s, rhs=d_rhs, solution=dx))
        return
    entries = stored(program, s)
    residual = algebra.zeros("rest", s.rows) if d_rhs is None else algebra.copy(d_rhs, "rest")
    for part in entries:
        algebra.multiply(d_matrix, part, x, residual, -1.0)
    if s.method != "least-norm":
        builder.add(replace(s, rhs=residual, solution=dx))
        return
    every = entries[0]
    inverse = algebra.pseudo_inverse(s, matrix)
    y, w = algebra.zeros("dual", s.rows), algebra.zeros("turn", s.columns)
    algebra.multiply(inverse, full(s.columns, s.rows).flipped, x, y, 1.0)
    algebra.multiply(d_matrix, every.flipped, y, w, 1.0)
    algebra.multiply(matrix, every, w, residual, -1.0)
    builder.add(Copy(w, dx))
    algebra.multiply(inverse, full(s.columns, s.rows), residual, dx, 1.0)


def reverse_solve(
    builder: ProgramBuilder,
    program: Program,
    s: Solve,
    bar_matrix: Operand | None,
    bar_rhs: Operand | None,
    bar: Operand,
) -> None:
    """Add the statements that add to the adjoints of matrix and right side; None: not wanted."""
    matrix, x = fixed(program, s.matrix), fixed(program, s.solution)
    algebra = Algebra(builder, s.right)
    entries = stored(program, s)
    if s.method == "least-norm":
        every = entries[0]
        inverse = algebra.pseudo_inverse(s, matrix)
        transposed = full(s.columns, s.rows).flipped
        dual = algebra.zeros("dual", s.rows)
        algebra.multiply(inverse, transposed, bar, dual, 1.0)
        if bar_matrix is not None:
            y, residual = algebra.zeros("dual", s.rows), algebra.copy(bar, "rest")
            algebra.multiply(inverse, transposed, x, y, 1.0)
            algebra.multiply(matrix, every.flipped, dual, residual, -1.0)
            algebra.outer(y, residual, bar_matrix, every, 1.0)
    else:
        dual = algebra.uncleared("dual", s.rows)
        if s.method == "lu":
            turned = algebra.uncleared("transpose", s.columns, s.rows)
            _transpose(builder, matrix, turned, s.rows, s.columns)
            builder.add(replace(s, matrix=turned, rhs=bar, solution=dual))
        else:
            builder.add(replace(s, rhs=bar, solution=dual))
    if bar_matrix is not None:
        for part in entries:
            algebra.outer(dual, x, bar_matrix, part, -1.0)
    if bar_rhs is not None:
        add_numbers(builder, dual, bar_rhs)


def _transpose(builder: ProgramBuilder, matrix: Operand, to: Operand, rows: int, columns: int) -> None:
    """to = matrixᵀ."""
    every = full(rows, columns)
    turned = ((1, builder.column(every.column * rows + every.row)),)
    _for_each(builder, rows * columns, replace(matrix, steps=((1, ITEM),)), replace(to, steps=turned))
