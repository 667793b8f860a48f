"""Forward accumulation of programs: every statement with the tangents of its numbers beside them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from linkwright.tape.activity import varied
from linkwright.tape.build import ProgramBuilder
from linkwright.tape.derivative_block import Directions, push_forward
from linkwright.tape.derivative_solve import fixed, forward_solve
from linkwright.tape.program import Program
from linkwright.tape.recorder import undisturbed
from linkwright.tape.scalar import Scalar
from linkwright.tape.statements import Case, Copy, Each, Loop, Operand, Solve, Walk, Zero
from linkwright.tape.wiring import Wiring


def forward_program(program: Program, wrt: Iterable[int], output: int | None = None) -> Program:
    """(inputs, tangents of the input buffers `wrt`) → (outputs, their tangents).

    With `output`, the tangent of this output buffer is all that comes out.
    """
    with undisturbed():
        return _Forward(program, tuple(wrt), output).build()


class _Forward:
    def __init__(self, program: Program, wrt: tuple[int, ...], output: int | None) -> None:
        self.program = program
        self.marks = varied(program, wrt)
        self.only = output
        self.builder = builder = ProgramBuilder.onto(program, f"{program.name}_forward", blocks=False)
        self.tangents: dict[int, int] = {}  # buffer → the buffer of its tangents
        for k in wrt:
            self._tangent_buffer(k)
        for k in program.with_role("output") if output is None else [output]:
            tangent = Operand(self._tangent_buffer(k), program.buffers[k].size)
            if not self.marks.marks[k].all():
                builder.add(Zero(tangent))
        if output is not None:
            builder.hide_outputs(program)

    def _tangent_buffer(self, buffer: int) -> int:
        if buffer not in self.tangents:
            of = self.program.buffers[buffer]
            role = "temporary" if of.role == "output" and self.only not in (None, buffer) else of.role
            tangent = self.builder.buffer(self.builder.free_name(f"d_{of.name}"), role, of.shape)
            self.tangents[buffer] = tangent.operand.buffer
        return self.tangents[buffer]

    def build(self) -> Program:
        for statement in self.program.statements:
            statement.accept(self)
        return self.builder.build(single=self.only is not None)

    def tangent(self, operand: Operand) -> Operand:
        """The tangents of an operand's numbers."""
        return replace(operand, buffer=self._tangent_buffer(operand.buffer))

    def each(self, each: Each) -> None:
        self.builder.add(replace(each, cases=tuple(self.case(c, False) for c in each.cases)))

    def walk(self, walk: Walk) -> None:
        carried = self.marks.carried(walk)
        start, step = (tuple(self.case(c, carried) for c in cases) for cases in (walk.start, walk.step))
        self.builder.add(replace(walk, start=start, step=step))

    def zero(self, zero: Zero) -> None:
        self.builder.add(zero)
        if self.marks.any(zero.target):
            self.builder.add(Zero(self.tangent(zero.target)))

    def copy(self, copy: Copy) -> None:
        self.builder.add(copy)
        if self.marks.any(copy.source):
            self.builder.add(Copy(self.tangent(copy.source), self.tangent(copy.target)))
        elif self.marks.any(copy.target):
            self.builder.add(Zero(self.tangent(copy.target)))

    def case(self, case: Case, carried: bool) -> Case:
        """The block and its tangents in one block; a carry is followed by its tangents in the same operand."""
        wiring = Wiring()
        zero = wiring.recorder.zero
        block = self.program.blocks[case.block]
        values: list[list[Scalar]] = []
        tangents: list[list[Scalar]] = []
        for operand in case.inputs:
            if operand.buffer < 0:
                both = wiring.read(replace(operand, size=operand.size * (1 + carried)), keep=True)
                values.append(both[: operand.size])
                tangents.append(both[operand.size :] if carried else [zero] * operand.size)
            else:
                values.append(wiring.read(operand))
        for operand in case.inputs:
            if operand.buffer >= 0:
                marked = self.marks.of(operand).tolist()
                read = wiring.read(self.tangent(operand)) if any(marked) else [zero] * operand.size
                tangents.append([t if m else zero for t, m in zip(read, marked, strict=True)])
        nodes = block.replay(wiring.recorder, [x for part in values for x in part])
        pushed = push_forward(block, nodes, [_direction(t) for part in tangents for t in part])
        results = [nodes[k] for k in block.outputs.tolist()]
        slopes = [d.get(0, zero) for d in pushed]
        late: list[tuple[Operand, list[Scalar]]] = []
        at = 0
        for operand in case.outputs:
            part, d_part = results[at : at + operand.size], slopes[at : at + operand.size]
            at += operand.size
            if operand.buffer < 0:
                late.append((replace(operand, size=operand.size * (1 + carried)), part + d_part if carried else part))
                continue
            wiring.write(operand, part)
            if self.marks.any(operand):
                wiring.write(self.tangent(operand), d_part)
        for operand, part in late:
            wiring.write(operand, part)
        return wiring.case(self.builder)

    def loop(self, loop: Loop) -> None:
        outside, self.builder.statements = self.builder.statements, []
        for statement in loop.body:
            statement.accept(self)
        body, self.builder.statements = tuple(self.builder.statements), outside
        carry = list(loop.carry)
        for current, following in loop.carry:
            if self.marks.any(current):
                carry.append((self.tangent(current), self.tangent(following)))
        self.builder.add(replace(loop, body=body, carry=tuple(carry)))

    def solve(self, solve: Solve) -> None:
        self.builder.add(solve)
        if not self.marks.any(solve.solution):
            return
        matrix, rhs, solution = (fixed(self.program, o) for o in (solve.matrix, solve.rhs, solve.solution))
        d_matrix = self.tangent(matrix) if self.marks.any(matrix) else None
        d_rhs = self.tangent(rhs) if self.marks.any(rhs) else None
        if d_matrix is None and d_rhs is None:
            self.builder.add(Zero(self.tangent(solution)))
        else:
            forward_solve(self.builder, self.program, solve, d_matrix, d_rhs, self.tangent(solution))


def _direction(tangent: Scalar) -> Directions:
    return {} if tangent.value == 0.0 else {0: tangent}
