"""Finds the state that meets conditions: along a path from the drawing, then from many starts side by side.

Every method minimises the residuals of `conditions`; where all of them vanish, the state meets what is given. Where
they cannot, `nearest` closes the mechanism and leaves the least sum of squares to the values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.constraints.newton import MISFIT, damped, least, split
from linkwright.dynamics.closed.initial_conditions import EXACT, Conditions, Residuals

#: The largest residual that one step along the path takes away, and the most steps.
PATH_STEP, PATH_STEPS = 0.2, 40
#: Where the drawing is singular, as a chain in a line, a step aside shows the way.
ASIDE = (0.0, 0.02, 0.2)
NEWTON_ROUNDS = 30
#: Starts that are tried side by side, how often, and the rounds of each.
STARTS, BATCHES, ROUNDS = 48, 4, 60
NEAREST_ROUNDS, PATIENCE = 100, 12
DISTINCT = 12  # ends of a batch of starts that are looked at more closely


@dataclass(frozen=True, eq=False)
class Candidate:
    """A state that closes the mechanism, with the values' residuals (scaled)."""

    q: Floats
    apart: Floats
    open: float  # the largest residual of a constraint equation


class Search:
    """Looks for states that meet some of the values, from a drawn state."""

    def __init__(self, conditions: Conditions, drawn: Floats, valid: Callable[[Floats], bool]) -> None:
        """`valid` says whether a state that meets the equations is one of the mechanism's."""
        self.c, self.drawn, self.valid = conditions, drawn, valid
        phi = self._at(drawn, ()).phi
        # Redundant loops of rounded numbers leave a misfit everywhere.
        misfit = float(np.max(np.abs(phi), initial=0.0))
        self.open = max(EXACT, 3.0 * misfit if misfit < MISFIT else 0.0)

    def _at(self, q: Floats, some: Sequence[int]) -> Residuals:
        return self.c.residuals(np.ascontiguousarray(q[None]), some)

    def best(self, some: Sequence[int], batches: int = BATCHES) -> Candidate:
        """The state nearest to the drawing that meets some values; if there is none, one that misses them least."""
        path = self._along(some)
        if path is not None and self.meets(path, some):
            return path
        candidates = [] if path is None else [path]
        rng = np.random.default_rng(0)
        for _ in range(batches):
            ends = self._from_many(self._starts(rng, some), some)
            polished = [self.nearest(q, some) for q in self._distinct(ends)]
            met = [x for x in polished if self.meets(x, some)]
            if met:
                return min(met, key=lambda x: self._distance(x.q))
            candidates += polished
        candidates.append(self.nearest(self.drawn, some))
        return min(candidates, key=lambda x: (x.open > self.open, float(np.sum(x.apart**2)), self._distance(x.q)))

    def meets(self, x: Candidate, some: Sequence[int]) -> bool:
        """Whether a candidate is closed and has the values to their digits."""
        if not x.open <= self.open or not self.valid(x.q):
            return False
        roundings = np.array([self.c.rounding(k) for k in some])
        if float(np.max(np.abs(x.apart), initial=0.0)) <= EXACT:
            return True
        # True values satisfy the constraints: least squares leave no more than their roundings.
        return bool(np.linalg.norm(x.apart) <= np.linalg.norm(roundings))

    def _distance(self, q: Floats) -> float:
        return float(np.linalg.norm(self.c.mech.difference(self.drawn, q) / self.c.columns))

    # -- along a path -------------------------------------------------------------------------------------------
    def _along(self, some: Sequence[int]) -> Candidate | None:
        """What is given approached step by step from the drawing: the same assembly mode, if it has such a state."""
        aside = np.random.default_rng(0).uniform(-1.0, 1.0, self.c.mech.nv)
        for push in ASIDE:
            q: Floats | None = self.c.moved(self.drawn, push * aside)
            assert q is not None
            far = float(np.max(np.abs(self._at(q, some).apart), initial=0.0))
            steps = int(np.clip(np.ceil(far / PATH_STEP), 1, PATH_STEPS))
            for left in np.linspace(1.0, 0.0, steps + 1)[1:]:
                q = self._newton(q, some, left * far)
                if q is None:
                    break
            if q is not None:
                x = self.nearest(q, some)
                if self.meets(x, some):
                    return x
        return None

    def _newton(self, q: Floats, some: Sequence[int], left: float) -> Floats | None:
        """Least changes to where no value is farther than `left` from being met."""
        best = np.inf
        for _ in range(NEWTON_ROUNDS):
            r = self._at(q, some)
            miss = r.apart[0] - np.clip(r.apart[0], -left, left)
            worst = float(max(np.max(np.abs(miss), initial=0.0), np.max(np.abs(r.phi), initial=0.0)))
            if not np.isfinite(worst):
                return None
            if worst <= self.open and not worst < 0.5 * best:
                return q
            best = min(best, worst)
            change = least(np.vstack([r.g[0], r.slopes[0]]), np.concatenate([-r.phi[0], miss]))
            q = self.c.moved(q, self._short(change))
        return q if best <= self.open else None

    def _short(self, change: Floats) -> Floats:
        """A step that turns no joint by more than a radian; shifts are linear and may be of any length."""
        turning = np.max(np.abs(change) * self.c.turning, initial=0.0)
        return change * min(1.0, 1.0 / max(float(turning), 1e-300))

    # -- from many starts ---------------------------------------------------------------------------------------
    def _starts(self, rng: np.random.Generator, some: Sequence[int]) -> Floats:
        """States all around, with the coordinates that are given; half of them differ from the drawing in a few."""
        c = self.c
        n = c.mech.nv
        change = np.where(c.turning, np.pi, 2.0) * rng.uniform(-1.0, 1.0, (STARTS, n))
        few = rng.uniform(size=(STARTS // 2, n)) < 0.3
        change[: STARTS // 2] *= few
        start = np.broadcast_to(self.drawn, (STARTS, len(self.drawn)))
        return c.direct(c.moved(start, change), some)

    def _from_many(self, q: Floats, some: Sequence[int]) -> Floats:
        """Levenberg and Marquardt's method from every start at once: where the equations and the values nearly hold."""
        c, n = self.c, self.c.mech.nv
        damping = np.full(len(q), 1e-2)
        r = c.residuals(q, some)
        merit = _merit(r)
        for _ in range(ROUNDS):
            a = np.concatenate([r.g, r.slopes], axis=1)
            residual = np.concatenate([-r.phi, r.apart], axis=1)
            normal = a.transpose(0, 2, 1) @ a
            scale = np.trace(normal, axis1=1, axis2=2)[:, None, None] / max(n, 1) + 1e-300
            matrix = normal + damping[:, None, None] * scale * np.eye(n)
            change = np.linalg.solve(matrix, (a.transpose(0, 2, 1) @ residual[:, :, None]))[:, :, 0]
            most = np.max(np.abs(change) * c.turning, axis=1, keepdims=True, initial=0.0)
            change = change * np.minimum(1.0, 1.0 / np.maximum(most, 1e-300))
            ahead = c.moved(q, change)
            after = c.residuals(ahead, some)
            now = _merit(after)
            better = now < merit
            damping = np.clip(np.where(better, 0.1 * damping, 10.0 * damping), 1e-12, 1e6)
            q = np.where(better[:, None], ahead, q)
            merit = np.where(better, now, merit)
            r = _chosen(better, after, r)
            if not np.any(better & (merit > 1e-24)) and np.all((merit < 1e-20) | (damping > 1e3)):
                break
        return q[np.argsort(merit, kind="stable")]

    def _distinct(self, q: Floats) -> list[Floats]:
        """The best ends, each once, and those that meet the equations first."""
        distinct: list[Floats] = []
        for one in q:
            apart = [np.max(np.abs(self.c.mech.difference(x, one) / self.c.columns)) for x in distinct]
            if not distinct or min(apart) > 1e-4:
                distinct.append(one)
            if len(distinct) == DISTINCT:
                break
        return distinct

    # -- on the constraints -------------------------------------------------------------------------------------
    def nearest(self, q: Floats, some: Sequence[int]) -> Candidate:
        """From a state to one that is closed and misses the values least, by Gauss–Newton steps on the constraints."""
        damping, best = 0.0, self._candidate(q, some)
        idle = 0
        for _ in range(NEAREST_ROUNDS):
            r = self._at(best.q, some)
            back, free = split(r.g[0], -r.phi[0])
            along = r.slopes[0] @ free
            residual = r.apart[0] - r.slopes[0] @ back
            step = back + free @ damped(along, residual, damping)
            x = self._candidate(self._closed(self.c.moved(best.q, self._short(step))), some)
            now, before = _order(x, self.open), _order(best, self.open)
            if now < before:
                gain = now[0] < before[0] or now[1] < before[1] - 1e-3 * min(before[1], 1e-2)
                idle = 0 if gain else idle + 1
                best, damping = x, 0.1 * damping if damping > 1e-9 else 0.0
            else:
                idle += 1
                damping = max(1e-4, 10.0 * damping)
            met = best.open <= self.open and float(np.sum(best.apart**2)) <= EXACT**2
            if idle > PATIENCE or damping > 1e8 or (idle > 1 and met):
                break
        return best

    def _closed(self, q: Floats) -> Floats:
        """A few least changes towards closed loops."""
        for _ in range(4):
            r = self._at(q, ())
            if not np.max(np.abs(r.phi), initial=0.0) > 1e-3 * EXACT:
                break
            q = self.c.moved(q, self._short(least(r.g[0], -r.phi[0])))
        return q

    def _candidate(self, q: Floats, some: Sequence[int]) -> Candidate:
        r = self._at(q, some)
        worst = float(np.max(np.abs(r.phi), initial=0.0))
        q = self.c.without_turns(q, self.drawn)
        return Candidate(q, r.apart[0], worst if np.isfinite(worst) else np.inf)


def _order(x: Candidate, allowed: float) -> tuple[float, float]:
    """What is better: closed first, then the least sum of squares."""
    return (x.open if x.open > allowed else 0.0), float(np.sum(x.apart**2))


def _merit(r: Residuals) -> Floats:
    merit = np.sum(r.phi**2, axis=1) + np.sum(r.apart**2, axis=1)
    return np.where(np.isfinite(merit), merit, np.inf)


def _chosen(rows: NDArray[np.bool_], yes: Residuals, no: Residuals) -> Residuals:
    def of(one: Floats, other: Floats) -> Floats:
        return np.where(rows.reshape(-1, *[1] * (one.ndim - 1)), one, other)

    return Residuals(of(yes.phi, no.phi), of(yes.g, no.g), of(yes.apart, no.apart), of(yes.slopes, no.slopes))
