"""The programs of an analysis: one correction, one step in time, the rates; all of one layout of buffers.

The state of a mechanism is q (nb, 7), the origins and Euler parameters of its bodies, in ground's axes; v and a (nb, 6)
are twists [ẋ; ω] and their derivatives, in ground's axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.constraints.constraint_equations import Equations, by_form
from linkwright.constraints.constraint_forms import Form, law_rates
from linkwright.constraints.elimination import RANK_TOLERANCE, Elimination
from linkwright.constraints.form_programs import (
    Pattern,
    Space,
    angles_block,
    bias_block,
    clock_block,
    each,
    entry,
    equations_block,
    lift_block,
    row,
)
from linkwright.constraints.split_elimination import Incidence
from linkwright.model.description import GROUND, Description
from linkwright.model.requested_analysis import System
from linkwright.spatial.algebra import Array, dot
from linkwright.spatial.rotation import euler_parameters_matrix, quaternion_product
from linkwright.tape.block import absolute, maximum, where
from linkwright.tape.build import ProgramBuilder, Ref
from linkwright.tape.program import Copy, Loop, Zero

#: What the code of a constraint depends on: its form, which of its frames move, and its record's trivial numbers.
Alike = tuple[Form, tuple[bool, ...], Pattern | None]
ITERATIONS = 25
#: Least-norm motion is integrated when the bodies' free parts move by less than this part of their sizes.
INTEGRATED = 1e-12
ROUNDS = 12


class Layout:
    """Where everything stands: constraints by form, their parts of J, the order of elimination."""

    width = 6  # numbers of a body's twist
    in_rounds = False  # whether constraints that do not touch each other are eliminated side by side
    named = True  # whether all redundant equations are those of constraints, which can be named

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        incidences: list[Incidence] = []
        self.part_at: list[dict[int, int]] = []  # for every constraint: body → where its part of J begins
        at = 0
        for k, c in enumerate(equations.constraints):
            begins: dict[int, int] = {}
            for body in c.bodies:
                if body != GROUND and body not in begins:
                    begins[body] = at
                    incidences.append(Incidence(k, body, at))
                    at += self.width * c.form.size
            self.part_at.append(begins)
        self.jacobian_size = at
        self.incidences = incidences

    @cached_property
    def plan(self) -> Elimination:
        """The order of elimination."""
        sizes = [c.form.size for c in self.equations.constraints]
        return Elimination(sizes, self.incidences, self.width, named=self.named, in_rounds=self.in_rounds)

    @cached_property
    def alike(self) -> dict[Alike, list[int]]:
        """The constraints that share their code."""
        return {(*key, None): members for key, members in by_form(self.equations.constraints).items()}

    @cached_property
    def entries(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For every six numbers of the parts of J: their equation, and their body."""
        e = self.equations
        sizes = np.array([e.constraints[x.constraint].form.size for x in self.incidences], dtype=np.int64)
        first = np.array([e.first[x.constraint] for x in self.incidences], dtype=np.int64)
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        bodies = np.array([x.body for x in self.incidences], dtype=np.int64)
        return np.repeat(first, sizes) + within, np.repeat(bodies, sizes)

    def parts(self, values: Floats) -> Floats:
        """The parts of J (...) as rows of a twist's width, one for each of `entries`."""
        return values[..., : self.jacobian_size].reshape(*values.shape[:-1], -1, self.width)

    def dense(self, values: Floats, units: Floats | float = 1.0) -> Floats:
        """J (..., m, width · nb) of its parts, for twists in units (nb, width)."""
        e = self.equations
        rows, bodies = self.entries
        j = np.zeros((*values.shape[:-1], e.count, e.nb, self.width))
        j[..., rows, bodies, :] = self.parts(values)
        return (j * units).reshape(*j.shape[:-2], e.nb * self.width)

    def by_sizes(self, values: Floats) -> Floats:
        """The same for turns that are counted by the arcs that they make at the bodies' sizes."""
        return self.dense(values, 1.0 / self.equations.arcs)

    def places(self, constraints: Sequence[int], bodies: Sequence[int]) -> NDArray[np.int64]:
        """(rows, width · bodies): where the rows of constraints and columns of bodies stand among the parts of J.

        The place behind the last stands for a part that is not there.
        """
        blocks = []
        for k in constraints:
            size, parts = self.equations.constraints[k].form.size, self.part_at[k]
            numbers = np.arange(size * self.width).reshape(size, self.width)
            none = np.full_like(numbers, self.jacobian_size)
            blocks.append(np.concatenate([parts[b] + numbers if b in parts else none for b in bodies], axis=1))
        return np.concatenate(blocks) if blocks else np.zeros((0, self.width * len(bodies)), np.int64)


