"""Roots of the equations of rest as numbers: a damped Newton method from many starts at once."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.symbolic.equilibria.balance import Balance

ITERATIONS = 80
FARTHEST = 0.5  # of one step, in rad, or of the mechanism's length
REACH = 3.0  # how far from zero shifts begin, in that length
DONE = 1e-11  # of the largest force that was met
SAME = 1e-6


def roots(balance: Balance, parameters: Mapping[str, float], starts: int, seed: int) -> list[Floats]:
    """Points where f is zero, each once but for whole turns; coordinates that f does not depend on are zero."""
    moving = [j for j in range(balance.n) if j not in balance.free]
    if not moving:
        return [] if balance.unbalanced(parameters) else [np.zeros(balance.n)]
    units = balance.units(parameters)
    q = _starts(balance, moving, starts, seed)

    def at(q: Floats) -> tuple[Floats, Floats]:
        """f and K of coordinates without units, both as energies."""
        f, k = balance.at(q * units, parameters)
        return f * units, k * units * units[:, None]

    f, k = at(q)
    scale, stiff = (max(float(np.abs(x).max()), 1e-300) for x in (f, k))
    damping = np.full(len(q), 1e-3)
    active = np.arange(len(q))
    for _ in range(ITERATIONS):
        a, b = k[active][:, :, moving], f[active]
        step = _step(a / stiff, b / stiff, damping[active])
        step *= np.minimum(1.0, FARTHEST / np.maximum(np.abs(step).max(axis=1, initial=0.0), 1e-300))[:, None]
        moved = q[active].copy()
        moved[:, moving] += step
        new_f, new_k = at(moved)
        better = (new_f**2).sum(axis=1) < (b**2).sum(axis=1)
        which = active[better]
        q[which], f[which], k[which] = moved[better], new_f[better], new_k[better]
        damping[active] = np.where(better, np.maximum(damping[active] * 0.2, 1e-13), damping[active] * 8.0)
        active = active[(np.abs(f[active]).max(axis=1) > 1e-15 * scale) & (damping[active] < 1e12)]
        if not len(active):
            break
    done = np.isfinite(f).all(axis=1) & (np.abs(f).max(axis=1) <= DONE * scale)
    return [x * units for x in _once(balance, q[done])]


def _starts(balance: Balance, moving: list[int], count: int, seed: int) -> Floats:
    """Quarter turns first, some of them if there are many, then places at random; without units."""
    rng = np.random.default_rng(seed)
    n = len(moving)
    half = max(count // 2, 1)
    if 4**n <= half:
        square = np.stack(np.meshgrid(*[np.arange(4)] * n, indexing="ij"), axis=-1).reshape(-1, n)
    else:
        square = rng.integers(0, 4, (half, n))
    turns = np.isfinite(balance.periods[moving])
    reach = np.where(turns, np.where(turns, balance.periods[moving], 0.0) / 2.0, REACH)
    random = rng.uniform(-1.0, 1.0, (max(count - len(square), 0), n)) * reach
    q = np.zeros((len(square) + len(random), balance.n))
    # A little beside: at a quarter turn slopes often vanish by symmetry.
    q[:, moving] = np.concatenate([square * (pi / 2) + rng.uniform(-0.05, 0.05, square.shape), random])
    return q


def _step(a: Floats, b: Floats, damping: Floats) -> Floats:
    """The step of Levenberg and Marquardt: (AᵀA + damping · size) step = −Aᵀ b."""
    square = np.einsum("bji,bjk->bik", a, a)
    size = np.maximum(np.einsum("bii->b", square), 1e-12) / a.shape[2]
    square = square + (damping * size)[:, None, None] * np.eye(a.shape[2])
    step: Floats = np.linalg.solve(square, -np.einsum("bji,bj->bi", a, b)[..., None])[..., 0]
    return step


def _once(balance: Balance, q: Floats) -> list[Floats]:
    """Each point without units once, its angles in (−period/2, period/2]."""
    period = np.where(np.isfinite(balance.periods), balance.periods, 1.0)
    turns = np.isfinite(balance.periods)
    q = np.where(turns, q - period * np.ceil(q / period - 0.5 - SAME / 10.0), q)
    different: list[Floats] = []
    for x in q:
        apart = balance.apart(np.array(different).reshape(-1, balance.n) - x)
        if not (apart.max(axis=1, initial=0.0) < SAME).any():
            different.append(x)
    return different
