r"""Forward dynamics by a diagonal mass matrix, O(N): Iwamura and Schiehlen, eqs 55–60.

Gauss's transformations and the substitution of b turn M a + k = 0 into J_iᵀ M̂_i J_i a_i + ǩ_i = 0, link by link:

    inward:   D = Jᵀ M̂ J,  U = E − M̂ J D⁻¹ Jᵀ                                                     (58)
              M̂ of the parent:  M + Cᵀ U M̂ C                                                     (59)
              ĥ of the parent:  h + Cᵀ [U (M̂ β + ĥ) + M̂ J D⁻¹ τ]                                 (60)
    outward:  ǩ = Jᵀ (M̂ (C b + β) + ĥ) − τ,  D a + ǩ = 0,  b = C b + β + J a                     (55–57, 5)

with b = ẇ, β = w × (J v) + J̇ v, h = w ×* (M w) − (applied); gravity is the acceleration of ground. The paper has
chains of joints with one degree of freedom, and forces in h: here D is nv × nv, an armature is added to it, children
are summed, and joint forces τ are kept apart from h. Jᵀ M̂ is kept from the way in.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.recursions.articulated_body import velocities
from linkwright.recursions.link import Link, State
from linkwright.recursions.traversal import Traversal
from linkwright.spatial.algebra import Array, inverse
from linkwright.spatial.transform import ArticulatedInertia

BELOW = {"m": (6,), "h": (3, 3), "a": (6,), "f": (6,)}


def forward_dynamics(traversal: Traversal, gravity: Array, *, wrenches: bool = False) -> Any:
    """Joint accelerations for the traversal's q, v, tau (and wrenches on the links, in link axes)."""
    traversal.outward(velocities, {"w": np.zeros(6)})
    traversal.inward(inward_with_wrenches if wrenches else reduce, BELOW)
    traversal.outward(accelerations, {"b": np.concatenate([-gravity, np.zeros(3)])})
    return traversal.joint_vector("acceleration")


def inward_with_wrenches(link: Link, own: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
    """`reduce` with an applied wrench."""
    return reduce(link, {**own, "force": own["force"] - link.wrench}, below)


def reduce(link: Link, own: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
    """M̂ and ĥ of the link, and what it adds to those of its parent."""
    terms = own["terms"]
    mhat = link.rigid_inertia() + ArticulatedInertia(below["m"], below["h"], below["a"])
    hhat = own["force"] + below["f"]
    left: dict[str, Array] = {}
    passed, push = mhat, mhat.times(own["beta"]) + hhat
    if link.kind.nv:
        mj, d, u = eliminate(link, terms, mhat)
        left = {"mj": mj, "d": d, "driving": link.tau - link.project(terms, hhat)}
        passed = ArticulatedInertia.from_dense(u @ mhat.dense())
        push = u @ push + mj @ (d @ link.tau)
    if link.grounded:
        return left, {}
    x = link.transform(terms)
    moved = x.inertia(passed)  # (59)
    return left, {"m": moved.m, "h": moved.h, "a": moved.a, "f": x.inward(push)}  # (60)


def eliminate(link: Link, terms: Array, mhat: ArticulatedInertia) -> tuple[Array, Array, Array]:
    """M̂ J, D⁻¹ and U (58)."""
    j = link.subspace(terms)
    mj = mhat.dense() @ j
    d = j.T @ mj
    if link.geared:
        d = d + link.armature * np.eye(link.kind.nv)
    d = inverse(d)
    return mj, d, np.eye(6) - (mj @ d) @ j.T


def accelerations(link: Link, own: State, up: State) -> dict[str, Array]:
    """Joint acceleration and the link's b."""
    terms = own["terms"]
    b = link.transform(terms).outward(up["b"]) + own["beta"]
    if not link.kind.nv:
        return {"b": b}
    a = own["d"] @ (own["driving"] - b @ own["mj"])  # (55)
    return {"b": b + link.joint_twist(terms, a), "acceleration": a}
