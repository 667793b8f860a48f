"""A request being recorded: its inputs, traversals over them, the forces of joints, elements and gears; its program.

A gear exerts f on the coordinate of its follower and −ratio · f on that of its leader, so that it has no power:
f (q̇_follower − ratio · q̇_leader) = 0. The follower's own equation, Sᵀ F + armature · a = f + laws − Σ ratio · f of the
gears that it leads, determines f from the end of a gear train on.

Recorders ask a `Context`, and do not know whether links are laid out one by one (`RecordingContext`) or rolled into a
loop (`RolledContext`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from linkwright.base.locks import cached_property
from linkwright.dynamics.body_quantities import GROUND_POSE, poses, twists
from linkwright.dynamics.closed.loop_constraints import Handle, OpenLoop, Pair, joint_pair, loop_link
from linkwright.dynamics.functions import FUNCTIONS, Request
from linkwright.dynamics.inertia_checks import undetermined
from linkwright.dynamics.methods.ltdl_factor import ZeroPivot
from linkwright.dynamics.requests import RequestRules
from linkwright.dynamics.traversals.levels import RolledSheet, Sheet, UnrolledSheet
from linkwright.dynamics.traversals.rolled import Rolled
from linkwright.dynamics.traversals.traversal import SingularLink, State, Traversal, Unrolled, add_to
from linkwright.errors import ModelError
from linkwright.model.element_steps import (
    BodyFrame,
    Evaluate,
    Laws,
    LoopCoordinate,
    actions,
    bushing_load,
    loop_coordinate,
    measuring,
)
from linkwright.model.elements import Bushing, Initial, JointForce, PointForce, laws_of
from linkwright.model.quantities import Quantity, quantities
from linkwright.spatial.algebra import Array, point_velocity, wrench_at
from linkwright.tape.build import ProgramBuilder, Ref, spoiled_together, trace, with_every_input
from linkwright.tape.program import Each, Program

Rate = tuple[int, int]  # a joint, and the index of one of its rates


@dataclass(frozen=True)
class LinkFrame(BodyFrame):
    """A frame on a link, whose twist and wrenches are at the link frame in its axes."""

    @property
    def velocity(self) -> Array:
        return self.r @ point_velocity(self.w[:3], self.w[3:], self.p)

    def wrench(self, force: Array, moment: Array) -> Array:
        return wrench_at(self.r.T @ force, self.r.T @ moment, self.p)


class Elements:
    """What force elements exert, and what the quantities of laws measure, at the state of a traversal.

    `constants` are parameters and TIME by their names, `parameters` those that are recorded.
    """

    def __init__(self, traversal: Unrolled, constants: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
        self.traversal, self.constants, self.parameters = traversal, constants, parameters
        self.tree, self.description = traversal.tree, traversal.tree.description

    # -- laws ---------------------------------------------------------------------------------------------
    @cached_property
    def names(self) -> dict[str, Any]:
        """What laws may use: parameters, TIME, and the quantities of the mechanism that they name."""
        laws = [law for e in self.description.elements for law in laws_of(e)]
        return {**self.constants, **self.measure(tuple(quantities(*laws)))}

    def _evaluate(self, laws: Laws) -> Evaluate:
        return lambda more: [law.evaluate({**self.names, **more}) for law in laws]

    # -- joints -------------------------------------------------------------------------------------------
    @cached_property
    def tree_laws(self) -> dict[Rate, Any]:
        """The sum of the laws on each rate of a tree joint, by its position; a follower's are on its own rate."""
        links, positions = self.traversal.links, self.tree.joint_positions
        total: dict[Rate, Any] = {}
        for element in self.description.elements:
            if isinstance(element, JointForce) and element.joint in positions:
                i, k = positions[element.joint], element.index
                law = self._evaluate((element.law,))({"q": links[i].q[k], "v": links[i].v[k]})[0]
                add_to(total, (i, k), law)
        return total

    @property
    def joint_forces(self) -> Array | None:
        """The generalised forces (nv) of the laws of tree joints, or None without any."""
        x = self.tree.coordinates
        total: list[Any] = [0.0] * x.nv
        for (i, k), law in self.tree_laws.items():
            at = int(x.v_at[i]) + k
            total[at] = total[at] + law * float(x.ratio[i])
        return np.array(total) if self.tree_laws else None

    @property
    def loop_laws(self) -> dict[Rate, Any]:
        """The sum of the laws on each rate of a joint that closes a loop, by the joint's number."""
        total: dict[Rate, Any] = {}
        for joint, element, coordinate, _ in self._on_loops():
            add_to(total, (joint, element.index), coordinate.force(self._evaluate((element.law,))))
        return total

    def loop_pushes(self) -> Iterator[tuple[int, tuple[tuple[Handle, Array], tuple[Handle, Array]]]]:
        """Joints that close loops, with what a force on one does to its ends: T law on the child, −T law on the
        parent."""
        for joint, element, coordinate, frames in self._on_loops():
            wrench = coordinate.push * coordinate.force(self._evaluate((element.law,)))
            yield joint, ((frames.second, wrench), (frames.first, -wrench))

    def loop_wrenches(self) -> Iterator[tuple[int, Array]]:
        """The wrenches on links of forces on joints that close loops."""
        for _, ends in self.loop_pushes():
            for handle, push in ends:
                if handle.position >= 0:
                    yield handle.position, handle.inward(push)

    def _on_loops(self) -> Iterator[tuple[int, JointForce, LoopCoordinate, Pair]]:
        numbers = {self.description.joint_names[j]: j for j in self.tree.topology.loops}
        for element in self.description.elements if numbers else ():
            if isinstance(element, JointForce) and element.joint in numbers:
                joint = numbers[element.joint]
                yield joint, element, *self._loop_coordinate(joint, element.index)

    def _loop_coordinate(self, joint: int, index: int) -> tuple[LoopCoordinate, Pair]:
        """A coordinate of a joint that closes a loop, and the joint's frames; an angle is between −π and π."""
        traversal = self._moving
        link, frames = loop_link(traversal, joint, self.parameters), joint_pair(traversal, joint, self.parameters)
        return loop_coordinate(link.kind, link.pitch, index, frames.r, frames.p, frames.w), frames

    # -- bodies -------------------------------------------------------------------------------------------
    @cached_property
    def _moving(self) -> Unrolled:
        """The links with their poses and twists."""
        self.traversal.outward(poses, GROUND_POSE)
        self.traversal.outward(twists, {"w": np.zeros(6)})
        return self.traversal

    def _frame(self, name: str) -> tuple[int, LinkFrame]:
        """A frame by name, with the position of its link."""
        position, r, p = self.tree.place(name, self.parameters)
        row: State = self._moving.rows[position] if position >= 0 else self._moving.ground
        return position, LinkFrame(row["x"], row["r"], row["w"], p, r)

    def link_wrenches(self) -> dict[int, Array]:
        """The wrenches of point forces and applied wrenches on each link, at its frame in its axes."""
        total: dict[int, Array] = {}
        for action in actions(self.description.elements) if self.description.elements else ():
            for laws, names in zip(action.laws, action.frames, strict=True):
                positions, frames = zip(*map(self._frame, names), strict=True)
                wrenches = action.step(self._evaluate(laws), *frames)
                for position, wrench in zip(positions[: action.pushed], wrenches, strict=True):
                    if position >= 0:
                        add_to(total, position, wrench)
        return total

    # -- quantities ---------------------------------------------------------------------------------------
    def measure(self, wanted: Sequence[Quantity]) -> dict[str, Any]:
        """The values of quantities, by their keys; the angle of a joint that closes a loop is between −π and π."""
        return {quantity.key: self._measured(quantity) for quantity in wanted}

    def _measured(self, quantity: Quantity) -> Any:
        if quantity.kind != "joint":
            frames = [self._frame(name)[1] for name in quantity.of]
            return measuring(quantity)(self._evaluate(()), *frames)[0][0]
        name, index = quantity.of[0], quantity.index
        if name in self.tree.joint_positions:
            link = self.traversal.links[self.tree.joint_positions[name]]
            return (link.v if quantity.rate else link.q)[index]
        coordinate, _ = self._loop_coordinate(self.description.joint_names.position("joint", name), index)
        return coordinate.rate if quantity.rate else coordinate.value

    def initial_values(self, initial: Sequence[Initial]) -> tuple[Array, Array]:
        """What initial conditions name, and how fast it changes; a rate that is named counts as both."""
        wanted = [x.quantity for x in initial]
        rates = [replace(x, rate=True) for x in wanted]
        measured = self.measure((*wanted, *rates))
        values, slopes = ([measured[x.key] for x in some] for some in (wanted, rates))
        return np.array(values), np.array(slopes)

    def force_values(self) -> Array:
        """The forces of joint laws and of laws between points, in the order of the description; then force and torque
        of each bushing on its second frame, in the axes of its first.
        """
        forces: list[Any] = []
        for e in self.description.elements:
            if isinstance(e, JointForce | PointForce):
                measured = {name: self._measured(x) for name, x in _own_quantities(e).items() if name in e.law.names()}
                forces.append(e.law.evaluate({**self.names, **measured}))
        for e in self.description.elements:
            if isinstance(e, Bushing):
                ends = (self._frame(name)[1] for name in e.places)
                forces += [x for part in bushing_load(self._evaluate(e.laws), *ends) for x in part]
        return np.array(forces)


