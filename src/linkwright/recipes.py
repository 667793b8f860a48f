"""How each function of a mechanism is recorded: its inputs and outputs, unrolled and, where it has one, rolled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linkwright import closed_derivatives
from linkwright import closed_recipes as closed
from linkwright.base.locks import cached_property
from linkwright.closed_recipes import redundancy_of as redundancy_of
from linkwright.closed_recipes import residuals_of as residuals_of
from linkwright.constraints import inertial
from linkwright.dynamics.functions import FUNCTIONS, Request
from linkwright.errors import ModelError
from linkwright.mechanism.contraction import Contraction
from linkwright.mechanism.elements import JointForce, laws_of
from linkwright.mechanism.quantities import Quantity, quantities
from linkwright.programs import Maker
from linkwright.recursions import (
    assembly,
    composite,
    coordinates,
    derivatives,
    elements,
    gears,
    kinematics,
    measuring,
    newton_euler,
)
from linkwright.recursions.determined import contraction, undetermined
from linkwright.recursions.factor import Factor, ZeroPivot, factorise
from linkwright.recursions.holds import OpenLoop
from linkwright.recursions.levels import RolledSheet, UnrolledSheet
from linkwright.recursions.methods import METHODS
from linkwright.recursions.rolled import Rolled, rate_parents
from linkwright.recursions.traversal import SingularLink, Traversal, Unrolled
from linkwright.spatial.algebra import Array, cross, is_zero
from linkwright.tape.block import spoiled_together, with_every_input
from linkwright.tape.build import ProgramBuilder, Ref, trace
from linkwright.tape.derivative_block import Directions, push_forward
from linkwright.tape.program import ITEM, Each, Method, Program, Solve
from linkwright.tape.scalar import Recorder

DENSE = 12  # rates up to which M⁻¹ is unrolled too


class Question:
    """One request being recorded: the inputs by name, and the traversal over them."""

    def __init__(self, maker: Maker, request: Request, inputs: Mapping[str, Array]) -> None:
        self.maker, self.request, self.inputs = maker, request, dict(inputs)
        d = maker.description
        free = dict(zip(request.free, inputs["p"], strict=True)) if request.free else {}
        self.parameters: dict[str, Any] = free
        self.constants = {**d.parameters, **free, "TIME": inputs.get("t", 0.0)}
        self.gravity: Array = maker.gravity(free)

    @cached_property
    def names(self) -> dict[str, Any]:
        """What laws may use: parameters, TIME, and the quantities of the mechanism that they name."""
        laws = [law for e in self.maker.description.elements for law in laws_of(e)]
        return {**self.constants, **self.measured(tuple(quantities(*laws)))}

    def measured(self, wanted: Sequence[Quantity]) -> dict[str, Any]:
        """The values of quantities, by their keys."""
        return measuring.measure(self.traversal(), wanted, self.maker, self.parameters) if wanted else {}

    def traversal(self, only: Sequence[int] | None = None, **inputs: Array) -> Unrolled:
        """A fresh unrolled traversal over these inputs."""
        return Unrolled(self.maker.tree, {**self.inputs, **inputs}, self.parameters, only)

    def applied(self, *, loops: bool = True) -> bool:
        """Put the wrenches of elements and of the caller together, in body axes, as the input "wrench".

        Forces on joints that close loops are among them, unless `loops` is false.
        """
        maker = self.maker
        given = self.inputs.get("wrenches")
        rows: list[Any] = [np.zeros(6)] * maker.tree.n if given is None else [given[i] for i in range(maker.tree.n)]
        on_loops = maker.loop_forces if loops else []
        if not (maker.has_point_elements or on_loops or given is not None):
            return False
        t = self.traversal()
        found = elements.link_wrenches(t, maker.description.elements, maker.places(self.parameters), self.names)
        for i, wrench in (*found.items(), *elements.loop_wrenches(t, on_loops, self.names, self.parameters)):
            rows[i] = rows[i] + to_body(t.links[i].record, wrench)
        self.inputs["wrench"] = rows
        return True

    def pushed(self, more: Mapping[int, Array]) -> bool:
        """`applied`, with wrenches at link frames besides."""
        self.applied()
        rows = list(self.inputs.get("wrench", [np.zeros(6)] * self.maker.tree.n))
        for i, wrench in more.items():
            rows[i] = rows[i] + to_body(self.maker.tree.record(i, self.parameters), wrench)
        self.inputs["wrench"] = rows
        return True

    def joint_forces(self) -> Array | None:
        """The generalised forces of the laws of tree joints, or None."""
        if not self._tree_laws:
            return None
        return elements.joint_forces(self.traversal(), self._tree_laws, self.maker.joint_positions, self.names)

    def joint_laws(self) -> dict[tuple[int, int], Any]:
        """The force of the laws on each rate of a tree joint, by its position and index."""
        if not self._tree_laws:
            return {}
        return elements.joint_laws(self.traversal(), self._tree_laws, self.maker.joint_positions, self.names)

    @cached_property
    def _tree_laws(self) -> list[JointForce]:
        laws = (e for e in self.maker.description.elements if isinstance(e, JointForce))
        return [e for e in laws if e.joint in self.maker.joint_positions]

    def driven(self) -> Array:
        """tau with the forces of joint laws."""
        tau, extra = self.inputs["tau"], self.joint_forces()
        return tau if extra is None else tau + extra


def to_body(record: Mapping[str, Any], wrench: Array) -> Array:
    """A wrench at the link frame in its axes, at the body frame in its axes."""
    r, p = np.asarray(record["frame_r"]), np.asarray(record["frame_p"])
    force = r @ wrench[:3]
    return np.concatenate([force, r @ wrench[3:] + cross(p, force)])


def forward_dynamics(question: Question) -> Array:
    maker, gravity = question.maker, question.gravity
    if maker.closed:
        return closed.accelerations(question)[0]
    tau, wrenches = question.driven(), question.applied()
    name = "mass-matrix" if maker.coupled else question.request.method
    still = np.zeros(maker.tree.coordinates.nv)
    if name == "assembly":
        sheet = UnrolledSheet(question.traversal(tau=tau))
        return assembly.forward_dynamics(sheet, _contraction(maker), gravity, wrenches=wrenches)
    return METHODS[name](question.traversal(tau=tau, a=still), gravity, wrenches=wrenches)


def forward_dynamics_rolled(traversal: Traversal, maker: Maker, request: Request) -> Any:
    return METHODS[request.method](traversal, maker.gravity({}), wrenches=request.wrenches)


def _contraction(maker: Maker) -> Contraction:
    """The order in which the links of a tree are assembled."""
    try:
        return contraction(maker.tree)
    except SingularLink as error:
        name = maker.description.body_names[int(maker.topology.body[error.position])]
        raise ModelError(
            f"method='assembly' needs an inertia of {name!r} along its joint's freedom, since the tree branches below; "
            "give it a mass and an inertia, or use method='articulated-body'",
            element=name,
        ) from None


def inverse_dynamics(question: Question, **zeros: Array) -> Array:
    wrenches = question.applied()
    t = question.traversal(**zeros)
    tau = newton_euler.inverse_dynamics(t, question.gravity, wrenches=wrenches)
    extra = question.joint_forces()
    return tau if extra is None else tau - extra


def inverse_dynamics_rolled(traversal: Traversal, maker: Maker, request: Request) -> Any:
    return newton_euler.inverse_dynamics(traversal, maker.gravity({}), wrenches=request.wrenches)


def bias_forces(question: Question) -> Array:
    return inverse_dynamics(question, a=np.zeros(question.maker.tree.coordinates.nv))


def gravity_forces(question: Question) -> Array:
    zero = np.zeros(question.maker.tree.coordinates.nv)
    return newton_euler.inverse_dynamics(question.traversal(v=zero, a=zero), question.gravity)


def _in_frame(function: Callable[..., Array]) -> Callable[[Question], Array]:
    def record(question: Question) -> Array:
        r = question.request
        place = question.maker.place(r.frame, question.parameters)
        path = question.maker.path(place[0])
        return function(question.traversal(path), *place, *((r.reference,) if r.reference else ()))

    return record


def _in_frame_rolled(function: Callable[..., Array]) -> Callable[[Traversal, Maker, Request], Any]:
    def record(traversal: Traversal, maker: Maker, request: Request) -> Any:
        reference = (request.reference,) if request.reference else ()
        return function(traversal, *maker.place(request.frame), *reference)

    return record


def _weighty(function: Callable[[Traversal], Any]) -> Callable[[Traversal, Maker], Any]:
    """A function that divides by the whole mass; without mass it is an error."""

    def checked(traversal: Traversal, maker: Maker) -> Any:
        _refuse_massless(maker)
        return function(traversal)

    return checked


center_of_mass, momentum = _weighty(kinematics.center_of_mass), _weighty(kinematics.momentum)


pose, pose_rolled = _in_frame(kinematics.frame_pose), _in_frame_rolled(kinematics.frame_pose)
twist, twist_rolled = _in_frame(kinematics.frame_twist), _in_frame_rolled(kinematics.frame_twist)
jacobian = _in_frame(kinematics.frame_jacobian)
constraint_forces, closing, velocity_projection = closed.constraint_forces, closed.closing, closed.settling
closed_forward_derivatives = closed_derivatives.derivatives


def _refuse_massless(maker: Maker) -> None:
    if not np.any(maker.description.mass > 0):
        raise ModelError("no body has mass, so there is no centre of mass; give the bodies masses")


def reactions(question: Question) -> Array:
    """The wrench of each joint on its body, at the body frame in its axes; what gears exert is not in it."""
    t, forces = _geared(question)
    return np.stack([to_body(link.record, f) for link, f in zip(t.links, gears.without_gears(t, forces), strict=True)])


def _geared(question: Question) -> tuple[Unrolled, list[Any]]:
    """Newton's and Euler's equations of the links as tau moves them, and the forces of their gears."""
    t = question.traversal(a=forward_dynamics(question))
    newton_euler.joint_forces(t, question.gravity, wrenches=question.applied())
    return t, gears.gear_forces(t, question.joint_laws() if question.maker.coupled else {})


def gear_forces(question: Question) -> Array:
    """The force of each gear on its follower's coordinate."""
    return np.array(_geared(question)[1])


