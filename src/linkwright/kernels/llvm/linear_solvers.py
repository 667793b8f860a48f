"""LLVM text of the linear solvers: loops over a copy of the matrix, lanes over states or right sides.

Cholesky and LᵀDL work on lane groups (all states at once; with one state, several right sides at once).
LU and least norm choose pivots by the numbers, so they run state by state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwright.kernels.llvm.instructions import FAST, number, splat, vector
from linkwright.tape.statements import Operand, Solve

if TYPE_CHECKING:
    from linkwright.kernels.llvm.function_text import Function
    from linkwright.kernels.llvm.module_text import Lowering


_LONG = 16  # rows from which a matrix without zeros is eliminated along its rows
_PADDING = 8  # numbers at most that are left free after a row, so that whole registers are read and written
_PIVOTS = 4  # rows that are eliminated together
_GROUP = 8  # registers' worth of right sides laid out in one turn of a loop


def solve_text(lowering: Lowering, solve: Solve, name: str) -> str:
    """The function of a `Solve` statement."""
    f = lowering.open(name)
    if solve.method in ("cholesky", "ltl"):
        chain = solve.parent is None or _is_chain(lowering.program.columns[solve.parent])
        along_rows = chain and lowering.width == 1 and lowering.pack > 1 and solve.columns >= _LONG
        (_AlongRows if along_rows else _Symmetric)(f, solve, lowering.type).emit()
    else:
        _Pivoted(f, solve, "double").emit()
    return f.text()


def solve_room(solve: Solve) -> int:
    """Lane groups of scratch that a solver works in."""
    return solve.rows * (solve.columns + _PADDING) + solve.columns * solve.right + 4 * solve.columns


def _is_chain(parent: NDArray[Any]) -> bool:
    """Whether every row follows the one before: then a tree's matrix has no zeros by structure."""
    return bool(np.all(parent == np.arange(len(parent)) - 1))


class _Loops:
    """Loops and element access over matrices in lane groups; `kind` is the type of an element."""

    def __init__(self, f: Function, solve: Solve, kind: str) -> None:
        self.f, self.solve, self.low, self.kind = f, solve, f.low, kind
        self.width = f.low.width
        spill = f.low.spill * self.width
        self.work = f.op(f"getelementptr double, ptr %scratch, i64 {spill}")
        n = solve.rows * solve.columns
        self.second = f.op(f"getelementptr double, ptr {self.work}, i64 {n * self.width}")

    def index(self, i: str, j: str, columns: int) -> str:
        f = self.f
        return f.op(f"add i64 {f.op(f'mul i64 {i}, {columns}')}, {j}")

    def get(self, base: str, element: str) -> str:
        return self.f.op(f"load {self.kind}, ptr {self.f.at(base, element, self.width)}, align 8")

    def put(self, value: str, base: str, element: str, step: int | None = None) -> None:
        at = self.f.at(base, element, self.width if step is None else step)
        self.f.line(f"store {self.kind} {value}, ptr {at}, align 8")

    def copy(self, operand: Operand, target: str) -> None:
        """An operand's numbers into lane groups at `target`."""
        self.f.copy(self.f.address(operand, "0"), (target, self.width, False), operand.size)

    def arith(self, what: str, a: str, b: str, kind: str | None = None) -> str:
        return self.f.op(f"{what} {FAST} {kind or self.kind} {a}, {b}")


