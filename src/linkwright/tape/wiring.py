"""A case under recording: operands read as fresh inputs, scalars written to operands, what is not read left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linkwright.tape import operations as O
from linkwright.tape.block import Block, finish
from linkwright.tape.build import ProgramBuilder
from linkwright.tape.recorder import Recorder
from linkwright.tape.scalar import Scalar
from linkwright.tape.statements import Case, Operand


class Wiring:
    """Collects the operands of one block while it is recorded; `case` makes the block and its case."""

    def __init__(self) -> None:
        self.recorder = Recorder()
        self.inputs: list[tuple[Operand, bool]] = []
        self.outputs: list[Operand] = []
        self.results: list[Scalar] = []
        self.count = 0

    def read(self, operand: Operand, *, keep: bool = False) -> list[Scalar]:
        """The operand's numbers as inputs; it stays in the case if one of them is used, or to `keep`."""
        fresh = [self.recorder.input(self.count + k) for k in range(operand.size)]
        self.count += operand.size
        self.inputs.append((operand, keep))
        return fresh

    def write(self, operand: Operand, values: list[Scalar]) -> None:
        """Leave the values at the operand; adding nothing but zeros is left out."""
        if not (operand.add and all(x.value == 0.0 for x in values)):
            self.outputs.append(operand)
            self.results.extend(values)

    def case(self, builder: ProgramBuilder) -> Case:
        block = finish(self.recorder, self.count, self.results)
        used = _used_inputs(block)
        keep = np.zeros(self.count, dtype=bool)
        operands, at = [], 0
        for operand, always in self.inputs:
            part = slice(at, at + operand.size)
            at += operand.size
            if always or used[part].any():
                operands.append(operand)
                keep[part] = True
        return Case(builder.block(_with_inputs(block, keep)), tuple(operands), tuple(self.outputs))


def _operand_places(block: Block) -> np.ndarray:
    """Which entries of `args` number values (the others are filled up, or number a table)."""
    arity = np.array([o.arity for o in O.OPERATIONS])[block.op]
    places: np.ndarray = np.arange(3) < arity[:, None]
    return places


def _used_inputs(block: Block) -> np.ndarray:
    used = np.zeros(block.first_operation + len(block), dtype=bool)
    used[block.args[_operand_places(block)]] = True
    used[block.outputs] = True
    return used[block.first_input : block.first_operation]


def _with_inputs(block: Block, keep: np.ndarray) -> Block:
    """The block without the inputs that are not kept; nothing uses them."""
    if keep.all():
        return block
    stays = np.ones(block.first_operation + len(block), dtype=bool)
    stays[block.first_input : block.first_operation] = keep
    number = (np.cumsum(stays) - 1).astype(np.int32)
    args, places = block.args.copy(), _operand_places(block)
    args[places] = number[args[places]]
    return replace(block, n_inputs=int(keep.sum()), args=args, outputs=number[block.outputs])
