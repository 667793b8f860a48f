"""The equations of rest, g(q) + springs = F, as polynomials with their slopes, and their roots by Newton's method
from many starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import lcm, pi

import numpy as np

from linkwright.base.arguments import check_names
from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.errors import ModelError
from linkwright.symbolic.derivation.polynomial_dynamics import Dynamics
from linkwright.symbolic.formulas.calculus import derivative, replaced
from linkwright.symbolic.formulas.exact import ZERO, added, exact_number, finite, negated, short, times
from linkwright.symbolic.formulas.formula import Applied, Sum, Symbol, evaluate, number, symbols
from linkwright.symbolic.formulas.ring import Compiled
from linkwright.symbolic.linear.linearisation import Moved

#: A force: a number, or the name of a parameter.
Force = int | float | Fraction | str
_ROUNDED = 1e-13


class Balance:
    """f(q) = g + springs − F and K = ∂f/∂q over one ring; f is zero at rest."""

    def __init__(self, dynamics: Dynamics, forces: Mapping[str, Force] | Sequence[Force] | None) -> None:
        self.dynamics, self.n = dynamics, dynamics.n
        model, ring = dynamics.model, dynamics.ring
        self.forces = _forces(dynamics, forces)
        standstill = {s.name: Fraction(0) for s in ring.rates}
        # A law of rates may leave a force at rest: a drive that pushes less the faster it goes.
        laws = [added(s, replaced(f, standstill)) for s, f in zip(model.springs, model.friction, strict=True)]
        held = [added(law, negated(force)) for law, force in zip(laws, self.forces, strict=True)]
        slopes = [[derivative(law, q) for q in ring.coordinates] for law in laws]
        moved = Moved(ring, [*held, *(s for row in slopes for s in row)], {})
        self.ring = moved.ring
        pulls = [dynamics.g(i) for i in range(self.n)]
        self.f = [moved(g) + moved.law(law) for g, law in zip(pulls, held, strict=True)]
        self.k = [
            [moved(ring.derivative(g, j)) + moved.law(slope) for j, slope in enumerate(row)]
            for g, row in zip(pulls, slopes, strict=True)
        ]

    # -- what depends on what -------------------------------------------------------------------------
    @cached_property
    def free(self) -> list[int]:
        """Coordinates that f does not depend on."""
        return [j for j in range(self.n) if not any(self.k[i][j] for i in range(self.n))]

    @cached_property
    def used(self) -> set[str]:
        """The names of all symbols in f and K."""
        formulas = [self.ring.formula(p) for p in (*self.f, *(p for row in self.k for p in row))]
        return {name for formula in formulas for name in symbols(formula)}

    @cached_property
    def plain(self) -> list[int]:
        """Coordinates that f has not only in cosines and sines: shifts, and angles on springs."""
        names = set()
        for p in (*self.f, *(p for row in self.k for p in row)):
            for at, degree in enumerate(p.degrees()):
                factor = self.ring.factor(at) if degree > 0 else None  # of zero it is −1
                if isinstance(factor, Symbol):
                    names.add(factor.name)
                elif isinstance(factor, Applied):
                    names |= set(symbols(times(1, factor)))
        return [j for j, q in enumerate(self.ring.coordinates) if q.name in names]

    @cached_property
    def turning(self) -> list[int]:
        """Coordinates that f has only in cosines and sines."""
        return [j for j in range(self.n) if j not in self.plain and j not in self.free]

    @cached_property
    def periods(self) -> Floats:
        """After how much each coordinate is where it was; infinite for shifts and angles on springs."""
        periods = np.full(self.n, np.inf)
        for j, q in enumerate(self.ring.coordinates):
            multiples = [m for angle in self.ring.angles for s, m in angle if s == q]
            if multiples and j not in self.plain:
                periods[j] = 2.0 * pi * lcm(*(m.denominator for m in multiples))
        return periods

    def apart(self, differences: Floats) -> Floats:
        """How far apart coordinates are whose differences these are (..., n), but for whole periods."""
        turning = np.isfinite(self.periods)
        period = np.where(turning, self.periods, 1.0)
        return np.abs(np.where(turning, differences - period * np.round(differences / period), differences))

    # -- numbers --------------------------------------------------------------------------------------
    @cached_property
    def _compiled(self) -> tuple[Compiled, Compiled]:
        return Compiled(self.f), Compiled([*self.f, *(p for row in self.k for p in row)])

    def values(self, q: Floats, parameters: Mapping[str, float]) -> Floats:
        """The ring's variables at q (size, n)."""
        return self.ring.values({**parameters, **self.ring.motion(q)})

    def at(self, q: Floats, parameters: Mapping[str, float]) -> tuple[Floats, Floats]:
        """f (size, n) and K (size, n, n) at q (size, n)."""
        both = self._compiled[1](self.values(q, parameters))
        return both[:, : self.n], both[:, self.n :].reshape(len(q), self.n, self.n)

    def units(self, parameters: Mapping[str, float]) -> Floats:
        """(n,): what each coordinate is counted in: radians, and of shifts a length of the mechanism.

        That is its largest distance, or how far the slopes at the shifts' zeros lead, if that is more: a soft spring
        sags by any length.
        """
        shifts = np.array(self.dynamics.model.shifts)
        if not shifts.any():
            return np.ones(self.n)
        turned = np.array([np.where(shifts, 0.0, k * pi / 4) for k in range(8)])
        f, k = self.at(turned, parameters)
        slope = np.abs(np.einsum("bii->bi", k))
        sags = np.where(slope > 0.0, np.abs(f) / np.where(slope > 0.0, slope, 1.0), 0.0)[:, shifts]
        length = max(self.dynamics.model.length(parameters), float(np.max(sags, initial=0.0)))
        return np.where(shifts, length if 0.0 < length < np.inf else 1.0, 1.0)

    def unbalanced(self, parameters: Mapping[str, float] | None) -> list[int]:
        """Equations without coordinates that are not zero: identically, or with these values."""
        rows = []
        for i, f in enumerate(self.f):
            if not f or any(self.k[i]):
                continue
            if parameters is not None:
                parts = [evaluate(Sum((term,)), parameters) for term in self.ring.formula(f)]
                if abs(sum(parts)) <= _ROUNDED * sum(abs(x) for x in parts):
                    continue
            rows.append(i)
        return rows

    def only(self, q: Floats, parameters: Mapping[str, float]) -> Floats:
        """f (size, n) alone."""
        return self._compiled[0](self.values(q, parameters))


