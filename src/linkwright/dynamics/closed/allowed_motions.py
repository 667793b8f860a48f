"""The tree's constraint Jacobian at a state and the motions that it allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.base.arrays import Floats

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

#: A singular value of G below this part of the largest counts as zero.
MOTION_RANK = 1e-9


def constraint_jacobian(mech: Mechanism, q: Floats, t: Any = 0.0) -> tuple[Floats, Floats]:
    """G (..., m, nv) and Φ_t (..., m): the constraints' rates are G v + Φ_t."""
    nv = mech.nv
    batch = q.shape[:-1]
    if not mech.closed:
        return np.zeros((*batch, 0, nv)), np.zeros((*batch, 0))
    units = mech.programs.rate_units
    still = np.zeros((*batch, len(mech.programs.constraint_units)))
    if mech.programs.needs_time:
        still = mech.auxiliary.weighed.kernels.velocity_projection(q, np.zeros((*batch, nv)), t)[1]
        # Rates as fast as what drivers ask for, so that these do not swallow them.
        pace = float(np.max(np.abs(still) / mech.programs.constraint_units, initial=0.0, where=np.isfinite(still)))
        units = units * (pace or 1.0)
    every = np.broadcast_to(q[..., None, :], (*batch, nv, q.shape[-1]))
    when = t if np.ndim(t) == 0 else np.broadcast_to(np.asarray(t)[..., None], (*batch, nv))
    _, rates = mech.auxiliary.weighed.kernels.velocity_projection(
        every, np.broadcast_to(np.diag(units), (*batch, nv, nv)), when
    )
    return np.swapaxes(rates - still[..., None, :], -1, -2) / units, still


def inverse(mech: Mechanism, g: Floats) -> Floats:
    """(..., nv, m): the generalised inverse of G with the least change of rates, shifts counted in its length."""
    pseudoinverse = np.linalg.pinv(mech.programs.without_units(g), rcond=MOTION_RANK)
    return np.asarray(pseudoinverse * mech.programs.rate_units[:, None] / mech.programs.constraint_units)


def allowed(mech: Mechanism, g: Floats) -> tuple[Floats, Floats]:
    """Z (nv, d): a basis of the rates with G v = 0 for one state, and P (d, nv) with P Z = 1.

    Z is orthonormal where shifts are counted in the mechanism's length, so that it is the same in every unit; what P
    leaves out of rates is perpendicular to it in that sense.
    """
    nv = g.shape[1]
    if not g.shape[0]:
        return np.eye(nv), np.eye(nv)
    _, sizes, directions = np.linalg.svd(mech.programs.without_units(g))
    rank = int(np.sum(sizes > MOTION_RANK * max(sizes[0], 1e-300)))
    free, units = np.asarray(directions[rank:].T), mech.programs.rate_units
    return units[:, None] * free, free.T / units
