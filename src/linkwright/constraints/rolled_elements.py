"""Force elements and quantities on free bodies, rolled: the steps of `mechanism.forces`, run in loops over elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from linkwright.constraints.body_rows import CentralFrame
from linkwright.constraints.rolled_laws import LawRunner
from linkwright.model.element_steps import Evaluate, LoopCoordinate, actions, loop_coordinate, measuring, shifted
from linkwright.model.elements import JointForce
from linkwright.model.joint_kinds import JointKind
from linkwright.model.quantities import Quantity
from linkwright.spatial.algebra import Array
from linkwright.tape.build import Ref


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
            turned = (len(action.frames[0]) - 1,) if action.turned else ()
            frames = self.named_frames(action.frames, turned)
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