def _own_quantities(element: JointForce | PointForce) -> dict[str, Quantity]:
    """The names that a law has for what its element acts on."""
    if isinstance(element, JointForce):
        rate = Quantity("joint", (element.joint,), element.index, True)
        return {"v": rate, "q": replace(rate, rate=False)}
    rate = Quantity("distance", (element.first, element.second), 0, True)
    return {"dd": rate, "d": replace(rate, rate=False)}


def gear_forces(traversal: Unrolled, laws: Mapping[tuple[int, int], Any]) -> list[Any]:
    """f of each coupling, where `newton_euler.joint_forces` has been; `laws` are the force laws on rates of joints."""
    leaders = {i: (leader, ratio) for i, leader, ratio in traversal.tree.couplings}
    forces = {i: traversal.rows[i]["tau"][0] - laws.get((i, 0), 0.0) for i in leaders}

    def place(i: int) -> int:
        """How many gears of a train there are up to this follower's."""
        count = 0
        while i in leaders:
            i, count = leaders[i][0], count + 1
        return count

    for i in sorted(leaders, key=place, reverse=True):
        leader, ratio = leaders[i]
        if leader in forces:
            forces[leader] = forces[leader] + ratio * forces[i]
    return list(forces.values())


def without_gears(traversal: Unrolled, forces: list[Any]) -> list[Array]:
    """The wrench of each joint on its link, at the link frame in its axes, without those of gears."""
    wrenches = [row["f"] for row in traversal.rows]
    for (follower, leader, ratio), force in zip(traversal.tree.couplings, forces, strict=True):
        for i, share in ((follower, force), (leader, -ratio * force)):
            link = traversal.links[i]
            wrenches[i] = wrenches[i] - link.joint_wrench(traversal.rows[i]["terms"], np.array([share]))
    return wrenches


