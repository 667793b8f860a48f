"""Bodies that many constraints hold, cut into pieces.

Constraints of one body are all neighbours in S: with k of them the elimination would take k³. In pieces that are welded
to a row, each with its part of the inertia and a few of the constraints, a body is like a chain, and the work grows
with k. Welds are equations of S alone: J, motions and multipliers know whole bodies, and the solution is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

MANY = 8  # constraints of a body beyond which it is cut
FEW = 3  # constraints of a piece


@dataclass(frozen=True, eq=False)
class Incidence:
    """A constraint's part of J: its constraint, its body, and where its (m, width) numbers begin in the store of J."""

    constraint: int
    body: int
    at: int


@dataclass(frozen=True, eq=False)
class End:
    """What an equation has on a piece of a body: a part of J, or with a `sign` a weld, whose part of J is ±1."""

    constraint: int
    body: int
    at: int
    piece: int
    share: int = 1  # of how many pieces this is one
    sign: int = 0


def cut(constraints: int, incidences: Sequence[Incidence], whole: bool) -> tuple[list[End], int]:
    """The ends of all constraints, and of the welds, which are numbered after them; and how many welds there are.

    `whole` bodies are not cut.
    """
    bodies = max((x.body for x in incidences), default=-1) + 1
    number = np.bincount([x.body for x in incidences], minlength=bodies)
    pieces: dict[int, list[int]] = {}
    row = bodies
    for body in [] if whole else np.flatnonzero(number > MANY).tolist():
        more = -(-int(number[body]) // FEW) - 1
        pieces[body] = [body, *range(row, row + more)]
        row += more
    held = dict.fromkeys(pieces, 0)
    ends = []
    for x in incidences:
        parts = pieces.get(x.body, [x.body])
        piece = parts[held[x.body] // FEW] if x.body in held else x.body
        if x.body in held:
            held[x.body] += 1
        ends.append(End(x.constraint, x.body, x.at, piece, len(parts)))
    welds = 0
    for body, parts in pieces.items():
        for pair in pairwise(parts):
            signs = zip(pair, (1, -1), strict=True)
            ends += [End(constraints + welds, body, 0, piece, len(parts), sign) for piece, sign in signs]
            welds += 1
    return ends, welds
