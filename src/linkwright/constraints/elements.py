"""Force elements, rolled: what joint laws, forces between points and wrenches do to the bodies."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.constraints.laws import Laws
from linkwright.mechanism.elements import AppliedWrench, JointForce, PointForce
from linkwright.mechanism.kinds import KIND_LIST, JointKind
from linkwright.spatial.algebra import Array, cross, dot, length
from linkwright.tape.build import Ref


class Elements(Laws):
    """The force elements of a mechanism on the bodies of a program under construction."""

    def joint_forces(self, q: Ref, v: Ref, tau: Ref) -> None:
        """tau += the forces of joint laws."""
        b, x = self.c.b, self.c.tree.coordinates
        chosen = [e for e in self.d.elements if isinstance(e, JointForce) and e.joint in self.position]
        places = [(self.position[e.joint], e.index) for e in chosen]

        def force(evaluate: Any, row: Array, q: Array, v: Array) -> tuple[Array, ...]:
            ratio, offset = row
            law = evaluate({"q": q[0] * ratio + offset, "v": v[0] * ratio})[0]
            return (np.array([law * ratio]),)

        def operands(members: list[int]) -> tuple[list[Ref], list[Ref]]:
            at = [places[k] for k in members]
            # The coordinate of an unpaired joint has no meaning: any number that is there will do.
            q_at = [int(x.q_at[i]) + min(k, self.c.tree.kinds[i].nq - 1) for i, k in at]
            rates = b.column([int(x.v_at[i]) + k for i, k in at])
            inputs = [q.part(0, (1,)).at((1, b.column(q_at))), v.part(0, (1,)).at((1, rates))]
            return inputs, [tau.part(0, (1,)).at((1, rates), add=True)]

        numbers = [np.array([x.ratio[i], x.offset[i]]) if x.follows[i] else np.array([1.0, 0.0]) for i, _ in places]
        self.run([(e.law,) for e in chosen], numbers, [(1,), (1,)], force, operands)

    def loop_forces(self, twists: Ref, wrenches: Ref) -> None:
        """wrenches += those of laws on joints that close loops; their angles are between −π and π."""
        d = self.d
        groups: dict[tuple[int, int], list[tuple[int, JointForce]]] = {}
        for e in d.elements:
            if isinstance(e, JointForce) and e.joint not in self.position:
                j = d.joint_names.position("joint", e.joint)
                groups.setdefault((int(d.kind[j]), e.index), []).append((j, e))
        for (kind, index), members in groups.items():
            self._on_loops(KIND_LIST[kind], index, members, twists, wrenches)

    def _on_loops(
        self, kind: JointKind, index: int, members: list[tuple[int, JointForce]], twists: Ref, wrenches: Ref
    ) -> None:
        bodies, numbers = self.loop_joints([j for j, _ in members])

        def push(evaluate: Any, row: Array, *states: Array) -> tuple[Array, ...]:
            joint = self.at_loop(kind, index, row, states)
            known = {"v": joint.rate, **({"q": joint.coordinate} if kind.paired else {})}
            force = evaluate(known)[0]
            return force * joint.on_parent, force * joint.on_child

        def operands(chosen: list[int]) -> tuple[list[Ref], list[Ref]]:
            sides = [[bodies[k][side] for k in chosen] for side in range(2)]
            inputs = [ref for side in sides for ref in self.states(twists, side)]
            return inputs, [self.rows(wrenches, self.c.b.column(side), add=True) for side in sides]

        self.run([(e.law,) for _, e in members], numbers, self.shapes * 2, push, operands)

    def point_forces(self, twists: Ref, wrenches: Ref) -> None:
        """wrenches += those of forces between points."""
        chosen = [e for e in self.d.elements if isinstance(e, PointForce)]
        first, second = (self.places([getattr(e, side) for e in chosen]) for side in ("first", "second"))

        def pair(evaluate: Any, row: Array, *states: Array) -> tuple[Array, ...]:
            points = []
            for k in range(2):
                x, r, w = self.whole(*states[3 * k : 3 * k + 3])
                p = row[3 * k : 3 * k + 3]
                points.append((x + r @ p, w[:3] + r @ cross(w[3:], p), r, p))
            (xa, va, ra, pa), (xb, vb, rb, pb) = points
            line = xb - xa
            distance = length(line)
            unit = line / distance
            force = evaluate({"d": distance, "dd": dot(unit, vb - va)})[0] * unit
            part = self.c.space.part
            return (
                part(np.concatenate([-force, -cross(pa, ra.T @ force)])),
                part(np.concatenate([force, cross(pb, rb.T @ force)])),
            )

        def operands(members: list[int]) -> tuple[list[Ref], list[Ref]]:
            sides = [[bodies[k] for k in members] for bodies, _ in (first, second)]
            inputs = [ref for side in sides for ref in self.states(twists, side)]
            return inputs, [self.rows(wrenches, self.c.b.column(side), add=True) for side in sides]

        numbers = [np.concatenate([a[9:], b[9:]]) for a, b in zip(first[1], second[1], strict=True)]
        self.run([(e.law,) for e in chosen], numbers, self.shapes * 2, pair, operands)

    def applied_wrenches(self, twists: Ref, wrenches: Ref) -> None:
        """wrenches += those of laws on bodies, in any frame's axes, and their opposites on other bodies."""
        groups: dict[tuple[str, bool], list[AppliedWrench]] = {}
        for e in self.d.elements:
            if isinstance(e, AppliedWrench):
                groups.setdefault((e.axes, bool(e.reaction)), []).append(e)
        for (axes, reacts), members in groups.items():
            self._applied(axes, reacts, members, twists, wrenches)

    def _applied(self, axes: str, reacts: bool, members: list[AppliedWrench], twists: Ref, wrenches: Ref) -> None:
        ground = self.d.ground_name
        own = self.places([e.frame for e in members])
        of = self.places([{"frame": e.frame, "ground": ground}.get(axes, e.axes_of) for e in members])
        other = self.places([e.reaction if reacts else ground for e in members])
        world, part = self.masses.world, self.c.space.part

        def wrench(evaluate: Any, row: Array, *states: Array) -> tuple[Array, ...]:
            values = np.array(evaluate({}))
            (xa, ra, _), (_, rb, _), (xc, rc, _) = (self.whole(*states[k : k + 3]) for k in (0, 3, 6))
            p, turn = row[:3], rb @ row[3:12].reshape(3, 3) if axes != "ground" else world.T
            force, moment = turn @ values[:3], turn @ values[3:]
            found = [part(np.concatenate([force, ra.T @ moment + cross(p, ra.T @ force)]))]
            if reacts:
                # The opposite acts at the same point in space, so that the two together are nothing.
                arm = rc.T @ (xa + ra @ p - xc)
                found.append(-part(np.concatenate([force, rc.T @ moment + cross(arm, rc.T @ force)])))
            return tuple(found)

        def operands(chosen: list[int]) -> tuple[list[Ref], list[Ref]]:
            sides = [[bodies[k] for k in chosen] for bodies, _ in (own, of, other)]
            inputs = [ref for side in sides for ref in self.states(twists, side)]
            pushed = (sides[0], sides[2]) if reacts else sides[:1]
            return inputs, [self.rows(wrenches, self.c.b.column(side), add=True) for side in pushed]

        numbers = [np.concatenate([a[9:], b[:9]]) for a, b in zip(own[1], of[1], strict=True)]
        self.run([e.laws for e in members], numbers, self.shapes * 3, wrench, operands)
