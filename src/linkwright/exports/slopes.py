"""Derivatives of an exported function as one straight block of exactly the entries that are not zero by structure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from linkwright.dynamics.functions import FUNCTIONS, FunctionName
from linkwright.exports.subject import Subject
from linkwright.tape.block import Block
from linkwright.tape.build import record
from linkwright.tape.program import Program
from linkwright.tape.running import straightened

#: Operations of a function up to which its tape is differentiated: beside a recursion of its own, and without one.
_BESIDE, _ALONE = 1500, 4000


@dataclass(frozen=True)
class Slopes:
    """The block of all entries, and for (output, input) the rows and columns of its entries, in the block's order."""

    block: Block
    pattern: dict[tuple[int, int], tuple[list[int], list[int]]]


def slopes(subject: Subject, most: int) -> Slopes | None:
    """The derivatives of all outputs by all inputs; None where that is more than `most` operations."""
    if any(name in subject.program.count() for name in ("lt", "le", "eq", "floor")):
        return None  # conditions that choose have derivatives, but where they switch an exact pattern means little
    analytic = _analytic(subject)
    taped = _taped(subject) if subject.operations <= (_BESIDE if analytic else _ALONE) else None
    candidates = [one for one in (analytic, taped) if one is not None]
    best = min(candidates, key=lambda one: len(one.block), default=None)
    return best if best is not None and len(best.block) <= most else None


def _analytic(subject: Subject) -> Slopes | None:
    mech, program = subject.mech, subject.program
    plain = mech.nq == mech.nv and not mech.closed
    function = f"{subject.function}_derivatives"
    if function not in FUNCTIONS or not plain:
        return None
    row = FUNCTIONS[function]
    outputs = dict(zip(row.inputs, row.outputs, strict=True))  # the derivative by each input
    if {b.name for b in program.inputs} != set(outputs):
        return None  # time, parameters and wrenches have no part in the recursion
    derivatives = mech.program(cast(FunctionName, function))
    block = straightened(derivatives)
    if block is None:
        return None
    pattern: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    values = block.outputs.tolist()
    zeros = {k for k, x in enumerate(block.constants.tolist()) if x == 0.0}
    places = np.cumsum([0, *(b.size for b in derivatives.outputs)]).tolist()
    at = {b.name: places[k] for k, b in enumerate(derivatives.outputs)}
    chosen_values: list[int] = []
    for i, buffer in enumerate(program.inputs):
        first, n = at[outputs[buffer.name]], buffer.size
        entries = [(r, c) for r in range(n) for c in range(n) if values[first + r * n + c] not in zeros]
        pattern[0, i] = [r for r, _ in entries], [c for _, c in entries]
        chosen_values += [values[first + r * n + c] for r, c in entries]
    chosen = Block(
        block.constants, block.n_inputs, block.op, block.args, np.array(chosen_values, np.int32), block.tables
    )
    return Slopes(chosen, pattern)


def _taped(subject: Subject) -> Slopes | None:
    program = subject.program
    pattern: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    parts: list[Program] = []
    for o in range(len(program.outputs)):
        for i in range(len(program.inputs)):
            matrix = program.jacobian(o, i)
            if matrix.tangent is not None:
                return None
            pattern[o, i] = matrix.rows.tolist(), matrix.cols.tolist()
            if len(matrix.rows):
                parts.append(matrix.program)
    if not parts:
        return Slopes(_nothing(sum(b.size for b in program.inputs)), pattern)
    whole = record(
        lambda *arrays: np.concatenate([np.atleast_1d(part(*arrays)).reshape(-1) for part in parts]),
        *(b.shape for b in program.inputs),
    )
    block = straightened(whole)
    return None if block is None else Slopes(block, pattern)


def _nothing(inputs: int) -> Block:
    none = np.zeros((0, 3), np.int32)
    return Block(np.zeros(0), inputs, np.zeros(0, np.uint8), none, np.zeros(0, np.int32))
