"""The quantities that laws name, measured at a state, rolled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwright.constraints.laws import Laws
from linkwright.mechanism.quantities import Quantity
from linkwright.spatial.algebra import Array, cross, dot, length
from linkwright.tape.build import Ref


class Quantities(Laws):
    """Values of quantities, in a buffer of their own."""

    def measure(self, wanted: Sequence[Quantity], q: Ref, v: Ref, twists: Ref) -> tuple[Ref, dict[Quantity, int]]:
        """The values, for bodies that are in their places, and where each of them stands."""
        number = {x: k for k, x in enumerate(dict.fromkeys(wanted))}
        values = self.c.b.temporary("quantities", (len(number),))
        groups: dict[tuple[Any, ...], list[Quantity]] = {}
        for x in number:
            joint = x.of[0] if x.kind == "joint" else ""
            if x.kind == "joint" and joint in self.position:
                groups.setdefault(("tree", x.rate), []).append(x)
            elif x.kind == "joint":
                kind = self.d.kind_of(self.d.joint_names.position("joint", joint))
                groups.setdefault(("loop", x.rate, kind, x.index), []).append(x)
            else:
                groups.setdefault((x.kind, x.rate, x.index), []).append(x)
        for key, members in groups.items():
            column = self.c.b.column([number[x] for x in members])
            output = values.part(0, (1,)).at((1, column))
            if key[0] == "tree":
                self._tree(members, v if key[1] else q, key[1], output)
            elif key[0] == "loop":
                self._loop(members, key, twists, output)
            else:
                self._places(members, key, twists, output)
        return values, number

    def _tree(self, members: Sequence[Quantity], source: Ref, rate: bool, output: Ref) -> None:
        x = self.c.tree.coordinates
        at = [self.position[m.of[0]] for m in members]
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

    def _loop(self, members: Sequence[Quantity], key: tuple[Any, ...], twists: Ref, output: Ref) -> None:
        _, rate, kind, index = key
        bodies, numbers = self.loop_joints([self.d.joint_names.position("joint", m.of[0]) for m in members])

        def measured(evaluate: Any, row: Array, *states: Array) -> tuple[Array, ...]:
            found = self.at_loop(kind, index, row, states)
            return (np.array([found.rate if rate else found.coordinate]),)

        inputs = [ref for side in zip(*bodies, strict=True) for ref in self.states(twists, side)]
        self.run([()] * len(members), numbers, self.shapes * 2, measured, lambda chosen: (inputs, [output]))

    def _places(self, members: Sequence[Quantity], key: tuple[Any, ...], twists: Ref, output: Ref) -> None:
        what, rate, index = key
        ends = [self.places([m.of[k] for m in members]) for k in range(len(members[0].of))]
        world = self.masses.world

        def measured(evaluate: Any, row: Array, *states: Array) -> tuple[Array, ...]:
            points = []
            for k in range(len(ends)):
                x, r, w = self.whole(*states[3 * k : 3 * k + 3])
                p = row[3 * k : 3 * k + 3]
                points.append((x + r @ p, np.concatenate([w[:3] + r @ cross(w[3:], p), r @ w[3:]])))
            if what == "place":
                (x, w) = points[0]
                found = [*(world @ w[:3]), *(world @ w[3:])] if rate else [*(world @ x)]
                return (np.array([found[index]]),)
            (xa, wa), (xb, wb) = points
            line = xb - xa
            distance = length(line)
            return (np.array([dot(line, wb[:3] - wa[:3]) / distance if rate else distance]),)

        numbers = [
            np.concatenate([own[9:] for own in row]) for row in zip(*(placed for _, placed in ends), strict=True)
        ]
        inputs = [ref for bodies, _ in ends for ref in self.states(twists, bodies)]
        self.run([()] * len(members), numbers, self.shapes * len(ends), measured, lambda chosen: (inputs, [output]))
