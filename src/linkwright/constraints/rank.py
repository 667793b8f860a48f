"""Rank of the constraint equations at a state: degrees of freedom, redundant equations, parts that follow from each
other, and whether two states are on one branch.

A driven crank is known by itself, then a coupler and rocker together that it moves, and so on; what is left in the end
are larger loops, or bodies with freedom. J is block triangular in this order.

Where J has as many independent rows as columns, det J keeps its sign along a branch and changes it where two branches
cross. With redundant equations det(J₀ᵀJ₁) tells the same of two states near each other (by Cauchy and Binet it is the
sum of the products of all such determinants), with undriven degrees of freedom det(J₀W⁻¹J₁ᵀ). A step that looks smooth
but has the wrong sign went from one branch to another. Each stage of a mechanism is compared by itself: equal loops
that meet their crossings at the same time would otherwise hide each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arguments import counted, first_few
from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.constraints.constrained_motions import constrained_motions, joined
from linkwright.constraints.constraint_equations import Constraint
from linkwright.constraints.diagnosis import repeated_drivers
from linkwright.constraints.kinematic_programs import Programs
from linkwright.constraints.program_layout import Layout
from linkwright.model.description import GROUND

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
    redundant: tuple[str, ...]  # "joint 'b': translation along its axis"
    moving: tuple[str, ...]  # bodies that the freedom moves
    driven: int = 0  # how many of the drivers' equations are independent of the others
    redundant_at: tuple[str, ...] = ()  # the same, joined by constraint
    repeated: tuple[tuple[str, ...], ...] = ()  # each a driver that is redundant, and the drivers that it repeats

    @property
    def left(self) -> int:
        """Degrees of freedom that the drivers leave."""
        return self.coordinates - self.rank

    def sentences(self, *, redundant: bool = True) -> list[str]:
        """What a person should know of it, a line each; nothing if all is as it should be.

        `redundant`: redundant equations too.
        """
        sentences = []
        if self.left:
            what = counted(self.left, "undriven degree of freedom", "undriven degrees of freedom")
            sentences.append(what + (f": {first_few(self.moving, 6)}" if self.moving else ""))
        for driver, *others in self.repeated:
            if others:
                names = first_few([repr(name) for name in others], 3)
                sentences.append(f"drivers {driver!r} and {names} drive the same degree of freedom; remove one of them")
            else:
                sentences.append(f"driver {driver!r} drives what the constraints hold already; remove it")
        if self.redundant and redundant:
            what = counted(len(self.redundant), "equation is", "equations are")
            some = first_few(self.redundant_at or self.redundant, 3)
            text = f"{what} redundant, such as {some}"
            if all(x.startswith("joint ") for x in self.redundant):
                text += ", which other joints constrain already"
            sentences.append(f"{text}; the choice is not unique")
        return sentences


def freedom(
    programs: Programs, q: Floats, angles: Floats, t: float, pivots: Floats, *, quick: bool = False
) -> FreedomReport:
    """The rank at an assembled state; the choice of redundant equations is not unique: the later ones are named.

    `quick` leaves out, for a large mechanism, which bodies the freedom moves.
    """
    layout = programs.layout
    e = layout.equations
    jacobian = programs.evaluate(q, angles, t).jacobian
    if e.count * 6 * e.nb <= DENSE:
        j = layout.dense(jacobian, e.units)
        with np.errstate(all="ignore"):  # a slope may have no bound, as that of a square root at 0
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
    by_constraint: dict[str, tuple[Constraint, list[str]]] = {}
    for c, name in equations:
        by_constraint.setdefault(str(c), (c, []))[1].append(name)
    motions = {text: constrained_motions(e, q, c, names) for text, (c, names) in by_constraint.items()}
    redundant = [f"{text}: {motion}" for text, parts in motions.items() for motion in parts]
    redundant_at = tuple(f"{text}: {joined(parts)}" for text, parts in motions.items())
    moving: tuple[str, ...] = ()
    if rank < 6 * e.nb:
        sizes = np.abs(free).reshape(e.nb, 6, free.shape[1]).max(axis=(1, 2), initial=0.0)
        names = e.description.body_names
        moving = tuple(names[int(k)] for k in np.flatnonzero(sizes > 1e-6))
    gone = set(dependent)
    driven = sum(int(e.first[k]) not in gone for k in e.drivers)
    doubled = [k for k in e.drivers if int(e.first[k]) in gone]
    repeated = repeated_drivers(programs, q, angles, t, doubled) if doubled else ()
    return FreedomReport(6 * e.nb, e.count, rank, tuple(redundant), moving, driven, redundant_at, repeated)


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
            motion = programs.allowed(q, angles, t, motion)
        motions.append((motion * lengths).reshape(-1))
    return np.stack(motions, axis=1)


#: The most bodies that are tried together, and the most groups tried around one body.
TOGETHER, GROUPS = 4, 200
#: The smallest singular value, of rows of length 1, at which a group counts as determined.
DETERMINED = 1e-6


@dataclass(frozen=True)
class Stage:
    """Bodies, with the constraints between them and bodies of stages before."""

    constraints: tuple[int, ...]
    bodies: tuple[int, ...]
    determined: bool


def unit_rows(j: Floats) -> Floats:
    """J with rows of length 1, or 0."""
    lengths = np.linalg.norm(j, axis=1, keepdims=True)
    return np.asarray(j / np.where(lengths > 0.0, lengths, 1.0))


class Stages:
    """Finds the stages at a state, given by its J as stored."""

    def __init__(self, layout: Layout, stored: Floats) -> None:
        self.layout, self.e = layout, layout.equations
        self.stored = np.append(stored[: layout.jacobian_size], 0.0)  # 0 behind the last: a part that is not there
        self.moving = [tuple({b for b in c.bodies if b != GROUND}) for c in self.e.constraints]
        self.on_body: list[list[int]] = [[] for _ in range(self.e.nb)]
        for k, bodies in enumerate(self.moving):
            for b in bodies:
                self.on_body[b].append(k)
        self.open = set(range(self.e.nb))

    def found(self) -> list[Stage]:
        stages: list[Stage] = []
        # From the drivers outward, so that few groups are tried in vain.
        driven = {b for k in self.e.drivers for b in self.moving[k]}
        waiting = deque(sorted(self.open, key=lambda b: (b not in driven, b)))
        while waiting:
            body = waiting.popleft()
            if body not in self.open:
                continue
            for group in self._groups(body):
                constraints = self._between(group)
                if self._determines(constraints, group):
                    stages.append(Stage(constraints, group, True))
                    self.open -= set(group)
                    waiting.extendleft(n for b in group for n in self._around(b))
                    break
        return stages + [Stage(self._between(group), group, False) for group in self._left()]

    def _around(self, body: int) -> list[int]:
        """The bodies that are not known yet and share a constraint with one."""
        return sorted({b for k in self.on_body[body] for b in self.moving[k]} & self.open - {body})

    def _groups(self, body: int) -> Iterator[tuple[int, ...]]:
        """Connected groups with a body, small ones first."""
        groups: list[tuple[int, ...]] = [(body,)]
        tried = {frozenset(groups[0])}
        for group in groups:  # grows while it is gone through
            yield group
            if len(group) == TOGETHER:
                continue
            for b in sorted({n for x in group for n in self._around(x)} - set(group)):
                larger = (*group, b)
                if frozenset(larger) not in tried and len(tried) < GROUPS:
                    tried.add(frozenset(larger))
                    groups.append(larger)

    def _between(self, group: tuple[int, ...]) -> tuple[int, ...]:
        """The constraints of a group whose other bodies are known."""
        inside = set(group)
        touching = sorted({k for b in group for k in self.on_body[b]})
        return tuple(k for k in touching if all(b in inside or b not in self.open for b in self.moving[k]))

    def _determines(self, constraints: tuple[int, ...], group: tuple[int, ...]) -> bool:
        if sum(self.e.constraints[k].form.size for k in constraints) < 6 * len(group):
            return False
        j = unit_rows(self.block(constraints, group))
        j = j[np.any(j != 0.0, axis=1)]
        return len(j) >= j.shape[1] and float(np.linalg.svd(j, compute_uv=False)[-1]) > DETERMINED

    def block(self, constraints: tuple[int, ...], group: tuple[int, ...]) -> Floats:
        """The rows of constraints and columns of bodies of J, turns as parts of the bodies' sizes."""
        return self.stored[self.layout.places(constraints, group)] / self.e.arcs[list(group)].reshape(-1)

    def _left(self) -> list[tuple[int, ...]]:
        """What is not determined, by what hangs together."""
        groups = []
        left = set(self.open)
        while left:
            group = [min(left)]
            left.discard(group[0])
            for b in group:  # grows while it is gone through
                more = [n for n in self._around(b) if n in left]
                group += more
                left -= set(more)
            groups.append(tuple(sorted(group)))
        return groups


