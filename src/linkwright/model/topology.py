"""From joints to a spanning tree, breadth-first from ground; gear trains, coordinates, and joints seen from their
child's side.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arguments import first_few
from linkwright.base.locks import cached_property
from linkwright.errors import ModelError
from linkwright.model.description import GROUND, Description
from linkwright.model.expression import numeric_values
from linkwright.model.joint_kinds import KINDS, JointKind
from linkwright.spatial.algebra import Array
from linkwright.spatial.rotation import General, Rotation, Transform, by_column


class Reversed(JointKind):
    """A joint whose child is nearer to ground than its parent: the same coordinates, seen from the other side."""

    def __init__(self, kind: JointKind) -> None:
        self.kind = kind
        self.name, self.nq, self.nv = f"reversed {kind.name}", kind.nq, kind.nv
        self.selects = None if kind.nv else ()
        self.steady = not kind.nv
        self.paired = kind.paired

    def terms(self, q: Array, pitch: Any) -> Array:
        return self.kind.terms(q, pitch)

    def rotation(self, terms: Array) -> Rotation:
        return General(self.kind.rotation(terms).matrix().T)

    def shift(self, terms: Array, pitch: Any) -> Array:
        return -self.kind.rotation(terms).outward(self.kind.shift(terms, pitch))

    def _placement(self, terms: Array, pitch: Any) -> Transform:
        """Frame j in frame i."""
        return Transform(self.kind.rotation(terms), self.kind.shift(terms, pitch))

    def subspace(self, terms: Array, pitch: Any) -> Array:
        # Twists turned round, and taken to the axes and origin of the other frame.
        return -by_column(self._placement(terms, pitch).inward_twist, self.kind.subspace(terms, pitch))

    def subspace_rate(self, terms: Array, pitch: Any, v: Array) -> Array:
        return -self._placement(terms, pitch).inward_twist(self.kind.subspace_rate(terms, pitch, v))

    def complement(self, terms: Array, pitch: Any) -> Array:
        return self._placement(terms, pitch).inward_columns(self.kind.complement(terms, pitch))

    def dual(self, terms: Array, pitch: Any) -> Array:
        return -self._placement(terms, pitch).inward_columns(self.kind.dual(terms, pitch))

    def rate(self, q: Array, v: Array) -> Array:
        return self.kind.rate(q, v)

    def neutral(self) -> Array:
        return self.kind.neutral()

    def checked(self, q: Array, joint: str) -> Array:
        return self.kind.checked(q, joint)

    def integrate(self, q: Array, dv: Array) -> Array:
        return self.kind.integrate(q, dv)

    def difference(self, q0: Array, q1: Array) -> Array:
        return self.kind.difference(q0, q1)


_REVERSED = {name: Reversed(kind) for name, kind in KINDS.items()}


def reverse(kind: JointKind) -> JointKind:
    """The same joint, seen from its child."""
    return _REVERSED[kind.name]


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
    around = joints_around(d, (j for j in range(d.nj) if j not in d.cuts))
    rows: list[tuple[int, int, bool, int]] = []  # body, joint, whether it is reversed, position of the parent
    position = {GROUND: -1}
    queue = deque([GROUND])
    while queue:
        here = queue.popleft()
        for j, there, backwards in around.get(here, ()):
            if there not in position:
                position[there] = len(rows)
                rows.append((there, j, backwards, position[here]))
                queue.append(there)
    if len(rows) < n:
        lost = [d.body_names[k] for k in range(n) if k not in position]
        shown = first_few([repr(name) for name in lost], 5)
        raise ModelError(
            f"no joint connects {shown} to ground; add a joint (kind 'free' if it should float)", element=lost[0]
        )
    body, joint, reverse, parent = np.ascontiguousarray(np.array(rows, np.int32).reshape(-1, 4).T)
    within = set(joint.tolist())
    loops = tuple(j for j in range(d.nj) if j not in within)
    return Topology(body, joint, reverse.astype(bool), parent, loops)


def joints_around(d: Description, joints: Iterable[int]) -> dict[int, list[tuple[int, int, bool]]]:
    """Of each body, these joints at it: number, the body at the other end, and whether its frame j is on this side."""
    around: dict[int, list[tuple[int, int, bool]]] = {}
    parent, child = d.parent.tolist(), d.child.tolist()
    for j in joints:
        around.setdefault(parent[j], []).append((j, child[j], False))
        around.setdefault(child[j], []).append((j, parent[j], True))
    return around


def _span_of_children(parent: Ints) -> Topology | None:
    """The tree in which joint k carries body k, by its bodies' parents; None if it is better looked for."""
    n = len(parent)
    still = np.broadcast_to(np.False_, (n,))
    every = np.arange(n, dtype=np.int32)
    if np.all(np.diff(parent) >= 0) and np.all(parent < every):
        return Topology(every, every, still, parent, ())
    if n < _MANY:
        return None
    from scipy.sparse import csr_array  # type: ignore[import-untyped]  # weight: scipy
    from scipy.sparse.csgraph import breadth_first_order  # type: ignore[import-untyped]  # weight: scipy

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


