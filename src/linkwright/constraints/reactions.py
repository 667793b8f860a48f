r"""What joints, ties, gears and drivers exert at a state: the multipliers λ with Jᵀ λ = what the bodies are short of.

Where constraints repeat each other, λ is not unique, and the one of least norm is taken: Σ |force|² + |moment/L|² over
all constraints, at the origin of each one's last frame, L being the size of the mechanism. It does not depend on where
loops are cut.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwright.constraints.counting import counted_at_start
from linkwright.constraints.equations import Constraint
from linkwright.constraints.programs import Programs
from linkwright.mechanism.description import GROUND
from linkwright.spatial.rotation import euler_parameters_matrix

Floats = NDArray[np.float64]
#: Up to so many entries of J its pseudo-inverse is computed; beyond, the least solution is found by iteration.
DENSE = 400_000


class Reactions:
    """The reactions of a mechanism at given states of its bodies."""

    def __init__(self, programs: Programs) -> None:
        self.programs = programs
        self.equations = programs.layout.equations

    def multipliers(self, state: Floats, t: float, wanted: Floats) -> tuple[Floats, Floats]:
        """λ (m,) with Jᵀ λ = wanted (nb, 6), and Jᵀ's parts: forces and moments at bodies' origins, ground's axes."""
        e, layout = self.equations, self.programs.layout
        angles = counted_at_start(e, state, t)
        _, jacobian, _, _, _ = self.programs.evaluate(state, angles, np.array([t]), np.zeros((e.nb, 6)))
        rows, bodies = layout.entries
        parts = layout.parts(jacobian)
        inverse = self._scales(state, jacobian)
        if e.count * 6 * e.nb <= DENSE:
            j = np.zeros((e.count, e.nb, 6))
            j[rows, bodies] = parts
            scaled = _by_constraint(inverse, e.first, j.reshape(e.count, -1))
            found = np.asarray(np.linalg.lstsq(scaled.T, wanted.reshape(-1), rcond=1e-11)[0], np.float64)
        else:
            found = self._by_iteration(rows, bodies, parts, inverse, wanted)
        return _back(inverse, e.first, found), jacobian

    def wrench(self, k: int, multipliers: Floats, jacobian: Floats, body: int) -> Floats:
        """The wrench of constraint k on one of its bodies, at the body's origin in ground's axes."""
        e, m = self.equations, self.equations.constraints[k].form.size
        at = self.programs.layout.part_at[k][body]
        part = jacobian[at : at + 6 * m].reshape(m, 6)
        first = int(e.first[k])
        return np.asarray(part.T @ multipliers[first : first + m])

    def _scales(self, state: Floats, jacobian: Floats) -> list[Floats]:
        """For every constraint R⁻¹, where |R λ| is the size of its wrench."""
        return [self._scale(k, c, state, jacobian) for k, c in enumerate(self.equations.constraints)]

    def _scale(self, k: int, c: Constraint, state: Floats, jacobian: Floats) -> Floats:
        side = max(s for s, body in enumerate(c.bodies) if body != GROUND)
        body = c.bodies[side]
        m, at = c.form.size, self.programs.layout.part_at[k][body]
        part = jacobian[at : at + 6 * m].reshape(m, 6).copy()
        arm = euler_parameters_matrix(state[body, 3:]) @ c.record[12 * side + 9 : 12 * side + 12]
        # The moment about the frame's origin: M − r × F.
        part[:, 3:] = (part[:, 3:] - np.cross(arm, part[:, :3])) / self.equations.size
        if c.form.sides > 2 or np.linalg.matrix_rank(part) != m:
            size = np.linalg.norm(part, axis=1)
            return np.diag(1.0 / np.where(size > 0.0, size, 1.0))
        return np.linalg.inv(np.linalg.qr(part.T, mode="r"))

    def _by_iteration(
        self, rows: NDArray[np.int64], bodies: NDArray[np.int64], parts: Floats, inverse: list[Floats], wanted: Floats
    ) -> Floats:
        from scipy.sparse import block_diag, csr_array  # type: ignore[import-untyped]
        from scipy.sparse.linalg import lsmr  # type: ignore[import-untyped]

        e = self.equations
        columns = 6 * bodies[:, None] + np.arange(6)
        shape = (e.count, 6 * e.nb)
        j = csr_array((parts.reshape(-1), (np.repeat(rows, 6), columns.reshape(-1))), shape=shape)
        scaled = (block_diag([r.T for r in inverse], format="csr") @ j).T
        return np.asarray(lsmr(scaled, wanted.reshape(-1), atol=1e-13, btol=1e-13, maxiter=20 * e.count)[0])


def _by_constraint(inverse: list[Floats], first: NDArray[np.int64], j: Floats) -> Floats:
    """R⁻ᵀ J, constraint by constraint."""
    parts = [r.T @ j[first[k] : first[k + 1]] for k, r in enumerate(inverse)]
    return np.concatenate(parts) if parts else j


def _back(inverse: list[Floats], first: NDArray[np.int64], found: Floats) -> Floats:
    """λ = R⁻¹ μ."""
    return np.concatenate([r @ found[first[k] : first[k + 1]] for k, r in enumerate(inverse)] or [found])