Ints = NDArray[np.int64]
#: Stages with more columns of J than this are not compared: there the smoothness of steps alone tells.
LARGEST = 300


@dataclass(frozen=True, eq=False)
class Parts:
    """Stages of equal shape: where the entries of J stand in its store, and what makes lengths of them."""

    gather: Ints  # (parts, rows, columns)
    scale: Floats  # (parts, rows, columns): the arms of equations times the square root of W⁻¹; 0 for what is not there
    rows: bool  # more columns than independent rows: the products are of rows

    def of(self, stored: Floats) -> Floats:
        """(n, parts, rows, columns): J of the parts where n states have stored so much of it."""
        j = stored.take(self.gather, axis=1)
        j *= self.scale
        return j


class Branch:
    """Compares states, each with the one before it."""

    def __init__(self, programs: Programs, q: Floats, angles: Floats, t: float) -> None:
        self._programs, self._start = programs, (q, angles, t)

    @cached_property
    def parts(self) -> list[Parts]:
        """Found when first needed: many motions never come near a crossing."""
        layout = self._programs.layout
        e = layout.equations
        stored = self._programs.evaluate(*self._start).jacobian
        stages = Stages(layout, stored)
        shapes: dict[tuple[int, int, bool], list[tuple[Ints, Floats]]] = {}
        for stage in stages.found():
            bodies, free = list(stage.bodies), False
            if 6 * len(bodies) > LARGEST:
                continue
            rows = [row for c in stage.constraints for row in range(int(e.first[c]), int(e.first[c + 1]))]
            chosen = list(range(len(rows)))
            if not stage.determined:
                block = stages.block(stage.constraints, stage.bodies)
                dependent = set(independent_rows(block, np.sqrt(self._programs.tolerance))[1])
                free = len(rows) - len(dependent) < 6 * len(bodies)
                if free:
                    chosen = [k for k in chosen if k not in dependent]
            if not chosen:
                continue
            gather = layout.places(stage.constraints, bodies)[chosen]
            there = gather < layout.jacobian_size
            scale = e.arms(e.size)[[rows[k] for k in chosen]][:, None] / e.arcs[bodies].reshape(-1)
            shapes.setdefault((*gather.shape, free), []).append(
                (np.where(there, gather, 0), np.where(there, scale, 0.0))
            )
        return [
            Parts(np.stack([g for g, _ in group]), np.stack([s for _, s in group]), free)
            for (_, _, free), group in shapes.items()
        ]

    def same(self, q: Floats, angles: Floats, times: Floats) -> NDArray[np.bool_]:
        """For states (n, ...) one after another, whether each but the first is on the branch of the one before it."""
        if not self.parts:
            return np.ones(len(q) - 1, bool)
        stored = self._programs.evaluate(q, angles, times).jacobian
        same = np.ones(len(q) - 1, bool)
        for part in self.parts:
            j = part.of(stored)
            same &= agree(part, j[:-1], j[1:]).all(axis=1)
        return same

    def connects(self, before: Floats, after: Floats) -> NDArray[np.bool_]:
        """For what is stored of J at both ends of steps (n, ...), whether they are on one branch."""
        same = np.ones(len(before), bool)
        for part in self.parts:
            same &= agree(part, part.of(before), part.of(after)).all(axis=1)
        return same


def agree(part: Parts, first: Floats, second: Floats) -> NDArray[np.bool_]:
    """For every step and every part of equal shape, whether the determinants at both ends have one sign."""
    _, m, n = part.gather.shape
    if m == n:  # the sign of a product is the product of the signs, and better known
        return np.asarray(np.linalg.slogdet(first)[0] * np.linalg.slogdet(second)[0] >= 0.0)
    product = first @ second.transpose(0, 1, 3, 2) if part.rows else first.transpose(0, 1, 3, 2) @ second
    return np.asarray(np.linalg.slogdet(product)[0] >= 0.0)
