r"""Forward dynamics by a triangular mass matrix, O(N · depth): Schiehlen, in Iwamura and Schiehlen, eqs 28–33.

Gauss's transformations G turn M a + k = τ into M̂ a + k̂ = 0 with a lower-triangular M̂ (28):

    inward:   M̂ of the parent:  M + Cᵀ U M̂ C,  U = E − M̂ J D⁻¹ Jᵀ,  D = Jᵀ M̂ J                    (31, 32)
              k by Newton and Euler's equations with a = 0
    walk:     M̂_ij = J_iᵀ M̂_i C_i … C_{j+1} J_j for each ancestor j of i, M̂_ii = D_i                (29)
    inward:   k̂_j = k_j − τ_j − Σ_i (D_i⁻¹ M̂_ij)ᵀ k̂_i over the descendants i of j                   (30)
    outward:  D_i a_i + Σ_j M̂_ij a_j + k̂_i = 0                                                      (28)

The paper's G (33) is never formed: G⁻¹ = M̂ᵀ diag(M̂)⁻¹, so G k is a back-substitution. The rows of M̂ are kept
divided by their diagonal, in a matrix of (nv, nv) numbers: 128 MB at 4000 rates. The paper has chains of joints with
one degree of freedom: here D is nv × nv, an armature is added to it, and a tree has entries for ancestors only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.dynamics.methods import newton_euler
from linkwright.dynamics.methods.diagonal import eliminate
from linkwright.dynamics.methods.mass_matrix import across
from linkwright.dynamics.traversals.traversal import Link, State, Traversal
from linkwright.spatial.algebra import Array
from linkwright.spatial.rotation import ArticulatedInertia

BELOW = {"m": (6,), "h": (3, 3), "a": (6,)}


def forward_dynamics(traversal: Traversal, gravity: Array, *, wrenches: bool = False) -> Any:
    """Joint accelerations for the traversal's q, v, tau; its a is zero."""
    newton_euler.joint_forces(traversal, gravity, wrenches=wrenches)
    traversal.inward(reduce, BELOW)
    mhat = traversal.walk(first, across, lower=True)
    traversal.pairs("inward", mhat, back)
    traversal.outward(divide, {})
    traversal.pairs("outward", mhat, forth)
    traversal.outward(result, {})
    return traversal.joint_vector("acceleration")


def reduce(link: Link, state: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
    """M̂ of the link, and what it adds to that of its parent; k − τ."""
    terms = state["terms"]
    mhat = link.rigid_inertia() + ArticulatedInertia.of(below)
    left: dict[str, Array] = {}
    passed = mhat
    if link.kind.nv:
        mj, d, u = eliminate(link, terms, mhat)
        left = {"row": mj @ d, "d": d, "khat": state["tau"] - link.tau}
        passed = ArticulatedInertia.from_dense(u @ mhat.dense())
    if link.parent_is_ground:
        return left, {}
    moved = link.transform(terms).inertia(passed)  # (32)
    return left, moved.fields


def first(link: Link, state: State) -> tuple[Array, Array]:
    """D⁻¹ M̂_ii, and M̂ J D⁻¹ seen from the parent: the row of M̂ divided by its diagonal."""
    nv = link.kind.nv
    if not nv:
        return np.zeros((0, 0)), np.zeros((6, 0))
    x = link.transform(state["terms"])
    return np.eye(nv), np.stack([x.inward(state["row"][:, k]) for k in range(nv)], axis=1)


def back(entry: Array, state: State, above: State) -> tuple[dict[str, Array], dict[str, Array]]:
    """What a link takes from its ancestor's k̂ (30)."""
    return {}, {"khat": -(state["khat"] @ entry)} if entry.size else {}


def divide(link: Link, state: State, up: State) -> dict[str, Array]:
    """−D⁻¹ k̂."""
    return {"solution": -(state["d"] @ state["khat"])} if link.kind.nv else {}


def forth(entry: Array, state: State, above: State) -> tuple[dict[str, Array], dict[str, Array]]:
    """What an ancestor's acceleration takes from the link's (28)."""
    return {"solution": -(entry @ above["solution"])} if entry.size else {}, {}


def result(link: Link, state: State, up: State) -> dict[str, Array]:
    return {"acceleration": state["solution"]} if link.kind.nv else {}
