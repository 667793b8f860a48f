"""Singular positions: whether a position is one, and the equations that depend on each other there and not around."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arrays import Floats
from linkwright.dynamics.closed.consistent import one
from linkwright.dynamics.closed.redundancy import (
    SINGULAR,
    Position,
    allowed,
    assembled_positions,
    constraint_jacobian,
)
from linkwright.errors import LinkwrightError

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

#: How far, in joint coordinates (rad, or parts of the mechanism's length), positions around are taken, how many of
#: them, and how much smaller the least singular value of the equations must be than there.
AROUND, POSITIONS, SMALLER = 0.03, 3, 0.1
#: Constraints with less than this part of the largest share in a dependence are not named.
SHARE = 1e-3
#: The largest Jacobian, in entries, whose singular values are computed: it is inverted up to 20 times, for 3 positions.
DENSE = 400_000


def singular(mech: Mechanism, q: ArrayLike, t: float) -> list[tuple[str, str]]:
    """The constraints that become dependent at the tree's coordinates q (nq,), each with its direction in words.

    ("joint 'C'", "meeting along f") of joints that close loops, rods and point constraints, gears and drivers.
    Equations that are redundant everywhere around are left out; nothing if q is regular.
    """
    q = one(q, mech.nq, "q")
    programs, rows = mech.programs, range(len(mech.constraints))
    if not 0 < len(rows) * mech.nv <= DENSE:
        return []

    def evaluate(states: Floats) -> tuple[Floats, Floats]:
        _, phi = mech.auxiliary.weighed.kernels.position_correction(states, t)
        return phi / programs.constraint_units, programs.without_units(constraint_jacobian(mech, states, t)[0])

    def move(states: Floats, change: Floats) -> Floats:
        return mech.integrate(states, change * programs.rate_units)

    rng, shape = np.random.default_rng(0), (POSITIONS, mech.nv)
    beside_q = move(np.tile(q, (POSITIONS, 1)), AROUND * rng.choice([-1.0, 1.0], shape) * rng.uniform(0.5, 1.0, shape))
    around = assembled_positions(evaluate, move, beside_q, programs.driven)
    here = evaluate(q[None])[1][0]
    if not around or not np.isfinite(here).all():
        return []
    lengths = np.max([np.linalg.norm(x.g, axis=1) for x in around], axis=0)[:, None]
    lengths = np.where(lengths > 0.0, lengths, 1.0)
    around = [Position(x.g / lengths, x.gap) for x in around]
    left, sizes, _ = np.linalg.svd(here / lengths)
    most = max(x.rank(rows) for x in around)
    # Equations that are redundant everywhere are no matter: the rank is the same here. Their number is the same
    # around, though not which of them repeat which.
    bases = [np.linalg.svd(x.g) for x in around if x.rank(rows) == most]
    basis, least = max(((u, float(s[most - 1])) for u, s, _ in bases), key=lambda x: x[1])
    rank = int(np.sum(sizes > SMALLER * least))
    if rank >= most:
        return []
    null, regular = left[:, rank:], basis[:, most:]
    # Of the dependences here those count that are farthest from the dependences beside.
    _, _, turned = np.linalg.svd(null - regular @ (regular.T @ null))
    lost = np.abs(null @ turned[: most - rank].T)
    share = (lost / lost.max(axis=0)).max(axis=1)
    named = [programs.constraint_rows[row] for row in np.argsort(-share, kind="stable") if share[row] > SHARE]
    return list(dict.fromkeys((str(constraint), about) for constraint, about in named))


class Regularity:
    """Whether positions of a mechanism are regular: whether their equations have as many independent ones as those
    around the first position.

    Drivers are around it where time goes on. Mechanisms with more than `DENSE` entries in G are not looked at.
    """

    def __init__(self, mech: Mechanism) -> None:
        self.mech, self._most = mech, -1

    def holds(self, q: Floats, t: float) -> bool:
        """Whether a position is regular."""
        if len(self.mech.constraints) * self.mech.nv > DENSE:
            return True
        g, drift = constraint_jacobian(self.mech, q, t)
        rank = self._rank(g)
        if self._most < 0 and np.isfinite(g).all():
            self._most = max((self._rank(x) for x in self._around(q, t, g, drift)), default=rank)
        self._most = max(self._most, rank)
        return rank == self._most

    def _rank(self, g: Floats) -> int:
        """How many equations are independent, by the squares of singular values."""
        plain = self.mech.programs.without_units(g)
        if not np.isfinite(plain).all():
            return 0
        largest = float(np.max(np.sum(plain**2, axis=1), initial=0.0))
        return int(np.sum(np.linalg.eigvalsh(plain.T @ plain) > SINGULAR * largest))

    def _around(self, q: Floats, t: float, g: Floats, drift: Floats) -> list[Floats]:
        """G of assembled positions around one."""
        mech, rng = self.mech, np.random.default_rng(0)
        pace = float(np.max(np.abs(drift) / mech.programs.constraint_units, initial=0.0))
        later = t + AROUND / pace if pace else t
        z, _ = allowed(mech, np.where(mech.programs.driven[:, None], 0.0, g))
        around = []
        for _ in range(POSITIONS):
            change = z @ rng.choice([-1.0, 1.0], z.shape[1])
            most = float(np.max(np.abs(change) / mech.programs.rate_units, initial=1e-300))
            try:
                there = mech.project(mech.integrate(q, AROUND * change / most), None, t=later)[0]
            except LinkwrightError:
                continue
            around.append(constraint_jacobian(mech, there, later)[0])
        return around