class Context(Protocol):
    """What the recorder of a function asks, in both forms."""

    factory: RequestRules
    request: Request
    gravity: Array
    parameters: dict[str, Any]

    def traversal(self, only: Sequence[int] | None = None, *, zero: Sequence[str] = (), **inputs: Any) -> Traversal:
        """A traversal over these inputs, those named in `zero` being zero; `only` the links at some positions count."""

    def sheet(self, **inputs: Any) -> Sheet:
        """The links for a recursion in levels."""

    def applied(self) -> bool:
        """Make the wrenches of elements and of the caller the input "wrench", in body axes; whether there are any."""

    def driven(self) -> Any:
        """tau with the forces of joint laws."""

    def joint_forces(self) -> Array | None:
        """The generalised forces of the laws of tree joints, or None."""


class RecordingContext:
    """One request recorded with every link's arithmetic laid out."""

    def __init__(self, factory: RequestRules, request: Request, inputs: Mapping[str, Array]) -> None:
        self.factory, self.request, self.inputs = factory, request, dict(inputs)
        free = dict(zip(request.free, inputs["p"], strict=True)) if request.free else {}
        self.parameters: dict[str, Any] = free
        self.constants = {**factory.description.parameters, **free, "TIME": inputs.get("t", 0.0)}
        self.gravity: Array = factory.gravity(free)

    @cached_property
    def elements(self) -> Elements:
        """The force elements, and the quantities that laws name, at this state."""
        return Elements(self.traversal(), self.constants, self.parameters)

    def traversal(self, only: Sequence[int] | None = None, *, zero: Sequence[str] = (), **inputs: Any) -> Unrolled:
        still = dict.fromkeys(zero, np.zeros(self.factory.tree.coordinates.nv))
        return Unrolled(self.factory.tree, {**self.inputs, **still, **inputs}, self.parameters, only)

    def sheet(self, **inputs: Any) -> Sheet:
        return UnrolledSheet(self.traversal(**inputs))

    def applied(self, *, loops: bool = True, more: Iterable[tuple[int, Array]] = ()) -> bool:
        """With `more` wrenches at link frames; forces on joints that close loops only with `loops`."""
        outer = self.inputs.get("wrenches")
        on_loops = self.elements.loop_wrenches() if loops else ()
        wrenches = [*self.elements.link_wrenches().items(), *on_loops, *more]
        if outer is None and not wrenches:
            return False
        rows: list[Any] = [np.zeros(6)] * self.factory.tree.n if outer is None else list(outer)
        for i, wrench in wrenches:
            rows[i] = rows[i] + self.elements.traversal.links[i].frame.inward(wrench)
        self.inputs["wrench"] = rows
        return True

    def driven(self) -> Any:
        forces = self.joint_forces()
        return self.inputs["tau"] if forces is None else self.inputs["tau"] + forces

    def joint_forces(self) -> Array | None:
        return self.elements.joint_forces


