"""Force elements, rolled: laws of one structure share their code, and their constants are numbers in a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.constraints.carried import Carried
from linkwright.constraints.central import Masses
from linkwright.constraints.equations import frame
from linkwright.mechanism.description import Description
from linkwright.mechanism.elements import AppliedWrench, JointForce, PointForce
from linkwright.mechanism.expression import Call, Expression, Name, Number
from linkwright.mechanism.kinds import KIND_LIST, JointKind
from linkwright.spatial.algebra import Array, cross, dot
from linkwright.tape.build import Ref, trace
from linkwright.tape.functions import arctan2
from linkwright.tape.program import Each

Floats = NDArray[np.float64]
Laws = tuple[Expression, ...]


def skeleton(law: Expression, parameters: Mapping[str, float], numbers: list[float]) -> Expression:
    """The law with names in place of its constants and parameters, whose values are put at the end of `numbers`.

    Exponents stay: a square is a product, a power with an unknown exponent is not.
    """
    if isinstance(law, Number) or (isinstance(law, Name) and law.name in parameters):
        numbers.append(float(law.evaluate(parameters)))
        return Name(f"#{len(numbers) - 1}")
    if isinstance(law, Call):
        still = 1 if law.function == "pow" and isinstance(law.arguments[1], Number) else len(law.arguments)
        changed = tuple(skeleton(a, parameters, numbers) for a in law.arguments[:still])
        return Call(law.function, (*changed, *law.arguments[still:]))
    return law


class Elements:
    """The force elements of a mechanism on the bodies of a program under construction."""

    def __init__(self, carried: Carried, d: Description, masses: Masses, t: Ref | None) -> None:
        self.c, self.d, self.masses = carried, d, masses
        self.t = t
        self.position = {d.joint_names[int(j)]: i for i, j in enumerate(carried.tree.topology.joint)}

    def _run(
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
        groups: dict[Laws, list[tuple[int, list[float]]]] = {}
        for k, together in enumerate(laws):
            constants: list[float] = []
            key = tuple(skeleton(law, parameters, constants) for law in together)
            groups.setdefault(key, []).append((k, constants))
        timed = self.t is not None
        for key, members in groups.items():
            chosen = [k for k, _ in members]
            rows = np.array([[*numbers[k], *constants] for k, constants in members])
            own, width = len(numbers[chosen[0]]), rows.shape[1]

            def block(row: Array, *arrays: Array, key: Laws = key, own: int = own) -> tuple[Array, ...]:
                names: dict[str, Any] = {f"#{i}": x for i, x in enumerate(row[own:])}
                names["TIME"] = arrays[0][0] if timed else 0.0
                rest = arrays[1:] if timed else arrays

                def evaluate(more: Mapping[str, Any]) -> list[Any]:
                    return [law.evaluate({**parameters, **names, **more}) for law in key]

                return function(evaluate, row[:own], *rest)

            inputs, outputs = operands(chosen)
            data = b.data(b.free_name("elements"), rows if width else np.zeros((len(rows), 1)))
            given = [data.part(0, (width,)).at((max(width, 1), b.column(range(len(rows)))))]
            if self.t is not None:
                given.append(self.t)
            clock = [(1,)] if timed else []
            made = trace(block, [(width,), *clock, *shapes])[0]
            b.add(Each(len(chosen), (b.case(made, [*given, *inputs], outputs),), "outward"))

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
        self._run([(e.law,) for e in chosen], numbers, [(1,), (1,)], force, operands)

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
        d, masses = self.d, self.masses
        numbers, bodies = [], []
        for j, _ in members:
            parent, child = int(d.parent[j]), int(d.child[j])
            (ri, pi), (rj, pj) = masses.place(parent, d.ri[j], d.pi[j]), masses.place(child, d.rj[j], d.pj[j])
            numbers.append(np.concatenate([ri.reshape(-1), pi, rj.reshape(-1), pj, [d.pitch[j]]]))
            bodies.append(tuple(body if body >= 0 else self.c.nb for body in (parent, child)))

        def push(evaluate: Any, row: Array, *states: Array) -> tuple[Array, ...]:
            (xa, ra, wa), (xb, rb, wb) = (self._whole(*states[k : k + 3]) for k in (0, 3))
            ri, rj = ra @ row[:9].reshape(3, 3), rb @ row[12:21].reshape(3, 3)
            at_j = xb + rb @ row[21:24]
            r, p, pitch = ri.T @ rj, ri.T @ (at_j - (xa + ra @ row[9:12])), row[24]
            arm = ra.T @ (at_j - xa)  # of triad j on the parent's body
            slip = wb[:3] + rb @ cross(wb[3:], row[21:24]) - wa[:3] - ra @ cross(wa[3:], arm)
            relative = np.concatenate([rj.T @ slip, rj.T @ (rb @ wb[3:] - ra @ wa[3:])])
            dual = kind.dual(kind.terms_between(r, p), pitch)[:, index]
            known: dict[str, Any] = {"v": dot(dual, relative)}
            if kind.paired:
                measure = kind.measures(r, p)[index]
                known["q"] = measure.shift
                if measure.shift is None:
                    known["q"] = kind.through(arctan2(measure.sine, measure.cosine), p, pitch)
            wrench = dual * evaluate(known)[0]
            force, moment = rj @ wrench[:3], rj @ wrench[3:]
            own = rb.T @ moment + cross(row[21:24], rb.T @ force)
            back = ra.T @ moment + cross(arm, ra.T @ force)
            part = self.c.space.part
            return -part(np.concatenate([force, back])), part(np.concatenate([force, own]))

        def operands(chosen: list[int]) -> tuple[list[Ref], list[Ref]]:
            sides = [[bodies[k][side] for k in chosen] for side in range(2)]
            inputs = [ref for side in sides for ref in self._states(twists, side)]
            return inputs, [self._rows(wrenches, self.c.b.column(side), add=True) for side in sides]

        self._run([(e.law,) for _, e in members], numbers, self._shapes * 2, push, operands)

    def _rows(self, ref: Ref, column: int, *, add: bool = False) -> Ref:
        motion = self.c.space.motion
        return ref.part(0, (motion,)).at((motion, column), add=add)

    def _whole(self, x: Array, r: Array, w: Array) -> tuple[Array, Array, Array]:
        """x, R and the six numbers of the twist of a row."""
        return x, self.c.space.axes(r), self.c.space.whole(w)

    @property
    def _shapes(self) -> list[tuple[int, ...]]:
        """Of `_states`."""
        return [(3,), (self.c.space.turn,), (self.c.space.motion,)]

    def _states(self, twists: Ref, members: Sequence[int]) -> list[Ref]:
        column = self.c.b.column(members)
        return [
            self.c.x.part(0, (3,)).at((3, column)),
            self.c.r.part(0, (self.c.space.turn,)).at((self.c.space.turn, column)),
            self._rows(twists, column),
        ]

    def _places(self, names: Sequence[str]) -> tuple[list[int], list[Floats]]:
        """The rows of the bodies that carry these frames, and R and p in their central frames."""
        bodies, placed = [], []
        for name in names:
            body, r, p = frame(self.d, name)
            r, p = self.masses.place(body, r, p)
            bodies.append(body if body >= 0 else self.c.nb)
            placed.append(np.concatenate([r.reshape(-1), p]))
        return bodies, placed

    def point_forces(self, twists: Ref, wrenches: Ref) -> None:
        """wrenches += those of forces between points."""
        chosen = [e for e in self.d.elements if isinstance(e, PointForce)]
        first, second = (self._places([getattr(e, side) for e in chosen]) for side in ("first", "second"))

        def pair(evaluate: Any, row: Array, *states: Array) -> tuple[Array, ...]:
            points = []
            for k in range(2):
                x, r, w = self._whole(*states[3 * k : 3 * k + 3])
                p = row[3 * k : 3 * k + 3]
                points.append((x + r @ p, w[:3] + r @ cross(w[3:], p), r, p))
            (xa, va, ra, pa), (xb, vb, rb, pb) = points
            line = xb - xa
            distance = np.sqrt(dot(line, line))
            unit = line / distance
            force = evaluate({"d": distance, "dd": dot(unit, vb - va)})[0] * unit
            part = self.c.space.part
            return (
                part(np.concatenate([-force, -cross(pa, ra.T @ force)])),
                part(np.concatenate([force, cross(pb, rb.T @ force)])),
            )

        def operands(members: list[int]) -> tuple[list[Ref], list[Ref]]:
            sides = [[bodies[k] for k in members] for bodies, _ in (first, second)]
            inputs = [ref for side in sides for ref in self._states(twists, side)]
            return inputs, [self._rows(wrenches, self.c.b.column(side), add=True) for side in sides]

        numbers = [np.concatenate([a[9:], b[9:]]) for a, b in zip(first[1], second[1], strict=True)]
        self._run([(e.law,) for e in chosen], numbers, self._shapes * 2, pair, operands)

    def applied_wrenches(self, twists: Ref, wrenches: Ref) -> None:
        """wrenches += those of laws of TIME on bodies."""
        masses = self.masses
        for axes in ("frame", "ground"):
            chosen = [e for e in self.d.elements if isinstance(e, AppliedWrench) and e.axes == axes]
            bodies, placed = self._places([e.frame for e in chosen])

            def wrench(evaluate: Any, row: Array, x: Array, r: Array, w: Array, axes: str = axes) -> tuple[Array, ...]:
                values = np.array(evaluate({}))
                (_, r, _), p, part = self._whole(x, r, w), row[9:], self.c.space.part
                if axes == "frame":
                    own = row[:9].reshape(3, 3)
                    force, moment = own @ values[:3], own @ values[3:]
                    return (part(np.concatenate([r @ force, moment + cross(p, force)])),)
                force, moment = masses.world.T @ values[:3], masses.world.T @ values[3:]
                return (part(np.concatenate([force, r.T @ moment + cross(p, r.T @ force)])),)

            def operands(members: list[int], bodies: list[int] = bodies) -> tuple[list[Ref], list[Ref]]:
                rows = [bodies[k] for k in members]
                output = self._rows(wrenches, self.c.b.column(rows), add=True)
                return self._states(twists, rows), [output]

            self._run([e.laws for e in chosen], placed, self._shapes, wrench, operands)