class _Symmetric(_Loops):
    """Cholesky-like elimination without pivots: A = LᵀDL from the last row up.

    With the ancestors of a tree only (`ltl`), or with all earlier rows (`cholesky`); the lower triangle is read.
    """

    def emit(self) -> None:
        s, f = self.solve, self.f
        n, k = s.columns, s.right
        self.copy(s.matrix, self.work)
        out, step, shared = f.address(s.solution, "0")
        assert not shared
        f.copy(f.address(s.rhs, "0"), (out, step, False), n * k)

        def before(i: str, body: Callable[[str], None]) -> None:
            if s.parent is not None:
                f.ancestors(s.parent, i, body)
            else:
                f.repeat(f.op(f"add i64 {i}, -1"), "-1", body, -1)

        def eliminate(k_row: str) -> None:
            row = self._row(self.work, k_row, n)
            inverse = self.arith("fdiv", splat(1.0, self.width), self.get(row, k_row))

            def outer(i: str) -> None:
                upper = self._row(self.work, i, n)
                factor = self.arith("fmul", self.get(row, i), inverse)

                def inner(j: str) -> None:
                    product = self.arith("fmul", factor, self.get(row, j))
                    self.put(self.arith("fsub", self.get(upper, j), product), upper, j)

                inner(i)
                before(i, inner)
                self.put(factor, row, i)

            before(k_row, outer)
            self.put(inverse, row, k_row)

        f.repeat(str(n - 1), "-1", eliminate, -1)

        def inward(i: str) -> None:
            factors, row = self._row(self.work, i, n), self._row(out, i, k)
            before(i, lambda j: self.axpy(self.get(factors, j), row, self._row(out, j, k), k))
            self.scale(self.get(factors, i), row, k)

        def outward(i: str) -> None:
            factors, row = self._row(self.work, i, n), self._row(out, i, k)
            before(i, lambda j: self.axpy(self.get(factors, j), self._row(out, j, k), row, k))

        f.repeat(str(n - 1), "-1", inward, -1)
        f.repeat("0", str(n), outward)

    def _along(self, k: int, rows: Sequence[str], one: Callable[[Sequence[str], str, int], None]) -> None:
        """one(pointers, type, lanes) along rows of k right sides: full registers first, then the rest.

        With one state a register holds several right sides, else the states of one. The code is laid out flat,
        in groups where there are many.
        """
        lanes, kind = (self.low.pack, vector(self.low.pack)) if self.width == 1 else (1, self.low.type)
        step = lanes * self.width
        chunks, single = divmod(k, lanes)

        def flat(starts: Sequence[str], first: int, count: int) -> None:
            for c in range(first, first + count):
                one([self.f.op(f"getelementptr double, ptr {r}, i64 {c * step}") for r in starts], kind, lanes)

        grouped = 0
        if chunks > 2 * _GROUP:
            grouped = chunks - chunks % _GROUP

            def group(c: str) -> None:
                flat([self.f.op(f"getelementptr double, ptr {r}, i64 {c}") for r in rows], 0, _GROUP)

            self.f.repeat("0", str(grouped * step), group, _GROUP * step)
        flat(rows, grouped, chunks - grouped)
        for c in range(chunks * lanes, chunks * lanes + single):
            one([self.f.op(f"getelementptr double, ptr {r}, i64 {c}") for r in rows], "double", 1)

    def _spreads(self, factor: str) -> dict[int, str]:
        """A factor by the number of right sides that it is spread over."""
        wide = (1, self.low.pack) if self.width == 1 else (1,)
        return {lanes: self.f.spread(factor, lanes) for lanes in wide}

    def _row(self, x: str, row: str, k: int) -> str:
        return self.f.at(x, self.f.op(f"mul i64 {row}, {k}"), self.width)

    def axpy(self, factor: str, source: str, target: str, k: int) -> None:
        """target −= factor·source, for two rows of k right sides."""
        spread = self._spreads(factor)

        def one(at: Sequence[str], kind: str, lanes: int) -> None:
            source_value, old = (self.f.op(f"load {kind}, ptr {p}, align 8") for p in at)
            product = self.arith("fmul", spread[lanes], source_value, kind)
            self.f.line(f"store {kind} {self.arith('fsub', old, product, kind)}, ptr {at[1]}, align 8")

        self._along(k, (source, target), one)

    def scale(self, factor: str, row: str, k: int) -> None:
        """row *= factor."""
        spread = self._spreads(factor)

        def one(at: Sequence[str], kind: str, lanes: int) -> None:
            old = self.f.op(f"load {kind}, ptr {at[0]}, align 8")
            self.f.line(f"store {kind} {self.arith('fmul', spread[lanes], old, kind)}, ptr {at[0]}, align 8")

        self._along(k, (row,), one)


