"""The paper's way with undriven degrees of freedom: unknowns that no row's largest element chooses stay as they are.

Gaussian elimination on Φ_q of the Euler-parameter coordinates takes the largest element of each row as its pivot; the
columns that end up on the right are the least significant unknowns. Elements are compared, and equations solved, with
shifts as parts of the bodies' sizes and lengths as parts of the mechanism's: in any unit the same are chosen. They keep
their values over a step, and so their velocity and acceleration are 0. Steps are judged, halved and explained as those
of least norm. Dense, for mechanisms of moderate size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.constraints.kinematic_motion import State, Stepper, shift_between_all
from linkwright.constraints.kinematic_programs import Programs, Step
from linkwright.constraints.newton import Assembled
from linkwright.constraints.program_layout import ITERATIONS
from linkwright.errors import ModelError

Ints = NDArray[np.intp]
#: Coordinates up to which this is done.
LARGEST = 2000


@dataclass(eq=False)
class _Rates:
    """Of a state, with some columns held: q̇, q̈, the twists of both, and by how much the laws' rates are missed."""

    first: Floats
    second: Floats
    v: Floats
    a: Floats
    missed: float


class PivotingStepper(Stepper):
    """Steps over which the least significant coordinates are held."""

    def __init__(self, programs: Programs, assembled: Assembled, t: float, lu_tolerance: float) -> None:
        self.e = programs.layout.equations
        if 7 * self.e.nb > LARGEST:
            raise ModelError(
                f"pivoting is for up to {LARGEST} coordinates, and this mechanism has {7 * self.e.nb}; "
                "use freedom = minimum norm"
            )
        super().__init__(programs, assembled, True, t)
        self._lu_tolerance = lu_tolerance
        self._solves = self._evaluations = 0
        self._lengths = np.ones((self.e.nb, 7))
        self._lengths[:, :3] = self.sizes[:, None]
        # Angles, sines and the lengths of Euler parameters count as they are.
        self._units = np.concatenate([self.e.size / self.e.arms(self.e.size), np.ones(self.e.nb)])

    @property
    def counted(self) -> tuple[int, int]:
        return self._evaluations, self._solves

    def attempt(self, state: State, t: float) -> Step:
        """Compute the step from a state to a time; the outcome is in `found`."""
        h, nb = t - state.t, self.e.nb
        self._t[0] = t
        self.work.steps += 1
        # The state's own rates belong to the columns of the step before it.
        columns = self._chosen(self._equations(state.q, state.angles, state.t, np.zeros((nb, 6)))[1])
        before = self._rates(state.q, state.angles, state.t, columns)
        ahead = h * (before.first + 0.5 * h * before.second)
        predicted = state.q + ahead.reshape(nb, 7)
        q, done = self._newton(predicted, state.angles, t, columns)
        self.work.iterations += done
        if not np.isfinite(q).all():
            return Step(*[np.nan] * len(Step._fields))
        phi, _, _, _, angles = self._equations(q, state.angles, t, np.zeros((nb, 6)))
        after = self._rates(q, state.angles, t, columns)
        pivots = self.programs.correct(q, angles, t)[3]
        counted = pivots > self.programs.tolerance
        for name, value in (("q", q), ("v", after.v), ("a", after.a), ("angles", angles)):
            self._out[f"{name}_there"][...] = value
        predicted[:, 3:] /= np.linalg.norm(predicted[:, 3:], axis=1)[:, None]
        return Step(
            iterations=done,
            rounds=1.0,
            residual=self.e.size * float(np.max(np.abs(phi), initial=0.0)),
            rate_residual=after.missed,
            jump=self._largest(shift_between_all(predicted, q)),
            travelled=self._largest(shift_between_all(state.q, predicted)),
            mismatch=self._largest(after.v - before.v - 0.5 * h * (before.a + after.a)),
            speed=max(self._largest(before.v), self._largest(after.v)),
            pivot=float(np.min(pivots[counted], initial=1.0)),
            lost=float(np.sum(~counted)),
            turned=abs(h) * float(max(np.max(np.abs(x.v[:, 3:]), initial=0.0) for x in (before, after))),
            drift=self._largest(shift_between_all(q, _led(state.q, before, after, h))),
        )

    def _largest(self, twists: Floats) -> float:
        """The largest shift or turn, shifts as parts of the bodies' sizes."""
        return float(np.max(np.abs(twists) / self._lengths[:, :6], initial=0.0))

    def _equations(self, q: Floats, angles: Floats, t: float, v: Floats) -> tuple[Floats, ...]:
        """Φ with the normalisations, Φ_q, the laws' rates and J̇ v as right sides, and the angles at q; without units.

        Φ is that of the unit parameters e/|e|: between two iterations they are not normalised yet, and Newton's method
        converges quadratically only if Φ_q is the derivative of the Φ that it makes zero.
        """
        lengths = np.linalg.norm(q[:, 3:], axis=1)
        at = np.concatenate([q[:, :3], q[:, 3:] / lengths[:, None]], axis=1)
        laws, jacobian, phi, bias, turned = self.programs.evaluate(at, angles, t, v)
        self._evaluations += 1
        e, nb = self.e, self.e.nb
        twist = self.programs.layout.dense(jacobian)
        whole = np.zeros((e.count + nb, 7 * nb))
        rates = np.zeros((2, e.count + nb))
        for k in range(nb):
            whole[: e.count, 7 * k : 7 * k + 3] = twist[:, 6 * k : 6 * k + 3]
            # ω = 2 G(e) ė, and α = 2 G(e) ë.
            turning = 2.0 * twist[:, 6 * k + 3 : 6 * k + 6] @ _g(at[k, 3:])
            whole[: e.count, 7 * k + 3 : 7 * k + 7] = turning / lengths[k]
            whole[e.count + k, 7 * k + 3 : 7 * k + 7] = 2.0 * q[k, 3:]
            rate = 0.5 * _g(q[k, 3:]).T @ v[k, 3:]
            rates[1, e.count + k] = -2.0 * rate @ rate
        for k in e.timed:
            rates[:, e.first[k]] = laws[k, 1:]
        rates[1, : e.count] -= bias
        norms = np.sum(q[:, 3:] ** 2, axis=1) - 1.0
        whole *= self._lengths.reshape(-1) / self._units[:, None]
        rates /= self._units
        return np.concatenate([phi, norms]) / self._units, whole, rates[0], rates[1], turned

    def _chosen(self, matrix: Floats) -> Ints:
        """The columns that become pivots: in each row, what is left of it, the largest element."""
        left = matrix.copy()
        columns: list[int] = []
        for k in range(len(left)):
            size = float(np.max(np.abs(matrix[k])))
            c = int(np.argmax(np.abs(left[k])))
            if abs(left[k, c]) <= self._lu_tolerance * max(size, 1e-300):
                continue  # the rows before say the same
            columns.append(c)
            below = left[k + 1 :, c] / left[k, c]
            left[k + 1 :] -= np.outer(below, left[k])
            left[k + 1 :, c] = 0.0
        return np.array(sorted(columns), dtype=np.intp)

    def _solved(self, matrix: Floats, rhs: Floats, columns: Ints) -> Floats:
        """The unknowns of the chosen columns; the others are 0. No numbers if what is given is not finite."""
        self._solves += 1
        if not (np.isfinite(matrix).all() and np.isfinite(rhs).all()):  # LAPACK may not come back from these
            return np.full(matrix.shape[1], np.nan)
        x = np.zeros(matrix.shape[1])
        x[columns] = np.linalg.lstsq(matrix[:, columns], rhs, rcond=1e-13)[0]
        return x * self._lengths.reshape(-1)

    def _newton(self, q: Floats, angles: Floats, t: float, columns: Ints) -> tuple[Floats, int]:
        """The position at a time with all but some columns held, and the iterations it took."""
        still, (correction, missed) = np.zeros((self.e.nb, 6)), self.programs.numbers["newton"]
        for done in range(1, ITERATIONS + 1):
            phi, matrix, *_ = self._equations(q, angles, t, still)
            change = self._solved(matrix, -phi, columns).reshape(q.shape)
            q = q + change
            far = np.max(np.abs(change) / self._lengths, initial=0.0) >= correction
            if not (far or self.e.size * np.max(np.abs(phi), initial=0.0) > missed):  # or they are no numbers
                return q, done
        return q, ITERATIONS

    def _rates(self, q: Floats, angles: Floats, t: float, columns: Ints) -> _Rates:
        """q̇ and q̈ with all but some columns held."""
        _, matrix, wanted, _, _ = self._equations(q, angles, t, np.zeros((self.e.nb, 6)))
        first = self._solved(matrix, wanted, columns)
        v = self._twists(q, first)
        second = self._solved(matrix, self._equations(q, angles, t, v)[3], columns)
        missed = float(np.max(np.abs(matrix @ (first / self._lengths.reshape(-1)) - wanted), initial=0.0))
        return _Rates(first, second, v, self._twists(q, second), self.e.size * missed)

    def _twists(self, q: Floats, rates: Floats) -> Floats:
        x = rates.reshape(self.e.nb, 7)
        return np.stack([np.concatenate([x[k, :3], 2.0 * _g(q[k, 3:]) @ x[k, 3:]]) for k in range(self.e.nb)])


def _g(e: Floats) -> Floats:
    """G(e) (3, 4) with ω = 2 G ė in ground's axes."""
    return np.array([[-e[1], e[0], -e[3], e[2]], [-e[2], e[3], e[0], -e[1]], [-e[3], -e[2], e[1], e[0]]])


def _led(q: Floats, before: _Rates, after: _Rates, h: float) -> Floats:
    """Where Hermite's formula of both ends' rates leads from the first."""
    rates = before.first + after.first + (h / 6.0) * (before.second - after.second)
    led: Floats = q + 0.5 * h * rates.reshape(-1, 7)
    led[:, 3:] /= np.linalg.norm(led[:, 3:], axis=1)[:, None]
    return led
