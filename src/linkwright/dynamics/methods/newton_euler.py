r"""Inverse dynamics by Newton and Euler's equations, O(N).

    outward:  w = C w + S v,  b = C b + S a + β
    inward:   f = M b + w ×* (M w) − (applied) + Σ Cᵀ f of the children,  τ = Sᵀ f

with b = ẇ, β = w × (S v) + Ṡ v, and gravity as the acceleration of ground. Featherstone (2008), table 5.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.dynamics.traversals.traversal import Link, State, Traversal
from linkwright.spatial.algebra import Array, force_cross, ground_acceleration


def inverse_dynamics(traversal: Traversal, gravity: Array, *, wrenches: bool = False) -> Any:
    """Joint forces for the traversal's q, v, a (and wrenches on the links, in link axes)."""
    joint_forces(traversal, gravity, wrenches=wrenches)
    return traversal.joint_vector("tau")


def joint_forces(traversal: Traversal, gravity: Array, *, wrenches: bool = False) -> None:
    """`inverse_dynamics`, with each link's joint force left in its numbers."""
    traversal.outward(motions, {"w": np.zeros(6), "b": ground_acceleration(gravity)})
    traversal.inward(forces_with_wrenches if wrenches else forces, {"f": (6,)})


def motions(link: Link, state: State, up: State) -> dict[str, Array]:
    """Twist and its rate."""
    terms = link.terms()
    w, beta = link.moving(terms, up["w"])
    b = link.transform(terms).outward(up["b"]) + link.joint_twist(terms, link.a) + beta
    return {"terms": terms, "w": w, "b": b}


def forces(link: Link, state: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
    """The wrench through the joint, and its part along the joint's freedom."""
    w = state["w"]
    f = link.momentum(state["b"]) + force_cross(w, link.momentum(w)) + below["f"]
    tau = link.project(state["terms"], f)
    if link.geared:
        tau = tau + link.armature * link.a
    if link.parent_is_ground:
        return {"tau": tau, "f": f}, {}
    return {"tau": tau, "f": f}, {"f": link.transform(state["terms"]).inward(f)}


def forces_with_wrenches(link: Link, state: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
    """`forces` with an applied wrench."""
    return forces(link, state, {"f": below["f"] - link.wrench})
