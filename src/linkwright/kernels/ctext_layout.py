"""Where generated C text keeps its numbers: places in the work array, and which of them must start at 0."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from linkwright.tape.program import (
    ITEM,
    Case,
    Copy,
    Each,
    Loop,
    Operand,
    Program,
    Solve,
    Statement,
    Walk,
    Zero,
)

Longs = NDArray[np.int64]
_NEVER = np.iinfo(np.int64).max
_LIMIT = 20_000_000  # numbers touched: beyond it, what to clear is not looked for one by one


@dataclass(frozen=True)
class Layout:
    """The work array: temporaries and inputs that are written to, a walk's carry, then room used in turn."""

    place: dict[int, int]
    carry: int
    spill: int
    size: int
    clear: dict[int, tuple[int, int]]  # buffer → (first, how many) numbers that must be 0 before the start


def layout(program: Program, crossing: int) -> Layout:
    """Lay out the work array; `crossing` values at most go from one piece of a cut block to the next."""
    accesses = _accesses(program)
    place: dict[int, int] = {}
    at = 0
    for k, buffer in enumerate(program.buffers):
        written = any(a.kind != "read" for a in accesses[k])
        if buffer.role == "temporary" or (buffer.role == "input" and written):
            place[k] = at
            at += buffer.size
    carry, spill = rooms(program, crossing)
    clear = {
        k: run
        for k, buffer in enumerate(program.buffers)
        if buffer.role in ("temporary", "output") and (run := _unset(accesses[k], buffer.size, buffer.role == "output"))
    }
    return Layout(place, at, at + carry, at + carry + spill, clear)


def rooms(program: Program, crossing: int) -> tuple[int, int]:
    """How many numbers a walk carries, and how many are used in turn by solvers and pieces of cut blocks."""
    carry, spill = 0, crossing
    for statement in every(program.statements):
        if isinstance(statement, Walk):
            cases = (*statement.start, *statement.step)
            carry = max([carry, *(o.size for case in cases for o in case.outputs if o.buffer < 0)])
        elif isinstance(statement, Solve):
            spill = max(spill, solve_room(statement))
    return carry, spill


def solve_room(solve: Solve) -> int:
    """How many numbers a solver works on: the matrix, the right sides and, for least norm, the solution."""
    own = solve.columns * solve.right if solve.method == "least-norm" else 0
    return solve.rows * (solve.columns + solve.right) + own


def every(statements: Iterable[Statement]) -> Iterator[Statement]:
    """The statements and those inside loops."""
    for statement in statements:
        yield statement
        if isinstance(statement, Loop):
            yield from every(statement.body)


@dataclass(frozen=True)
class _Access:
    """Runs of `size` numbers of one buffer, each at its time in the order of execution."""

    kind: Literal["read", "write", "add"]
    starts: Longs
    times: Longs
    size: int


class _Recorder:
    """Follows the statements once (a loop's body once), noting what each touches and when."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.time = 1
        self.found: dict[int, list[_Access]] = defaultdict(list)

    def note(
        self, kind: Literal["read", "write", "add"], operand: Operand, items: Longs, far: Longs, times: Longs
    ) -> None:
        if operand.buffer < 0 or not operand.size or not len(items):
            return
        starts = np.full(len(items), operand.base, dtype=np.int64)
        for steps, index in ((operand.steps, items), (operand.far, far)):
            for stride, column in steps:
                starts += stride * (index if column == ITEM else self.program.columns[column][index].astype(np.int64))
        self.found[operand.buffer].append(_Access(kind, starts, times, operand.size))

    def case(self, case: Case, items: Longs, far: Longs, read: Longs, written: Longs) -> None:
        for operand in case.inputs:
            self.note("read", operand, items, far, read)
        for operand in case.outputs:
            self.note("add" if operand.add else "write", operand, items, far, read if operand.add else written)

    def once(self, reads: Sequence[Operand], writes: Sequence[Operand]) -> None:
        zero, now = np.zeros(1, np.int64), np.array([self.time])
        for operand in reads:
            self.note("read", operand, zero, zero, now)
        for operand in writes:
            self.note("write", operand, zero, zero, now)
        self.time += 1

    def run(self, statement: Statement) -> None:
        if isinstance(statement, Each):
            self.each(statement)
        elif isinstance(statement, Walk):
            self.walk(statement)
        elif isinstance(statement, Loop):
            if statement.count > 0:
                for inner in statement.body:
                    self.run(inner)
                for current, following in statement.carry:
                    self.once([following], [current])
                self.once([statement.done] if statement.done else [], [])
        elif isinstance(statement, Solve):
            self.once([statement.matrix, statement.rhs], [statement.solution])
        elif isinstance(statement, Zero):
            self.once([], [statement.target])
        elif isinstance(statement, Copy):
            self.once([statement.source], [statement.target])

    def each(self, each: Each) -> None:
        items = np.arange(each.items, dtype=np.int64)
        for number, case in enumerate(each.cases):
            mine = items
            if each.dispatch is not None:
                mine = items[self.program.columns[each.dispatch][: each.items] == number]
            times = self.time + (each.items - 1 - mine if each.order == "inward" else mine)
            self.case(case, mine, np.zeros_like(mine), times, times)
        self.time += each.items

    def walk(self, walk: Walk) -> None:
        """Reads are taken to come before all of the walk's own writes: an element may be cleared needlessly."""
        items = np.arange(walk.items, dtype=np.int64)
        columns = self.program.columns
        kinds = np.zeros_like(items) if walk.dispatch is None else columns[walk.dispatch][: walk.items].astype(np.int64)
        parent = columns[walk.parent].astype(np.int64)
        pairs: list[tuple[Longs, Longs]] = []
        own, above, total = items, parent[: walk.items], 0
        while len(own) and total < _LIMIT:
            own, above = own[above >= 0], above[above >= 0]
            pairs.append((own, above))
            total += len(own)
            above = parent[above]
        i, j = (np.concatenate(side) for side in zip(*pairs, strict=True)) if pairs else (items[:0], items[:0])

        def note(case: Case, mine: Longs, far: Longs) -> None:
            times = np.full(len(mine), self.time)
            self.case(case, mine, far, times, times + 1)

        for number, case in enumerate(walk.start):
            mine = items[kinds == number]
            note(case, mine, np.zeros_like(mine))
        for number, case in enumerate(walk.step):
            chosen = kinds[i] * len(walk.start) + kinds[j] == number
            note(case, i[chosen], j[chosen])
        self.time += 2


def _accesses(program: Program) -> dict[int, list[_Access]]:
    recorder = _Recorder(program)
    for statement in program.statements:
        recorder.run(statement)
    return recorder.found


def _unset(accesses: list[_Access], size: int, shown: bool) -> tuple[int, int] | None:
    """The run of a buffer that holds all numbers read, added to or shown without being set before."""
    if sum(a.size * len(a.starts) for a in accesses) > _LIMIT:
        return (0, size)
    first = np.full(size, _NEVER)
    needed = np.full(size, shown)
    for a in accesses:
        for k in range(a.size):
            if a.kind == "write":
                np.minimum.at(first, a.starts + k, a.times)
            elif a.kind == "read":
                needed[a.starts + k] = True
    unset = (first == _NEVER) & shown
    for a in accesses:
        if a.kind != "write":
            for k in range(a.size):
                at = a.starts + k
                unset[at[(first[at] >= a.times) & needed[at]]] = True
    found = np.flatnonzero(unset)
    return (int(found[0]), int(found[-1] - found[0] + 1)) if len(found) else None