def applied_forces(question: Question) -> tuple[Array, Array]:
    """The wrenches of force elements on bodies, at their frames in their axes, and the forces of joint laws.

    The latter are on each joint's own rates, as `Tree.own_rates` has them: followers and loops have theirs.
    """
    maker = question.maker
    tree, joints = maker.tree, maker.topology.joint
    wrenches = np.stack(question.inputs["wrench"]) if question.applied(loops=False) else np.zeros((tree.n, 6))
    laws = {(int(joints[i]), k): law for (i, k), law in question.joint_laws().items()}
    if maker.loop_forces:
        laws |= elements.loop_laws(question.traversal(), maker.loop_forces, question.names, question.parameters)
    rates = [(j, k) for j, at in tree.own_rates.items() for k in range(at.stop - at.start)]
    return wrenches, np.array([laws.get(rate, 0.0) for rate in rates])


def inverse_dynamics_derivatives(question: Question) -> Any:
    a = question.inputs["a"]
    if question.maker.has_pair_derivatives:
        return derivatives.inverse_dynamics_derivatives(question.traversal(), question.gravity, a)
    dq, dv = _tape_derivatives(question, a)
    return np.array(dq), np.array(dv), composite.mass_matrix(question.traversal())


def _forward_derivative_parts(question: Question) -> tuple[Any, Factor, Any, Any]:
    """M, its factors, ∂τ/∂q and ∂τ/∂v at the acceleration that tau causes."""
    tau = question.inputs["tau"]
    if question.maker.has_pair_derivatives:
        return derivatives.forward_dynamics_parts(question.traversal(), question.gravity, tau)
    m = composite.mass_matrix(question.traversal())
    factor = factorise(m)
    h = bias_forces(question)
    a = factor.solve([tau[k] - h[k] for k in range(len(h))])
    return m, factor, *_tape_derivatives(question, np.array(a))


