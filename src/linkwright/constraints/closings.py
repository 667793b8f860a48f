"""The constraints that close a spanning tree, each with the joints or frames that it is about.

A `Constraint` has numbers; here is where these come from, so that parameters may be left free. Its equations, in their
form's order and scaling, are the rows of G and have the multipliers λ of M a + h = τ + Gᵀλ. Redundant ones count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from linkwright.constraints.closing import closing_constraints
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


def closings(d: Description, topology: Topology) -> tuple[Closing, ...]:
    """All of a mechanism's, in the order of `closing_constraints`."""
    constraints = closing_constraints(Equations(d), topology)
    return tuple(Closing(c, s) for c, s in zip(constraints, _sources(d, topology), strict=True))


def _sources(d: Description, topology: Topology) -> Iterator[Source]:
    loops = set(topology.loops)
    yield from (Source((j,)) for j in topology.loops if d.kind_of(j).nv < 6)
    yield from map(_tie, d.ties)
    yield from (_gear(d, m, loops) for m in d.mimics if {m.follower, m.leader} & loops)
    yield from (_driver(d, driver) for driver in d.drivers)


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
    return abs(ratio - round(ratio)) < 1e-12 * abs(ratio)


def _driver(d: Description, driver: Driver) -> Source:
    if driver.kind == "joint":
        return Source((d.joint_names.position("joint", driver.target),), index=driver.index)
    if driver.kind == "absolute":
        return Source(places=(driver.target.rsplit(".", 1)[0],))
    return Source(places=(driver.target, driver.other or ""))
