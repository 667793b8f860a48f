"""What gears between joints of a tree exert, and what is left to the joints themselves, after Newton and Euler.

A gear exerts f on the coordinate of its follower and −ratio · f on that of its leader, so that it has no power:
f (q̇_follower − ratio · q̇_leader) = 0. The follower's own equation, Sᵀ F + armature · a = f + laws − Σ ratio · f of the
gears that it leads, determines f from the end of a gear train on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwright.recursions.traversal import Unrolled
from linkwright.spatial.algebra import Array


def gear_forces(traversal: Unrolled, laws: Mapping[tuple[int, int], Any]) -> list[Any]:
    """f of each coupling, where `newton_euler.joint_forces` has been; `laws` are the force laws on rates of joints."""
    leaders = {i: (leader, ratio) for i, leader, ratio in traversal.tree.couplings}
    forces = {i: traversal.rows[i]["tau"][0] - laws.get((i, 0), 0.0) for i in leaders}

    def place(i: int) -> int:
        """How many gears of a train there are up to this follower's."""
        count = 0
        while i in leaders:
            i, count = leaders[i][0], count + 1
        return count

    for i in sorted(leaders, key=place, reverse=True):
        leader, ratio = leaders[i]
        if leader in forces:
            forces[leader] = forces[leader] + ratio * forces[i]
    return list(forces.values())


def without_gears(traversal: Unrolled, forces: list[Any]) -> list[Array]:
    """The wrench of each joint on its link, at the link frame in its axes, without those of gears."""
    wrenches = [row["f"] for row in traversal.rows]
    for (follower, leader, ratio), force in zip(traversal.tree.couplings, forces, strict=True):
        for i, share in ((follower, force), (leader, -ratio * force)):
            link = traversal.links[i]
            wrenches[i] = wrenches[i] - link.joint_wrench(traversal.rows[i]["terms"], np.array([share]))
    return wrenches