def _forces(dynamics: Dynamics, forces: Mapping[str, Force] | Sequence[Force] | None) -> list[Sum]:
    names = [q.name for q in dynamics.model.coordinates]
    if forces is None:
        return [ZERO] * dynamics.n
    if isinstance(forces, Mapping):
        check_names("coordinate", forces, names)
        forces = [forces.get(name, 0) for name in names]
    elif isinstance(forces, str) or not isinstance(forces, Sequence | np.ndarray):
        text = f"the forces are {short(forces)}; give one for each coordinate, or some by name: {{{names[0]!r}: 1.5}}"
        raise ModelError(text)
    if len(forces) != dynamics.n:
        raise ModelError(f"there are {len(forces)} forces; give one for each of the {dynamics.n} coordinates")
    ring = dynamics.ring
    moving = {s.name for s in (*ring.coordinates, *ring.rates, *ring.accelerations)}
    formulas = []
    for name, x in zip(names, forces, strict=True):
        if isinstance(x, str):
            if not x.isidentifier():
                raise ModelError(f"the force on {name} is {x!r}; give a number or one plain name", element=name)
            if x in moving:
                text = f"the force on {name} is {x!r}, which moves, and forces at rest are constant"
                raise ModelError(f"{text}; give a number or another name, or a spring to the joint", element=name)
            formulas.append(times(1, Symbol(x)))
        elif not finite(x):
            text = f"the force on {name} is {short(x)}; give a finite number, or the name of a parameter"
            raise ModelError(text, element=name)
        else:
            formulas.append(number(exact_number(x)))
    return formulas


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
