r"""Forward dynamics by assembly, loop constraints included: bodies are joined joint by joint, in balanced order.

An assembly is known at its handles, one for each side of a joint still open, by θ̈_h = Σ_k Φ_hk f_k + β_h. It starts
as a free body (with the bodies on fixed joints that it carries), or as ground: Φ = 0, β = −gravity. A joint holds two
handles together by f on its child's side and −f on its parent's. With U_h = Φ_h,child − Φ_h,parent, which is zero
by parts where the two handles are of two assemblies:

    Σ = Φ_child,child + Φ_parent,parent − Φ_child,parent − Φ_parent,child,  W = Q (Qᵀ Σ Q)⁺ Qᵀ
    θ̈_child − θ̈_parent = Σ f + Σ_k U_kᵀ f_k + Δβ = S a + c,  Sᵀ f = τ
    f = g − W Σ_k U_kᵀ f_k,  g = W (c − Δβ) + f_τ − W Σ f_τ,  f_τ = T τ  with  Tᵀ S = 1
    up:    Φ_hk − U_h W U_kᵀ,  β_h + U_h g
    down:  f, then a = Tᵀ (Σ f + Σ_k U_kᵀ f_k + Δβ − c)

A constraint (a loop's joint, a rod, a point constraint, a driver) has wrenches P_s λ at its handles s, which must be
of one assembly, and asks for Σ P_sᵀ θ̈_s = c. With U_h = Σ_s Φ_hs P_s and Σ = Σ P_sᵀ Φ_st P_t:

    λ = g − Σ⁺ Σ_k U_kᵀ f_k,  g = Σ⁺ (c − Σ P_sᵀ β_s),   up:  Φ_hk − U_h Σ⁺ U_kᵀ,  β_h + U_h g

Yamane and Nakamura's formulas are this for two assemblies of two handles. A tree joint joins two assemblies, of which
one floats, so that Qᵀ Σ Q has an inverse; a constraint closes as soon as one assembly has all its handles.
This is straight-line code for mechanisms of moderate size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from linkwright.dynamics.closed.constraint_space import Closed, ConstraintsAt, Scales, inverse_of, limits
from linkwright.dynamics.closed.loop_constraints import ConstraintAtState, Handle, Junction, as_ends, rooted
from linkwright.dynamics.closed.redundancy import Blocks
from linkwright.dynamics.methods.articulated_body import eliminate, passed_on
from linkwright.dynamics.methods.virtual_work import held, with_armature
from linkwright.dynamics.traversals.traversal import Link, State, Unrolled
from linkwright.spatial.algebra import Array, ground_acceleration, inverse, symmetric_product, unpack_symmetric
from linkwright.spatial.rotation import ArticulatedInertia
from linkwright.tape.block import maximum

#: Σ is a difference: below this part of the bodies' own mobility (1e-12 with the rank tolerance) it is rounding.
NOISE = 1e-2
#: The number of a joint or a constraint, and its side: of a joint 0 the parent's, 1 the child's.
Key = tuple[int, int]


def forward_dynamics(
    traversal: Unrolled, gravity: Array, constraints_at: ConstraintsAt, blocks: Blocks, *, wrenches: bool = False
) -> Closed:
    """Joint accelerations for the traversal's q, v, tau (and wrenches on the links, in link axes), and multipliers."""
    ground = ground_acceleration(gravity)
    eliminate(traversal, bodies, wrenches=wrenches)
    moving = [i for i in traversal.order if traversal.links[i].kind.nv]
    joints = [_tree_joint(traversal, i) for i in moving]
    work = Assembling(
        traversal, joints, [as_ends(traversal, constraint) for constraint in constraints_at(traversal)], blocks, ground
    )
    work.join_all()
    accelerations, multipliers = work.down()
    for i, a in zip(moving, accelerations, strict=True):
        traversal.rows[i]["acceleration"] = a
    return traversal.joint_vector("acceleration"), multipliers


def bodies(link: Link, state: State, below: State) -> tuple[dict[str, Array], dict[str, Array]]:
    """Φ and β of a body on a moving joint; a fixed joint passes inertia and force on."""
    rigid = link.rigid_inertia() + ArticulatedInertia.of(below)
    force = state["force"] + below["f"]
    if link.kind.nv:
        phi = inverse(rigid.dense())
        return {"phi": phi, "free": -(phi @ force)}, {}
    return {}, passed_on(link, state["terms"], rigid, force)


