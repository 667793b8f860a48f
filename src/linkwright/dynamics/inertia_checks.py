r"""Which joint's acceleration do forces not determine? A check of a tree's inertias before a recursion divides by them.

A joint is undetermined if some motion along its freedom meets no inertia, its children's joints giving way. With N the
twists that the links carried by a link do not resist,

    N_i = null(M_i) ∩ ⋂ C_c⁻¹ (span J_c + N_c) over the children c,      undetermined:  N_i ∩ span J_i ≠ 0

(an armature resists: its J_c is left out). It is computed at one arbitrary configuration, and only where a body has no
inertia in some direction: a body that has resists everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.dynamics.traversals.traversal import Link, SingularLink, Unrolled
from linkwright.model.joint_kinds import KIND_LIST
from linkwright.model.placements import full_inertia, has_whole_inertia, placement_rotation
from linkwright.model.tree import Tree, record_slices
from linkwright.model.tree_contraction import Contraction, contract
from linkwright.spatial.algebra import skew
from linkwright.spatial.rotation import Chain, Transform

NONE = 1e-12  # the part of a link's inertia that counts as none
ANGLE = 1e-9  # between directions that count as the same


def undetermined(tree: Tree) -> int | None:
    """The position of a joint whose acceleration forces do not determine, as near the tips as there is one."""
    hollow = _hollow(tree)
    if not len(hollow):
        return None
    x = tree.coordinates
    free = _free(tree)
    asked = set(_weak(tree, hollow[free[hollow]]).tolist())
    wanted: set[int] = set()
    for i in hollow.tolist() if asked else ():
        if i in asked or int(tree.parent[i]) in wanted:
            wanted.add(i)
    children: dict[int, list[int]] = {i: [] for i in wanted}
    for c in np.flatnonzero(np.isin(tree.parent, list(wanted))).tolist():
        children[int(tree.parent[c])].append(c)
    near = sorted(wanted.union(*children.values()))
    rng = np.random.default_rng(0)
    q = np.zeros(x.nq)
    for i in near:
        kind, at = tree.kinds[i], int(x.q_at[i])
        q[at : at + kind.nq] = kind.integrate(kind.neutral(), rng.uniform(0.3, 1.0, kind.nv))
    links = Unrolled(tree, {"q": q}, only=near).links
    loose: dict[int, Floats] = {}
    for i in sorted(wanted, reverse=True):
        n = _null(_inertias(tree, np.array([i]))[0])
        for c in children[i]:
            freedom = _subspace(links[c]) if free[c] else np.zeros((6, 0))
            gives = np.concatenate([freedom, loose.get(c, np.zeros((6, 0)))], axis=1)
            x_c = links[c].transform(links[c].terms())
            moved = [x_c.inward_twist(gives[:, k]) for k in range(gives.shape[1])]
            n = _meet(n, np.array(moved, dtype=float).reshape(-1, 6).T)
        loose[i] = n
        if i in asked and _meet(n, _subspace(links[i])).shape[1]:
            return i
    return None


def contraction(tree: Tree) -> Contraction:
    """The contraction of a tree in which no joint is passed before a link is there that resists its freedom.

    Raises `SingularLink` for a link that does not resist its joint's freedom where the path branches right below it.
    """
    positions = _hollow(tree)
    weak_positions = _weak(tree, positions[_free(tree)[positions]]) if len(positions) else positions
    if not len(weak_positions):
        return contract(tree.parent)
    hollow, weak = np.zeros(tree.n, bool), np.zeros(tree.n, bool)
    hollow[positions], weak[weak_positions] = True, True
    c = contract(tree.parent, hollow=hollow, weak=weak)
    if len(c.apart):
        raise SingularLink(int(c.apart[0]))
    return c


def _hollow(tree: Tree) -> NDArray[np.int64]:
    """The links whose inertia may be singular: mass or a central moment of inertia is none."""
    d = tree.description
    return np.flatnonzero(~has_whole_inertia(d.mass, d.inertia)[tree.topology.body])


def _inertias(tree: Tree, positions: NDArray[Any]) -> Floats:
    """The 6×6 inertias of links."""
    at, table = record_slices(), tree.rows(positions)
    m = np.zeros((len(table), 6, 6))
    m[:, :3, :3] = table[:, at["mass"].start, None, None] * np.eye(3)
    m[:, 3:, 3:] = full_inertia(table[:, at["inertia"]])
    m[:, 3:, :3] = np.moveaxis(skew(table[:, at["moment"]].T), -1, 0)
    m[:, :3, 3:] = np.swapaxes(m[:, 3:, :3], 1, 2)
    return m


def _free(tree: Tree) -> NDArray[np.bool_]:
    """Which joints move on their own and have no armature. Coupled ones are left to the mass matrix."""
    x = tree.coordinates
    nv = np.diff(np.append(x.v_at, x.nv)) > 0 if not x.follows.any() else np.array([k.nv > 0 for k in tree.kinds])
    coupled = np.isin(x.v_at, x.v_at[x.follows]) & nv
    return np.asarray(nv & ~coupled & (tree.description.armature[tree.topology.joint] == 0))


def _weak(tree: Tree, positions: NDArray[Any]) -> NDArray[Any]:
    """Those of these links that do not resist their joint's freedom by themselves: Jᵀ M J is singular."""
    pitch = tree.description.pitch[tree.topology.joint]
    groups: dict[tuple[int, float], list[int]] = {}
    for k, i in enumerate(positions.tolist()):
        groups.setdefault((id(tree.kinds[i]), float(pitch[i])), []).append(k)
    strong = np.zeros(len(positions), bool)
    for (_, h), members in groups.items():
        kind = tree.kinds[int(positions[members[0]])]
        q = kind.integrate(kind.neutral(), np.linspace(0.4, 0.9, kind.nv))
        j = np.asarray(kind.subspace(kind.terms(q, h), h), dtype=float)
        m = _inertias(tree, positions[members])
        d = np.einsum("ki,nkl,lj->nij", j, m, j)
        size = np.trace(m[:, 3:, 3:], axis1=1, axis2=2)
        most = m[:, 0, 0, None] * (j[:3] ** 2).sum(0) + size[:, None] * (j[3:] ** 2).sum(0)
        diagonal = np.diagonal(d, axis1=1, axis2=2)
        scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        regular = np.linalg.eigvalsh(d / (scale[:, :, None] * scale[:, None, :]))[:, 0] > ANGLE
        strong[members] = np.all(diagonal > NONE * most, axis=1) & regular
    return positions[~strong]


