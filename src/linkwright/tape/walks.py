"""Walks as plain scans: every step of every walk an item, the carries kept in a buffer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linkwright.tape.build import ProgramBuilder
from linkwright.tape.program import Program
from linkwright.tape.statements import ITEM, Case, Each, Operand, Statement, Walk


def without_walks(program: Program) -> Program:
    """The same program with each top-level `Walk` as an `Each` over its (item, ancestor) pairs.

    Memory grows with the number of pairs times the carry: reverse accumulation needs the carries anyway.
    """
    if not any(isinstance(s, Walk) for s in program.statements):
        return program
    builder = ProgramBuilder.onto(program, program.name)
    for statement in program.statements:
        builder.add(_expanded(program, builder, statement) if isinstance(statement, Walk) else statement)
    return builder.build(single=program.single)


def _expanded(program: Program, builder: ProgramBuilder, walk: Walk) -> Statement:
    kinds, count = program.kinds(walk), len(walk.start)
    items, ancestors, cases = [], [], []
    for i, above in program.walks(walk):
        items.extend([i] * (1 + len(above)))
        ancestors.extend([0, *above])
        cases.append(kinds[i])
        cases.extend(count + kinds[i] * count + kinds[j] for j in above)
    item, ancestor = np.array(items, dtype=np.int32), np.array(ancestors, dtype=np.int32)
    size = walk.carry_size
    carries = builder.temporary(builder.free_name("carry"), (len(items), size)).operand

    def moved(operand: Operand, before: int) -> Operand:
        if operand.buffer < 0:
            return replace(carries, size=operand.size, base=-before * size, steps=((size, ITEM),))
        near = ((stride, _through(program, builder, c, item)) for stride, c in operand.steps)
        far = ((stride, _through(program, builder, c, ancestor)) for stride, c in operand.far)
        return replace(operand, steps=(*near, *far), far=())

    def case(c: Case) -> Case:
        return replace(c, inputs=tuple(moved(o, 1) for o in c.inputs), outputs=tuple(moved(o, 0) for o in c.outputs))

    return Each(len(items), tuple(map(case, walk.cases)), "outward", builder.column(cases))


def _through(program: Program, builder: ProgramBuilder, column: int, items: np.ndarray) -> int:
    """The column's entries at the items, as a column."""
    return builder.column(items if column == ITEM else program.columns[column][items])
