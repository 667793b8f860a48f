"""Forward dynamics with loop constraints: their multipliers on top of the spanning tree, by systems of small
semidefinite blocks.

The wrenches of a constraint's multipliers go inward as columns P of right-hand sides. With a tree joint's D = Sᵀ M̂ S,
mobility E = D⁻¹ and L = D⁻¹ Sᵀ M̂ (articulated bodies), or L and E = L Φ T of `virtual_work`, which are the same,

    u = Sᵀ P + (the joint's own row),   P' = P − Lᵀ u,   K_kl = Σ u_kᵀ E u_l = G_k M⁻¹ G_lᵀ,
    r_k = bias_k − Σ (P_kᵀ β + u_kᵀ a⁰) − (what reaches ground)ᵀ (the acceleration of ground),   K λ = r

sums over links, a⁰ a joint's acceleration with its parent held. K is semidefinite: planar loops repeat their
constraints. Its blocks are eliminated one constraint at a time by generalised inverses, and E Σ u_k λ_k adds to each
joint's a, which is unique where λ is not. Trees whose joints share coordinates take G and M as matrices instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from linkwright.constraints.elimination import order
from linkwright.constraints.newton import GAPS
from linkwright.dynamics.closed.loop_constraints import ConstraintAtState, Handle
from linkwright.dynamics.closed.redundancy import Blocks
from linkwright.dynamics.methods import articulated_body, newton_euler, virtual_work
from linkwright.dynamics.methods.ltdl_factor import Factor, factorise
from linkwright.dynamics.methods.mass_matrix import driving, of_configurations
from linkwright.dynamics.traversals.traversal import Unrolled, add_to
from linkwright.model.tree import record_slices
from linkwright.spatial.algebra import (
    RANK_TOLERANCE,
    Array,
    LeastSquares,
    Limit,
    ground_acceleration,
    is_zero,
    ldl_solve,
    swept,
)
from linkwright.tape.block import maximum, minimum

Pair = tuple[int, int]


@dataclass(frozen=True)
class Scales:
    """How large the pivots of a block are: beside `references` they are zero or not, beside `sizes` they are chosen."""

    references: Array
    sizes: Array


@dataclass(frozen=True)
class Limits:
    """The part of its reference up to which a pivot counts as zero."""

    regular: Any  # among as many as are independent at regular positions
    beyond: Any


class Elimination:
    """K by its blocks on and above the diagonal, eliminated one by one, those with the fewest neighbours first.

    A block that is not there is zero. Blocks whose equations are independent are eliminated in their order; where some
    repeat others, pivots are chosen by size when the code runs, and what they leave of contradictions is least squares.
    """

    def __init__(self, k: Mapping[Pair, Array], scales: Sequence[Scales], limits: Limits, blocks: Blocks) -> None:
        self.k, self.scales, self.limits, self.blocks = k, scales, limits, blocks
        self.left: dict[Pair, Array] = dict(k)
        self.inverses: dict[int, Inverse] = {}
        self.least: Any = 1.0  # the least pivot of those that are independent at regular positions, as part of its size
        count = range(len(scales))
        near = [{b for b in count if a != b and ((a, b) in k or (b, a) in k)} for a in count]
        self.order, left_behind = order(near)
        self.behind = dict(zip(self.order, left_behind, strict=True))  # the neighbours that were left when each went
        for number, a in enumerate(self.order):
            self._eliminate(a, self.behind[a], self.order[:number])

    def _block(self, a: int, b: int) -> Array | None:
        if (a, b) in self.left:
            return self.left[a, b]
        return self.left[b, a].T if (b, a) in self.left else None

    def _eliminate(self, a: int, neighbours: list[int], before: Sequence[int]) -> None:
        pivot_block = self._block(a, a)
        rank = self.blocks.rank(a, before)
        if pivot_block is None:  # nothing gives way: what it asks is left out
            self.behind[a] = []
            return
        inverse = self.inverses[a] = inverse_of(pivot_block, self.scales[a], self.limits, rank, self.blocks.most(a))
        self.least = minimum(self.least, inverse.least)
        beside = {b: x for b in neighbours if (x := self._block(a, b)) is not None}
        for b in neighbours:
            share = inverse.solve(beside[b]).T
            for c in neighbours:
                if b <= c:
                    less = share @ beside[c]
                    block = self.left.get((b, c))
                    self.left[b, c] = -less if block is None else block - less

    def solve(self, right: Sequence[Array]) -> list[Array]:
        """A solution n of K n = r, refined once."""
        n, residual = self._once(right), list(right)
        for (a, b), block in self.k.items():
            residual[a] = residual[a] - block @ n[b]
            if a != b:
                residual[b] = residual[b] - block.T @ n[a]
        return [x + dx for x, dx in zip(n, self._once(residual), strict=True)]

    def _once(self, right: Sequence[Array]) -> list[Array]:
        x = list(right)
        for a in self.order:
            for b in self.behind[a]:
                block = self._block(b, a)
                assert block is not None
                x[b] = x[b] - block @ self.inverses[a].solve(x[a])
        for a in reversed(self.order):
            if a not in self.inverses:
                x[a] = 0.0 * x[a]
                continue
            for b in self.behind[a]:
                block = self._block(a, b)
                assert block is not None
                x[a] = x[a] - block @ x[b]
            x[a] = self.inverses[a].solve(x[a])
        return x


@dataclass(frozen=True)
class Inverse:
    """A generalised inverse of a block, and its least pivot that should not be zero, as a part of its row's size."""

    solve: Callable[[Array], Array]
    least: Any