def _tree_joint(traversal: Unrolled, i: int) -> Junction:
    link, row = traversal.links[i], traversal.rows[i]
    x = link.transform(row["terms"])
    parent = rooted(traversal, Handle(traversal.parent[i]))
    return Junction(link, row["terms"], Handle(parent.position, (*parent.way, x)), Handle(i), row["beta"])


@dataclass(eq=False)
class Assembly:
    """β of each open handle, and Φ of each pair of them in order; a pair that is not there has Φ = 0."""

    beta: dict[Key, Array] = field(default_factory=dict)
    phi: dict[tuple[Key, Key], Array] = field(default_factory=dict)

    def block(self, h: Key, k: Key) -> Array | None:
        if (h, k) in self.phi:
            return self.phi[h, k]
        return self.phi[k, h].T if (k, h) in self.phi else None


@dataclass(frozen=True)
class Joined:
    """What the way down needs of a joint, or of a loop constraint: over the handles that stayed open, the joint's force
    is f = g − W Σ Uᵀ f, and the constraint's multipliers are λ = g − W Σ Uᵀ f with W = Σ⁺."""

    number: int  # of the joint, or of the constraint
    loop: bool  # whether it is a loop constraint
    u: Mapping[Key, Array]
    w: Array
    g: Array
    sigma: Array
    gap: Array  # Δβ − c, or Σ Pᵀ β − c


