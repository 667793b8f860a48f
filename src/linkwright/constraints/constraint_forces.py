r"""What joints, ties, gears and drivers exert at a state: the multipliers λ with Jᵀ λ = what the bodies are short of.

Where constraints repeat each other, λ is not unique, and the one of least norm is taken: Σ |force|² + |moment/L|² over
all constraints, at the origin of each one's last frame, L being the size of the mechanism. It does not depend on where
loops are cut.
"""

from __future__ import annotations

from itertools import repeat

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.constraints.counted_angles import counted_angles
from linkwright.constraints.equations import Constraint
from linkwright.constraints.kinematic_programs import Programs
from linkwright.model.description import GROUND
from linkwright.spatial.rotation import euler_parameters_matrix

#: Up to so many entries of J its pseudo-inverse is computed; beyond, the least solution is found by iteration.
DENSE = 400_000
AT_ONCE = 2_000_000  # entries of J at all states that are worked on together


class Reactions:
    """The reactions of a mechanism at given states of its bodies."""

    def __init__(self, programs: Programs) -> None:
        self.programs = programs
        self.equations = programs.layout.equations

    def multipliers(self, states: Floats, times: Floats, wanted: Floats) -> tuple[Floats, Floats]:
        """λ (T, m) with Jᵀ λ = wanted (T, nb, 6), at the bodies' origins in ground's axes, and the parts of J."""
        e, count = self.equations, len(times)
        angles = counted_angles(e, repeat(e.description), states, times.tolist())
        still = np.zeros((count, e.nb, 6))
        _, jacobian, _, _, _ = self.programs.evaluate(states, angles, times[:, None].copy(), still)
        multipliers = np.empty((count, e.count))
        at_once = max(1, AT_ONCE // max(6 * e.nb * e.count, 1))
        for first in range(0, count, at_once):
            some = slice(first, first + at_once)
            multipliers[some] = self._least(states[some], jacobian[some], wanted[some])
        return multipliers, jacobian

    def wrench(self, k: int, multipliers: Floats, jacobian: Floats, body: int) -> Floats:
        """The wrenches (T, 6) of constraint k on one of its bodies, at the body's origin in ground's axes."""
        e = self.equations
        part = self._part(k, jacobian, body)
        return np.asarray(np.einsum("tmk,tm->tk", part, multipliers[:, int(e.first[k]) : int(e.first[k + 1])]))

    def _part(self, k: int, jacobian: Floats, body: int) -> Floats:
        """The (T, m, 6) numbers of J for a constraint and a body."""
        m, at = self.equations.constraints[k].form.size, self.programs.layout.part_at[k][body]
        return jacobian[:, at : at + 6 * m].reshape(-1, m, 6)

    def _least(self, states: Floats, jacobian: Floats, wanted: Floats) -> Floats:
        """λ = R⁻¹ μ, with μ of least norm."""
        e, layout = self.equations, self.programs.layout
        inverse = [self._scale(k, c, states, jacobian) for k, c in enumerate(e.constraints)]
        # Moments count as forces with an arm of the mechanism's size, and all by how fast gears make a body.
        units = e.units[:, :1] / np.repeat([1.0, e.size], 3)
        right = (wanted * units).reshape(len(wanted), -1)
        rows_at, bodies = layout.entries
        if e.count * 6 * e.nb > DENSE:
            rows = zip(layout.parts(jacobian) * units[bodies], right, strict=True)
            multipliers = np.stack([self._by_iteration(j, w, [r[n] for r in inverse]) for n, (j, w) in enumerate(rows)])
        else:
            whole = np.zeros((len(states), e.count, e.nb, 6))
            whole[:, rows_at, bodies] = layout.parts(jacobian) * units[bodies]
            j = whole.reshape(len(states), e.count, -1)
            for k, r in enumerate(inverse):
                columns = slice(int(e.first[k]), int(e.first[k + 1]))
                j[:, columns] = np.swapaxes(r, 1, 2) @ j[:, columns]
            multipliers = np.einsum("tmk,tk->tm", np.linalg.pinv(np.swapaxes(j, 1, 2), rcond=1e-11), right)
        for k, r in enumerate(inverse):
            columns = slice(int(e.first[k]), int(e.first[k + 1]))
            multipliers[:, columns] = np.einsum("tij,tj->ti", r, multipliers[:, columns])
        return np.asarray(multipliers)

    def _scale(self, k: int, c: Constraint, states: Floats, jacobian: Floats) -> Floats:
        """R⁻¹ (T, m, m), where |R λ| is the size of a constraint's wrench."""
        side = max(s for s, body in enumerate(c.bodies) if body != GROUND)
        body = c.bodies[side]
        part = self._part(k, jacobian, body).copy()
        r = euler_parameters_matrix(states[:, body, 3:].T)
        arm = np.einsum("ijt,j->ti", r, c.record[12 * side + 9 : 12 * side + 12])
        # The moment about the frame's origin: M − r × F.
        part[..., 3:] = (part[..., 3:] - np.cross(arm[:, None], part[..., :3])) / self.equations.size
        upper = np.linalg.qr(np.swapaxes(part, 1, 2), mode="r")
        diagonal = np.abs(np.diagonal(upper, axis1=1, axis2=2))
        whole = (diagonal.min(axis=1) > 1e-9 * diagonal.max(axis=1)) & (c.form.sides <= 2)
        sizes = np.linalg.norm(part, axis=2)
        scale = np.asarray(np.eye(c.form.size) / np.where(sizes > 0.0, sizes, 1.0)[:, None, :])
        scale[whole] = np.linalg.inv(upper[whole])
        return scale

    def _by_iteration(self, parts: Floats, wanted: Floats, inverse: list[Floats]) -> Floats:
        """μ of one state, of the parts of J as rows of six."""
        from scipy.sparse import block_diag, csr_array  # type: ignore[import-untyped]  # SciPy has no types
        from scipy.sparse.linalg import lsmr  # type: ignore[import-untyped]  # SciPy has no types

        e, layout = self.equations, self.programs.layout
        rows, bodies = layout.entries
        columns = 6 * bodies[:, None] + np.arange(6)
        shape = (e.count, 6 * e.nb)
        j = csr_array((parts.reshape(-1), (np.repeat(rows, 6), columns.reshape(-1))), shape=shape)
        scaled = (block_diag([r.T for r in inverse], format="csr") @ j).T
        return np.asarray(lsmr(scaled, wanted, atol=1e-13, btol=1e-13, maxiter=20 * e.count)[0])
