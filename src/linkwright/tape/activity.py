"""Which numbers of a program's buffers change with its inputs, and which its outputs change with.

A buffer that statements walk through in steps is looked at modulo the step, so that the cost does not grow with
the number of items: all rows of a table of bodies share one row of marks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from linkwright.base.arrays import Bools
from linkwright.tape.dataflow import periods
from linkwright.tape.derivative_blocks import depends, needs
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
    parts,
)


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
