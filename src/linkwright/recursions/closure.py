r"""The joints that close loops: where they hold their two bodies, and what they ask of the bodies' accelerations.

Both handles of a joint are at its triad j, in the axes of triad j: one rides on the child's link, the other on the
parent's. With θ̈ = ẇ of each link taken to its handle, θ̈_child − θ̈_parent = S a + c. The joint's coordinates are
not among q: what depends on them is read off the pose of triad j in triad i. The state is taken as consistent:
the spanning tree's q and v close the loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.recursions.link import Link
from linkwright.recursions.traversal import Unrolled
from linkwright.spatial.algebra import Array
from linkwright.spatial.rotation import General
from linkwright.spatial.transform import Transform, by_column

OPEN = 1e-8  # how far the handles of a joint on one rigid body may be apart (m, or as a difference of unit vectors)


class OpenLoop(ValueError):
    """A joint that closes a loop of fixed joints, but not where its triads are."""

    def __init__(self, joint: int) -> None:
        super().__init__(f"joint {joint} cannot be closed")
        self.joint = joint


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
class Junction:
    """A joint between two handles that coincide; `bias` is c."""

    link: Link  # the joint's kind and numbers; of a tree joint, its link
    terms: Array
    parent: Handle
    child: Handle
    bias: Array

    @property
    def q(self) -> Array:
        """Q (6, 6 − nv): the wrenches that the joint holds."""
        return self.link.complement(self.terms)


def closures(traversal: Unrolled, parameters: Mapping[str, Any]) -> list[Junction]:
    """The joints that close loops, for a traversal that has the links' `terms` and twists `w`."""
    return [_closure(traversal, joint, parameters) for joint in traversal.tree.topology.loops]


def _closure(traversal: Unrolled, joint: int, parameters: Mapping[str, Any]) -> Junction:
    tree = traversal.tree
    kind = tree.description.kind_of(joint)
    (a, ri, pi), (b, rj, pj) = tree.triads(joint, parameters)
    top = -1 if min(a, b) < 0 else max({a, *traversal.ancestors(a)} & {b, *traversal.ancestors(b)}, default=-1)
    (xi, yi), (xj, yj) = (_seen_from(traversal, top, place) for place in ((a, ri, pi), (b, rj, pj)))
    r, p = xi.T @ xj, xi.T @ (yj - yi)
    pitch = tree.row("pitch", joint, parameters).reshape(1)
    record = {"pitch": pitch if pitch.dtype == object else pitch.tolist(), "armature": [0.0]}
    link = Link(kind, record, _no_inputs, grounded=a < 0)
    terms = kind.terms_between(r, p)
    parent = rooted(traversal, Handle(a, (Transform(General(ri), pi), Transform(General(r), p))))
    child = rooted(traversal, Handle(b, (Transform(General(rj), pj),)))
    if parent.position == child.position and r.dtype != object and np.abs(kind.gap(r, p)).max(initial=0.0) > OPEN:
        raise OpenLoop(joint)
    w = child.outward(_row(traversal, child.position)["w"])
    v = link.joint_rates(terms, w - parent.outward(_row(traversal, parent.position)["w"]))
    return Junction(link, terms, parent, child, link.velocity_product(terms, w, v))


def rooted(traversal: Unrolled, handle: Handle) -> Handle:
    """The same handle, on the link that carries its link through fixed joints."""
    i, way = handle.position, handle.way
    while i >= 0 and not traversal.links[i].kind.nv:
        way = (traversal.links[i].transform(traversal.rows[i]["terms"]), *way)
        i = traversal.parent[i]
    return Handle(i, way)


def _seen_from(traversal: Unrolled, top: int, place: tuple[int, Array, Array]) -> tuple[Array, Array]:
    """R and p of a frame on a link, in the frame of one of the link's ancestors."""
    i, r, p = place
    while i != top:
        x = traversal.links[i].transform(traversal.rows[i]["terms"])
        r, p = by_column(x.rotation.inward, r), x.p + x.rotation.inward(p)
        i = traversal.parent[i]
    return r, p


def _row(traversal: Unrolled, position: int) -> Mapping[str, Array]:
    return traversal.rows[position] if position >= 0 else traversal.ground


def _no_inputs(name: str) -> Array:
    raise AttributeError(f"a joint that closes a loop has no {name}")
