"""C text of statements, and where their numbers stand in the work array."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwright.kernels.c.block_functions import Function
from linkwright.kernels.c.spelling import literal
from linkwright.tape.dataflow import first_start
from linkwright.tape.program import Program
from linkwright.tape.statements import Copy, Each, Loop, Operand, PartialVisitor, Solve, Statement, Walk, Zero, nested

if TYPE_CHECKING:
    from linkwright.kernels.c.program_text import Lowering


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


def switch(arms: dict[int, list[str]], key: Callable[[], str]) -> list[str]:
    """Run the arm that `key` names; equal arms are one, the last is the default."""
    joined: dict[tuple[str, ...], list[int]] = {}
    for k, lines in arms.items():
        joined.setdefault(tuple(lines), []).append(k)
    if len(joined) == 1:
        return list(next(iter(joined)))
    text = [f"switch ({key()}) {{"]
    for number, (arm, labels) in enumerate(joined.items()):
        last = number == len(joined) - 1
        text.append("default:" if last else " ".join(f"case {k}:" for k in labels))
        text += [f"    {line}" for line in (*arm, "break;")]
    return [*text, "}"]
