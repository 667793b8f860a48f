"""The placement of a child frame in its parent: how twists, wrenches and inertias pass between the two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.spatial.algebra import Array, cross, pack, point_velocity, symmetric_times, unpack, wrench_at
from linkwright.spatial.rotation import Rotation


def by_column(function: Callable[[Array], Array], m: Array) -> Array:
    """A function of vectors on each column of a matrix."""
    return np.stack([function(m[:, k]) for k in range(m.shape[1])], axis=1) if m.shape[1] else m


@dataclass(frozen=True)
class ArticulatedInertia:
    """f = M v + Hᵀ ω, l = H v + A ω: M and A packed symmetric, H a full 3×3."""

    m: Array
    h: Array
    a: Array

    @classmethod
    def rigid(cls, mass: Any, moment: Array, inertia: Array) -> ArticulatedInertia:
        zero = 0.0 * mass
        h0, h1, h2 = moment
        return cls(
            np.array([mass, mass, mass, zero, zero, zero]),
            np.array([[zero, -h2, h1], [h2, zero, -h0], [-h1, h0, zero]]),
            np.asarray(inertia),
        )

    @classmethod
    def of(cls, fields: Mapping[str, Array]) -> ArticulatedInertia:
        """From its parts m, h and a by name."""
        return cls(fields["m"], fields["h"], fields["a"])

    @property
    def fields(self) -> dict[str, Array]:
        """Its parts by name."""
        return {"m": self.m, "h": self.h, "a": self.a}

    def __add__(self, other: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(self.m + other.m, self.h + other.h, self.a + other.a)

    def dense(self) -> Array:
        """The full 6×6, linear part first."""
        return np.block([[unpack(self.m), np.asarray(self.h).T], [np.asarray(self.h), unpack(self.a)]])

    @classmethod
    def from_dense(cls, full: Array) -> ArticulatedInertia:
        return cls(pack(full[:3, :3]), full[3:, :3], pack(full[3:, 3:]))

    def times(self, w: Array) -> Array:
        v, o = w[:3], w[3:]
        return np.concatenate([symmetric_times(self.m, v) + o @ self.h, self.h @ v + symmetric_times(self.a, o)])


@dataclass(frozen=True)
class Transform:
    """A child frame in its parent: rotation R (child to parent) and origin p in parent axes."""

    rotation: Rotation
    p: Array

    def outward(self, w: Array) -> Array:
        """A twist of the parent frame, seen in the child frame."""
        v, o = w[:3], w[3:]
        out = self.rotation.outward
        return np.concatenate([out(point_velocity(v, o, self.p)), out(o)])

    def inward(self, f: Array) -> Array:
        """A wrench on the child frame, seen in the parent frame."""
        return wrench_at(self.rotation.inward(f[:3]), self.rotation.inward(f[3:]), self.p)

    def outward_wrench(self, f: Array) -> Array:
        """A wrench at the parent frame, seen in the child frame."""
        out = self.rotation.outward
        return np.concatenate([out(f[:3]), out(f[3:] - cross(self.p, f[:3]))])

    def outward_columns(self, w: Array) -> Array:
        """Twists in columns of the parent frame, seen in the child frame."""
        return by_column(self.outward, w)

    def inward_columns(self, f: Array) -> Array:
        """Wrenches in columns on the child frame, seen in the parent frame."""
        return by_column(self.inward, f)

    def inward_twist(self, w: Array) -> Array:
        """A twist of the child frame, seen in the parent frame."""
        o = self.rotation.inward(w[3:])
        return np.concatenate([self.rotation.inward(w[:3]) - cross(o, self.p), o])

    def inertia(self, i: ArticulatedInertia) -> ArticulatedInertia:
        """An articulated inertia of the child, seen in the parent frame."""
        rotation, p = self.rotation, self.p
        m, h, a = rotation.congruent(i.m), rotation.conjugate(i.h), rotation.congruent(i.a)
        # H' = H + p̃M;  A' = A + p̃Hᵀ + (p̃Hᵀ)ᵀ + p̃Mp̃ᵀ = A + p̃Hᵀ + (p̃H'ᵀ)ᵀ
        mm = np.array([[m[0], m[3], m[4]], [m[3], m[1], m[5]], [m[4], m[5], m[2]]])
        shifted = np.stack([cross(p, mm[:, k]) for k in range(3)], axis=1)
        moved = h + shifted
        pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
        b = [cross(p, h[k]) for k in range(3)]  # columns of p̃Hᵀ
        d = [cross(p, moved[k]) for k in range(3)]  # columns of p̃H'ᵀ
        aa = np.array([a[n] + b[j][i] + d[i][j] for n, (i, j) in enumerate(pairs)])
        return ArticulatedInertia(m, moved, aa)

    def rigid(self, mass: Any, moment: Array, inertia: Array) -> tuple[Any, Array, Array]:
        """A rigid inertia (m, h, packed I about the child's origin), seen about the parent's origin."""
        h = self.rotation.inward(moment)
        i = self.rotation.congruent(inertia)
        p0, p1, p2 = self.p
        # I' = I + p̃h̃ᵀ + (p̃h̃ᵀ)ᵀ + m p̃p̃ᵀ, with h' = h + m p: use s = h + h' = 2h + m p.
        mp = mass * self.p
        s0, s1, s2 = h + h + mp
        x, y, z = p0 * s0, p1 * s1, p2 * s2
        half = 0.5
        return (
            mass,
            h + mp,
            np.array(
                [
                    i[0] + (y + z),
                    i[1] + (x + z),
                    i[2] + (x + y),
                    i[3] - half * (p0 * s1 + p1 * s0),
                    i[4] - half * (p0 * s2 + p2 * s0),
                    i[5] - half * (p1 * s2 + p2 * s1),
                ]
            ),
        )
