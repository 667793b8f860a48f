"""A joint of an assembly: what it holds of the inertia and force below it, and what it lets through."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.dynamics.traversals.traversal import Link, State
from linkwright.spatial.algebra import (
    Array,
    centripetal,
    cross,
    dot,
    inverse,
    pack_symmetric,
    semidefinite_factor,
    symmetric_product,
    unpack_symmetric,
)
from linkwright.spatial.rotation import Transform

Fields = dict[str, dict[str, Array]]


def centripetal_twist(x: Transform, omega: Array) -> Array:
    """[ω × (ω × p); 0] in the child's axes."""
    a = x.rotation.outward(centripetal(omega, x.p))
    return np.concatenate([a, np.zeros(3)])


class _Joint:
    """A joint as both ways see it: S, c, Y and D⁻¹."""

    y: Array
    pivots: Array  # D⁻¹

    def __init__(self, link: Link, joint: State) -> None:
        self.link, self.kind = link, link.kind
        self.terms = joint["terms"] if self.kind.nv else ()
        self.s = link.subspace(self.terms)
        self.c = self._bias(joint)
        # What the joint lets through has no part along what it frees.
        chosen = () if link.geared or self.kind.selects is None else self.kind.selects
        self.held = [k for k in range(6) if k not in chosen]

    def _bias(self, joint: State) -> Array:
        """c: the true acceleration across the joint that is not S a, from ω of the link and its twist j = S v:
        [(2ω − j_ω) × j_v; ω × j_ω] + Ṡ v."""
        link = self.link
        if not self.kind.nv:
            return np.zeros(6)
        twist, omega = link.joint_twist(self.terms, link.v), joint["omega"]
        c = np.concatenate([cross(omega + omega - twist[3:], twist[:3]), cross(omega, twist[3:])])
        return c if self.kind.selects is not None else c + self.kind.subspace_rate(self.terms, link.pitch, link.v)

    def spread(self, packed: Array) -> Array:
        """The full matrix of the upper triangle of what the joint holds."""
        rows: list[list[Any]] = [[0.0] * 6 for _ in range(6)]
        entries = iter(packed)
        for n, i in enumerate(self.held):
            for j in self.held[n:]:
                rows[i][j] = rows[j][i] = next(entries)
        return np.array(rows)

    def through(self, f: Array) -> Array:
        """U f = f − Y Sᵀ f."""
        return f - self.y @ self.link.project(self.terms, f) if self.kind.nv else f

    def yielding(self, f: Array) -> Array:
        """D⁻¹ Sᵀ f."""
        return self.pivots @ self.link.project(self.terms, f) if self.kind.nv else np.zeros(0)

    def across(self, b2: Array, still: Array) -> tuple[Array, Array]:
        """a and b₁ of the link, from b₂ above it and D⁻¹ (τ − Sᵀ(...))."""
        if not self.kind.nv:
            return np.zeros(0), b2 + self.c
        moved = b2 + self.c
        a = still - moved @ self.y
        return a, moved + self.link.joint_twist(self.terms, a)


class Cut(_Joint):
    """A joint from what hangs below it: its inertia M and force h."""

    def __init__(self, link: Link, joint: State, m: Array, h: Array) -> None:
        super().__init__(link, joint)
        kind, nv = self.kind, self.kind.nv
        if not nv:
            self.w, self.u, self.still = m, h, np.zeros(0)
            self.y, self.pivots = np.zeros((6, 0)), np.zeros((0, 0))
            return
        if kind.selects is not None:
            chosen = list(kind.selects)
            ms, d = m[:, chosen], m[np.ix_(chosen, chosen)]
        else:
            ms = m @ self.s
            d = self.s.T @ ms
        if link.geared:
            d = d + link.armature * np.eye(nv)
        self.pivots = inverse(d)
        self.y = ms @ self.pivots
        held = self.held
        self.w = self.spread([m[i, j] - dot(self.y[i], ms[j]) for n, i in enumerate(held) for j in held[n:]])
        self.u = self.through(h) + self.y @ link.tau
        self.still = self.pivots @ link.tau - self.yielding(h)

    def behind(self, phi: Array) -> Array:
        """W' = (W⁻¹ + Φ)⁻¹ = G (1 + Gᵀ Φ G)⁻¹ Gᵀ with W = G Gᵀ."""
        held = self.held
        if not held:
            return self.w
        g = semidefinite_factor(self.w[np.ix_(held, held)])
        inner = unpack_symmetric(symmetric_product(g.T, phi[np.ix_(held, held)] @ g), len(held))
        return self.spread(symmetric_product(g @ inverse(np.eye(len(held)) + inner), g.T))

    def onward(self, z: Array) -> Array:
        """Uᵀ Z = Z − S (Yᵀ Z)."""
        return z - self.s @ (self.y.T @ z) if self.kind.nv else z

    def slack(self, phi: Array) -> Array:
        """S D⁻¹ Sᵀ + Uᵀ Φ U."""
        if not self.kind.nv:
            return phi
        half = self.onward(phi)
        return self.s @ self.pivots @ self.s.T + self.onward(half.T)

    def yielded(self, x: Array) -> Array:
        """X S D⁻¹ Sᵀ Xᵀ, packed."""
        if not self.kind.nv:
            return np.zeros(21)
        moved = np.stack([x @ self.s[:, k] for k in range(self.kind.nv)], axis=1)
        return symmetric_product(moved @ self.pivots, moved.T)

    def left(self) -> dict[str, Array]:
        """What the way down needs."""
        return {"y": self.y, "pivots": pack_symmetric(self.pivots), "still": self.still} if self.kind.nv else {}


class Released(_Joint):
    """A joint from what the way up left."""

    def __init__(self, link: Link, joint: State) -> None:
        super().__init__(link, joint)
        self.still: Array = joint["still"] if self.kind.nv else np.zeros(0)
        if self.kind.nv:
            self.y, self.pivots = joint["y"], unpack_symmetric(joint["pivots"], self.kind.nv)

    def solved(self, b2: Array, still: Array) -> Fields:
        a, b = self.across(b2, still)
        return {"joint": {"b": b} | ({"acceleration": a} if self.kind.nv else {})}
