"""A block cut in two: what is computed once, and what is computed again for other values of its last inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linkwright.tape.block import Block, Recorder, finish, operands_of


def split(block: Block, last: int) -> tuple[Block, Block]:
    """A block as two: what does not depend on its last inputs, and the other part.

    The second takes the outputs of the first, then these inputs, and gives what the block does.
    """
    first, base = block.first_input, block.first_operation
    rows = block.rows()
    late = np.zeros(base + len(rows), dtype=bool)
    late[base - last : base] = True
    for k, row in enumerate(rows, base):
        late[k] = late[list(operands_of(row))].any()
    used = {x for k, row in enumerate(rows, base) if late[k] for x in operands_of(row)} | set(block.outputs.tolist())
    crossing = np.array(sorted(x for x in used if x >= first and not late[x]), dtype=np.int32)
    recorder = Recorder()
    inputs = [recorder.input(k) for k in range(block.n_inputs)]
    nodes = block.replay(recorder, inputs)
    once = finish(recorder, block.n_inputs - last, [nodes[x] for x in crossing])
    chosen = np.flatnonzero(late[base:])
    number = np.zeros(len(late), dtype=np.int32)
    number[:first] = np.arange(first)
    number[crossing] = first + np.arange(len(crossing))
    number[base - last : base] = first + len(crossing) + np.arange(last)
    number[base + chosen] = first + len(crossing) + last + np.arange(len(chosen))
    op, args = block.op[chosen], block.args[chosen].copy()
    places = block.operand_places()[chosen]
    args[places] = number[args[places]]
    each = replace(block, n_inputs=len(crossing) + last, op=op, args=args, outputs=number[block.outputs])
    return once, each
