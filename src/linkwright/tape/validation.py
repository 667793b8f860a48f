"""Whether a program can be run without leaving its memory or going round for ever: its own numbers, checked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from linkwright.errors import LinkwrightError
from linkwright.tape import operations as O
from linkwright.tape.block import Block
from linkwright.tape.program import ITEM, Case, Copy, Each, Loop, Operand, Program, Solve, Statement, Walk, Zero
from linkwright.tape.table import Table

Longs = NDArray[np.int64]
_TOTAL = 2**31  # numbers in all buffers together
_ZERO = np.zeros(1, np.int64)
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
        check.statement(statement)


def _block(block: Block, name: str) -> None:
    n, first = len(block.op), block.first_operation
    if block.args.shape != (n, 3):
        raise Invalid(f"{name} has {n} operations with operands of shape {block.args.shape}")
    if n and int(block.op.max()) >= len(O.OPERATIONS):
        raise Invalid(f"{name} has an operation that does not exist")
    arity = np.array([o.arity for o in O.OPERATIONS])[block.op] if n else np.zeros(0, np.int64)
    reads = np.arange(3) < arity[:, None]
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
    def statement(self, s: Statement) -> None:
        if isinstance(s, Each):
            self.each(s)
        elif isinstance(s, Walk):
            self.walk(s)
        elif isinstance(s, Loop):
            for inner in s.body:
                self.statement(inner)
            for current, following in s.carry:
                self.copy(following, current, "a loop's carry")
            if s.done is not None:
                self.once(s.done, 1, "a loop's end")
        elif isinstance(s, Solve):
            self.solve(s)
        elif isinstance(s, Zero):
            self.once(s.target, s.target.size, "a clearing", write=True)
        elif isinstance(s, Copy):
            self.copy(s.source, s.target, "a copy")

    def copy(self, source: Operand, target: Operand, what: str) -> None:
        self.once(source, target.size, what)
        self.once(target, target.size, what, write=True)

    def solve(self, s: Solve) -> None:
        what = f"a system solved by {s.method}"
        if s.method == "least-norm" and s.rows > s.columns:
            raise Invalid(f"{what} has {s.rows} rows and {s.columns} columns")
        if s.method != "least-norm" and s.rows != s.columns:
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
        kinds = self.kinds(s.dispatch, s.items, len(s.cases), "a scan")
        items = np.arange(s.items)
        for number, case in enumerate(s.cases):
            mine = items[kinds == number]
            self.case(case, mine, _ZERO, carry=(0, 0), size=0)

    def walk(self, s: Walk) -> None:
        kinds = self.kinds(s.dispatch, s.items, len(s.start), "a walk")
        if len(s.step) != len(s.start) ** 2:
            raise Invalid(f"a walk of {len(s.start)} kinds has {len(s.step)} steps")
        parent = self.column(s.parent, s.items, "a walk")
        if np.any((parent < -1) | (parent >= s.items)):
            raise Invalid("a walk has a parent that is not there")
        self.rooted(parent)
        if not s.items:
            return
        carried = {o.size for case in (*s.start, *s.step) for o in case.outputs[-1:]}
        if len(carried) != 1:
            raise Invalid("a walk carries different numbers of numbers")
        size = carried.pop()
        items = np.arange(s.items)
        for number, case in enumerate(s.start):
            self.case(case, items[kinds == number], _ZERO, carry=(0, 1), size=size)
        for number, case in enumerate(s.step):
            own, other = divmod(number, len(s.start))
            mine, above = items[kinds == own], np.unique(parent[parent >= 0])
            self.case(case, mine, above[kinds[above] == other], carry=(1, 1), size=size)

    def rooted(self, parent: Longs) -> None:
        """Every item must come to a root: after n steps by ever longer strides, none is left."""
        above = parent
        for _ in range(max(1, len(parent)).bit_length() + 1):
            above = np.where(above >= 0, above[above], -1)
        if np.any(above >= 0):
            raise Invalid("a walk has parents that go in a circle")

    def kinds(self, dispatch: int | None, items: int, cases: int, what: str) -> Longs:
        if dispatch is None:
            if cases != 1:
                raise Invalid(f"{what} has {cases} cases and no column to choose by")
            return np.zeros(items, np.int64)
        kinds = self.column(dispatch, items, what)
        if np.any((kinds < 0) | (kinds >= cases)):
            raise Invalid(f"{what} chooses a case that is not there")
        return kinds

    # -- operands --------------------------------------------------------------------------------------
    def case(self, case: Case, items: Longs, ancestors: Longs, *, carry: tuple[int, int], size: int) -> None:
        """`carry`: how many carries of `size` numbers come in (first) and go out (last)."""
        if not 0 <= case.block < len(self.program.blocks):
            raise Invalid(f"a case names block {case.block}, which is not there")
        block = self.program.blocks[case.block]
        for side, wanted, carried in (("inputs", block.n_inputs, carry[0]), ("outputs", len(block.outputs), carry[1])):
            operands: Sequence[Operand] = getattr(case, side)
            if sum(o.size for o in operands) != wanted:
                raise Invalid(f"a case's {side} are not the {wanted} numbers that its block has")
            own = operands
            if carried:
                place = 0 if side == "inputs" else len(operands) - 1
                if not operands or operands[place].buffer != -1 or operands[place].size != size:
                    raise Invalid(f"a step of a walk does not carry {size} numbers in its {side}")
                own = [o for k, o in enumerate(operands) if k != place]
            for operand in own:
                self.operand(operand, items, ancestors, f"one of a case's {side}", write=side == "outputs")

    def once(self, operand: Operand, size: int, what: str, *, write: bool = False) -> None:
        if operand.size != size:
            raise Invalid(f"{what} has an operand of {operand.size} numbers, not {size}")
        self.operand(operand, _ZERO, _ZERO, what, write=write)

    def operand(self, operand: Operand, items: Longs, ancestors: Longs, what: str, *, write: bool) -> None:
        """All places that the operand takes, for any of the items with any of the ancestors."""
        if not 0 <= operand.buffer < len(self.program.buffers):
            raise Invalid(f"{what} names buffer {operand.buffer}, which is not there")
        buffer = self.program.buffers[operand.buffer]
        if write and buffer.role == "data":
            raise Invalid(f"{what} writes to the data {buffer.name!r}")
        low = high = operand.base
        for steps, index in ((operand.steps, items), (operand.far, ancestors)):
            if not len(index):
                return
            least, most = self.reach(steps, index, what)
            low, high = low + least, high + most
        if low < 0 or high + operand.size > buffer.size:
            raise Invalid(f"{what} reaches {low}..{high + operand.size} of the {buffer.size} numbers of {buffer.name!r}")

    def reach(self, steps: tuple[tuple[int, int], ...], index: Longs, what: str) -> tuple[int, int]:
        total = np.zeros(len(index), np.int64)
        bound = 0
        top = int(index.max())
        for stride, column in steps:
            if column == ITEM:
                entries, largest = index, top
            else:
                entries = self.column(column, top + 1, what)[index]
                largest = self.largest[column]
            bound += abs(stride) * largest
            if bound >= _SAFE:
                raise Invalid(f"{what} moves by more than any buffer holds")
            total += stride * entries
        return int(total.min()), int(total.max())
