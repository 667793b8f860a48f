"""Where generated C text keeps its numbers: places in the work array, and which of them must start at 0."""

from __future__ import annotations

from dataclasses import dataclass

from linkwright.tape.program import Program
from linkwright.tape.statements import PartialVisitor, Solve, Statement, Walk, nested


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
