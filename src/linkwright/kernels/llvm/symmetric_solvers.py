"""LLVM text of the symmetric solvers: loops over a copy of the matrix, lanes over states, right sides or columns.

Cholesky and LᵀDL work on lane groups: all states at once; with one state, several right sides at once, and where the
matrix has no zeros by structure several columns.
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

LONG = 16  # rows from which a matrix without zeros is eliminated along its rows
PADDING = 8  # numbers at most that are left free after a row, so that whole registers are read and written
_PIVOTS = 4  # rows that are eliminated together
_GROUP = 8  # registers' worth of right sides laid out in one turn of a loop


def is_chain(parent: NDArray[Any]) -> bool:
    """Whether every row follows the one before: then a tree's matrix has no zeros by structure."""
    return bool(np.all(parent == np.arange(len(parent)) - 1))


class Loops:
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


class Symmetric(Loops):
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


class AlongRows(Symmetric):
    """The same elimination of one matrix without zeros, for one state: several pivots at once, along rows.

    Rows are padded. What stands right of the diagonal takes part where a register reaches beyond it: it has no meaning,
    and no entry of the lower triangle comes from it.
    """

    def emit(self) -> None:
        s, f = self.solve, self.f
        n, k, pack = s.columns, s.right, self.low.pack
        self.stride = n + -n % PADDING
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
