"""States in which the constraints hold, as far as they can, and the damped Newton method that leads there, over
mechanisms of one structure that differ by numbers.

A system with a number that is not finite has the solution NaN, where LAPACK would not return one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.constraints.accumulated_angles import accumulated_angles
from linkwright.constraints.constraint_equations import PARALLEL, Constraint, Equations, record_numbers
from linkwright.constraints.elimination import RANK_TOLERANCE
from linkwright.constraints.kinematic_programs import Programs, named
from linkwright.constraints.program_layout import Layout, moved
from linkwright.kernels.kernel import Kernel
from linkwright.model.description import GROUND, Description
from linkwright.model.drawing import drawn_rows
from linkwright.model.joint_kinds import KINDS
from linkwright.model.parameter_cases import Cases
from linkwright.model.placements import body_lengths, length_scale
from linkwright.spatial.rotation import euler_parameters, euler_parameters_matrix

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
    """States (..., nb, 7) after small shifts and turns (..., nb, 6)."""
    return np.ascontiguousarray(np.moveaxis(moved(np.moveaxis(q, -1, 0), np.moveaxis(d, -1, 0)), 0, -1))


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
    here = batch.evaluate(q, _accumulated_angles(batch, q, t) if angles is None else angles, t)
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
        there = some.evaluate(ahead, _accumulated_angles(some, ahead, t) if recount else turns, t)
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


def _accumulated_angles(batch: Batch, q: Floats, t: float) -> Floats:
    """The angles of screws and gears where the bodies are drawn."""
    return accumulated_angles(batch.equations, map(batch.description, range(len(q))), q, repeat(t))


def misses(programs: Programs, state: Assembled, t: float) -> dict[Constraint, float]:
    """By how much each element misses, in metres, the worst first."""
    e, one = programs.layout.equations, Batch.of_one(programs)
    sizes = one.gaps(state.q[None], state.angles[None], t)[0][0]
    worst = {c: float(np.max(sizes[e.rows(k)])) for k, c in enumerate(e.constraints)}
    return dict(sorted(worst.items(), key=lambda item: -item[1]))


Flags = NDArray[np.bool_]
#: Axes that should be parallel have this gap at right angles, and 2 where they are opposite.
OPPOSITE = 1.0
LANES = 8  # a batch of fewer rows would run by other code, whose last bits may differ


@dataclass(frozen=True, eq=False)
class Batch:
    """The programs of n mechanisms and their inputs that hold numbers, (n, ...). One mechanism is a batch of one.

    The cases of a study run by the code for many rows even if few are left, so that the numbers of a case do not
    depend on which others come with it.
    """

    programs: Programs
    inputs: dict[str, Floats]
    size: Floats  # (n,): a length that is typical for each mechanism
    sizes: Floats  # (n, nb): as `Equations.sizes`
    description: Callable[[int], Description]  # of the mechanism with this number
    lanes: bool

    @classmethod
    def of_one(cls, programs: Programs) -> Batch:
        """One mechanism, with the numbers that its programs have now."""
        e = programs.layout.equations
        inputs = {name: x[None] for name, x in programs.numbers.items()}
        return cls(programs, inputs, np.array([e.size]), e.sizes[None], lambda k: e.description, lanes=False)

    @classmethod
    def of_cases(cls, programs: Programs, cases: Cases) -> Batch:
        """The cases of the mechanism that the programs are of."""
        e, n = programs.layout.equations, len(cases)
        size, sizes = length_scale(e.description, cases.array), body_lengths(e.description, cases.array)
        inputs = {name: np.repeat(x[None], n, axis=0) for name, x in programs.numbers.items()}
        inputs["lengths"] = sizes
        inputs["weights"][:, :, 3:] *= (e.sizes / sizes)[:, :, None] ** 2
        if e.count:
            numbers = [source for c in e.constraints for source in c.numbers]
            rows = cache(lambda name: cases.array(name).reshape(n, len(getattr(e.description, name)), -1))
            inputs["records"] = record_numbers(numbers, rows, cases.evaluated, (n,))
            inputs["arms"] = e.arms(size)
        if cases.table.shape[1]:
            inputs["parameters"] = cases.table
        return cls(programs, inputs, size, sizes, cache(cases.one), lanes=True)

    def __len__(self) -> int:
        return len(self.size)

    def __getitem__(self, rows: Any) -> Batch:
        """Some of the mechanisms: by their numbers, or by flags."""
        numbers = np.arange(len(self))[rows]
        inputs = {name: x[numbers] for name, x in self.inputs.items()}
        size, sizes = self.size[numbers], self.sizes[numbers]
        return Batch(self.programs, inputs, size, sizes, lambda k: self.description(int(numbers[k])), self.lanes)

    @property
    def equations(self) -> Equations:
        """Of the mechanism that the programs are of."""
        return self.programs.layout.equations

    def one(self, k: int) -> Programs:
        """The programs of one mechanism, with its numbers."""
        return Programs(Layout(Equations(self.description(k)))) if self.lanes else self.programs

    # -- programs -----------------------------------------------------------------------------------------------
    def run(self, program: Kernel, **states: Floats) -> dict[str, Floats]:
        """The outputs (n, ...) of a program by their names, from what is no number of the mechanisms by its name."""
        n, inputs = len(self), {**self.inputs, **states}
        if not self.lanes or n >= LANES:
            return named(program, inputs)
        few = (port.name for port in program.inputs)
        padded = {name: np.concatenate([inputs[name], np.repeat(inputs[name][-1:], LANES - n, axis=0)]) for name in few}
        return {name: x[:n] for name, x in named(program, padded).items()}

    def evaluate(self, q: Floats, angles: Floats, t: float) -> dict[str, Floats]:
        """As `Programs.evaluate`, at rest."""
        v = np.zeros((*q.shape[:2], 6))
        return self.run(self.programs.evaluation, q=q, angles=angles, t=self.all(t), v=v)

    def correct(self, q: Floats, angles: Floats, t: float, damping: Floats, tolerance: Floats) -> dict[str, Floats]:
        """As `Programs.correct`, with the damping and the rank tolerance of each (n,)."""
        states = {"q": q, "angles": angles, "t": self.all(t), "damping": damping[:, None]}
        return self.run(self.programs.correction, **states, tolerance=tolerance[:, None])

    def all(self, x: float) -> Floats:
        """(n, 1): a number that all have."""
        rows = np.empty((len(self), 1))
        rows.fill(x)
        return rows

    # -- measures -----------------------------------------------------------------------------------------------
    def row_norms(self, stored: Floats) -> Floats:
        """(n, count): how fast each equation changes with the bodies' shifts and turns: divides Φ into metres.

        `stored` are the parts of J. An equation that nothing changes at a state (axes at 90° that should be parallel)
        is a length as it is, or an angle or sine times the mechanism's size.
        """
        layout = self.programs.layout
        rows, bodies = layout.entries
        parts = layout.parts(stored)
        shifts, turns = parts[:, :, :3], parts[:, :, 3:] / self.sizes[:, bodies, None]
        squares = row_sums(rows, sum(np.einsum("nki,nki->nk", x, x) for x in (shifts, turns)), self.equations.count)
        return np.where(squares > 0.0, np.sqrt(squares), 1.0 / self.equations.arms(self.size))

    def gaps(self, q: Floats, angles: Floats, t: float) -> tuple[Floats, Floats]:
        """(n, count): by how much each equation is not met (m), and the counted angles there."""
        here = self.evaluate(q, angles, t)
        return np.abs(here["phi"] / self.row_norms(here["jacobian"])), here["angles_there"]

    def wrong_way(self, q: Floats) -> Flags:
        """(n,): whether a joint's equations hold with an axis turned round."""
        return np.asarray((axis_gaps(self.equations, self.inputs["records"], q) > OPPOSITE).any(axis=1))


