"""How a recorded function of a state changes with it: tangents of q and v pushed through the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from linkwright.dynamics.body_quantities import rate
from linkwright.dynamics.recording_context import RecordingContext
from linkwright.spatial.algebra import Array, is_zero
from linkwright.tape.block import Recorder
from linkwright.tape.build import trace
from linkwright.tape.derivative_blocks import Directions, push_forward


def state_derivatives(context: RecordingContext, function: Callable[..., Array], inputs: Mapping[str, Array]) -> Array:
    """(n, 2 nv): ∂/∂q in tangent space, then ∂/∂v, of a function with n outputs, at the state of a context.

    The function takes `inputs` in their order, of which q and v are the first.
    """
    block = trace(function, [np.shape(array) for array in inputs.values()])[0]
    q, nv = inputs["q"], context.factory.tree.coordinates.nv
    recorder: Recorder = q.reshape(-1)[0].recorder
    flat = [recorder.lift(x) for array in inputs.values() for x in np.asarray(array).reshape(-1)]
    one = recorder.constant(1.0)
    tangents: list[Directions] = [{} for _ in flat]
    for k in range(nv):
        for i, entry in enumerate(rate(context.traversal(v=np.eye(nv)[k]))):
            if not is_zero(entry):
                tangents[i][k] = recorder.lift(entry)
        tangents[len(q) + k][nv + k] = one
    pushed = push_forward(block, block.replay(recorder, flat), tangents)
    return np.array([[row.get(k, recorder.zero) for k in range(2 * nv)] for row in pushed], dtype=object)