def inverse_of(d: Array, scales: Scales, limits: Limits, rank: int | None, most: int) -> Inverse:
    """Of a block of which `rank` equations are independent at regular positions, and at most `most` anywhere."""
    rows = [k for k in range(len(d)) if not is_zero(d[k][k])]
    if rank is not None and rank >= len(rows):
        g, pivots = swept(d, scales.references, limits.regular)
        return Inverse(lambda x: g @ x, reduce(minimum, [pivots[k] / scales.sizes[k] for k in rows], 1.0))
    steps = [Limit(limits.regular, scales.references)] * (rank or 0)
    # A row that is nearly zero for a moment is not independent for being large beside itself.
    rare = scales.references if rank is None else scales.sizes
    steps += [Limit(limits.beyond, rare)] * (min(len(rows), most) - len(steps))
    factors = LeastSquares(d, scales.sizes, steps)
    return Inverse(factors.solve, factors.least(rank or 0))


#: K's diagonal is a sum of squares: below this part of the ends' mobility (1e-20 with the rank tolerance) it is
#: rounding alone.
NOISE = 1e-10
#: Equations that repeat each other where loops are closed do not quite where these are open by some part of the
#: mechanism's size: a pivot below the square of so many times that part counts as zero, but none above the second. Of
#: equations that are independent at regular positions, those are zero that are lost in rounding or in that part.
OPEN, MOST, ROUNDING = 10.0, 1e-4, 1e-14
Closed = tuple[Array, list[Array]]  # joint accelerations, and the multipliers of each constraint
ConstraintsAt = Callable[[Unrolled], list[ConstraintAtState]]


def articulated(
    traversal: Unrolled, gravity: Array, constraints_at: ConstraintsAt, blocks: Blocks, *, wrenches: bool = False
) -> Closed:
    """By articulated bodies; `constraints` are asked for when the links' terms and twists are known."""
    ground = ground_acceleration(gravity)
    articulated_body.eliminate(traversal, articulated_body.articulate, wrenches=wrenches)

    def joint(i: int) -> Joint:
        row, nv = traversal.rows[i], traversal.links[i].kind.nv
        lower, pivots = articulated_body.unpack_lower(row["lower"], nv), list(row["pivots"])
        solved = [ldl_solve(lower, pivots, column) for column in (*row["us"], *np.eye(nv), row["u"])]
        gain, e = np.stack(solved[:6], axis=1), np.stack(solved[6:-1], axis=1)
        return Joint(gain, e, solved[-1] - gain @ row["beta"])

    space = Space(traversal, constraints_at(traversal), blocks, ground, joint)
    for i, force in space.forces().items():
        traversal.rows[i]["u"] = traversal.rows[i]["u"] + force
    traversal.outward(articulated_body.accelerations, {"b": ground})
    return traversal.joint_vector("acceleration"), space.multipliers


def by_virtual_work(
    traversal: Unrolled, gravity: Array, constraints_at: ConstraintsAt, blocks: Blocks, *, wrenches: bool = False
) -> Closed:
    """By the joints' constraint forces."""
    ground = ground_acceleration(gravity)
    articulated_body.eliminate(traversal, virtual_work.eliminate, wrenches=wrenches)

    def joint(i: int) -> Joint:
        row = traversal.rows[i]
        e = row["l"] @ row["phi"] @ traversal.links[i].dual(row["terms"])
        return Joint(row["l"], e, row["l"] @ (row["free"] - row["beta"]))

    space = Space(traversal, constraints_at(traversal), blocks, ground, joint)
    for i, force in space.forces().items():
        traversal.rows[i]["push"] = space.joints[i].e @ force
    traversal.outward(virtual_work.accelerations, {"b": ground})
    return traversal.joint_vector("acceleration"), space.multipliers