def _tape_derivatives(question: Question, a: Array) -> tuple[list[list[Any]], list[list[Any]]]:
    """∂τ/∂q (tangent) and ∂τ/∂v by tangents pushed through the recorded inverse dynamics.

    For joints whose motion subspace turns with their coordinates, and for force elements.
    """
    maker, inputs = question.maker, {**question.inputs, "a": a}
    request = replace(question.request, function="inverse_dynamics")
    shapes = maker.shapes(request)
    names = list(shapes)
    block, _, _ = trace(
        lambda *arrays: inverse_dynamics(Question(maker, request, dict(zip(names, arrays, strict=True)))),
        list(shapes.values()),
    )
    q = inputs["q"]
    recorder: Recorder = q.reshape(-1)[0].recorder
    flat = [recorder.lift(x) for name in names for x in np.asarray(inputs[name]).reshape(-1)]
    nv = maker.tree.coordinates.nv
    one = recorder.constant(1.0)
    tangents: list[Directions] = [{} for _ in flat]
    for k in range(nv):
        moved = coordinates.rate(question.traversal(v=np.eye(nv)[k]))
        for i, entry in enumerate(moved):
            if not is_zero(entry):
                tangents[i][k] = recorder.lift(entry)
        tangents[len(q) + k][nv + k] = one
    pushed = push_forward(block, block.replay(recorder, flat), tangents)
    dq = [[row.get(k, recorder.zero) for k in range(nv)] for row in pushed]
    dv = [[row.get(nv + k, recorder.zero) for k in range(nv)] for row in pushed]
    return dq, dv


