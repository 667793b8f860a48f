"""Small vectors and matrices in NumPy syntax, over floats and recorded scalars alike; inverses of small symmetric
matrices.

Twists are [v; ω] and wrenches [f; l], linear part first. A symmetric 3×3 is packed as xx, yy, zz, xy, xz, yz.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from linkwright.tape.block import equal, maximum, minimum, where

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


def skew(a: Array) -> Array:
    """ã (3, 3, ...) with ã b = a × b, of a vector or of many, their components first."""
    zero = 0.0 * a[0]
    return np.array([[zero, -a[2], a[1]], [a[2], zero, -a[0]], [-a[1], a[0], zero]])


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


#: A pivot below this part of its reference counts as zero.
RANK_TOLERANCE = 1e-10


def inverse(d: Array) -> Array:
    """D⁻¹ of a symmetric positive D; the lower triangle is read."""
    n = len(d)
    lower, pivots = ldl(d)
    # Column j of L⁻¹, which is unit lower triangular.
    columns: list[list[Any]] = []
    for j in range(n):
        x: list[Any] = [0.0] * j + [1.0]
        for i in range(j + 1, n):
            entry = -lower[i][j]
            for k in range(j + 1, i):
                entry = entry - lower[i][k] * x[k]
            x.append(entry)
        columns.append(x)
    scaled = [[p * y for p, y in zip(pivots, x, strict=True)] for x in columns]
    rows: list[list[Any]] = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i, n):
            entry = scaled[j][j] * columns[i][j]
            for k in range(j + 1, n):
                entry = entry + scaled[j][k] * columns[i][k]
            rows[i][j] = rows[j][i] = entry
    return np.array(rows).reshape(n, n)


def swept(d: Array, reference: Array, tolerance: float) -> tuple[Array, list[Any]]:
    """G with D G D = D of a symmetric semidefinite D, by sweeps in the order of the rows; and the pivots met.

    A pivot that is at most `tolerance` of its entry in `reference`, the row's scale before anything was
    eliminated, counts as zero, and its row and column of G are zero: that equation repeats those before it.
    """
    n = len(d)
    a: list[list[Any]] = [[d[i][j] for j in range(n)] for i in range(n)]
    pivots: list[Any] = []
    for k in range(n):
        pivot = a[k][k]
        pivots.append(pivot)
        if is_zero(pivot) or is_zero(reference[k]):
            part: Any = 0.0
        else:
            skip = pivot <= tolerance * reference[k]  # false for NaN, which so stays
            part = where(skip, 0.0, 1.0 / where(skip, 1.0, pivot))
        column = [a[i][k] for i in range(n)]
        share = [x * part for x in column]
        for i in range(n):
            for j in range(i, n):
                if k not in (i, j):
                    a[i][j] = a[j][i] = a[i][j] - share[i] * column[j]
        for i in range(n):
            a[i][k] = a[k][i] = share[i]
        a[k][k] = -part
    return np.array([[-x for x in row] for row in a]).reshape(n, n), pivots


@dataclass(frozen=True, eq=False)
class Limit:
    """What counts as zero at a step: a pivot of at most this part of its row's entry in `references`."""

    part: Any
    references: Array


class Pivoted:
    """A generalised inverse of a symmetric semidefinite D, whose pivots are chosen by size when the code runs.

    Of the rows left, the one whose pivot is the largest part of its entry in `scales` goes next, so that rows that are
    nearly dependent for a moment wait for others that are not. `limits` has an entry a step, the most of them taken: a
    pivot that is no more than that counts as zero, and its equation repeats others. Rows that are zero by structure
    take no part.
    """

    def __init__(self, d: Array, scales: Array, limits: Sequence[Limit]) -> None:
        self.size = len(d)
        self.rows = [k for k in range(self.size) if not is_zero(d[k][k])]
        self.steps: list[_Step] = []
        a = {(i, j): d[i][j] for i in self.rows for j in self.rows if i <= j}
        weights = {k: 1.0 / scales[k] for k in self.rows}
        for number, limit in enumerate(limits[: len(self.rows)]):
            step = self._choose(a, weights, limit)
            self.steps.append(step)
            if number + 1 == min(len(limits), len(self.rows)):
                break
            for i, j in a:
                a[i, j] = a[i, j] - step.column[i] * step.share[j]
            weights = {k: where(step.chosen[k], 0.0, w) for k, w in weights.items()}

    def _choose(self, a: dict[tuple[int, int], Any], weights: dict[int, Any], limit: Limit) -> _Step:
        first, *others = self.rows
        best, number = a[first, first] * weights[first], 0.0 * weights[first]
        pivot, reference = a[first, first], limit.references[first]
        column = {i: a[first, i] for i in self.rows}
        for k in others:
            part = a[k, k] * weights[k]
            larger = part > best
            best, number = where(larger, part, best), where(larger, float(k - first), number)
            pivot, reference = where(larger, a[k, k], pivot), where(larger, limit.references[k], reference)
            column = {i: where(larger, a[min(i, k), max(i, k)], c) for i, c in column.items()}
        skip = pivot <= limit.part * reference  # false for NaN, which so stays
        inverse = where(skip, 0.0, 1.0 / where(skip, 1.0, pivot))
        chosen = {k: equal(number, float(k - first)) for k in self.rows}
        share = {i: c * inverse for i, c in column.items()}
        return _Step(chosen, column, share, inverse, best)

    def solve(self, right: Array) -> Array:
        """x with D x = r, where that can be solved, for a vector or the columns of a matrix."""
        if right.ndim == 2:
            return np.stack([self.solve(column) for column in right.T], axis=1)
        left = {k: right[k] for k in self.rows}
        pivot_values: list[Any] = []
        for number, step in enumerate(self.steps):
            picked: Any = left[self.rows[0]]
            for k in self.rows[1:]:
                picked = where(step.chosen[k], left[k], picked)
            pivot_values.append(picked)
            if number + 1 < len(self.steps):
                left = {k: x - step.share[k] * picked for k, x in left.items()}
        x: dict[int, Any] = dict.fromkeys(self.rows, 0.0)
        for step, picked in zip(reversed(self.steps), reversed(pivot_values), strict=True):
            value = picked * step.inverse
            for k in self.rows:
                value = value - step.share[k] * x[k]
            x = {k: where(step.chosen[k], value, entry) for k, entry in x.items()}
        return np.array([x.get(k, 0.0) for k in range(self.size)])

    def parts(self) -> list[Any]:
        """The pivot of every row as a part of its scale; 0 for one that none was left for."""
        none = [0.0] * self.size
        for k in self.rows:
            none[k] = reduce(maximum, [where(step.chosen[k], step.part, 0.0) for step in self.steps], 0.0)
        return none

    def least(self, count: int) -> Any:
        """The least of the first `count` pivots, as parts of their rows' scales."""
        return reduce(minimum, [step.part for step in self.steps[:count]], 1.0)


