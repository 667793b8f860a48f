"""An elimination in rounds of constraints that do not touch each other, as Yamane and Nakamura assemble a mechanism.

Constraints far apart are eliminated side by side: of a chain every other joint, then every other one of those that are
left, and so on, so that the number of rounds grows with the logarithm of the number of constraints. What a round leaves
of its neighbours is what the paper keeps of an assembly's handles. Items of a round that add to one place take turns.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

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
