"""A tree put together in O(log N) rounds: leaves are raked, chains compressed.

From every link the path goes on to its heaviest child; the other children are light, and begin paths of their own.
A path is compressed by joins of neighbouring parts, split where their weights are even; what the light children of
a link pass to it is raked by sums, split likewise. A part of weight w in a whole of weight W lies at most about
2·log₂(W/w) splits deep, and the weights telescope over the light edges: the depth is O(log N) for any tree.

Neighbours without light children are first put together one by one, in stretches of up to `STRETCH` links: to set
one link on top of others costs a third of a join. That adds `STRETCH` to the depth, and no more.

A node is a part of a path: node i < n is link i with the rest of its stretch, the others come from joins. All arrays
are by NumPy passes, so that 10⁶ links take about a second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Longs

STRETCH = 16  # links put together one by one

Ints = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Contraction:
    """The rounds: joins within paths, and sums of what light children pass to their parent.

    `n` stands for no link, as the child below the end of a path and the link that carries a root: see `ground`.
    """

    n: int
    ground: int  # n + 1: the number that stands for ground where a parent is asked for
    parent: Ints  # of every link; ground for a root
    heavy: Ints  # the next link of the path, n at its end
    inner: Ints  # the links whose next one is in the same stretch
    ends: Ints  # the last link of every stretch
    row: Ints  # a number for every link, such that links as far from the end of their stretches are neighbours
    # joins, in the order of their nodes n, n + 1, ...
    above: Ints  # the two nodes
    below: Ints
    joint: Ints  # the link whose joint they meet in: the first of `below`
    # nodes
    first: Ints  # the first link of every node
    after: Ints  # the link below its last one, n at the end of a path
    # paths, in the order of what they pass: 0, 1, ...
    head: Ints  # the first link of every path
    last: Ints  # its last link
    whole: Ints  # its node
    # sums, in the order of what they give: len(head), len(head) + 1, ...
    left: Ints
    right: Ints
    light: Ints  # for every link the sum of what its light children pass; `nothing` where there are none
    apart: Ints  # links that need the next one of their path, and end a stretch before it

    @property
    def nodes(self) -> int:
        return self.n + len(self.above)

    @property
    def nothing(self) -> int:
        return len(self.head) + len(self.left)


def contract(
    parent: Ints,
    stretch: int = STRETCH,
    *,
    hollow: NDArray[np.bool_] | None = None,
    weak: NDArray[np.bool_] | None = None,
) -> Contraction:
    """The contraction of a tree whose parents come before their children (−1: ground); 1 is no stretches.

    `weak` links do not resist the freedom of their own joint, `hollow` ones have a singular inertia: a stretch goes on
    behind a weak link until it has a link that is not hollow, which resists for all of them.
    """
    n = len(parent)
    up = np.where(parent < 0, n + 1, parent).astype(np.int32)
    weight = _weights(parent)
    heavy = _heaviest(parent, weight)
    head, path, at = _paths(parent, heavy)
    # Links in the order of their paths; a link's own weight is its own and its light children's.
    order = np.lexsort((at, path))
    single = weight.copy()
    has = heavy < n
    single[has] -= weight[heavy[has]]
    together = np.zeros(n, bool) if weak is None or hollow is None else _together(path, order, hollow, weak)
    starts = _stretches(path[order], single[order] == 1, stretch, together[order])
    stops = np.append(starts[1:], n)
    end = np.empty(n, np.int64)  # the last link of every link's stretch
    end[order] = np.repeat(order[stops - 1], stops - starts)
    row = np.empty(n, np.int64)
    row[order[np.argsort(np.repeat(stops, stops - starts) - np.arange(n), kind="stable")]] = np.arange(n)
    paths = np.searchsorted(path[order[starts]], np.arange(len(head) + 1))
    rows, parts, whole = _split(np.add.reduceat(single[order], starts), paths, order[starts], n)
    first = np.concatenate([np.arange(n), order[starts[rows[:, 0]]]])
    after = np.concatenate([heavy[end], heavy[order[stops[rows[:, 2] - 1] - 1]]])
    sums, light = _sums(parent, head, weight)
    return Contraction(
        n=n,
        ground=n + 1,
        parent=up,
        heavy=heavy,
        inner=_ints(np.flatnonzero(end != np.arange(n))),
        ends=_ints(order[stops - 1]),
        row=_ints(row),
        above=_ints(parts[:, 0]),
        below=_ints(parts[:, 1]),
        joint=_ints(order[starts[rows[:, 1]]]),
        first=_ints(first),
        after=_ints(after),
        head=head,
        last=_ints(order[stops[paths[1:] - 1] - 1]),
        whole=_ints(whole),
        left=_ints(sums[:, 0]),
        right=_ints(sums[:, 1]),
        light=light,
        apart=_ints(order[stops - 1][together[order[stops - 1]] & (heavy[order[stops - 1]] < n)]),
    )


def _ints(x: Longs | Ints) -> Ints:
    return np.ascontiguousarray(x, dtype=np.int32)


def _weights(parent: Ints) -> Longs:
    """How many links each one carries, itself included."""
    n = len(parent)
    if np.array_equal(parent, np.arange(-1, n - 1)):
        return np.arange(n, 0, -1)
    weight = [1] * n
    for i in range(n - 1, -1, -1):
        p = int(parent[i])
        if p >= 0:
            weight[p] += weight[i]
    return np.array(weight, np.int64)


def _heaviest(parent: Ints, weight: Longs) -> Ints:
    """The heaviest child of each link, the first of equals; n where there is none."""
    n = len(parent)
    heavy = np.full(n, n, np.int32)
    # Written lightest first, so that the heaviest stays; of equals the first is written last.
    order = np.lexsort((-np.arange(n), weight))
    order = order[parent[order] >= 0]
    heavy[parent[order]] = order
    return heavy


def _paths(parent: Ints, heavy: Ints) -> tuple[Ints, Ints, Longs]:
    """The first link of every path; for every link its path and its place on it."""
    n = len(parent)
    follows = np.zeros(n, bool)
    follows[heavy[heavy < n]] = True
    head = np.flatnonzero(~follows).astype(np.int32)
    path = np.empty(n, np.int32)
    path[head] = np.arange(len(head))
    # Pointer doubling: every link finds its head, and how far it is.
    above = np.where(follows, parent, np.arange(n))
    at = follows.astype(np.int64)
    while True:
        further = above[above]
        if np.array_equal(further, above):
            break
        at = at + at[above]
        above = further
    return head, path[above], at


def _together(path: Ints, order: Longs, hollow: NDArray[np.bool_], weak: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The links that need the next one of their path: hollow, and so are those up to a weak one above."""
    at = np.arange(len(order))
    begins = np.append(True, np.diff(path[order]) != 0)
    last_weak = np.maximum.accumulate(np.where(weak[order], at, -1))
    last_whole = np.maximum.accumulate(np.where(~hollow[order], at, np.where(begins, at - 1, -1)))
    together = np.zeros(len(order), bool)
    together[order] = hollow[order] & (last_weak > last_whole)
    return together


