"""How a program's statements touch its buffers: what lies in rows, what meets, what must start at zero."""

from __future__ import annotations

import numpy as np

from linkwright.tape.dataflow import first_start, items_of, starts
from linkwright.tape.program import Program
from linkwright.tape.statements import (
    ITEM,
    Case,
    Copy,
    Each,
    Loop,
    Operand,
    PartialVisitor,
    Statement,
    Walk,
    Zero,
    nested,
)


def parallel(s: Each) -> bool:
    """Whether a statement's items may be computed side by side, all or run by run."""
    return s.items > 1 and (s.runs is not None or s.order == "map")


def distance(program: Program, copy: Copy) -> int:
    return abs(first_start(program, copy.source) - first_start(program, copy.target))


def transposable(program: Program) -> dict[int, int]:
    """The temporaries and data that are only ever touched by parts of rows, with the numbers of a row."""
    touched = _Touched(program)
    for statement in program.statements:
        statement.accept(touched)
    rows = {k: next(iter(wide)) for k, wide in touched.wide.items() if len(wide) == 1 and min(wide) > 1}
    torn = {o.buffer for o, at in touched.single if o.buffer in rows and at % rows[o.buffer] + o.size > rows[o.buffer]}
    return {k: n for k, n in rows.items() if k not in torn}


class _Touched(PartialVisitor[None]):
    """The strides by which buffers are moved through (0: in some other way), and the parts that must be in one row."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.wide: dict[int, set[int]] = {}
        self.single: list[tuple[Operand, int]] = []
        self.depth = 0

    def operands(self, s: Statement) -> list[Operand]:
        roles = [b.role in ("temporary", "data") for b in self.program.buffers]
        operands = [o for o in (*s.reads(), *s.writes()) if roles[o.buffer] and o.size]
        for o in operands:
            self.wide.setdefault(o.buffer, set())
        return operands

    def other(self, statement: Statement) -> None:
        self.single += [(o, first_start(self.program, o)) for o in self.operands(statement)]

    def each(self, each: Each) -> None:
        for o in self.operands(each):
            if each.items > 1 and o.steps:
                (stride, _), *others = o.steps
                self.wide[o.buffer].add(stride if not others and not o.far else 0)
                self.single.append((o, o.base))
            else:
                self.single.append((o, first_start(self.program, o)))

    def walk(self, walk: Walk) -> None:
        for o in self.operands(walk):
            self.wide[o.buffer].add(0)

    def loop(self, loop: Loop) -> None:
        self.other(loop)
        self.depth += 1
        for inner in loop.body:
            inner.accept(self)
        self.depth -= 1

    def zero(self, zero: Zero | Copy) -> None:
        """Outside of loops it may go over many rows."""
        if self.depth:
            self.other(zero)
        else:
            self.operands(zero)

    def copy(self, copy: Copy) -> None:
        self.zero(copy)


def together(program: Program) -> dict[Case, bool]:
    """For the cases of parallel statements, whether an item may read or write again what it writes."""
    meets: dict[Case, bool] = {}
    top = {id(s) for s in program.statements if isinstance(s, Each) and parallel(s)}
    for s in nested(program.statements):
        meeting = _Meeting(program, s) if isinstance(s, Each) and id(s) in top else None
        for number, case in enumerate(s.cases):
            meets[case] = meets.get(case, False) or meeting is None or meeting.within(case, number)
    return meets


class _Meeting:
    """Whether operands of one item meet in memory."""

    def __init__(self, program: Program, s: Each) -> None:
        self.program, self.s = program, s
        self._known: dict[tuple[int, int, int, int], bool] = {}

    def within(self, case: Case, number: int) -> bool:
        outputs = [o for o in case.outputs if o.size]
        for k, b in enumerate(outputs):
            for a in (*(o for o in case.inputs if o.size), *outputs[:k]):
                if a.buffer == b.buffer and self.meet(a, b, number):
                    return True
        return False

    def meet(self, a: Operand, b: Operand, number: int) -> bool:
        if a.steps == b.steps:
            return a.base < b.base + b.size and b.base < a.base + a.size
        if len(a.steps) != 1 or len(b.steps) != 1 or a.steps[0][0] != b.steps[0][0]:
            return True
        wide = a.steps[0][0]
        (row_a, first_a), (row_b, first_b) = divmod(a.base, wide), divmod(b.base, wide)
        if first_a + a.size > wide or first_b + b.size > wide:
            return True
        if first_a + a.size <= first_b or first_b + b.size <= first_a:
            return False
        key = (number, a.steps[0][1], b.steps[0][1], row_a - row_b)
        if key not in self._known:
            items = items_of(self.program, self.s)[number]
            rows = [items if c == ITEM else self.program.columns[c][items] for c in key[1:3]]
            self._known[key] = bool(np.any(rows[0] + key[3] == rows[1]))
        return self._known[key]


def item_by_item(program: Program, case: Case, begin: int, end: int, times: int, rows: dict[int, int]) -> bool:
    """Whether in runs of one case and length, one after another, the k-th items only meet each other in memory."""
    count = end - begin
    items = begin + np.arange(count * times)
    lane = np.tile(np.arange(count), times)
    inputs, outputs = ([o for o in side if o.size] for side in (case.inputs, case.outputs))
    for buffer in {o.buffer for o in inputs} & {o.buffer for o in outputs}:
        wide = rows.get(buffer)
        if wide is None:
            return False
        owner = np.full(-(-program.buffers[buffer].size // wide), -1)
        written = [starts(program.columns, o, items) // wide for o in outputs if o.buffer == buffer]
        for places in written:
            owner[places] = lane
        if any(np.any(owner[places] != lane) for places in written):
            return False
        for o in (o for o in inputs if o.buffer == buffer):
            writers = owner[starts(program.columns, o, items) // wide]
            if np.any((writers >= 0) & (writers != lane)):
                return False
    return True


def cleared(program: Program, rows: dict[int, int]) -> tuple[tuple[int, int, int], ...]:
    """(buffer, first, how many) numbers that must be 0 before the start, where they lie with the buffers of `rows`
    transposed."""
    runs = []
    for k, unset in program.unset.items():
        if k in rows:
            long = -(-program.buffers[k].size // rows[k])
            runs += [(k, first * long, size * long) for first, size in unset.within_rows(rows[k])]
        else:
            runs.append((k, *unset.whole))
    return tuple(runs)