def forward_dynamics_derivatives(maker: Maker, request: Request, shapes: dict[str, tuple[int, ...]]) -> Program:
    """∂a/∂q, ∂a/∂v, ∂a/∂tau: one block for M's factors and ∂τ, then M⁻¹ on all columns at once."""
    nv = maker.tree.coordinates.nv
    names = list(shapes)

    def parts(*arrays: Array) -> Any:
        question = Question(maker, request, dict(zip(names, arrays, strict=True)))
        m, factor, dq, dv = _forward_derivative_parts(question)
        if nv <= DENSE:
            eye = np.eye(nv)
            columns = [[-row[c] for row in d] for d in (dq, dv) for c in range(nv)]
            solved = [factor.solve(c) for c in columns] + [factor.solve(list(eye[c])) for c in range(nv)]
            return tuple(np.array(solved[k * nv : (k + 1) * nv]).T.reshape(nv, nv) for k in range(3))
        right = [[*(-x for x in dq[k]), *(-x for x in dv[k]), *np.eye(nv)[k]] for k in range(nv)]
        return np.array(m), np.array(right)

    block, _, _ = _traced(maker, parts, shapes)
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
    parent = None if maker.coupled else builder.column(rate_parents(maker.tree))
    method: Method = "cholesky" if parent is None else "ltl"
    builder.add(Solve(method, mass.operand, right.operand, solution.operand, nv, nv, 3 * nv, parent))
    _scatter(builder, solution, outputs, nv)
    return builder.build(single=False)


def _scatter(builder: ProgramBuilder, solution: Ref, outputs: list[Ref], nv: int) -> None:
    """Columns of one wide matrix to three square ones, row by row."""
    block, _, _ = trace(lambda x: x, [(3 * nv,)])
    source = solution.part(0, (3 * nv,)).at((3 * nv, ITEM))
    targets = [out.part(0, (nv,)).at((nv, ITEM)) for out in outputs]
    builder.add(Each(nv, (builder.case(block, [source], targets),)))


# -- recorders of single lines ---------------------------------------------------------------------------
def mass_matrix(traversal: Traversal, maker: Maker) -> Any:
    return composite.mass_matrix(traversal)


def kinetic_energy(traversal: Traversal, maker: Maker) -> Any:
    return kinematics.kinetic_energy(traversal)


def potential_energy(question: Question) -> Any:
    return kinematics.potential_energy(question.traversal(), question.gravity)


def potential_energy_rolled(traversal: Traversal, maker: Maker, request: Request) -> Any:
    return kinematics.potential_energy(traversal, maker.gravity({}))


def integrate(traversal: Traversal, maker: Maker) -> Any:
    return coordinates.integrate(traversal)


def difference(traversal: Traversal, maker: Maker) -> Any:
    return coordinates.difference(traversal)


def coordinate_rates(traversal: Traversal, maker: Maker) -> Any:
    return coordinates.rate(traversal)


def force_values(question: Question) -> Any:
    return measuring.force_values(question.maker.description.elements, question.names, question.measured)


def initial_values(question: Question) -> Any:
    return measuring.initial_values(question.maker.description.initial, question.measured)


def _traced(maker: Maker, function: Callable[..., Any], shapes: Mapping[str, tuple[int, ...]]) -> Any:
    """Record a function; a division by what is always zero is told by the joint that it belongs to."""
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


