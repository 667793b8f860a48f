"""Laws of forces, rolled: those of one structure share their code, and their constants are numbers in a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.constraints.body_rows import CentralFrame
from linkwright.constraints.equations import frame
from linkwright.constraints.tree_bodies import Carried
from linkwright.model.element_steps import Evaluate, Laws
from linkwright.model.expression import Call, Expression, Lookup, Name, Number
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
        return self._frames([[frame(self.d, name) for name in every] for every in names], turned)

    def loop_frames(self, joints: Sequence[int]) -> Frames:
        """The frames of joints on the bodies that they join, and as further number the pitch."""
        d = self.d
        sides = [[(int(d.parent[j]), d.ri[j], d.pi[j]), (int(d.child[j]), d.rj[j], d.pj[j])] for j in joints]
        return self._frames(sides, (0, 1), [[d.pitch[j]] for j in joints])

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
