"""The mass matrix by composite rigid bodies, and forward dynamics by it.

inward:  (m, h, I) of a link includes that of its children;  F = M S
    walk:    M_ii = Sᵀ F;  for each ancestor j: F = Cᵀ F,  M_ij = S_jᵀ F

Featherstone (2008), table 6.2.

Iwamura and Schiehlen, eqs 1, 2 and 22. M comes from composite rigid bodies, k from Newton and Euler's equations
with a = 0, and M = LᵀDL fills in nowhere, so that a tree of small depth costs O(N · depth²). Memory: (nv, nv) numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.dynamics.methods import newton_euler
from linkwright.dynamics.traversals.traversal import Link, State, Traversal
from linkwright.spatial.algebra import Array

BELOW = {"composite": (10,)}


def mass_matrix(traversal: Traversal) -> Any:
    """M (nv, nv) for the traversal's q."""
    traversal.outward(configurations, {})
    return of_configurations(traversal)


def of_configurations(traversal: Traversal) -> Any:
    """`mass_matrix` of links whose terms are known."""
    traversal.inward(compose, BELOW)
    return traversal.walk(diagonal, across)


def configurations(link: Link, state: State, up: State) -> dict[str, Array]:
    return {"terms": link.terms()}


def compose(link: Link, state: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
    """The composite inertia of the link and all that it carries."""
    composite = link.composite() + below["composite"]
    terms = state["terms"]
    s = link.subspace(terms)
    columns = [link.composite_times(composite, s[:, k]) for k in range(link.kind.nv)]
    left = {"force": np.stack(columns, axis=1)} if columns else {}
    if link.parent_is_ground:
        return left, {}
    return left, {"composite": link.composite_inward(terms, composite)}


def diagonal(link: Link, state: State) -> tuple[Array, Array]:
    """M_ii, and the wrenches F of the link's accelerations, seen from its parent."""
    terms, nv = state["terms"], link.kind.nv
    if not nv:
        return np.zeros((0, 0)), np.zeros((6, 0))
    columns = [state["force"][:, k] for k in range(nv)]
    block = np.stack([link.project(terms, f) for f in columns], axis=1)
    if link.geared:
        block = block + link.armature * np.eye(nv)
    x = link.transform(terms)
    return block, np.stack([x.inward(f) for f in columns], axis=1)


def across(link: Link, state: State, carry: Array) -> tuple[Array, Array]:
    """M_ij for the ancestor `link`, and F seen from its parent."""
    terms, x = state["terms"], link.transform(state["terms"])
    columns = [carry[:, k] for k in range(carry.shape[1])]
    if not columns:
        return np.zeros((0, link.kind.nv)), carry
    block = np.stack([link.project(terms, f) for f in columns], axis=0) if link.kind.nv else np.zeros((len(columns), 0))
    return block, np.stack([x.inward(f) for f in columns], axis=1)


def forward_dynamics(traversal: Traversal, gravity: Array, *, wrenches: bool = False) -> Any:
    """Joint accelerations for the traversal's q, v, tau; its a is zero."""
    newton_euler.joint_forces(traversal, gravity, wrenches=wrenches)
    m = of_configurations(traversal)
    traversal.outward(driving, {})
    return traversal.solve(m, traversal.joint_vector("driving"))


def driving(link: Link, state: State, up: State) -> dict[str, Array]:
    """τ − k."""
    return {"driving": link.tau - state["tau"]} if link.kind.nv else {}
