"""Programs as one straight block: every statement recorded again, item by item."""

from __future__ import annotations

from linkwright.tape.block import Block, finish
from linkwright.tape.program import Buffer, Program
from linkwright.tape.recorder import Recorder, undisturbed
from linkwright.tape.running import Runner
from linkwright.tape.scalar import Scalar
from linkwright.tape.statements import Each, Zero

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
