r"""Two frames on links of a tree as they move against each other: their handles, pose and relative twist.

Both handles of a pair are at its second frame, in the axes of that frame: one rides on the second's link, the other on
the first's. With θ̈ = ẇ of each link taken to its handle and w the second's twist relative to the first,
θ̈_second − θ̈_first = ẇ + w_second × w. What holds or pushes the two does so at the handles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.dynamics.traversals.traversal import Link, Unrolled
from linkwright.spatial.algebra import Array, motion_cross
from linkwright.spatial.rotation import General
from linkwright.spatial.transform import Transform, by_column

Place = tuple[int, Array, Array]  # link position (−1 ground), R and p in link axes


@dataclass(frozen=True)
class Handle:
    """A frame that moves with a link: the link's position (−1 ground), and the placements on the way to the frame."""

    position: int
    way: tuple[Transform, ...] = ()

    def outward(self, w: Array) -> Array:
        """A twist of the link frame, seen at the handle."""
        for x in self.way:
            w = x.outward(w)
        return w

    def inward(self, f: Array) -> Array:
        """A wrench at the handle, seen at the link frame."""
        for x in reversed(self.way):
            f = x.inward(f)
        return f

    def outward_columns(self, w: Array) -> Array:
        return by_column(self.outward, w)

    def inward_columns(self, f: Array) -> Array:
        return by_column(self.inward, f)


@dataclass(frozen=True)
class Pair:
    """Two frames: the second's pose in the first, both handles, and the twists at the handles."""

    r: Array
    p: Array
    first: Handle
    second: Handle
    w: Array  # of the second relative to the first
    second_twist: Array

    @property
    def bias(self) -> Array:
        """θ̈_second − θ̈_first − ẇ."""
        return motion_cross(self.second_twist, self.w)

    @property
    def rigid(self) -> bool:
        """Whether fixed joints hold the two together."""
        return self.first.position == self.second.position


@dataclass(frozen=True)
class Junction:
    """A joint between two handles that coincide; θ̈_child − θ̈_parent = S a + `bias`."""

    link: Link  # the joint's kind and numbers; of a tree joint, its link
    terms: Array
    parent: Handle
    child: Handle
    bias: Array

    @property
    def q(self) -> Array:
        """Q (6, 6 − nv): the wrenches that the joint holds."""
        return self.link.complement(self.terms)


def pair(traversal: Unrolled, first: Place, second: Place) -> Pair:
    """Two frames, for a traversal that has the links' `terms`, and their twists `w` unless they are at rest."""
    (a, ri, pi), (b, rj, pj) = first, second
    top = -1 if min(a, b) < 0 else max({a, *traversal.ancestors(a)} & {b, *traversal.ancestors(b)}, default=-1)
    (xi, yi), (xj, yj) = (_seen_from(traversal, top, place) for place in (first, second))
    r, p = xi.T @ xj, xi.T @ (yj - yi)
    one = rooted(traversal, Handle(a, (Transform(General(ri), pi), Transform(General(r), p))))
    two = rooted(traversal, Handle(b, (Transform(General(rj), pj),)))
    w = two.outward(_twist(traversal, two.position))
    return Pair(r, p, one, two, w - one.outward(_twist(traversal, one.position)), w)


def joint_pair(traversal: Unrolled, joint: int, parameters: Mapping[str, Any]) -> Pair:
    """The triads of a joint."""
    return pair(traversal, *traversal.tree.triads(joint, parameters))


def loop_link(traversal: Unrolled, joint: int, parameters: Mapping[str, Any]) -> Link:
    """The kind and numbers of a joint that is not in the tree, as a link without a body or coordinates."""
    pitch = traversal.tree.row("pitch", joint, parameters).reshape(1)
    record = {"pitch": pitch if pitch.dtype == object else pitch.tolist(), "armature": [0.0]}
    return Link(traversal.tree.description.kind_of(joint), record, _no_inputs, parent_is_ground=False)


def rooted(traversal: Unrolled, handle: Handle) -> Handle:
    """The same handle, on the link that carries its link through fixed joints."""
    i, way = handle.position, handle.way
    while i >= 0 and not traversal.links[i].kind.nv:
        way = (traversal.links[i].transform(traversal.rows[i]["terms"]), *way)
        i = traversal.parent[i]
    return Handle(i, way)


def _seen_from(traversal: Unrolled, top: int, place: Place) -> tuple[Array, Array]:
    """R and p of a frame on a link, in the frame of one of the link's ancestors."""
    i, r, p = place
    while i != top:
        x = traversal.links[i].transform(traversal.rows[i]["terms"])
        r, p = by_column(x.rotation.inward, r), x.p + x.rotation.inward(p)
        i = traversal.parent[i]
    return r, p


def _twist(traversal: Unrolled, position: int) -> Array:
    return traversal.rows[position].get("w", np.zeros(6)) if position >= 0 else np.zeros(6)


def _no_inputs(name: str) -> Array:
    raise AttributeError(f"a joint that closes a loop has no {name}")
