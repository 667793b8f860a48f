"""Where motion begins: the state that a model's initial conditions, its joints, ties and drivers agree on.

What is given is held. Everything else is as near to the drawing as it can be, and rates are as small as they can be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from linkwright.constraints.equations import Equations
from linkwright.errors import ModelError
from linkwright.mechanism.checks import listed
from linkwright.mechanism.description import Description
from linkwright.mechanism.quantities import spoken

if TYPE_CHECKING:
    from linkwright.model import Mechanism

Floats = NDArray[np.float64]
FARTHEST = 0.2  # what is given is approached in such steps, in metres or radians
ASIDE = (0.0, 0.02, 0.2)
ROUNDS = 30
MET = 1e-10  # of values and equations, in metres and radians, or as a part of the mechanism's size
_RANK = 1e-10


def initial_state(mech: Mechanism, t: float) -> tuple[Floats, Floats]:
    """q and v at which motion begins."""
    d = mech.description
    q = mech.assemble(t=t) if mech.closed or d.start is not None else mech.neutral()
    if not d.initial:
        return mech.project(q, t=t) if mech.closed else (q, np.zeros(mech.nv))
    start = _Start(mech, t)
    places = [k for k, x in enumerate(d.initial) if not x.quantity.rate]
    found = start.reached(q, places)
    if found is None:
        raise _contradiction(d, places, lambda some: start.reached(q, some) is not None, "place")
    rates = [k for k, x in enumerate(d.initial) if x.quantity.rate]
    v = start.moving(found, rates)
    if v is None:
        raise _contradiction(d, rates, lambda some: start.moving(found, some) is not None, "rate")
    return found, v


class _Start:
    """The equations of a mechanism and its initial conditions at a time."""

    def __init__(self, mech: Mechanism, t: float) -> None:
        self.mech, self.t = mech, t
        self.plain = mech._weighed if mech.closed else mech
        d = mech.description
        self.wanted = np.array([float(x.value.evaluate(d.parameters)) for x in d.initial])
        # A joint that closes a loop knows its angle but for whole turns.
        loops = {d.joint_names[j] for j in mech.tree.topology.loops}
        self.turns = np.zeros(len(d.initial), bool)
        for k, x in enumerate(d.initial):
            if x.quantity.kind == "joint" and x.quantity.of[0] in loops and not x.quantity.rate:
                kind = d.kind_of(d.joint_names.position("joint", x.quantity.of[0]))
                self.turns[k] = x.quantity.index in kind.angles
        self.limit = MET * max(1.0, Equations(d).size)

    def _measured(self, q: Floats) -> tuple[Floats, Floats]:
        """The values of what is given, and how they change with v."""
        n = self.mech.nv
        values, slopes = self.mech._initial_values(np.broadcast_to(q, (n + 1, len(q))), np.eye(n + 1, n))
        return values[-1], slopes[:-1].T  # the last row of the eye is zero: rest

    def _held(self, q: Floats) -> tuple[Floats, Floats, Floats]:
        """Φ, G and Φ_t."""
        n = self.mech.nv
        if not self.mech.closed:
            return np.zeros(0), np.zeros((0, n)), np.zeros(0)
        phi = self.plain._closing(q, self.t)[1]
        rates = self.plain._settling(np.broadcast_to(q, (n + 1, len(q))), np.eye(n + 1, n), self.t)[1]
        return phi, (rates[:-1] - rates[-1]).T, rates[-1]

    def _apart(self, values: Floats) -> Floats:
        """How far what is given is from being met."""
        apart = self.wanted - values
        whole = 2.0 * np.pi * np.round(apart / (2.0 * np.pi))
        return np.asarray(np.where(self.turns, apart - whole, apart))

    def reached(self, q: Floats, some: Sequence[int]) -> Floats | None:
        """The nearest q at which these values are met and the mechanism is closed, or None."""
        aside = np.random.default_rng(0).uniform(-1.0, 1.0, self.mech.nv)
        for push in ASIDE:  # where the drawing is singular, as a chain in a line, a step aside finds the way
            found = self._approached(self.mech.integrate(q, push * aside), some)
            if found is not None:
                return found
        return None

    def _approached(self, q: Floats, some: Sequence[int]) -> Floats | None:
        """The same from one place, step by step."""
        far = float(np.max(np.abs(self._apart(self._measured(q)[0])[list(some)]), initial=0.0))
        steps = int(np.clip(np.ceil(far / FARTHEST), 1, 500))
        for left in np.linspace(1.0, 0.0, steps + 1)[1:]:
            near = self._closed(q, some, left * far)
            if near is None:
                return None
            q = near
        return q

    def _closed(self, q: Floats, some: Sequence[int], left: float) -> Floats | None:
        """Newton's method to where nothing that is given is farther than `left` from being met."""
        chosen = list(some)
        best = np.inf
        for _ in range(ROUNDS):
            values, slopes = self._measured(q)
            phi, g, _ = self._held(q)
            apart = self._apart(values)[chosen]
            miss = apart - np.clip(apart, -left, left)
            worst = float(max(np.max(np.abs(miss), initial=0.0), np.max(np.abs(phi), initial=0.0)))
            if not np.isfinite(worst):
                return None
            if worst <= self.limit and not worst < 0.5 * best:
                return q
            best = min(best, worst)
            change = np.linalg.lstsq(np.vstack([g, slopes[chosen]]), np.concatenate([-phi, miss]), rcond=_RANK)[0]
            size = float(np.max(np.abs(change), initial=0.0))
            q = self.mech.integrate(q, change * min(1.0, 1.0 / max(size, 1e-300)))
        return q if best <= self.limit else None

    def moving(self, q: Floats, some: Sequence[int]) -> Floats | None:
        """The least v with these rates that keeps the mechanism closed, or None."""
        chosen = list(some)
        slopes = self._measured(q)[1][chosen]
        _, g, drift = self._held(q)
        matrix, right = np.vstack([g, slopes]), np.concatenate([-drift, self.wanted[chosen]])
        v = np.linalg.lstsq(matrix, right, rcond=_RANK)[0]
        left = float(np.max(np.abs(matrix @ v - right), initial=0.0))
        return v if left <= 1e-9 * max(1.0, float(np.max(np.abs(right), initial=0.0))) else None


def _contradiction(d: Description, some: list[int], can: Callable[[list[int]], bool], what: str) -> ModelError:
    """Which of the conditions are in each other's way: those without any one of which the others can be met."""
    guilty = [k for k in some if can([i for i in some if i != k])] or some
    names = [spoken(d, d.initial[k].quantity) for k in guilty]
    kind = "initial rate" if what == "rate" else "initial value"
    if len(names) == 1:
        own = d.initial[guilty[0]].quantity
        of = ("joint", own.of[0], own.index)
        drivers = [x.name for x in d.drivers if own.kind == "joint" and (x.kind, x.target, x.index) == of]
        if drivers:
            text = f"the {kind} of {names[0]!r} is not what driver {drivers[0]!r} says; leave it out, or the driver"
            return ModelError(text, element=names[0])
        text = f"the {kind} of {names[0]!r} cannot be met: joints, ties and drivers do not allow it"
        return ModelError(f"{text}; correct it, or leave it out", element=names[0])
    text = f"the {kind}s of {listed(names)} contradict each other, with what joints, ties and drivers allow"
    return ModelError(f"{text}; leave one of them out", element=names[0])