def _null(m: Floats) -> Floats:
    """The twists that one link does not resist."""
    mass, h, about = m[0, 0], m[3:, :3], m[3:, 3:]
    central = about if mass <= 0 else about - h @ h.T / mass
    values, axes = np.linalg.eigh(central)
    axes = axes[:, values <= NONE * np.trace(about)]
    if mass <= 0:
        return np.block([[np.eye(3), np.zeros_like(axes)], [np.zeros((3, 3)), axes]])
    # The centre of mass at rest: v = r × ω, and H = m r̃.
    return np.block([[h @ axes / mass], [axes]])


def _subspace(link: Link) -> Floats:
    return np.asarray(link.subspace(link.terms()), dtype=float).reshape(6, -1)


def _meet(a: Floats, b: Floats) -> Floats:
    """A basis of what two spaces have in common."""
    if not a.shape[1] or not b.shape[1]:
        return np.zeros((6, 0))
    a, b = _basis(a), _basis(b)
    _, sines, directions = np.linalg.svd(a - b @ (b.T @ a))
    sines = np.append(sines, np.zeros(len(directions) - len(sines)))
    return np.asarray(a @ directions[sines <= ANGLE].T)


def _basis(a: Floats) -> Floats:
    u, values, _ = np.linalg.svd(a, full_matrices=False)
    return u[:, values > ANGLE * values[0]] if values[0] > 0 else a[:, :0]


def without_whole_inertia(tree: Tree, regular: NDArray[np.bool_], free: Sequence[str]) -> int | None:
    """The first position whose joint moves a body, with those fixed to it, whose inertia has no inverse.

    `regular` bodies have a mass and an inertia about every axis. Inertias that depend on the parameters in `free` are
    not known here, and pass.
    """
    d, t = tree.description, tree.topology
    moves = np.array([kind.nv > 0 for kind in KIND_LIST])[d.kind[t.joint]]
    doubtful = np.flatnonzero(moves & ~regular[t.body])
    fixed: dict[int, list[int]] = {}  # positions that fixed joints join to each
    for i in np.flatnonzero(~moves & (t.parent >= 0)).tolist() if len(doubtful) else ():
        fixed.setdefault(int(t.parent[i]), []).append(i)
    width = {"mass": 1, "com": 3, "inertia": 6}
    bound = d.bindings.items() if free else ()
    unknown = {flat // width[array] for (array, flat), e in bound if array in width and e.names() & set(free)}

    def together(i: int) -> set[int]:
        """The bodies of a link and of those fixed to it."""
        return {int(t.body[i])}.union(*map(together, fixed.get(i, ())))

    def rigid(i: int) -> tuple[float, Floats, Floats]:
        """Mass, first moment and packed inertia at the link frame, of a link and those fixed to it."""
        record = tree.record(i)
        mass, moment, inertia = float(record["mass"][0]), record["moment"], record["inertia"]
        for k in fixed.get(i, ()):
            rider = tree.record(k)
            x = Transform(Chain(placement_rotation(rider, turning=False)), rider["p"])
            m, h, j = x.rigid(*rigid(k))
            mass, moment, inertia = mass + m, moment + h, inertia + j
        return mass, moment, inertia

    return next((i for i in doubtful.tolist() if not _invertible(*rigid(i)) and not unknown & together(i)), None)


def _invertible(mass: float, moment: Floats, inertia: Floats) -> bool:
    """Whether a rigid inertia has an inverse that means something in floating point."""
    if mass <= 0.0:
        return False
    c = moment / mass
    central = full_inertia(inertia) - mass * ((c @ c) * np.eye(3) - np.outer(c, c))
    return bool(np.linalg.eigvalsh(central)[0] > 1e-12 * inertia[:3].sum())
