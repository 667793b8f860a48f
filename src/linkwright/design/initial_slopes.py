r"""How the initial state of a motion changes with the parameters.

q solves the constraints and the initial places that are given. v is the least that has the initial rates, shifts as
parts of the mechanism's length scale. Both come by steps with a constant inverse, each of which makes one more order
of derivatives exact. What nothing determines stays as it is; where the drawing moves it with a parameter, that is seen
and refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.design.recorded_functions import Evaluator, Recorded, second_derivatives
from linkwright.dynamics.closed.initial_conditions import Conditions
from linkwright.errors import ModelError
from linkwright.kernels.kernel import Kernel
from linkwright.model.elements import Initial
from linkwright.model.model_checks import parameters_used
from linkwright.model.placements import coordinate_units
from linkwright.spatial.algebra import Array
from linkwright.tape.block import arctan2
from linkwright.tape.build import record
from linkwright.tape.derivative import SparseMatrix

if TYPE_CHECKING:
    pass

RANK = 1e-9
AGREES = 1e-4  # of the sizes of derivatives, how far differences of two drawings may be from them


@dataclass(frozen=True, eq=False)
class Conditioned:
    """The equations that places and rates at the start meet, to be recorded."""

    r: Recorded
    t: float
    places: list[tuple[Initial, bool]]  # and whether whole turns make no difference
    rates: list[Initial]

    @property
    def rows(self) -> tuple[int, int]:
        """How many equations places and rates have."""
        return self.r.rows + len(self.places), self.r.rows + len(self.rates)

    def place(self, q: Array, p: Array) -> Array:
        r = self.r
        gaps = self._gaps([x for x, _ in self.places], q, np.zeros(r.nv), p)
        turned = [
            arctan2(np.sin(gap), np.cos(gap)) if turns else gap
            for gap, (_, turns) in zip(gaps, self.places, strict=True)
        ]
        return np.concatenate([r.open(q, self.t, p), np.array(turned, dtype=object if turned else float)])

    def rate(self, q: Array, v: Array, p: Array) -> Array:
        gaps = self._gaps(self.rates, q, v, p)
        return np.concatenate([self.r.held(q, v, self.t, p)[1], np.array(gaps, dtype=object if gaps else float)])

    def _gaps(self, initial: list[Initial], q: Array, v: Array, p: Array) -> list[Any]:
        """What is, less what is given."""
        context = self.r.context(q, v, self.t, p)
        measured = context.elements.measure([x.quantity for x in initial])
        return [measured[x.quantity.key] - x.value.evaluate(context.constants) for x in initial]

    def start(self, order: int, p: Array, q: Array, v: Array, a: Array, *least: Array) -> Array:
        """p, q, v, A, λ, (M W Mᵀ)⁺, the diagonal of W → [q, v]."""
        r, (m, n) = self.r, self.rows
        multipliers, inner, weights = least
        x, here, zero = np.zeros(r.nv), q, np.zeros(r.nv)
        for _ in range(order if m else 0):
            x = x - a @ self.place(here, p)
            here = r.moved(q, x)
        if not n:
            return np.concatenate([here, v]) + 0.0 * p[0]
        pulled = record(lambda v, q, p: self.rate(q, v, p) + 0.0 * v[0], r.nv, r.nq, len(r.free)).reverse()
        for _ in range(order):
            v = weights * pulled(zero, here, p, multipliers)[1]  # W Mᵀλ
            multipliers = multipliers - inner @ self.rate(here, v, p)
        return np.concatenate([here, weights * pulled(zero, here, p, multipliers)[1]]) + 0.0 * p[0]


class InitialState:
    """q and v at the start as functions of p."""

    def __init__(self, evaluator: Evaluator, t: float) -> None:
        self.evaluator, self.t = evaluator, t
        self.mech, self.r = evaluator.mech, evaluator.recorded
        self._checked = False
        self._kept: tuple[Floats, Floats, Floats, Floats] | None = None

    def at(self, values: Floats, order: int) -> tuple[Floats, ...]:
        """q, v at these values, and the derivatives (nq + nv, k) and (nq + nv, k, k) as far as asked for."""
        q, v, weights = self._found(values)
        if order == 0:
            return q, v
        inverse, multipliers, inner, free = self._linear(q, v, values, weights)
        jacobian = self._start(min(order, 2)).jacobian()
        state = (values, q, v, inverse, multipliers, inner, weights)
        first = jacobian(*state)
        if free and not self._checked and self._moves:
            self._compare(values, q, v, first)
        self._checked = True
        if order == 1:
            return q, v, first
        return q, v, first, second_derivatives(jacobian, 0, *state)

    def _found(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """The initial state, and the weights of the least rates; anew only where a parameter moves it."""
        if self._kept is None or (self._moves and not np.array_equal(values, self._kept[0])):
            mech = self.evaluator.at(values)
            q, v = mech.initial_state(t=self.t)
            self._kept = values.copy(), q, v, Conditions(mech, self.t).columns ** 2
        return self._kept[1:]

    # -- programs -----------------------------------------------------------------------------------------
    @cached_property
    def _conditions(self) -> Conditioned:
        conditions, initial = Conditions(self.mech, self.t), self.mech.description.initial
        places = [(initial[k], bool(conditions.whole_turns[k])) for k in conditions.places]
        return Conditioned(self.r, self.t, places, [initial[k] for k in conditions.rates])

    def _slopes(self) -> tuple[SparseMatrix | None, SparseMatrix | None]:
        """∂place/∂x and ∂rate/∂v."""
        r, c = self.r, self._conditions

        def place(x: Array, q: Array, p: Array) -> Array:
            return c.place(r.moved(q, x), p) + 0.0 * x[0]

        def rate(v: Array, q: Array, p: Array) -> Array:
            return c.rate(q, v, p) + 0.0 * v[0]

        m, n = c.rows
        shapes = r.nv, r.nq, len(r.free)
        return (
            self.evaluator.kernel("place at the start", place, *shapes, time=self.t).jacobian() if m else None,
            self.evaluator.kernel("rate at the start", rate, *shapes, time=self.t).jacobian() if n else None,
        )

    def _start(self, order: int) -> Kernel:
        r, c = self.r, self._conditions
        m, n = c.rows
        shapes = len(r.free), r.nq, r.nv, (r.nv, m), n, (n, n), r.nv
        return self.evaluator.kernel("start", lambda *x: c.start(order, *x), *shapes, order=order, time=self.t)

    def _linear(self, q: Floats, v: Floats, p: Floats, weights: Floats) -> tuple[Floats, Floats, Floats, bool]:
        """The inverse of the places, multipliers of v = W Mᵀλ and the inverse of M W Mᵀ, and whether anything is free.

        A weight that changes with a parameter counts as free: the drawing determines how, and `_compare` looks.
        """
        by_place, by_rate = self._slopes()
        nv = self.r.nv
        g = np.zeros((0, nv)) if by_place is None else by_place(np.zeros(nv), q, p)
        m = np.zeros((0, nv)) if by_rate is None else by_rate(v, q, p)
        inverse: Any = np.linalg.pinv(g, rcond=RANK)
        rank = int(np.linalg.matrix_rank(g, tol=RANK * np.linalg.norm(g, 2))) if g.size else 0
        scaled = m * np.sqrt(weights)
        inner: Any = np.linalg.pinv(scaled @ scaled.T, rcond=RANK**1.5)
        mixed = bool(np.ptp(weights) > 0.0 and np.linalg.matrix_rank(scaled) < nv)
        return inverse, inner @ (m @ v), inner, rank < nv or mixed

    # -- what nothing determines --------------------------------------------------------------------------
    @cached_property
    def _moves(self) -> bool:
        """Whether the drawing, or a constraint, knows one of the parameters."""
        return not parameters_used(self.mech.description, kinematic=True).isdisjoint(self.r.free)

    def _compare(self, values: Floats, q: Floats, v: Floats, first: Floats) -> None:
        """The start that differences of two drawings find must be the one that the derivatives give."""
        r = self.r
        units = np.concatenate(coordinate_units(self.mech.tree))
        for k, name in enumerate(r.free):
            step = 1e-5 * (abs(float(values[k])) or 1e-3)
            ends = []
            for sign in (1.0, -1.0):
                moved = values.copy()
                moved[k] += sign * step
                ends.append(np.concatenate(self.evaluator.at(moved).initial_state(t=self.t)))
            difference = (ends[0] - ends[1]) / (2.0 * step)
            size = max(float(np.abs(x / units).max(initial=0.0)) for x in (difference, first[:, k]))
            # What rounding of the states makes of differences is none.
            rounding = 1e-12 * max(1.0, float(np.abs(ends[0] / units).max(initial=0.0))) / step
            if float(np.abs((difference - first[:, k]) / units).max(initial=0.0)) > AGREES * size + rounding:
                raise ModelError(
                    f"parameter {name!r} moves the initial state, and the initial conditions do not determine how; "
                    "give INITIAL values for what can move freely",
                    element=name,
                )
