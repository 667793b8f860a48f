"""Rank of the constraint equations at a state: degrees of freedom, what they move, redundant equations."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.text import first_few
from linkwright.constraints.diagnosis import repeated_drivers
from linkwright.constraints.kinematic_programs import Programs

#: Up to so many entries of J the rank is found on the dense matrix, in the order of the file.
DENSE = 400_000
#: A row counts as dependent when less than this part of it is independent of those before.
DEPENDENT = 1e-8


@dataclass(frozen=True)
class FreedomReport:
    """What the constraints leave free at a state."""

    coordinates: int  # six for every moving body
    equations: int
    rank: int
    redundant: tuple[str, ...]  # "joint 'b': meeting along h"
    moving: tuple[str, ...]  # bodies that the freedom moves
    driven: int = 0  # how many of the drivers' equations are independent of the others
    repeated: tuple[tuple[str, ...], ...] = ()  # each a driver that is redundant, and the drivers that it repeats

    @property
    def left(self) -> int:
        """Degrees of freedom that the drivers leave."""
        return self.coordinates - self.rank

    def sentences(self) -> list[str]:
        """What a person should know of it, a line each; nothing if all is as it should be."""
        sentences = []
        if self.left:
            what = "1 degree of freedom is" if self.left == 1 else f"{self.left} degrees of freedom are"
            verb = "moves" if self.left == 1 else "move"
            sentences.append(f"{what} left" + (f", and {verb} {first_few(self.moving, 6)}" if self.moving else ""))
        for driver, *others in self.repeated:
            if others:
                names = first_few([repr(name) for name in others], 3)
                sentences.append(f"drivers {driver!r} and {names} drive the same degree of freedom; remove one of them")
            else:
                sentences.append(f"driver {driver!r} drives what the constraints hold already; remove it")
        if self.redundant:
            what = "equation is" if len(self.redundant) == 1 else "equations are"
            some = first_few(self.redundant, 3)
            sentences.append(f"{len(self.redundant)} {what} redundant, such as {some}; the choice is not unique")
        return sentences


def freedom(
    programs: Programs, q: Floats, angles: Floats, t: float, pivots: Floats, *, quick: bool = False
) -> FreedomReport:
    """The rank at an assembled state; the choice of redundant equations is not unique: the later ones are named.

    `quick` leaves out, for a large mechanism, which bodies the freedom moves.
    """
    layout = programs.layout
    e = layout.equations
    _, jacobian, _, _, _ = programs.evaluate(q, angles, np.array([t]), np.zeros((e.nb, 6)))
    if e.count * 6 * e.nb <= DENSE:
        j = layout.dense(jacobian)
        j = j * e.units.reshape(-1)
        basis, dependent = independent_rows(j, max(DEPENDENT, np.sqrt(10.0 * programs.tolerance)))
        rank = len(basis)
        free = np.eye(6 * e.nb) - basis.T @ basis
    else:
        dependent = np.flatnonzero(pivots <= programs.tolerance).tolist()
        rank = e.count - len(dependent)
        known = quick or rank == 6 * e.nb
        free = np.zeros((6 * e.nb, 0)) if known else _random_freedom(programs, q, angles, t)
    equations = [e.equation(row) for row in dependent]
    equations.sort(key=lambda pair: pair[0].group != "driver")
    redundant = [f"{constraint}: {about}" for constraint, about in equations]
    moving: tuple[str, ...] = ()
    if rank < 6 * e.nb:
        sizes = np.abs(free).reshape(e.nb, 6, free.shape[1]).max(axis=(1, 2), initial=0.0)
        names = e.description.body_names
        moving = tuple(names[int(k)] for k in np.flatnonzero(sizes > 1e-6))
    gone = set(dependent)
    driven = sum(int(e.first[k]) not in gone for k in e.drivers)
    doubled = [k for k in e.drivers if int(e.first[k]) in gone]
    repeated = repeated_drivers(programs, q, angles, t, doubled) if doubled else ()
    return FreedomReport(6 * e.nb, e.count, rank, tuple(redundant), moving, driven, repeated)


def independent_rows(j: Floats, tolerance: float) -> tuple[Floats, list[int]]:
    """An orthonormal basis of the rows (twice orthogonalised), and the rows that those before them span."""
    room = np.empty((min(j.shape), j.shape[1]))
    rank = 0
    dependent: list[int] = []
    for k, row in enumerate(j):
        basis = room[:rank]
        size = sqrt(row @ row)
        apart = row - basis.T @ (basis @ row)
        apart = apart - basis.T @ (basis @ apart)
        left = sqrt(apart @ apart)
        if size == 0.0 or left <= tolerance * size or rank == j.shape[1]:
            dependent.append(k)
        else:
            room[rank] = apart / left
            rank += 1
    return room[:rank], dependent


def _random_freedom(programs: Programs, q: Floats, angles: Floats, t: float) -> Floats:
    """A few random motions with all parts that the constraints forbid taken away."""
    e = programs.layout.equations
    lengths = 1.0 / e.units
    rng = np.random.default_rng(0)
    motions = []
    for _ in range(3):
        motion = rng.normal(size=(e.nb, 6)) / lengths
        for _ in range(2):  # the second time takes away what rounding left
            motion = programs.allowed(q, angles, np.array([t]), motion)
        motions.append((motion * lengths).reshape(-1))
    return np.stack(motions, axis=1)
