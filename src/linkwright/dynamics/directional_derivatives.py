"""First derivatives of the dynamics of mechanisms of any size, column by column.

The program of the dynamics, rolled where it has such a form, is pushed forward along each rate of q (in tangent space),
of v and of tau or a. Directions are a batch: several are computed side by side. Neither the code nor the time to
compile it grows with the number of links. A matrix takes O(nv · n) operations, and is exact to rounding.

Programs of whole matrices are faster for few rates: `tree_derivatives` and `closed.closed_derivatives`.
`RequestRules.by_directions` chooses. A test compares both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.base.arguments import check_memory, empty, real_array
from linkwright.base.arrays import Floats
from linkwright.dynamics.closed.consistent import checked_states
from linkwright.dynamics.functions import FUNCTIONS, Request
from linkwright.dynamics.programs import Kernels
from linkwright.kernels.foreign_arrays import check, in_memory
from linkwright.kernels.kernel import Kernel
from linkwright.kernels.variant import common_lead
from linkwright.tape.program import Program

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

BATCH = 256  # directions computed by one call
_ADVICE = "take fewer states, or products: mech.program('forward_dynamics').forward() and .reverse()"

#: The function that each function of derivatives differentiates.
OF = {"forward_dynamics_derivatives": "forward_dynamics", "inverse_dynamics_derivatives": "inverse_dynamics"}


def derivatives(mech: Mechanism, function: str, *arrays: Any, t: Any) -> tuple[Floats, Floats, Floats]:
    """The outputs (..., nv, nv) of a function of derivatives, for states of any batch shape, in the states' library."""
    kinds = check(function, dict(zip((*FUNCTIONS[function].inputs, "t"), (*arrays, t), strict=True)))
    if kinds & {"torch", "jax"}:
        answer: tuple[Floats, Floats, Floats] = in_memory(partial(_matrices, mech, function), (*arrays, t))
        return answer
    return _matrices(mech, function, *arrays, t)


def _matrices(mech: Mechanism, function: str, *states_and_time: Any) -> tuple[Floats, Floats, Floats]:
    *arrays, t = states_and_time
    row, nv = FUNCTIONS[function], mech.nv
    inputs = checked_states(mech, function, **dict(zip(row.inputs, arrays, strict=True)))
    time = real_array(f"{function}: t", t)
    leads = [*(x.shape[:-1] for x in inputs), time.shape]
    lead = common_lead(function, (*row.inputs, "t"), (*inputs, time), leads)
    count = math.prod(lead)
    check_memory(f"{function} of {count} states and {nv} rates", 3 * count * nv * nv, _ADVICE)
    matrices = [empty(f"{function}: {name}", (count, nv, nv), _ADVICE) for name in row.outputs]
    states = [np.broadcast_to(x, (*lead, x.shape[-1])).reshape(count, x.shape[-1]) for x in inputs]
    times = np.broadcast_to(time, lead).reshape(count)
    for k in range(count):
        if mech.closed and not mech.auxiliary.regularity.holds(states[0][k], float(times[k])):
            for matrix in matrices:
                matrix[k] = np.nan
            continue
        _at_state(mech, function, [x[k] for x in states], times[k], [matrix[k] for matrix in matrices])
    first, second, third = (matrix.reshape(*lead, nv, nv) for matrix in matrices)
    return first, second, third


def _at_state(mech: Mechanism, function: str, state: list[Floats], t: Any, matrices: list[Floats]) -> None:
    kernels, request = mech.kernels, Request(OF[function])
    if kernels.programs.can_roll(request):
        request = replace(request, form="rolled")
    operands = [*state, np.asarray(t)] if kernels.programs.timed(request) else state
    for name, matrix in zip(FUNCTIONS[function].inputs, matrices, strict=True):
        if name == "a":
            kernels.evaluate(Request("mass_matrix"), state[0], out=matrix)
            continue
        kernel = derivative_along(kernels, request, name)
        for columns, directions in _directions(mech, name, state[0]):
            matrix[:, columns] = kernel(*operands, directions).T


def _directions(mech: Mechanism, name: str, q: Floats) -> Iterator[tuple[slice, Floats]]:
    """Changes of an input by unit rates, some columns of a matrix after the other."""
    for first in range(0, mech.nv, BATCH):
        columns = slice(first, min(first + BATCH, mech.nv))
        unit = np.eye(columns.stop - first, mech.nv, first)
        yield columns, mech.kernels.evaluate(Request("rate"), q, unit) if name == "q" else unit


def derivative_along(kernels: Kernels, request: Request, name: str, output: int = 0) -> Kernel:
    """The kernel of (inputs, a direction of this input) → the derivative of an output in this direction."""
    programs = kernels.programs
    request = programs.resolved(request)

    def record() -> Program:
        from linkwright.tape.derivative import forward_program  # weight: derivatives

        program = programs.program(request)
        wanted = next(k for k in program.with_role("input") if program.buffers[k].name == name)
        return forward_program(program, (wanted,), program.with_role("output")[output])

    return kernels.further(("derivative along", name, request, output), record)