def numbers(e: Equations) -> dict[str, Floats]:
    """The inputs that hold a mechanism's numbers: records, W⁻¹, sizes, arms, parameters, tolerances."""
    parameters = list(e.description.parameters.values())
    return {
        "records": e.records,
        "weights": e.units**2,
        "lengths": e.sizes.copy(),
        "arms": e.arms(e.size) if e.count else np.ones(1),
        "parameters": np.array(parameters or [0.0], dtype=np.float64),
        "tolerance": np.array([RANK_TOLERANCE]),
        "newton": newton(e.description),
    }


def newton(d: Description) -> Floats:
    """When Newton's method ends: the largest correction, as a part of the bodies' sizes, and the largest |Φ| (m)."""
    s = d.system or System()
    return np.array([s.newton_tolerance, np.inf if s.constraint_tolerance is None else s.constraint_tolerance])


class Recording:
    """A program under construction, with the buffers that all of them share."""

    space: Space | None = None  # of rows for bodies that are no whole states and twists
    width = 6  # numbers of a body's twist

    def __init__(self, layout: Layout, name: str) -> None:
        self.layout, self.e = layout, layout.equations
        e = self.e
        self.b = b = ProgramBuilder(name)
        self.nb, self.m = e.nb, e.count
        self.q = b.input("q", (e.nb, 7))
        self.angles = b.input("angles", (max(int(e.first_angle[-1]), 1),))
        self.t = b.input("t", (1,))
        # The mechanism's numbers are inputs: mechanisms that differ by them alone share their code.
        inputs = [b.input(name, x.shape) for name, x in numbers(e).items()]
        self.records, self.weights, self.lengths, self.arms, self.parameters = inputs[:5]
        self.tolerance, self.newton_tolerances = inputs[5:]
        self.r = b.temporary("R", (e.nb, 9))
        self.laws = b.temporary("laws", (max(len(e.constraints), 1), 3))
        self.jacobian = b.temporary("J", (max(layout.jacobian_size, 1),))

    def each_body(self, function: Any, inputs: Sequence[Ref], outputs: Sequence[Ref], *more: Ref) -> None:
        """A function of the rows of tables, and of more numbers that all bodies share, for every body."""
        each(self.b, self.nb, function, [*map(row, inputs), *more], list(map(row, outputs)))

    def each_equation(self, function: Any, inputs: Sequence[Ref], output: Ref) -> None:
        """A function of single numbers, for every equation."""
        if self.m:
            each(self.b, self.m, function, list(map(entry, inputs)), [entry(output)])

    # -- laws -------------------------------------------------------------------------------------------------
    def evaluate_laws(self) -> None:
        """The value, rate and second rate of every driver's law."""
        names = list(self.e.description.parameters)
        for k in self.e.drivers:

            def rates(t: Array, p: Array, law: Any = self.e.constraints[k].law) -> Array:
                return np.array(law_rates(law, {**dict(zip(names, p, strict=False)), "TIME": t[0]}))

            self.b.call(rates, [self.t, self.parameters], [self.laws.part(3 * k, (3,))])

    # -- constraints ------------------------------------------------------------------------------------------
    def _bodies(self, members: list[int], side: int) -> int:
        return self.b.column([self.e.constraints[k].bodies[side] for k in members])

    def _first(self, members: list[int]) -> int:
        return self.b.column([int(self.e.first[k]) for k in members])

    def _record(self, form: Form, pattern: Pattern | None, members: list[int]) -> Ref:
        at = self.b.column([int(self.e.record_at[k]) for k in members])
        return entry(self.records, at, (12 * form.sides + form.numbers,))

    def _body(self, q: Ref, column: int) -> list[Ref]:
        """The origins and axes of bodies."""
        return [q.part(0, (3,)).at((q.shape[1], column)), row(self.r, column)]

    def _inputs(self, alike: Alike, members: list[int], q: Ref) -> list[Ref]:
        form, moving, pattern = alike
        inputs: list[Ref] = []
        for side, moves in enumerate(moving):
            if moves:
                inputs += self._body(q, self._bodies(members, side))
        inputs.append(self._record(form, pattern, members))
        if form.turns:
            inputs.append(self._angles(form, members, self.angles))
        if form.has_law:
            inputs.append(self.t if form.clock else self._law(self.b.column(members), 0))
        return inputs

    def _angles(self, form: Form, members: list[int], angles: Ref) -> Ref:
        return entry(angles, self.b.column([int(self.e.first_angle[k]) for k in members]), (form.turns,))

    def _law(self, column: int, order: int) -> Ref:
        return self.laws.part(order, (1,)).at((3, column))

    def _sides(self, members: list[int], moving: tuple[bool, ...]) -> Iterator[tuple[int, int]]:
        """For every moving frame: the columns of its bodies and of its parts of J."""
        for side, moves in enumerate(moving):
            if moves:
                parts = [self.layout.part_at[k][self.e.constraints[k].bodies[side]] for k in members]
                yield self._bodies(members, side), self.b.column(parts)

    def axes(self, q: Ref) -> None:
        """R of every body."""
        self.each_body(lambda x: euler_parameters_matrix(x[3:]).reshape(-1), [q], [self.r])

    def equations(self, q: Ref, phi: Ref) -> None:
        """Φ and J at q, with the axes there."""
        self.b.add(Zero(self.jacobian.operand))
        for (form, moving, pattern), members in self.layout.alike.items():
            outputs = [entry(phi, self._first(members), (form.size,))]
            parts = [at for _, at in self._sides(members, moving)]
            outputs += [entry(self.jacobian, at, (form.size, self.width), add=True) for at in parts]
            block = equations_block(form, moving, self.space, pattern)
            each(self.b, len(members), block, self._inputs((form, moving, pattern), members, q), outputs)

    def bias(self, q: Ref, v: Ref, bias: Ref) -> None:
        """J̇ v, and what forms with a clock add to it, with the axes at q."""
        for (form, moving, pattern), members in self.layout.alike.items():
            outputs = [entry(bias, self._first(members), (form.size,))]
            inputs = self._inputs((form, moving, pattern), members, q)
            inputs += [row(v, body) for body, _ in self._sides(members, moving)]
            each(self.b, len(members), bias_block(form, moving, self.space, pattern), inputs, outputs)

    def lift(self, q: Ref, v: Ref, multipliers: Ref, lifted: Ref) -> None:
        """lifted = J̇ᵀ multipliers along the motion v."""
        self.b.add(Zero(lifted.operand))
        for (form, moving, pattern), members in self.layout.alike.items():
            at = self._first(members)
            inputs = self._inputs((form, moving, pattern), members, q)
            sides = list(self._sides(members, moving))
            inputs += [row(v, body) for body, _ in sides]
            inputs.append(entry(multipliers, at, (form.size,)))
            outputs = [row(lifted, body, add=True) for body, _ in sides]
            each(self.b, len(members), lift_block(form, moving), inputs, outputs, "outward")

    def count_turns(self, q: Ref, angles: Ref) -> None:
        """The counted angles at q, with the axes there."""
        self.b.add(Copy(self.angles.operand, angles.operand))
        for (form, moving, pattern), members in self.layout.alike.items():
            if form.turns:
                outputs = [self._angles(form, members, angles)]
                inputs = self._inputs((form, moving, pattern), members, q)
                each(self.b, len(members), angles_block(form, moving), inputs, outputs)

    def law_rates(self, order: int, rhs: Ref) -> None:
        """rhs += the rate (1) or second rate (2) of every driver's law."""
        drivers = list(self.e.drivers)
        if drivers:
            first, at = self._first(drivers), self.b.column(drivers)
            each(self.b, len(drivers), lambda x: x, [self._law(at, order)], [entry(rhs, first, add=True)])

    def time_rates(self, q: Ref, rhs: Ref) -> None:
        """rhs += −Φ_t of every equation, with the axes at q."""
        self.law_rates(1, rhs)
        self._clock_rates(q, lambda members: entry(rhs, self._first(members), add=True))

    def note_time_rates(self, q: Ref) -> None:
        """Put TIME's rates beside those of the laws: −Φ_t, with the axes at q."""
        self._clock_rates(q, lambda members: self._law(self.b.column(members), 1))

    def _clock_rates(self, q: Ref, into: Callable[[list[int]], Ref]) -> None:
        for (form, moving, pattern), members in self.layout.alike.items():
            if form.clock:
                inputs = self._inputs((form, moving, pattern), members, q)
                each(self.b, len(members), clock_block(form, moving, self.space, pattern), inputs, [into(members)])

    def largest(self, values: Ref, into: Ref) -> None:
        """into = the largest size of the equations' values or rates, as lengths: angles by the arcs they make."""
        self.b.add(Zero(into.operand))
        if self.m:
            inputs = [into, entry(values), entry(self.arms)]
            each(self.b, self.m, lambda a, x, arm: maximum(a, absolute(x) * arm), inputs, [into], "outward")

    def loop(self, most: int, body: Callable[[], None], carried: Sequence[tuple[Ref, Ref]], done: Ref) -> None:
        """Repeat the statements that `body` records, at most so often, until `done` is 1; `carried` are what the next
        time begins with, each with where the time before leaves it."""
        outside, self.b.statements = self.b.statements, []
        body()
        inside, self.b.statements = self.b.statements, outside
        pairs = tuple((first.operand, following.operand) for first, following in carried)
        self.b.add(Loop(most, tuple(inside), pairs, done.operand))


