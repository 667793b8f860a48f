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

from linkwright.dynamics.methods.articulated_body import accelerated, passed_on, three_passes
from linkwright.dynamics.traversals.traversal import Link, State, Traversal
from linkwright.spatial.algebra import Array, inverse
from linkwright.spatial.rotation import ArticulatedInertia


def forward_dynamics(traversal: Traversal, gravity: Array, *, wrenches: bool = False) -> Any:
    """Joint accelerations for the traversal's q, v, tau (and wrenches on the links, in link axes)."""
    return three_passes(traversal, gravity, reduce, accelerations, wrenches=wrenches)


def reduce(link: Link, state: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
    """M̂ and ĥ of the link, and what it adds to those of its parent."""
    terms = state["terms"]
    mhat = link.rigid_inertia() + ArticulatedInertia.of(below)
    hhat = state["force"] + below["f"]
    left: dict[str, Array] = {}
    passed, push = mhat, mhat.times(state["beta"]) + hhat
    if link.kind.nv:
        mj, d, u = eliminate(link, terms, mhat)
        left = {"mj": mj, "d": d, "driving": link.tau - link.project(terms, hhat)}
        passed = ArticulatedInertia.from_dense(u @ mhat.dense())
        push = u @ push + mj @ (d @ link.tau)
    return left, passed_on(link, terms, passed, push)  # (59, 60)


def eliminate(link: Link, terms: Array, mhat: ArticulatedInertia) -> tuple[Array, Array, Array]:
    """M̂ J, D⁻¹ and U (58)."""
    j = link.subspace(terms)
    mj = mhat.dense() @ j
    d = j.T @ mj
    if link.geared:
        d = d + link.armature * np.eye(link.kind.nv)
    d = inverse(d)
    return mj, d, np.eye(6) - (mj @ d) @ j.T


def accelerations(link: Link, state: State, up: State) -> dict[str, Array]:
    """Joint acceleration and the link's b (55)."""
    return accelerated(link, state, up, lambda b: state["d"] @ (state["driving"] - b @ state["mj"]))
