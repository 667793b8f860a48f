"""Rotations that know their structure, finite rotations, and the placement of a child frame in its parent: how
twists, wrenches and inertias pass between them.

A rotation R takes child coordinates to parent coordinates. A turn costs 6 operations per vector and 10 + 6 per
symmetric matrix where a general product costs 15 and 75: so a mechanism's placements are turns about z, x, z.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from linkwright.spatial.algebra import (
    PACKED,
    Array,
    cross,
    dot,
    pack,
    point_velocity,
    symmetric_times,
    unpack,
    wrench_at,
)
from linkwright.tape.block import arctan2, less, where


class Rotation(Protocol):
    """What transforms need of a rotation R (child to parent)."""

    def inward(self, x: Array) -> Array:
        """R x."""

    def outward(self, x: Array) -> Array:
        """Rᵀ x."""

    def congruent(self, s: Array) -> Array:
        """R S Rᵀ of a packed symmetric S."""

    def conjugate(self, h: Array) -> Array:
        """R H Rᵀ of a general H."""

    def matrix(self) -> Array:
        """R itself."""


# For an axis: the two others, in the order in which a positive turn takes the first to the second.
_PLANE = {0: (1, 2), 1: (2, 0), 2: (0, 1)}


@dataclass(frozen=True)
class Turn:
    """A rotation about one coordinate axis by the angle with this cosine and sine."""

    axis: int
    c: Any
    s: Any

    def inward(self, x: Array) -> Array:
        return self._turn(x, self.s)

    def outward(self, x: Array) -> Array:
        return self._turn(x, -self.s)

    def _turn(self, x: Array, s: Any) -> Array:
        i, j = _PLANE[self.axis]
        y = list(x)
        y[i] = self.c * x[i] - s * x[j]
        y[j] = s * x[i] + self.c * x[j]
        return np.array(y)

    def congruent(self, m: Array) -> Array:
        # With d = a − b and u = s·d + 2c·e of the 2×2 block [a e; e b]: a' = a − s·u, b' = b + s·u, e' = c·u − e.
        i, j = _PLANE[self.axis]
        k = self.axis
        c, s = self.c, self.s
        y = list(m)
        a, b, e = m[PACKED[i][i]], m[PACKED[j][j]], m[PACKED[i][j]]
        u = s * (a - b) + c * (e + e)
        shift = s * u
        y[PACKED[i][i]] = a - shift
        y[PACKED[j][j]] = b + shift
        y[PACKED[i][j]] = c * u - e
        x, z = m[PACKED[i][k]], m[PACKED[j][k]]
        y[PACKED[i][k]] = c * x - s * z
        y[PACKED[j][k]] = s * x + c * z
        return np.array(y)

    def conjugate(self, h: Array) -> Array:
        # As above for the symmetric part of the 2×2 block; its antisymmetric part does not change.
        i, j = _PLANE[self.axis]
        k = self.axis
        c, s = self.c, self.s
        y = [list(row) for row in h]
        a, b, e, f = h[i][i], h[j][j], h[i][j], h[j][i]
        both = e + f
        u = s * (a - b) + c * both
        shift = s * u
        y[i][i] = a - shift
        y[j][j] = b + shift
        change = c * u - both
        y[i][j] = e + change
        y[j][i] = f + change
        y[i][k], y[j][k] = c * h[i][k] - s * h[j][k], s * h[i][k] + c * h[j][k]
        y[k][i], y[k][j] = c * h[k][i] - s * h[k][j], s * h[k][i] + c * h[k][j]
        return np.array(y)

    def matrix(self) -> Array:
        i, j = _PLANE[self.axis]
        y: list[list[Any]] = [[1.0 if a == b else 0.0 for b in range(3)] for a in range(3)]
        y[i][i] = y[j][j] = self.c
        y[i][j], y[j][i] = -self.s, self.s
        return np.array(y)


@dataclass(frozen=True)
class General:
    """A rotation given by its matrix."""

    r: Array

    def inward(self, x: Array) -> Array:
        return self.r @ x

    def outward(self, x: Array) -> Array:
        return self.r.T @ x

    def congruent(self, m: Array) -> Array:
        return pack(self.conjugate(unpack(m)))

    def conjugate(self, h: Array) -> Array:
        return self.r @ h @ self.r.T

    def matrix(self) -> Array:
        return self.r


@dataclass(frozen=True)
class Chain:
    """Rotations one after another: R = R₁ R₂ ⋯ ; an empty chain is the identity."""

    parts: Sequence[Rotation]

    def inward(self, x: Array) -> Array:
        for part in reversed(self.parts):
            x = part.inward(x)
        return x

    def outward(self, x: Array) -> Array:
        for part in self.parts:
            x = part.outward(x)
        return x

    def congruent(self, m: Array) -> Array:
        for part in reversed(self.parts):
            m = part.congruent(m)
        return m

    def conjugate(self, h: Array) -> Array:
        for part in reversed(self.parts):
            h = part.conjugate(h)
        return h

    def matrix(self) -> Array:
        r: Array = np.eye(3)
        for part in self.parts:
            r = r @ part.matrix()
        return r


def joined(parts: Sequence[Rotation]) -> list[Rotation]:
    """The same chain with neighbouring turns about one axis made one: 6 operations that every vector then saves."""
    shortened: list[Rotation] = []
    for part in parts:
        last = shortened[-1] if shortened else None
        if isinstance(part, Turn) and isinstance(last, Turn) and part.axis == last.axis:
            c, s = last.c * part.c - last.s * part.s, last.s * part.c + last.c * part.s
            shortened[-1] = Turn(part.axis, c, s)
        else:
            shortened.append(part)
    return shortened


def euler_parameters_matrix(e: Array) -> Array:
    """The rotation matrix of unit Euler parameters e0..e3, scalar first."""
    return _matrix(e, e[1] + e[1], e[2] + e[2], e[3] + e[3])


def quaternion_matrix(e: Array) -> Array:
    """The rotation matrix of Euler parameters of any length, R(e / |e|); NaN where that is no direction.

    One division and no square root. It does not change as e is made longer, so that derivatives by e are those on the
    unit sphere.
    """
    double = 2.0 / squared_length(e)
    return _matrix(e, double * e[1], double * e[2], double * e[3])


def squared_length(e: Array) -> Any:
    """|e|², or NaN where |e| is zero, not a number, or not between 1e-15 and 1e15."""
    with np.errstate(all="ignore"):
        total = e[0] * e[0] + e[1] * e[1] + e[2] * e[2] + e[3] * e[3]
        return where(less(1e-30, total) * less(total, 1e30), total, np.nan)


def _matrix(e: Array, t1: Any, t2: Any, t3: Any) -> Array:
    e0, e1, e2, e3 = e
    t01, t02, t03 = t1 * e0, t2 * e0, t3 * e0
    t11, t12, t13 = t1 * e1, t2 * e1, t3 * e1
    t22, t23, t33 = t2 * e2, t3 * e2, t3 * e3
    return np.array(
        [
            [1.0 - (t22 + t33), t12 - t03, t13 + t02],
            [t12 + t03, 1.0 - (t11 + t33), t23 - t01],
            [t13 - t02, t23 + t01, 1.0 - (t11 + t22)],
        ]
    )


def quaternion_product(a: Array, b: Array) -> Array:
    """The Euler parameters of the rotation a followed, in its own frame, by b."""
    a0, a1, a2, a3 = a
    b0, b1, b2, b3 = b
    return np.array(
        [
            a0 * b0 - a1 * b1 - a2 * b2 - a3 * b3,
            a0 * b1 + a1 * b0 + a2 * b3 - a3 * b2,
            a0 * b2 - a1 * b3 + a2 * b0 + a3 * b1,
            a0 * b3 + a1 * b2 - a2 * b1 + a3 * b0,
        ]
    )


def euler_parameters(r: Array) -> Array:
    """Unit Euler parameters (4, ...) of rotation matrices `r` (3, 3, ...); e0 ≥ 0.

    >>> import numpy as np, linkwright as lw
    >>> lw.control.euler_parameters(np.eye(3)).tolist()
    [1.0, 0.0, 0.0, 0.0]

    Whether the matrices are rotations is not checked.
    """
    (a, b, c), (d, e, f), (g, h, i) = r
    # 4 e eᵀ: its column under the largest entry of the diagonal loses no digits.
    outer = np.array(
        [
            [1.0 + a + e + i, h - f, c - g, d - b],
            [h - f, 1.0 + a - e - i, b + d, c + g],
            [c - g, b + d, 1.0 - a + e - i, f + h],
            [d - b, c + g, f + h, 1.0 - a - e + i],
        ]
    )
    most, column = outer[0, 0], outer[:, 0]
    for k in range(1, 4):
        larger = outer[k, k] > most
        most, column = where(larger, outer[k, k], most), where(larger, outer[:, k], column)
    return column * (where(column[0] < 0.0, -1.0, 1.0) / np.sqrt(dot(column, column)))


def _half_angle(w: Array) -> tuple[Any, Any]:
    """cos(|w|/2) and sin(|w|/2)/|w|."""
    x = 0.25 * (w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    small = x < 1e-6
    safe = where(small, 1.0, x)
    root = np.sqrt(safe)
    cosine = where(small, 1.0 - x / 2 + x * x / 24, np.cos(root))
    sine = where(small, 0.5 * (1.0 - x / 6 + x * x / 120), 0.5 * np.sin(root) / root)
    return cosine, sine


def exponential(w: Array) -> Array:
    """Euler parameters of the rotation vector w."""
    c, s = _half_angle(w)
    return np.array([c, s * w[0], s * w[1], s * w[2]])


def normalised(e: Array) -> Array:
    """Euler parameters made a unit; NaN where their length is zero."""
    return e / np.sqrt(squared_length(e))


def logarithm(e: Array) -> Array:
    """The rotation vector of Euler parameters, at most a half turn."""
    flip = where(e[0] < 0.0, -1.0, 1.0)
    e0 = flip * e[0]
    square = e[1] * e[1] + e[2] * e[2] + e[3] * e[3]
    small = square < 1e-12
    size = np.sqrt(where(small, 1.0, square))
    near = where(small, e0, 1.0)
    factor = where(small, 2.0 / near * (1.0 - square / (3.0 * near * near)), 2.0 * arctan2(size, e0) / size)
    return flip * factor * e[1:4]


def _squared_angle(w: Array) -> tuple[Any, Any, Any]:
    """θ² for θ = |w|, whether it is so small that series are taken, and a number to divide by in place of it."""
    x = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    small = x < 1e-4
    return x, small, where(small, 1.0, x)


def _jacobian_factors(w: Array) -> tuple[Any, Any]:
    """(1 − cos θ)/θ² and (θ − sin θ)/θ³ for θ = |w|."""
    x, small, safe = _squared_angle(w)
    angle = np.sqrt(safe)
    first = where(small, 0.5 - x / 24 + x * x / 720, (1.0 - np.cos(angle)) / safe)
    second = where(small, 1.0 / 6 - x / 120 + x * x / 5040, (angle - np.sin(angle)) / (safe * angle))
    return first, second


def left_jacobian_times(w: Array, x: Array) -> Array:
    """The left Jacobian of the rotation vector w, times x."""
    a, b = _jacobian_factors(w)
    first = cross(w, x)
    return x + a * first + b * cross(w, first)


def left_jacobian_inverse_times(w: Array, x: Array) -> Array:
    """The inverse of the left Jacobian of the rotation vector w, times x."""
    a, b = _jacobian_factors(w)
    square, small, safe = _squared_angle(w)
    # (1 − θ sin θ / (2 (1 − cos θ)))/θ², with its series near zero.
    factor = where(
        small, 1.0 / 12 + square / 720 + square * square / 30240, (1.0 - (1.0 - b * square) / (2.0 * a)) / safe
    )
    first = cross(w, x)
    return x - 0.5 * first + factor * cross(w, first)


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
        moved = h + by_column(lambda column: cross(p, column), unpack(m))
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
