"""Which buffers of a program are read, added to or shown before they are surely set: those must start at zero.

The statements are followed once, with runs of numbers instead of single ones; where it is not plain that a number
has been set, its buffer is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from linkwright.tape.program import ITEM, Case, Copy, Each, Loop, Operand, Program, Solve, Statement, Walk, Zero

Longs = NDArray[np.int64]


@dataclass(frozen=True)
class Uses:
    """Buffers (by number) that must start at zero, and inputs that the program writes to."""

    unset: frozenset[int]
    written_inputs: frozenset[int]


def uses(program: Program) -> Uses:
    """Follow a program's statements, once."""
    found: Uses | None = program.__dict__.get("_uses")
    if found is None:
        found = program.__dict__.setdefault("_uses", _uses(program))
    return found


def _uses(program: Program) -> Uses:
    follower = _Follower(program)
    for statement in program.statements:
        follower.run(statement)
    for k, buffer in enumerate(program.buffers):
        if buffer.role == "output":
            follower.read(k, np.zeros(1, np.int64), buffer.size)
    inputs = frozenset(k for k, buffer in enumerate(program.buffers) if buffer.role == "input")
    return Uses(frozenset(follower.unset), inputs & follower.written)


class _Follower:
    """Keeps for every buffer the runs [first, end) that are surely set by now."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.unset: set[int] = set()
        self.written: set[int] = set()
        nothing = np.zeros(0, np.int64)
        self.runs: dict[int, tuple[Longs, Longs]] = {}
        for k, buffer in enumerate(program.buffers):
            if buffer.role in ("temporary", "output"):
                self.runs[k] = (nothing, nothing)

    # -- runs ---------------------------------------------------------------------------------------------
    def is_set(self, buffer: int, starts: Longs, size: int) -> NDArray[np.bool_]:
        """Which of the runs of `size` numbers are set."""
        first, end = self.runs[buffer]
        if not len(first):
            return np.zeros(len(starts), bool)
        at = np.searchsorted(first, starts, side="right") - 1
        return (at >= 0) & (starts + size <= end[np.maximum(at, 0)])

    def read(self, buffer: int, starts: Longs, size: int) -> None:
        if size and buffer in self.runs and buffer not in self.unset and not self.is_set(buffer, starts, size).all():
            self.unset.add(buffer)

    def write(self, written: Iterable[tuple[Operand, Longs]]) -> None:
        """Runs of operands that are now set."""
        found: dict[int, list[tuple[Longs, Longs]]] = {}
        for operand, starts in written:
            if operand.buffer in self.runs and operand.size and len(starts):
                found.setdefault(operand.buffer, [self.runs[operand.buffer]]).append((starts, starts + operand.size))
        for buffer, pieces in found.items():
            first, end = (np.concatenate(side) for side in zip(*pieces, strict=True))
            order = np.argsort(first, kind="stable")
            first, end = first[order], np.maximum.accumulate(end[order])
            apart = np.flatnonzero(first[1:] > end[:-1])
            self.runs[buffer] = (first[np.append(0, apart + 1)], end[np.append(apart, len(end) - 1)])

    def starts(self, operand: Operand, items: Longs) -> Longs:
        found = np.full(len(items), operand.base, dtype=np.int64)
        for stride, column in operand.steps:
            found += stride * self.column(column, items)
        return found

    def column(self, column: int, items: Longs) -> Longs:
        return items if column == ITEM else self.program.columns[column][items].astype(np.int64)

    # -- statements -----------------------------------------------------------------------------------------
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

    def once(self, reads: Sequence[Operand], writes: Sequence[Operand]) -> None:
        zero = np.zeros(1, np.int64)
        for operand in reads:
            self.read(operand.buffer, self.starts(operand, zero), operand.size)
        self.written.update(operand.buffer for operand in writes)
        self.write([(operand, self.starts(operand, zero)) for operand in writes])

    def each(self, each: Each) -> None:
        items = np.arange(each.items, dtype=np.int64)
        kinds = np.zeros_like(items) if each.dispatch is None else self.column(each.dispatch, items)
        met = [(case, items[kinds == k]) for k, case in enumerate(each.cases)]
        writes = [(operand, k) for k, case in enumerate(each.cases) for operand in _set_by(case)]
        for case, mine in met:
            for operand in _read_by(case):
                rivals = [(o, k) for o, k in writes if o.buffer == operand.buffer]
                self.scanned(operand, mine, kinds, rivals, backward=each.order == "inward")
        for case, mine in met:
            self.written.update(o.buffer for o in case.outputs if len(mine))
        self.write([(operand, self.starts(operand, met[k][1])) for operand, k in writes])

    def scanned(
        self, operand: Operand, items: Longs, kinds: Longs, writes: Sequence[tuple[Operand, int]], *, backward: bool
    ) -> None:
        """A read within a scan: of what was set before it, or of what an earlier item has set by its case."""
        if operand.buffer not in self.runs or operand.buffer in self.unset or not operand.size:
            return
        starts = self.starts(operand, items)
        for write, case in (None, 0), *writes:
            if write is None:
                known = self.is_set(operand.buffer, starts, operand.size)
            elif len(write.steps) == 1 and write.steps[0][0] > 0 and write.steps[0][1] == ITEM:
                writer, inside = np.divmod(starts - write.base, write.steps[0][0])
                earlier = (writer > items) & (writer < len(kinds)) if backward else (writer < items) & (writer >= 0)
                known = earlier & (inside + operand.size <= write.size)
                known[known] = kinds[writer[known]] == case
            else:
                continue
            starts, items = starts[~known], items[~known]
            if not len(items):
                return
        self.unset.add(operand.buffer)

    def walk(self, walk: Walk) -> None:
        """What a step writes is not counted as set: which pairs there are is not followed."""
        items = np.arange(walk.items, dtype=np.int64)
        if not walk.items:
            return
        above = np.unique(self.column(walk.parent, items))
        above = above[above >= 0]
        for case in walk.start:
            for operand in _read_by(case):
                self.read(operand.buffer, self.starts(operand, items), operand.size)
        for case in walk.step if len(above) else ():
            for operand in _read_by(case):
                near = self.starts(operand, items)
                steps = (stride * self.column(column, above) for stride, column in operand.far)
                far = sum(steps, np.zeros(1, np.int64))
                first = near.min() + far.min()
                self.read(operand.buffer, np.array([first]), int(near.max() + far.max() - first) + operand.size)
        for case in (*walk.start, *walk.step):
            self.written.update(o.buffer for o in case.outputs)
        kinds = np.zeros_like(items) if walk.dispatch is None else self.column(walk.dispatch, items)
        for k, case in enumerate(walk.start):
            mine = items[kinds == k]
            self.write([(operand, self.starts(operand, mine)) for operand in _set_by(case)])


def _read_by(case: Case) -> list[Operand]:
    return _joined([*case.inputs, *(o for o in case.outputs if o.add)])


def _set_by(case: Case) -> list[Operand]:
    return _joined([o for o in case.outputs if not o.add])


def _joined(operands: Iterable[Operand]) -> list[Operand]:
    """The operands, with neighbours that move together as one."""
    found: list[Operand] = []
    for o in sorted(operands, key=lambda o: (o.buffer, o.steps, o.far, o.base)):
        last = found[-1] if found else None
        together = last is not None and (last.buffer, last.steps, last.far) == (o.buffer, o.steps, o.far)
        if last is not None and together and o.base <= last.base + last.size:
            found[-1] = replace(last, size=max(last.size, o.base + o.size - last.base))
        else:
            found.append(o)
    return found
