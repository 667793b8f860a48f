"""C text of blocks: one function a case, or several where a long block is cut.

Compilers take longer than linear in the length of a function, so that a block of more operations than the
dialect's `segment` becomes pieces that hand their values on through the work array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwright.base.locks import cached_property
from linkwright.errors import KernelError
from linkwright.kernels.c.spelling import C, literal
from linkwright.tape import operations as O
from linkwright.tape.block import Block
from linkwright.tape.statements import ITEM, Case, Operand

if TYPE_CHECKING:
    from linkwright.kernels.c.program_text import Lowering


@dataclass(frozen=True)
class Plan:
    """How a case's block becomes functions."""

    rows: list[O.Row]
    pieces: list[list[int]]  # the operations of each function, only those that an output needs
    slots: dict[int, int]  # value → its place among those that cross from piece to piece
    late: bool  # outputs may overlap inputs or each other: they are stored in order, after all is read

    @cached_property
    def crossing(self) -> int:
        return max(self.slots.values(), default=-1) + 1


def plan(block: Block, segment: int, *, late: bool) -> Plan:
    """Cut the block where it is longer than `segment` and give the crossing values their slots."""
    rows, live = block.rows(), block.needed()
    number = max(1, -(-len(live) // segment))
    length = max(1, -(-len(live) // number))
    pieces = [live[s : s + length] for s in range(0, len(live), length)] or [[]]
    slots = block.crossing(pieces, late=late)
    return Plan(rows, pieces, slots, late)


class Function:
    """One function under construction: its lines, and what of the program it touches (its parameters)."""

    def __init__(self, low: Lowering, name: str, *, moving: bool = False, walking: bool = False) -> None:
        self.low, self.name = low, name
        self.moving, self.walking = moving, walking  # whether the item and the ancestor vary
        self.lines: list[str] = []
        self.written: dict[int, bool] = {}  # buffer → whether it is written
        self.uses: set[str] = set()  # of: work, i, j, and what the caller gives
        self._pointers: dict[tuple[int, str, bool], str] = {}

    # -- memory ----------------------------------------------------------------------------------------
    def buffer(self, number: int, write: bool) -> tuple[str, int, str]:
        """(array, the place in it, what its indices are multiplied by) of a buffer's first number."""
        low = self.low
        if number < 0 or number in low.layout.place:
            self.uses.add("work")
            place = low.layout.carry if number < 0 else low.layout.place[number]
            return "work", place, low.step
        if low.program.buffers[number].role == "data":
            if write:
                raise KernelError(f"program {low.program.name} writes to its data {low.program.buffers[number].name!r}")
            return low.data(number, self), 0, ""
        self.written[number] = self.written.get(number, False) or write
        return low.names[number], 0, ""

    def at(self, operand: Operand, k: int | str, *, write: bool = False) -> str:
        """The text of an operand's k-th number."""
        array, place, step = self.buffer(operand.buffer, write)
        offset, terms = self.offset(operand)
        if terms:
            array, offset = self.pointer(operand.buffer, array, place + offset, terms, step, write), 0
        else:
            offset += place
        if isinstance(k, int):
            return f"{array}[{offset + k}{step if offset + k else ''}]"
        index = f"{offset} + {k}" if offset else k
        return f"{array}[({index}){step}]" if step and offset else f"{array}[{index}{step}]"

    def offset(self, operand: Operand) -> tuple[int, list[str]]:
        """Where an operand starts: a number, and what is added to it for the item and its ancestor."""
        if operand.buffer < 0:
            return 0, []
        fixed, terms = operand.base, []
        for steps, index, varies in ((operand.steps, "i", self.moving), (operand.far, "j", self.walking)):
            for stride, column in steps:
                if not varies:
                    fixed += stride * (0 if column == ITEM else int(self.low.program.columns[column][0]))
                elif stride:
                    entry = self.entry(column, index)
                    terms.append(entry if stride == 1 else f"{stride} * {entry}")
        return fixed, terms

    def entry(self, column: int, index: str) -> str:
        """A column's number for the item i or the ancestor j."""
        self.uses.add(index)
        if column == ITEM:
            return index
        return f"({self.low.dialect.index}){self.low.column(column, self)}[{index}]"

    def pointer(self, buffer: int, array: str, fixed: int, terms: list[str], step: str, write: bool) -> str:
        offset = " + ".join([*([str(fixed)] if fixed else []), *terms])
        key = (buffer, offset, write)
        if key not in self._pointers:
            name = self._pointers[key] = f"p_{len(self._pointers)}"
            const = "" if write else "const "
            self.lines.append(f"{const}{self.low.dialect.real} *const {name} = {array} + ({offset}){step};")
        return self._pointers[key]

    # -- text ------------------------------------------------------------------------------------------
    def parameters(self) -> list[tuple[str, str]]:
        """(type, name) of what must be passed."""
        dialect = self.low.dialect
        pairs = []
        for number in sorted(self.written):
            pairs.append((f"{'' if self.written[number] else 'const '}{dialect.real} *", self.low.names[number]))
        if "work" in self.uses:
            pairs.append((f"{dialect.real} *", "work"))
            if self.low.step:
                pairs.append((f"{dialect.index} ", "step"))
        pairs.extend((outside.kind, name) for name, outside in self.low.outside.items() if name in self.uses)
        pairs.extend((f"{dialect.index} ", index) for index in "ij" if index in self.uses)
        return pairs

    def call(self) -> str:
        return f"{self.name}({', '.join(name for _, name in self.parameters())});"

    def text(self, head: str) -> str:
        pairs = self.parameters()
        parameters = ", ".join(kind + name for kind, name in pairs) or "void"
        # A function that only touches the first number of its work does not need to know where the second is.
        idle = any(name == "step" for _, name in pairs) and not any("step" in x for x in self.lines)
        lines = ["(void)step;"] * idle + self.lines
        return "\n".join([f"{head} void {self.name}({parameters})", "{", *(f"    {x}" for x in lines), "}"])


def case_functions(low: Lowering, case: Case, name: str, *, moving: bool, walking: bool) -> list[Function]:
    """The functions that run a case for item i (and its ancestor j), to be called one after another."""
    plan = low.plan(case)
    functions = []
    for number in range(len(plan.pieces)):
        suffix = f"_{number}" if len(plan.pieces) > 1 else ""
        function = low.function(f"{name}{suffix}", case, moving=moving, walking=walking)
        _Piece(function, case, plan, number).emit()
        functions.append(function)
    return functions


class _Piece:
    """One piece of a block as the lines of a function."""

    def __init__(self, function: Function, case: Case, plan: Plan, number: int) -> None:
        self.f, self.low, self.case, self.plan = function, function.low, case, plan
        self.block = self.low.program.blocks[case.block]
        self.first = self.block.first_operation
        self.here = plan.pieces[number]
        self.final = number == len(plan.pieces) - 1
        precision = self.low.dialect.precision
        self.zero, self.one = literal(0.0, precision), literal(1.0, precision)
        self.names = {k: literal(x, precision) for k, x in enumerate(self.block.constants.tolist())}
        self.where = [(operand, k) for operand in case.inputs for k in range(operand.size)]
        places = [(operand, k) for operand in case.outputs for k in range(operand.size)]
        self.stores: dict[int, list[tuple[Operand, int]]] = {}
        self.pending: list[tuple[int, Operand, int]] = []  # what is stored at the end of the last piece
        for value, (operand, k) in zip(self.block.outputs.tolist(), places, strict=True):
            if plan.late or value < self.first:
                self.pending.append((value, operand, k))
            else:
                self.stores.setdefault(value, []).append((operand, k))

    def value(self, k: int) -> str:
        """The name of a value; an input or a value of an earlier piece is loaded at its first use."""
        if k not in self.names:
            if k < self.first:
                operand, place = self.where[k - self.block.first_input]
                source = self.f.at(operand, place)
            else:
                source = self._slot(k)
            self.define(k, source)
        return self.names[k]

    def _slot(self, k: int) -> str:
        self.f.uses.add("work")
        return f"work[{self.low.layout.spill + self.plan.slots[k]}{self.low.step}]"

    def define(self, k: int, text: str) -> None:
        self.names[k] = f"x_{k}"
        self.f.lines.append(f"const {self.low.dialect.real} x_{k} = {text};")

    def emit(self) -> None:
        rows, first = self.plan.rows, self.first
        pairs = self._pairs() if self.low.dialect.paired else {}
        for k in self.here:
            op, a = rows[k][:2]
            if first + k in self.names:
                continue
            if op in (O.SIN, O.COS) and first + k in pairs.get(a, ()):
                angle, (s, c) = self.value(a), pairs[a]
                f, real = self.low.dialect.suffix, self.low.dialect.real
                self.f.lines.append(f"{real} x_{s}, x_{c}; sincos{f}({angle}, &x_{s}, &x_{c});")
                for value in (s, c):
                    self.names[value] = f"x_{value}"
                    self.keep(value)
                continue
            self.define(first + k, self.expression(op, rows[k]))
            self.keep(first + k)
        if self.final:
            # All are read before the first is stored.
            results = [(self.value(value), operand, k) for value, operand, k in self.pending]
            for result, operand, k in results:
                self.store(result, operand, k)

    def keep(self, value: int) -> None:
        """Store a value where it is wanted, now that it is there."""
        if value in self.plan.slots:
            self.f.lines.append(f"{self._slot(value)} = {self.names[value]};")
        for operand, k in self.stores.get(value, ()):
            self.store(self.names[value], operand, k)

    def store(self, result: str, operand: Operand, k: int) -> None:
        sign = "+=" if operand.add else "="
        self.f.lines.append(f"{self.f.at(operand, k, write=True)} {sign} {result};")

    def _pairs(self) -> dict[int, tuple[int, int]]:
        """The angles whose sine and cosine are both made here."""
        places: dict[int, dict[int, int]] = {}
        for k in self.here:
            op, a = self.plan.rows[k][:2]
            if op in (O.SIN, O.COS):
                places.setdefault(a, {})[op] = self.first + k
        return {a: (both[O.SIN], both[O.COS]) for a, both in places.items() if len(both) == 2}

    def expression(self, op: int, row: O.Row) -> str:
        low, x = self.low, [self.value(k) for k in O.operands_of(row)]
        if op == O.ADD and x[1].startswith("(-"):
            return f"{x[0]} - {x[1][2:-1]}"
        if op == O.ADD and x[0].startswith("(-"):
            return f"{x[1]} - {x[0][2:-1]}"
        words = {"f": low.dialect.suffix, "zero": self.zero, "one": self.one}
        if C[op].helper:
            words["helper"] = low.helper(C[op].helper)
        if op == O.TABLE:
            words["table"] = low.table(self.block.tables[row[2]])
        return C[op].text.format(*x, **words)


def numbers(kind: str, name: str, entries: Sequence[str]) -> str:
    """A constant array; an empty one gets an entry, since C has no empty arrays."""
    entries = entries or ["0"]
    rows = [", ".join(entries[k : k + 8]) for k in range(0, len(entries), 8)]
    body = ",\n".join(f"    {row}" for row in rows)
    return f"{kind} {name}[{len(entries)}] = {{\n{body}\n}};"
