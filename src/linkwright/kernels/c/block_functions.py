"""C text of blocks, one function a case or several where a long block is cut; and of the statements that call them,
with the places of their numbers in the work array.

Compilers take longer than linear in the length of a function, so that a block of more operations than the
dialect's `segment` becomes pieces that hand their values on through the work array.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwright.base.locks import cached_property
from linkwright.errors import KernelError
from linkwright.kernels.c.spelling import C, literal, switch
from linkwright.tape import operations as O
from linkwright.tape.block import Block, operands_of
from linkwright.tape.dataflow import first_start
from linkwright.tape.program import Program
from linkwright.tape.statements import (
    ITEM,
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
    nested,
)

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
    slots = block.crossing(pieces, list(map(operands_of, rows)), late=late)
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
        pairs = [(kind, name) for kind, name, _, _ in self.arguments()]
        if "work" in self.uses:
            pairs.append((f"{dialect.real} *", "work"))
            if self.low.step:
                pairs.append((f"{dialect.index} ", "step"))
        pairs.extend((f"{dialect.index} ", index) for index in "ij" if index in self.uses)
        return pairs

    def arguments(self) -> list[tuple[str, str, str, int]]:
        """(type, name, what it is, its number) of the arrays and numbers of the program that must be passed."""
        real, low = self.low.dialect.real, self.low
        buffers = [
            (f"{'' if write else 'const '}{real} *", low.names[k], "buffer", k)
            for k, write in sorted(self.written.items())
        ]
        outside = [(o.kind, name, o.what, o.number) for name, o in low.outside.items() if name in self.uses]
        return [*buffers, *outside]

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
                self._pair(a, *pairs[a])
                continue
            self.define(first + k, self.expression(op, rows[k]))
            self.keep(first + k)
        if self.final:
            # All are read before the first is stored.
            results = [(self.value(value), operand, k) for value, operand, k in self.pending]
            for result, operand, k in results:
                self.store(result, operand, k)

    def _pair(self, angle: int, s: int, c: int) -> None:
        """The sine and the cosine of an angle, by one call."""
        real = self.low.dialect.real
        both = self.low.helper("sincos") if real == "double" else "sincosf"
        self.f.lines.append(f"{real} x_{s}, x_{c}; {both}({self.value(angle)}, &x_{s}, &x_{c});")
        for value in (s, c):
            self.names[value] = f"x_{value}"
            self.keep(value)

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
        low, x = self.low, [self.value(k) for k in operands_of(row)]
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
    place: dict[int, int] = {}
    at = 0
    for k, buffer in enumerate(program.buffers):
        if buffer.role == "temporary" or k in program.written_inputs:
            place[k] = at
            at += buffer.size
    carry, spill = rooms(program, crossing)
    clear = {k: unset.whole for k, unset in program.unset.items()}
    return Layout(place, at, at + carry, at + carry + spill, clear)


def rooms(program: Program, crossing: int) -> tuple[int, int]:
    """How many numbers a walk carries, and how many are used in turn by solvers and pieces of cut blocks."""
    rooms = [statement.accept(_Room()) for statement in nested(program.statements)]
    return max((carry for carry, _ in rooms), default=0), max([crossing, *(spill for _, spill in rooms)])


class _Room(PartialVisitor[tuple[int, int]]):
    """(numbers carried, numbers of work) of a statement, without those inside it."""

    def other(self, statement: Statement) -> tuple[int, int]:
        return 0, 0

    def walk(self, walk: Walk) -> tuple[int, int]:
        return walk.carry_size, 0

    def solve(self, solve: Solve) -> tuple[int, int]:
        """A solver works on the matrix, the right sides and, for least norm, the solution."""
        solution = solve.columns * solve.right if solve.method == "least-norm" else 0
        return 0, solve.rows * (solve.columns + solve.right) + solution


class Statements:
    """The statements as lines of the driver."""

    def __init__(self, low: Lowering, function: Function) -> None:
        self.low, self.f = low, function
        self.index = low.dialect.index
        self.depth = 0

    def lines(self, statements: Iterable[Statement]) -> list[str]:
        return [line for statement in statements for line in statement.accept(self)]

    def each(self, each: Each) -> list[str]:
        low = self.low
        if each.items <= 0:
            return []
        if each.items == 1:
            kind = 0 if each.dispatch is None else int(low.program.columns[each.dispatch][0])
            return low.run(each.cases[kind], self.f, moving=False)
        met = {0} if each.dispatch is None else set(low.program.columns[each.dispatch][: each.items].tolist())
        arms = {k: low.run(each.cases[k], self.f, moving=True) for k in sorted(met)}
        inner = switch(arms, lambda: f"{low.column(each.dispatch, self.f)}[i]" if each.dispatch is not None else "0")
        return _block(for_text(low, "i", each.items, back=each.inward), inner)

    def walk(self, walk: Walk) -> list[str]:
        low, kinds = self.low, len(walk.start)
        if walk.items <= 0:
            return []

        def kind(index: str) -> str:
            return "0" if walk.dispatch is None else f"{low.column(walk.dispatch, self.f)}[{index}]"

        start = {k: low.run(case, self.f, moving=True) for k, case in enumerate(walk.start)}
        step = {k: low.run(case, self.f, moving=True, walking=True) for k, case in enumerate(walk.step)}
        parent = low.column(walk.parent, self.f)
        up = switch(step, lambda: f"{kind('i')} * {kinds} + {kind('j')}")
        inner = switch(start, lambda: kind("i"))
        inner += _block(f"for ({self.index} j = {parent}[i]; j >= 0; j = {parent}[j])", up)
        return _block(for_text(low, "i", walk.items, back=walk.order == "inward"), inner)

    def loop(self, loop: Loop) -> list[str]:
        if loop.count <= 0:
            return []
        self.depth += 1
        inner = self.lines(loop.body)
        for current, following in loop.carry:
            inner += self.moved(following, current)
        if loop.done is not None:
            zero = literal(0.0, self.low.dialect.precision)
            # Written so that a NaN ends the loop too.
            inner.append(f"if (!({self.f.at(loop.done, 0)} == {zero})) break;")
        self.depth -= 1
        n = f"n_{self.depth}"
        return _block(for_text(self.low, n, loop.count), inner)

    def solve(self, s: Solve) -> list[str]:
        if not s.columns * s.right:
            return []
        low, f = self.low, self.f
        method = s.method.replace("-", "_")
        f.uses.add("work")
        matrix = low.layout.spill
        right = matrix + s.rows * s.columns
        solution = right + s.rows * s.right if method == "least_norm" else right
        room = [f"work + {at}{low.step}" for at in (matrix, right, solution)]
        sizes = [str(n) for n in (s.rows, s.columns, s.right)]
        arguments = [*(room if method == "least_norm" else room[:2])]
        if method == "ltl":
            assert s.parent is not None
            arguments.append(low.column(s.parent, self.f))
        arguments += sizes if method == "least_norm" else sizes[1:]
        arguments += ["step"] if low.step else []

        def moved(at: int, operand: Operand, back: bool) -> list[str]:
            here = f"work[({at} + k){low.step}]" if low.step else f"work[{at} + k]"
            there = f.at(operand, "k", write=back)
            return loop_text(low, operand.size, f"{there} = {here};" if back else f"{here} = {there};")

        return [
            *moved(matrix, s.matrix, False),
            *moved(right, s.rhs, False),
            f"{low.helper(method)}({', '.join(arguments)});",
            *moved(solution, s.solution, True),
        ]

    def zero(self, zero: Zero) -> list[str]:
        return clear_text(self.low, self.f, zero.target)

    def copy(self, copy: Copy) -> list[str]:
        return self.moved(copy.source, copy.target)

    def moved(self, source: Operand, target: Operand) -> list[str]:
        size = min(source.size, target.size)
        line = f"{self.f.at(target, 'k', write=True)} = {self.f.at(source, 'k')};"
        # Within one buffer the runs may overlap: as in NumPy, all is read as it was.
        before, after = (first_start(self.low.program, operand) for operand in (source, target))
        later = source.buffer == target.buffer and after > before
        return loop_text(self.low, size, line, back=later)


def clear_text(low: Lowering, f: Function, target: Operand) -> list[str]:
    return loop_text(low, target.size, f"{f.at(target, 'k', write=True)} = {literal(0.0, low.dialect.precision)};")


def loop_text(low: Lowering, size: int, line: str, *, back: bool = False) -> list[str]:
    return _block(for_text(low, "k", size, back=back), [line]) if size else []


def for_text(low: Lowering, name: str, count: int, *, back: bool = False) -> str:
    """The head of a loop over 0..count−1, or back from the last."""
    first, end, step = (count - 1, ">= 0", "--") if back else (0, f"< {count}", "++")
    return f"for ({low.dialect.index} {name} = {first}; {name} {end}; {step}{name})"


def _block(head: str, inner: list[str]) -> list[str]:
    if not inner:
        return []
    if len(inner) == 1:
        return [head, f"    {inner[0]}"]
    return [f"{head} {{", *(f"    {line}" for line in inner), "}"]
