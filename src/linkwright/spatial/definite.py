"""Inverses of small symmetric matrices, positive definite or semidefinite, in straight-line code over any scalar."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwright.spatial.algebra import Array, is_zero, ldl
from linkwright.tape.functions import where

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


def generalised_inverse(d: Array, reference: Array) -> Array:
    """G with D G D = D of a symmetric semidefinite D: see `swept`."""
    return swept(d, reference, RANK_TOLERANCE)[0]


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
