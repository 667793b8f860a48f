"""How a program's statements touch its buffers: what lies in rows, what meets, what must start at zero."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from linkwright.kernels.ctext_layout import every
from linkwright.tape.program import ITEM, Case, Copy, Each, Loop, Operand, Program, Solve, Statement, Walk, Zero

Longs = NDArray[np.int64]


def parallel(s: Each) -> bool:
    """Whether a statement's items may be computed side by side, all or run by run."""
    return s.items > 1 and (s.runs is not None or s.order == "map")


def start(program: Program, operand: Operand) -> int:
    """Where an operand starts for the first item."""
    steps = (*operand.steps, *operand.far)
    return operand.base + sum(s * (0 if c == ITEM else int(program.columns[c][0])) for s, c in steps)


def distance(program: Program, copy: Copy) -> int:
    return abs(start(program, copy.source) - start(program, copy.target))


def writes(s: Statement) -> Sequence[Operand]:
    """What a statement writes to (not what those inside a loop do)."""
    if isinstance(s, Each):
        return [o for case in s.cases for o in case.outputs]
    if isinstance(s, Walk):
        return [o for case in (*s.start, *s.step) for o in case.outputs]
    if isinstance(s, Loop):
        return [current for current, _ in s.carry]
    return [s.solution] if isinstance(s, Solve) else [s.target]


def reads(s: Statement) -> Sequence[Operand]:
    if isinstance(s, Each):
        return [o for case in s.cases for o in case.inputs]
    if isinstance(s, Walk):
        return [o for case in (*s.start, *s.step) for o in case.inputs]
    if isinstance(s, Loop):
        return [*(following for _, following in s.carry), *([s.done] if s.done else [])]
    if isinstance(s, Solve):
        return [s.matrix, s.rhs]
    return [s.source] if isinstance(s, Copy) else []


def transposable(program: Program) -> dict[int, int]:
    """The temporaries and data that are only ever touched by parts of rows, with the numbers of a row."""
    wide: dict[int, set[int]] = {}
    single: list[tuple[Operand, int]] = []
    top = set(map(id, program.statements))
    for s in every(program.statements):
        whole = isinstance(s, (Zero, Copy)) and id(s) in top  # these may go over many rows
        for o in (*reads(s), *writes(s)):
            if o.buffer < 0 or program.buffers[o.buffer].role not in ("temporary", "data") or not o.size:
                continue
            found = wide.setdefault(o.buffer, set())
            if isinstance(s, Each) and s.items > 1 and o.steps:
                (stride, _), *others = o.steps
                found.add(stride if not others and not o.far else 0)
                single.append((o, o.base))
            elif isinstance(s, Walk):
                found.add(0)
            elif not whole:
                single.append((o, start(program, o)))
    rows = {k: next(iter(found)) for k, found in wide.items() if len(found) == 1 and min(found) > 1}
    torn = {o.buffer for o, start in single if o.buffer in rows and start % rows[o.buffer] + o.size > rows[o.buffer]}
    return {k: n for k, n in rows.items() if k not in torn}


def together(program: Program) -> dict[Case, bool]:
    """For the cases of parallel statements, whether an item may read or write again what it writes."""
    found: dict[Case, bool] = {}
    top = set(map(id, program.statements))
    for s in every(program.statements):
        if isinstance(s, Walk):
            found |= dict.fromkeys((*s.start, *s.step), True)
        elif isinstance(s, Each):
            alone = id(s) not in top or not parallel(s)
            meeting = _Meeting(program, s)
            for number, case in enumerate(s.cases):
                found[case] = found.get(case, False) or alone or meeting.within(case, number)
    return found


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
            items = _items(self.program, self.s, number)
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
        written = [_starts(program, o, items) // wide for o in outputs if o.buffer == buffer]
        for places in written:
            owner[places] = lane
        if any(np.any(owner[places] != lane) for places in written):
            return False
        for o in (o for o in inputs if o.buffer == buffer):
            found = owner[_starts(program, o, items) // wide]
            if np.any((found >= 0) & (found != lane)):
                return False
    return True


def cleared(program: Program, rows: dict[int, int]) -> tuple[tuple[int, int, int], ...]:
    """(buffer, first, how many) numbers that must be 0 before the start: outputs that are not surely set, and
    temporaries that are added to and that the program does not clear; where they lie with the buffers of `rows`
    transposed."""
    zeroed = {
        s.target.buffer
        for s in program.statements
        if isinstance(s, Zero) and s.target.size == program.buffers[s.target.buffer].size
    }
    added: dict[int, list[Operand]] = {}
    for s in every(program.statements):
        for o in writes(s):
            if o.add and o.buffer not in zeroed:
                added.setdefault(o.buffer, []).append(o)
    found = []
    for k, buffer in enumerate(program.buffers):
        if buffer.role == "temporary" and k in rows and k in added:
            wide = rows[k]
            long = -(-buffer.size // wide)
            parts = {(o.base % wide, o.size) for o in added[k]}
            found += [(k, first * long, size * long) for first, size in sorted(parts)]
            continue
        added_to = buffer.role in ("temporary", "output") and k in added
        if added_to or (buffer.role == "output" and k not in zeroed and not _covered(program, k)):
            found.append((k, 0, buffer.size))
    return tuple(found)


def _covered(program: Program, buffer: int) -> bool:
    """Whether the statements outside of loops set every number of a buffer."""
    seen = np.zeros(program.buffers[buffer].size, bool)
    for s in program.statements:
        if isinstance(s, Each):
            for number, case in enumerate(s.cases):
                for o in (o for o in case.outputs if o.buffer == buffer and not o.add):
                    places = _starts(program, o, _items(program, s, number))
                    for k in range(o.size):
                        seen[places + k] = True
        elif isinstance(s, (Zero, Copy, Solve)):
            for o in writes(s):
                if o.buffer == buffer:
                    seen[start(program, o) :][: o.size] = True
    return bool(seen.all())


def _items(program: Program, s: Each, number: int) -> Longs:
    """The items of a case."""
    items = np.arange(s.items)
    return items if s.dispatch is None else items[program.columns[s.dispatch][: s.items] == number]


def _starts(program: Program, o: Operand, items: Longs) -> Longs:
    found = np.full(len(items), o.base)
    for stride, column in o.steps:
        found += stride * (items if column == ITEM else program.columns[column][items].astype(np.int64))
    return found
