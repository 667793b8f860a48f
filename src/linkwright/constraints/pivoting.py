"""The paper's way with freedom left: unknowns that no row's largest element chooses stay as they are.

Gaussian elimination on Φ_q of the Euler-parameter coordinates takes the largest element of each row as its pivot; the
columns that end up on the right are the least significant unknowns. They keep their values, and so their velocity and
acceleration are 0. Dense, for mechanisms of moderate size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwright.constraints.motion import State
from linkwright.constraints.programs import Programs
from linkwright.errors import ModelError

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
ITERATIONS = 25
#: Coordinates up to which this is done.
LARGEST = 2000


class Pivoting:
    """Position, velocity and acceleration with the least significant coordinates held."""

    def __init__(self, programs: Programs, lu_tolerance: float) -> None:
        self.programs, self.tolerance = programs, lu_tolerance
        self.e = programs.layout.equations
        if 7 * self.e.nb > LARGEST:
            raise ModelError(
                f"pivoting is for up to {LARGEST} coordinates, and this mechanism has {7 * self.e.nb}; "
                "use freedom = minimum norm"
            )
        self.solves = self.evaluations = self.iterations = 0

    def _equations(self, q: Floats, angles: Floats, t: float, v: Floats) -> tuple[Floats, ...]:
        """Φ with the normalisations, Φ_q, the laws' rates and J̇ v as right sides, and the angles at q."""
        laws, jacobian, phi, bias, turned = self.programs.evaluate(q, angles, np.array([t]), v)
        self.evaluations += 1
        e, nb = self.e, self.e.nb
        twist = self.programs.layout.dense(jacobian)
        whole = np.zeros((e.count + nb, 7 * nb))
        rates = np.zeros((2, e.count + nb))
        for k in range(nb):
            whole[: e.count, 7 * k : 7 * k + 3] = twist[:, 6 * k : 6 * k + 3]
            # ω = 2 G(e) ė, and α = 2 G(e) ë.
            whole[: e.count, 7 * k + 3 : 7 * k + 7] = 2.0 * twist[:, 6 * k + 3 : 6 * k + 6] @ _g(q[k, 3:])
            whole[e.count + k, 7 * k + 3 : 7 * k + 7] = 2.0 * q[k, 3:]
            rate = 0.5 * _g(q[k, 3:]).T @ v[k, 3:]
            rates[1, e.count + k] = -2.0 * rate @ rate
        for k in e.drivers:
            rates[:, e.first[k]] = laws[k, 1:]
        rates[1, : e.count] -= bias
        norms = np.sum(q[:, 3:] ** 2, axis=1) - 1.0
        return np.concatenate([phi, norms]), whole, rates[0], rates[1], turned

    def _chosen(self, matrix: Floats) -> Ints:
        """The columns that become pivots: in each row, what is left of it, the largest element."""
        left = matrix.copy()
        columns: list[int] = []
        for k in range(len(left)):
            size = float(np.max(np.abs(matrix[k])))
            c = int(np.argmax(np.abs(left[k])))
            if abs(left[k, c]) <= self.tolerance * max(size, 1e-300):
                continue  # the rows before say the same
            columns.append(c)
            below = left[k + 1 :, c] / left[k, c]
            left[k + 1 :] -= np.outer(below, left[k])
            left[k + 1 :, c] = 0.0
        return np.array(sorted(columns), dtype=np.intp)

    def _solved(self, matrix: Floats, rhs: Floats, columns: Ints) -> Floats:
        """The unknowns of the chosen columns; the others are 0."""
        self.solves += 1
        x = np.zeros(matrix.shape[1])
        x[columns] = np.linalg.lstsq(matrix[:, columns], rhs, rcond=1e-13)[0]
        return x

    def at(self, state: State, t: float, tolerance: float) -> State | None:
        """The state at a time, from one before it; None if Newton's method finds none near."""
        h = t - state.t
        nb = self.e.nb
        q = state.q.copy()
        rate = np.concatenate(
            [part for x, w in zip(q, state.v, strict=True) for part in (w[:3], 0.5 * _g(x[3:]).T @ w[3:])]
        )
        columns: Ints | None = None
        guess = q.reshape(-1).copy()
        for _ in range(ITERATIONS):
            phi, matrix, *_ = self._equations(guess.reshape(nb, 7), state.angles, t, np.zeros((nb, 6)))
            if columns is None:
                columns = self._chosen(matrix)
                guess[columns] += h * rate[columns]  # those held stay where they are
                phi, matrix, *_ = self._equations(guess.reshape(nb, 7), state.angles, t, np.zeros((nb, 6)))
            change = self._solved(matrix, -phi, columns)
            guess += change
            self.iterations += 1
            if not np.isfinite(guess).all():
                return None
            if np.max(np.abs(change), initial=0.0) <= 1e-11 * self.e.size:
                break
        assert columns is not None
        q = guess.reshape(nb, 7)
        phi, matrix, first, _, angles = self._equations(q, state.angles, t, np.zeros((nb, 6)))
        if np.max(np.abs(phi), initial=0.0) > tolerance:
            return None
        v = self._twists(q, self._solved(matrix, first, columns))
        _, _, _, second, _ = self._equations(q, state.angles, t, v)
        a = self._twists(q, self._solved(matrix, second, columns))
        return State(t, q.copy(), v, a, angles)

    def _twists(self, q: Floats, rates: Floats) -> Floats:
        x = rates.reshape(self.e.nb, 7)
        return np.stack([np.concatenate([x[k, :3], 2.0 * _g(q[k, 3:]) @ x[k, 3:]]) for k in range(self.e.nb)])


def _g(e: Floats) -> Floats:
    """G(e) (3, 4) with ω = 2 G ė in ground's axes."""
    return np.array([[-e[1], e[0], -e[3], e[2]], [-e[2], e[3], e[0], -e[1]], [-e[3], -e[2], e[1], e[0]]])
