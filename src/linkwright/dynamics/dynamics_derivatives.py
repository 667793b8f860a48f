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
M = LᵀDL of the tree (Featherstone 2008, 6.5). A joint whose motion subspace turns with its coordinates (universal,
planar) is a chain of joints of one rate each, without mass between them. `tree_derivatives` has the same as programs
for many rates; the formulas of a rate and of a pair of rates stand here.
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
Inertia = tuple[Any, Array, Array]  # mass, first moment, packed inertia


class Motion:
    """The motion of every joint in the common frame, for one traversal (q and v).

    A joint whose motion subspace turns with its coordinates is a chain of joints of one rate each, in the order of its
    rates: what comes before a rate is the motion of the link that the rates before it move.
    """

    def __init__(self, traversal: Unrolled, gravity: Array) -> None:
        self.t = traversal
        self.x = traversal.coordinates
        links, parent, order = traversal.links, traversal.parent, traversal.order
        root = parent.index(-1) if parent.count(-1) == 1 else None
        n = traversal.n
        self.place: list[Transform] = [Transform(General(np.eye(3)), np.zeros(3))] * n
        self.columns: list[list[Array]] = [[] for _ in range(n)]  # J
        self.velocity: list[Array] = [np.zeros(6)] * n
        self.before: list[list[Array]] = [[] for _ in range(n)]  # v_p of each rate
        self.v_columns: list[list[Array]] = [[] for _ in range(n)]  # V
        self.ground_acceleration: Array = ground_acceleration(gravity)
        self.ground = Transform(General(np.eye(3)), np.zeros(3))  # in the common frame
        self.terms = [link.terms() for link in links]
        for i in order:
            step = links[i].transform(self.terms[i])
            if i == root:
                self.ground_acceleration = step.outward(self.ground_acceleration)
                turn = step.rotation.matrix().T
                self.ground = Transform(General(turn), -(turn @ np.asarray(step.p)))
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
            before = velocity = self.up(self.velocity, i, np.zeros(6))
            for column, rate in zip(self.columns[i], links[i].v, strict=True):
                before = velocity if self.one_by_one(i) else before
                self.before[i].append(before)
                self.v_columns[i].append(motion_cross(before, column))
                velocity = velocity + column * rate
            self.velocity[i] = velocity

    def one_by_one(self, i: int) -> bool:
        """Whether the rates of a link's joint follow each other like joints; if not, they are those of one motion."""
        kind = self.t.links[i].kind
        return kind.nv == 1 or not kind.steady

    def up(self, values: list[Array], i: int, ground: Array) -> Array:
        p = self.t.parent[i]
        return values[p] if p >= 0 else ground

    def both(self, i: int) -> Array:
        """v + v_p of a link."""
        return self.velocity[i] + self.up(self.velocity, i, np.zeros(6))

    def rate_columns(self, i: int) -> list[Array]:
        """Ȧ of a link's rates."""
        if self.one_by_one(i):
            return [2.0 * x for x in self.v_columns[i]]  # v − v_p is along J itself
        return [motion_cross(self.both(i), c) for c in self.columns[i]]

    def accelerations(self, a: list[Array] | None) -> tuple[list[Array], list[list[Array]]]:
        """ẇ of every link, gravity included, and ẇ before each of its rates, for joint accelerations (None: zero)."""
        b: list[Array] = [np.zeros(6)] * self.t.n
        before: list[list[Array]] = [[] for _ in range(self.t.n)]
        for i in self.t.order:
            start = at = self.up(b, i, self.ground_acceleration)
            one_by_one, rates = self.one_by_one(i), self.t.links[i].v
            joint = np.zeros(6)
            for k, column in enumerate(self.columns[i]):
                before[i].append(at if one_by_one else start)
                if one_by_one:
                    at = at + self.v_columns[i][k] * rates[k]
                joint = joint + column * rates[k]
                if a is not None:
                    at = at + column * a[i][k]
            b[i] = at if one_by_one or not len(rates) else at + motion_cross(self.velocity[i], joint)
        return b, before