def _refuse_undetermined(maker: Maker, request: Request) -> None:
    """Forces must tell every joint's acceleration; with free parameters, only recording finds out."""
    spec = FUNCTIONS[request.function]
    if ("tau" in spec.inputs or spec.closed) and not request.free:
        masses = maker.rolls(request) and maker.as_masses(request)
        position = None if masses and maker.carried_by_constraints else undetermined(maker.tree)
        if position is not None:
            raise maker.singular(position)


def determined_by_constraints(maker: Maker) -> bool:
    """Whether forces alone do not tell every joint's acceleration, and with loops, rods and drivers they do.

    M on the null space of G must be positive definite, as drawn or, since that may be a singular position, nearby.
    """
    d, tree = maker.description, maker.tree
    if undetermined(tree) is None or not np.any(d.mass > 0.0):
        return False
    inertia = np.tile(np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]) * maker.size**2, (d.nb, 1))
    alike = replace(d, mass=np.full(d.nb, float(d.mass.max())), inertia=inertia * float(d.mass.max()), bindings={})
    rng, still = np.random.default_rng(0), np.zeros(tree.coordinates.nv)
    for change in (still, rng.uniform(-0.1, 0.1, len(still))):
        with np.errstate(invalid="ignore", divide="ignore"):  # in branches that `where` does not take
            q = coordinates.integrate(Unrolled(tree, {"q": maker.drawn, "dv": change}))
            state = {"q": np.asarray(q, float), "v": still, "t": 0.0}
            request = Request("settling")
            if closed.resists(Question(maker, request, state), Question(Maker(alike), request, state)):
                return True
    return False


def record(maker: Maker, request: Request) -> Program:
    """The program of a request with every link's arithmetic laid out and its constants folded."""
    _refuse_undetermined(maker, request)
    row, shapes = FUNCTIONS[request.function], maker.shapes(request)
    if row.of_tree is not None and not maker.closed:
        program: Program = row.of_tree(maker, request, shapes)
        return program
    names = list(shapes)

    def function(*arrays: Array) -> Any:
        question = Question(maker, request, dict(zip(names, arrays, strict=True)))
        return row.unrolled(question)

    block, out_shapes, single = _traced(maker, function, shapes)
    if "frame" not in FUNCTIONS[request.function].options:
        block = with_every_input(block)
    if out_shapes == [(len(maker.rate_units),)]:  # an answer of one number a rate
        first = sum(int(np.prod(shapes[n])) for n in names[: names.index("q")])
        block = spoiled_together(block, [range(first + k, first + k + 4) for k in maker.tree.euler_parameters])
    builder = ProgramBuilder(request.function)
    inputs = [builder.input(n, s) for n, s in shapes.items()]
    outputs = [builder.output(n, s) for n, s in zip(FUNCTIONS[request.function].outputs, out_shapes, strict=True)]
    builder.add(Each(1, (builder.case(block, inputs, outputs),)))
    return builder.build(single=single)


def record_rolled(maker: Maker, request: Request, *, packed: bool) -> Program:
    """The program of a request as loops over links; `packed` for kernels, that only ask for the answer."""
    _refuse_undetermined(maker, request)
    row = FUNCTIONS[request.function]
    builder = ProgramBuilder(request.function)
    inputs = {name: builder.input(name, shape) for name, shape in maker.shapes(request).items()}
    if "wrenches" in inputs:
        inputs["wrench"] = inputs["wrenches"]
    output = FUNCTIONS[request.function].outputs[0]
    if request.method == "assembly":
        sheet = RolledSheet(maker.tree, builder, inputs)
        tree, gravity = _contraction(maker), maker.gravity({})
        result = assembly.forward_dynamics(sheet, tree, gravity, wrenches=request.wrenches)
        sheet.finish(result, output)
    else:
        traversal = Rolled(maker.tree, builder, inputs, row.zero, packed=packed)
        result = row.loop(traversal, maker, request)
        traversal.finish(result, output)
    return builder.build(single=True)


def record_masses(maker: Maker, request: Request) -> Program:
    """The program of a request as loops over free bodies and over the constraints that hold them, joints included."""
    _refuse_undetermined(maker, request)
    inputs = list(maker.shapes(request).items())
    layout = maker.assembled_masses if request.method == "assembly" else maker.masses
    if request.function == "closing":
        return inertial.closing(layout, inputs)
    if request.function == "settling":
        return inertial.settling(layout, inputs)
    return inertial.forward_dynamics(layout, inputs, forces=request.function == "constraint_forces")
