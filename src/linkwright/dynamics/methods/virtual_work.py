r"""Forward dynamics by virtual work: the constraint forces of the joints, O(N).

Links are free bodies, A θ̈ = (applied and velocities) + Q n + T τ − Σ Cᵀ (Q n + T τ) of the children; joints are
constraints, Qᵀ (θ̈ − C θ̈_λ − β) = 0. Q spans the wrenches that a joint holds, Qᵀ S = 0; its force is on both
links, T τ with Tᵀ S = 1. Yamane and Nakamura eliminate all accelerations first, which couples siblings. Here a
link keeps its own until its children's constraint forces are out, so that children only add:

    inward:   Â = A + Σ Cᵀ W C,  Φ = Â⁻¹,  Γ = Qᵀ Φ Q,  M = Γ⁻¹,  W = Q M Qᵀ
              p = (applied and velocities) + T τ − Σ Cᵀ [T τ + W (β − Φ p)]
    outward:  n = M Qᵀ r  with  r = C θ̈_λ + β − Φ p,  θ̈ = Φ (p + Q n)

On a chain M and n are the paper's M_i and n_i⁽ⁱ⁾, counted from the tip. The relative acceleration
θ̈ − C θ̈_λ − β = −(1 − Φ W) r has no part but S a, so that n need not be formed:  a = −L r,  L = Tᵀ (1 − Φ W).

An armature m makes T m̃, m̃ = −m a, one more constraint force, along S. By Woodbury's identity
W = W₀ + Y m (1 + m E₀)⁻¹ Yᵀ with Y = (1 − W₀ Φ) T, E₀ = Tᵀ Φ Y, and nothing else changes.
A fixed joint passes Â and p on: it needs no Φ. Gravity is the acceleration of ground.

Closed loops: `linkwright.dynamics.closed.constraint_space`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.dynamics.methods.articulated_body import accelerated, passed_on, three_passes
from linkwright.dynamics.traversals.traversal import Link, State, Traversal
from linkwright.model.joint_kinds import JointKind
from linkwright.spatial.algebra import Array, inverse, symmetric_product, unpack_symmetric
from linkwright.spatial.rotation import ArticulatedInertia


def forward_dynamics(traversal: Traversal, gravity: Array, *, wrenches: bool = False) -> Any:
    """Joint accelerations for the traversal's q, v, tau (and wrenches on the links, in link axes)."""
    return three_passes(traversal, gravity, eliminate, accelerations, wrenches=wrenches)


def eliminate(link: Link, state: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
    """Take the constraint force of the link's joint out; what it leaves at the parent."""
    terms, beta = state["terms"], state["beta"]
    ahat = link.rigid_inertia() + ArticulatedInertia.of(below)
    p = -(state["force"] + below["f"])
    left: dict[str, Array] = {}
    if link.kind.nv:
        drive = link.joint_wrench(terms, link.tau)
        p = p + drive
        phi = inverse(ahat.dense())
        w = held(link.kind, link.complement(terms), phi)
        t = link.dual(terms)
        if link.geared:
            w = with_armature(w, phi, t, link.armature)
        free = phi @ p
        left = {"free": free, "l": t.T - (t.T @ phi) @ w, "phi": phi}
        passed = drive + w @ (beta - free)
        ahat = ArticulatedInertia.from_dense(w)
    else:
        passed = -p
    return left, passed_on(link, terms, ahat, passed)


def accelerations(link: Link, state: State, up: State) -> dict[str, Array]:
    """Joint acceleration and the link's θ̈."""

    def acceleration(b: Array) -> Array:
        a = state["l"] @ (state["free"] - b)
        return a + state["push"] if "push" in state else a  # of the loops

    return accelerated(link, state, up, acceleration)


def held(kind: JointKind, q: Array, sigma: Array) -> Array:
    """W = Q (Qᵀ Σ Q)⁻¹ Qᵀ: the wrench that a joint holds, per acceleration that it takes away."""
    if not q.shape[1]:
        return np.zeros((6, 6))
    if kind.selects is None:
        return unpack_symmetric(symmetric_product(q @ inverse(q.T @ sigma @ q), q.T), 6)
    rows = [k for k in range(6) if k not in kind.selects]
    m = inverse(sigma[np.ix_(rows, rows)])
    w = np.zeros((6, 6), dtype=m.dtype)
    w[np.ix_(rows, rows)] = m
    return w


def with_armature(w: Array, sigma: Array, t: Array, armature: Any) -> Array:
    """W of a joint with an armature, from W without it."""
    y = t - w @ (sigma @ t)
    e = t.T @ sigma @ y
    return w + y @ (armature * inverse(np.eye(t.shape[1]) + armature * e)) @ y.T
