"""Rates at an initial state: the least that keep the mechanism closed and are as given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.constraints.least_squares import least, split
from linkwright.dynamics.closed.initial_conditions import EXACT, Conditions


def least_rates(c: Conditions, q: Floats, some: Sequence[int]) -> tuple[Floats, Floats]:
    """The least v that keeps the mechanism closed and misses some given rates least, and by how much (scaled)."""
    if not c.mech.closed and all(k in c.entries for k in some):  # a tree of any size: nothing to solve
        v = c.direct_rates(some)
        return v, (c.wanted - c.mech.kernels.initial_values(q, v)[1])[list(some)] / c.units[list(some)]
    g, right = c.constraint_rates(q)
    back, free = split(g, right)
    chosen = list(some)
    slopes = c.measured(q[None])[1][0][chosen] * c.columns / c.units[chosen][:, None]
    wanted = c.wanted[chosen] / c.units[chosen]
    v = back + free @ least(slopes @ free, wanted - slopes @ back)
    return v * c.columns, wanted - slopes @ v


def rates_met(c: Conditions, some: Sequence[int], missing: Floats) -> bool:
    """Whether the given rates are there to their digits."""
    scale = float(np.max(np.abs(c.wanted[c.rates] / c.units[c.rates]), initial=0.0))
    roundings = [c.rounding(k, scale) for k in some]
    return bool(np.linalg.norm(missing) <= max(float(np.linalg.norm(roundings)), 10.0 * EXACT * scale))


def undetermined_rates(c: Conditions, q: Floats) -> list[int]:
    """The given rates that constraints and drivers leave free."""
    if not c.rates:
        return []
    _, free = split(*c.constraint_rates(q))
    slopes = c.measured(q[None])[1][0][c.rates] * c.columns
    moves = np.linalg.norm(slopes @ free, axis=1) > 1e-8 * np.linalg.norm(slopes, axis=1)
    return [k for k, free_rate in zip(c.rates, moves, strict=True) if free_rate]
