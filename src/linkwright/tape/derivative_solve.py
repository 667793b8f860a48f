"""The implicit derivative rules of linear systems, as statements over the stored entries of the matrix.

A x = b:                 A dx = db − dA x;            λ = A⁻ᵀ x̄,  b̄ += λ,  Ā −= λ xᵀ
x = A⁺ b, A wide:        y = A⁺ᵀ x,  w = dAᵀ y;       μ = A⁺ᵀ x̄,  b̄ += μ,
                         dx = w + A⁺(db − dA x − A w);  Ā += y (x̄ − Aᵀ μ)ᵀ − μ xᵀ

The second follows from x = Aᵀ y, A Aᵀ y = b with independent rows. A symmetric matrix is given by its lower
triangle: an entry below the diagonal stands for two, and its derivative counts twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwright.base.arrays import Longs
from linkwright.tape.build import ProgramBuilder
from linkwright.tape.dataflow import first_start
from linkwright.tape.program import Program
from linkwright.tape.statements import ITEM, Case, Copy, Each, Operand, Solve, Zero
from linkwright.tape.wiring import Wiring


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
    wiring = Wiring()
    step = ((1, ITEM),)
    values = wiring.read(replace(source, size=1, steps=step))
    wiring.write(replace(to, size=1, steps=step, add=True), values)
    if source.size:
        builder.add(Each(source.size, (wiring.case(builder),)))


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
    wiring = Wiring()
    values = wiring.read(replace(matrix, size=1, steps=((1, ITEM),)))
    wiring.write(replace(to, size=1, steps=((1, builder.column(every.column * rows + every.row)),)), values)
    builder.add(Each(rows * columns, (wiring.case(builder),)))
