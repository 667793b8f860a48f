"""Traversals: run the steps of a recursion over the links of a tree, outward and inward.

A step is a pure function. Outward: step(link, state, up) gives new numbers of the link; `state` are its numbers so
far, `up` its parent's. Inward: step(link, state, below) gives (new numbers, contribution to the parent); `below`
is the sum of the children's contributions. A step never knows whether it is unrolled here, once a link with
constants folded, or rolled into loops by `linkwright.recursions.rolled`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from linkwright.model.tree import Tree
from linkwright.recursions.factor import factorise
from linkwright.recursions.link import Link, State
from linkwright.spatial.algebra import Array
from linkwright.tape.program import WalkOrder

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

    def joint_vector(self, name: str, *, coordinates: bool = False) -> Any:
        """The links' numbers `name`, one a rate (or a coordinate) of each joint, as one vector."""

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
        self.order = _depth_first(self.parent) if only is None else sorted(only)
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

    def joint_vector(self, name: str, *, coordinates: bool = False) -> Array:
        x = self.coordinates
        entries: list[Any] = [0.0] * (x.nq if coordinates else x.nv)
        for i, row in enumerate(self.rows):
            if name in row:
                at, ratio = int((x.q_at if coordinates else x.v_at)[i]), float(x.ratio[i])
                for k, value in enumerate(row[name]):
                    if not x.follows[i]:
                        entries[at + k] = entries[at + k] + value
                    elif not coordinates:
                        entries[at + k] = entries[at + k] + value * ratio
        return np.array(entries)

    def ancestors(self, i: int) -> Sequence[int]:
        """The positions above i, nearest first."""
        return self.tree.topology.path(self.parent[i])


def add_to(total: dict[Any, Any], key: Any, term: Any) -> None:
    """Add a term to the sum under a key, of which it may be the first."""
    total[key] = total[key] + term if key in total else term


def _depth_first(parent: list[int]) -> list[int]:
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