T = TypeVar("T")


class Groups(Generic[T]):
    """Things that are joined two by two; each group is known by one of its members."""

    def __init__(self) -> None:
        self._under: dict[T, T] = {}

    def root(self, thing: T) -> T:
        """The member by which the group of a thing is known."""
        while thing in self._under:
            above = self._under[thing]
            self._under[thing] = self._under.get(above, above)  # shorter for the next time
            thing = above
        return thing

    def join(self, thing: T, other: T) -> bool:
        """Put the group of a thing under that of another; False where they are one already."""
        a, b = self.root(thing), self.root(other)
        if a != b:
            self._under[a] = b
        return a != b


def circle(followed: Mapping[T, T], follower: T, leader: T) -> list[T]:
    """The joints in the circle that a further gear would close, from the follower to itself; empty if there is none."""
    passed = [follower, leader]
    while passed[-1] != follower:
        if passed[-1] not in followed:
            return []
        passed.append(followed[passed[-1]])
    return passed


def of_first_leader(gears: Mapping[T, tuple[T, Any, Any]], joint: T) -> tuple[T, Any, Any]:
    """The first leader of a joint, and ratio and offset to it: q = r₂(r₁ q₁ + o₁) + o₂; itself without a gear.

    `gears` has the leader, ratio and offset of each follower; the numbers may be of any kind.
    """
    ratio, offset = 1, 0
    while joint in gears:
        joint, r, o = gears[joint]
        ratio, offset = ratio * r, ratio * o + offset
    return joint, ratio, offset


#: Values of joint coordinates, by the joint's number and the coordinate's index.
Values = dict[tuple[int, int], Any]


def initial_coordinates(d: Description, parameters: Mapping[str, Any]) -> Values:
    """The initial values of joint coordinates."""
    places = [x for x in d.initial if x.quantity.kind == "joint" and not x.quantity.rate]
    return {
        (d.joint_names.position("joint", x.quantity.of[0]), x.quantity.index): numeric_values(x.value, parameters)
        for x in places
    }


def driven_coordinates(d: Description, names: Mapping[str, Any]) -> Values:
    """The values of the laws of drivers of joint coordinates; `names` has the parameters and TIME."""
    values = {}
    for driver in d.drivers:
        j = d.joint_names.find(driver.target) if driver.kind == "joint" else None
        if j is not None:
            values[j, driver.index] = numeric_values(driver.law, names)
    return values


def gear_order(d: Description, known: Iterable[int]) -> list[int]:
    """The gears by their numbers, each after another of a joint of its own: from joints whose turns are known, then
    from first leaders."""
    around: dict[int, list[int]] = {}
    for k, m in enumerate(d.mimics):
        for j in (m.follower, m.leader):
            around.setdefault(j, []).append(k)
    leaders, order = d.leaders, dict[int, None]()
    for first in (*known, *(of_first_leader(leaders, j)[0] for j in leaders)):
        queue = [first]
        for j in queue:
            for k in around.pop(j, ()):
                order[k] = None
                queue += [d.mimics[k].follower, d.mimics[k].leader]
    return list(order)
