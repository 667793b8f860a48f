"""The tree's constraint Jacobian at a state and the motions that it allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from linkwright.model import Mechanism

Floats = NDArray[np.float64]
#: A singular value of G below this part of the largest counts as zero.
RANK = 1e-9


def constraint_jacobian(mech: Mechanism, q: Floats, t: Any = 0.0) -> tuple[Floats, Floats]:
    """G (..., m, nv) and Φ_t (..., m): the constraints' rates are G v + Φ_t."""
    nv = mech.nv
    batch = q.shape[:-1]
    if not mech.closed:
        return np.zeros((*batch, 0, nv)), np.zeros((*batch, 0))
    rates = np.concatenate([np.zeros((1, nv)), np.eye(nv)])
    every = np.broadcast_to(q[..., None, :], (*batch, nv + 1, q.shape[-1]))
    when = t if np.ndim(t) == 0 else np.broadcast_to(np.asarray(t)[..., None], (*batch, nv + 1))
    _, found = mech._weighed._settling(every, np.broadcast_to(rates, (*batch, nv + 1, nv)), when)
    still = found[..., :1, :]
    return np.swapaxes(found[..., 1:, :] - still, -1, -2), still[..., 0, :]


def scaled(mech: Mechanism, g: Floats) -> Floats:
    """G (..., m, nv) without units: lengths and shifts as parts of the mechanism's length."""
    return np.asarray(g * mech._maker.rate_units / mech._maker.constraint_units[:, None])


def inverse(mech: Mechanism, g: Floats) -> Floats:
    """(..., nv, m): the generalised inverse of G with the least change of rates, shifts counted in its length."""
    pseudoinverse = np.linalg.pinv(scaled(mech, g), rcond=RANK)
    return np.asarray(pseudoinverse * mech._maker.rate_units[:, None] / mech._maker.constraint_units)


def allowed(mech: Mechanism, g: Floats) -> tuple[Floats, Floats]:
    """Z (nv, d): a basis of the rates with G v = 0 for one state, and P (d, nv) with P Z = 1.

    Z is orthonormal where shifts are counted in the mechanism's length, so that it is the same in every unit; what P
    leaves out of rates is perpendicular to it in that sense.
    """
    nv = g.shape[1]
    if not g.shape[0]:
        return np.eye(nv), np.eye(nv)
    _, sizes, directions = np.linalg.svd(scaled(mech, g))
    rank = int(np.sum(sizes > RANK * max(sizes[0], 1e-300)))
    free, units = np.asarray(directions[rank:].T), mech._maker.rate_units
    return units[:, None] * free, free.T / units
