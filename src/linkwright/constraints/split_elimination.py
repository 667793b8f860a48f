"""Bodies that many constraints act on, cut into pieces, and an elimination in rounds of constraints that do not
touch.

Constraints of one body are all neighbours in S: with k of them the elimination would take k³. In pieces that are welded
to a row, each with its part of the inertia and a few of the constraints, a body is like a chain, and the work grows
with k. Welds are equations of S alone: J, motions and multipliers know whole bodies, and the solution is the same.

Constraints far apart are eliminated side by side: of a chain every other joint, then every other one of those that are
left, and so on, so that the number of rounds grows with the logarithm of the number of constraints. What a round leaves
of its neighbours is what the paper keeps of an assembly's handles. Items of a round that add to one place take turns.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

MANY = 8  # constraints of a body beyond which it is cut
MANY_NAMED = 16  # the same where redundant equations are to be named, which takes a worse order
FEW = 3  # constraints of a piece


@dataclass(frozen=True, eq=False)
class Incidence:
    """A constraint's part of J: its constraint, its body, and where its (m, width) numbers begin in the store of J."""

    constraint: int
    body: int
    at: int


@dataclass(frozen=True, eq=False)
class End(Incidence):
    """What an equation has on a piece of a body: a part of J, or with a `sign` a weld, whose part of J is ±1."""

    piece: int
    share: int = 1  # of how many pieces this is one
    sign: int = 0


def cut(constraints: int, incidences: Sequence[Incidence], most: int) -> tuple[list[End], int]:
    """The ends of all constraints, and of the welds, which are numbered after them; and how many welds there are.

    Bodies with more than `most` constraints are cut.
    """
    bodies = max((x.body for x in incidences), default=-1) + 1
    number = np.bincount([x.body for x in incidences], minlength=bodies)
    pieces: dict[int, list[int]] = {}
    row = bodies
    for body in np.flatnonzero(number > most).tolist():
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


def welds_first(ends: Sequence[End], nodes: int) -> list[set[int]]:
    """For every constraint and weld, the welds that must be eliminated before it: those that tie its pieces to the
    pieces before them in their row.

    Nothing else on a weld's second piece has then been eliminated before the weld, so that no weld repeats equations:
    all that do are constraints'.
    """
    welds_on = {x.piece: x.constraint for x in ends if x.sign < 0}
    before: list[set[int]] = [set() for _ in range(nodes)]
    for x in ends:
        weld = welds_on.get(x.piece)
        if weld is not None and weld != x.constraint:
            before[x.constraint].add(weld)
    return before


#: In a round, constraints of up to so many times the least degree take part: more of them leave fewer rounds, and more
#: fill.
SPREAD = 2

#: An item to be computed: its level, its code, where its numbers are, and the place that it adds to.
Item = tuple[int, Any, tuple[int, ...], Hashable]


def order_in_rounds(neighbours: Sequence[set[int]]) -> tuple[list[int], list[list[int]], list[int]]:
    """The order, for each node in it those that it leaves behind, and its round."""
    around = [set(n) for n in neighbours]
    waiting = set(range(len(around)))
    sequence: list[int] = []
    left: list[list[int]] = []
    rounds: list[int] = []
    number = 0
    while waiting:
        least = min(len(around[k]) for k in waiting)
        blocked: set[int] = set()
        chosen = []
        for k in sorted(waiting, key=lambda k: (len(around[k]), k)):
            if len(around[k]) > SPREAD * least + 2:
                break
            if k not in blocked:
                chosen.append(k)
                blocked |= around[k]
        for k in chosen:
            others = around[k]
            sequence.append(k)
            left.append(sorted(others))
            rounds.append(number)
            for i in others:
                around[i] |= others
                around[i] -= {i, k}
        waiting.difference_update(chosen)
        number += 1
    return sequence, left, rounds


def in_runs(items: Sequence[Item]) -> tuple[list[int], list[int]]:
    """An order of the items, and where its runs begin (and at last their number).

    The items of a run have one code and one level, and no two of them add to one place.
    """
    turns: dict[tuple[int, Hashable], int] = {}
    codes: dict[Any, int] = {}
    keys = []
    for level, code, _, target in items:
        turn = turns.get((level, target), 0)
        turns[level, target] = turn + 1
        keys.append((level, turn, codes.setdefault(code, len(codes))))
    table = np.array(keys).reshape(-1, 3)
    order = np.lexsort((table[:, 2], table[:, 1], table[:, 0]))
    table = table[order]
    changes = np.flatnonzero(np.any(np.diff(table, axis=0) != 0, axis=1)) + 1
    return order.tolist(), [0, *changes.tolist(), len(items)]