class _AlongRows(_Symmetric):
    """The same elimination of one matrix without zeros, for one state: several pivots at once, along rows.

    Rows are padded. What stands right of the diagonal takes part where a register reaches beyond it: it has no meaning,
    and no entry of the lower triangle comes from it.
    """

    def emit(self) -> None:
        s, f = self.solve, self.f
        n, k, pack = s.columns, s.right, self.low.pack
        self.stride = n + -n % _PADDING
        self.lanes = vector(pack)
        matrix = f.address(s.matrix, "0")[0]
        f.low.helper("memcpy", lambda: "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")

        def take(i: str) -> None:
            source = f.at(matrix, f.op(f"mul i64 {i}, {n}"))
            f.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {self._line(i)}, ptr {source}, i64 {8 * n}, i1 false)")

        f.repeat("0", str(n), take)
        out = f.address(s.solution, "0")
        f.copy(f.address(s.rhs, "0"), (out[0], 1, False), n * k)
        whole = n - n % _PIVOTS
        f.repeat(str(n - 1), str(n - 1 - whole), lambda i: self._eliminate(i, _PIVOTS), -_PIVOTS)
        f.repeat(str(n - 1 - whole), "-1", lambda i: self._eliminate(i, 1), -1)
        if k == 1:
            self._one_side(out[0])
            return

        def before(i: str, body: Callable[[str], None]) -> None:
            f.repeat(f.op(f"add i64 {i}, -1"), "-1", body, -1)

        def inward(i: str) -> None:
            factors, row = self._line(i), self._row(out[0], i, k)
            before(i, lambda j: self.axpy(self.get(factors, j), row, self._row(out[0], j, k), k))
            self.scale(self.get(factors, i), row, k)

        def outward(i: str) -> None:
            factors, row = self._line(i), self._row(out[0], i, k)
            before(i, lambda j: self.axpy(self.get(factors, j), self._row(out[0], j, k), row, k))

        f.repeat(str(n - 1), "-1", inward, -1)
        f.repeat("0", str(n), outward)

    def _line(self, i: str) -> str:
        return self.f.at(self.work, self.f.op(f"mul i64 {i}, {self.stride}"))

    def _eliminate(self, last: str, count: int) -> None:
        """Eliminate `count` rows, `last` the lowest of them."""
        f = self.f
        rows = [last, *(f.op(f"add i64 {last}, {-t}") for t in range(1, count))]
        lines = [self._line(i) for i in rows]
        inverses: list[str] = []
        for t, (row, line) in enumerate(zip(rows, lines, strict=True)):
            inverses.append(self.arith("fdiv", number(1.0), self.get(line, row)))
            for higher in rows[t + 1 :]:
                self._update([line], [inverses[t]], [higher])
        above = f.op(f"add i64 {last}, {-count}")
        tile = 4 if self.low.pack == 8 else 2  # as many rows as registers hold the factors of
        left = f.op(f"srem i64 {f.op(f'add i64 {above}, 1')}, {tile}")
        end = f.op(f"sub i64 {left}, 1")

        def tiles(i: str) -> None:
            targets = [i, *(f.op(f"add i64 {i}, {-t}") for t in range(1, tile))]
            self._update(lines, inverses, targets)

        f.repeat(above, end, tiles, -tile)
        f.repeat(end, "-1", lambda i: self._update(lines, inverses, [i]), -1)
        for row, line, inverse in zip(rows, lines, inverses, strict=True):
            self.put(inverse, line, row)

    def _update(self, pivots: Sequence[str], inverses: Sequence[str], targets: Sequence[str]) -> None:
        """Take pivot rows out of target rows, the lowest first, and store the factors in their places."""
        f, pack, kind = self.f, self.low.pack, self.lanes
        factors = [
            [self.arith("fmul", self.get(line, i), inverse) for line, inverse in zip(pivots, inverses, strict=True)]
            for i in targets
        ]
        spread = [[f.spread(x, pack) for x in row] for row in factors]
        lines = [self._line(i) for i in targets]

        def along(c: str) -> None:
            sources = [f.op(f"load {kind}, ptr {f.at(line, c)}, align 8") for line in pivots]
            for line, row in zip(lines, spread, strict=True):
                at = f.at(line, c)
                value = f.op(f"load {kind}, ptr {at}, align 8")
                for factor, source in zip(row, sources, strict=True):
                    value = self.arith("fsub", value, self.arith("fmul", factor, source, kind), kind)
                f.line(f"store {kind} {value}, ptr {at}, align 8")

        f.repeat("0", f.op(f"add i64 {targets[0]}, 1"), along, pack)
        for i, row in zip(targets, factors, strict=True):
            for line, factor in zip(pivots, row, strict=True):
                self.put(factor, line, i)

    def _one_side(self, x: str) -> None:
        """One right side, in place."""
        f, n, pack, kind = self.f, self.solve.columns, self.low.pack, self.lanes
        total = f"llvm.vector.reduce.fadd.v{pack}f64"
        f.low.helper(total, lambda: f"declare double @{total}(double, {kind})")
        room = f.at_entry(f"alloca {kind}, align 64")

        def whole(i: str) -> str:
            return f.op(f"sub i64 {i}, {f.op(f'srem i64 {i}, {pack}')}")

        def inward(i: str) -> None:
            line, here = self._line(i), self.get(x, i)
            wide, end = f.spread(here, pack), whole(i)

            def several(c: str) -> None:
                at = f.at(x, c)
                old, entry = (f.op(f"load {kind}, ptr {p}, align 8") for p in (at, f.at(line, c)))
                changed = self.arith("fsub", old, self.arith("fmul", wide, entry, kind), kind)
                f.line(f"store {kind} {changed}, ptr {at}, align 8")

            def one(j: str) -> None:
                product = self.arith("fmul", here, self.get(line, j))
                self.put(self.arith("fsub", self.get(x, j), product), x, j)

            f.repeat("0", end, several, pack)
            f.repeat(end, i, one)
            self.put(self.arith("fmul", here, self.get(line, i)), x, i)

        def outward(i: str) -> None:
            line, end = self._line(i), whole(i)
            f.line(f"store {kind} zeroinitializer, ptr {room}")

            def several(c: str) -> None:
                known, entry = (f.op(f"load {kind}, ptr {f.at(p, c)}, align 8") for p in (x, line))
                old = f.op(f"load {kind}, ptr {room}")
                f.line(
                    f"store {kind} {self.arith('fadd', old, self.arith('fmul', known, entry, kind), kind)}, ptr {room}"
                )

            def one(j: str) -> None:
                product = self.arith("fmul", self.get(x, j), self.get(line, j))
                self.put(self.arith("fsub", self.get(x, i), product), x, i)

            f.repeat("0", end, several, pack)
            lanes = f.op(f"load {kind}, ptr {room}")
            summed = f.op(f"call {FAST} double @{total}(double {number(0.0)}, {kind} {lanes})")
            self.put(self.arith("fsub", self.get(x, i), summed), x, i)
            f.repeat(end, i, one)

        f.repeat(str(n - 1), "-1", inward, -1)
        f.repeat("0", str(n), outward)


class _Pivoted(_Loops):
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