def _stretches(path: Ints, single: NDArray[np.bool_], most: int, together: NDArray[np.bool_]) -> Longs:
    """Where stretches begin, of links in the order of their paths: at most `most` that are single.

    After a link that is `together` with the next one a stretch only ends if it must.
    """
    n = len(path)
    goes_on = np.zeros(n, bool)
    goes_on[1:] = single[1:] & single[:-1] & (path[1:] == path[:-1])
    begins = np.flatnonzero(~goes_on)
    place = np.arange(n) - np.repeat(begins, np.diff(np.append(begins, n)))
    if not together.any():
        return np.flatnonzero(~goes_on | (place % most == 0))
    can = np.flatnonzero(~(goes_on & np.append(False, together[:-1])))
    wanted = np.searchsorted(can, np.flatnonzero(place % most == 0))
    return np.unique(np.concatenate([begins, can[wanted[wanted < len(can)]]]))


def _split(weight: Longs, starts: Longs, entry: Longs | Ints, n: int) -> tuple[Longs, Longs, Longs]:
    """Every stretch [starts[k], starts[k+1]) split down to single entries, where its weights are even.

    The splits as rows (low, middle, high), the numbers of their two parts, and those of the whole stretches: an
    entry has its number in `entry`, the splits have n, n + 1, ...
    """
    before = np.concatenate([[0], np.cumsum(weight)])
    low, high = starts[:-1].astype(np.int64), starts[1:].astype(np.int64)
    rows: list[Longs] = []
    numbers: list[Longs] = []
    count = 0
    while len(low):
        several = high - low > 1
        numbers.append(np.where(several, n + count + np.cumsum(several) - 1, entry[low]))
        low, high = low[several], high[several]
        count += len(low)
        half = before[low] + before[high]  # twice the weight up to the middle
        middle = np.searchsorted(before, (half + 1) // 2, side="left")
        # The boundary before or after the entry that crosses the middle, whichever is nearer.
        nearer = half - 2 * before[middle - 1] <= 2 * before[middle] - half
        middle = np.clip(middle - nearer, low + 1, high - 1)
        rows.append(np.stack([low, middle, high], axis=1))
        low, high = np.stack([low, middle], axis=1).reshape(-1), np.stack([middle, high], axis=1).reshape(-1)
    if not rows:
        return np.zeros((0, 3), np.int64), np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
    parts = np.concatenate([np.zeros(0, np.int64), *numbers[1:]])
    return np.concatenate(rows), parts.reshape(-1, 2), numbers[0]


def _sums(parent: Ints, head: Ints, weight: Longs) -> tuple[Longs, Ints]:
    """What light children pass, summed two by two: the terms of each sum, and every link's total."""
    n, paths = len(parent), len(head)
    carrier = parent[head]
    order = np.argsort(carrier, kind="stable")
    order = order[carrier[order] >= 0]  # nothing is passed to ground
    links, starts = np.unique(carrier[order], return_index=True)
    starts = np.append(starts, len(order))
    _, parts, total = _split(weight[head[order]], starts, order, paths)
    light = np.full(n, paths + len(parts), np.int32)
    light[links] = total
    return parts, light


__all__ = ["Contraction", "contract"]
