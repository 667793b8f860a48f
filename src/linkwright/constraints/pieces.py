"""Where everything stands when bodies are masses; a body that many constraints hold is cut into pieces.

Constraints of one body are all neighbours in S: with k of them the elimination would take k³. In pieces that are welded
to a row, each with its part of the inertia and a few of the constraints, a body is like a chain, and the work grows
with k. The row of a body is its first piece's; the further ones stand after ground's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from linkwright.constraints.blocks import Pattern
from linkwright.constraints.carried import patterns
from linkwright.constraints.central import CentralEquations
from linkwright.constraints.elimination import Elimination, Incidence
from linkwright.constraints.forms import Form
from linkwright.constraints.recorded import Layout

Floats = NDArray[np.float64]
MANY = 8  # constraints of a body beyond which it is cut
FEW = 3  # constraints of a piece

Key = tuple[Form, tuple[bool, ...], Pattern]


class CentralLayout(Layout):
    """Where everything stands, with the numbers of records that are trivial folded into the code."""

    equations: CentralEquations

    def __init__(self, equations: CentralEquations) -> None:
        self.width = equations.space.motion
        super().__init__(equations)

    @cached_property
    def pieces(self) -> dict[int, list[int]]:
        """The rows of the pieces of every body that is cut, its own first."""
        number = np.bincount([x.body for x in self.incidences], minlength=self.equations.nb)
        pieces: dict[int, list[int]] = {}
        row = self.equations.nb + 1
        for body in np.flatnonzero(number > MANY).tolist():
            more = -(-int(number[body]) // FEW) - 1
            pieces[body] = [body, *range(row, row + more)]
            row += more
        return pieces

    @cached_property
    def rows(self) -> int:
        """How many rows motions and wrenches have: bodies, ground, further pieces."""
        return self.equations.nb + 1 + sum(len(own) - 1 for own in self.pieces.values())

    @cached_property
    def welds(self) -> list[tuple[int, int]]:
        """For every two pieces that are welded, where their parts of J stand."""
        part = self.width**2
        number = sum(len(own) - 1 for own in self.pieces.values())
        return [(at, at + part) for at in range(self.jacobian_size, self.jacobian_size + 2 * part * number, 2 * part)]

    @property
    def store(self) -> int:
        """The numbers of J, welds included."""
        return self.jacobian_size + 2 * self.width**2 * len(self.welds)

    @property
    def count(self) -> int:
        """How many equations there are, welds included."""
        return self.equations.count + self.width * len(self.welds)

    @cached_property
    def plan(self) -> Elimination:
        held: dict[int, int] = dict.fromkeys(self.pieces, 0)
        incidences = []
        for x in self.incidences:
            body = x.body
            if body in held:
                held[body] += 1
                body = self.pieces[body][(held[body] - 1) // FEW]
            incidences.append(Incidence(x.constraint, body, x.at))
        sizes = [c.form.size for c in self.equations.constraints]
        pairs = [pair for own in self.pieces.values() for pair in pairwise(own)]
        for pair, places in zip(pairs, self.welds, strict=True):
            incidences += [Incidence(len(sizes), row, at) for row, at in zip(pair, places, strict=True)]
            sizes.append(self.width)
        return Elimination(sizes, incidences, self.width)

    def over_pieces(self, numbers: Floats, share: Callable[[Floats, int], Floats]) -> Floats:
        """A row for each body, ground (zero) and each piece: share(the body's, number of pieces)."""
        found = np.concatenate([numbers, np.zeros((self.rows - self.equations.nb, self.width))])
        for body, own in self.pieces.items():
            found[own] = share(numbers[body], len(own))
        return found

    @cached_property
    def patterns(self) -> list[Pattern]:
        """For each constraint, which numbers of its record are trivial."""
        found: list[Pattern] = [()] * len(self.equations.constraints)
        for members in self.groups.values():
            chosen = patterns([self.equations.constraints[k].record for k in members])
            for k, pattern in zip(members, chosen, strict=True):
                found[k] = pattern
        return found

    @cached_property
    def alike(self) -> dict[Key, list[int]]:
        """The constraints that share their code."""
        found: dict[Key, list[int]] = {}
        for (form, moving), members in self.groups.items():
            for k in members:
                found.setdefault((form, moving, self.patterns[k]), []).append(k)
        return found
