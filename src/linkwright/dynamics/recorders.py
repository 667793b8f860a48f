"""How the functions of a mechanism are recorded: which recursion, with what before and after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linkwright.dynamics import body_quantities
from linkwright.dynamics import dynamics_derivatives as derivatives
from linkwright.dynamics import recording_context as gears
from linkwright.dynamics.functions import FUNCTIONS, Request
from linkwright.dynamics.inertia_checks import contraction
from linkwright.dynamics.methods import assembly_method as assembly
from linkwright.dynamics.methods import mass_matrix as composite
from linkwright.dynamics.methods import newton_euler
from linkwright.dynamics.methods.by_name import METHODS
from linkwright.dynamics.methods.ltdl_factor import Factor, factorise
from linkwright.dynamics.recording_context import Context, RecordingContext, traced
from linkwright.dynamics.requests import RequestRules
from linkwright.dynamics.tangents import state_derivatives
from linkwright.dynamics.traversals.rolled import rate_parents
from linkwright.dynamics.traversals.traversal import SingularLink, Traversal, Unrolled
from linkwright.dynamics.tree_derivatives import TreeDerivatives
from linkwright.errors import ModelError
from linkwright.model.tree_contraction import Contraction
from linkwright.spatial.algebra import Array
from linkwright.tape.build import ProgramBuilder, Ref, trace, with_every_input
from linkwright.tape.program import ITEM, Each, Method, Program, Solve

DENSE = 12  # rates up to which M⁻¹ is unrolled too


def forward_dynamics(context: Context) -> Any:
    factory, gravity = context.factory, context.gravity
    if factory.closed and isinstance(context, RecordingContext):
        from linkwright.dynamics.closed.closed_recorders import accelerations  # weight: constraints

        return accelerations(context)[0]
    tau, wrenches = context.driven(), context.applied()
    name = "mass-matrix" if factory.coupled else context.request.method
    if name == "assembly":
        return assembly.forward_dynamics(context.sheet(tau=tau), _contraction(factory), gravity, wrenches=wrenches)
    return METHODS[name](context.traversal(tau=tau, zero=("a",)), gravity, wrenches=wrenches)


def _contraction(factory: RequestRules) -> Contraction:
    """The order in which the links of a tree are assembled."""
    try:
        return contraction(factory.tree)
    except SingularLink as error:
        name = factory.description.body_names[int(factory.topology.body[error.position])]
        raise ModelError(
            f"method='assembly' needs an inertia of {name!r} along its joint's freedom, since the tree branches below; "
            "give it a mass and an inertia, or use method='articulated-body'",
            element=name,
        ) from None


def inverse_dynamics(context: Context, zero: Sequence[str] = ()) -> Any:
    wrenches = context.applied()
    tau = newton_euler.inverse_dynamics(context.traversal(zero=zero), context.gravity, wrenches=wrenches)
    forces = context.joint_forces()
    return tau if forces is None else tau - forces


def bias_forces(context: Context) -> Any:
    return inverse_dynamics(context, zero=("a",))


def gravity_forces(context: Context) -> Any:
    return newton_euler.inverse_dynamics(context.traversal(zero=("v", "a")), context.gravity)


def _in_frame(function: Callable[..., Any]) -> Callable[[Context], Any]:
    """The recorder of a function of one frame, which takes the links that carry the frame."""

    def record(context: Context) -> Any:
        tree, r = context.factory.tree, context.request
        position, *placement = tree.place(r.frame, context.parameters)
        reference = (r.reference,) if r.reference else ()
        return function(context.traversal(tree.topology.path(position)), position, *placement, *reference)

    return record


def _of_links(function: Callable[[Traversal], Any], *, massive: bool = False) -> Callable[[Context], Any]:
    """The recorder of a recursion that needs nothing but the links, `massive` if it divides by the whole mass."""

    def record(context: Context) -> Any:
        if massive and not np.any(context.factory.description.mass > 0):
            raise ModelError("no body has mass, so there is no centre of mass; give the bodies masses")
        return function(context.traversal())

    return record


mass_matrix = _of_links(composite.mass_matrix)
kinetic_energy = _of_links(body_quantities.kinetic_energy)
center_of_mass = _of_links(body_quantities.center_of_mass, massive=True)
momentum = _of_links(body_quantities.momentum, massive=True)
integrate = _of_links(body_quantities.integrate)
difference = _of_links(body_quantities.difference)
coordinate_rates = _of_links(body_quantities.rate)
pose, twist = _in_frame(body_quantities.frame_pose), _in_frame(body_quantities.frame_twist)
jacobian = _in_frame(body_quantities.frame_jacobian)


def potential_energy(context: Context) -> Any:
    return body_quantities.potential_energy(context.traversal(), context.gravity)


def reactions(context: RecordingContext) -> Array:
    """The wrench of each joint on its body, at the body frame in its axes; what gears exert is not in it."""
    t, forces = _geared(context)
    return np.stack([link.frame.inward(f) for link, f in zip(t.links, gears.without_gears(t, forces), strict=True)])


def _geared(context: RecordingContext) -> tuple[Unrolled, list[Any]]:
    """Newton's and Euler's equations of the links as tau moves them, and the forces of their gears."""
    t = context.traversal(a=forward_dynamics(context))
    newton_euler.joint_forces(t, context.gravity, wrenches=context.applied())
    return t, gears.gear_forces(t, context.elements.tree_laws if context.factory.coupled else {})


def gear_forces(context: RecordingContext) -> Array:
    """The force of each gear on its follower's coordinate."""
    return np.array(_geared(context)[1])


