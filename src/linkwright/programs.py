"""From a question about a mechanism to the program that answers it: which recursion, unrolled or rolled.

`Mechanism` asks with a `Request`; the answer is a `Program`. Up to `UNROLL` links a recursion is unrolled and its
constants folded; beyond, it is rolled into loops over links.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from linkwright.errors import ModelError, NameNotFound
from linkwright.mechanism.description import GROUND, Description
from linkwright.mechanism.elements import JointForce
from linkwright.mechanism.expression import Expression
from linkwright.mechanism.topology import Topology, span
from linkwright.mechanism.tree import Tree
from linkwright.recursions import (
    articulated_body,
    composite,
    coordinates,
    derivatives,
    elements,
    kinematics,
    newton_euler,
)
from linkwright.recursions.factor import Factor, factorise, is_zero
from linkwright.recursions.rolled import Rolled
from linkwright.recursions.traversal import Traversal, Unrolled
from linkwright.spatial.algebra import Array, cross
from linkwright.tape.build import ProgramBuilder, Ref, trace
from linkwright.tape.derivative_block import Directions, push_forward
from linkwright.tape.program import ITEM, Each, Method, Program, Solve
from linkwright.tape.scalar import Recorder

UNROLL = 64  # links up to which a recursion is unrolled
DENSE = 12  # rates up to which M⁻¹ is unrolled too
FORWARD_METHODS = ("articulated-body", "mass-matrix")


@dataclass(frozen=True)
class Request:
    """What is asked: a function of the mechanism and its options."""

    function: str
    method: str = ""
    wrenches: bool = False
    frame: str = ""
    reference: str = ""
    free: tuple[str, ...] = ()
    form: str = ""  # "unrolled" or "rolled" where the caller insists


class Question:
    """One request being recorded: the inputs by name, and the traversal over them."""

    def __init__(self, maker: Maker, request: Request, inputs: Mapping[str, Array]) -> None:
        self.maker, self.request, self.inputs = maker, request, dict(inputs)
        d = maker.description
        free = dict(zip(request.free, inputs["p"], strict=True)) if request.free else {}
        self.parameters: dict[str, Any] = free
        self.names = {**d.parameters, **free, "TIME": inputs.get("t", 0.0)}
        self.gravity: Array = maker.gravity(free)

    def traversal(self, only: Sequence[int] | None = None, **inputs: Array) -> Unrolled:
        """A fresh unrolled traversal over these inputs."""
        return Unrolled(self.maker.tree, {**self.inputs, **inputs}, self.parameters, only)

    def applied(self) -> bool:
        """Put the wrenches of elements and of the caller together, in body axes, as the input "wrench"."""
        maker = self.maker
        given = self.inputs.get("wrenches")
        rows: list[Any] = [np.zeros(6)] * maker.tree.n if given is None else [given[i] for i in range(maker.tree.n)]
        if maker.has_point_elements:
            t = self.traversal()
            found = elements.link_wrenches(t, maker.description.elements, maker.places(self), self.names)
            for i, wrench in found.items():
                rows[i] = rows[i] + _to_body(t.links[i].record, wrench)
        elif given is None:
            return False
        self.inputs["wrench"] = rows
        return True

    def joint_forces(self) -> Array | None:
        """The generalised forces of joint laws, or None."""
        maker = self.maker
        if not any(isinstance(e, JointForce) for e in maker.description.elements):
            return None
        return elements.joint_forces(self.traversal(), maker.description.elements, maker.joint_positions, self.names)


class Maker:
    """Makes the programs of one mechanism."""

    def __init__(self, description: Description) -> None:
        self.description = description

    @cached_property
    def topology(self) -> Topology:
        return span(self.description)

    @cached_property
    def tree(self) -> Tree:
        return Tree(self.description, self.topology)

    @cached_property
    def joint_positions(self) -> dict[str, int]:
        names = self.description.joint_names
        return {names[int(j)]: i for i, j in enumerate(self.topology.joint)}

    @property
    def has_point_elements(self) -> bool:
        return any(not isinstance(e, JointForce) for e in self.description.elements)

    @property
    def needs_time(self) -> bool:
        """Whether a force depends on TIME."""
        laws: list[Expression] = []
        for e in self.description.elements:
            laws.extend(e.laws if hasattr(e, "laws") else (e.law,))
        return any("TIME" in law.names() for law in laws)

    @property
    def has_pair_derivatives(self) -> bool:
        """Whether the recursion over pairs of bodies covers this mechanism."""
        return not self.description.elements and all(kind.steady for kind in set(self.tree.kinds))

    @property
    def coupled(self) -> bool:
        """Whether joints share coordinates."""
        return bool(self.description.mimics)

    def gravity(self, free: Mapping[str, Any]) -> Array:
        d = self.description
        entries = list(d.gravity.tolist())
        for k in range(3):
            expression = d.bindings.get(("gravity", k))
            if expression is not None and expression.names() & free.keys():
                entries[k] = expression.evaluate({**d.parameters, **free})
        return np.array(entries)

    # -- frames -----------------------------------------------------------------------------------------
    def place(self, name: str, question: Question | None = None) -> tuple[int, Array, Array]:
        """A frame by name: its link's position (−1 ground), R and p in link axes."""
        d = self.description
        body = d.body_names.find(name)
        r, p = np.eye(3), np.zeros(3)
        if body is None:
            k = d.frames.names.find(name)
            if k is not None:
                free = question.parameters if question else {}
                body = int(d.frames.body[k])
                r, p = self.tree.row("frame_r", k, free), self.tree.row("frame_p", k, free)
            elif name == d.ground_name:
                body = GROUND
            else:
                known = [*d.body_names[:2000], *d.frames.names[:2000], d.ground_name]
                raise NameNotFound("frame", name, known)
        if body == GROUND:
            return -1, r, p
        position = int(self.topology.position[body])
        record = self.tree.record(position, question.parameters if question else None)
        rl, pl = record["frame_r"], record["frame_p"]
        return position, rl.T @ r, rl.T @ (p - pl)

    def path(self, position: int) -> list[int]:
        """A position and those above it."""
        found = []
        while position >= 0:
            found.append(position)
            position = int(self.tree.parent[position])
        return found

    def places(self, question: Question) -> dict[str, tuple[int, Array, Array]]:
        """The frames that elements name."""
        names: set[str] = set()
        for e in self.description.elements:
            names.update(getattr(e, field) for field in ("first", "second", "frame") if hasattr(e, field))
        return {name: self.place(name, question) for name in names}

    # -- programs -----------------------------------------------------------------------------------------
    def shapes(self, request: Request) -> dict[str, tuple[int, ...]]:
        """The inputs of a request, in order, with their shapes for one state."""
        x = self.tree.coordinates
        sizes: dict[str, tuple[int, ...]] = {"q": (x.nq,), "q1": (x.nq,)}
        sizes |= {name: (x.nv,) for name in ("v", "a", "tau", "dv")}
        recipe = RECIPES[request.function]
        shapes = {name: sizes[name] for name in recipe.inputs}
        if request.wrenches:
            shapes["wrenches"] = (self.tree.n, 6)
        if recipe.forces and self.needs_time:
            shapes["t"] = ()
        if request.free:
            for name in request.free:
                if name not in self.description.parameters:
                    raise NameNotFound("parameter", name, list(self.description.parameters))
            shapes["p"] = (len(request.free),)
        return shapes

    def program(self, request: Request) -> Program:
        """Record the program of a request."""
        recipe = RECIPES[request.function]
        if self.topology.loops and recipe.forces:
            loop = self.description.joint_names[self.topology.loops[0]]
            raise ModelError(
                f"joint {loop!r} closes a loop; {request.function} is for mechanisms without loops so far", element=loop
            )
        if "tau" in recipe.inputs:
            self._refuse_weightless()
        if self.rolls(request):
            return self._rolled(request, recipe)
        if recipe.dense and self.tree.n > recipe.dense:
            raise ModelError(
                f"{request.function} of {self.tree.n} links would be dense matrices; beyond {recipe.dense} links "
                "use products with them: mech.program('forward_dynamics').forward() and .reverse()"
            )
        return self._unrolled(request, recipe)

    def _refuse_weightless(self) -> None:
        """A joint that carries nothing has no acceleration to be found."""
        d, t = self.description, self.topology
        carried = np.abs(d.mass[t.body]) + np.abs(d.inertia[t.body]).sum(axis=1)
        if self.coupled or np.all(carried > 0):
            return
        for i in range(self.tree.n - 1, -1, -1):
            j = int(t.joint[i])
            if carried[i] == 0 and d.kind_of(j).nv and d.armature[j] == 0:
                raise ModelError(
                    f"joint {d.joint_names[j]!r} carries no mass, so forces do not tell its acceleration; "
                    f"give {d.body_names[int(t.body[i])]!r} a mass, give the joint an armature, or lock it",
                    element=d.joint_names[j],
                )
            if t.parent[i] >= 0:
                carried[t.parent[i]] += carried[i]

    def rolls(self, request: Request) -> bool:
        """Whether the answer is a loop over links: for many of them, or where the caller insists."""
        recipe = RECIPES[request.function]
        plain = not request.free and not (recipe.forces and self.description.elements) and not self.coupled
        able = recipe.rolled is not None and plain and request.method in ("", "articulated-body")
        if request.form == "rolled" and not able:
            raise ModelError(f"{request.function} has no rolled form for this mechanism and these options")
        return able and (request.form == "rolled" or (self.tree.n > UNROLL and request.form != "unrolled"))

    def _unrolled(self, request: Request, recipe: Recipe) -> Program:
        shapes = self.shapes(request)
        names = list(shapes)
        if recipe.finish is not None:
            return recipe.finish(self, request, shapes)

        def function(*arrays: Array) -> Any:
            return recipe.record(Question(self, request, dict(zip(names, arrays, strict=True))))

        block, out_shapes, single = trace(function, list(shapes.values()))
        builder = ProgramBuilder(request.function)
        inputs = [builder.input(n, s) for n, s in shapes.items()]
        outputs = [builder.output(n, s) for n, s in zip(recipe.outputs, out_shapes, strict=True)]
        builder.add(Each(1, (builder.case(block, inputs, outputs),)))
        return builder.build(single=single)

    def _rolled(self, request: Request, recipe: Recipe) -> Program:
        assert recipe.rolled is not None
        builder = ProgramBuilder(request.function)
        inputs = {name: builder.input(name, shape) for name, shape in self.shapes(request).items()}
        if "wrenches" in inputs:
            inputs["wrench"] = inputs["wrenches"]
        traversal = Rolled(self.tree, builder, inputs, recipe.still)
        recipe.rolled(traversal, self, request)
        traversal.finish()
        return builder.build(single=True)


