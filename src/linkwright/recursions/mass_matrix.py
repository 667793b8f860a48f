r"""Forward dynamics by the mass matrix: build M and k, solve M a + k = τ; O(N³) on a chain.

Iwamura and Schiehlen, eqs 1, 2 and 22. M comes from composite rigid bodies, k from Newton and Euler's equations
with a = 0, and M = LᵀDL fills in nowhere, so that a tree of small depth costs O(N · depth²). Memory: (nv, nv) numbers.
"""

from __future__ import annotations

from typing import Any

from linkwright.recursions import composite, newton_euler
from linkwright.recursions.link import Link, State
from linkwright.recursions.traversal import Traversal
from linkwright.spatial.algebra import Array


def forward_dynamics(traversal: Traversal, gravity: Array, *, wrenches: bool = False) -> Any:
    """Joint accelerations for the traversal's q, v, tau; its a is zero."""
    newton_euler.joint_forces(traversal, gravity, wrenches=wrenches)
    m = composite.of_configurations(traversal)
    traversal.outward(driving, {})
    return traversal.solve(m, traversal.joint_vector("driving"))


def driving(link: Link, state: State, up: State) -> dict[str, Array]:
    """τ − k."""
    return {"driving": link.tau - state["tau"]} if link.kind.nv else {}
