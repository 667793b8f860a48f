"""The programs of an analysis: one correction, one step in time, the rates; all of one layout of buffers.

The state of a mechanism is q (nb, 7), the origins and Euler parameters of its bodies, in ground's axes; v and a (nb, 6)
are twists [ẋ; ω] and their derivatives, in ground's axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.locks import cached_property
from linkwright.base.types import Floats
from linkwright.constraints import blocks
from linkwright.constraints.elimination import RANK_TOLERANCE, Elimination
from linkwright.constraints.equations import Equations
from linkwright.constraints.forms import Form
from linkwright.constraints.pieces import Incidence
from linkwright.mechanism.description import GROUND, Description
from linkwright.mechanism.system import System
from linkwright.spatial.algebra import Array, dot
from linkwright.spatial.rotation import euler_parameters_matrix, quaternion_product
from linkwright.tape.build import ProgramBuilder, Ref, record, trace
from linkwright.tape.functions import absolute, maximum, where
from linkwright.tape.program import ITEM, Copy, Each, Program, Statement, Zero

ITERATIONS = 25
#: Least-norm motion is settled when the bodies' free parts move by less than this part of their sizes.
SETTLED = 1e-12
ROUNDS = 12


class Layout:
    """Where everything stands: constraints by form, their parts of J, the order of elimination."""

    width = 6  # numbers of a body's twist
    in_rounds = False  # whether constraints that do not touch each other are eliminated side by side
    whole = True  # whether bodies that many constraints hold stay whole: then all redundant equations can be named

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        incidences: list[Incidence] = []
        self.part_at: list[dict[int, int]] = []  # for every constraint: body → where its part of J begins
        at = 0
        for k, c in enumerate(equations.constraints):
            own: dict[int, int] = {}
            for body in c.bodies:
                if body != GROUND and body not in own:
                    own[body] = at
                    incidences.append(Incidence(k, body, at))
                    at += self.width * c.form.size
            self.part_at.append(own)
        self.jacobian_size = at
        self.incidences = incidences

    @cached_property
    def plan(self) -> Elimination:
        """The order of elimination."""
        sizes = [c.form.size for c in self.equations.constraints]
        return Elimination(sizes, self.incidences, self.width, whole=self.whole, in_rounds=self.in_rounds)

    @cached_property
    def groups(self) -> dict[tuple[Form, tuple[bool, ...]], list[int]]:
        """The constraints by form and by which of their frames are on moving bodies."""
        groups: dict[tuple[Form, tuple[bool, ...]], list[int]] = {}
        for k, c in enumerate(self.equations.constraints):
            groups.setdefault((c.form, tuple(b != GROUND for b in c.bodies)), []).append(k)
        return groups

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
        """The parts of J (...) as rows of six, one for each of `entries`."""
        return values[..., : self.jacobian_size].reshape(*values.shape[:-1], -1, 6)

    def dense(self, values: Floats) -> Floats:
        """J (m, 6 nb) of its parts."""
        e = self.equations
        j = np.zeros((e.count, e.nb, 6))
        j[self.entries] = self.parts(values)
        return j.reshape(e.count, 6 * e.nb)


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

    def __init__(self, layout: Layout, name: str) -> None:
        self.layout, self.e = layout, layout.equations
        e = self.e
        self.b = b = ProgramBuilder(name)
        self.nb, self.m = e.nb, e.count
        self.q = b.input("q", (e.nb, 7))
        self.angles = b.input("angles", (max(int(e.first_angle[-1]), 1),))
        self.t = b.input("t", (1,))
        # The mechanism's numbers are inputs: mechanisms that differ by them alone share their code.
        given = numbers(e)
        inputs = [b.input(name, x.shape) for name, x in given.items()]
        self.records, self.weights, self.lengths, self.arms, self.parameters = inputs[:5]
        self.tolerance, self.newton_tolerances = inputs[5:]
        self.r = b.temporary("R", (e.nb, 9))
        self.laws = b.temporary("laws", (max(len(e.constraints), 1), 3))
        self.jacobian = b.temporary("J", (max(layout.jacobian_size, 1),))

    def each_body(self, function: Any, inputs: Sequence[tuple[Ref, int]], outputs: Sequence[tuple[Ref, int]]) -> None:
        """A function of rows of these widths, for every body."""

        block = trace(function, [(width,) for _, width in inputs])[0]
        rows = [[ref.part(0, (width,)).at((width, ITEM)) for ref, width in side] for side in (inputs, outputs)]
        self.b.add(Each(self.nb, (self.b.case(block, rows[0], rows[1]),), "map"))

    # -- laws -------------------------------------------------------------------------------------------------
    def evaluate_laws(self) -> None:
        """The value, rate and second rate of every driver's law."""
        names = list(self.e.description.parameters)
        count = self.parameters.shape[0]
        rest = np.zeros(count)
        for k in self.e.drivers:
            law = self.e.constraints[k].law
            assert law is not None

            def value(t: Array, p: Array, law: Any = law) -> Array:
                known = dict(zip(names, p, strict=False))
                return np.array([law.evaluate({**known, "TIME": t[0]}) + 0.0 * t[0]])

            once = record(value, 1, count).forward()
            twice = once.forward()

            def rates(t: Array, p: Array, once: Program = once, twice: Program = twice) -> Array:
                one, none = np.ones(1), np.zeros(1)
                f, fd = once(t, p, one, rest)
                fdd = twice(t, p, one, rest, one, rest, none, rest)[3]
                return np.array([f[0], fd[0], fdd[0]])

            self.b.call(rates, [self.t, self.parameters], [self.laws.part(3 * k, (3,))])

    # -- constraints ------------------------------------------------------------------------------------------
    def _rows(self, members: list[int], side: int) -> int:
        bodies = [self.e.constraints[k].bodies[side] for k in members]
        return self.b.column(bodies)

    def _inputs(self, form: Form, moving: tuple[bool, ...], members: list[int], q: Ref) -> list[Ref]:
        inputs: list[Ref] = []
        for side, moves in enumerate(moving):
            if moves:
                body = self._rows(members, side)
                inputs += [q.part(0, (3,)).at((7, body)), self.r.part(0, (9,)).at((9, body))]
        at = self.b.column([int(self.e.record_at[k]) for k in members])
        inputs.append(self.records.part(0, (12 * form.sides + form.numbers,)).at((1, at)))
        if form.turns:
            inputs.append(self._angles(form, members, self.angles))
        if form.driven:
            inputs.append(self.laws.part(0, (1,)).at((3, self.b.column(members))))
        return inputs

    def _angles(self, form: Form, members: list[int], angles: Ref) -> Ref:
        at = self.b.column([int(self.e.first_angle[k]) for k in members])
        return angles.part(0, (form.turns,)).at((1, at))

    def _sides(self, members: list[int], moving: tuple[bool, ...]) -> Iterator[tuple[int, int]]:
        """For every moving frame: the columns of its bodies and of its parts of J."""
        for side, moves in enumerate(moving):
            if moves:
                parts = [self.layout.part_at[k][self.e.constraints[k].bodies[side]] for k in members]
                yield self._rows(members, side), self.b.column(parts)

    def axes(self, q: Ref) -> None:
        """R of every body."""
        self.each_body(lambda x: euler_parameters_matrix(x[3:]).reshape(-1), [(q, 7)], [(self.r, 9)])

    def equations(self, q: Ref, phi: Ref) -> None:
        """Φ and J at q."""
        self.axes(q)
        self.b.add(Zero(self.jacobian.operand))
        for (form, moving), members in self.layout.groups.items():
            m = form.size
            row = self.b.column([int(self.e.first[k]) for k in members])
            outputs = [phi.part(0, (m,)).at((1, row))]
            outputs += [self.jacobian.part(0, (m, 6)).at((1, at), add=True) for _, at in self._sides(members, moving)]
            case = self.b.case(blocks.equations_block(form, moving), self._inputs(form, moving, members, q), outputs)
            self.b.add(Each(len(members), (case,), "map"))

    def bias(self, q: Ref, v: Ref, bias: Ref) -> None:
        """J̇ v, with the axes as `equations` left them."""
        for (form, moving), members in self.layout.groups.items():
            row = self.b.column([int(self.e.first[k]) for k in members])
            inputs = self._inputs(form, moving, members, q)
            inputs += [v.part(0, (6,)).at((6, body)) for body, _ in self._sides(members, moving)]
            outputs = [bias.part(0, (form.size,)).at((1, row))]
            case = self.b.case(blocks.bias_block(form, moving), inputs, outputs)
            self.b.add(Each(len(members), (case,), "map"))

    def lift(self, q: Ref, v: Ref, multipliers: Ref, lifted: Ref) -> None:
        """lifted = J̇ᵀ multipliers along the motion v."""
        self.b.add(Zero(lifted.operand))
        for (form, moving), members in self.layout.groups.items():
            row = self.b.column([int(self.e.first[k]) for k in members])
            inputs = self._inputs(form, moving, members, q)
            sides = list(self._sides(members, moving))
            inputs += [v.part(0, (6,)).at((6, body)) for body, _ in sides]
            inputs.append(multipliers.part(0, (form.size,)).at((1, row)))
            outputs = [lifted.part(0, (6,)).at((6, body), add=True) for body, _ in sides]
            case = self.b.case(blocks.lift_block(form, moving), inputs, outputs)
            self.b.add(Each(len(members), (case,), "outward"))

    def count_turns(self, q: Ref, angles: Ref) -> None:
        """The counted angles at q, with the axes as `equations` left them."""
        self.b.add(Copy(self.angles.operand, angles.operand))
        for (form, moving), members in self.layout.groups.items():
            if form.turns:
                outputs = [self._angles(form, members, angles)]
                case = self.b.case(blocks.angles_block(form, moving), self._inputs(form, moving, members, q), outputs)
                self.b.add(Each(len(members), (case,), "map"))

    def law_rates(self, order: int, rhs: Ref) -> None:
        """rhs += the rate (1) or second rate (2) of every driver's law."""
        drivers = list(self.e.drivers)
        if drivers:
            block = trace(lambda x: x, [(1,)])[0]
            row, at = self.b.column([int(self.e.first[k]) for k in drivers]), self.b.column(drivers)
            inputs, outputs = [self.laws.part(order, (1,)).at((3, at))], [rhs.part(0, (1,)).at((1, row), add=True)]
            self.b.add(Each(len(drivers), (self.b.case(block, inputs, outputs),), "map"))

    def largest(self, values: Ref, into: Ref) -> None:
        """into = the largest size of the equations' values or rates, as lengths: angles by the arcs they make."""
        self.b.add(Zero(into.operand))
        if self.m:
            block = trace(lambda a, x, arm: maximum(a, absolute(x) * arm), [(1,), (1,), (1,)])[0]
            rows = [ref.part(0, (1,)).at((1, ITEM)) for ref in (values, self.arms)]
            self.b.add(Each(self.m, (self.b.case(block, [into, *rows], [into]),), "outward"))

    def nested(self) -> list[Statement]:
        """The statements so far, taken away: what follows is another list."""
        taken, self.b.statements = self.b.statements, []
        return taken


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