def applied_forces(context: RecordingContext) -> tuple[Array, Array]:
    """The wrenches of force elements on bodies, at their frames in their axes, and the forces of joint laws.

    The latter are on each joint's own rates, as `Tree.own_rates` has them: followers and loops have theirs.
    """
    factory = context.factory
    tree, joints = factory.tree, factory.topology.joint
    wrenches = np.stack(context.inputs["wrench"]) if context.applied(loops=False) else np.zeros((tree.n, 6))
    laws = {(int(joints[i]), k): law for (i, k), law in context.elements.tree_laws.items()}
    laws |= context.elements.loop_laws
    rates = [(j, k) for j, at in tree.own_rates.items() for k in range(at.stop - at.start)]
    return wrenches, np.array([laws.get(rate, 0.0) for rate in rates])


def inverse_dynamics_derivatives(context: RecordingContext) -> Any:
    a = context.inputs["a"]
    if context.factory.has_pair_derivatives:
        return derivatives.inverse_dynamics_derivatives(context.traversal(), context.gravity, a)
    return *_tape_derivatives(context, a), composite.mass_matrix(context.traversal())


def _forward_derivative_parts(context: RecordingContext) -> tuple[Any, Factor, Any, Any]:
    """M, its factors, ∂τ/∂q and ∂τ/∂v at the acceleration that tau causes."""
    tau = context.inputs["tau"]
    if context.factory.has_pair_derivatives:
        return derivatives.forward_dynamics_parts(context.traversal(), context.gravity, tau)
    m = composite.mass_matrix(context.traversal())
    factor = factorise(m)
    h = bias_forces(context)
    a = factor.solve([tau[k] - h[k] for k in range(len(h))])
    return m, factor, *_tape_derivatives(context, np.array(a))


def _tape_derivatives(context: RecordingContext, a: Array) -> tuple[Array, Array]:
    """∂τ/∂q (tangent) and ∂τ/∂v by tangents pushed through the recorded inverse dynamics.

    For joints whose motion subspace turns with their coordinates, and for force elements.
    """
    factory, request = context.factory, replace(context.request, function="inverse_dynamics")
    inputs = {name: {**context.inputs, "a": a}[name] for name in factory.shapes(request)}

    def torques(*arrays: Array) -> Array:
        return np.asarray(inverse_dynamics(RecordingContext(factory, request, dict(zip(inputs, arrays, strict=True)))))

    rows = state_derivatives(context, torques, inputs)
    nv = factory.tree.coordinates.nv
    return rows[:, :nv], rows[:, nv:]


