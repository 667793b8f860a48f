"""The equations that hold a tree's links together, as recursions use them: pairs of frames on links, Φ, its rates,
wrenches.

Both handles of a pair are at its second frame, in the axes of that frame: one rides on the second's link, the other on
the first's. With θ̈ = ẇ of each link taken to its handle and w the second's twist relative to the first,
θ̈_second − θ̈_first = ẇ + w_second × w. What holds or pushes the two does so at the handles.

A constraint has m equations Φ(q, t) = 0 with Φ̇ = G v + Φ_t. Its multipliers λ push links by the wrenches (columns λ) at
its ends, and joints by (row λ) along their own coordinates, so that Gᵀλ is what these do to the tree; and with θ̈ = ẇ of
the links taken to its ends, G a = γ reads  Σ columnsᵀ θ̈ + Σ rowᵀ a = bias.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwright.constraints import coupling_forms
from linkwright.constraints.constraint_equations import Constraint, by_follower, own_numbers
from linkwright.constraints.constraint_forms import Form, coordinate, drift, equations, jacobian, law_rates
from linkwright.dynamics.traversals.traversal import Link, Unrolled
from linkwright.model.coupling_relation import TURN, Relation, counted_by_relation, whole_turns
from linkwright.spatial.algebra import Array, dot, is_zero, motion_cross
from linkwright.spatial.rotation import General, Transform, by_column
from linkwright.tape.scalar import is_recorded

Place = tuple[int, Array, Array]  # link position (−1 ground), R and p in link axes


@dataclass(frozen=True)
class Handle:
    """A frame that moves with a link: the link's position (−1 ground), and the placements on the way to the frame.

    `fixed` are the links on that way, each fixed to the one before.
    """

    position: int
    way: tuple[Transform, ...] = ()
    fixed: tuple[int, ...] = ()

    @property
    def on_own_link(self) -> Handle:
        """The same frame as one of the last link on the way, which it is a part of."""
        return Handle(self.fixed[-1], self.way[len(self.fixed) :]) if self.fixed else self

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
    """The frames of a joint."""
    return pair(traversal, *traversal.tree.joint_frames(joint, parameters))


def loop_link(traversal: Unrolled, joint: int, parameters: Mapping[str, Any]) -> Link:
    """The kind and numbers of a joint that is not in the tree, as a link without a body or coordinates."""
    pitch = traversal.tree.row("pitch", joint, parameters).reshape(1)
    record = {"pitch": pitch if pitch.dtype == object else pitch.tolist(), "armature": [0.0]}
    return Link(traversal.tree.description.kind_of(joint), record, _no_inputs, parent_is_ground=False)


def rooted(traversal: Unrolled, handle: Handle) -> Handle:
    """The same handle, on the link that carries its link through fixed joints."""
    i, way, fixed = handle.position, handle.way, handle.fixed
    while i >= 0 and not traversal.links[i].kind.nv:
        way, fixed = (traversal.links[i].transform(traversal.rows[i]["terms"]), *way), (i, *fixed)
        i = traversal.parent[i]
    return Handle(i, way, fixed)


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


OPEN = 1e-8  # how far an equation between frames of one rigid body may be from zero (rad, or a part of its length)


class OpenLoop(ValueError):
    """What closes a loop of fixed joints, but not where its frames are."""

    def __init__(self, constraint: Constraint) -> None:
        super().__init__(f"{constraint} cannot be closed")
        self.constraint = constraint


@dataclass(frozen=True)
class Direct:
    """A joint's own coordinate in a constraint's equations: its position, its number there, a factor an equation."""

    position: int
    index: int
    row: Array


@dataclass(frozen=True)
class ConstraintAtState:
    """One loop constraint at a state."""

    phi: Array
    rate: Array  # G v + Φ_t
    bias: Array
    ends: tuple[tuple[Handle, Array], ...] = ()
    direct: tuple[Direct, ...] = ()
    miss: Any = 0.0  # the square of how far it is from closed, lengths as parts of the mechanism's size

    @property
    def size(self) -> int:
        return len(self.phi)


@dataclass(frozen=True)
class Surroundings:
    """What constraints need to know besides the links: where frames are, names of laws, and recorded parameters."""

    place: Callable[[str], Place]
    names: Mapping[str, Any]  # parameters and TIME
    free: Mapping[str, Any]
    size: float  # a length that is typical for the mechanism


def constraints_at(
    traversal: Unrolled, loop_constraints: Sequence[Constraint], around: Surroundings
) -> list[ConstraintAtState]:
    """All constraints, for a traversal that has the links' `terms` and twists `w`."""
    positions = {int(j): i for i, j in enumerate(traversal.tree.topology.joint)}
    return [_constraint_at(traversal, c, around, positions) for c in loop_constraints]


