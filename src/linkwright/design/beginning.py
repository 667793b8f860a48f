r"""How the state at which a motion begins changes with the parameters.

q solves the constraints and the initial places that are given. v is the least that has the initial rates, shifts as
parts of the mechanism's length scale. Both come by steps with a constant inverse, each of which makes one more order
of derivatives exact. What nothing tells stays as it is; where the drawing moves it with a parameter, that is found out
and refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.locks import cached_property
from linkwright.closed.conditions import Conditions
from linkwright.design.recorded import Recorded
from linkwright.errors import ModelError
from linkwright.mechanism.lengths import coordinate_units
from linkwright.spatial.algebra import Array
from linkwright.tape.build import record
from linkwright.tape.functions import arctan2

Floats = NDArray[np.float64]
RANK = 1e-9
AGREES = 1e-4  # of the sizes of derivatives, how far differences of two drawings may be from them


class Beginning:
    """q and v at the start as functions of p."""

    def __init__(self, recorded: Recorded, t: float) -> None:
        self.r, self.t = recorded, t
        d = recorded.mech.description
        self.places = [x for x in d.initial if not x.quantity.rate]
        self.rates = [x for x in d.initial if x.quantity.rate]
        self._checked = False
        self._kept: tuple[Floats, Floats, Floats] | None = None

    def at(self, values: Floats, order: int) -> tuple[Floats, ...]:
        """q, v at these values, and the derivatives (nq + nv, k) and (nq + nv, k, k) as far as asked for."""
        q, v = self._found(values)
        if order == 0:
            return q, v
        inverse, multipliers, inner, free = self._linear(q, v, values)
        _, jacobian, again = self._programs(min(order, 2))
        state = (values, q, v, inverse, multipliers, inner)
        first = np.asarray(jacobian(*state))
        if free and not self._checked and self._moves:
            self._compare(values, q, v, first)
        self._checked = True
        if order == 1:
            return q, v, first
        k = len(values)
        second = np.zeros((len(q) + len(v), k, k))
        second[jacobian.rows, jacobian.cols] = again(*state)
        return q, v, first, second

    def _found(self, values: Floats) -> tuple[Floats, Floats]:
        """Where motion begins; looked for anew only where a parameter moves it."""
        if self._kept is None or (self._moves and not np.array_equal(values, self._kept[0])):
            mech = self.r.mech.with_parameters(**dict(zip(self.r.free, values.tolist(), strict=True)))
            q, v = mech.initial_state(t=self.t)
            self._kept = values.copy(), q, v
        return self._kept[1], self._kept[2]

    # -- equations ----------------------------------------------------------------------------------------
    def _place(self, q: Array, p: Array) -> Array:
        r = self.r
        rest = np.zeros(r.nv)
        question = r.question(q, rest, self.t, p)
        found = question.measured(tuple(dict.fromkeys(x.quantity for x in self.places)))
        gaps = []
        for x, turns in zip(self.places, self._conditions.whole_turns[self._conditions.places], strict=True):
            gap = found[x.quantity.key] - x.value.evaluate(question.constants)
            gaps.append(arctan2(np.sin(gap), np.cos(gap)) if turns else gap)
        return np.concatenate([r.open(q, self.t, p), np.array(gaps, dtype=object if gaps else float)])

    def _rate(self, q: Array, v: Array, p: Array) -> Array:
        r = self.r
        question = r.question(q, v, self.t, p)
        found = question.measured(tuple(dict.fromkeys(x.quantity for x in self.rates)))
        gaps = [found[x.quantity.key] - x.value.evaluate(question.constants) for x in self.rates]
        return np.concatenate([r.held(q, v, self.t, p)[1], np.array(gaps, dtype=object if gaps else float)])

    @cached_property
    def _rows(self) -> tuple[int, int]:
        m = len(self.r.maker.constraint_rows) if self.r.maker.closed else 0
        return m + len(self.places), m + len(self.rates)

    @cached_property
    def _slopes(self) -> tuple[Any, Any]:
        """∂place/∂x and ∂rate/∂v."""
        r, k = self.r, len(self.r.free)

        def place(x: Array, q: Array, p: Array) -> Array:
            return self._place(r.moved(q, x), p) + 0.0 * x[0]

        def rate(v: Array, q: Array, p: Array) -> Array:
            return self._rate(q, v, p) + 0.0 * v[0]

        m, n = self._rows
        return (
            record(place, r.nv, r.nq, k).jacobian() if m else None,
            record(rate, r.nv, r.nq, k).jacobian() if n else None,
        )

    def _linear(self, q: Floats, v: Floats, p: Floats) -> tuple[Floats, Floats, Floats, bool]:
        """The inverse of the places, multipliers of v = W Mᵀλ and the inverse of M W Mᵀ, and whether anything is free.

        A weight that changes with a parameter counts as free: the drawing tells how, and `_compare` looks.
        """
        by_place, by_rate = self._slopes
        nv = self.r.nv
        g = np.zeros((0, nv)) if by_place is None else by_place(np.zeros(nv), q, p)
        m = np.zeros((0, nv)) if by_rate is None else by_rate(v, q, p)
        inverse = np.linalg.pinv(g, rcond=RANK)
        rank = int(np.linalg.matrix_rank(g, tol=RANK * np.linalg.norm(g, 2))) if g.size else 0
        scaled = m * np.sqrt(self._weights)
        inner = np.linalg.pinv(scaled @ scaled.T, rcond=RANK**1.5)
        mixed = bool(np.ptp(self._weights) > 0.0) and np.linalg.matrix_rank(scaled) < nv
        return inverse, inner @ (m @ v), inner, rank < nv or mixed

    @cached_property
    def _conditions(self) -> Conditions:
        return Conditions(self.r.mech, self.t)

    @property
    def _weights(self) -> Floats:
        """W: the squares of the units in which the least rates are measured."""
        return np.asarray(self._conditions.columns**2)

    def _programs(self, order: int) -> tuple[Any, Any, Any]:
        if order not in self._made:
            program = self._recorded(order)
            jacobian = program.jacobian(0, 0)
            self._made[order] = program, jacobian, jacobian.program.jacobian(0, 0) if order > 1 else None
        return self._made[order]

    @cached_property
    def _made(self) -> dict[int, tuple[Any, Any, Any]]:
        return {}

    def _recorded(self, order: int) -> Any:
        """p, q, v, A, λ, (M W Mᵀ)⁺ → [q, v]."""
        r, k = self.r, len(self.r.free)
        m, n = self._rows
        pulled = record(lambda v, q, p: self._rate(q, v, p) + 0.0 * v[0], r.nv, r.nq, k).reverse() if n else None

        def start(p: Array, q: Array, v: Array, a: Array, multipliers: Array, inner: Array) -> Array:
            x, here = np.zeros(r.nv), q
            for _ in range(order if m else 0):
                x = x - a @ self._place(here, p)
                here = r.moved(q, x)
            if pulled is None:
                return np.concatenate([here, v]) + 0.0 * p[0]
            zero = np.zeros(r.nv)
            for _ in range(order):
                v = self._weights * pulled(zero, here, p, multipliers)[1]  # W Mᵀλ
                multipliers = multipliers - inner @ self._rate(here, v, p)
            return np.concatenate([here, self._weights * pulled(zero, here, p, multipliers)[1]]) + 0.0 * p[0]

        return record(start, k, r.nq, r.nv, (r.nv, m), n, (n, n), name="start")

    # -- what nothing tells -------------------------------------------------------------------------------
    @cached_property
    def _moves(self) -> bool:
        """Whether the drawing, or a constraint, knows one of the parameters."""
        d, free = self.r.mech.description, set(self.r.free)
        geometry = ("start_r", "start_p", "ri", "pi", "rj", "pj", "frame_r", "frame_p", "pitch", "gear")
        bound = any(e.names() & free for (array, _), e in d.bindings.items() if array in geometry)
        laws = [
            *(x.law for x in d.drivers),
            *(x.value for x in d.initial),
            *(x.length for x in d.ties if hasattr(x, "length")),
        ]
        return bound or any(law.names() & free for law in laws)

    def _compare(self, values: Floats, q: Floats, v: Floats, first: Floats) -> None:
        """The start that differences of two drawings find must be the one that the derivatives tell."""
        r = self.r
        units = np.concatenate(coordinate_units(r.mech.tree))
        for k, name in enumerate(r.free):
            step = 1e-5 * (abs(float(values[k])) or 1e-3)
            ends = []
            for sign in (1.0, -1.0):
                moved = values.copy()
                moved[k] += sign * step
                ends.append(
                    np.concatenate(
                        r.mech.with_parameters(**dict(zip(r.free, moved, strict=True))).initial_state(t=self.t)
                    )
                )
            found = (ends[0] - ends[1]) / (2.0 * step)
            size = max(float(np.abs(x / units).max(initial=0.0)) for x in (found, first[:, k]))
            # What rounding of the states makes of differences is none.
            rounding = 1e-12 * max(1.0, float(np.abs(ends[0] / units).max(initial=0.0))) / step
            if float(np.abs((found - first[:, k]) / units).max(initial=0.0)) > AGREES * size + rounding:
                raise ModelError(
                    f"parameter {name!r} moves where the motion begins, and the initial conditions do not tell how; "
                    "give INITIAL values for what can move freely",
                    element=name,
                )
