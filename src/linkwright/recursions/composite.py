r"""The mass matrix by composite rigid bodies, O(N · depth).

    inward:  (m, h, I) of a link includes that of its children;  F = M S
    walk:    M_ii = Sᵀ F;  for each ancestor j: F = Cᵀ F,  M_ij = S_jᵀ F

Featherstone (2008), table 6.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.recursions.link import Link, State
from linkwright.recursions.traversal import Traversal
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