def _constraint_at(
    traversal: Unrolled, c: Constraint, around: Surroundings, positions: Mapping[int, int]
) -> ConstraintAtState:
    law = law_rates(c.law, around.names) if c.law is not None else (0.0, 0.0, 0.0)
    if c.group == "gear":
        return _gear(traversal, c, around, positions)
    if c.source.relation is not None:
        return _coupling(traversal, c, c.source.relation, around, positions)
    if c.source.joints and c.source.joints[0] in positions:
        return _coordinate(traversal, positions[c.source.joints[0]], c.source.index, law)
    return _between(traversal, c, around, law)


def _between(traversal: Unrolled, c: Constraint, around: Surroundings, law: tuple[Any, Any, Any]) -> ConstraintAtState:
    numbers: list[Any] = []
    turned: list[Any] = []
    if c.source.joints:
        frames = joint_pair(traversal, c.source.joints[0], around.free)
        if c.form.numbers:  # a screw
            link = loop_link(traversal, c.source.joints[0], around.free)
            numbers = [link.pitch]
            turned = [link.kind.coordinate(0, frames.r, frames.p, link.pitch)]
    else:
        places = [around.place(name) for name in c.source.places]
        frames = pair(traversal, *((-1, np.eye(3), np.zeros(3)), *places)[-2:])
        numbers = [x.evaluate(around.names) for x in c.source.numbers]
    if frames.rigid and c.law is None and not is_recorded(frames.r, frames.p, np.array(numbers)):
        _refuse_open(traversal, c, frames, numbers, turned, around.size)
    constraint = _of_pair(c.form, frames, numbers, turned, law)
    return constraint if c.law is not None else replace(constraint, miss=_miss(constraint, around.size))


def _miss(constraint: ConstraintAtState, size: float) -> Any:
    """Σ Φ², an equation counted by the mechanism's size if forces hold it."""
    pushes = [any(not is_zero(x) for x in column[:3]) for column in constraint.ends[0][1].T]
    parts = [x / size if push else x for x, push in zip(constraint.phi, pushes, strict=True)]
    return dot(parts, parts) if parts else 0.0


def _refuse_open(
    traversal: Unrolled, c: Constraint, frames: Pair, numbers: list[Any], turned: list[Any], size: float
) -> None:
    if c.source.joints:
        gap = traversal.tree.description.kind_of(c.source.joints[0]).gap(frames.r, frames.p / size)
    else:
        gap = equations(c.form, frames.r, frames.p, numbers, turned, 0.0)
        gap = gap / np.where(c.form.lengths, size, 1.0)
    if np.abs(gap).max(initial=0.0) > OPEN:
        raise OpenLoop(c)


def _of_pair(
    form: Form, frames: Pair, numbers: Sequence[Any], turned: Sequence[Any], law: tuple[Any, Any, Any]
) -> ConstraintAtState:
    """The equations of a form between two frames; `law` is its value, rate and second rate."""
    form_at = (form, frames.r, frames.p, numbers, turned, law[0])
    phi, j = equations(*form_at), jacobian(*form_at)
    rate = j @ frames.w - law[1]
    bias = j @ frames.bias - drift(*form_at, frames.w) + law[2]
    return ConstraintAtState(phi, rate, bias, ((frames.second, j.T), (frames.first, -j.T)))