def row_sums(rows: NDArray[np.int64], x: Floats, count: int) -> Floats:
    """(n, count): the sums of the entries (n, k) of each row."""
    n = len(x)
    places = (np.arange(n)[:, None] * count + rows).reshape(-1)
    sums: Floats = np.bincount(places, x.reshape(-1), minlength=n * count).astype(np.float64)
    return sums.reshape(n, count)


def axis_gaps(e: Equations, records: Floats, q: Floats) -> Floats:
    """(n, joints): how far the axes of each joint are from right at states (n, nb, 7), by kind: 2 for opposite ones."""
    turns = np.empty((3, 3, len(q), e.nb + 1))  # ground is the last
    turns[..., :-1] = euler_parameters_matrix(q[:, :, 3:].transpose(2, 0, 1))
    turns[..., -1] = np.eye(3)[:, :, None]
    gaps = np.zeros((len(q), sum(len(axes.constraints) for axes in e.joint_axes)))
    for axes in e.joint_axes:
        frames = records[:, axes.places].reshape(len(q), *axes.bodies.shape, 3, 3)
        ends = np.einsum("ijnsk,nskjl->silnk", turns[..., axes.bodies], frames)
        r = np.einsum("jink,jlnk->ilnk", *ends)
        gap = KINDS[axes.kind].gap(r, np.zeros(r.shape[1:]))
        gaps[:, axes.constraints] = np.max(np.abs(gap), axis=0, initial=0.0)
    return gaps


