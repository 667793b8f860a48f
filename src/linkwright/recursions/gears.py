"""What gears between joints of a tree exert, and what is left to the joints themselves, after Newton and Euler.

A gear exerts f on the coordinate of its follower and −ratio · f on that of its leader, so that it has no power:
f (q̇_follower − ratio · q̇_leader) = 0. The follower's own equation, Sᵀ F + armature · a = f + laws, tells f.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwright.recursions.traversal import Unrolled
from linkwright.spatial.algebra import Array


def gear_forces(traversal: Unrolled, laws: Mapping[tuple[int, int], Any]) -> list[Any]:
    """f of each coupling, where `newton_euler.joint_forces` has been; `laws` are the force laws on rates of joints."""
    couplings = traversal.tree.couplings
    return [traversal.rows[i]["tau"][0] - laws.get((i, 0), 0.0) for i, _, _ in couplings]


def without_gears(traversal: Unrolled, forces: list[Any]) -> list[Array]:
    """The wrench of each joint on its link, at the link frame in its axes, without those of gears."""
    wrenches = [row["f"] for row in traversal.rows]
    for (follower, leader, ratio), force in zip(traversal.tree.couplings, forces, strict=True):
        for i, share in ((follower, force), (leader, -ratio * force)):
            link = traversal.links[i]
            wrenches[i] = wrenches[i] - link.joint_wrench(traversal.rows[i]["terms"], np.array([share]))
    return wrenches
