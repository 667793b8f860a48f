"""Poses at which yaw, pitch and roll fail: at a pitch of ±90° their forces do not tell whether a joint is in balance.

There yaw and roll turn about one axis, so that the moment about a third one is in none of the three forces. But the
same pose has other angles: yaw + δ with roll ± δ. With δ = 90° the pitch turns about the axis that was missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import cos, pi, sin

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.symbolic.derivation.links import Model
from linkwright.symbolic.equilibria.balance import Balance
from linkwright.symbolic.formulas.formula import evaluate

_LOCKED = 1e-5  # cosine of the pitch below which it counts as ±90°
_SURE = 1e-6  # of the largest force
LEFT_OUT = (
    "at a pitch of ±90° the forces on yaw, pitch and roll vanish also where a moment is left; such points are not "
    "listed"
)
UNSURE = (
    "at a pitch of ±90° yaw, pitch and roll do not tell every turn apart: more modes may grow there than are counted, "
    "and none counted is no proof of stability"
)


class Gimbals:
    """The spherical and free joints of a balance, and their poses with a pitch of ±90°."""

    def __init__(self, balance: Balance, parameters: Mapping[str, float]) -> None:
        self.balance, self.parameters = balance, parameters
        self.triples = triples(balance.dynamics.model)
        self._largest: float | None = None

    def locked(self, q: Floats) -> list[tuple[int, int, int]]:
        """The joints whose pitch is ±90° at q."""
        return [triple for triple in self.triples if abs(cos(q[triple[1]])) < _LOCKED]

    def at_rest(self, q: Floats) -> bool:
        """Whether a point at which the angles' forces vanish has no moment left about the axes that they miss."""
        for yaw, pitch, roll in self.locked(q):
            other = q.copy()
            other[yaw] += pi / 2
            other[roll] += pi / 2 if sin(q[pitch]) > 0 else -pi / 2
            # A force on the pitch acts about the axis of the angles as they are, not about the one that is missing.
            moment = self.balance.only(other[None], self.parameters)[0, pitch]
            moment += evaluate(self.balance.forces[pitch], self.parameters)
            if abs(moment) > _SURE * self._size():
                return False
        return True

    def _size(self) -> float:
        """The largest force at some poses."""
        if self._largest is None:
            units = self.balance.units(self.parameters)
            q = np.random.default_rng(0).uniform(-pi, pi, (64, self.balance.n)) * units
            self._largest = float(np.abs(self.balance.only(q, self.parameters) * units).max(initial=0.0))
        return self._largest


def triples(model: Model) -> list[tuple[int, int, int]]:
    """Yaw, pitch and roll of each joint that has them: the only joints with three turns."""
    turns: dict[str, list[int]] = {}
    for link in model.links:
        if link.turns and link.coordinate >= 0:
            coordinates = turns.setdefault(model.joints[link.coordinate], [])
            if link.coordinate not in coordinates:
                coordinates.append(link.coordinate)
    return [(x[0], x[1], x[2]) for x in turns.values() if len(x) == 3]
