"""From joints to a spanning tree: breadth-first from ground in the order of the file; the rest close loops."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwright.base.locks import cached_property
from linkwright.base.text import first_few
from linkwright.errors import ModelError
from linkwright.mechanism.description import GROUND, Description

Ints = NDArray[np.int32]
_MANY = 10_000  # bodies from which SciPy is worth its import


@dataclass(frozen=True, eq=False)
class Topology:
    """Position i of the tree is a body with the joint that carries it; parents come before children."""

    body: Ints  # the body at each position
    joint: Ints  # its joint
    reverse: NDArray[np.bool_]  # whether the joint's frame j is on the parent's side
    parent: Ints  # the position of the parent, −1 for ground
    loops: tuple[int, ...]  # joints that close loops

    def __len__(self) -> int:
        return len(self.body)

    @cached_property
    def position(self) -> Ints:
        """The position of each body."""
        position = np.empty(len(self), np.int32)
        position[self.body] = np.arange(len(self), dtype=np.int32)
        return position

    def path(self, position: int) -> list[int]:
        """A position and those that carry it, nearest first; none for ground."""
        positions = []
        while position >= 0:
            positions.append(position)
            position = int(self.parent[position])
        return positions

    @cached_property
    def depth(self) -> Ints:
        """How many bodies lie between each position and ground."""
        n = len(self)
        if np.array_equal(self.parent, np.arange(-1, n - 1)):
            return np.arange(n, dtype=np.int32)
        depth = [0] * n
        for i, p in enumerate(self.parent.tolist()):
            depth[i] = depth[p] + 1 if p >= 0 else 0
        return np.array(depth, np.int32)

    @property
    def levels(self) -> list[Ints]:
        """The positions at each depth."""
        depth = self.depth
        return [np.flatnonzero(depth == d).astype(np.int32) for d in range(int(depth.max(initial=-1)) + 1)]


def reacting_bodies(d: Description, topology: Topology) -> list[tuple[int, int]]:
    """The joints of the tree, then those that close loops, each with the body that its wrench is reported on.

    A tree joint's is the body that it carries; a loop joint's is its child, or its parent where the child is ground.
    """
    tree = zip(topology.joint.tolist(), topology.body.tolist(), strict=True)
    return [*tree, *((j, int(d.child[j] if d.child[j] != GROUND else d.parent[j])) for j in topology.loops)]


def span(description: Description) -> Topology:
    """The spanning tree; a body that no joint connects to ground is an error that names it."""
    d = description
    n = d.nb
    if d.nj == n and not d.cuts and np.array_equal(d.child, np.arange(n)):
        ordered = _span_of_children(d.parent)
        if ordered is not None:
            return ordered
    around: dict[int, list[tuple[int, int, bool]]] = {}
    for j, (a, b) in enumerate(zip(d.parent.tolist(), d.child.tolist(), strict=True)):
        if j not in d.cuts:
            around.setdefault(a, []).append((j, b, False))
            around.setdefault(b, []).append((j, a, True))
    body: list[int] = []
    joint: list[int] = []
    reverse: list[bool] = []
    parent: list[int] = []
    position = {GROUND: -1}
    queue = deque([GROUND])
    used: set[int] = set()
    while queue:
        here = queue.popleft()
        for j, there, backwards in around.get(here, ()):
            if there not in position:
                position[there] = len(body)
                body.append(there)
                joint.append(j)
                reverse.append(backwards)
                parent.append(position[here])
                used.add(j)
                queue.append(there)
    if len(body) < n:
        lost = [d.body_names[k] for k in range(n) if k not in position]
        shown = first_few([repr(name) for name in lost], 5)
        raise ModelError(
            f"no joint connects {shown} to ground; add a joint (kind 'free' if it should float)", element=lost[0]
        )
    loops = tuple(j for j in range(d.nj) if j not in used)
    return Topology(
        np.array(body, np.int32),
        np.array(joint, np.int32),
        np.array(reverse, bool),
        np.array(parent, np.int32),
        loops,
    )


def _span_of_children(parent: Ints) -> Topology | None:
    """The tree in which joint k carries body k, by its bodies' parents; None if it is better looked for."""
    n = len(parent)
    still = np.broadcast_to(np.False_, (n,))
    every = np.arange(n, dtype=np.int32)
    if np.all(np.diff(parent) >= 0) and np.all(parent < every):
        return Topology(every, every, still, parent, ())
    if n < _MANY:
        return None
    from scipy.sparse import csr_array  # type: ignore[import-untyped]
    from scipy.sparse.csgraph import breadth_first_order  # type: ignore[import-untyped]

    # From ground, node 0, to the children in the order of the file.
    starts = np.concatenate([[0], np.cumsum(np.bincount(parent + 1, minlength=n + 1))])
    children = np.argsort(parent, kind="stable") + 1
    graph = csr_array((np.ones(n), children, starts), shape=(n + 1, n + 1))
    order = breadth_first_order(graph, 0, return_predecessors=False)[1:] - 1
    if len(order) < n:
        return None  # some do not hang on ground
    body = order.astype(np.int32)
    position = np.empty(n, np.int32)
    position[body] = every
    above = parent[body]
    return Topology(body, body, still, np.where(above >= 0, position[above], -1).astype(np.int32), ())
