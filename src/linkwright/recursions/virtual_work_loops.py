r"""Forward dynamics by virtual work with closed loops: the loops' constraint forces on top of the spanning tree's.

The wrenches Q n of a joint that closes a loop go inward as columns P of right-hand sides: in the notation of
`virtual_work`, P' = W Φ P = P − Lᵀ u with u = Sᵀ P. With the mobilities E = L Φ T of the tree's joints, the
constraints of the loops k, l are

    Σ_l K_kl n_l = r_k,  K_kl = Σ u_kᵀ E u_l,  r_k = Q_kᵀ c_k − Σ P_kᵀ (β + S a⁰),  a⁰ = −L (β − Φ p),

sums over links; what reaches ground meets the acceleration of ground. K is semidefinite: planar loops repeat their
constraints. Its blocks are eliminated one loop at a time by generalised inverses, and E Σ u_k n_k adds to each
joint's a, which is unique where n is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.recursions import virtual_work
from linkwright.recursions.articulated_body import BELOW, velocities
from linkwright.recursions.closure import Handle, Junction, closures
from linkwright.recursions.traversal import Unrolled
from linkwright.spatial.algebra import Array
from linkwright.spatial.definite import generalised_inverse
from linkwright.tape.functions import maximum

#: K's diagonal is a sum of squares: below this part of the handles' mobility (1e-20 with the rank tolerance) it is
#: rounding alone.
NOISE = 1e-10


def forward_dynamics(
    traversal: Unrolled, gravity: Array, parameters: Mapping[str, Any], *, wrenches: bool = False
) -> Array:
    """Joint accelerations of a mechanism whose q and v close its loops, otherwise as in `virtual_work`."""
    ground = np.concatenate([-gravity, np.zeros(3)])
    traversal.outward(velocities, {"w": np.zeros(6)})
    traversal.inward(virtual_work.inward_with_wrenches if wrenches else virtual_work.eliminate, BELOW)
    push(traversal, [_columns(traversal, c, ground) for c in closures(traversal, parameters)])
    traversal.outward(virtual_work.accelerations, {"b": ground})
    return traversal.joint_vector("acceleration")


@dataclass(frozen=True)
class Loop:
    """One loop's equations: u by position, r, and the mobility of its handles with their links' joints let go."""

    u: Mapping[int, Array]
    right: Array
    scale: Array


def _columns(traversal: Unrolled, closure: Junction, ground: Array) -> Loop:
    """Take a loop's wrenches inward."""
    q, sides = closure.q, (closure.child, closure.parent)
    p: dict[int, Array] = {i: np.zeros(q.shape) for i in (-1, *_above(traversal, sides))}
    scale = np.zeros(q.shape[1])
    for handle, sign in zip(sides, (1.0, -1.0), strict=True):
        held = handle.inward_columns(sign * q)
        p[handle.position] = p[handle.position] + held
        if handle.position >= 0:
            phi = traversal.rows[handle.position]["phi"]
            scale = scale + np.array([x @ phi @ x for x in held.T])
    u: dict[int, Array] = {}
    right = q.T @ closure.bias
    for i in _above(traversal, sides):
        link, row = traversal.links[i], traversal.rows[i]
        terms, passed = row["terms"], p[i]
        right = right - passed.T @ row["beta"]
        if link.kind.nv:
            u[i] = link.subspace(terms).T @ passed
            right = right - u[i].T @ (row["l"] @ (row["free"] - row["beta"]))
            passed = passed - row["l"].T @ u[i]
        above = traversal.parent[i]
        p[above] = p[above] + link.transform(terms).inward_columns(passed)
    return Loop(u, right - p[-1].T @ ground, scale)


def _above(traversal: Unrolled, handles: Sequence[Handle]) -> list[int]:
    """The links of the handles and those that carry them, from the tips inward."""
    found = {h.position for h in handles} - {-1}
    for i in tuple(found):
        found.update(traversal.ancestors(i))
    return sorted(found, reverse=True)


def push(traversal: Unrolled, loops: Sequence[Loop]) -> None:
    """Solve for the loops' forces; leave what they add to each joint's acceleration."""
    mobility: dict[int, Array] = {}
    for i in sorted({i for loop in loops for i in loop.u}):
        row = traversal.rows[i]
        mobility[i] = row["l"] @ row["phi"] @ traversal.links[i].dual(row["terms"])

    def block(a: Loop, b: Loop) -> Array:
        total = np.zeros((len(a.right), len(b.right)))
        for i in sorted(a.u.keys() & b.u.keys()):
            total = total + a.u[i].T @ mobility[i] @ b.u[i]
        return total

    count = range(len(loops))
    upper = {(a, b): block(loops[a], loops[b]) for a in count for b in count if a <= b}
    k = [[upper[a, b] if a <= b else upper[b, a].T for b in count] for a in count]
    scales = [maximum(np.diagonal(k[a][a]), NOISE * loops[a].scale) for a in count]
    n = solve_blocks(k, [loop.right for loop in loops], scales)
    for i, e in mobility.items():
        force = sum(loop.u[i] @ x for loop, x in zip(loops, n, strict=True) if i in loop.u)
        traversal.rows[i]["push"] = e @ force


def solve_blocks(k: list[list[Array]], right: Sequence[Array], scales: Sequence[Array]) -> list[Array]:
    """A solution of the symmetric semidefinite K n = r: elimination block by block, refined once."""
    count = len(k)
    left, inverses = [list(row) for row in k], []
    for a in range(count):
        inverses.append(generalised_inverse(left[a][a], scales[a]))
        for b in range(a + 1, count):
            share = left[b][a] @ inverses[a]
            for c in range(a + 1, count):
                left[b][c] = left[b][c] - share @ left[a][c]

    def solve(r: Sequence[Array]) -> list[Array]:
        x = list(r)
        for a in range(count):
            for b in range(a + 1, count):
                x[b] = x[b] - left[b][a] @ (inverses[a] @ x[a])
        for a in reversed(range(count)):
            x[a] = inverses[a] @ (x[a] - sum(left[a][b] @ x[b] for b in range(a + 1, count)))
        return x

    n = solve(right)
    rest = [r - sum(block @ x for block, x in zip(row, n, strict=True)) for r, row in zip(right, k, strict=True)]
    return [x + dx for x, dx in zip(n, solve(rest), strict=True)]
