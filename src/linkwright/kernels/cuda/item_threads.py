"""CUDA text of a program for one state with a thread per item, and the plan of its launches as plain data.

A `map`, and every run of a scan that is cut into runs, is a launch with a thread per item; runs of one case share a
function. Runs of one case and one length whose items follow each other item by item (the k-th reads of the runs before
only what their k-th wrote) are one launch, in which a thread goes from run to run. What is left, scans without runs
among it, is done by a single thread: right, and slow where it is long.
Items of a launch are independent by the program's contract: no two add to one number, so that sums need no atomics.

Temporaries and data whose every operand is a part of a row are kept transposed: number k of row r lies at
k·rows + r, so that neighbouring items read neighbouring numbers. The text does not depend on how many rows there
are, as long as the operands' own numbers do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from linkwright.errors import KernelError
from linkwright.kernels.c.block_functions import Function, Layout, Statements, rooms
from linkwright.kernels.c.program_text import LOCAL, Dialect, Lowering, cuda_dialect
from linkwright.kernels.c.spelling import literal, switch
from linkwright.kernels.cuda.state_threads import BLOCK
from linkwright.kernels.cuda.table_rows import cleared, distance, item_by_item, parallel, together, transposable
from linkwright.tape.dataflow import first_start
from linkwright.tape.program import Program
from linkwright.tape.statements import Case, Copy, Each, Operand, PartialVisitor, Statement, Zero

MANY = 256  # items of a map from which they are worth a thread each
_LIGHT = 500  # operations up to which runs are put together; longer code then spills registers
_SEGMENTS = 16  # launches of a map with several cases; with more, one launch whose threads choose
_SHORT = 256  # numbers that a single thread clears or copies


class Launch(NamedTuple):
    """A function over the items begin..end, then as many after them, `times` in all; copies write at i + shift."""

    function: str
    begin: int
    end: int
    shift: int = 0
    times: int = 1


class Argument(NamedTuple):
    """What a function takes: a "buffer", "data" or "column" of the program, or the number of "rows" of a buffer."""

    what: str
    number: int


@dataclass(frozen=True)
class ItemsText:
    """Functions that take their arguments and then begin, end, shift and times, in blocks of `BLOCK` threads."""

    source: str
    functions: dict[str, tuple[Argument, ...]]
    launches: tuple[Launch, ...]
    transposed: dict[int, int]  # buffer → the numbers of a row
    rows: dict[int, int]  # transposed buffer → how many rows it has
    cleared: tuple[tuple[int, int, int], ...]  # (buffer, first, how many) numbers to set to 0 at the start of a call


def suits(program: Program) -> bool:
    """Whether items in parallel are worth it, and the program is of the sort that can be lowered so."""
    if program.written_inputs:
        return False
    scans = (s for s in program.statements if isinstance(s, Each))
    return any(parallel(s) and (s.runs is not None or s.items > MANY) for s in scans)


def items_text(program: Program, precision: str) -> ItemsText:
    """The functions and launches of a program for one state."""
    return _Items(program, cuda_dialect(precision, outside=True)).lowered()


class _Items(Lowering, PartialVisitor[Iterator[Launch] | None]):
    """Of a statement that is done in parallel its launches, which are written when they are asked for."""

    def __init__(self, program: Program, dialect: Dialect) -> None:
        self.transposed, self.together = transposable(program), together(program)
        scans = [s for s in program.statements if isinstance(s, Each) and s.runs is not None]
        self.series = {id(s): list(self._series(program, s)) for s in scans}
        super().__init__(program, None, dialect)
        self.kernels: dict[str, tuple[Argument, ...]] = {}
        self.texts: list[str] = []
        self.launches: list[Launch] = []
        self._known: dict[object, str] = {}

    # -- what functions ask for ------------------------------------------------------------------------
    def laid_out(self, crossing: int) -> Layout:
        carry, spill = rooms(self.program, crossing)
        if carry + spill > LOCAL:
            raise KernelError(f"{self.name} needs {carry + spill} numbers of work a thread; {LOCAL} can be had")
        return Layout({}, 0, carry, carry + spill, {})

    def late(self, case: Case) -> bool:
        return self.together.get(case, True) and case.overlaps()

    def function(self, name: str, case: Case | None = None, *, moving: bool = False, walking: bool = False) -> Function:
        apart = case is not None and not self.together.get(case, True)
        return _ItemFunction(self, name, moving=moving, walking=walking, apart=apart)

    def run(self, case: Case, driver: Function, *, moving: bool, walking: bool = False) -> list[str]:
        calls = super().run(case, driver, moving=moving, walking=walking)
        for function in self._case_functions[case, moving, walking]:
            if isinstance(function, _ItemFunction) and isinstance(driver, _ItemFunction):
                driver.read |= function.read
        return calls

    def rows(self, buffer: int, f: Function) -> str:
        return self.from_caller(f, "rows", buffer, f"{self.dialect.index} ")

    # -- the launches ----------------------------------------------------------------------------------
    def lowered(self) -> ItemsText:
        waiting: list[Statement] = []
        for statement in self.program.statements:
            launches = statement.accept(self)
            if launches is None:
                waiting.append(statement)
            else:
                self._serial(waiting)
                self.launches.extend(launches)
        self._serial(waiting)
        source = self.cuda_whole(["One state; a thread per item."], self.texts)
        rows = {k: -(-self.program.buffers[k].size // wide) for k, wide in self.transposed.items()}
        zero = cleared(self.program, self.transposed)
        return ItemsText(source, self.kernels, tuple(self.launches), self.transposed, rows, zero)

    def _header(self, notes: Sequence[str]) -> str:
        """Without shapes: mechanisms of different lengths share their text, and what is compiled from it."""
        return f"/* {self.name}, written by Linkwright. {' '.join(notes)} */"

    def other(self, statement: Statement) -> None:
        return None

    def each(self, each: Each) -> Iterator[Launch] | None:
        return self._pieces(each) if parallel(each) else None

    def zero(self, zero: Zero) -> Iterator[Launch] | None:
        return self._clearing(zero) if zero.target.size > _SHORT or not self._in_row(zero.target) else None

    def copy(self, copy: Copy) -> Iterator[Launch] | None:
        apart = copy.source.buffer != copy.target.buffer or distance(self.program, copy) >= copy.source.size
        in_rows = self._in_row(copy.source) and self._in_row(copy.target)
        if not (in_rows or apart):
            raise KernelError(f"{self.name} copies rows of a table onto themselves")
        return self._copying(copy) if not in_rows or (apart and copy.source.size > _SHORT) else None

    def _in_row(self, operand: Operand) -> bool:
        wide = self.transposed.get(operand.buffer)
        return wide is None or first_start(self.program, operand) % wide + operand.size <= wide

    def _serial(self, statements: list[Statement]) -> None:
        """One thread for all of these."""
        if statements:
            f = _ItemFunction(self, f"{self.name}_k{len(self.kernels)}")
            f.lines += Statements(self, f).lines(statements)
            if f.lines:
                self._kernel(f)
                self.launches.append(Launch(f.name, 0, 1))
            statements.clear()

    def _clearing(self, zero: Zero) -> Iterator[Launch]:
        first = first_start(self.program, zero.target)
        name = self._named(("zero", zero.target.buffer), self._zero, zero.target.buffer)
        yield Launch(name, first, first + zero.target.size)

    def _copying(self, copy: Copy) -> Iterator[Launch]:
        pair = (copy.source.buffer, copy.target.buffer)
        name = self._named(("copy", pair), self._copy, *pair)
        first, target = first_start(self.program, copy.source), first_start(self.program, copy.target)
        yield Launch(name, first, first + min(copy.source.size, copy.target.size), target - first)

    def _series(self, program: Program, s: Each) -> Iterator[tuple[int, int, int]]:
        """The runs of a scan as (begin, end, times), those that follow each other item by item put together."""
        assert s.runs is not None
        edges = program.columns[s.runs].tolist()
        kinds = [0] * len(edges) if s.dispatch is None else program.columns[s.dispatch][edges[:-1]].tolist()
        r = 0
        while r < len(edges) - 1:
            begin, end, more = edges[r], edges[r + 1], r + 1
            while more < len(edges) - 1 and kinds[more] == kinds[r] and edges[more + 1] - edges[more] == end - begin:
                more += 1
            times = more - r
            if times > 1:
                case = s.cases[kinds[r]]
                light = len(program.blocks[case.block].op) <= _LIGHT
                if light and item_by_item(program, case, begin, end, times, self.transposed):
                    self.together[case] = True  # what one run writes the next one reads
                else:
                    times = 1
            yield begin, end, times
            r += times

    def _pieces(self, s: Each) -> Iterator[Launch]:
        kinds = None if s.dispatch is None else self.program.columns[s.dispatch][: s.items]
        if id(s) in self.series:
            pieces = self.series[id(s)]
        elif kinds is None:
            pieces = [(0, s.items, 1)]
        else:
            edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), s.items]
            if len(edges) > _SEGMENTS + 1:
                yield Launch(self._named(("choice", s), self._choice, s), 0, s.items)
                return
            pieces = [(begin, end, 1) for begin, end in pairwise(edges)]
        for begin, end, times in pieces:
            case = s.cases[0 if kinds is None else int(kinds[begin])]
            yield Launch(self._named(("case", case), self._case, case), begin, end, 0, times)

    def _case(self, f: _ItemFunction, case: Case) -> list[str]:
        return self.run(case, f, moving=True)

    def _choice(self, f: _ItemFunction, s: Each) -> list[str]:
        assert s.dispatch is not None
        dispatch = s.dispatch
        met = np.unique(self.program.columns[dispatch][: s.items]).tolist()
        arms = {k: self.run(s.cases[k], f, moving=True) for k in met}
        return switch(arms, lambda: f"{self.column(dispatch, f)}[i]")

    def _element(self, f: _ItemFunction, buffer: int, number: str, *, write: bool) -> str:
        """A buffer's number so-and-so, counted row by row."""
        array = f.buffer(buffer, write)[0]
        wide = self.transposed.get(buffer)
        if wide is None:
            return f"{array}[{number}]"
        return f"{array}[({number}) % {wide} * {self.rows(buffer, f)} + ({number}) / {wide}]"

    def _zero(self, f: _ItemFunction, buffer: int) -> list[str]:
        return [f"{self._element(f, buffer, 'i', write=True)} = {literal(0.0, self.dialect.precision)};"]

    def _copy(self, f: _ItemFunction, source: int, target: int) -> list[str]:
        there = self._element(f, target, "i + item_shift", write=True)
        return [f"{there} = {self._element(f, source, 'i', write=False)};"]

    def _named(self, key: object, make: Callable[..., list[str]], *details: Any) -> str:
        """The function of a key, made at its first use."""
        if key not in self._known:
            f = _ItemFunction(self, f"{self.name}_k{len(self.kernels)}")
            f.lines += make(f, *details)
            self._kernel(f)
            self._known[key] = f.name
        return self._known[key]

    def _kernel(self, f: _ItemFunction) -> None:
        """Write a function that the host launches."""
        index, real = self.dialect.index, self.dialect.real
        f.uses -= {"i"}
        local = [f"{real} work[{self.layout.size}];"] if "work" in f.uses else []
        f.uses -= {"work"}
        arguments = f.arguments()
        taken = [f"{kind}__restrict__ {name}" if "*" in kind else f"{kind}{name}" for kind, name, _, _ in arguments]
        taken += [f"{index} {name}" for name in ("item_begin", "item_end", "item_shift", "item_times")]
        self.kernels[f.name] = tuple(Argument(what, number) for _, _, what, number in arguments)
        lines = [
            f"{index} i = item_begin + ({index})blockIdx.x * {BLOCK} + threadIdx.x;",
            "(void)item_shift;",
            "if (i >= item_end)",
            "    return;",
            *local,
            f"for ({index} left = item_times; left > 0; --left, i += item_end - item_begin) {{",
            *(f"    {line}" for line in f.lines),
            "}",
        ]
        head = f'extern "C" __global__ void __launch_bounds__({BLOCK}, 1) {f.name}({", ".join(taken)})'
        self.texts.append("\n".join([head, "{", *(f"    {line}" for line in lines), "}"]))