@dataclass(frozen=True)
class Recipe:
    """How a function is recorded: its inputs and outputs, the unrolled form, and the rolled one if it has one."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    record: Callable[[Question], Any]
    rolled: Callable[[Traversal, Maker, Request], Any] | None = None
    still: tuple[str, ...] = ()  # inputs of the recursion that are zero in the rolled form
    dense: int = 0  # links beyond which it is refused, 0 for none
    forces: bool = False  # whether force elements take part
    finish: Callable[[Maker, Request, dict[str, tuple[int, ...]]], Program] | None = None


def _to_body(record: Mapping[str, Any], wrench: Array) -> Array:
    """A wrench at the link frame in its axes, at the body frame in its axes."""
    r, p = np.asarray(record["frame_r"]), np.asarray(record["frame_p"])
    force = r @ wrench[:3]
    return np.concatenate([force, r @ wrench[3:] + cross(p, force)])


def _forward(question: Question) -> Array:
    tau = question.inputs["tau"]
    extra = question.joint_forces()
    if extra is not None:
        tau = tau + extra
    wrenches = question.applied()
    if question.request.method == "articulated-body" and not question.maker.coupled:
        t = question.traversal(tau=tau)
        return articulated_body.forward_dynamics(t, question.gravity, wrenches=wrenches)
    x = question.maker.tree.coordinates
    m = composite.mass_matrix(question.traversal())
    still = question.traversal(a=np.zeros(x.nv))
    h = newton_euler.inverse_dynamics(still, question.gravity, wrenches=wrenches)
    return np.array(factorise(m).solve([tau[k] - h[k] for k in range(x.nv)]))


def _inverse(question: Question, **zeros: Array) -> Array:
    wrenches = question.applied()
    t = question.traversal(**zeros)
    tau = newton_euler.inverse_dynamics(t, question.gravity, wrenches=wrenches)
    extra = question.joint_forces()
    return tau if extra is None else tau - extra


def _inverse_rolled(traversal: Traversal, maker: Maker, request: Request) -> Any:
    return newton_euler.inverse_dynamics(traversal, maker.gravity({}), wrenches=request.wrenches)


def _bias(question: Question) -> Array:
    return _inverse(question, a=np.zeros(question.maker.tree.coordinates.nv))


def _gravity_forces(question: Question) -> Array:
    zero = np.zeros(question.maker.tree.coordinates.nv)
    return newton_euler.inverse_dynamics(question.traversal(v=zero, a=zero), question.gravity)


def _in_frame(function: Callable[..., Array]) -> Callable[[Question], Array]:
    def record(question: Question) -> Array:
        r = question.request
        place = question.maker.place(r.frame, question)
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


_center, _momentum = _weighty(kinematics.center_of_mass), _weighty(kinematics.momentum)


def _refuse_massless(maker: Maker) -> None:
    if not np.any(maker.description.mass > 0):
        raise ModelError("no body has mass, so there is no centre of mass; give the bodies masses")


def _reactions(question: Question) -> Array:
    """The wrench of each joint on its body, at the body frame in its axes."""
    acceleration = _forward(question)
    wrenches = question.applied()
    t = question.traversal(a=acceleration)
    newton_euler.inverse_dynamics(t, question.gravity, wrenches=wrenches)
    return np.stack([_to_body(link.record, row["f"]) for link, row in zip(t.links, t.rows, strict=True)])


def _inverse_derivatives(question: Question) -> Any:
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
    h = _bias(question)
    a = factor.solve([tau[k] - h[k] for k in range(len(h))])
    return m, factor, *_tape_derivatives(question, np.array(a))


def _tape_derivatives(question: Question, a: Array) -> tuple[list[list[Any]], list[list[Any]]]:
    """∂τ/∂q (tangent) and ∂τ/∂v by tangents pushed through the recorded inverse dynamics.

    For joints whose motion subspace turns with their coordinates, and for force elements.
    """
    maker, inputs = question.maker, {**question.inputs, "a": a}
    request = Request("inverse_dynamics", free=question.request.free)
    shapes = maker.shapes(request)
    names = list(shapes)
    block, _, _ = trace(
        lambda *arrays: _inverse(Question(maker, request, dict(zip(names, arrays, strict=True)))), list(shapes.values())
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


def _forward_derivatives(maker: Maker, request: Request, shapes: dict[str, tuple[int, ...]]) -> Program:
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

    block, _, _ = trace(parts, list(shapes.values()))
    builder = ProgramBuilder(request.function)
    inputs = [builder.input(n, s) for n, s in shapes.items()]
    outputs = [builder.output(n, (nv, nv)) for n in ("da_dq", "da_dv", "da_dtau")]
    if nv <= DENSE:
        builder.add(Each(1, (builder.case(block, inputs, outputs),)))
        return builder.build(single=False)
    mass, right = builder.temporary("mass", (nv, nv)), builder.temporary("right", (nv, 3 * nv))
    builder.add(Each(1, (builder.case(block, inputs, [mass, right]),)))
    solution = builder.temporary("solution", (nv, 3 * nv))
    parent = None if maker.coupled else builder.column(_rate_parents(maker.tree))
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


def _rate_parents(tree: Tree) -> Any:
    """For every rate the rate before it on the way to ground, −1 at ground."""
    x = tree.coordinates
    last = np.full(tree.n + 1, -1)
    parents: list[int] = []
    for i, (p, kind) in enumerate(zip(tree.parent.tolist(), tree.kinds, strict=True)):
        before = int(last[p])
        at = int(x.v_at[i])
        for k in range(kind.nv):
            parents.append(before)
            before = at + k
        last[i] = before
    return np.array(parents, np.int32)


def _both(function: Callable[[Traversal, Maker], Any]) -> dict[str, Any]:
    """A recursion that is recorded the same way unrolled and rolled."""
    return {"record": lambda q: function(q.traversal(), q.maker), "rolled": lambda t, m, r: function(t, m)}


RECIPES: dict[str, Recipe] = {
    "forward_dynamics": Recipe(
        ("q", "v", "tau"),
        ("a",),
        _forward,
        lambda t, m, r: articulated_body.forward_dynamics(t, m.gravity({}), wrenches=r.wrenches),
        forces=True,
    ),
    "inverse_dynamics": Recipe(("q", "v", "a"), ("tau",), _inverse, _inverse_rolled, forces=True),
    "bias_forces": Recipe(("q", "v"), ("h",), _bias, _inverse_rolled, forces=True, still=("a",)),
    "gravity_forces": Recipe(("q",), ("g",), _gravity_forces, _inverse_rolled, still=("v", "a")),
    "mass_matrix": Recipe(("q",), ("M",), **_both(lambda t, m: composite.mass_matrix(t))),
    "reactions": Recipe(("q", "v", "tau"), ("wrenches",), _reactions, forces=True),
    "inverse_dynamics_derivatives": Recipe(
        ("q", "v", "a"), ("dtau_dq", "dtau_dv", "M"), _inverse_derivatives, forces=True, dense=256
    ),
    "forward_dynamics_derivatives": Recipe(
        ("q", "v", "tau"), ("da_dq", "da_dv", "da_dtau"), _forward, forces=True, finish=_forward_derivatives, dense=256
    ),
    "pose": Recipe(("q",), ("pose",), _in_frame(kinematics.frame_pose), _in_frame_rolled(kinematics.frame_pose)),
    "jacobian": Recipe(("q",), ("jacobian",), _in_frame(kinematics.frame_jacobian)),
    "twist": Recipe(
        ("q", "v"), ("twist",), _in_frame(kinematics.frame_twist), _in_frame_rolled(kinematics.frame_twist)
    ),
    "kinetic_energy": Recipe(("q", "v"), ("energy",), **_both(lambda t, m: kinematics.kinetic_energy(t))),
    "potential_energy": Recipe(
        ("q",),
        ("energy",),
        lambda q: kinematics.potential_energy(q.traversal(), q.gravity),
        lambda t, m, r: kinematics.potential_energy(t, m.gravity({})),
    ),
    "center_of_mass": Recipe(("q",), ("center",), **_both(_center)),
    "momentum": Recipe(("q", "v"), ("momentum",), **_both(_momentum)),
    "integrate": Recipe(("q", "dv"), ("q",), **_both(lambda t, m: coordinates.integrate(t))),
    "difference": Recipe(("q", "q1"), ("dv",), **_both(lambda t, m: coordinates.difference(t))),
    "rate": Recipe(("q", "v"), ("rate",), **_both(lambda t, m: coordinates.rate(t))),
}
