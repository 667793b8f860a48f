"""Laws of forces, rolled: those of one structure share their code, and their constants are numbers in a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.base.types import Floats
from linkwright.constraints.carried import Carried
from linkwright.constraints.equations import frame
from linkwright.mechanism.expression import Call, Expression, Lookup, Name, Number
from linkwright.mechanism.kinds import JointKind
from linkwright.mechanism.quantities import Quantity
from linkwright.spatial.algebra import Array, cross, dot
from linkwright.tape.build import Ref, trace
from linkwright.tape.functions import arctan2
from linkwright.tape.program import Each

Together = tuple[Expression, ...]  # the laws of one element


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


class Laws:
    """Runs laws over the bodies of a program under construction."""

    def __init__(self, carried: Carried, t: Ref | None) -> None:
        self.c, self.d, self.masses, self.t = carried, carried.tree.description, carried.masses, t
        self.position = {self.d.joint_names[int(j)]: i for i, j in enumerate(carried.tree.topology.joint)}
        self.values: tuple[Ref, dict[Quantity, int]] | None = None  # quantities' values, and where each stands

    def run(
        self,
        laws: Sequence[Together],
        numbers: Sequence[Floats],
        shapes: Sequence[tuple[int, ...]],
        function: Callable[..., tuple[Array, ...]],
        operands: Callable[[list[int]], tuple[list[Ref], list[Ref]]],
    ) -> None:
        """function(evaluate, numbers, *inputs) for every element; evaluate(names) gives the values of its laws.

        `numbers` are the element's own; `operands` gives inputs of these shapes, and outputs, of chosen elements.
        """
        b, parameters = self.c.b, self.d.parameters
        groups: dict[Together, list[tuple[int, list[float], list[Quantity]]]] = {}
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
            own, width = len(numbers[chosen[0]]), rows.shape[1]

            def block(
                row: Array, *arrays: Array, key: Together = key, own: int = own, count: int = count
            ) -> tuple[Array, ...]:
                names: dict[str, Any] = {f"#{i}": x for i, x in enumerate(row[own:])}
                names |= {f"@{i}": arrays[i][0] for i in range(count)}
                names["TIME"] = arrays[count][0] if timed else 0.0
                rest = arrays[count + 1 :] if timed else arrays[count:]

                def evaluate(more: Mapping[str, Any]) -> list[Any]:
                    return [law.evaluate({**parameters, **names, **more}) for law in key]

                return function(evaluate, row[:own], *rest)

            inputs, outputs = operands(chosen)
            data = b.data(b.free_name("elements"), rows if width else np.zeros((len(rows), 1)))
            given = [data.part(0, (width,)).at((max(width, 1), b.column(range(len(rows)))))]
            given += [self._value([own[i] for _, _, own in members]) for i in range(count)]
            if self.t is not None:
                given.append(self.t)
            singles = [(1,)] * (count + timed)
            made = trace(block, [(width,), *singles, *shapes])[0]
            b.add(Each(len(chosen), (b.case(made, [*given, *inputs], outputs),), "outward"))

    def _value(self, quantities: Sequence[Quantity]) -> Ref:
        assert self.values is not None
        values, at = self.values
        return values.part(0, (1,)).at((1, self.c.b.column([at[x] for x in quantities])))

    # -- bodies -----------------------------------------------------------------------------------------------
    def rows(self, ref: Ref, column: int, *, add: bool = False) -> Ref:
        motion = self.c.space.motion
        return ref.part(0, (motion,)).at((motion, column), add=add)

    def whole(self, x: Array, r: Array, w: Array) -> tuple[Array, Array, Array]:
        """x, R and the six numbers of the twist of a row."""
        return x, self.c.space.axes(r), self.c.space.whole(w)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of `_states`."""
        return [(3,), (self.c.space.turn,), (self.c.space.motion,)]

    def states(self, twists: Ref, members: Sequence[int]) -> list[Ref]:
        column = self.c.b.column(members)
        return [
            self.c.x.part(0, (3,)).at((3, column)),
            self.c.r.part(0, (self.c.space.turn,)).at((self.c.space.turn, column)),
            self.rows(twists, column),
        ]

    def places(self, names: Sequence[str]) -> tuple[list[int], list[Floats]]:
        """The rows of the bodies that carry these frames, and R and p in their central frames."""
        bodies, placed = [], []
        for name in names:
            body, r, p = frame(self.d, name)
            r, p = self.masses.place(body, r, p)
            bodies.append(body if body >= 0 else self.c.nb)
            placed.append(np.concatenate([r.reshape(-1), p]))
        return bodies, placed

    # -- joints that close loops --------------------------------------------------------------------------------
    def loop_joints(self, joints: Sequence[int]) -> tuple[list[tuple[int, int]], list[Floats]]:
        """The rows of the bodies that joints join, and their triads in central frames with the pitch."""
        d, bodies, numbers = self.d, [], []
        for j in joints:
            parent, child = int(d.parent[j]), int(d.child[j])
            (ri, pi), (rj, pj) = (
                self.masses.place(parent, d.ri[j], d.pi[j]),
                self.masses.place(child, d.rj[j], d.pj[j]),
            )
            numbers.append(np.concatenate([ri.reshape(-1), pi, rj.reshape(-1), pj, [d.pitch[j]]]))
            bodies.append((parent if parent >= 0 else self.c.nb, child if child >= 0 else self.c.nb))
        return bodies, numbers

    def at_loop(self, kind: JointKind, index: int, row: Array, states: Sequence[Array]) -> LoopState:
        """Such a joint where its bodies have these states."""
        (xa, ra, wa), (xb, rb, wb) = (self.whole(*states[k : k + 3]) for k in (0, 3))
        ri, rj = ra @ row[:9].reshape(3, 3), rb @ row[12:21].reshape(3, 3)
        at_j = xb + rb @ row[21:24]
        r, p, pitch = ri.T @ rj, ri.T @ (at_j - (xa + ra @ row[9:12])), row[24]
        arm = ra.T @ (at_j - xa)  # of triad j on the parent's body
        slip = wb[:3] + rb @ cross(wb[3:], row[21:24]) - wa[:3] - ra @ cross(wa[3:], arm)
        relative = np.concatenate([rj.T @ slip, rj.T @ (rb @ wb[3:] - ra @ wa[3:])])
        dual = kind.dual(kind.terms_between(r, p), pitch)[:, index]
        coordinate: Any = 0.0
        if kind.paired:
            measure = kind.measures(r, p)[index]
            coordinate = measure.shift
            if measure.shift is None:
                coordinate = kind.through(arctan2(measure.sine, measure.cosine), p, pitch)
        force, moment = rj @ dual[:3], rj @ dual[3:]
        own = np.concatenate([force, rb.T @ moment + cross(row[21:24], rb.T @ force)])
        back = np.concatenate([force, ra.T @ moment + cross(arm, ra.T @ force)])
        return LoopState(coordinate, dot(dual, relative), -self.c.space.part(back), self.c.space.part(own))


@dataclass(frozen=True)
class LoopState:
    """A coordinate of a joint that closes a loop, its rate, and the wrenches of a unit force along it."""

    coordinate: Any
    rate: Any
    on_parent: Array
    on_child: Array
