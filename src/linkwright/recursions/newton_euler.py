r"""Inverse dynamics by Newton and Euler's equations, O(N).

    outward:  w = C w + S v,  b = C b + S a + β
    inward:   f = M b + w ×* (M w) − (applied) + Σ Cᵀ f of the children,  τ = Sᵀ f

with b = ẇ, β = w × (S v) + Ṡ v, and gravity as the acceleration of ground. Featherstone (2008), table 5.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.recursions.link import Link, State
from linkwright.recursions.traversal import Traversal
from linkwright.spatial.algebra import Array, force_cross, motion_cross


def inverse_dynamics(traversal: Traversal, gravity: Array, *, wrenches: bool = False) -> Any:
    """Joint forces for the traversal's q, v, a (and wrenches on the links, in link axes)."""
    joint_forces(traversal, gravity, wrenches=wrenches)
    return traversal.joint_vector("tau")


def joint_forces(traversal: Traversal, gravity: Array, *, wrenches: bool = False) -> None:
    """`inverse_dynamics`, with each link's joint force left in its numbers."""
    traversal.outward(motions, {"w": np.zeros(6), "b": np.concatenate([-gravity, np.zeros(3)])})
    traversal.inward(forces_with_wrenches if wrenches else forces, {"f": (6,)})


def motions(link: Link, own: State, up: State) -> dict[str, Array]:
    """Twist and its rate."""
    terms = link.terms()
    x = link.transform(terms)
    v = link.v
    joint = link.joint_twist(terms, v)
    w = x.outward(up["w"]) + joint
    b = x.outward(up["b"]) + link.joint_twist(terms, link.a) + motion_cross(w, joint)
    if link.kind.selects is None:
        b = b + link.kind.subspace_rate(terms, link.pitch, v)
    return {"terms": terms, "w": w, "b": b}


def forces(link: Link, own: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
    """The wrench through the joint, and its part along the joint's freedom."""
    w = own["w"]
    f = link.momentum(own["b"]) + force_cross(w, link.momentum(w)) + below["f"]
    tau = link.project(own["terms"], f)
    if link.geared:
        tau = tau + link.armature * link.a
    if link.grounded:
        return {"tau": tau, "f": f}, {}
    return {"tau": tau, "f": f}, {"f": link.transform(own["terms"]).inward(f)}


def forces_with_wrenches(link: Link, own: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
    """`forces` with an applied wrench."""
    return forces(link, own, {"f": below["f"] - link.wrench})
