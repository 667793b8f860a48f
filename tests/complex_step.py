"""Derivatives by complex step: the tape evaluated at q + ih has the derivative in its imaginary part."""

from __future__ import annotations

from typing import Any

import numpy as np

STEP = 1e-30


def inverse_dynamics_jacobians(mech: Any, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """∂tau/∂q (tangent) and ∂tau/∂v of a mechanism's recorded inverse dynamics, column by column."""
    block = mech.program("inverse_dynamics", form="unrolled").blocks[0]
    rate = mech.program("rate", form="unrolled").blocks[0]

    def tau(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.array(block.evaluate([*q, *v, *a]), dtype=complex)

    n = mech.nv
    by_q, by_v = np.empty((n, n)), np.empty((n, n))
    for k in range(n):
        unit = np.eye(n)[k]
        moved = np.array([float(x) for x in rate.evaluate([*q, *unit])])
        by_q[:, k] = tau(q + 1j * STEP * moved, v.astype(complex)).imag / STEP
        by_v[:, k] = tau(q.astype(complex), v + 1j * STEP * unit).imag / STEP
    return by_q, by_v
