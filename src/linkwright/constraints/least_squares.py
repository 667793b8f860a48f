"""Least squares of small dense systems, in two levels: what must hold, and what is then missed least.

A system with a number that is not finite has the solution NaN, where LAPACK would not return one.
"""

from __future__ import annotations

import numpy as np

from linkwright.base.arrays import Floats

#: Singular values below this part of the largest are rounding.
RANK = 1e-10
#: The same of equations that must hold, whose basis of free motions should not hold a stiff direction.
HELD_RANK = 1e-8
#: Where rounded numbers leave a gap in redundant constraints, singular values below so many times that gap, as a part
#: of the mechanism's size, are rounding too.
GAPS = 50.0


def least(matrix: Floats, right: Floats) -> Floats:
    """The least solution of least squares."""
    if not np.isfinite(matrix).all():
        return np.full((matrix.shape[1], *right.shape[1:]), np.nan)
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=RANK)[0])


def split(g: Floats, right: Floats) -> tuple[Floats, Floats]:
    """The least solution of g x = right, and a basis of what g leaves free."""
    n = g.shape[1]
    if not len(g):
        return np.zeros(n), np.eye(n)
    if not np.isfinite(g).all():
        return np.full(n, np.nan), np.eye(n)
    u, s, vt = np.linalg.svd(g)
    rank = int(np.sum(s > HELD_RANK * max(float(s.max(initial=0.0)), 1e-300)))
    return vt[:rank].T @ ((u[:, :rank].T @ right) / s[:rank]), vt[rank:].T


def damped(matrix: Floats, right: Floats, damping: float) -> Floats:
    """The step of least squares, shorter with damping."""
    if not damping:
        return least(matrix, right)
    scale = float(np.sum(matrix**2) + np.linalg.norm(right)) + 1e-300  # what is left counts by its curvature
    normal = matrix.T @ matrix + damping * scale * np.eye(matrix.shape[1])
    return np.asarray(np.linalg.solve(normal, matrix.T @ right))