def forward_dynamics_derivatives(
    factory: RequestRules, request: Request, shapes: dict[str, tuple[int, ...]]
) -> Program | None:
    """∂a/∂q, ∂a/∂v, ∂a/∂tau: ∂τ and M⁻¹ on all columns; laid out for few rates.

    None for closed mechanisms that `closed.derivatives` is for.
    """
    nv = factory.tree.coordinates.nv
    if factory.closed:
        from linkwright.dynamics.closed import closed_derivatives  # weight: constraints

        over_rates = nv > DENSE and closed_derivatives.covers(factory)
        return closed_derivatives.record(factory, request, shapes) if over_rates else None
    if nv > DENSE and factory.has_pair_derivatives and not factory.coupled:
        return _over_rates(factory, request, shapes)
    names = list(shapes)

    def parts(*arrays: Array) -> Any:
        context = RecordingContext(factory, request, dict(zip(names, arrays, strict=True)))
        m, factor, dq, dv = _forward_derivative_parts(context)
        if nv <= DENSE:
            eye = np.eye(nv)
            columns = [[-row[c] for row in d] for d in (dq, dv) for c in range(nv)]
            solved = [factor.solve(c) for c in columns] + [factor.solve(list(eye[c])) for c in range(nv)]
            return tuple(np.array(solved[k * nv : (k + 1) * nv]).T.reshape(nv, nv) for k in range(3))
        right = [[*(-x for x in dq[k]), *(-x for x in dv[k]), *np.eye(nv)[k]] for k in range(nv)]
        return np.array(m), np.array(right)

    block, _, _ = traced(factory, parts, shapes)
    block = with_every_input(block)
    builder = ProgramBuilder(request.function)
    inputs = [builder.input(n, s) for n, s in shapes.items()]
    outputs = [builder.output(n, (nv, nv)) for n in ("da_dq", "da_dv", "da_dtau")]
    if nv <= DENSE:
        builder.add(Each(1, (builder.case(block, inputs, outputs),)))
        return builder.build(single=False)
    mass, right = builder.temporary("mass", (nv, nv)), builder.temporary("right", (nv, 3 * nv))
    builder.add(Each(1, (builder.case(block, inputs, [mass, right]),)))
    solution = builder.temporary("solution", (nv, 3 * nv))
    parent = None if factory.coupled else builder.column(rate_parents(factory.tree))
    method: Method = "cholesky" if parent is None else "ltl"
    builder.add(Solve(method, mass.operand, right.operand, solution.operand, nv, nv, 3 * nv, parent))
    _scatter(builder, solution, outputs, nv)
    return builder.build(single=False)


def _over_rates(factory: RequestRules, request: Request, shapes: dict[str, tuple[int, ...]]) -> Program:
    """The same by statements over rates."""
    nv = factory.tree.coordinates.nv
    builder = ProgramBuilder(request.function)
    inputs = {name: builder.input(name, shape) for name, shape in shapes.items()}
    outputs = [builder.output(n, (nv, nv)) for n in FUNCTIONS[request.function].outputs]
    tree = TreeDerivatives(builder, factory.tree)
    state = {name: shape for name, shape in shapes.items() if name != "tau"}

    def recursion(*arrays: Array) -> Array:
        context = RecordingContext(factory, request, dict(zip(state, arrays, strict=True)))
        return tree.recursion(context.traversal(), context.gravity)

    tree.first(traced(factory, recursion, state)[0], [inputs[name] for name in state])
    tree.mass_matrix()
    if not tree.order.straight:
        tree.by_a_solver(inputs["tau"], outputs)
        return builder.build(single=False)
    tree.solved_accelerations(inputs["tau"])
    tree.force_derivatives()
    tree.minus_inverse(outputs)
    return builder.build(single=False)


def _scatter(builder: ProgramBuilder, solution: Ref, outputs: list[Ref], nv: int) -> None:
    """Columns of one wide matrix to three square ones, row by row."""
    block, _, _ = trace(lambda x: x, [(3 * nv,)])
    source = solution.part(0, (3 * nv,)).at((3 * nv, ITEM))
    targets = [out.part(0, (nv,)).at((nv, ITEM)) for out in outputs]
    builder.add(Each(nv, (builder.case(block, [source], targets),)))


def force_values(context: RecordingContext) -> Any:
    return context.elements.force_values()


def initial_values(context: RecordingContext) -> Any:
    return context.elements.initial_values(context.factory.description.initial)
