"""LLVM text of the linear solvers: loops over a copy of the matrix.

Cholesky and LᵀDL are those of `symmetric_solvers`. LU and least norm choose pivots by the numbers, so they run state by
state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from linkwright.kernels.llvm.instructions import number
from linkwright.kernels.llvm.symmetric_solvers import LONG, PADDING, AlongRows, Loops, Symmetric, is_chain
from linkwright.tape.statements import Solve

if TYPE_CHECKING:
    from linkwright.kernels.llvm.module_text import Lowering


def solve_text(lowering: Lowering, solve: Solve, name: str) -> str:
    """The function of a `Solve` statement."""
    f = lowering.open(name)
    if solve.method in ("cholesky", "ltl"):
        chain = solve.parent is None or is_chain(lowering.program.columns[solve.parent])
        along_rows = chain and lowering.width == 1 and lowering.pack > 1 and solve.columns >= LONG
        (AlongRows if along_rows else Symmetric)(f, solve, lowering.type).emit()
    else:
        _Pivoted(f, solve, "double").emit()
    return f.text()


def solve_room(solve: Solve) -> int:
    """Lane groups of scratch that a solver works in."""
    return solve.rows * (solve.columns + PADDING) + solve.columns * solve.right + 4 * solve.columns


class _Pivoted(Loops):
    """LU with row exchange, and least norm by orthogonalising the rows twice; scalars, state by state."""

    def emit(self) -> None:
        s, f = self.solve, self.f
        self.copy(s.matrix, self.work)
        self.copy(s.rhs, self.second)
        out, step, _ = f.address(s.solution, "0")

        def lane(offset: str) -> None:
            work = f.op(f"getelementptr double, ptr {self.work}, i64 {offset}")
            second = f.op(f"getelementptr double, ptr {self.second}, i64 {offset}")
            target = f.op(f"getelementptr double, ptr {out}, i64 {offset}")
            if s.method == "lu":
                self.lu(work, second)
                f.repeat("0", str(s.columns * s.right), lambda k: self.put(self.get(second, k), target, k, step))
            else:
                self.least_norm(work, second, target, step)

        f.repeat("0", str(self.width), lane)

    def minus(self, base: str, target: str, factor: str, other: str) -> None:
        """base[target] −= factor·base[other]."""
        product = self.arith("fmul", factor, self.get(base, other))
        self.put(self.arith("fsub", self.get(base, target), product), base, target)

    def scaled(self, base: str, at: str, factor: str) -> None:
        """base[at] *= factor."""
        self.put(self.arith("fmul", self.get(base, at), factor), base, at)

    def rows(self, base: str, columns: int, row: str, factor: str, other: str, first: str = "0") -> None:
        """row −= factor·other, for two rows of a matrix with so many columns, from `first` on."""

        def entry(j: str) -> None:
            self.minus(base, self.index(row, j, columns), factor, self.index(other, j, columns))

        self.f.repeat(first, str(columns), entry)

    def inverse(self, value: str) -> str:
        return self.arith("fdiv", number(1.0), value)

    def lu(self, a: str, b: str) -> None:
        f, n, k = self.f, self.solve.columns, self.solve.right
        f.low.intrinsic("fabs", 1)
        best, where = f.at_entry("alloca double"), f.at_entry("alloca i64")

        def eliminate(c: str) -> None:
            f.line(f"store double {number(-1.0)}, ptr {best}")
            f.line(f"store i64 {c}, ptr {where}")

            def look(r: str) -> None:
                size = f.op(f"call double @llvm.fabs.f64(double {self.get(a, self.index(r, c, n))})")
                old = f.op(f"load double, ptr {best}")
                larger = f.op(f"fcmp ogt double {size}, {old}")
                old_row = f.op(f"load i64, ptr {where}")
                f.line(f"store double {f.op(f'select i1 {larger}, double {size}, double {old}')}, ptr {best}")
                f.line(f"store i64 {f.op(f'select i1 {larger}, i64 {r}, i64 {old_row}')}, ptr {where}")

            f.repeat(c, str(n), look)
            pivot_row = f.op(f"load i64, ptr {where}")
            for base, columns in ((a, n), (b, k)):

                def swap(j: str, base: str = base, columns: int = columns) -> None:
                    upper, lower = self.index(c, j, columns), self.index(pivot_row, j, columns)
                    x, y = self.get(base, upper), self.get(base, lower)
                    self.put(y, base, upper)
                    self.put(x, base, lower)

                f.repeat("0", str(columns), swap)
            inverse = self.inverse(self.get(a, self.index(c, c, n)))

            def below(r: str) -> None:
                factor = self.arith("fmul", self.get(a, self.index(r, c, n)), inverse)
                self.rows(a, n, r, factor, c, f.op(f"add i64 {c}, 1"))
                self.rows(b, k, r, factor, c)

            f.repeat(f.op(f"add i64 {c}, 1"), str(n), below)

        f.repeat("0", str(n), eliminate)

        def back(r: str) -> None:
            inverse = self.inverse(self.get(a, self.index(r, r, n)))

            def right(j: str) -> None:
                at = self.index(r, j, k)

                def known(c: str) -> None:
                    self.minus(b, at, self.get(a, self.index(r, c, n)), self.index(c, j, k))

                f.repeat(f.op(f"add i64 {r}, 1"), str(n), known)
                self.scaled(b, at, inverse)

            f.repeat("0", str(k), right)

        f.repeat(str(n - 1), "-1", back, -1)

    def total(self, cell: str, count: int, product: Callable[[str], tuple[str, str]]) -> str:
        """The sum of products of so many pairs of numbers, added up in a cell of the stack."""
        f = self.f
        f.line(f"store double {number(0.0)}, ptr {cell}")

        def term(j: str) -> None:
            addend = self.arith("fmul", *product(j))
            following = self.arith("fadd", f.op(f"load double, ptr {cell}"), addend)
            f.line(f"store double {following}, ptr {cell}")

        f.repeat("0", str(count), term)
        return f.op(f"load double, ptr {cell}")

    def least_norm(self, a: str, b: str, x: str, step: int) -> None:
        """A = LQ by modified Gram–Schmidt, each row twice; b ← L⁻¹b along the way; x = Qᵀ L⁻¹ b."""
        f, m, n, k = self.f, self.solve.rows, self.solve.columns, self.solve.right
        f.low.intrinsic("sqrt", 1)
        cell = f.at_entry("alloca double")

        def dot(r: str, q: str) -> str:
            return self.total(cell, n, lambda j: (self.get(a, self.index(r, j, n)), self.get(a, self.index(q, j, n))))

        def row(r: str) -> None:
            def earlier(q: str) -> None:
                factor = dot(r, q)
                self.rows(a, n, r, factor, q)
                self.rows(b, k, r, factor, q)

            for _ in range(2):
                f.repeat("0", r, earlier)
            inverse = self.inverse(f.op(f"call double @llvm.sqrt.f64(double {dot(r, r)})"))
            for base, columns in ((a, n), (b, k)):

                def scale(j: str, base: str = base, columns: int = columns) -> None:
                    self.scaled(base, self.index(r, j, columns), inverse)

                f.repeat("0", str(columns), scale)

        f.repeat("0", str(m), row)

        def entry(i: str) -> None:
            def right(j: str) -> None:
                total = self.total(
                    cell, m, lambda r: (self.get(a, self.index(r, i, n)), self.get(b, self.index(r, j, k)))
                )
                self.put(total, x, self.index(i, j, k), step)

            f.repeat("0", str(k), right)

        f.repeat("0", str(n), entry)
