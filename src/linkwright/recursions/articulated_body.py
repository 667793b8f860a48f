r"""Forward dynamics by articulated-body inertias, O(N).

With twists in link axes, b = ẇ (gravity as the acceleration of ground) and per link the motion subspace S,
the bias β = w × (S v) + Ṡ v and the wrench h = w ×* (M w) − (applied):

    inward:   D = Sᵀ M̂ S,  u = τ − Sᵀ ĥ,  M' = M̂ − M̂ S D⁻¹ Sᵀ M̂,  ĥ' = ĥ + M' β + M̂ S D⁻¹ u
    outward:  b' = C b + β,  a = D⁻¹ (u − Sᵀ M̂ b'),  b = b' + S a

where M̂ and ĥ of a link include M' and ĥ' of its children, moved by C. Featherstone (2008), table 7.1; in the
notation of Iwamura and Schiehlen, M' = U M̂.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.recursions.link import Link, State
from linkwright.recursions.traversal import Traversal
from linkwright.spatial.algebra import (
    Array,
    force_cross,
    ldl,
    ldl_solve,
    motion_cross,
)
from linkwright.spatial.transform import ArticulatedInertia

BELOW = {"m": (6,), "h": (3, 3), "a": (6,), "f": (6,)}


def forward_dynamics(traversal: Traversal, gravity: Array, *, wrenches: bool = False) -> Any:
    """Joint accelerations for the traversal's q, v, tau (and wrenches on the links, in link axes)."""
    traversal.outward(velocities, {"w": np.zeros(6)})
    traversal.inward(inward_with_wrenches if wrenches else articulate, BELOW)
    traversal.outward(accelerations, {"b": np.concatenate([-gravity, np.zeros(3)])})
    return traversal.joint_vector("acceleration")


def velocities(link: Link, own: State, up: State) -> dict[str, Array]:
    """Twist, bias and the wrench of the velocities."""
    terms = link.terms()
    x = link.transform(terms)
    v = link.v
    joint = link.joint_twist(terms, v)
    w = x.outward(up["w"]) + joint
    beta = motion_cross(w, joint)
    if link.kind.selects is None:
        beta = beta + link.kind.subspace_rate(terms, link.pitch, v)
    return {"terms": terms, "w": w, "beta": beta, "force": force_cross(w, link.momentum(w))}


def inward_with_wrenches(link: Link, own: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
    """`articulate` with an applied wrench."""
    return articulate(link, {**own, "force": own["force"] - link.wrench}, below)


def articulate(link: Link, own: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
    """Articulated inertia and force of the link; what is left of them at the parent."""
    terms = own["terms"]
    mhat = link.rigid_inertia() + ArticulatedInertia(below["m"], below["h"], below["a"])
    hhat = own["force"] + below["f"]
    kind = link.kind
    tau = link.tau
    full = mhat.dense()
    if kind.selects is not None:
        chosen = list(kind.selects)
        us = full[:, chosen]
        d = us[chosen]
    else:
        s = link.subspace(terms)
        us = full @ s
        d = s.T @ us
    if link.geared:
        d = d + link.armature * np.eye(kind.nv)
    u = tau - link.project(terms, hhat)
    lower, inverse = ldl(d)
    left = {"us": us, "pivots": np.array(inverse), "lower": _strictly_lower(lower), "u": u}
    if link.grounded:
        return left, {}
    x = link.transform(terms)
    if kind.selects is not None and kind.nv == 6 and not link.geared:
        # Nothing but the joint force passes.
        zero = ArticulatedInertia(np.zeros(6), np.zeros((3, 3)), np.zeros(6))
        return left, {"m": zero.m, "h": zero.h, "a": zero.a, "f": x.inward(tau)}
    # M̂ S D⁻¹ Sᵀ M̂ = Σ y yᵀ / d over the columns y of M̂ S L⁻ᵀ.
    columns = _forward_columns(lower, us)
    kept = range(6)
    if kind.selects is not None and not link.geared:
        kept = [k for k in range(6) if k not in kind.selects]  # type: ignore[assignment]
    rest: list[list[Any]] = [[0.0 * full[0, 0]] * 6 for _ in range(6)]
    for i in kept:
        for j in kept:
            if j >= i:
                entry = full[i, j]
                for y, pivot in zip(columns, inverse, strict=True):
                    entry = entry - (y[i] * pivot) * y[j]
                rest[i][j] = rest[j][i] = entry
    mprime = ArticulatedInertia.from_dense(np.array(rest))
    passed = hhat + mprime.times(own["beta"]) + us @ ldl_solve(lower, inverse, u) if kind.nv else hhat
    moved = x.inertia(mprime)
    return left, {"m": moved.m, "h": moved.h, "a": moved.a, "f": x.inward(passed)}


def accelerations(link: Link, own: State, up: State) -> dict[str, Array]:
    """Joint acceleration and the link's b."""
    terms = own["terms"]
    b = link.transform(terms).outward(up["b"]) + own["beta"]
    if not link.kind.nv:
        return {"b": b}
    lower = unpack_lower(own["lower"], link.kind.nv)
    a = ldl_solve(lower, list(own["pivots"]), own["u"] - own["us"].T @ b)
    return {"b": b + link.joint_twist(terms, a), "acceleration": a}


def _forward_columns(lower: Any, us: Array) -> list[list[Any]]:
    """The columns of M̂ S L⁻ᵀ."""
    columns: list[list[Any]] = []
    for k in range(us.shape[1]):
        y = list(us[:, k])
        for j in range(k):
            y = [a - lower[k][j] * b for a, b in zip(y, columns[j], strict=True)]
        columns.append(y)
    return columns


def _strictly_lower(lower: Any) -> Array:
    return np.array([lower[i][j] for i in range(len(lower)) for j in range(i)])


def unpack_lower(packed: Array, n: int) -> list[list[Any]]:
    lower: list[list[Any]] = [[0.0] * n for _ in range(n)]
    at = 0
    for i in range(n):
        for j in range(i):
            lower[i][j] = packed[at]
            at += 1
    return lower
