"""Small vectors and matrices in NumPy syntax, over floats and recorded scalars alike.

Twists are [v; ω] and wrenches [f; l], linear part first. A symmetric 3×3 is packed as xx, yy, zz, xy, xz, yz.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any  # an array of floats or of recorded scalars

# Where the packed symmetric matrix keeps entry (i, j).
PACKED = ((0, 3, 4), (3, 1, 5), (4, 5, 2))


def cross(a: Array, b: Array) -> Array:
    """a × b."""
    a0, a1, a2 = a
    b0, b1, b2 = b
    return np.array([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0])


def point_velocity(v: Array, omega: Array, arm: Array) -> Array:
    """v + ω × r: the velocity of a point of a body, from that of another point; r leads from there to it."""
    return v + cross(omega, arm)


def centripetal(omega: Array, arm: Array) -> Array:
    """ω × (ω × r)."""
    return cross(omega, cross(omega, arm))


def point_acceleration(a: Array, alpha: Array, omega: Array, arm: Array) -> Array:
    """a + α × r + ω × (ω × r): the acceleration of a point of a body, from that of another point of it."""
    return a + cross(alpha, arm) + centripetal(omega, arm)


def wrench_at(force: Array, moment: Array, arm: Array) -> Array:
    """[f; l + r × f]: a force and a moment at a point, as a wrench at the point from which r leads there."""
    return np.concatenate([force, moment + cross(arm, force)])


def dot(a: Array, b: Array) -> Any:
    """Σ aᵢbᵢ."""
    total = a[0] * b[0]
    for k in range(1, len(a)):
        total = total + a[k] * b[k]
    return total


def length(a: Array) -> Any:
    """√(Σ aᵢ²), never zero: that of nothing is 3·10⁻¹⁹, so that a / length(a) is 0 there, and has derivatives.

    Where a is 10⁻¹⁰ or longer, not a bit differs; the number is the least that float32 has too.
    """
    return np.sqrt(dot(a, a) + 1e-37)


def unpack(s: Array) -> Array:
    """The full matrix of a packed symmetric one."""
    return np.array([[s[0], s[3], s[4]], [s[3], s[1], s[5]], [s[4], s[5], s[2]]])


def pack(m: Array) -> Array:
    """The packed form of a symmetric matrix, from its upper triangle."""
    return np.array([m[0, 0], m[1, 1], m[2, 2], m[0, 1], m[0, 2], m[1, 2]])


def pack_symmetric(m: Array) -> Array:
    """The upper triangle of a symmetric matrix of any size, row by row."""
    n = len(m)
    return np.array([m[i, j] for i in range(n) for j in range(i, n)])


def unpack_symmetric(s: Array, n: int) -> Array:
    """The full matrix (n, n) of its upper triangle, row by row."""
    at = [[0] * n for _ in range(n)]
    k = 0
    for i in range(n):
        for j in range(i, n):
            at[i][j] = at[j][i] = k
            k += 1
    return np.asarray(s)[at]


def symmetric_product(a: Array, b: Array) -> Array:
    """The upper triangle of A B, which is symmetric, row by row."""
    return np.array([dot(a[i], b[:, j]) for i in range(len(a)) for j in range(i, len(a))])


def symmetric_times(s: Array, x: Array) -> Array:
    """S x for a packed symmetric S."""
    x0, x1, x2 = x
    return np.array(
        [
            s[0] * x0 + s[3] * x1 + s[4] * x2,
            s[3] * x0 + s[1] * x1 + s[5] * x2,
            s[4] * x0 + s[5] * x1 + s[2] * x2,
        ]
    )


def motion_cross(w: Array, u: Array) -> Array:
    """w × u of two twists: [ω × v' + v × ω'; ω × ω']."""
    v, o = w[:3], w[3:]
    return np.concatenate([cross(o, u[:3]) + cross(v, u[3:]), cross(o, u[3:])])


def force_cross(w: Array, f: Array) -> Array:
    """w ×* f of a twist and a wrench: [ω × f; v × f + ω × l]."""
    v, o = w[:3], w[3:]
    return np.concatenate([cross(o, f[:3]), cross(v, f[:3]) + cross(o, f[3:])])


def inertia_times(mass: Any, moment: Array, inertia: Array, w: Array) -> Array:
    """M w of a rigid body: mass m, first moment h = m·r, packed inertia about the origin."""
    v, o = w[:3], w[3:]
    linear = mass * v - cross(moment, o)
    return np.concatenate([linear, symmetric_times(inertia, o) + cross(moment, v)])


def is_zero(x: Any) -> bool:
    """Whether an entry is zero by structure: the number 0, or a recorded constant 0."""
    return bool(getattr(x, "value", x) == 0.0)


def ldl(d: Array) -> tuple[Array, list[Any]]:
    """L (unit lower) and 1/diag of a symmetric positive D = L diag Lᵀ; the lower triangle is read."""
    n = len(d)
    lower: list[list[Any]] = [[0.0] * n for _ in range(n)]
    scaled: list[list[Any]] = [[0.0] * n for _ in range(n)]
    inverse: list[Any] = []
    for j in range(n):
        pivot = d[j][j]
        for k in range(j):
            pivot = pivot - lower[j][k] * scaled[j][k]
        if is_zero(pivot):
            raise ZeroDivisionError(f"pivot {j} is zero")
        inverse.append(1.0 / pivot)
        for i in range(j + 1, n):
            entry = d[i][j]
            for k in range(j):
                entry = entry - lower[i][k] * scaled[j][k]
            scaled[i][j] = entry
            lower[i][j] = entry * inverse[j]
    return lower, inverse


def ldl_solve(lower: Array, inverse: list[Any], b: Array) -> Array:
    """D⁻¹ b for the factors of `ldl`."""
    n = len(inverse)
    x = list(b)
    for i in range(n):
        for k in range(i):
            x[i] = x[i] - lower[i][k] * x[k]
    for i in range(n):
        x[i] = x[i] * inverse[i]
    for i in reversed(range(n)):
        for k in range(i + 1, n):
            x[i] = x[i] - lower[k][i] * x[k]
    return np.array(x)