class RolledContext:
    """One request recorded as loops over links, for a mechanism without force elements.

    The traversal or sheet that its recorder asks for is finished by `finish`.
    """

    def __init__(self, factory: RequestRules, request: Request, builder: ProgramBuilder, *, packed: bool) -> None:
        self.factory, self.request, self.builder, self.packed = factory, request, builder, packed
        self.parameters: dict[str, Any] = {}
        self.gravity: Array = factory.gravity({})
        self.inputs = {name: builder.input(name, shape) for name, shape in factory.shapes(request).items()}
        if request.wrenches:
            self.inputs["wrench"] = self.inputs["wrenches"]
        self._loops: Rolled | RolledSheet | None = None

    def traversal(self, only: Sequence[int] | None = None, *, zero: Sequence[str] = (), **inputs: Any) -> Rolled:
        self._loops = Rolled(self.factory.tree, self.builder, {**self.inputs, **inputs}, zero, packed=self.packed)
        return self._loops

    def sheet(self, **inputs: Any) -> Sheet:
        self._loops = RolledSheet(self.factory.tree, self.builder, {**self.inputs, **inputs})
        return self._loops

    def finish(self, result: Ref, name: str) -> None:
        """Add the loops to the program, with the result as the output of this name."""
        assert self._loops is not None
        self._loops.finish(result, name)

    def applied(self) -> bool:
        return self.request.wrenches

    def driven(self) -> Any:
        return self.inputs["tau"]

    def joint_forces(self) -> Array | None:
        return None


def traced(factory: RequestRules, function: Callable[..., Any], shapes: Mapping[str, tuple[int, ...]]) -> Any:
    """Record a function; a division by what is always zero is reported with the joint that it belongs to."""
    try:
        return trace(function, list(shapes.values()))
    except SingularLink as error:
        raise factory.singular(error.position) from None
    except OpenLoop as error:
        text = f"{error.constraint} cannot be closed: fixed joints hold its frames apart; move a frame, or free a joint"
        raise ModelError(text, element=error.constraint.name) from None
    except ZeroPivot as error:
        at = factory.tree.coordinates.v_at
        raise factory.singular(int(np.flatnonzero(at <= error.row)[-1])) from None


def _refuse_undetermined(factory: RequestRules, request: Request) -> None:
    """Forces must determine every joint's acceleration; with free parameters, only recording shows whether they do."""
    spec = FUNCTIONS[request.function]
    if ("tau" in spec.inputs or spec.closed) and not request.free:
        masses = factory.rolls(request) and factory.as_masses(request)
        known = factory.regular.all() or (masses and factory.carried_by_constraints)
        position = None if known else undetermined(factory.tree)
        if position is not None:
            raise factory.singular(position)


def record(factory: RequestRules, request: Request) -> Program:
    """The program of a request with every link's arithmetic laid out and its constants folded."""
    _refuse_undetermined(factory, request)
    row, shapes = FUNCTIONS[request.function], factory.shapes(request)
    program: Program | None = None if row.whole is None else row.whole(factory, request, shapes)
    if program is not None:
        return program
    names = list(shapes)

    def function(*arrays: Array) -> Any:
        return row.record(RecordingContext(factory, request, dict(zip(names, arrays, strict=True))))

    block, out_shapes, single = traced(factory, function, shapes)
    if "frame" not in row.options:
        block = with_every_input(block)
    if out_shapes == [(len(factory.rate_units),)]:  # an answer of one number per rate
        first = sum(int(np.prod(shapes[n])) for n in names[: names.index("q")])
        block = spoiled_together(block, [range(first + k, first + k + 4) for k in factory.tree.euler_parameters])
    builder = ProgramBuilder(request.function)
    inputs = [builder.input(n, s) for n, s in shapes.items()]
    outputs = [builder.output(n, s) for n, s in zip(row.outputs, out_shapes, strict=True)]
    builder.add(Each(1, (builder.case(block, inputs, outputs),)))
    return builder.build(single=single)


def record_rolled(factory: RequestRules, request: Request, *, packed: bool) -> Program:
    """The program of a request as loops over links; `packed` for kernels, that only ask for the answer."""
    _refuse_undetermined(factory, request)
    row, builder = FUNCTIONS[request.function], ProgramBuilder(request.function)
    context = RolledContext(factory, request, builder, packed=packed)
    context.finish(row.record(context), row.outputs[0])
    return builder.build(single=True)


def record_masses(factory: RequestRules, request: Request) -> Program:
    """The program of a request as loops over free bodies and over the constraints that hold them, joints included."""
    # weight: constraints, which trees do not need
    from linkwright.constraints.free_body_dynamics import forward_dynamics, position_correction, velocity_projection

    _refuse_undetermined(factory, request)
    inputs = list(factory.shapes(request).items())
    layout = factory.assembled_masses if request.method == "assembly" else factory.masses
    if request.function == "position_correction":
        return position_correction(layout, inputs)
    if request.function == "velocity_projection":
        return velocity_projection(layout, inputs)
    return forward_dynamics(layout, inputs, forces=request.function == "constraint_forces")
