"""Which numbers of a program's buffers change with its inputs, and which its outputs change with.

A buffer that statements walk through in steps is looked at modulo the step, so that the cost does not grow with
the number of items: all rows of a table of bodies share one row of marks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.tape.block import Block
from linkwright.tape.derivative_block import depends, needs
from linkwright.tape.program import Case, Copy, Each, Loop, Operand, Program, Solve, Statement, Walk

Bools = NDArray[np.bool_]


def nested(statements: Iterable[Statement]) -> Iterator[Statement]:
    """All statements, those inside loops included."""
    for statement in statements:
        yield statement
        if isinstance(statement, Loop):
            yield from nested(statement.body)


def cases(statement: Statement) -> tuple[Case, ...]:
    """The cases of an `Each` or a `Walk`."""
    if isinstance(statement, Each):
        return statement.cases
    return statement.start + statement.step if isinstance(statement, Walk) else ()


def operands(statement: Statement) -> Iterator[Operand]:
    """The operands of a statement that name a buffer (not those of statements inside it)."""
    for case in cases(statement):
        yield from (o for o in case.inputs + case.outputs if o.buffer >= 0)
    if isinstance(statement, Loop):
        yield from (o for pair in statement.carry for o in pair)
        if statement.done is not None:
            yield statement.done
    elif isinstance(statement, Solve):
        yield from (statement.matrix, statement.rhs, statement.solution)
    elif isinstance(statement, Copy):
        yield from (statement.source, statement.target)
    elif not isinstance(statement, (Each, Walk)):
        yield statement.target


def sources(statement: Statement) -> Iterator[Operand]:
    """The operands that a statement reads."""
    for case in cases(statement):
        yield from (o for o in case.inputs if o.buffer >= 0)
    if isinstance(statement, Loop):
        yield from (following for _, following in statement.carry)
    elif isinstance(statement, Solve):
        yield from (statement.matrix, statement.rhs)
    elif isinstance(statement, Copy):
        yield statement.source


def periods(program: Program) -> list[int]:
    """The step in which each buffer is walked through: the greatest common divisor of all; 0 if there is none."""
    found = [0] * len(program.buffers)
    for statement in nested(program.statements):
        for operand in operands(statement):
            found[operand.buffer] = math.gcd(found[operand.buffer], *(s for s, _ in operand.steps + operand.far))
    return found


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
        found = self.any(operand)
        if found:
            self.fill(operand)
        return found

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
    marks = Marks(program)
    for buffer in inputs:
        marks.marks[buffer][:] = True
    before = -1
    while before != (before := marks.total()):
        for statement in program.statements:
            _varied(marks, statement)
    return marks


def useful(program: Program, outputs: Iterable[int]) -> Marks:
    """What these output buffers change with."""
    marks = Marks(program)
    for buffer in outputs:
        marks.marks[buffer][:] = True
    before = -1
    while before != (before := marks.total()):
        for statement in reversed(program.statements):
            _useful(marks, statement)
    return marks


def _varied(marks: Marks, statement: Statement) -> None:
    if isinstance(statement, (Each, Walk)):
        for case in cases(statement):
            block = marks.program.blocks[case.block]
            found = depends(block, _marked(marks, statement, case.inputs))
            _spread(marks, statement, case.outputs, [found[k] for k in block.outputs.tolist()])
    elif isinstance(statement, Loop):
        for inner in statement.body:
            _varied(marks, inner)
        _carry(marks, statement)
    elif isinstance(statement, Solve):
        found = [marks.whole(o) for o in (statement.matrix, statement.rhs)]
        if any(found):
            marks.fill(statement.solution)
    elif isinstance(statement, Copy) and marks.whole(statement.source):
        marks.fill(statement.target)


def _useful(marks: Marks, statement: Statement) -> None:
    if isinstance(statement, (Each, Walk)):
        for case in cases(statement):
            block: Block = marks.program.blocks[case.block]
            found = needs(block, _marked(marks, statement, case.outputs))
            _spread(marks, statement, case.inputs, found)
    elif isinstance(statement, Loop):
        _carry(marks, statement)
        for inner in reversed(statement.body):
            _useful(marks, inner)
    elif isinstance(statement, Solve):
        if marks.any(statement.solution):
            marks.fill(statement.matrix)
            marks.fill(statement.rhs)
    elif isinstance(statement, Copy):
        marks.add(statement.source, marks.of(statement.target))


def _carry(marks: Marks, loop: Loop) -> None:
    """Both ends of a carry are marked alike, so that both have tangents or neither has."""
    for current, following in loop.carry:
        marks.add(current, marks.of(following))
        marks.add(following, marks.of(current))


def _marked(marks: Marks, statement: Each | Walk, given: tuple[Operand, ...]) -> list[bool]:
    found: list[bool] = []
    for operand in given:
        if operand.buffer < 0:
            found.extend([isinstance(statement, Walk) and marks.carried(statement)] * operand.size)
        else:
            found.extend(marks.of(operand).tolist())
    return found


def _spread(marks: Marks, statement: Each | Walk, taken: tuple[Operand, ...], found: list[bool]) -> None:
    at = 0
    for operand in taken:
        part = found[at : at + operand.size]
        at += operand.size
        if operand.buffer >= 0:
            marks.add(operand, part)
        elif any(part):
            marks.carries.add(id(statement))