class Assembling:
    """The joints and constraints of a mechanism, joined one after another."""

    def __init__(
        self,
        traversal: Unrolled,
        joints: Sequence[Junction],
        constraints: Sequence[ConstraintAtState],
        blocks: Blocks,
        ground: Array,
    ) -> None:
        self.joints, self.constraints, self.trees = joints, constraints, len(joints)
        self.open, self.limits, self.blocks = list(range(len(constraints))), limits(constraints, blocks), blocks
        self.closed: list[int] = []
        self.joined: list[Joined] = []
        at: dict[int, list[tuple[Key, Handle]]] = {}
        for n, joint in enumerate(joints):
            for side, handle in enumerate((joint.parent, joint.child)):
                at.setdefault(handle.position, []).append(((n, side), handle))
        for n, constraint in enumerate(constraints, self.trees):
            for side, (handle, _) in enumerate(constraint.ends):
                at.setdefault(handle.position, []).append(((n, side), handle))
        self.of: dict[Key, Assembly] = {}
        self.scale: dict[Key, Array] = {}  # Φ of a handle's own body, free of all joints
        for position, handles in at.items():
            body = Assembly()
            row = traversal.rows[position] if position >= 0 else {"free": ground}
            for n, (key, handle) in enumerate(handles):
                body.beta[key] = handle.outward(row["free"])
                self.of[key] = body
                if position >= 0:
                    across = handle.outward_columns(row["phi"]).T
                    for other, there in handles[n:]:
                        body.phi[key, other] = there.outward_columns(across).T
                    self.scale[key] = body.phi[key, key]

    def join_all(self) -> None:
        """Rounds in which each assembly is joined once, pairs with the fewest open handles first."""
        left = list(range(self.trees))
        self._close_all()
        while left:
            used: set[Assembly] = set()
            for n in sorted(left, key=lambda n: len(self.of[n, 0].beta) + len(self.of[n, 1].beta)):
                if self.of[n, 0] not in used and self.of[n, 1] not in used:
                    used.add(self._join(n))
                    used.update(self._close_all())
                    left.remove(n)

    def _close_all(self) -> list[Assembly]:
        """Close every constraint that has all its handles in one assembly."""
        ready = [n for n in self.open if len({id(self.of[key]) for key in self._keys(n)}) == 1]
        self.open = [n for n in self.open if n not in ready]
        return [self._close(n) for n in ready]

    def _keys(self, n: int) -> list[Key]:
        return [(self.trees + n, side) for side in range(len(self.constraints[n].ends))]

    def _join(self, n: int) -> Assembly:
        joint, parent, child = self.joints[n], (n, 0), (n, 1)
        a, b = self.of.pop(parent), self.of.pop(child)
        both = Assembly({**a.beta, **b.beta}, {**a.phi, **b.phi})
        sigma = _difference(
            _difference(both.block(child, child), both.block(child, parent)),
            _difference(both.block(parent, child), both.block(parent, parent)),
        )
        sigma = np.zeros((6, 6)) if sigma is None else sigma
        gap = both.beta.pop(child) - both.beta.pop(parent) - joint.bias
        u = {k: x for k in both.beta if (x := _difference(both.block(k, child), both.block(k, parent))) is not None}
        w = held(joint.link.kind, joint.q, sigma)
        if joint.link.geared:
            w = with_armature(w, sigma, joint.link.dual(joint.terms), joint.link.armature)
        drive = joint.link.joint_wrench(joint.terms, joint.link.tau)
        g = drive - w @ (gap + sigma @ drive)
        self.joined.append(Joined(n, False, u, w, g, sigma, gap))
        return self._without(both, u, w, g)

    def _close(self, n: int) -> Assembly:
        constraint, keys = self.constraints[n], self._keys(n)
        whole = self.of[keys[0]]
        for key in keys:
            del self.of[key]
        ends = {key: columns for key, (_, columns) in zip(keys, constraint.ends, strict=True)}
        u: dict[Key, Array] = {}
        for h in whole.beta:
            shares = [block @ p for key, p in ends.items() if (block := whole.block(h, key)) is not None]
            if shares:
                u[h] = sum(shares[1:], shares[0])
        sigma = sum((p.T @ u[key] for key, p in ends.items() if key in u), np.zeros((constraint.size, constraint.size)))
        gap = sum((p.T @ whole.beta[key] for key, p in ends.items()), -constraint.bias)
        scale = np.zeros(constraint.size)
        for key, p in ends.items():
            if key in self.scale:
                scale = scale + np.array([x @ self.scale[key] @ x for x in p.T])
        scales = Scales(maximum(np.diagonal(sigma), NOISE * scale), scale)
        rank, most = self.blocks.rank(n, self.closed), self.blocks.most(n)
        self.closed.append(n)
        inverse = inverse_of(sigma, scales, self.limits, rank, most).solve(np.eye(constraint.size))
        g = -(inverse @ gap)
        left = Assembly({k: beta for k, beta in whole.beta.items() if k not in ends}, whole.phi)
        u = {k: x for k, x in u.items() if k not in ends}
        self.joined.append(Joined(n, True, u, inverse, g, sigma, gap))
        return self._without(left, u, inverse, g)

    def _without(self, old: Assembly, u: Mapping[Key, Array], w: Array, g: Array) -> Assembly:
        """An assembly whose handles in β stay open, with what was closed taken out."""
        assembly = Assembly({k: beta + u[k] @ g if k in u else beta for k, beta in old.beta.items()})
        handles = list(old.beta)
        for at, h in enumerate(handles):
            share = u[h] @ w if h in u else None
            for k in handles[at:]:
                block = old.block(h, k)
                if share is not None and k in u:
                    less = unpack_symmetric(symmetric_product(share, u[k].T), 6) if h == k else share @ u[k].T
                    block = _difference(block, less)
                if block is not None:
                    assembly.phi[h, k] = block
        self.of.update(dict.fromkeys(handles, assembly))
        return assembly

    def down(self) -> tuple[list[Array], list[Array]]:
        """Down again: each joint's force, the accelerations of the tree's joints, and the constraints' multipliers."""
        force: dict[Key, Array] = {}
        accelerations: list[Array] = [np.zeros(0)] * self.trees
        multipliers: list[Array] = [np.zeros(0)] * len(self.constraints)
        for done in reversed(self.joined):
            n = done.number
            e = sum((u.T @ force[k] for k, u in done.u.items()), np.zeros(len(done.g)))
            f = done.g - done.w @ e
            if done.loop:
                # Refined once: Σ may be near to losing rank.
                multipliers[n] = f - done.w @ (done.sigma @ f + e + done.gap)
                for key, (_, columns) in zip(self._keys(n), self.constraints[n].ends, strict=True):
                    force[key] = columns @ multipliers[n]
            else:
                joint = self.joints[n]
                accelerations[n] = joint.link.joint_rates(joint.terms, done.sigma @ f + e + done.gap)
                force[n, 0], force[n, 1] = -f, f
        return accelerations, multipliers


def _difference(a: Array | None, b: Array | None) -> Array | None:
    """a − b of blocks, where None is zero."""
    return a if b is None else -b if a is None else a - b