class Pairs(Motion):
    """The motion with what every joint carries, and the forces of related pairs."""

    def __init__(self, traversal: Unrolled, gravity: Array) -> None:
        super().__init__(traversal, gravity)
        self._compose()

    def _compose(self) -> None:
        """Composite inertias, momenta and B, from the tips to ground."""
        n, links = self.t.n, self.t.links
        self.bodies: list[Inertia] = [(0.0, np.zeros(3), np.zeros(6))] * n
        self.below: list[Inertia] = [(0.0, np.zeros(3), np.zeros(6))] * n  # composite
        self.p: list[Array] = [np.zeros(3)] * n  # composite linear momentum
        self.b: list[Array] = [np.zeros((3, 3))] * n  # composite B_a
        for i in reversed(self.t.order):
            link = links[i]
            self.bodies[i] = self.place[i].rigid(link.mass, np.asarray(link.moment), np.asarray(link.inertia))
            momentum, b = momentum_and_b(self.bodies[i], self.velocity[i])
            self._add(i, self.bodies[i], momentum[:3], b)
            if self.t.parent[i] >= 0:
                self._add(self.t.parent[i], self.below[i], self.p[i], self.b[i])

    def _add(self, i: int, inertia: Inertia, p: Array, b: Array) -> None:
        """Add to what a link carries."""
        mass, moment, packed = self.below[i]
        self.below[i] = mass + inertia[0], moment + inertia[1], packed + inertia[2]
        self.p[i] = self.p[i] + p
        self.b[i] = self.b[i] + b

    def wrenches(self, b: list[Array]) -> list[Array]:
        """The composite wrench through every joint."""
        f: list[Array] = [np.zeros(6)] * self.t.n
        for i in reversed(self.t.order):
            f[i] = f[i] + own_wrench(self.bodies[i], self.velocity[i], b[i])
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
            for k, moved in enumerate(self.columns[i]):
                yj = inertia_times(*self.below[i], moved)
                for j in (i, *self.t.ancestors(i)):
                    for c, column in enumerate(self.columns[j]):
                        if j == i and c > k:
                            continue
                        entry = dot(yj, column)
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

    def inverse_derivatives(self, before: list[list[Array]], f: list[Array]) -> tuple[Matrix, Matrix]:
        """∂τ/∂q and ∂τ/∂v at the accelerations before each rate and with the wrenches f."""
        dq, dv = self._empty(), self._empty()
        big_a = [list(map(a_column, before[i], self.before[i], self.columns[i])) for i in range(self.t.n)]
        dot_a = [self.rate_columns(i) for i in range(self.t.n)]
        for i in range(self.t.n):
            carried = self.below[i], self.p[i], self.b[i]
            higher = [(j, c) for j in self.t.ancestors(i) for c in range(len(self.columns[j]))]
            for k, column in enumerate(self.columns[i]):
                # Joint i moved: what it carries, seen from the joints above, and from its own before this rate.
                fq = force_by_coordinate(*carried, column, self.v_columns[i][k], big_a[i][k], f[i])
                fv = force_by_rate(*carried, column, dot_a[i][k])
                same = range(k if self.one_by_one(i) else 0)
                for m, c in [(i, c) for c in same] + higher:
                    self._put(dq, m, c, i, k, dot(self.columns[m][c], fq))
                    self._put(dv, m, c, i, k, dot(self.columns[m][c], fv))
                # The joints above (and this one) moved: this joint's force.
                rows = force_rows(*carried, column)
                same = range(k + 1 if self.one_by_one(i) else len(self.columns[i]))
                for j, c in [(i, c) for c in same] + higher:
                    self._put(dq, i, k, j, c, moved_as_a_whole(*rows, big_a[j][c], self.v_columns[j][c]))
                    self._put(dv, i, k, j, c, moved_as_a_whole(*rows, dot_a[j][c], self.columns[j][c]))
        return dq, dv


def momentum_and_b(inertia: Inertia, w: Array) -> tuple[Array, Array]:
    """The momentum of a body, and its B_a."""
    _, h, packed = inertia
    shifted = 2.0 * unpack(packed) - (packed[0] + packed[1] + packed[2]) * np.eye(3)
    u, o = w[:3], w[3:]
    # h̃ũ = u hᵀ − (h·u) 1
    b = np.stack([cross(o, shifted[:, k]) for k in range(3)], axis=1)
    return inertia_times(*inertia, w), b - 2.0 * (np.outer(u, h) - dot(h, u) * np.eye(3))


def own_wrench(inertia: Inertia, w: Array, b: Array) -> Array:
    """The wrench that a body needs for its acceleration b."""
    return inertia_times(*inertia, b) + force_cross(w, inertia_times(*inertia, w))


def a_column(before: Array, v: Array, column: Array) -> Array:
    """A of a rate from ẇ and the velocity before it."""
    return motion_cross(before, column) + motion_cross(v, motion_cross(v, column))


def force_rows(y: Inertia, p: Array, ba: Array, column: Array) -> tuple[Array, Array]:
    """Y J and the angular part of Bᵀ J, whose linear part is zero."""
    return inertia_times(*y, column), 2.0 * cross(p, column[:3]) + column[3:] @ ba


def moved_as_a_whole(yj: Array, bj: Array, a: Array, v: Array) -> Any:
    """(Y J)ᵀ A + (Bᵀ J)ᵀ V."""
    return dot(yj, a) + dot(bj, v[3:])


def force_by_rate(y: Inertia, p: Array, ba: Array, column: Array, dot_a: Array) -> Array:
    """Y Ȧ + B J: how the force of what a joint carries changes with the joint's rate."""
    return inertia_times(*y, dot_a) + _times_b(p, ba, column)


def force_by_coordinate(y: Inertia, p: Array, ba: Array, column: Array, v: Array, a: Array, f: Array) -> Array:
    """Y A + B V + J ×* f: how that force changes with the joint's coordinate."""
    return inertia_times(*y, a) + _times_b(p, ba, v) + force_cross(column, f)


def _times_b(p: Array, ba: Array, x: Array) -> Array:
    o = x[3:]
    return np.concatenate([2.0 * cross(o, p), ba @ o])


def inverse_dynamics_derivatives(traversal: Unrolled, gravity: Array, a: Array) -> tuple[Array, Array, Array]:
    """∂τ/∂q, ∂τ/∂v, ∂τ/∂a = M for the traversal's q, v."""
    pairs = Pairs(traversal, gravity)
    b, before = pairs.accelerations(traversal.by_link(a))
    dq, dv = pairs.inverse_derivatives(before, pairs.wrenches(b))
    return np.array(dq), np.array(dv), np.array(pairs.mass_matrix())


def forward_dynamics_parts(traversal: Unrolled, gravity: Array, tau: Array) -> tuple[Matrix, Factor, Matrix, Matrix]:
    """M, its factors, ∂τ/∂q and ∂τ/∂v at the acceleration that tau causes: ∂a = −M⁻¹ ∂τ."""
    pairs = Pairs(traversal, gravity)
    m = pairs.mass_matrix()
    factor = factorise(m)
    f = pairs.wrenches(pairs.accelerations(None)[0])
    bias = pairs.vector(lambda i, column: dot(column, f[i]))
    a = factor.solve([tau[k] - bias[k] for k in range(len(bias))])
    b, before = pairs.accelerations(traversal.by_link(np.array(a)))
    dq, dv = pairs.inverse_derivatives(before, pairs.wrenches(b))
    return m, factor, dq, dv