class LeastSquares(Pivoted):
    """The same for equations that contradict each other a little: the pseudoinverse, by the scales of the rows.

    Which rows are chosen changes from state to state. Where loops are a little open, or rounded numbers leave a gap,
    rows that repeat others do not quite, and another choice would be another answer: both sides are projected
    onto what all rows have in common, so that it changes smoothly with the state.
    """

    def __init__(self, d: Array, scales: Array, limits: Sequence[Limit]) -> None:
        super().__init__(d, scales, limits)
        self.roots = {k: np.sqrt(scales[k]) for k in self.rows}
        self.basis: list[dict[int, Any]] = []
        scaled = {(i, j): d[i][j] / (self.roots[i] * self.roots[j]) for i in self.rows for j in self.rows if i <= j}
        for step in self.steps:
            # D once more takes the square of a gap out of what the chosen rows have alone.
            column = {k: step.share[k] / self.roots[k] for k in self.rows}
            image = {i: _dot({j: scaled[min(i, j), max(i, j)] for j in self.rows}, column) for i in self.rows}
            for _ in range(2):
                image = self._without(image)
            square = _dot(image, image)
            none = square <= 0.0
            length = where(none, 0.0, 1.0 / np.sqrt(where(none, 1.0, square)))
            self.basis.append({k: x * length for k, x in image.items()})

    def _without(self, vector: dict[int, Any]) -> dict[int, Any]:
        for unit in self.basis:
            part = _dot(unit, vector)
            vector = {k: x - part * unit[k] for k, x in vector.items()}
        return vector

    def _within(self, vector: dict[int, Any]) -> dict[int, Any]:
        parts = [_dot(unit, vector) for unit in self.basis]
        return {k: _dot({n: unit[k] for n, unit in enumerate(self.basis)}, dict(enumerate(parts))) for k in vector}

    def solve(self, right: Array) -> Array:
        """x with D x = r, as nearly as can be."""
        if right.ndim == 2:
            return super().solve(right)
        near = self._within({k: right[k] / self.roots[k] for k in self.rows})
        x = super().solve(np.array([near[k] * self.roots[k] if k in near else 0.0 for k in range(self.size)]))
        shared = self._within({k: x[k] * self.roots[k] for k in self.rows})
        return np.array([shared[k] / self.roots[k] if k in shared else 0.0 for k in range(self.size)])


def _dot(a: dict[int, Any], b: dict[int, Any]) -> Any:
    return dot([a[k] for k in a], [b[k] for k in a]) if a else 0.0


@dataclass(frozen=True)
class _Step:
    """One pivot: 1 for the row chosen and 0 for the others; its column, that over the pivot; 1/pivot, or 0; and the
    pivot as a part of the row's scale."""

    chosen: dict[int, Any]
    column: dict[int, Any]
    share: dict[int, Any]
    inverse: Any
    part: Any


def semidefinite_factor(a: Array) -> Array:
    """A lower G with G Gᵀ = A of a symmetric matrix that is positive or zero along every direction.

    A column whose pivot is lost in rounding is zero.
    """
    n = len(a)
    g: list[list[Any]] = [[0.0] * n for _ in range(n)]
    for j in range(n):
        pivot = a[j][j]
        for k in range(j):
            pivot = pivot - g[j][k] * g[j][k]
        there = pivot > 1e-15 * a[j][j]
        root = np.sqrt(where(there, pivot, 1.0))
        scale = where(there, 1.0 / root, 0.0)
        g[j][j] = where(there, root, 0.0)
        for i in range(j + 1, n):
            entry = a[i][j]
            for k in range(j):
                entry = entry - g[i][k] * g[j][k]
            g[i][j] = entry * scale
    return np.array(g)


def ground_acceleration(gravity: Array) -> Array:
    """The acceleration of ground, whose acceleration against gravity stands for the weights of all links."""
    return np.concatenate([-gravity, np.zeros(3)])
