"""Mechanisms of one structure that differ by numbers: their common programs, and the numbers of each, cases first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.constraints.constraint_programs import Layout
from linkwright.constraints.equations import PARALLEL, Constraint, Equations, drawn_rows, record_numbers
from linkwright.constraints.kinematic_programs import Programs, named
from linkwright.kernels.kernel import Kernel
from linkwright.model.cases import Cases
from linkwright.model.description import GROUND, Description
from linkwright.model.frames import body_lengths, length_scale
from linkwright.model.joint_kinds import KINDS
from linkwright.spatial.rotation import euler_parameters, euler_parameters_matrix

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
        parts = layout.parts(stored).copy()
        parts[:, :, 3:] /= self.sizes[:, bodies, None]
        squares = row_sums(rows, np.sum(parts**2, axis=2), self.equations.count)
        return np.where(squares > 0.0, np.sqrt(squares), 1.0 / self.equations.arms(self.size))

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