def _coordinate(traversal: Unrolled, position: int, index: int, law: tuple[Any, Any, Any]) -> ConstraintAtState:
    """A tree joint's coordinate as a law says."""
    link = traversal.links[position]
    phi, rate = link.q[index] - law[0], link.v[index] - law[1]
    return ConstraintAtState(
        np.array([phi]), np.array([rate]), np.array([law[2]]), (), (Direct(position, index, np.ones(1)),)
    )


def _gear(traversal: Unrolled, c: Constraint, around: Surroundings, positions: Mapping[int, int]) -> ConstraintAtState:
    """follower − ratio · leader − offset = 0. A tree joint's q counts its turns; what closes a loop is taken near to
    what the other asks of it."""
    follower, leader = c.source.joints
    ratio, offset = c.source.gear
    if leader in positions:
        led = traversal.links[positions[leader]]
        value, rate = ratio * led.q[0] + offset, ratio * led.v[0]
        constraint = _measure(traversal, follower, around, value)
        return _added(constraint, -rate, Direct(positions[leader], 0, np.array([-ratio])))
    if follower in positions and ratio == 0.0:  # whatever the leader does
        return _coordinate(traversal, positions[follower], 0, (offset, 0.0, 0.0))
    if follower in positions:
        link = traversal.links[positions[follower]]
        constraint = _scaled(_measure(traversal, leader, around, (link.q[0] - offset) / ratio), -ratio)
        return _added(constraint, link.v[0], Direct(positions[follower], 0, np.ones(1)))
    if by_follower(traversal.tree.description, (follower, leader), ratio):
        other = _measure(traversal, follower, around, 0.0)
        constraint = _scaled(_measure(traversal, leader, around, (other.phi[0] - offset) / ratio), -ratio)
        return _sum(constraint, other)
    other = _measure(traversal, leader, around, 0.0)
    constraint = _measure(traversal, follower, around, ratio * other.phi[0] + offset)
    return _sum(constraint, _scaled(other, -ratio))


def _coupling(
    traversal: Unrolled,
    c: Constraint,
    relation: Relation,
    around: Surroundings,
    positions: Mapping[int, int],
) -> ConstraintAtState:
    """Φ(x, t) = 0 with Φ̈ = Φ_x ẍ + curvature. A tree joint's q counts its turns; Φ tells those of another."""
    parameters = own_numbers(c, around.names)
    joints, loops = c.source.joints, [j for j in c.source.joints if j not in positions]
    t = around.names["TIME"] if relation.clock else 0.0
    x: list[Any] = []
    v: list[Any] = []
    measures: dict[int, ConstraintAtState] = {}
    for k, (place, index) in enumerate(relation.coordinates):
        joint = joints[place]
        if joint in positions:
            link = traversal.links[positions[joint]]
            x.append(link.q[index])
            v.append(link.v[index])
        else:
            x.append(loop_coordinate(traversal, joint, index, around))
            measures[k] = _measure(traversal, joint, around, x[k], index)
            v.append(measures[k].rate[0])
    numbers = c.record[12 * c.form.sides :].tolist()
    turned = counted_by_relation(traversal.tree.description, relation, joints, numbers, loops, c.name)
    if turned is not None:
        x[turned] = x[turned] + TURN * whole_turns(relation, turned, x, parameters, t)
    at = coupling_forms.at_state(relation, x, v, parameters, t)
    phi, rate, bias = at.phi, dot(at.gradient, v) + at.by_time, -at.curvature
    ends: list[tuple[Handle, Array]] = []
    direct = []
    for k, (place, index) in enumerate(relation.coordinates):
        if k in measures:
            share = _scaled(measures[k], at.gradient[k])
            bias, ends = bias + share.bias[0], [*ends, *share.ends]
        else:
            direct.append(Direct(positions[joints[place]], index, at.gradient[k : k + 1]))
    return ConstraintAtState(np.array([phi]), np.array([rate]), np.array([bias]), tuple(ends), tuple(direct))