class _ItemFunction(Function):
    """A function for one item; `apart` where nothing that it reads is written in the same launch.

    Then it reads through pointers of their own, which tells the compiler so.
    """

    low: _Items

    def __init__(
        self, low: _Items, name: str, *, moving: bool = False, walking: bool = False, apart: bool = False
    ) -> None:
        super().__init__(low, name, moving=moving, walking=walking)
        self.apart = apart
        self.read: set[int] = set()

    def buffer(self, number: int, write: bool) -> tuple[str, int, str]:
        if self.apart and not write and number >= 0 and self.low.program.buffers[number].role != "data":
            self.read.add(number)
            return f"r_{number}", 0, ""
        return super().buffer(number, write)

    def at(self, operand: Operand, k: int | str, *, write: bool = False) -> str:
        wide = self.low.transposed.get(operand.buffer)
        if wide is None:
            return super().at(operand, k, write=write)
        array = self.buffer(operand.buffer, write)[0]
        rows = self.low.rows(operand.buffer, self)
        moves = self.moving and operand.steps
        row, place = divmod(operand.base if moves else first_start(self.low.program, operand), wide)
        if moves:
            entry = self.entry(operand.steps[0][1], "i")
            array, row = self.pointer(operand.buffer, array, row, [entry], "", write), 0
        number = str(place + k) if isinstance(k, int) else f"({place} + {k})"
        index = " + ".join([*([str(row)] if row else []), *([f"{number} * {rows}"] if number != "0" else [])])
        return f"{array}[{index or 0}]"

    def arguments(self) -> list[tuple[str, str, str, int]]:
        read = [(f"const {self.low.dialect.real} *", f"r_{k}", "buffer", k) for k in sorted(self.read)]
        return [*read, *super().arguments()]
