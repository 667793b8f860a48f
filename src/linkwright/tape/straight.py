"""Programs as one straight block: every statement recorded again, item by item."""

from __future__ import annotations

from linkwright.tape.block import Block, finish
from linkwright.tape.program import Program
from linkwright.tape.scalar import Recorder, Scalar, undisturbed
from linkwright.tape.statements import Case, Copy, Each, Operand, PartialVisitor, Walk, Zero

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


class _Straight(PartialVisitor[None]):
    def __init__(self, program: Program) -> None:
        self.program = program
        self.recorder = Recorder()
        self.count = 0
        self.memory: list[list[Scalar]] = []
        for buffer in program.buffers:
            if buffer.role == "input":
                own = [self.recorder.input(self.count + k) for k in range(buffer.size)]
                self.count += buffer.size
            elif buffer.data is not None:
                own = [self.recorder.constant(x) for x in buffer.data.reshape(-1).tolist()]
            else:
                own = [self.recorder.zero] * buffer.size
            self.memory.append(own)
        self.columns = [c.tolist() for c in program.columns]

    def block(self) -> Block:
        for statement in self.program.statements:
            statement.accept(self)
        pairs = zip(self.program.buffers, self.memory, strict=True)
        return finish(self.recorder, self.count, [x for b, own in pairs if b.role == "output" for x in own])

    def each(self, each: Each) -> None:
        dispatch = None if each.dispatch is None else self.columns[each.dispatch]
        for i in each.order_of_items():
            self.case(each.cases[dispatch[i] if dispatch else 0], i)

    def walk(self, walk: Walk) -> None:
        kinds = self.program.kinds(walk)
        for i, ancestors in self.program.walks(walk):
            carry = self.case(walk.start[kinds[i]], i)
            for j in ancestors:
                carry = self.case(walk.step[kinds[i] * len(walk.start) + kinds[j]], i, j, carry)

    def zero(self, zero: Zero) -> None:
        self.set(zero.target, [self.recorder.zero] * zero.target.size)

    def copy(self, copy: Copy) -> None:
        self.set(copy.target, self.get(copy.source))

    def start(self, operand: Operand, item: int, ancestor: int) -> int:
        return operand.start(lambda column, i: self.columns[column][i], item, ancestor)  # type: ignore[no-any-return]

    def get(self, operand: Operand, item: int = 0, ancestor: int = 0) -> list[Scalar]:
        start = self.start(operand, item, ancestor)
        return self.memory[operand.buffer][start : start + operand.size]

    def set(self, operand: Operand, values: list[Scalar], item: int = 0, ancestor: int = 0) -> None:
        start = self.start(operand, item, ancestor)
        self.memory[operand.buffer][start : start + operand.size] = values

    def case(self, case: Case, item: int, ancestor: int = 0, carry: list[Scalar] | None = None) -> list[Scalar]:
        block = self.program.blocks[case.block]
        inputs: list[Scalar] = []
        for operand in case.inputs:
            inputs.extend(carry or [] if operand.buffer < 0 else self.get(operand, item, ancestor))
        nodes = block.replay(self.recorder, inputs)
        results = [nodes[k] for k in block.outputs.tolist()]
        kept: list[Scalar] = []
        at = 0
        for operand in case.outputs:
            part = results[at : at + operand.size]
            at += operand.size
            if operand.buffer < 0:
                kept = part
                continue
            if operand.add:
                part = [old + x for old, x in zip(self.get(operand, item, ancestor), part, strict=True)]
            self.set(operand, part, item, ancestor)
        return kept
