r"""The mass matrix by composite rigid bodies, O(N · depth).

    inward:  (m, h, I) of a link includes that of its children;  F = M S
    walk:    M_ii = Sᵀ F;  for each ancestor j: F = Cᵀ F,  M_ij = S_jᵀ F

Featherstone (2008), table 6.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.recursions.link import Link, State
from linkwright.recursions.traversal import Unrolled
from linkwright.spatial.algebra import Array, inertia_times

BELOW = {"mass": (1,), "moment": (3,), "inertia": (6,)}


def mass_matrix(traversal: Unrolled) -> Any:
    """M (nv, nv) for the traversal's q."""
    traversal.outward(configurations, {})
    traversal.inward(compose, BELOW)
    x = traversal.coordinates
    m: list[list[Any]] = [[0.0] * x.nv for _ in range(x.nv)]

    def put(i: int, j: int, block: Array) -> None:
        scale = (x.ratio[i] if x.follows[i] else 1.0) * (x.ratio[j] if x.follows[j] else 1.0)
        for k, row in enumerate(block):
            for n, value in enumerate(row):
                r, c = int(x.v_at[i]) + k, int(x.v_at[j]) + n
                entry = value * float(scale)
                m[r][c] = m[r][c] + entry
                if i != j:
                    m[c][r] = m[c][r] + entry

    for i, (link, own) in enumerate(zip(traversal.links, traversal.rows, strict=True)):
        terms, nv = own["terms"], link.kind.nv
        columns = [own["f"][:, k] for k in range(nv)]
        if not nv:
            continue
        block = np.stack([link.project(terms, f) for f in columns], axis=1)
        armature = link.armature
        if not (isinstance(armature, float) and armature == 0.0):
            block = block + armature * np.eye(nv)
        put(i, i, block)
        at = i
        for j in traversal.ancestors(i):
            step = traversal.links[at].transform(traversal.rows[at]["terms"])
            columns = [step.inward(f) for f in columns]
            other = traversal.links[j]
            if other.kind.nv:
                put(i, j, np.stack([other.project(traversal.rows[j]["terms"], f) for f in columns], axis=0))
            at = j
    return np.array(m)


def configurations(link: Link, own: State, up: State) -> dict[str, Array]:
    return {"terms": link.terms()}


def compose(link: Link, own: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
    """The composite inertia of the link and all that it carries."""
    mass = link.mass + below["mass"][0]
    moment = link.moment + below["moment"]
    inertia = np.asarray(link.inertia) + below["inertia"]
    terms = own["terms"]
    s = link.subspace(terms)
    columns = [inertia_times(mass, moment, inertia, s[:, k]) for k in range(link.kind.nv)]
    left = {"f": np.stack(columns, axis=1)} if columns else {}
    if link.grounded:
        return left, {}
    m, h, i = link.transform(terms).rigid(mass, moment, inertia)
    return left, {"mass": np.array([m]), "moment": h, "inertia": i}
