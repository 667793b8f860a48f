"""Force elements, quantities and laws of forces on free bodies, rolled: those of one structure share their code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.constraints.constraint_equations import joint_sides
from linkwright.constraints.form_programs import CentralFrame
from linkwright.constraints.tree_bodies import Carried
from linkwright.model.element_steps import Evaluate, Laws, LoopCoordinate, actions, loop_coordinate, measuring, shifted
from linkwright.model.elements import JointForce
from linkwright.model.expression import Call, Expression, Lookup, Name, Number
from linkwright.model.joint_kinds import JointKind
from linkwright.model.quantities import Quantity
from linkwright.spatial.algebra import Array
from linkwright.tape.build import Ref, trace
from linkwright.tape.program import Each


def skeleton(
    law: Expression, parameters: Mapping[str, float], numbers: list[float], measured: list[Quantity]
) -> Expression:
    """The law with names in place of constants and parameters, whose values are put at the end of `numbers`, and of
    quantities, which are put at the end of `measured`.

    Exponents stay: a square is a product, a power with an unknown exponent is not.
    """
    if isinstance(law, Number) or (isinstance(law, Name) and law.name in parameters):
        numbers.append(float(law.evaluate(parameters)))
        return Name(f"#{len(numbers) - 1}")
    if isinstance(law, Quantity):
        measured.append(law)
        return Name(f"@{len(measured) - 1}")
    if isinstance(law, Lookup):
        return Lookup(law.table, skeleton(law.argument, parameters, numbers, measured))
    if isinstance(law, Call):
        still = 1 if law.function == "pow" and isinstance(law.arguments[1], Number) else len(law.arguments)
        changed = tuple(skeleton(a, parameters, numbers, measured) for a in law.arguments[:still])
        return Call(law.function, (*changed, *law.arguments[still:]))
    return law


class LawRunner:
    """Runs laws over the bodies of a program under construction."""

    def __init__(self, carried: Carried, t: Ref | None) -> None:
        self.c, self.d, self.masses, self.t = carried, carried.tree.description, carried.masses, t
        self.values: tuple[Ref, dict[Quantity, int]] | None = None  # quantities' values, and where each stands

    def run(
        self,
        laws: Sequence[Laws],
        numbers: Sequence[Floats],
        shapes: Sequence[tuple[int, ...]],
        function: Callable[..., tuple[Array, ...]],
        operands: Callable[[list[int]], tuple[list[Ref], list[Ref]]],
    ) -> None:
        """function(evaluate, numbers, *inputs) for every element; evaluate(names) gives the values of its laws.

        `numbers` are the element's own; `operands` gives inputs of these shapes, and outputs, of chosen elements.
        """
        b, parameters = self.c.b, self.d.parameters
        groups: dict[Laws, list[tuple[int, list[float], list[Quantity]]]] = {}
        for k, together in enumerate(laws):
            constants: list[float] = []
            measured: list[Quantity] = []
            key = tuple(skeleton(law, parameters, constants, measured) for law in together)
            groups.setdefault(key, []).append((k, constants, measured))
        timed = self.t is not None
        for key, members in groups.items():
            chosen = [k for k, _, _ in members]
            rows = np.array([[*numbers[k], *constants] for k, constants, _ in members])
            count = len(members[0][2])
            first, width = len(numbers[chosen[0]]), rows.shape[1]  # the element's own numbers stand before constants

            def block(
                row: Array, *arrays: Array, key: Laws = key, first: int = first, count: int = count
            ) -> tuple[Array, ...]:
                names: dict[str, Any] = {f"#{i}": x for i, x in enumerate(row[first:])}
                names |= {f"@{i}": arrays[i][0] for i in range(count)}
                names["TIME"] = arrays[count][0] if timed else 0.0
                arguments = arrays[count + 1 :] if timed else arrays[count:]

                def evaluate(more: Mapping[str, Any]) -> list[Any]:
                    return [law.evaluate({**parameters, **names, **more}) for law in key]

                return function(evaluate, row[:first], *arguments)

            inputs, outputs = operands(chosen)
            data = b.data(b.free_name("elements"), rows if width else np.zeros((len(rows), 1)))
            sources = [data.part(0, (width,)).at((max(width, 1), b.column(range(len(rows)))))]
            sources += [self._value([measured[i] for _, _, measured in members]) for i in range(count)]
            if self.t is not None:
                sources.append(self.t)
            singles = [(1,)] * (count + timed)
            recorded = trace(block, [(width,), *singles, *shapes])[0]
            b.add(Each(len(chosen), (b.case(recorded, [*sources, *inputs], outputs),), "outward"))

    def _value(self, quantities: Sequence[Quantity]) -> Ref:
        assert self.values is not None
        values, at = self.values
        return values.part(0, (1,)).at((1, self.c.b.column([at[x] for x in quantities])))

    # -- frames on bodies ---------------------------------------------------------------------------------------
    def on_frames(
        self,
        laws: Sequence[Laws],
        frames: Frames,
        step: Callable[..., tuple[Array, ...]],
        twists: Ref,
        outputs: Callable[[list[int]], list[Ref]],
    ) -> None:
        """step(evaluate, *frames, *numbers) for every element; `outputs` are those of chosen elements."""
        c, space, sides = self.c, self.c.space, len(frames.bodies)
        state = [(3,), (space.turn,), (space.motion,)]

        def function(evaluate: Evaluate, row: Array, *states: Array) -> tuple[Array, ...]:
            placed, turns = [], 3 * sides
            for k in range(sides):
                x, r, w = states[3 * k : 3 * k + 3]
                turn = None
                if k in frames.turned:
                    turn = row[turns : turns + 9].reshape(3, 3)
                    turns += 9
                p = row[3 * k : 3 * k + 3]
                placed.append(CentralFrame(x, space.axes(r), space.whole(w), p, turn, space, self.masses.world))
            return step(evaluate, *placed, *row[turns:])

        def operands(members: list[int]) -> tuple[list[Ref], list[Ref]]:
            inputs = []
            for bodies in frames.bodies:
                column = c.b.column([bodies[k] for k in members])
                inputs += [c.x.part(0, (3,)).at((3, column)), c.r.part(0, (space.turn,)).at((space.turn, column))]
                inputs.append(self.rows(twists, column))
            return inputs, outputs(members)

        self.run(laws, frames.rows, state * sides, function, operands)

    def rows(self, ref: Ref, column: int, *, add: bool = False) -> Ref:
        """The rows of twists or wrenches of the bodies in a column."""
        motion = self.c.space.motion
        return ref.part(0, (motion,)).at((motion, column), add=add)

    def named_frames(self, names: Sequence[tuple[str, ...]], turned: tuple[int, ...] = ()) -> Frames:
        """The frames that elements name, each element the same number of them."""
        return self._frames([[self.d.frame(name) for name in every] for every in names], turned)

    def loop_frames(self, joints: Sequence[int]) -> Frames:
        """The frames of joints on the bodies that they join, and as further number the pitch."""
        return self._frames([joint_sides(self.d, j) for j in joints], (0, 1), [[self.d.pitch[j]] for j in joints])

    def _frames(
        self,
        places: Sequence[Sequence[tuple[int, Floats, Floats]]],
        turned: tuple[int, ...],
        numbers: Sequence[Sequence[float]] | None = None,
    ) -> Frames:
        rows = []
        for k, every in enumerate(places):
            central = [self.masses.place(*place) for place in every]
            rotations = [central[side][0].reshape(-1) for side in turned]
            rows.append(np.concatenate([*(p for _, p in central), *rotations, [] if numbers is None else numbers[k]]))
        sides = zip(*places, strict=True)
        bodies = [[body if body >= 0 else self.c.nb for body, _, _ in side] for side in sides]
        return Frames(bodies, rows, turned)


@dataclass(frozen=True, eq=False)
class Frames:
    """Frames of elements, in the central frames of their bodies: as many sides as an element has frames."""

    bodies: list[list[int]]  # for each side, the rows of the bodies that carry the elements' frames
    rows: list[Floats]  # for each element, p of all sides, R of those in `turned`, and further numbers
    turned: tuple[int, ...]  # the sides whose axes are used


class Elements(LawRunner):
    """The force elements of a mechanism on the bodies of a program under construction."""

    # -- forces -------------------------------------------------------------------------------------------------
    def joint_forces(self, q: Ref, v: Ref, tau: Ref) -> None:
        """tau += the forces of laws on tree joints."""
        b, tree, positions = self.c.b, self.c.tree, self.c.tree.joint_positions
        x = tree.coordinates
        chosen = [e for e in self.d.elements if isinstance(e, JointForce) and e.joint in positions]
        places = [(positions[e.joint], e.index) for e in chosen]

        def force(evaluate: Evaluate, row: Array, q: Array, v: Array) -> tuple[Array, ...]:
            ratio, offset = row
            law = evaluate({"q": q[0] * ratio + offset, "v": v[0] * ratio})[0]
            return (np.array([law * ratio]),)

        def operands(members: list[int]) -> tuple[list[Ref], list[Ref]]:
            at = [places[k] for k in members]
            # The coordinate of an unpaired joint has no meaning: any number that is there will do.
            q_at = [int(x.q_at[i]) + min(k, tree.kinds[i].nq - 1) for i, k in at]
            rates = b.column([int(x.v_at[i]) + k for i, k in at])
            inputs = [q.part(0, (1,)).at((1, b.column(q_at))), v.part(0, (1,)).at((1, rates))]
            return inputs, [tau.part(0, (1,)).at((1, rates), add=True)]

        numbers = [np.array([x.ratio[i], x.offset[i]]) for i, _ in places]
        self.run([(e.law,) for e in chosen], numbers, [(1,), (1,)], force, operands)

    def loop_forces(self, twists: Ref, wrenches: Ref) -> None:
        """wrenches += those of laws on joints that close loops; their angles are between −π and π."""
        groups: dict[tuple[JointKind, int], list[tuple[int, JointForce]]] = {}
        for e in self.d.elements:
            if isinstance(e, JointForce) and e.joint not in self.c.tree.joint_positions:
                j = self.d.joint_names.position("joint", e.joint)
                groups.setdefault((self.d.kind_of(j), e.index), []).append((j, e))
        for key, members in groups.items():
            frames = self.loop_frames([j for j, _ in members])
            pushed = self._pushed(wrenches, frames.bodies)
            self.on_frames([(e.law,) for _, e in members], frames, partial(_loop_force, *key), twists, pushed)

    def body_forces(self, twists: Ref, wrenches: Ref) -> None:
        """wrenches += those of forces between points and of laws on bodies."""
        for action in actions(self.d.elements):
            frames = self.named_frames(action.frames, action.turned)
            pushed = self._pushed(wrenches, frames.bodies[: action.pushed])
            self.on_frames(action.laws, frames, action.step, twists, pushed)

    def _pushed(self, wrenches: Ref, sides: Sequence[Sequence[int]]) -> Callable[[list[int]], list[Ref]]:
        def outputs(members: list[int]) -> list[Ref]:
            columns = [self.c.b.column([bodies[k] for k in members]) for bodies in sides]
            return [self.rows(wrenches, column, add=True) for column in columns]

        return outputs

    # -- quantities ---------------------------------------------------------------------------------------------
    def measure(self, wanted: Sequence[Quantity], q: Ref, v: Ref, twists: Ref) -> None:
        """Make the values of quantities known to laws, for bodies that are in their places."""
        number = {x: k for k, x in enumerate(dict.fromkeys(wanted))}
        values = self.c.b.temporary("quantities", (len(number),))
        groups: dict[tuple[Any, ...], list[Quantity]] = {}
        for x in number:
            groups.setdefault(self._structure(x), []).append(x)
        for members in groups.values():
            output = values.part(0, (1,)).at((1, self.c.b.column([number[x] for x in members])))
            if members[0].kind == "joint" and members[0].of[0] in self.c.tree.joint_positions:
                self._tree_coordinates(members, v if members[0].rate else q, output)
            else:
                self._measure_between(members, twists, output)
        self.values = values, number

    def _structure(self, x: Quantity) -> tuple[Any, ...]:
        """What quantities have in common that are measured by one step."""
        if x.kind != "joint":
            return x.kind, x.rate, x.index
        if x.of[0] in self.c.tree.joint_positions:
            return "tree joint", x.rate
        return "loop joint", x.rate, x.index, self.d.kind_of(self.d.joint_names.position("joint", x.of[0]))

    def _tree_coordinates(self, members: Sequence[Quantity], source: Ref, output: Ref) -> None:
        x, rate = self.c.tree.coordinates, members[0].rate
        at = [self.c.tree.joint_positions[m.of[0]] for m in members]
        first = x.v_at if rate else x.q_at
        column = self.c.b.column([int(first[i]) + m.index for i, m in zip(at, members, strict=True)])
        numbers = [np.array([x.ratio[i], 0.0 if rate else x.offset[i]]) for i in at]
        self.run(
            [()] * len(members),
            numbers,
            [(1,)],
            lambda evaluate, row, q: (q * row[0] + row[1],),
            lambda chosen: ([source.part(0, (1,)).at((1, column))], [output]),
        )

    def _measure_between(self, members: Sequence[Quantity], twists: Ref, output: Ref) -> None:
        """Places, distances and the coordinates of joints that close loops, from the frames of bodies."""
        step: Callable[..., tuple[Array, ...]]
        if members[0].kind == "joint":
            joints = [self.d.joint_names.position("joint", x.of[0]) for x in members]
            frames, step = self.loop_frames(joints), partial(_loop_measure, self.d.kind_of(joints[0]), members[0])
        else:
            frames, step = self.named_frames([x.of for x in members]), measuring(members[0])
        self.on_frames([()] * len(members), frames, step, twists, lambda chosen: [output])


def _loop_coordinate(
    kind: JointKind, index: int, first: CentralFrame, second: CentralFrame, pitch: Any
) -> LoopCoordinate:
    """A coordinate of a joint that closes a loop between the two frames."""
    axes, turned = first.axes, second.axes
    arriving = shifted(first, second.position)  # the point of the first's body where the second frame is
    slip = second.velocity - arriving.velocity
    w = np.concatenate([turned.T @ slip, turned.T @ (second.angular_velocity - first.angular_velocity)])
    return loop_coordinate(kind, pitch, index, axes.T @ turned, axes.T @ (second.position - first.position), w)


def _loop_force(
    kind: JointKind, index: int, evaluate: Evaluate, first: CentralFrame, second: CentralFrame, pitch: Any
) -> tuple[Array, Array]:
    """The wrenches of a law on the parent's body and on the child's."""
    coordinate = _loop_coordinate(kind, index, first, second, pitch)
    law = coordinate.force(evaluate)
    force, moment = second.axes @ coordinate.push[:3], second.axes @ coordinate.push[3:]
    on_parent = shifted(first, second.position).wrench(force, moment)
    return law * -on_parent, law * second.wrench(force, moment)


def _loop_measure(
    kind: JointKind, quantity: Quantity, evaluate: Evaluate, first: CentralFrame, second: CentralFrame, pitch: Any
) -> tuple[Array, ...]:
    coordinate = _loop_coordinate(kind, quantity.index, first, second, pitch)
    return (np.array([coordinate.rate if quantity.rate else coordinate.value]),)
