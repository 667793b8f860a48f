r"""First derivatives of inverse and forward dynamics in tangent space, over related pairs of bodies.

Everything is written in one inertial frame, which coincides at this instant with the root link's (with ground's, if
there are several roots). With J the columns of a joint, p its parent, Y and f the composite inertia and wrench of
what it carries, h̄ the momentum:

    V = v_p × J,   A = a_p × J + v_p × V,   Ȧ = (v + v_p) × J
    B x = [2 ω_x × h̄_lin; B_a ω_x],  B_a = Σ ω̃ (2I − tr I) − 2 h̃ ũ   (u the velocity at the origin)

For joint i at or above m, τ_m = J_mᵀ f_m moves with i as a whole:
    ∂τ_m/∂q_i = (Y_m J_m)ᵀ A_i + (B_mᵀ J_m)ᵀ V_i,      ∂τ_m/∂v_i = (Y_m J_m)ᵀ Ȧ_i + (B_mᵀ J_m)ᵀ J_i
for m above i:
    ∂τ_m/∂q_i = J_mᵀ (Y_i A_i + B_i V_i + J_i ×* f_i), ∂τ_m/∂v_i = J_mᵀ (Y_i Ȧ_i + B_i J_i).

The pair structure is that of Carpentier and Mansard (2018) and Singh, Russo and Wensing (2022); the closed form of
B, which has only 12 numbers, follows from Jacobi's identity. Forward dynamics: ∂a = −M⁻¹ ∂τ, with the sparse
M = LᵀDL of the tree (Featherstone 2008, 6.5). It holds for joints whose motion subspace is constant in the
child's axes; `linkwright.dynamics.recorders` differentiates the tape of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linkwright.dynamics.methods.ltdl_factor import Factor, factorise
from linkwright.dynamics.traversals.traversal import Unrolled
from linkwright.spatial.algebra import (
    Array,
    cross,
    dot,
    force_cross,
    ground_acceleration,
    inertia_times,
    motion_cross,
    unpack,
)
from linkwright.spatial.rotation import General, Transform

Matrix = list[list[Any]]


class Pairs:
    """The quantities of every joint in the common frame, for one traversal (q and v)."""

    def __init__(self, traversal: Unrolled, gravity: Array) -> None:
        self.t = traversal
        self.x = traversal.coordinates
        links, parent, order = traversal.links, traversal.parent, traversal.order
        root = parent.index(-1) if parent.count(-1) == 1 else None
        n = traversal.n
        self.place: list[Transform] = [Transform(General(np.eye(3)), np.zeros(3))] * n
        self.columns: list[list[Array]] = [[] for _ in range(n)]  # J
        self.velocity: list[Array] = [np.zeros(6)] * n
        self.ground_acceleration: Array = ground_acceleration(gravity)
        v = [link.v for link in links]
        self.terms = [link.terms() for link in links]
        for i in order:
            step = links[i].transform(self.terms[i])
            if i == root:
                self.ground_acceleration = step.outward(self.ground_acceleration)
                place = Transform(General(np.eye(3)), np.zeros(3))
            elif parent[i] < 0:
                place = Transform(General(step.rotation.matrix()), np.asarray(step.p))
            else:
                up = self.place[parent[i]]
                rotation = up.rotation.matrix() @ step.rotation.matrix()
                place = Transform(General(rotation), up.p + up.rotation.inward(step.p))
            self.place[i] = place
            s = links[i].subspace(self.terms[i])
            self.columns[i] = [place.inward_twist(s[:, k]) for k in range(links[i].kind.nv)]
            before = self.velocity[parent[i]] if parent[i] >= 0 else np.zeros(6)
            for column, rate in zip(self.columns[i], v[i], strict=True):
                before = before + column * rate
            self.velocity[i] = before
        self._compose()

    def up(self, values: list[Array], i: int, ground: Array) -> Array:
        p = self.t.parent[i]
        return values[p] if p >= 0 else ground

    def _compose(self) -> None:
        """Composite inertias, momenta and B, from the tips to ground."""
        n, links = self.t.n, self.t.links
        self.inertia: list[tuple[Any, Array, Array]] = [(0.0, np.zeros(3), np.zeros(6))] * n  # own
        self.momentum: list[Array] = [np.zeros(6)] * n  # own
        self.below: list[tuple[Any, Array, Array]] = [(0.0, np.zeros(3), np.zeros(6))] * n  # composite
        self.p: list[Array] = [np.zeros(3)] * n  # composite linear momentum
        self.b: list[Array] = [np.zeros((3, 3))] * n  # composite B_a
        for i in reversed(self.t.order):
            link = links[i]
            mass, h, inertia = self.place[i].rigid(link.mass, np.asarray(link.moment), np.asarray(link.inertia))
            self.inertia[i] = mass, h, inertia
            w = self.velocity[i]
            momentum = inertia_times(mass, h, inertia, w)
            self.momentum[i] = momentum
            shifted = 2.0 * unpack(inertia) - (inertia[0] + inertia[1] + inertia[2]) * np.eye(3)
            u, o = w[:3], w[3:]
            # h̃ũ = u hᵀ − (h·u) 1
            b = np.stack([cross(o, shifted[:, k]) for k in range(3)], axis=1)
            b = b - 2.0 * (np.outer(u, h) - dot(h, u) * np.eye(3))
            self._add(i, self.inertia[i], momentum[:3], b)
            if self.t.parent[i] >= 0:
                self._add(self.t.parent[i], self.below[i], self.p[i], self.b[i])
        self.yj = [[inertia_times(*self.below[i], c) for c in self.columns[i]] for i in range(n)]

    def _add(self, i: int, inertia: tuple[Any, Array, Array], p: Array, b: Array) -> None:
        """Add to what a link carries."""
        mass, moment, packed = self.below[i]
        self.below[i] = mass + inertia[0], moment + inertia[1], packed + inertia[2]
        self.p[i] = self.p[i] + p
        self.b[i] = self.b[i] + b

    def accelerations(self, a: list[Array] | None) -> list[Array]:
        """ẇ of every link, gravity included, for these joint accelerations (None: zero)."""
        b: list[Array] = [np.zeros(6)] * self.t.n
        for i in self.t.order:
            b[i] = self.up(b, i, self.ground_acceleration)
            w = self.velocity[i]
            rates = self.t.links[i].v
            joint = np.zeros(6)
            for k, column in enumerate(self.columns[i]):
                joint = joint + column * rates[k]
                if a is not None:
                    b[i] = b[i] + column * a[i][k]
            b[i] = b[i] + motion_cross(w, joint)
        return b

    def wrenches(self, b: list[Array]) -> list[Array]:
        """The composite wrench through every joint."""
        f: list[Array] = [np.zeros(6)] * self.t.n
        for i in reversed(self.t.order):
            wrench = inertia_times(*self.inertia[i], b[i]) + force_cross(self.velocity[i], self.momentum[i])
            f[i] = f[i] + wrench
            j = self.t.parent[i]
            if j >= 0:
                f[j] = f[j] + f[i]
        return f

    def vector(self, value: Callable[[int, Array], Any]) -> list[Any]:
        """value(i, J) of every column, gathered to coordinates."""
        total: list[Any] = [0.0] * self.x.nv
        for i, columns in enumerate(self.columns):
            for k, column in enumerate(columns):
                at = int(self.x.v_at[i]) + k
                total[at] = total[at] + value(i, column) * float(self.x.ratio[i])
        return total

    def mass_matrix(self) -> Matrix:
        m = self._empty()
        for i in range(self.t.n):
            link = self.t.links[i]
            for k in range(len(self.columns[i])):
                for j in (i, *self.t.ancestors(i)):
                    for c, column in enumerate(self.columns[j]):
                        if j == i and c > k:
                            continue
                        entry = dot(self.yj[i][k], column)
                        if link.geared and j == i and c == k:
                            entry = entry + link.armature
                        self._put(m, i, k, j, c, entry)
                        if (j, c) != (i, k):
                            self._put(m, j, c, i, k, entry)
        return m

    def _empty(self) -> Matrix:
        return [[0.0] * self.x.nv for _ in range(self.x.nv)]

    def _put(self, m: Matrix, i: int, k: int, j: int, c: int, entry: Any) -> None:
        row, column = int(self.x.v_at[i]) + k, int(self.x.v_at[j]) + c
        m[row][column] = m[row][column] + entry * float(self.x.ratio[i] * self.x.ratio[j])

    def inverse_derivatives(self, b: list[Array], f: list[Array]) -> tuple[Matrix, Matrix]:
        """∂τ/∂q and ∂τ/∂v at the accelerations b with the wrenches f."""
        n, zero = self.t.n, np.zeros(6)
        dq, dv = self._empty(), self._empty()
        big_v: list[list[Array]] = []
        big_a: list[list[Array]] = []
        dot_a: list[list[Array]] = []
        bj: list[list[Array]] = []
        for i in range(n):
            vp, bp = self.up(self.velocity, i, zero), self.up(b, i, self.ground_acceleration)
            vs = [motion_cross(vp, c) for c in self.columns[i]]
            big_v.append(vs)
            big_a.append([motion_cross(bp, c) + motion_cross(vp, x) for c, x in zip(self.columns[i], vs, strict=True)])
            if len(vs) == 1:
                dot_a.append([2.0 * vs[0]])  # v − v_p is along J itself
            else:
                both = self.velocity[i] + vp
                dot_a.append([motion_cross(both, c) for c in self.columns[i]])
            bj.append([2.0 * cross(self.p[i], c[:3]) + c[3:] @ self.b[i] for c in self.columns[i]])
        for i in range(n):
            y, p, ba = self.below[i], self.p[i], self.b[i]
            above = self.t.ancestors(i)
            for k, column in enumerate(self.columns[i]):
                # Joint i moved: what it carries, seen from the joints above.
                fq = inertia_times(*y, big_a[i][k]) + _times_b(p, ba, big_v[i][k])
                fq = fq + force_cross(column, f[i])
                fv = inertia_times(*y, dot_a[i][k]) + _times_b(p, ba, column)
                for m in above:
                    for c, other in enumerate(self.columns[m]):
                        self._put(dq, m, c, i, k, dot(other, fq))
                        self._put(dv, m, c, i, k, dot(other, fv))
                # The joints above (and this one) moved: this joint's force.
                for j in (i, *above):
                    for c in range(len(self.columns[j])):
                        yjk, bjk = self.yj[i][k], bj[i][k]
                        by_q = dot(yjk, big_a[j][c]) + dot(bjk, big_v[j][c][3:])
                        by_v = dot(yjk, dot_a[j][c]) + dot(bjk, self.columns[j][c][3:])
                        self._put(dq, i, k, j, c, by_q)
                        self._put(dv, i, k, j, c, by_v)
        return dq, dv


def _times_b(p: Array, ba: Array, x: Array) -> Array:
    o = x[3:]
    return np.concatenate([2.0 * cross(o, p), ba @ o])


def inverse_dynamics_derivatives(traversal: Unrolled, gravity: Array, a: Array) -> tuple[Array, Array, Array]:
    """∂τ/∂q, ∂τ/∂v, ∂τ/∂a = M for the traversal's q, v."""
    pairs = Pairs(traversal, gravity)
    b = pairs.accelerations(traversal.by_link(a))
    dq, dv = pairs.inverse_derivatives(b, pairs.wrenches(b))
    return np.array(dq), np.array(dv), np.array(pairs.mass_matrix())


def forward_dynamics_parts(traversal: Unrolled, gravity: Array, tau: Array) -> tuple[Matrix, Factor, Matrix, Matrix]:
    """M, its factors, ∂τ/∂q and ∂τ/∂v at the acceleration that tau causes: ∂a = −M⁻¹ ∂τ."""
    pairs = Pairs(traversal, gravity)
    m = pairs.mass_matrix()
    factor = factorise(m)
    f = pairs.wrenches(pairs.accelerations(None))
    bias = pairs.vector(lambda i, column: dot(column, f[i]))
    a = factor.solve([tau[k] - bias[k] for k in range(len(bias))])
    b = pairs.accelerations(traversal.by_link(np.array(a)))
    dq, dv = pairs.inverse_derivatives(b, pairs.wrenches(b))
    return m, factor, dq, dv