@dataclass(frozen=True)
class Joint:
    """L, E and a⁰ of a tree joint."""

    gain: Array
    e: Array
    acceleration: Array


@dataclass(frozen=True)
class Columns:
    """One constraint's equations: u by position, and r."""

    u: Mapping[int, Array]
    right: Array


class Space:
    """The constraint space of a tree: K and r of its constraints, solved."""

    def __init__(
        self,
        traversal: Unrolled,
        constraints: Sequence[ConstraintAtState],
        blocks: Blocks,
        ground: Array,
        joint: Callable[[int], Joint],
    ) -> None:
        self.traversal, self.ground = traversal, ground
        self.joints: dict[int, Joint] = {}
        for i in sorted({i for constraint in constraints for i in _carrying(traversal, constraint)}):
            if traversal.links[i].kind.nv:
                self.joints[i] = joint(i)
        self.columns = [self._columns(constraint) for constraint in constraints]
        k: dict[tuple[int, int], Array] = {}
        for a, one in enumerate(self.columns):
            for b in range(a, len(constraints)):
                terms = self._block(one, self.columns[b])
                if terms:
                    k[a, b] = sum(terms[1:], terms[0])
        self.multipliers = elimination(traversal, constraints, k, blocks).solve([c.right for c in self.columns])

    def _columns(self, constraint: ConstraintAtState) -> Columns:
        """Take a constraint's wrenches inward."""
        traversal, m = self.traversal, constraint.size
        p: dict[int, Array] = {}
        for handle, columns in constraint.ends:
            add_to(p, handle.position, handle.inward_columns(columns))
        direct = rows_of(traversal, constraint)
        u: dict[int, Array] = {}
        right = constraint.bias
        for i in _carrying(traversal, constraint):
            link, row = traversal.links[i], traversal.rows[i]
            terms, passed = row["terms"], p.get(i)
            if passed is not None:
                right = right - passed.T @ row["beta"]
            if link.kind.nv:
                along = np.zeros((link.kind.nv, m)) if passed is None else link.subspace(terms).T @ passed
                u[i] = along + direct[i] if i in direct else along
                right = right - u[i].T @ self.joints[i].acceleration
                less = self.joints[i].gain.T @ u[i]
                passed = -less if passed is None else passed - less
            if passed is not None:
                add_to(p, traversal.parent[i], link.transform(terms).inward_columns(passed))
        return Columns(u, right - p[-1].T @ self.ground if -1 in p else right)

    def _block(self, one: Columns, other: Columns) -> list[Array]:
        """The terms of a block of K; none where the two have no link in common."""
        return [one.u[i].T @ self.joints[i].e @ other.u[i] for i in sorted(one.u.keys() & other.u.keys())]

    def forces(self) -> dict[int, Array]:
        """Σ u λ at each joint."""
        forces: dict[int, Array] = {}
        for columns, x in zip(self.columns, self.multipliers, strict=True):
            for i, u in columns.u.items():
                add_to(forces, i, u @ x)
        return forces


def by_mass_matrix(
    traversal: Unrolled, gravity: Array, constraints_at: ConstraintsAt, blocks: Blocks, *, wrenches: bool = False
) -> Closed:
    """By M, G and K = G M⁻¹ Gᵀ as matrices; the traversal's a is zero. Joints may share coordinates."""
    newton_euler.joint_forces(traversal, gravity, wrenches=wrenches)
    factor = factorise(of_configurations(traversal))
    traversal.outward(driving, {})
    free = np.array(factor.solve(list(traversal.joint_vector("driving"))))
    constraints = constraints_at(traversal)
    g = [gradient(traversal, constraint) for constraint in constraints]
    response, factors = responses(traversal, constraints, g, factor, blocks)
    right = []
    for constraint, rows in zip(constraints, g, strict=True):
        r = constraint.bias - rows @ free
        for handle, columns in constraint.ends:
            b = traversal.rows[handle.position]["b"] if handle.position >= 0 else traversal.ground["b"]
            r = r - columns.T @ handle.outward(b)
        right.append(r)
    n = factors.solve(right)
    return sum((rows.T @ x for rows, x in zip(response, n, strict=True)), free), n


def responses(
    traversal: Unrolled, constraints: Sequence[ConstraintAtState], g: Sequence[Array], factor: Factor, blocks: Blocks
) -> tuple[list[Array], Elimination]:
    """G M⁻¹ of each constraint, by G and the factors of M, and K = G M⁻¹ Gᵀ of all of them eliminated."""
    response = [np.array([factor.solve(list(row)) for row in rows]).reshape(rows.shape) for rows in g]
    count = range(len(constraints))
    k = {(a, b): g[a] @ response[b].T for a in count for b in count if a <= b}
    return response, elimination(traversal, constraints, k, blocks)


