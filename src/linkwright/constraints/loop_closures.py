"""The constraints that close a spanning tree.

Their equations, in their forms' order and scaling, are the rows of G and have the multipliers λ of M a + h = τ + Gᵀλ.
Redundant ones count.
"""

from __future__ import annotations

from linkwright.constraints.equations import Constraint, Equations, Group
from linkwright.errors import ModelError
from linkwright.model.description import Description
from linkwright.model.topology import Topology


def closing_constraints(equations: Equations, topology: Topology) -> list[Constraint]:
    """The joints that close loops, ties, couplings of joints that close loops, and drivers, each in the file's order.

    The spanning tree's own joints, and couplings between them, are in its coordinates already.
    """
    loops = set(topology.loops)
    closing = [
        c for c in equations.constraints if c.group not in ("joint", "gear") or not loops.isdisjoint(c.source.joints)
    ]
    groups: tuple[Group, ...] = ("joint", "tie", "gear", "driver")
    return sorted(closing, key=lambda c: groups.index(c.group))


def closings(d: Description, topology: Topology) -> tuple[Constraint, ...]:
    """All of a mechanism's, in the order of `closing_constraints`; a gear whose turns nothing counts is an error."""
    constraints = closing_constraints(Equations(d), topology)
    for c in constraints:
        if c.group == "gear":
            _check_gear(d, c, set(topology.loops))
    return tuple(constraints)


def by_follower(d: Description, joints: tuple[int, int], ratio: float) -> bool:
    """Of a gear between two joints that close loops, follower and leader, whether the follower is taken near zero.

    Else the leader is: the other one then makes whole turns, of which nothing is counted.
    """
    follower, leader = (d.kind_of(j) for j in joints)
    return bool(leader.angles) and ratio != 0.0 and (not follower.angles or abs(ratio) < 1.0)


def _check_gear(d: Description, c: Constraint, loops: set[int]) -> None:
    turning, ratio = all(d.kind_of(j).angles for j in c.source.joints), c.source.gear[0]
    if loops.issuperset(c.source.joints) and turning and not (_whole(ratio) or _whole(1.0 / ratio)):
        joint = d.joint_names[c.source.joints[0]]
        text = f"gear {c.name!r} joins two joints that close loops, whose turns nothing counts, by the ratio {ratio:g}"
        raise ModelError(f"{text}; cut another joint than {joint!r} in its loop", element=c.name)


def _whole(ratio: float) -> bool:
    return abs(ratio - round(ratio)) <= 1e-12 * abs(ratio)
