"""Who touches which numbers of a program when, and which numbers change with which: questions asked of its statements.

`accesses` goes through the statements in the order of execution (a loop's body once) and says of every operand where
its runs of numbers begin, when they are touched, and how. `unset` says what must be 0 before the start. `varied` and
`useful` mark the numbers that change with inputs, and those that outputs change with. A buffer that statements walk
through in steps is looked at modulo the step, so that the cost does not grow with the number of items: all rows of a
table of bodies share one row of marks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Bools, Longs
from linkwright.tape.block import depends, needs
from linkwright.tape.program import Program
from linkwright.tape.statements import (
    Case,
    Copy,
    Each,
    Loop,
    Operand,
    PartialVisitor,
    Solve,
    Statement,
    Walk,
    Zero,
    nested,
    parts,
)

#: A look needs the number as it is, a read may only pass it on; a clear sets it to 0.
Kind = Literal["read", "look", "set", "clear", "add"]

LATE = np.iinfo(np.int64).max
_PAIRS = 2**22  # pairs of an item and an ancestor that are followed one by one
_ONCE = np.zeros(1, np.int64)


def starts(
    columns: Sequence[NDArray[np.int32]], operand: Operand, items: Longs = _ONCE, ancestors: Longs = _ONCE
) -> Longs:
    """Where the operand begins for each of the items (with its ancestor)."""
    at = np.zeros(len(items), np.int64)
    at += operand.start(lambda column, index: columns[column][index].astype(np.int64), items, ancestors)
    return at


def first_start(program: Program, operand: Operand) -> int:
    """Where the operand begins for the first item: all that there is in a statement without items."""
    return int(starts(program.columns, operand)[0])


def items_of(program: Program, each: Each) -> list[Longs]:
    """The items that each case of the statement runs for."""
    if each.dispatch is None:
        return [np.arange(each.items)]
    column = program.columns[each.dispatch][: each.items]
    return [np.flatnonzero(column == k) for k in range(len(each.cases))]


def moments(each: Each, time: int) -> Longs:
    """When each item runs, if the first of them runs at `time`."""
    order = np.arange(each.items)
    return time + (order[::-1] if each.inward else order)


def periods(program: Program) -> list[int]:
    """The step in which each buffer is walked through: the greatest common divisor of all; 0 if there is none."""
    strides = [0] * len(program.buffers)
    for statement in nested(program.statements):
        for operand in (*statement.reads(), *statement.writes()):
            strides[operand.buffer] = math.gcd(strides[operand.buffer], *(s for s, _ in operand.steps + operand.far))
    return strides


@dataclass(frozen=True)
class Access:
    """Runs of `size` numbers of a buffer, each with its time in the order of execution."""

    kind: Kind
    buffer: int
    starts: Longs
    size: int
    times: Longs


def accesses(program: Program) -> Iterator[Access]:
    """What the statements touch. An item reads (and what it adds to, it reads) before it writes.

    A walk is taken to read everything before it writes anything; where its pairs are too many to be followed, its
    steps are taken to read all between the first and the last of their numbers, and to set nothing.
    """
    follower = _Follower(program)
    for statement in program.statements:
        yield from statement.accept(follower)


class _Follower(PartialVisitor[Iterator[Access]]):
    def __init__(self, program: Program) -> None:
        self.program = program
        self.time = 1

    def case(
        self, case: Case, items: Longs, ancestors: Longs, read: Longs, written: Longs | None = None
    ) -> Iterator[Access]:
        """The operands of a case; what it sets is set at `written`, or when it reads."""
        columns = self.program.columns
        if not len(items):
            return
        for operand in case.reads():
            yield Access("read", operand.buffer, starts(columns, operand, items, ancestors), operand.size, read)
        for operand in case.writes():
            kind: Kind = "add" if operand.add else "set"
            times = read if operand.add or written is None else written
            yield Access(kind, operand.buffer, starts(columns, operand, items, ancestors), operand.size, times)

    def once(self, reads: Sequence[Operand], writes: Sequence[Operand]) -> Iterator[Access]:
        """A statement without items."""
        now = np.array([self.time])
        for kind, operands in (("read", reads), ("set", writes)):
            for o in operands:
                yield Access(kind, o.buffer, starts(self.program.columns, o), o.size, now)  # type: ignore[arg-type]
        self.time += 1

    def each(self, each: Each) -> Iterator[Access]:
        times = moments(each, self.time)
        for case, items in zip(each.cases, items_of(self.program, each), strict=True):
            yield from self.case(case, items, np.zeros_like(items), times[items])
        self.time += each.items

    def walk(self, walk: Walk) -> Iterator[Access]:
        kinds = np.array(self.program.kinds(walk), dtype=np.int64)
        parent = self.program.columns[walk.parent].astype(np.int64)
        items = np.arange(walk.items)

        def part(case: Case, mine: Longs, above: Longs) -> Iterator[Access]:
            now = np.full(len(mine), self.time)
            return self.case(case, mine, above, now, now + 1)

        for number, case in enumerate(walk.start):
            mine = items[kinds == number]
            yield from part(case, mine, np.zeros_like(mine))
        if sum(self.program.walked(walk)) > _PAIRS:
            yield from self.hull(walk, items, np.unique(parent[: walk.items]))
        else:
            i, j = np.concatenate([np.zeros((2, 0), np.int64), *related(parent, walk.items)], axis=1)
            pair = kinds[i] * len(walk.start) + kinds[j]
            for number, case in enumerate(walk.step):
                yield from part(case, i[pair == number], j[pair == number])
        self.time += 2

    def hull(self, walk: Walk, items: Longs, above: Longs) -> Iterator[Access]:
        columns, above = self.program.columns, above[above >= 0]
        for case in walk.step:
            for o in (*case.reads(), *(o for o in case.writes() if o.add)):
                near = starts(columns, o, items, np.full(len(items), above[0]))
                far = starts(columns, o, np.zeros_like(above), above)
                far = far - far[0]
                first = int(near.min() + far.min())
                size = int(near.max() + far.max()) - first + o.size
                yield Access("read", o.buffer, np.array([first]), size, np.array([self.time]))

    def loop(self, loop: Loop) -> Iterator[Access]:
        if loop.count > 0:
            for statement in loop.body:
                yield from statement.accept(self)
            for current, following in loop.carry:
                yield from self.once([following], [current])
            yield from self.once([loop.done] if loop.done else [], [])

    def other(self, statement: Statement) -> Iterator[Access]:
        return self.once(statement.reads(), statement.writes())


def related(parent: Longs, items: int) -> Iterator[tuple[Longs, Longs]]:
    """Every item with its parents, then with its grandparents, and so on."""
    mine, above = np.arange(items), parent[:items]
    while len(mine):
        mine, above = mine[above >= 0], above[above >= 0]
        yield mine, above
        above = parent[above]


# -- what must start at zero -----------------------------------------------------------------------------
@dataclass(frozen=True)
class Unset:
    """Runs of numbers of a buffer that are read, added to or shown without being set before."""

    first: Longs
    end: Longs

    @property
    def whole(self) -> tuple[int, int]:
        """The first of them, and how many there are from it to the last."""
        return int(self.first[0]), int(self.end[-1] - self.first[0])

    def within_rows(self, wide: int) -> list[tuple[int, int]]:
        """The same within a row of `wide` numbers, all rows together: (first, how many) numbers of a row."""
        marked = np.zeros(wide + 1, bool)
        for first, end in set(zip((self.first % wide).tolist(), (self.end - self.first).tolist(), strict=True)):
            if first + end > wide:
                return [(0, wide)]
            marked[first : first + end] = True
        edges = np.flatnonzero(np.diff(marked, prepend=False)).reshape(-1, 2)
        return [(first, end - first) for first, end in edges.tolist()]


def unset(program: Program) -> dict[int, Unset]:
    """What of the temporaries and outputs must be 0 before the start: exact but for walks, where it may be too much."""
    by_buffer: dict[int, list[Access]] = {}
    for access in accesses(program):
        if access.size:
            by_buffer.setdefault(access.buffer, []).append(access)
    by_number = {}
    for k, (buffer, period) in enumerate(zip(program.buffers, periods(program), strict=True)):
        if buffer.role in ("temporary", "output") and buffer.size:
            cells = Cells(buffer.size, period, by_buffer.get(k, []))
            if (runs := cells.unset(shown=buffer.role == "output")) is not None:
                by_number[k] = runs
    return by_number


class Cells:
    """The numbers of a buffer, those put together that every access touches together.

    Accesses move in steps of `period`, so that a buffer is rows of cells; the cost grows with rows, not with numbers.
    """

    def __init__(self, size: int, period: int, accesses: list[Access]) -> None:
        self.accesses, self.period = accesses, period or size
        ends = {0, size % self.period}
        for a in accesses:
            first = int(a.starts[0]) % self.period
            ends |= {first, (first + a.size) % self.period}
        self.cuts = np.array(sorted(ends), dtype=np.int64)
        rows = -(-size // self.period)
        where = (np.arange(rows)[:, None] * self.period + self.cuts).ravel()
        self.where = np.append(where[where < size], size)  # where each cell begins, and the end of the last
        self.count = len(self.where) - 1

    def of(self, access: Access) -> Longs:
        """The cells (runs, cells a run) of an access."""
        inside = int(access.starts[0]) % self.period  # the same for all runs
        begin = int(np.searchsorted(self.cuts, inside))
        more, inside = divmod(inside + access.size, self.period)
        count = more * len(self.cuts) + int(np.searchsorted(self.cuts, inside)) - begin
        return (access.starts // self.period * len(self.cuts) + begin)[:, None] + np.arange(count)

    def marked(self, marks: Bools) -> Bools:
        """The cells that have a marked number; `marks` are those of a row."""
        in_row = np.logical_or.reduceat(marks, self.cuts)
        return np.resize(in_row, self.count)

    def unset(self, *, shown: bool) -> Unset | None:
        first_set, needed = np.full(self.count, LATE), np.full(self.count, shown)
        for a in self.accesses:
            if a.kind == "set":
                at, times = self.of(a), a.times
                if len(times) > 1 and times[0] < times[-1]:
                    at, times = at[::-1], times[::-1]  # of several writers of a number, the first is entered last
                first_set[at] = np.minimum(first_set[at], times[:, None])
        bare = (first_set == LATE) & shown
        for a in sorted(self.accesses, key=lambda a: a.kind == "add"):
            if a.kind != "set":
                at = self.of(a)
                late = first_set[at] >= a.times[:, None]
                if a.kind == "read":
                    needed[at] = True
                else:  # what is added to and never read may be anything
                    late &= needed[at]
                bare[at[late]] = True
        cells = np.flatnonzero(bare)
        if not len(cells):
            return None
        apart = np.flatnonzero(np.diff(cells) > 1)
        ends = np.append(cells[apart], cells[-1])
        return Unset(self.where[np.append(cells[0], cells[apart + 1])], self.where[ends + 1])


class Marks:
    """Marked numbers of the buffers of a program, and marked carries of its walks (all of a carry or nothing)."""

    def __init__(self, program: Program) -> None:
        self.program = program
        sizes = [p or b.size for p, b in zip(periods(program), program.buffers, strict=True)]
        self.marks = [np.zeros(max(size, 1), dtype=bool) for size in sizes]
        self.carries: set[int] = set()

    def of(self, operand: Operand) -> Bools:
        marks = self.marks[operand.buffer]
        return marks[(operand.base + np.arange(operand.size)) % len(marks)]

    def any(self, operand: Operand) -> bool:
        return bool(self.of(operand).any())

    def add(self, operand: Operand, marked: Any) -> None:
        marks = self.marks[operand.buffer]
        marks[(operand.base + np.flatnonzero(marked)) % len(marks)] = True

    def fill(self, operand: Operand) -> None:
        self.add(operand, np.ones(operand.size, dtype=bool))

    def whole(self, operand: Operand) -> bool:
        """Whether anything is marked; if so, mark all: who reads an operand as one wants all its tangents written."""
        marked = self.any(operand)
        if marked:
            self.fill(operand)
        return marked

    def carried(self, walk: Walk) -> bool:
        return id(walk) in self.carries

    def total(self) -> int:
        return len(self.carries) + sum(int(m.sum()) for m in self.marks)

    def both(self, other: Marks) -> Marks:
        """What is marked here and there."""
        met = Marks(self.program)
        met.marks = [a & b for a, b in zip(self.marks, other.marks, strict=True)]
        met.carries = self.carries & other.carries
        return met


def varied(program: Program, inputs: Iterable[int]) -> Marks:
    """What changes with these input buffers."""
    return _spread(_Varied(Marks(program)), inputs)


def useful(program: Program, outputs: Iterable[int]) -> Marks:
    """What these output buffers change with."""
    return _spread(_Useful(Marks(program)), outputs)


def _spread(spreading: _Spreading, buffers: Iterable[int]) -> Marks:
    """Marks of whole buffers, spread until nothing new is marked."""
    marks = spreading.marks
    for buffer in buffers:
        marks.marks[buffer][:] = True
    before = -1
    while before != (before := marks.total()):
        for statement in spreading.in_order(marks.program.statements):
            statement.accept(spreading)
    return marks


class _Spreading(PartialVisitor[None]):
    """From what a statement touches on one side to what it touches on the other."""

    def __init__(self, marks: Marks) -> None:
        self.marks = marks

    def in_order(self, statements: tuple[Statement, ...]) -> Iterable[Statement]:
        return statements

    def case(self, case: Case, walk: Walk | None) -> None:
        raise NotImplementedError

    def zero(self, _: Zero) -> None:
        """Nothing: 0 depends on nothing."""

    def each(self, each: Each) -> None:
        for case in each.cases:
            self.case(case, None)

    def walk(self, walk: Walk) -> None:
        for case in walk.cases:
            self.case(case, walk)

    def carried(self, loop: Loop) -> None:
        """Both ends of a carry are marked alike, so that both have tangents or neither has."""
        for current, following in loop.carry:
            self.marks.add(current, self.marks.of(following))
            self.marks.add(following, self.marks.of(current))

    def loop(self, loop: Loop) -> None:
        self.carried(loop)
        for inner in self.in_order(loop.body):
            inner.accept(self)
        self.carried(loop)

    def marked(self, operands: tuple[Operand, ...], walk: Walk | None) -> list[bool]:
        flags: list[bool] = []
        for operand in operands:
            if operand.buffer < 0:
                flags.extend([walk is not None and self.marks.carried(walk)] * operand.size)
            else:
                flags.extend(self.marks.of(operand).tolist())
        return flags

    def mark(self, operands: tuple[Operand, ...], flags: list[bool], walk: Walk | None) -> None:
        for operand, part in parts(operands, flags):
            if operand.buffer >= 0:
                self.marks.add(operand, part)
            elif any(part):
                self.marks.carries.add(id(walk))


class _Varied(_Spreading):
    def case(self, case: Case, walk: Walk | None) -> None:
        block = self.marks.program.blocks[case.block]
        flags = depends(block, self.marked(case.inputs, walk))
        self.mark(case.outputs, [flags[k] for k in block.outputs.tolist()], walk)

    def solve(self, solve: Solve) -> None:
        if any([self.marks.whole(solve.matrix), self.marks.whole(solve.rhs)]):
            self.marks.fill(solve.solution)

    def copy(self, copy: Copy) -> None:
        if self.marks.whole(copy.source):
            self.marks.fill(copy.target)


class _Useful(_Spreading):
    def in_order(self, statements: tuple[Statement, ...]) -> Iterable[Statement]:
        return reversed(statements)

    def case(self, case: Case, walk: Walk | None) -> None:
        block = self.marks.program.blocks[case.block]
        self.mark(case.inputs, needs(block, self.marked(case.outputs, walk)), walk)

    def solve(self, solve: Solve) -> None:
        if self.marks.any(solve.solution):
            self.marks.fill(solve.matrix)
            self.marks.fill(solve.rhs)

    def copy(self, copy: Copy) -> None:
        self.marks.add(copy.source, self.marks.of(copy.target))
