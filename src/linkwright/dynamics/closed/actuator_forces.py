r"""How inverse dynamics of closed mechanisms is recorded: the forces of the actuated joints by the virtual cut, in
straight code.

With rates and forces counted in the units of `rate_units`, P = 1 − Gᵀ (G Gᵀ)⁺ G takes forces to what the
constraints leave of them. The same power needs P E τ = P τ_O (Nakamura, Yamane and others, section 2.1), with the
tree's forces τ_O and the columns E of the actuated rates. Of all τ the one with the least Σ weight·τ² is taken, by the
matrix Eᵀ P E, whose rank is known from regular positions. Where all rates have actuators, τ_O − τ = Gᵀ λ is any force
of the constraints, and λ is by G Ω Gᵀ with the weights Ω.

The answer is NaN where straight code does not tell it: beside singular positions of constraints or actuators, for
accelerations that open loops, and for motions that the actuators do not produce. `closed_inverse` answers there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.dynamics.closed.closed_inverse import ALONE, LEFT, NONE, OPEN
from linkwright.dynamics.closed.closed_recorders import blocks_of, constraints_of, geometric, missed, moving, rate_units
from linkwright.dynamics.closed.constraint_space import ROUNDING, Elimination, gradient
from linkwright.dynamics.closed.loop_constraints import ConstraintAtState, together
from linkwright.dynamics.closed.redundancy import Actuation, Blocks, actuation
from linkwright.dynamics.methods.mass_matrix import mass_matrix
from linkwright.dynamics.methods.newton_euler import motions
from linkwright.dynamics.recorders import inverse_dynamics
from linkwright.dynamics.recording_context import RecordingContext
from linkwright.spatial.algebra import Array, LeastSquares, Limit, dot, swept
from linkwright.tape.block import absolute, maximum, minimum, where

#: Squares of angles between constraints, and of the shares that actuators have in motions, which straight code takes:
#: the answer's rounding errors are about 1e-16 over them.
REGULAR, SHARE = 1e-6, 1e-4


def actuator_forces(context: RecordingContext) -> Array:
    """τ (nv), zero where no joint has an actuator; NaN where `closed_inverse` has to be asked."""
    tree: Array = inverse_dynamics(context)
    factory, blocks = context.factory, blocks_of(context)
    traversal = moving(context)
    constraints = together(constraints_of(context, traversal), blocks.groups)
    g = [gradient(traversal, constraint) for constraint in constraints]
    actuated, units, ranks = factory.actuated, rate_units(context), actuation(factory)
    weights = np.ones(ranks.actuators)
    if ranks.actuators > ranks.reached:  # the weights share forces
        weights = context.inputs["weights"] / units[actuated] ** 2
        weights = weights / reduce(maximum, list(weights))
    every = bool(actuated.all())
    metric: Any = weights if every else 1.0
    k = geometric(context, traversal, constraints, g, blocks, metric)
    space = _Allowed(units, g, k, metric)
    certain: Any = k.least > REGULAR
    if not ranks.freedom:
        forces = np.zeros(ranks.actuators)
    elif every:
        forces = space.part(tree * units)
    else:
        forces, produced = _shares(space, tree * units, weights, ranks, np.flatnonzero(actuated))
        certain = where(certain, produced, 0.0)
    certain = where(_keeps(context, constraints, g, blocks, tree), certain, 0.0)
    taus: list[Any] = [0.0] * len(units)
    for at, force in zip(np.flatnonzero(actuated).tolist(), forces, strict=True):
        taus[at] = force / units[at]
    with np.errstate(invalid="ignore"):
        return np.array([where(certain, tau, np.nan) for tau in taus])


@dataclass(frozen=True)
class _Allowed:
    """P, by the constraints' G in blocks and G Ω Gᵀ eliminated, Ω being the metric's weights."""

    units: Array
    g: Sequence[Array]
    k: Elimination
    metric: Any

    def part(self, forces: Array) -> Array:
        """What the constraints leave of forces that are counted in the units."""
        pulled = self.units * self.metric * forces
        multipliers = self.k.solve([rows @ pulled for rows in self.g])
        held = sum(rows.T @ x for rows, x in zip(self.g, multipliers, strict=True))
        return np.asarray(forces - self.units * held)


def _shares(
    space: _Allowed, tree: Array, weights: Array, ranks: Actuation, actuated: NDArray[np.intp]
) -> tuple[Array, Any]:
    """The actuators' forces, and whether straight code is sure of them and they produce the motion."""
    wanted, count = space.part(tree), ranks.actuators
    columns = [space.part(np.eye(len(tree))[at]) for at in actuated.tolist()]
    least = reduce(minimum, list(weights), 1.0)
    shares = np.array([np.sqrt(least / weight) for weight in weights])
    matrix = np.array([[columns[j][at] for j in range(count)] for at in actuated]).reshape(count, count)
    matrix, right = shares[:, None] * matrix * shares, shares * wanted[actuated]
    if count == ranks.reached:
        inverse, pivots = swept(matrix, np.ones(count), ROUNDING)
        solve: Callable[[Array], Array] = inverse.dot
        pivot = reduce(minimum, pivots, 1.0)
    else:
        factors = LeastSquares(matrix, np.ones(count), [Limit(ROUNDING, np.ones(count))] * ranks.reached)
        solve, pivot = factors.solve, factors.least(ranks.reached)
    forces = solve(right)
    forces = shares * (forces + solve(right - matrix @ forces))
    sure = pivot > SHARE
    if ranks.reached == ranks.freedom:  # any motion that the constraints allow is produced
        return forces, sure
    left = wanted - sum((force * column for force, column in zip(forces, columns, strict=True)), np.zeros(len(tree)))
    sizes = space.part(absolute(tree))
    cancelling = maximum(dot(sizes, sizes), dot(wanted, wanted))
    return forces, where(dot(left, left) <= LEFT**2 * cancelling, sure, 0.0)


def _keeps(
    context: RecordingContext, constraints: Sequence[ConstraintAtState], g: Sequence[Array], blocks: Blocks, tree: Array
) -> Any:
    """Whether the accelerations keep the constraints: G a = γ, beside the accelerations that one of the tree's forces
    alone would give, since those of an equilibrium are rounding."""
    traversal = context.traversal()
    traversal.outward(motions, {"w": np.zeros(6), "b": np.zeros(6)})
    a, units = absolute(context.inputs["a"]), context.factory.constraint_units
    factory = context.factory
    d, rates = factory.description, rate_units(context)
    weight = NONE / LEFT * float(d.mass.sum()) * factory.size * np.sqrt(dot(context.gravity, context.gravity))
    forces, masses = absolute(tree) + weight / rates, np.diagonal(mass_matrix(context.traversal()))
    none = [m <= 0.0 for m in masses]
    fastest = [
        where(skip, 0.0, x / (where(skip, 1.0, m) * unit))
        for skip, x, m, unit in zip(none, forces, masses, rates, strict=True)
    ]
    opening: Any = 0.0
    size: Any = ALONE * reduce(maximum, fastest, 0.0)
    for constraint, rows, at in zip(constraints, g, blocks.rows, strict=True):
        for miss, terms, unit in zip(missed(traversal, constraint), absolute(rows) @ a, units[at], strict=True):
            opening, size = maximum(opening, absolute(miss) / unit), maximum(size, terms / unit)
    return opening <= OPEN * size
