"""Traversals: run the steps of a recursion over the links of a tree, outward and inward; links as steps see them.

A step is a pure function. Outward: step(link, state, up) gives new numbers of the link; `state` are its numbers so
far, `up` its parent's. Inward: step(link, state, below) gives (new numbers, contribution to the parent); `below`
is the sum of the children's contributions. A step never knows whether it is unrolled here, once a link with
constants folded, or rolled into loops by `linkwright.dynamics.traversals.rolled`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from linkwright.dynamics.methods.ltdl_factor import factorise
from linkwright.model.joint_kinds import JointKind
from linkwright.model.placements import placement_rotation
from linkwright.model.tree import Tree
from linkwright.spatial.algebra import Array, inertia_times, motion_cross
from linkwright.spatial.rotation import ArticulatedInertia, Chain, General, Transform, joined
from linkwright.tape.program import WalkOrder

State = Mapping[str, Array]


class Link:
    """The view of one body: `record` holds its numbers, `inputs(name)` its part of q, v, a, tau, wrenches."""

    def __init__(
        self, kind: JointKind, record: Mapping[str, Any], inputs: Callable[[str], Array], *, parent_is_ground: bool
    ) -> None:
        self.kind, self.record, self._inputs = kind, record, inputs
        self.parent_is_ground = parent_is_ground

    def __getattr__(self, name: str) -> Array:
        if name in ("q", "v", "a", "tau", "q1", "dv"):
            return self._inputs(name)
        raise AttributeError(name)

    @property
    def frame(self) -> Transform:
        """The link frame in the body's frame."""
        return Transform(General(np.asarray(self.record["frame_r"])), np.asarray(self.record["frame_p"]))

    @property
    def wrench(self) -> Array:
        """The wrench applied to the body, at the link frame in its axes."""
        return self.frame.outward_wrench(self._inputs("wrench"))

    @property
    def mass(self) -> Any:
        return self.record["mass"][0]

    @property
    def moment(self) -> Array:
        return self.record["moment"]

    @property
    def inertia(self) -> Array:
        return self.record["inertia"]

    @property
    def pitch(self) -> Any:
        return self.record["pitch"][0]

    @property
    def armature(self) -> Any:
        return self.record["armature"][0]

    def rigid_inertia(self) -> ArticulatedInertia:
        return ArticulatedInertia.rigid(self.mass, self.moment, self.inertia)

    def momentum(self, w: Array) -> Array:
        """M w of the link alone."""
        return inertia_times(self.mass, self.moment, self.inertia, w)

    def composite(self) -> Array:
        """The link's inertia as numbers that may be summed: mass, first moment, packed inertia."""
        return np.array([self.mass, *self.moment, *self.inertia])

    def composite_times(self, numbers: Array, w: Array) -> Array:
        """M w of such a sum."""
        return inertia_times(numbers[0], numbers[1:4], numbers[4:], w)

    def composite_inward(self, terms: Array, numbers: Array) -> Array:
        """Such a sum, seen from the parent frame."""
        mass, moment, inertia = self.transform(terms).rigid(numbers[0], numbers[1:4], numbers[4:])
        return np.array([mass, *moment, *inertia])

    def terms(self) -> Array:
        """The functions of q that the joint needs, its angle counted from the link frame's zero."""
        q = self.q
        terms = self.kind.terms(q, self.pitch)
        if not self.kind.turns or "rotation" in self.record:
            return terms
        angle, c, s = self.record["offset"]
        if isinstance(angle, float) and angle == 0.0:
            return terms
        if isinstance(c, float) and (c == 0.0 or s == 0.0):
            # A quarter turn only exchanges sine and cosine.
            turned = [c * terms[0] - s * terms[1], s * terms[0] + c * terms[1]]
        else:
            turned = [np.cos(q[0] + angle), np.sin(q[0] + angle)]
        return np.array([*turned, *terms[2:]])

    def transform(self, terms: Array) -> Transform:
        """The link frame in its parent's link frame."""
        kind = self.kind
        placement = placement_rotation(self.record, turning=kind.turns)
        p = self.record["p"]
        if kind.nv and not _trivial_shift(kind):
            p = p + Chain(placement).inward(kind.shift(terms, self.pitch))
        return Transform(Chain(joined((*placement, kind.rotation(terms)))), p)

    def subspace(self, terms: Array) -> Array:
        return self.kind.subspace(terms, self.pitch)

    def moving(self, terms: Array, up: Array) -> tuple[Array, Array]:
        """w of the link from its parent's, and β = w × (S v) + Ṡ v."""
        v = self.v
        joint = self.joint_twist(terms, v)
        w = self.transform(terms).outward(up) + joint
        beta = motion_cross(w, joint)
        if self.kind.selects is None:
            beta = beta + self.kind.subspace_rate(terms, self.pitch, v)
        return w, beta

    def joint_twist(self, terms: Array, v: Array) -> Array:
        """S v."""
        if self.kind.selects is not None:
            zero = np.zeros(6, dtype=object if np.asarray(v).dtype == object else float)
            for k, component in enumerate(self.kind.selects):
                zero[component] = v[k]
            return zero
        return self.subspace(terms) @ v

    def project(self, terms: Array, f: Array) -> Array:
        """Sᵀ f."""
        if self.kind.selects is not None:
            return np.array([f[k] for k in self.kind.selects])
        return self.subspace(terms).T @ f

    def complement(self, terms: Array) -> Array:
        """Q."""
        return self.kind.complement(terms, self.pitch)

    def dual(self, terms: Array) -> Array:
        """T."""
        return self.kind.dual(terms, self.pitch)

    def joint_wrench(self, terms: Array, tau: Array) -> Array:
        """T tau."""
        if self.kind.selects is not None:
            return self.joint_twist(terms, tau)
        return self.dual(terms) @ tau

    def joint_rates(self, terms: Array, w: Array) -> Array:
        """v of a twist w = S v."""
        if self.kind.selects is not None:
            return self.project(terms, w)
        return self.dual(terms).T @ w

    @property
    def geared(self) -> bool:
        """Whether its joint has an armature, as far as its structure shows."""
        return not (isinstance(self.armature, float) and self.armature == 0.0)


