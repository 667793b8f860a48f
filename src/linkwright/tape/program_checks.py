"""Whether a program can be run without leaving its memory, and whether reverse accumulation may look at it from its
end.

The reverse sweep finds a buffer as the program left it. That is what a statement read if no one wrote there later;
and an adjoint belongs to one value if the number had one value. So every number must be written once before it
is read: either set, or cleared, and then perhaps added to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from linkwright.base.arrays import Longs
from linkwright.errors import LinkwrightError, RecordingError
from linkwright.tape import operations as O
from linkwright.tape.block import Block
from linkwright.tape.dataflow import LATE, Access, Cells, Kind, Marks, periods, related, starts
from linkwright.tape.operations import Table
from linkwright.tape.program import Program
from linkwright.tape.statements import ITEM, Case, Copy, Each, Loop, Operand, Solve, Walk, Zero

Index: TypeAlias = range | Longs
_TOTAL = 2**31  # numbers in all buffers together
_ONCE = range(1)
_SAFE = 2**62


class Invalid(LinkwrightError, ValueError):
    """A program that must not be run; the message says where it is wrong."""


def validate(program: Program) -> None:
    """Raise `Invalid` unless every number that the program names is there and every address is in its buffer."""
    if sum(b.size for b in program.buffers) > _TOTAL:
        raise Invalid(f"its buffers hold more than {_TOTAL} numbers")
    for buffer in program.buffers:
        if (buffer.role == "data") != (buffer.data is not None):
            raise Invalid(f"buffer {buffer.name!r} has data and role {buffer.role!r}")
        if buffer.data is not None and buffer.data.size != buffer.size:
            raise Invalid(f"buffer {buffer.name!r} of {buffer.size} numbers has {buffer.data.size}")
    for number, block in enumerate(program.blocks):
        _block(block, f"block {number}")
    check = _Check(program)
    for statement in program.statements:
        statement.accept(check)


def _block(block: Block, name: str) -> None:
    n, first = len(block.op), block.first_operation
    if block.args.shape != (n, 3):
        raise Invalid(f"{name} has {n} operations with operands of shape {block.args.shape}")
    if n and int(block.op.max()) >= len(O.OPERATIONS):
        raise Invalid(f"{name} has an operation that does not exist")
    reads = block.operand_places()
    known = first + np.arange(n)[:, None]  # an operation reads what comes before it
    if np.any(reads & ((block.args < 0) | (block.args >= known))):
        raise Invalid(f"{name} has an operation on a value that is not there yet")
    tables = block.args[block.op == O.TABLE, 1]
    if np.any((tables < 0) | (tables >= len(block.tables))):
        raise Invalid(f"{name} names a table that it does not have")
    if np.any((block.outputs < 0) | (block.outputs >= first + n)):
        raise Invalid(f"{name} has an output that is no value of it")
    for table in block.tables:
        _table(table, name)


def _table(table: Table, name: str) -> None:
    breaks = np.asarray(table.breaks)
    if len(breaks) < 2 or len(breaks) != len(table.coefficients) + 1:
        raise Invalid(f"{name} has a table of {len(table.coefficients)} pieces and {len(breaks)} breaks")
    if not np.all(np.isfinite(breaks)) or np.any(np.diff(breaks) <= 0):
        raise Invalid(f"{name} has a table whose breaks do not increase")


class _Check:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.largest = [int(np.abs(c.astype(np.int64)).max(initial=0)) for c in program.columns]

    def column(self, number: int, length: int, what: str) -> Longs:
        """The first `length` entries of a column, which must have as many."""
        if not 0 <= number < len(self.program.columns):
            raise Invalid(f"{what} names column {number}, which is not there")
        column = self.program.columns[number]
        if column.ndim != 1 or len(column) < length:
            raise Invalid(f"{what} needs {length} entries of column {number}, which has {column.size}")
        return column[:length].astype(np.int64)

    # -- statements ------------------------------------------------------------------------------------
    def loop(self, s: Loop) -> None:
        for inner in s.body:
            inner.accept(self)
        for current, following in s.carry:
            self.moved(following, current, "a loop's carry")
        if s.done is not None:
            self.once(s.done, 1, "a loop's end")

    def zero(self, s: Zero) -> None:
        self.once(s.target, s.target.size, "a clearing", write=True)

    def copy(self, s: Copy) -> None:
        self.moved(s.source, s.target, "a copy")

    def moved(self, source: Operand, target: Operand, what: str) -> None:
        self.once(source, target.size, what)
        self.once(target, target.size, what, write=True)

    def solve(self, s: Solve) -> None:
        what = f"a system solved by {s.method}"
        if s.rows > s.columns or (s.method != "least-norm" and s.rows != s.columns):
            raise Invalid(f"{what} has {s.rows} rows and {s.columns} columns")
        self.once(s.matrix, s.rows * s.columns, what)
        self.once(s.rhs, s.rows * s.right, what)
        self.once(s.solution, s.columns * s.right, what, write=True)
        if (s.method == "ltl") != (s.parent is not None):
            raise Invalid(f"{what} has {'no' if s.parent is None else 'a'} column of parents")
        if s.parent is not None:
            parent = self.column(s.parent, s.columns, what)
            if np.any((parent < -1) | (parent >= np.arange(s.columns))):
                raise Invalid(f"{what} has a row whose parent does not come before it")

    def each(self, s: Each) -> None:
        if s.runs is not None:
            self.runs(s)
        if s.dispatch is None:
            self.only(s.cases, "a scan")
            self.case(s.cases[0], range(s.items), _ONCE, carried=())
            return
        kinds = self.kinds(s.dispatch, s.items, len(s.cases), "a scan")
        for number, case in enumerate(s.cases):
            self.case(case, np.flatnonzero(kinds == number), _ONCE, carried=())

    def runs(self, s: Each) -> None:
        """Runs go through all items in order, and no run mixes cases."""
        assert s.runs is not None
        self.column(s.runs, 2, "a scan in runs")
        starts = self.program.columns[s.runs].astype(np.int64)
        if s.order != "outward" or starts[0] != 0 or starts[-1] != s.items or np.any(np.diff(starts) < 1):
            raise Invalid(f"a scan of {s.items} items has runs that do not go through them in order")
        if s.dispatch is not None:
            changes = np.flatnonzero(np.diff(self.column(s.dispatch, s.items, "a scan in runs"))) + 1
            if not np.isin(changes, starts).all():
                raise Invalid("a scan has a run with more than one case")

    def walk(self, s: Walk) -> None:
        parent = self.column(s.parent, s.items, "a walk")
        if np.any((parent < -1) | (parent >= s.items)):
            raise Invalid("a walk has a parent that is not there")
        self.rooted(parent)
        if s.dispatch is None:
            self.only(s.start, "a walk")
            kinds = np.zeros(s.items, np.int64)
        else:
            kinds = self.kinds(s.dispatch, s.items, len(s.start), "a walk")
        if len(s.step) != len(s.start) ** 2:
            raise Invalid(f"a walk of {len(s.start)} kinds has {len(s.step)} steps")
        # What is carried depends on the kind of the item that the walk started from.
        sizes = [sum(o.size for o in case.outputs[-1:]) for case in s.start]
        for number, case in enumerate(s.start):
            self.case(case, np.flatnonzero(kinds == number), _ONCE, carried=("outputs",), size=sizes[number])
        parents = np.unique(parent[parent >= 0])
        for number, case in enumerate(s.step):
            lower, other = divmod(number, len(s.start))
            size = sizes[lower]
            try:
                # Any item with any ancestor: quick, and enough unless rows are packed by their ancestors.
                mine, above = np.flatnonzero(kinds == lower), parents[kinds[parents] == other]
                self.case(case, mine, above, carried=("inputs", "outputs"), size=size)
            except Invalid:
                for mine, above in related(parent, s.items):
                    chosen = (kinds[mine] == lower) & (kinds[above] == other)
                    pairs = (mine[chosen], above[chosen])
                    self.case(case, *pairs, carried=("inputs", "outputs"), size=size, paired=True)

    def rooted(self, parent: Longs) -> None:
        """Every item must come to a root: after n steps by ever longer strides, none is left."""
        above = parent
        for _ in range(max(1, len(parent)).bit_length() + 1):
            above = np.where(above >= 0, above[above], -1)
        if np.any(above >= 0):
            raise Invalid("a walk has parents that go in a circle")

    def only(self, cases: Sequence[Case], what: str) -> None:
        if len(cases) != 1:
            raise Invalid(f"{what} has {len(cases)} cases and no column to choose by")

    def kinds(self, dispatch: int, items: int, cases: int, what: str) -> Longs:
        kinds = self.column(dispatch, items, what)
        whole = self.program.columns[dispatch]  # counting looks at all of it
        if np.any((whole < 0) | (whole >= cases)):
            raise Invalid(f"{what} chooses a case that is not there")
        return kinds

    # -- operands --------------------------------------------------------------------------------------
    def case(
        self,
        case: Case,
        items: Index,
        ancestors: Index,
        *,
        carried: Sequence[str],
        size: int = 0,
        paired: bool = False,
    ) -> None:
        """A block's operands; a walk's carry of `size` numbers is the first input and the last output."""
        if not 0 <= case.block < len(self.program.blocks):
            raise Invalid(f"a case names block {case.block}, which is not there")
        block = self.program.blocks[case.block]
        sides = {"inputs": (case.inputs, block.n_inputs, 0), "outputs": (case.outputs, len(block.outputs), -1)}
        for side, (operands, wanted, place) in sides.items():
            what = f"one of a case's {side}"
            if sum(o.size for o in operands) != wanted:
                raise Invalid(f"a case's {side} are not the {wanted} numbers that its block has")
            in_buffers = list(operands)
            if side in carried:
                carry = in_buffers.pop(place) if in_buffers else None
                if carry is None or carry.buffer != -1 or carry.size != size:
                    raise Invalid(f"a step of a walk does not carry {size} numbers in its {side}")
            for operand in in_buffers:
                self.operand(operand, items, ancestors, what, write=side == "outputs", paired=paired)

    def once(self, operand: Operand, size: int, what: str, *, write: bool = False) -> None:
        if operand.size != size:
            raise Invalid(f"{what} has an operand of {operand.size} numbers, not {size}")
        self.operand(operand, _ONCE, _ONCE, what, write=write)

    def operand(
        self, operand: Operand, items: Index, ancestors: Index, what: str, *, write: bool, paired: bool = False
    ) -> None:
        """All places that the operand takes, for any of the items with any of the ancestors (or pair by pair)."""
        if not 0 <= operand.buffer < len(self.program.buffers):
            raise Invalid(f"{what} names buffer {operand.buffer}, which is not there")
        buffer = self.program.buffers[operand.buffer]
        if write and buffer.role == "data":
            raise Invalid(f"{what} writes to the data {buffer.name!r}")
        if not len(items) or not len(ancestors):
            return
        near, far = self.moves(operand.steps, items, what), self.moves(operand.far, ancestors, what)
        if paired:
            near, far = near + far, near[:1] * 0
        low = operand.base + int(near.min()) + int(far.min())
        high = operand.base + int(near.max()) + int(far.max()) + operand.size
        if low < 0 or high > buffer.size:
            raise Invalid(f"{what} reaches {low}..{high} of the {buffer.size} numbers of {buffer.name!r}")

    def moves(self, steps: tuple[tuple[int, int], ...], index: Index, what: str) -> Longs:
        """Σ stride·column[i] over an index; of a mere range only its ends, where a straight line is extreme."""
        first, last = (index[0], index[-1]) if isinstance(index, range) else (0, int(index.max()))
        named = [column for _, column in steps if column != ITEM]
        for column in named:
            self.column(column, last + 1, what)
        bound = sum(abs(stride) * (last if c == ITEM else self.largest[c]) for stride, c in steps)
        if bound >= _SAFE:
            raise Invalid(f"{what} moves by more than any buffer holds")
        if isinstance(index, range):
            index = np.arange(last + 1) if named else np.array([first, last])
        return starts(self.program.columns, Operand(0, 0, steps=steps), index)


@dataclass
class Ledger:
    """Accesses to the buffers of a program, each with its moment."""

    program: Program
    active: Marks
    accesses: dict[int, list[Access]] = field(default_factory=dict)

    def enter(self, kind: Kind, operand: Operand, items: Longs, time: Longs) -> None:
        at = starts(self.program.columns, operand, items)
        access = Access(kind, operand.buffer, at, operand.size, time)
        self.accesses.setdefault(operand.buffer, []).append(access)

    def check(self) -> None:
        """Raise a RecordingError at the first number that is written again after it counted."""
        for buffer, period in enumerate(periods(self.program)):
            accesses = [a for a in self.accesses.get(buffer, []) if a.size and len(a.starts)]
            if any(a.kind in ("clear", "set", "add") for a in accesses):
                self._check(buffer, Cells(self.program.buffers[buffer].size, period, accesses))

    def _check(self, buffer: int, cells: Cells) -> None:
        kinds = ("clear", "set", "add", "read", "look")
        first = {kind: np.full(cells.count, LATE) for kind in kinds}
        last = {kind: np.full(cells.count, -1) for kind in kinds}
        sets = np.zeros(cells.count, dtype=np.int64)
        for access in cells.accesses:
            at, time = cells.of(access), access.times[:, None]
            np.minimum.at(first[access.kind], at, time)
            np.maximum.at(last[access.kind], at, time)
            if access.kind == "set":
                np.add.at(sets, at, 1)
        read = np.minimum(first["read"], first["look"])
        again = (sets > 1) | (last["set"] >= np.minimum(first["add"], read))
        again |= last["clear"] >= np.minimum(np.minimum(first["add"], first["set"]), read)
        wrong = first["look"] <= np.maximum(np.maximum(last["add"], last["set"]), last["clear"])
        wrong |= again & cells.marked(self.active.marks[buffer])
        if wrong.any():
            number, name = cells.where[np.argmax(wrong)], self.program.buffers[buffer].name
            raise RecordingError(
                f"program {self.program.name}: number {number} of buffer {name!r} is written again after it was "
                "set, added to or read; reverse accumulation needs each number written once before it is read "
                "(set, or cleared and then added to): use another temporary buffer, or forward accumulation"
            )
