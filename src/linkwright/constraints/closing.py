"""Which constraints hold the coordinates of a spanning tree together, and in which order they stand."""

from __future__ import annotations

from linkwright.constraints.equations import Constraint, Equations
from linkwright.mechanism.topology import Topology


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


def rows(constraints: list[Constraint]) -> list[tuple[Constraint, str]]:
    """For every equation, its constraint and what it is about."""
    return [(c, name) for c in constraints for name in c.form.names]