def loop_coordinate(traversal: Unrolled, joint: int, index: int, around: Surroundings) -> Any:
    """The coordinate of a joint that is not in the tree, an angle between −π and π."""
    frames = joint_pair(traversal, joint, around.free)
    link = loop_link(traversal, joint, around.free)
    return link.kind.coordinate(index, frames.r, frames.p, link.pitch)


def _measure(traversal: Unrolled, joint: int, around: Surroundings, near: Any, index: int = 0) -> ConstraintAtState:
    """How far the coordinate of a joint that is not in the tree is ahead of a value near to it."""
    form = coordinate(traversal.tree.description.kind_of(joint).name, index)
    return _of_pair(form, joint_pair(traversal, joint, around.free), (), (), (near, 0.0, 0.0))


def _scaled(constraint: ConstraintAtState, factor: Any) -> ConstraintAtState:
    ends = tuple((handle, factor * columns) for handle, columns in constraint.ends)
    return ConstraintAtState(factor * constraint.phi, factor * constraint.rate, factor * constraint.bias, ends)


def _added(constraint: ConstraintAtState, rate: Any, direct: Direct) -> ConstraintAtState:
    """With a tree joint's share, whose value the constraint's Φ knows already."""
    return replace(constraint, rate=constraint.rate + rate, direct=(direct,))


def _sum(constraint: ConstraintAtState, other: ConstraintAtState) -> ConstraintAtState:
    """With another's share, whose value the constraint's Φ knows already."""
    return replace(
        constraint,
        rate=constraint.rate + other.rate,
        bias=constraint.bias + other.bias,
        ends=constraint.ends + other.ends,
    )


def together(constraints: Sequence[ConstraintAtState], groups: Sequence[Sequence[int]]) -> list[ConstraintAtState]:
    """The constraints of each group as one, their equations one after another."""
    return [constraints[group[0]] if len(group) == 1 else _joined([constraints[k] for k in group]) for group in groups]


def _joined(parts: Sequence[ConstraintAtState]) -> ConstraintAtState:
    first = np.cumsum([0, *(constraint.size for constraint in parts)]).tolist()

    def wide(columns: Array, k: int) -> Array:
        """What one part's equations have, among those of all."""
        before, after = first[k], first[-1] - first[k + 1]
        left, right = (np.zeros((*columns.shape[:-1], n)) for n in (before, after))
        return np.concatenate([left, columns, right], axis=-1)

    return ConstraintAtState(
        np.concatenate([constraint.phi for constraint in parts]),
        np.concatenate([constraint.rate for constraint in parts]),
        np.concatenate([constraint.bias for constraint in parts]),
        tuple((handle, wide(columns, k)) for k, constraint in enumerate(parts) for handle, columns in constraint.ends),
        tuple(replace(d, row=wide(d.row, k)) for k, constraint in enumerate(parts) for d in constraint.direct),
        sum(constraint.miss for constraint in parts),
    )


def as_ends(traversal: Unrolled, constraint: ConstraintAtState) -> ConstraintAtState:
    """The same constraint with joints' own shares as wrenches on their links: Tᵀ (θ̈ − C θ̈_λ − β) is a."""
    ends, bias = list(constraint.ends), constraint.bias
    for d in constraint.direct:
        link, row = traversal.links[d.position], traversal.rows[d.position]
        along = link.dual(row["terms"])[:, d.index]
        columns = np.outer(along, d.row)
        up = rooted(traversal, Handle(traversal.parent[d.position]))
        below = Handle(up.position, (*up.way, link.transform(row["terms"])))
        ends += [(Handle(d.position), columns), (below, -columns)]
        bias = bias + d.row * dot(along, row["beta"])
    return replace(constraint, bias=bias, ends=tuple(ends), direct=())
