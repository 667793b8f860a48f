"""Linear models by central differences of fourth order on consistent states: the oracle of `Mechanism.linearise`.

Steps are proportional to the mechanism's size and shrink until two sizes agree, so that stops near the state have no
influence.
"""

from __future__ import annotations

import numpy as np

import linkwright as lw
from linkwright.base.arrays import Floats
from linkwright.dynamics.closed.redundancy import allowed, constraint_jacobian, inverse
from linkwright.dynamics.equilibrium import Linearised, _turning

State = tuple[Floats, Floats, Floats, float]  # q, v, tau and t
STEP = 2e-3  # of the differences, in rad and in the mechanism's size, and of rates as parts of the mechanism's pace
SHORTER = 1.0 / 30.0  # each further try
AGREE, TRIES = 1e-6, 3  # what two tries may differ by, as a part of the largest entry; and how many there are
_SIDES = np.array([1.0, -1.0, 2.0, -2.0])


def _slope(values: Floats) -> Floats:
    """The derivative by central differences of fourth order, from values at `STEP` times `_SIDES`."""
    return np.asarray((8.0 * (values[0] - values[1]) - (values[2] - values[3])) / (12.0 * STEP))


def by_differences(mech: lw.Mechanism, q: Floats, v: Floats, tau: Floats, t: float) -> Linearised:
    g, _ = constraint_jacobian(mech, q, t)
    z, p = allowed(mech, g)
    d, nv = z.shape[1], mech.nv
    scale, pace, best = 1.0, _pace(mech, (q, v, tau, t), z), np.inf
    a = shorter = _differences(mech, (q, v, tau, t), (z, p), scale, pace)
    for _ in range(TRIES):
        scale *= SHORTER
        longer, shorter = shorter, _differences(mech, (q, v, tau, t), (z, p), scale, pace)
        apart = float(np.abs(shorter - longer).max(initial=0.0))
        if apart < best:  # of the two, longer steps have less of rounding
            best, a = apart, longer
        if best <= AGREE * float(np.abs(a).max(initial=0.0)):
            break
    many = [np.tile(x, (nv, 1)) for x in (q, v, tau)]
    pushed = mech.forward_dynamics(many[0], many[1], many[2] + np.eye(nv), t=t)
    change = pushed - mech.forward_dynamics(many[0], many[1], many[2], t=t)
    return Linearised(a, np.concatenate([np.zeros((d, nv)), p @ change.T]), z, p)


def _column_units(mech: lw.Mechanism, z: Floats) -> Floats:
    """(d,): how far to go along each column of Z, so that its largest part is 1 rad or the mechanism's length."""
    return np.asarray(1.0 / np.maximum(np.abs(z / mech.programs.rate_units[:, None]).max(axis=0, initial=0.0), 1e-300))


def _pace(mech: lw.Mechanism, state: State, z: Floats) -> float:
    """How fast things happen around a state (1/s): its rates, or the root of its accelerations and stiffnesses."""
    (q, v, tau, t), units = state, mech.programs.rate_units
    y = STEP * (z * _column_units(mech, z)).T
    pushed = _pushed(mech, state, y, np.zeros_like(y))[2]
    here = mech.forward_dynamics(q, v, tau, t=t)
    stiff = np.max(np.abs(pushed - here) / units, initial=0.0) / STEP
    squares = max(float(stiff), float(np.max(np.abs(here) / units, initial=0.0)))
    pace = max(float(np.max(np.abs(v) / units, initial=0.0)), float(np.sqrt(squares)))
    return pace if np.isfinite(pace) and pace > 0.0 else 1.0


def _differences(mech: lw.Mechanism, state: State, basis: tuple[Floats, Floats], scale: float, pace: float) -> Floats:
    """A at q, v, tau and t, on Z and P, by steps that are so much shorter than `STEP`."""
    (q, v, tau, t), (z, p) = state, basis
    d = z.shape[1]
    unit = scale * _column_units(mech, z)
    both = np.concatenate([unit, pace * unit])
    moves = np.einsum("s,kx->skx", STEP * _SIDES, np.diag(both))  # (4, 2d, 2d)
    moved, rates, acceleration = _pushed(mech, state, moves[..., :d] @ z.T, moves[..., d:] @ z.T)
    away = mech.difference(np.ascontiguousarray(np.broadcast_to(q, moved.shape)), moved)
    drift = (rates - v - away @ _turning(mech, v).T) @ p.T
    change = np.concatenate([drift, (acceleration - mech.forward_dynamics(q, v, tau, t=t)) @ p.T], axis=-1)
    return np.asarray(_slope(change).T / both)


def _pushed(mech: lw.Mechanism, state: State, y: Floats, u: Floats) -> tuple[Floats, Floats, Floats]:
    """The consistent states beside one, moved by y (..., nv) and faster by u, and their accelerations."""
    q, v, tau, t = state
    here = np.ascontiguousarray(np.broadcast_to(q, (*y.shape[:-1], len(q))))
    moved = mech.integrate(here, np.ascontiguousarray(y))
    rates = np.ascontiguousarray(v + u)
    if mech.closed:
        moved, _ = mech.project(moved, None, t=t)
        g, phi_t = constraint_jacobian(mech, moved, t)
        wrong = np.einsum("...ij,...j->...i", g, rates) + phi_t
        rates = rates - np.einsum("...ij,...j->...i", inverse(mech, g), wrong)
    force = np.ascontiguousarray(np.broadcast_to(tau, rates.shape))
    return moved, rates, mech.forward_dynamics(moved, rates, force, t=t)