def gradient(traversal: Unrolled, constraint: ConstraintAtState) -> Array:
    """G (m, nv) of one constraint."""
    x = traversal.coordinates
    p, direct = carried(traversal, constraint.ends), rows_of(traversal, constraint)
    g: list[Any] = [np.zeros(constraint.size)] * x.nv
    for i in _carrying(traversal, constraint):
        link, terms = traversal.links[i], traversal.rows[i]["terms"]
        shares = [link.subspace(terms).T @ p[i]] if i in p else []
        shares += [direct[i]] if i in direct else []
        ratio = float(x.ratio[i])
        for k in range(link.kind.nv):
            at = int(x.v_at[i]) + k
            g[at] = sum((ratio * share[k] for share in shares), g[at])
    return np.stack(g, axis=1) if g else np.zeros((constraint.size, 0))


def carried(traversal: Unrolled, ends: Iterable[tuple[Handle, Array]]) -> dict[int, Array]:
    """Wrenches, in columns at some handles, taken inward: what each link's joint gets of them, at the link frame."""
    p: dict[int, Array] = {}
    for handle, columns in ends:
        add_to(p, handle.position, handle.inward_columns(columns))
    for i in sorted({i for end in p for i in traversal.tree.topology.path(end)}, reverse=True):
        x = traversal.links[i].transform(traversal.rows[i]["terms"])
        add_to(p, traversal.parent[i], x.inward_columns(p[i]))
    return p


def elimination(
    traversal: Unrolled, constraints: Sequence[ConstraintAtState], k: dict[tuple[int, int], Array], blocks: Blocks
) -> Elimination:
    """What solves K λ = r, by K's upper blocks."""
    scales = []
    for a, constraint in enumerate(constraints):
        diagonal = np.diagonal(k[a, a]) if (a, a) in k else np.zeros(constraint.size)
        loose = _looseness(traversal, constraint)
        sizes = [x if is_zero(y) else y for x, y in zip(diagonal, loose, strict=True)]
        scales.append(Scales(maximum(diagonal, NOISE * loose), np.array(sizes)))
    return Elimination(k, scales, limits(constraints, blocks), blocks)


def limits(constraints: Sequence[ConstraintAtState], blocks: Blocks) -> Limits:
    """Which pivots count as zero, where loops are open by what the constraints miss."""
    miss = sum(constraint.miss for constraint in constraints)
    rounded = min((GAPS * blocks.ranks.gap) ** 2, MOST)
    beyond = maximum(max(RANK_TOLERANCE, rounded), minimum(OPEN**2 * miss, MOST))
    regular = maximum(ROUNDING, minimum(miss, MOST)) if blocks.certain else beyond
    return Limits(regular, beyond)


def rows_of(traversal: Unrolled, constraint: ConstraintAtState) -> dict[int, Array]:
    """What a constraint asks of joints' own coordinates: (nv, m) by position."""
    rows: dict[int, Array] = {}
    for d in constraint.direct:
        unit = np.eye(traversal.links[d.position].kind.nv)[d.index]
        add_to(rows, d.position, np.outer(unit, d.row))
    return rows


def _looseness(traversal: Unrolled, constraint: ConstraintAtState) -> Array:
    """About how freely each equation would give way if its ends' bodies were free: a scale, of the model's numbers."""
    total = np.zeros(constraint.size)
    for handle, columns in constraint.ends:
        if handle.position >= 0:
            held = handle.inward_columns(columns)
            total = total + (1.0 / _inertias(traversal, handle.position)) @ (held * held)
    return total


def _inertias(traversal: Unrolled, i: int) -> Array:
    """Mass (three times) and moments of inertia of a link; the mechanism's largest where it has none."""
    tree, at = traversal.tree, record_slices()
    columns = [at["mass"].start] * 3 + list(range(at["inertia"].start, at["inertia"].start + 3))
    inertias: Array = tree.rows(i)[columns]
    if (inertias > 0.0).all():
        return inertias
    every = tree.rows(np.arange(tree.n))[:, columns].max(axis=0)
    most = np.repeat([every[:3].max() or 1.0, every[3:].max() or 1.0], 3)
    return np.where(inertias > 0.0, inertias, most)


def _carrying(traversal: Unrolled, constraint: ConstraintAtState) -> list[int]:
    """The links that a constraint acts on and those that carry them, from the tips inward."""
    ends = {handle.position for handle, _ in constraint.ends} | {d.position for d in constraint.direct}
    return sorted({i for end in ends for i in traversal.tree.topology.path(end)}, reverse=True)
