r"""Forward dynamics by articulated-body inertias, O(N).

With twists in link axes, b = ẇ (gravity as the acceleration of ground) and per link the motion subspace S,
the bias β = w × (S v) + Ṡ v and the wrench h = w ×* (M w) − (applied):

    inward:   D = Sᵀ M̂ S,  u = τ − Sᵀ ĥ,  M' = M̂ − M̂ S D⁻¹ Sᵀ M̂,  ĥ' = ĥ + M' β + M̂ S D⁻¹ u
    outward:  b' = C b + β,  a = D⁻¹ (u − Sᵀ M̂ b'),  b = b' + S a

where M̂ and ĥ of a link include M' and ĥ' of its children, moved by C. Featherstone (2008), table 7.1; in the
notation of Iwamura and Schiehlen, M' = U M̂.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linkwright.dynamics.traversals.traversal import InwardStep, Link, OutwardStep, State, Traversal
from linkwright.spatial.algebra import (
    Array,
    force_cross,
    ground_acceleration,
    ldl,
    ldl_solve,
)
from linkwright.spatial.rotation import ArticulatedInertia

BELOW = {"m": (6,), "h": (3, 3), "a": (6,), "f": (6,)}


def forward_dynamics(traversal: Traversal, gravity: Array, *, wrenches: bool = False) -> Any:
    """Joint accelerations for the traversal's q, v, tau (and wrenches on the links, in link axes)."""
    return three_passes(traversal, gravity, articulate, accelerations, wrenches=wrenches)


def three_passes(
    traversal: Traversal, gravity: Array, inward: InwardStep, outward: OutwardStep, *, wrenches: bool = False
) -> Any:
    """Velocities outward, a step that eliminates joints inward, and accelerations outward."""
    eliminate(traversal, inward, wrenches=wrenches)
    traversal.outward(outward, {"b": ground_acceleration(gravity)})
    return traversal.joint_vector("acceleration")


def eliminate(traversal: Traversal, step: InwardStep, *, wrenches: bool = False) -> None:
    """The first two passes; wrenches applied to links are taken off the force in the state that the step sees."""

    def pushed(link: Link, state: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
        return step(link, {**state, "force": state["force"] - link.wrench}, below)

    traversal.outward(velocities, {"w": np.zeros(6)})
    traversal.inward(pushed if wrenches else step, BELOW)


def velocities(link: Link, state: State, up: State) -> dict[str, Array]:
    """Twist, bias and the wrench of the velocities."""
    terms = link.terms()
    w, beta = link.moving(terms, up["w"])
    return {"terms": terms, "w": w, "beta": beta, "force": force_cross(w, link.momentum(w))}


def articulate(link: Link, state: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
    """Articulated inertia and force of the link; what is left of them at the parent."""
    terms = state["terms"]
    mhat = link.rigid_inertia() + ArticulatedInertia.of(below)
    hhat = state["force"] + below["f"]
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
    if link.parent_is_ground:
        return left, {}
    if kind.selects is not None and kind.nv == 6 and not link.geared:
        # Nothing but the joint force passes.
        force = link.transform(terms).inward(tau)
        return left, {"m": np.zeros(6), "h": np.zeros((3, 3)), "a": np.zeros(6), "f": force}
    # M̂ S D⁻¹ Sᵀ M̂ = Σ y yᵀ / d over the columns y of M̂ S L⁻ᵀ.
    columns = _forward_columns(lower, us)
    free = () if kind.selects is None or link.geared else kind.selects
    held = [k for k in range(6) if k not in free]
    passing: list[list[Any]] = [[0.0 * full[0, 0]] * 6 for _ in range(6)]
    for i in held:
        for j in held:
            if j >= i:
                entry = full[i, j]
                for y, pivot in zip(columns, inverse, strict=True):
                    entry = entry - (y[i] * pivot) * y[j]
                passing[i][j] = passing[j][i] = entry
    mprime = ArticulatedInertia.from_dense(np.array(passing))
    passed = hhat + mprime.times(state["beta"]) + us @ ldl_solve(lower, inverse, u) if kind.nv else hhat
    return left, passed_on(link, terms, mprime, passed)


def passed_on(link: Link, terms: Array, inertia: ArticulatedInertia, force: Array) -> dict[str, Array]:
    """What the parent of a link gets of an inertia and a force at the link; ground gets nothing."""
    if link.parent_is_ground:
        return {}
    x = link.transform(terms)
    return {**x.inertia(inertia).fields, "f": x.inward(force)}


def accelerations(link: Link, state: State, up: State) -> dict[str, Array]:
    """Joint acceleration and the link's b."""

    def acceleration(b: Array) -> Array:
        lower = unpack_lower(state["lower"], link.kind.nv)
        return ldl_solve(lower, list(state["pivots"]), state["u"] - state["us"].T @ b)

    return accelerated(link, state, up, acceleration)


def accelerated(link: Link, state: State, up: State, acceleration: Callable[[Array], Array]) -> dict[str, Array]:
    """b of the link, and its joint's acceleration as a function of b without it."""
    terms = state["terms"]
    b = link.transform(terms).outward(up["b"]) + state["beta"]
    if not link.kind.nv:
        return {"b": b}
    a = acceleration(b)
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
