"""States in which the constraints hold, as far as they can, the damped Newton method that leads there, and its small
least squares.

A system with a number that is not finite has the solution NaN, where LAPACK would not return one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.constraints.accumulated_angles import counted_angles
from linkwright.constraints.case_batch import Batch
from linkwright.constraints.constraint_programs import moved
from linkwright.constraints.elimination import RANK_TOLERANCE
from linkwright.constraints.equations import Constraint, Equations
from linkwright.constraints.kinematic_programs import Programs
from linkwright.spatial.rotation import euler_parameters

#: Singular values below this part of the largest are rounding.
RANK = 1e-10
#: The same of equations that must hold, whose basis of free motions should not hold a stiff direction.
HELD_RANK = 1e-8
#: Where rounded numbers leave a gap in redundant constraints, singular values below so many times that gap, as a part
#: of the mechanism's size, are rounding too.
GAPS = 50.0


def least(matrix: Floats, right: Floats) -> Floats:
    """The least solution of least squares."""
    if not np.isfinite(matrix).all():
        return np.full((matrix.shape[1], *right.shape[1:]), np.nan)
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=RANK)[0])


def split(g: Floats, right: Floats) -> tuple[Floats, Floats]:
    """The least solution of g x = right, and a basis of what g leaves free."""
    n = g.shape[1]
    if not len(g):
        return np.zeros(n), np.eye(n)
    if not np.isfinite(g).all():
        return np.full(n, np.nan), np.eye(n)
    u, s, vt = np.linalg.svd(g)
    rank = int(np.sum(s > HELD_RANK * max(float(s.max(initial=0.0)), 1e-300)))
    return vt[:rank].T @ ((u[:, :rank].T @ right) / s[:rank]), vt[rank:].T


def damped(matrix: Floats, right: Floats, damping: float) -> Floats:
    """The step of least squares, shorter with damping."""
    if not damping:
        return least(matrix, right)
    scale = float(np.sum(matrix**2) + np.linalg.norm(right)) + 1e-300  # what is left counts by its curvature
    normal = matrix.T @ matrix + damping * scale * np.eye(matrix.shape[1])
    return np.asarray(np.linalg.solve(normal, matrix.T @ right))


ITERATIONS = 200
#: Misses below this part of the mechanism's size are rounding.
EXACT = 1e-11
#: The largest turn of a single correction (rad), and the largest shift as a part of the mechanism's size.
TURN, SHIFT = 0.7, 1.0
#: After so many iterations in which the misses did not fall by this part of them, they will not any more.
PATIENCE, FALL = 20, 1e-6
#: The largest misfit that rounded numbers explain, as a part of the mechanism's size, whatever the tolerance.
MISFIT = 1e-3
#: Bodies that miss by a part ε of the mechanism's size turn equations that repeat others by about ε. Pivots, squares of
#: such angles, say nothing below the square of so many times ε; and the largest that is taken for nothing, lest
#: equations be left out that tell something.
TURNED, MOST = 20.0, 1e-4


@dataclass(frozen=True, eq=False)
class Assembled:
    """A state in which the constraints hold, as far as they can; or the states of a batch, with the cases first."""

    q: Floats
    angles: Floats
    miss: Any  # by how much the constraints do not hold (m)
    pivots: Floats
    iterations: Any
    tolerance: Any = RANK_TOLERANCE  # the part of a row's own size below which its pivot is lost

    @property
    def lost(self) -> Any:
        """How many equations repeat others."""
        return np.sum(self.pivots <= self._least, axis=-1)

    @property
    def pivot(self) -> Any:
        """The smallest that counts."""
        return np.min(np.where(self.pivots > self._least, self.pivots, 1.0), axis=-1, initial=1.0)

    @property
    def free(self) -> Any:
        """Whether the constraints leave degrees of freedom."""
        return 6 * self.q.shape[-2] > self.pivots.shape[-1] - self.lost

    @property
    def _least(self) -> Floats:
        return np.asarray(self.tolerance, dtype=np.float64)[..., None]

    def __getitem__(self, rows: Any) -> Assembled:
        """Some of a batch, or one."""
        arrays = (self.q, self.angles, self.miss, self.pivots, self.iterations, self.tolerance)
        return Assembled(*(x[rows].copy() for x in arrays))

    def put(self, rows: Any, states: Assembled) -> None:
        """Take over the states of others in these rows."""
        for name, x in vars(states).items():
            getattr(self, name)[rows] = x


def start_state(equations: Equations) -> Floats:
    """The bodies as drawn."""
    return np.concatenate([equations.start_p, euler_parameters(equations.start_r.transpose(1, 2, 0)).T], axis=1)


def moved_states(q: Floats, d: Floats) -> Floats:
    """States (n, nb, 7) after small shifts and turns (n, nb, 6)."""
    return np.ascontiguousarray(moved(q.transpose(2, 0, 1), d.transpose(2, 0, 1)).transpose(1, 2, 0))


def rank_tolerance(part: Floats) -> Floats:
    """The part of a row's own size below which its pivot is lost, where bodies miss by a part of the mechanism's size.

    A miss that rounded numbers do not explain tells nothing about the rank.
    """
    turned = np.minimum(np.maximum((TURNED * np.minimum(part, MISFIT)) ** 2, RANK_TOLERANCE), MOST)
    return np.asarray(np.where(part <= MISFIT, turned, RANK_TOLERANCE))


def damped_newton(
    batch: Batch, q: Floats, angles: Floats | None, t: float, *, leave_out_turned: bool = False
) -> Assembled:
    """Newton's method from states (n, nb, 7): least changes of q, each accepted only if the gaps become smaller.

    With `leave_out_turned`, equations that the miss alone makes independent are left out as long as that leads on:
    corrections by them go far.
    """
    e = batch.equations
    slow = np.minimum(1.0, 1.0 / e.units[:, :1])  # what gears make fast may go far
    recount = angles is None and bool(e.description.mimics)
    here = batch.evaluate(q, _counted_angles(batch, q, t) if angles is None else angles, t)
    norms = batch.row_norms(here["jacobian"])
    turns, scaled = here["angles_there"], here["phi"] / norms
    miss, merit = np.max(np.abs(scaled), axis=1, initial=0.0), np.sum(scaled**2, axis=1)
    usual, left_out = batch.inputs["tolerance"][:, 0], np.full(len(batch), leave_out_turned)
    damping, idle = np.zeros(len(batch)), np.zeros(len(batch), np.int64)
    rows, some = np.arange(len(batch)), batch  # those that go on
    ended: list[tuple[Floats, ...]] = []
    for iteration in range(1, ITERATIONS + 1):
        tolerance = np.where(left_out, rank_tolerance(miss / some.size), usual)
        fewer = tolerance > usual
        step = some.correct(q, turns, t, damping, tolerance)
        delta, ahead = step["delta"], step["changed"]
        shift, turn = _largest(delta[:, :, :3] * slow) / some.size, _largest(delta[:, :, 3:] * slow)
        short = np.minimum(1.0, np.minimum(TURN / np.maximum(turn, 1e-300), SHIFT / np.maximum(shift, 1e-300)))
        far = short < 1.0
        if far.any():
            ahead[far] = moved_states(q[far], short[far, None, None] * delta[far])
        there = some.evaluate(ahead, _counted_angles(some, ahead, t) if recount else turns, t)
        scaled = there["phi"] / norms
        wanted, largest = np.sum(scaled**2, axis=1), np.maximum(turn, shift)
        idle = np.where(wanted < (1.0 - FALL) * merit, 0, idle + 1)
        taken = (wanted < merit) | ((largest < 1e-13) & (wanted <= 4.0 * merit))
        q, turns = np.where(taken[:, None, None], ahead, q), np.where(taken[:, None], there["angles_there"], turns)
        miss = np.where(taken, np.max(np.abs(scaled), axis=1, initial=0.0), miss)
        merit = np.where(taken, wanted, merit)
        less, more = np.where(damping < 1e-9, 0.0, 0.1 * damping), np.maximum(1e-4, 10.0 * damping)
        damping = np.where(taken, less, np.where(fewer, damping, more))
        still = taken & (largest < 1e-11) & (damping == 0.0)
        left_out &= ~(fewer & (still | ~taken))
        over = (still | (~taken & (miss <= EXACT * some.size))) & ~fewer
        over |= ~(damping <= 1e8) | ~np.isfinite(largest) | (idle >= PATIENCE)
        if iteration == ITERATIONS:
            over[:] = True
        if over.any():
            ended.append((rows[over], q[over], turns[over], miss[over], np.full(int(over.sum()), iteration)))
            if over.all():
                break
            on = ~over
            rows, some, q, turns, miss, norms, merit = (
                rows[on],
                some[on],
                q[on],
                turns[on],
                miss[on],
                norms[on],
                merit[on],
            )
            usual, left_out, damping, idle = usual[on], left_out[on], damping[on], idle[on]
    rows, q, turns, miss, iterations = (np.concatenate(parts) for parts in zip(*ended, strict=True))
    order = np.argsort(rows)
    q, turns, tolerance = q[order], turns[order], batch.inputs["tolerance"][:, 0].copy()
    pivots = batch.correct(q, turns, t, np.zeros(len(batch)), tolerance)["pivots"]
    return Assembled(q, turns, miss[order], pivots, iterations[order], tolerance)


def damped_newton_of_one(programs: Programs, q: Floats, angles: Floats, t: float) -> Assembled:
    """The damped Newton method of one mechanism, from a state (nb, 7)."""
    return damped_newton(Batch.of_one(programs), q[None], angles[None], t)[0]


def _largest(x: Floats) -> Floats:
    return np.asarray(np.abs(x).reshape(len(x), -1).max(axis=1, initial=0.0))


def _counted_angles(batch: Batch, q: Floats, t: float) -> Floats:
    """The angles of screws and gears where the bodies are drawn."""
    return counted_angles(batch.equations, map(batch.description, range(len(q))), q, repeat(t))


def misses(programs: Programs, state: Assembled, t: float) -> dict[Constraint, float]:
    """By how much each element misses, in metres, the worst first."""
    e, one = programs.layout.equations, Batch.of_one(programs)
    here = one.evaluate(state.q[None], state.angles[None], t)
    sizes = np.abs(here["phi"] / one.row_norms(here["jacobian"]))[0]
    worst = {c: float(np.max(sizes[e.first[k] : e.first[k + 1]])) for k, c in enumerate(e.constraints)}
    return dict(sorted(worst.items(), key=lambda item: -item[1]))
