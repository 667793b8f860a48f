"""Programs run statement by statement over numbers of any kind, or recorded again as one straight block.

Slow and plain; what kinds of numbers have in common. Scans and walks come out unrolled. Loops and linear systems are
each kind's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from linkwright.tape.block import Block, Recorder, finish, undisturbed
from linkwright.tape.program import Buffer, Program
from linkwright.tape.scalar import Scalar
from linkwright.tape.statements import (
    Case,
    Copy,
    Each,
    Operand,
    PartialVisitor,
    Statement,
    Walk,
    Zero,
    parts,
)


class Runner(PartialVisitor[None]):
    """One evaluation of a program: the memory of each buffer, and the numbers that a walk carries."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.columns: list[Any] = [c.tolist() for c in program.columns]
        self.memory: list[Any] = []
        self.carry: list[Any] = []

    # -- the kind of numbers ---------------------------------------------------------------------------
    def fresh(self, buffer: Buffer) -> Any:
        """The memory of a buffer that is no input, at the start."""
        raise NotImplementedError

    def evaluate(self, block: Block, inputs: list[Any]) -> list[Any]:
        """A block's outputs."""
        raise NotImplementedError

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    # -- memory ----------------------------------------------------------------------------------------
    def start_memory(self, inputs: Iterable[Any]) -> None:
        numbers = iter(inputs)
        self.memory = [next(numbers) if b.role == "input" else self.fresh(b) for b in self.program.buffers]

    def outputs(self) -> list[Any]:
        pairs = zip(self.program.buffers, self.memory, strict=True)
        return [values for buffer, values in pairs if buffer.role == "output"]

    def entry(self, column: int, item: Any) -> Any:
        """A column's number for an item."""
        return self.columns[column][item]

    def read(self, operand: Operand, item: Any = 0, ancestor: Any = 0) -> Any:
        at = operand.start(self.entry, item, ancestor)
        return self.memory[operand.buffer][at : at + operand.size]

    def write(self, operand: Operand, values: Sequence[Any], item: Any = 0, ancestor: Any = 0) -> None:
        at = operand.start(self.entry, item, ancestor)
        self.memory[operand.buffer][at : at + operand.size] = values

    # -- statements ------------------------------------------------------------------------------------
    def statements(self, statements: Iterable[Statement]) -> None:
        for statement in statements:
            statement.accept(self)

    def case(self, case: Case, item: Any, ancestor: Any = 0) -> None:
        """Run a block for one item (and its ancestor)."""
        inputs: list[Any] = []
        for operand in case.inputs:
            inputs.extend(self.carry[: operand.size] if operand.buffer < 0 else self.read(operand, item, ancestor))
        results = self.evaluate(self.program.blocks[case.block], inputs)
        for operand, part in parts(case.outputs, results):
            if operand.buffer < 0:
                self.carry = part
                continue
            if operand.add:
                part = [self.add(a, b) for a, b in zip(self.read(operand, item, ancestor), part, strict=True)]
            self.write(operand, part, item, ancestor)

    def each(self, each: Each) -> None:
        kinds, items = self.program.kinds(each), range(each.items)
        for i in reversed(items) if each.inward else items:
            self.case(each.cases[kinds[i]], i)

    def walk(self, walk: Walk) -> None:
        kinds = self.program.kinds(walk)
        for i, ancestors in self.program.walks(walk):
            self.case(walk.start[kinds[i]], i)
            for j in ancestors:
                self.case(walk.step[kinds[i] * len(walk.start) + kinds[j]], i, j)
        self.carry = []

    def zero(self, zero: Zero) -> None:
        self.write(zero.target, [0.0] * zero.target.size)

    def copy(self, copy: Copy) -> None:
        self.write(copy.target, self.read(copy.source))


#: A program of several statements with more operations than this stays as it is.
LIMIT = 50_000


def straightened(program: Program) -> Block | None:
    """All inputs, one after another, to all outputs; None where that cannot be, or would be too long."""
    if not all(statement.unrolls for statement in program.statements):
        return None
    if not is_straight(program) and sum(program.count().values()) > LIMIT:
        return None
    with undisturbed():
        return _Straight(program).block()


def is_straight(program: Program) -> bool:
    """Whether the program is one block that runs once."""
    only = program.statements[0] if len(program.statements) == 1 else None
    return isinstance(only, Each) and only.items == 1


class _Straight(Runner):
    """Runs the program over recorded scalars."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.recorder = Recorder()
        self.count = sum(b.size for b in program.inputs)
        numbers = iter(range(self.count))
        self.start_memory([self.recorder.input(next(numbers)) for _ in range(b.size)] for b in program.inputs)

    def block(self) -> Block:
        self.statements(self.program.statements)
        return finish(self.recorder, self.count, [x for values in self.outputs() for x in values])

    def fresh(self, buffer: Buffer) -> list[Scalar]:
        if buffer.data is None:
            return [self.recorder.zero] * buffer.size
        return [self.recorder.constant(x) for x in buffer.data.reshape(-1).tolist()]

    def evaluate(self, block: Block, inputs: list[Scalar]) -> list[Scalar]:
        nodes = block.replay(self.recorder, inputs)
        return [nodes[k] for k in block.outputs.tolist()]

    def zero(self, zero: Zero) -> None:
        self.write(zero.target, [self.recorder.zero] * zero.target.size)
