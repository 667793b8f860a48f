"""From a request to its program: a function's recorder run over links laid out, over loops, or over free bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from linkwright.constraints import inertial
from linkwright.dynamics.closed.loop_constraints import OpenLoop
from linkwright.dynamics.context import Question, RolledQuestion
from linkwright.dynamics.functions import FUNCTIONS, Request
from linkwright.dynamics.inertia_checks import undetermined
from linkwright.dynamics.methods.factor import ZeroPivot
from linkwright.dynamics.requests import RequestRules
from linkwright.dynamics.traversals.traversal import SingularLink
from linkwright.errors import ModelError
from linkwright.spatial.algebra import Array
from linkwright.tape.block import spoiled_together, with_every_input
from linkwright.tape.build import ProgramBuilder, trace
from linkwright.tape.program import Each, Program


def traced(maker: RequestRules, function: Callable[..., Any], shapes: Mapping[str, tuple[int, ...]]) -> Any:
    """Record a function; a division by what is always zero is reported with the joint that it belongs to."""
    try:
        return trace(function, list(shapes.values()))
    except SingularLink as error:
        raise maker.singular(error.position) from None
    except OpenLoop as error:
        text = f"{error.closing} cannot be closed: fixed joints hold its triads apart; move a triad, or free a joint"
        raise ModelError(text, element=error.closing.name) from None
    except ZeroPivot as error:
        at = maker.tree.coordinates.v_at
        raise maker.singular(int(np.flatnonzero(at <= error.row)[-1])) from None


def _refuse_undetermined(maker: RequestRules, request: Request) -> None:
    """Forces must determine every joint's acceleration; with free parameters, only recording shows whether they do."""
    spec = FUNCTIONS[request.function]
    if ("tau" in spec.inputs or spec.closed) and not request.free:
        masses = maker.rolls(request) and maker.as_masses(request)
        position = None if masses and maker.carried_by_constraints else undetermined(maker.tree)
        if position is not None:
            raise maker.singular(position)


def record(maker: RequestRules, request: Request) -> Program:
    """The program of a request with every link's arithmetic laid out and its constants folded."""
    _refuse_undetermined(maker, request)
    row, shapes = FUNCTIONS[request.function], maker.shapes(request)
    if row.of_tree is not None and not maker.closed:
        program: Program = row.of_tree(maker, request, shapes)
        return program
    names = list(shapes)

    def function(*arrays: Array) -> Any:
        return row.record(Question(maker, request, dict(zip(names, arrays, strict=True))))

    block, out_shapes, single = traced(maker, function, shapes)
    if "frame" not in row.options:
        block = with_every_input(block)
    if out_shapes == [(len(maker.rate_units),)]:  # an answer of one number a rate
        first = sum(int(np.prod(shapes[n])) for n in names[: names.index("q")])
        block = spoiled_together(block, [range(first + k, first + k + 4) for k in maker.tree.euler_parameters])
    builder = ProgramBuilder(request.function)
    inputs = [builder.input(n, s) for n, s in shapes.items()]
    outputs = [builder.output(n, s) for n, s in zip(row.outputs, out_shapes, strict=True)]
    builder.add(Each(1, (builder.case(block, inputs, outputs),)))
    return builder.build(single=single)


def record_rolled(maker: RequestRules, request: Request, *, packed: bool) -> Program:
    """The program of a request as loops over links; `packed` for kernels, that only ask for the answer."""
    _refuse_undetermined(maker, request)
    row, builder = FUNCTIONS[request.function], ProgramBuilder(request.function)
    context = RolledQuestion(maker, request, builder, packed=packed)
    context.finish(row.record(context), row.outputs[0])
    return builder.build(single=True)


def record_masses(maker: RequestRules, request: Request) -> Program:
    """The program of a request as loops over free bodies and over the constraints that hold them, joints included."""
    _refuse_undetermined(maker, request)
    inputs = list(maker.shapes(request).items())
    layout = maker.assembled_masses if request.method == "assembly" else maker.masses
    if request.function == "closing":
        return inertial.closing(layout, inputs)
    if request.function == "settling":
        return inertial.settling(layout, inputs)
    return inertial.forward_dynamics(layout, inputs, forces=request.function == "constraint_forces")