def _trivial_shift(kind: JointKind) -> bool:
    return type(kind).shift is JointKind.shift


OutwardStep = Callable[[Link, State, State], dict[str, Array]]
InwardStep = Callable[[Link, State, State], tuple[dict[str, Array], dict[str, Array]]]
Finish = Callable[..., Array]
WalkStart = Callable[[Link, State], tuple[Array, Array]]
WalkStep = Callable[[Link, State, Array], tuple[Array, Array]]
PairStep = Callable[[Array, State, State], tuple[dict[str, Array], dict[str, Array]]]
Shape = tuple[int, ...]


class SingularLink(ZeroDivisionError):
    """A link whose step divides by a number that is zero for every configuration; `position` is its place."""

    def __init__(self, position: int) -> None:
        super().__init__(f"link {position} is singular")
        self.position = position


class Traversal(Protocol):
    """What a recursion asks of the way its steps are run."""

    def outward(self, step: OutwardStep, ground: Mapping[str, Array]) -> None:
        """Run a step from ground to the tips; `ground` are the numbers of ground."""

    def inward(self, step: InwardStep, below: Mapping[str, Shape]) -> None:
        """Run a step from the tips to ground; `below` are the shapes of the contributions."""

    def joint_vector(self, name: str, *, coordinates: bool = False, rates: bool = False) -> Any:
        """The links' numbers `name`, one per rate (or coordinate) of each joint, as one vector.

        Forces of joints that share coordinates are added; `coordinates` and `rates` are those of the leader.
        """

    def total(self, name: str, then: Finish) -> Any:
        """then(the sum of contributions `name` that reached ground in the last inward pass)."""

    def at(self, position: int, names: Sequence[str], then: Finish) -> Any:
        """then(the numbers `names` of one link, or of ground at −1)."""

    def walk(self, start: WalkStart, step: WalkStep, *, lower: bool = False) -> Any:
        """The symmetric matrix (nv, nv) with the block of start(link, state) on the diagonal and, for each of the
        link's ancestors in turn, the block of step(ancestor, state, carry) beside it; the carry is handed on.
        With `lower`, only its lower triangle."""

    def pairs(self, order: WalkOrder, matrix: Any, step: PairStep) -> None:
        """For every link in order and each of its ancestors: add step(the matrix's block, state, the ancestor's
        numbers) to the numbers of the link and of its ancestor."""

    def solve(self, matrix: Any, right: Any) -> Any:
        """The solution of a system with the mass matrix of a walk and a joint vector."""


