"""A mechanism as a chain of links: bodies that fixed joints make one, joined by pins and slides with parallel axes.

Rods and points on lines are links too, without a body: a rod has a pin at either end, and a point on a line is a block
that has a pin at the point and slides along the line. No motion is computed here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.constraints.constraint_equations import joint_frames
from linkwright.errors import LinkwrightError
from linkwright.model.coupling_relation import relation_of
from linkwright.model.description import GROUND, Description
from linkwright.model.elements import Coupling, Driver, GearPair, PointOnLine, Rod
from linkwright.results.solution import Solution
from linkwright.spatial.rotation import euler_parameters_matrix

#: Within this sine axes are parallel, or perpendicular.
PARALLEL = 1e-6
#: Loops that are looked for at most.
LOOPS = 200


@dataclass(frozen=True, eq=False)
class Connection:
    """A pin or a slide between two links; `at` gives its axes (..., 3, 3) and origin (..., 3) at states
    (..., nb, 7)."""

    name: str
    kind: Literal["pin", "slide"]
    links: tuple[int, int]
    at: Callable[[Floats], tuple[Floats, Floats]]
    hinge: bool  # whether its z axis is the normal of the plane in which it turns

    def other(self, link: int) -> int:
        """The link on the other side."""
        return self.links[1] if self.links[0] == link else self.links[0]

    def axis(self, q: Floats) -> Floats:
        """The z axis (..., 3): of a pin about which it turns, of a slide along which it moves."""
        return self.at(q)[0][..., :, 2]

    def point(self, q: Floats) -> Floats:
        """The origin (..., 3)."""
        return self.at(q)[1]


class Chain:
    """The links of a description and what connects them; link 0 is ground."""

    def __init__(self, d: Description) -> None:
        self.description = d
        self.link_of = _links(d)
        self.names = [d.ground_name]
        for b, link in self.link_of.items():
            if link == len(self.names):
                self.names.append(d.body_names[b])
        self.connections = tuple(self._connections())
        self.around: dict[int, list[Connection]] = {link: [] for link in range(len(self.names))}
        for c in self.connections:
            for link in c.links:
                self.around[link].append(c)
        self.geared = {link: set[int]() for link in self.around}
        for together in self._moved_together():
            for link in together:
                self.geared[link] |= together - {link}

    def _connections(self) -> Iterator[Connection]:
        d = self.description
        for j in range(d.nj):
            kind = d.kind_of(j).name
            links = self.link_of[int(d.parent[j])], self.link_of[int(d.child[j])]
            if links[0] != links[1] and kind in ("revolute", "cylindrical", "spherical", "prismatic"):
                at = _joint_at(d, j)
                yield Connection(
                    d.joint_names[j], "slide" if kind == "prismatic" else "pin", links, at, kind != "spherical"
                )
        for constraint in d.point_constraints:
            if isinstance(constraint, Rod | PointOnLine):
                yield from self._without_body(constraint)

    def _moved_together(self) -> Iterator[set[int]]:
        """The links that a gear or a coupling moves together, ground apart."""
        d = self.description
        joints = [{m.follower, m.leader} for m in d.mimics]
        joints += [set(relation_of(d, x)[1]) for x in d.point_constraints if isinstance(x, Coupling)]
        for group in joints:
            yield {self.link_of[int(b)] for j in group for b in (d.parent[j], d.child[j])} - {0}
        for x in d.point_constraints:
            if isinstance(x, GearPair):
                yield {self.link_of[d.frame(place)[0]] for place in x.places} - {0}

    def driven_by(self, driver: Driver) -> set[int]:
        """The links that a driver moves, ground apart."""
        d = self.description
        if driver.kind == "joint":
            j = d.joint_names.position("joint", driver.target)
            bodies = [int(d.parent[j]), int(d.child[j])]
        else:
            bodies = [d.frame(place)[0] for place in driver.places]
        return {self.link_of[b] for b in bodies} - {0}

    def _without_body(self, constraint: Rod | PointOnLine) -> Iterator[Connection]:
        """Both connections of a rod or of a block that slides along a line."""
        d, link = self.description, len(self.names)
        line = isinstance(constraint, PointOnLine)
        self.names.append(f"block of {constraint.name}" if line else constraint.name)
        for k, place in enumerate(constraint.places):
            body = d.frame(place)[0]
            kind: Literal["pin", "slide"] = "slide" if line and k == 0 else "pin"
            yield Connection(constraint.name, kind, (self.link_of[body], link), _place_at(d, place), False)

    def loops(self) -> Iterator[tuple[list[int], list[Connection]]]:
        """The loops of four links, each once: its links, and its connections, of which k is between links k and k + 1.

        At most `LOOPS` are given.
        """
        number = {id(c): k for k, c in enumerate(self.connections)}
        count = 0
        for first in range(len(self.names)):
            for a in self.around[first]:
                second = a.other(first)
                for b in self.around[second] if second > first else ():
                    third = b.other(second)
                    for c in self.around[third] if third > first and b is not a else ():
                        fourth = c.other(third)
                        for e in self.around[fourth] if fourth > first and fourth not in (second, third) else ():
                            if e.other(fourth) == first and number[id(e)] > number[id(a)]:
                                yield [first, second, third, fourth], [a, b, c, e]
                                count += 1
                                if count == LOOPS:
                                    return

    def distances(self, links: Iterable[int], *, through_ground: bool = False) -> dict[int, int]:
        """How many connections, gears and couplings the links that can be reached are away from these."""
        steps = dict.fromkeys(links, 0)
        queue = deque(steps)
        while queue:
            link = queue.popleft()
            near = [c.other(link) for c in self.around[link]] if through_ground or link else []
            for other in (*near, *self.geared[link]):
                if other not in steps and (through_ground or other):
                    steps[other] = steps[link] + 1
                    queue.append(other)
        return steps


def _links(d: Description) -> dict[int, int]:
    """The link of every body, ground first."""
    leader = {b: b for b in range(GROUND, d.nb)}

    def root(b: int) -> int:
        while leader[b] != b:
            leader[b] = leader[leader[b]]
            b = leader[b]
        return b

    for j in range(d.nj):
        if d.kind_of(j).nv == 0:
            one, other = sorted((root(int(d.parent[j])), root(int(d.child[j]))))
            leader[other] = one
    numbers: dict[int, int] = {}
    return {b: numbers.setdefault(root(b), len(numbers)) for b in range(GROUND, d.nb)}


def _joint_at(d: Description, j: int) -> Callable[[Floats], tuple[Floats, Floats]]:
    return lambda q: joint_frames(d, q, j)[0]


def _place_at(d: Description, name: str) -> Callable[[Floats], tuple[Floats, Floats]]:
    body, r, p = d.frame(name)

    def at(q: Floats) -> tuple[Floats, Floats]:
        if body == GROUND:
            return r, p
        turn = np.moveaxis(euler_parameters_matrix(np.moveaxis(q[..., body, 3:], -1, 0)), (0, 1), (-2, -1))
        return turn @ r, q[..., body, :3] + turn @ p

    return at


def plane_of(connections: Iterable[Connection], q: Floats) -> Floats | None:
    """The normal (3,) of the plane in which a loop moves, as it is at one state; None if its axes are not so."""
    ends = list(connections)
    hinges = [c.axis(q) for c in ends if c.hinge and c.kind == "pin"]
    if not hinges or sum(c.hinge for c in ends) < 2:
        return None
    normal = hinges[0]
    if any(np.linalg.norm(np.cross(normal, x)) > PARALLEL for x in hinges):
        return None
    slides = [c.axis(q) for c in ends if c.kind == "slide"]
    return None if any(abs(normal @ x) > PARALLEL for x in slides) else normal


def plane_normal(chain: Chain, solution: Solution) -> Floats:
    """The normal (3,) of the plane to which all bodies of a motion move parallel; an error names what does not."""
    d, q = chain.description, np.concatenate([solution.arrays["position"][:1], solution.arrays["orientation"][:1]], 2)
    refused = f"{d.name!r} is no planar linkage"
    hinges = [c for c in chain.connections if c.hinge and c.kind == "pin"]
    slides = [c for c in chain.connections if c.kind == "slide"]
    axes = [c.axis(q).reshape(3) for c in (*hinges, *slides)]
    normal = axes[0] if hinges else np.zeros(3)
    if not hinges and slides:
        across = [np.cross(axes[0], x) for x in axes]
        normal = max(across, key=lambda x: float(np.linalg.norm(x)))
    size = float(np.linalg.norm(normal))
    if size < PARALLEL:
        raise LinkwrightError(f"{refused}: no axis of a joint is the normal of a plane")
    normal = np.where(np.abs(normal) < 1e-12 * size, 0.0, normal / size)
    normal = normal * (1.0 if normal[int(np.argmax(np.abs(normal)))] > 0.0 else -1.0)
    for c, axis in zip((*hinges, *slides), axes, strict=True):
        gap = np.linalg.norm(np.cross(normal, axis)) if c.kind == "pin" else abs(normal @ axis)
        if gap > PARALLEL:
            side = "parallel" if c.kind == "pin" else "perpendicular"
            other = f"that of {hinges[0].name!r}" if hinges else "the plane"
            raise LinkwrightError(f"{refused}: the axis of joint {c.name!r} is not {side} to {other}")
    moving = solution.arrays["position"] @ normal
    turning = np.linalg.norm(np.cross(solution.arrays["angular_velocity"], normal), axis=-1)
    fastest = np.max(np.linalg.norm(solution.arrays["angular_velocity"], axis=-1), initial=0.0)
    off = (np.ptp(moving, axis=0) > PARALLEL * d.length_scale) | np.any(turning > PARALLEL * fastest, axis=0)
    if off.any():
        raise LinkwrightError(f"{refused}: body {d.body_names[int(np.argmax(off))]!r} moves out of the plane")
    return np.asarray(normal)
