"""The constraints that close a spanning tree, each with the joints or frames that it is about.

A `Constraint` has numbers; here is where these come from, so that parameters may be left free. Its equations, in their
form's order and scaling, are the rows of G and have the multipliers λ of M a + h = τ + Gᵀλ. Redundant ones count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from linkwright.constraints.equations import Constraint, Equations, Group
from linkwright.constraints.forms import Form
from linkwright.errors import ModelError
from linkwright.mechanism.description import Description
from linkwright.mechanism.elements import Driver, Mimic, PointOnLine, Rod, Tie
from linkwright.mechanism.expression import Expression
from linkwright.mechanism.topology import Topology


@dataclass(frozen=True)
class Source:
    """What a constraint is about: joints (of a gear the follower and the leader), or frames."""

    joints: tuple[int, ...] = ()
    places: tuple[str, ...] = ()
    length: Expression | None = None  # of a rod
    gear: tuple[float, float] = (1.0, 0.0)  # ratio, offset
    index: int = 0  # of the coordinate that a driver drives


@dataclass(frozen=True, eq=False)
class Closing:
    """A constraint and its source."""

    constraint: Constraint
    source: Source

    @property
    def name(self) -> str:
        return self.constraint.name

    @property
    def group(self) -> Group:
        return self.constraint.group

    @property
    def form(self) -> Form:
        return self.constraint.form

    @property
    def law(self) -> Expression | None:
        return self.constraint.law

    def __str__(self) -> str:
        return str(self.constraint)


def closing_constraints(equations: Equations, topology: Topology) -> list[Constraint]:
    """The joints that close loops, ties, couplings of joints that close loops, and drivers, each in the file's order.

    The spanning tree's own joints, and couplings between them, are in its coordinates already.
    """
    d = equations.description
    closes = {d.joint_names[j] for j in topology.loops}
    loose = set(topology.loops)
    coupled = [m.follower in loose or m.leader in loose for m in d.mimics]
    gears = iter(coupled)
    found: dict[str, list[Constraint]] = {"joint": [], "tie": [], "gear": [], "driver": []}
    for c in equations.constraints:
        if c.group == "joint" and c.name not in closes:
            continue
        if c.group == "gear" and not next(gears):
            continue
        found[c.group].append(c)
    return [c for group in found.values() for c in group]


def closings(d: Description, topology: Topology) -> tuple[Closing, ...]:
    """All of a mechanism's, in the order of `closing_constraints`; within a group it is the description's."""
    loops = set(topology.loops)
    constraints = closing_constraints(Equations(d), topology)
    sources: dict[Group, Iterator[Source]] = {
        "joint": (Source((d.joint_names.position("joint", c.name),)) for c in constraints if c.group == "joint"),
        "tie": map(_tie, d.ties),
        "gear": (_gear(d, m, loops) for m in d.mimics if {m.follower, m.leader} & loops),
        "driver": (_driver(d, driver) for driver in d.drivers),
    }
    return tuple(Closing(c, next(sources[c.group])) for c in constraints)


def by_follower(d: Description, joints: tuple[int, int], ratio: float) -> bool:
    """Of a gear between two joints that close loops, follower and leader, whether the follower is taken near zero.

    Else the leader is: the other one then makes whole turns, of which nothing is counted.
    """
    follower, leader = (d.kind_of(j) for j in joints)
    return bool(leader.angles) and ratio != 0.0 and (not follower.angles or abs(ratio) < 1.0)


def _tie(tie: Tie) -> Source:
    if isinstance(tie, Rod):
        return Source(places=(tie.first, tie.second), length=tie.length)
    return Source(places=(tie.line if isinstance(tie, PointOnLine) else tie.plane, tie.point))


def _gear(d: Description, m: Mimic, loops: set[int]) -> Source:
    turning = d.kind_of(m.follower).angles and d.kind_of(m.leader).angles
    if {m.follower, m.leader} <= loops and turning and not (_whole(m.ratio) or _whole(1.0 / m.ratio)):
        joint = d.joint_names[m.follower]
        name = m.name or joint
        text = f"gear {name!r} joins two joints that close loops, whose turns nothing counts, by the ratio {m.ratio:g}"
        raise ModelError(f"{text}; cut another joint than {joint!r} in its loop", element=name)
    return Source((m.follower, m.leader), gear=(m.ratio, m.offset))


def _whole(ratio: float) -> bool:
    return abs(ratio - round(ratio)) <= 1e-12 * abs(ratio)


def _driver(d: Description, driver: Driver) -> Source:
    if driver.kind == "joint":
        return Source((d.joint_names.position("joint", driver.target),), index=driver.index)
    if driver.kind == "absolute":
        return Source(places=(driver.target.rsplit(".", 1)[0],))
    return Source(places=(driver.target, driver.other or ""))