def moved(q: Array, d: Array) -> Array:
    """A body's state after a small shift and turn d, in ground's axes: e + ½ ω e, made a unit."""
    e = q[3:] + 0.5 * quaternion_product(np.array([0.0 * d[0], d[3], d[4], d[5]]), q[3:])
    return np.concatenate([q[:3] + d[:3], e / np.sqrt(dot(e, e))])


def state_rates(q: Array, v: Array, a: Array) -> tuple[Array, Array]:
    """q̇ and q̈ of a body's state from its twist and the derivative of that."""
    zero = 0.0 * v[0]
    w, alpha = np.array([zero, *v[3:]]), np.array([zero, *a[3:]])
    rate = 0.5 * quaternion_product(w, q[3:])
    second = 0.5 * (quaternion_product(alpha, q[3:]) + quaternion_product(w, rate))
    return np.concatenate([v[:3], rate]), np.concatenate([a[:3], second])


def unit(q: Array) -> Array:
    """A state with its Euler parameters made a unit."""
    return np.concatenate([q[:3], q[3:] / np.sqrt(dot(q[3:], q[3:]))])


def shift_between(q: Array, to: Array) -> Array:
    """The small shift and turn, in ground's axes, from one state of a body to another near it."""
    back = np.array([q[3], -q[4], -q[5], -q[6]])
    turn = quaternion_product(to[3:], back)
    # Twice the vector part, of whichever sign of the Euler parameters is near.
    side = where(turn[0] < 0.0, -2.0, 2.0)
    return np.concatenate([to[:3] - q[:3], side * turn[1:]])