class Unrolled:
    """Every step called once a link, in depth-first order; plain arithmetic on floats or recorded scalars."""

    def __init__(
        self,
        tree: Tree,
        inputs: Mapping[str, Array],
        parameters: Mapping[str, Any] | None = None,
        only: Sequence[int] | None = None,
    ) -> None:
        """`only` keeps to these positions (a link and its ancestors, say)."""
        self.tree = tree
        self.n = tree.n
        self.parent: list[int] = tree.parent.tolist()
        self.coordinates = tree.coordinates
        self.rows: list[dict[str, Array]] = [{} for _ in range(self.n)]
        self.ground: dict[str, Array] = {}
        self._totals: dict[str, Array] = {}
        self.order = depth_first(self.parent) if only is None else sorted(only)
        self.links: list[Link] = [None] * self.n  # type: ignore[list-item]
        for i in self.order:
            self.links[i] = self._link(i, inputs, parameters)

    def _link(self, i: int, inputs: Mapping[str, Array], parameters: Mapping[str, Any] | None) -> Link:
        kind, x = self.tree.kinds[i], self.coordinates
        q0 = int(x.q_at[i])
        ratio, offset, follows = float(x.ratio[i]), float(x.offset[i]), bool(x.follows[i])
        record = self.tree.record(i, parameters)
        record = {k: v if v.dtype == object else v.tolist() for k, v in record.items()}
        for name in ("p", "moment"):
            record[name] = np.asarray(record[name])

        def part(name: str) -> Array:
            numbers = inputs[name]
            if name == "wrench":
                return numbers[i]
            if name in ("q", "q1"):
                coordinates = numbers[q0 : q0 + kind.nq]
                return coordinates * ratio + offset if follows else coordinates
            if name == "tau" and follows:  # the force is its leader's
                return np.zeros(kind.nv)
            return self.rates(i, numbers)

        return Link(kind, record, part, parent_is_ground=self.parent[i] < 0)

    def rates(self, i: int, vector: Array) -> Array:
        """The part of a vector (nv) that is one link's: its joint's rates or accelerations."""
        x = self.coordinates
        part = vector[int(x.v_at[i]) : int(x.v_at[i]) + self.tree.kinds[i].nv]
        return part * float(x.ratio[i]) if x.follows[i] else part

    def by_link(self, vector: Array) -> list[Array]:
        """A vector (nv) of joint rates or accelerations, link by link."""
        return [self.rates(i, vector) for i in range(self.n)]

    def outward(self, step: OutwardStep, ground: Mapping[str, Array]) -> None:
        self.ground.update(ground)
        for i in self.order:
            up = self.rows[self.parent[i]] if self.parent[i] >= 0 else self.ground
            self.rows[i].update(step(self.links[i], self.rows[i], up))

    def inward(self, step: InwardStep, below: Mapping[str, Shape]) -> None:
        sums: list[dict[str, Array]] = [{} for _ in range(self.n + 1)]
        nothing = {name: np.zeros(shape) for name, shape in below.items()}
        for i in reversed(self.order):
            try:
                numbers, up = step(self.links[i], self.rows[i], sums[i] or nothing)
            except ZeroDivisionError:
                raise SingularLink(i) from None
            self.rows[i].update(numbers)
            for name, term in up.items():
                add_to(sums[self.parent[i]], name, term)
        self._totals = {**nothing, **sums[-1]}

    def total(self, name: str, then: Finish) -> Array:
        return then(self._totals[name])

    def at(self, position: int, names: Sequence[str], then: Finish) -> Array:
        row = self.rows[position] if position >= 0 else self.ground
        return then(*(row[name] for name in names))

    def walk(self, start: WalkStart, step: WalkStep, *, lower: bool = False) -> Array:
        x = self.coordinates
        m: list[list[Any]] = [[0.0] * x.nv for _ in range(x.nv)]

        def put(i: int, j: int, block: Array) -> None:
            ratio = x.ratio[i] * x.ratio[j]
            for k, row in enumerate(block):
                for n, value in enumerate(row):
                    r, c = int(x.v_at[i]) + k, int(x.v_at[j]) + n
                    entry = value * float(ratio)
                    m[r][c] = m[r][c] + entry
                    if i != j and not lower:
                        m[c][r] = m[c][r] + entry

        for i in self.order:
            block, carry = start(self.links[i], self.rows[i])
            put(i, i, block)
            for j in self.ancestors(i):
                block, carry = step(self.links[j], self.rows[j], carry)
                put(i, j, block)
        return np.array(m).reshape(x.nv, x.nv)

    def pairs(self, order: WalkOrder, matrix: Array, step: PairStep) -> None:
        at = [slice(v, v + kind.nv) for v, kind in zip(self.coordinates.v_at.tolist(), self.tree.kinds, strict=True)]
        for i in reversed(self.order) if order == "inward" else self.order:
            for j in self.ancestors(i):
                pair = self.rows[i], self.rows[j]
                for row, more in zip(pair, step(matrix[at[i], at[j]], *pair), strict=True):
                    row.update({name: row[name] + term for name, term in more.items()})

    def solve(self, matrix: Array, right: Array) -> Array:
        return np.array(factorise(matrix).solve(list(right)))

    def joint_vector(self, name: str, *, coordinates: bool = False, rates: bool = False) -> Array:
        x = self.coordinates
        entries: list[Any] = [0.0] * (x.nq if coordinates else x.nv)
        for i, row in enumerate(self.rows):
            if name in row:
                at, ratio = int((x.q_at if coordinates else x.v_at)[i]), float(x.ratio[i])
                for k, value in enumerate(row[name]):
                    if not x.follows[i]:
                        entries[at + k] = entries[at + k] + value
                    elif not (coordinates or rates):
                        entries[at + k] = entries[at + k] + value * ratio
        return np.array(entries)

    def ancestors(self, i: int) -> Sequence[int]:
        """The positions above i, nearest first."""
        return self.tree.topology.path(self.parent[i])


def add_to(total: dict[Any, Any], key: Any, term: Any) -> None:
    """Add a term to the sum under a key, of which it may be the first."""
    total[key] = total[key] + term if key in total else term


def depth_first(parent: list[int]) -> list[int]:
    """Positions with every link's descendants right after it."""
    children: list[list[int]] = [[] for _ in range(len(parent) + 1)]
    for i, p in enumerate(parent):
        children[p].append(i)
    order: list[int] = []
    stack = children[-1][::-1]
    while stack:
        i = stack.pop()
        order.append(i)
        stack.extend(reversed(children[i]))
    return order