def wrong_way(e: Equations, q: Floats) -> dict[str, float]:
    """The joints of a mechanism whose equations hold at a state with an axis turned round, and how far they are."""
    gaps = axis_gaps(e, e.records[None], q[None])[0]
    return {e.constraints[k].name: float(gaps[k]) for k in np.flatnonzero(gaps > OPPOSITE)}


def about_axis(c: Constraint) -> bool:
    """Whether a constraint is an angle about joint axes that are drawn parallel."""
    return "about h" in c.form.key and len(c.bodies) > 1


def axis_sines(e: Equations, k: int, records: Floats, q: Floats) -> Floats:
    """(...): the sine between the joint axes of a constraint's two frames, at states (..., nb, 7)."""
    axes = []
    for side, body in enumerate(e.constraints[k].bodies):
        first = int(e.record_at[k]) + 12 * side
        axis = records[..., first + 2 : first + 9 : 3]  # the last column of the rotation
        if body != GROUND:
            turn = euler_parameters_matrix(np.moveaxis(q[..., body, 3:], -1, 0))
            axis = np.einsum("ij...,...j->...i", turn, axis)
        axes.append(axis)
    return np.asarray(np.linalg.norm(np.cross(axes[0], axes[1]), axis=-1))


# -- cases ------------------------------------------------------------------------------------------------------------
def drawn_states(d: Description, cases: Cases) -> Floats:
    """(n, nb, 7): the bodies of every case as drawn."""
    x = cases.array
    start = None if d.start is None else (x("start_r"), x("start_p"))
    r, p = drawn_rows(d, x("ri"), x("pi"), x("rj"), x("pj"), start)
    e = euler_parameters(np.moveaxis(r.reshape(-1, 3, 3), 0, -1))
    return np.concatenate([p, np.moveaxis(e, 0, -1).reshape(*p.shape[:2], 4)], axis=2)


def same_forms(batch: Batch, drawn: Floats) -> Flags:
    """(n,): whether a case has the equations of the mechanism as it stands: what is drawn parallel decides some."""
    e = batch.equations
    same = np.ones(len(batch), bool)
    for driver, k in zip(e.description.drivers, e.drivers, strict=True):
        if driver.kind == "angle" and "h" not in driver.axes:
            parallel = axis_sines(e, k, batch.inputs["records"], drawn) < PARALLEL
            same &= parallel == about_axis(e.constraints[k])
    return same
