"""A step of a prescribed motion in the spanning tree's coordinates, as straight code: a prediction, position by
Newton's method, velocity, acceleration, and whether the step is one that may be trusted.

Drivers of the tree's own joints give their coordinates at once; Newton's method finds the others. Each equation is
that of `loop_constraints`; `constraints/` solves the same ones with the poses of bodies as unknowns, and is the oracle.

A step is good if nothing near it is singular and both its ends agree on the way between them, by the measures of
`constraints/kinematic_motion.py` with narrower limits. What is not plainly good is left to the steps there, which halve
their length, pass singular positions, and say why a motion ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.constraints.constraint_equations import Equations
from linkwright.constraints.kinematic_motion import DRIFT, FOLLOWED, JUMP, MISMATCH, REST, SLACK, TURN
from linkwright.constraints.program_layout import INTEGRATED
from linkwright.dynamics import body_quantities
from linkwright.dynamics.closed.body_lengths import BodyLengths
from linkwright.dynamics.closed.closed_recorders import constraints_of, moving
from linkwright.dynamics.closed.constraint_space import gradient
from linkwright.dynamics.closed.rate_system import (
    Block,
    LeastNorm,
    RateSystem,
    Undetermined,
    blocks_of,
    known_alone,
)
from linkwright.dynamics.functions import Request
from linkwright.dynamics.methods.newton_euler import motions
from linkwright.dynamics.recording_context import RecordingContext
from linkwright.dynamics.requests import UNROLL, RequestRules
from linkwright.dynamics.traversals.traversal import Unrolled
from linkwright.model.quantities import Quantity
from linkwright.spatial.algebra import Array, cross, dot, is_zero, point_acceleration, point_velocity
from linkwright.tape.block import absolute, maximum, minimum, where
from linkwright.tape.build import record, trace
from linkwright.tape.derivative_blocks import push_forward
from linkwright.tape.program import Program

#: Rates up to which a step is laid out as straight code.
MOST = 24
#: Steps of Newton's method from a prediction, and what may be left of Φ after them (a part of the mechanism's length).
STEPS, LEFT = 2, 1e-12
#: The least regularity of a good step, as it is and as a part of the largest so far.
REGULAR, NEAR = 1e-4, 1e-2
#: Numbers of a motion that go from step to step: its largest regularity and speed so far.
MEMORY = 2
NONE = np.zeros(0)  # the values of no parameters


@dataclass(frozen=True, eq=False)
class Point:
    """A state of the motion, over recorded scalars."""

    q: Array
    v: Array
    a: Array
    gap: Any  # the largest |Φ| at q, lengths as parts of the mechanism's length
    rate_gap: Any  # the largest |G v + Φ_t| of equations that repeat others, likewise
    change: Any  # from the guess to q at most, shifts as parts of that length
    system: RateSystem | LeastNorm  # of the equations there

    @property
    def regularity(self) -> Any:
        """Of the equations: about the square of the least sine of an angle between them."""
        return self.system.regularity


@dataclass(frozen=True, eq=False)
class Step:
    """A point, the motion's memory behind it, and 1 where the step there is good, else 0."""

    point: Point
    memory: Array
    good: Any


class PointRecorder:
    """Records points of one mechanism with some parameters as inputs.

    Where the drivers leave rates free, they are those of least norm, and a step is good only if the position that was
    reached is their integral as it is: so are motions that do not excite the freedom, as the spin of a rod in a plane.

    Raises Undetermined for a freedom with parameters as inputs that change the units of twists otherwise than by the
    places of frames, and where the mechanism is too large for straight code.
    """

    def __init__(self, factory: RequestRules, free: Sequence[str] = ()) -> None:
        self.factory, self.free = factory, tuple(free)
        x = factory.tree.coordinates
        self.nq, self.nv = x.nq, x.nv
        if not factory.closed or factory.tree.n > UNROLL or self.nv > MOST:
            raise Undetermined("too large for straight code")
        self.units, self.row_units = factory.rate_units, factory.constraint_units
        self.plain = self.nq == self.nv and not factory.tree.euler_parameters
        self.lengths = BodyLengths(factory.tree, self.free)
        self.known: dict[int, int] = {}
        self.blocks: list[Block] = []
        self.others: list[int] = []
        self.least_norm: list[int] = []  # the rows that count where they leave rates free
        trace(self._structure, [(self.nq,), (), (len(self.free),)])

    def _structure(self, q: Array, t: Any, p: Array) -> Array:
        """Which rows determine which rates."""
        _, g, _ = self.equations(q, t, p)
        if self.plain:  # a rate of Euler parameters is no coordinate
            self.known = known_alone(g)
        self.others = [k for k in range(self.nv) if k not in self.known]
        rest = [i for i in range(len(g)) if i not in self.known.values()]
        pattern = np.array([[not is_zero(g[i][k]) for k in self.others] for i in rest], bool)
        pattern = pattern.reshape(len(rest), len(self.others))
        used = [i for i, row in zip(rest, pattern, strict=True) if row.any()]
        if len(used) < len(self.others) and self.lengths.known:
            self.known, self.others, self.least_norm = {}, list(range(self.nv)), sorted([*used, *self.known.values()])
            return np.zeros(1)
        blocks = blocks_of(pattern)
        self.blocks = [Block(tuple(rest[i] for i in b.rows), b.columns) for b in blocks]
        return np.zeros(1)

    # -- equations ----------------------------------------------------------------------------------------------
    def context(self, q: Array, v: Array, t: Any, p: Array) -> RecordingContext:
        """A recording at a state."""
        inputs = {"q": q, "v": v, "t": t, **({"p": p} if self.free else {})}
        return RecordingContext(self.factory, Request("velocity_projection", free=self.free), inputs)

    def equations(self, q: Array, t: Any, p: Array) -> tuple[Array, Array, Array]:
        """Φ, G and Φ_t."""
        context = self.context(q, np.zeros(self.nv), t, p)
        traversal = moving(context)
        constraints = constraints_of(context, traversal)
        g = [gradient(traversal, c) for c in constraints]
        return _joined([c.phi for c in constraints]), _joined(g), _joined([c.rate for c in constraints])

    def bias(self, q: Array, v: Array, t: Any, p: Array) -> Array:
        """d/dt of G v + Φ_t where the rates do not change."""
        context = self.context(q, v, t, p)
        traversal = context.traversal(zero=("a",))
        traversal.outward(motions, {"w": np.zeros(6), "b": np.zeros(6)})
        rows = []
        for c in constraints_of(context, traversal):
            row = -c.bias
            for handle, columns in c.ends:
                if handle.position >= 0:
                    row = row + columns.T @ handle.outward(traversal.rows[handle.position]["b"])
            rows.append(row)
        return _joined(rows)

    def moved(self, q: Array, dv: Array) -> Array:
        """q after a small motion."""
        if self.plain:
            return q + dv
        context = RecordingContext(self.factory, Request("integrate"), {"q": q, "dv": dv})
        return np.asarray(body_quantities.integrate(context.traversal()))

    def _system(self, q: Array, g: Array, p: Array) -> RateSystem | LeastNorm:
        if self.least_norm:
            return LeastNorm(np.asarray(g)[self.least_norm], self._metric(q, p), self.row_units[self.least_norm])
        units = self.units[self.others]
        return RateSystem(np.asarray(g)[:, self.others], self.blocks, units, self.row_units)

    def _all(self, known: dict[int, Any], others: Array) -> Array:
        x: list[Any] = [0.0] * self.nv
        for k, y in [*known.items(), *zip(self.others, others, strict=True)]:
            x[k] = y
        return np.array(x)

    # -- the point ----------------------------------------------------------------------------------------------
    def point(self, guess: Array, t: Any, p: Array, steps: int) -> Point:
        """The point at a time near a guess, after so many steps of Newton's method."""
        q = self._driven(guess, t, p)
        driven = list(self.known)
        change = self._largest(q[driven] - guess[driven], self.units[driven])
        for _ in range(steps):
            phi, g, _ = self.equations(q, t, p)
            delta = self._solved(self._system(q, g, p), -phi)
            q = self.moved(q, self._all({}, delta))
            change = change + self._largest(delta, self.units[self.others])
        phi, g, rate = self.equations(q, t, p)
        system = self._system(q, g, p)
        v = self._rates(g, system, rate)
        a = self._changing(q, v, t, p) if self.least_norm else self._rates(g, system, self.bias(q, v, t, p))
        rows = [k for k, x in enumerate(phi) if getattr(x, "value", None) is None and k not in self.known.values()]
        gap = self._largest(np.array([phi[k] for k in rows]), self.row_units[rows])
        certain = {i for block in self.blocks if len(block.rows) == len(block.columns) for i in block.rows}
        repeated = [i for i in rows if i not in certain]
        rates = np.array([rate[i] + sum(x * y for x, y in zip(g[i], v, strict=True)) for i in repeated])
        return Point(q, v, a, gap, self._largest(rates, self.row_units[repeated]), change, system)

    def step(self, state: tuple[Array, Array, Array], memory: Array, t: Any, h: Any, p: Array) -> Step:
        """The step from the state q, v, a at t − h to the point at t."""
        q, v, a = state
        ahead = h * (v + (0.5 * h) * a)
        point = self.point(self.moved(q, ahead), t, p, STEPS)
        speed = maximum(*(self._largest(x, self.units) for x in (v, point.v)))
        way = absolute(h) * speed
        largest, fastest = maximum(memory[0], point.regularity), maximum(memory[1], speed)
        reached = ahead + self._between(self.moved(q, ahead), point.q)
        drifted = reached - (0.5 * h) * (v + point.v + (h / 6.0) * (a - point.a))
        drift = self._largest(drifted, self.units)
        mismatch = self._largest(point.v - v - (0.5 * h) * (a + point.a), self.units)
        limits = [
            (point.gap, LEFT),
            (point.rate_gap, FOLLOWED * speed),
            (maximum(REGULAR, NEAR * largest), point.regularity),
            (2.0 * way, point.regularity),  # too short for the equations to have been dependent in between
            (way, TURN),
            (point.change, JUMP * way + SLACK),
            (drift, DRIFT * way + 1e-9),
            (mismatch, MISMATCH * speed + REST * fastest),
        ]
        if self.least_norm and self.lengths.vary:
            limits += self.lengths.limits(p)
        system = point.system
        if isinstance(system, LeastNorm):  # what the equations leave free must be the integral of its rate already
            limits.append((self._largest(system.free(drifted), self.units), INTEGRATED))
        good = reduce(minimum, [where(x <= most, 1.0, 0.0) for x, most in limits])
        return Step(point, np.array([largest, fastest]), good)

    def _between(self, q: Array, to: Array) -> Array:
        """The small motion from q to another."""
        if self.plain:
            return to - q
        context = RecordingContext(self.factory, Request("difference"), {"q": q, "q1": to})
        return np.asarray(body_quantities.difference(context.traversal()))

    def _driven(self, q: Array, t: Any, p: Array) -> Array:
        """q with the coordinates that drivers give."""
        if not self.known:
            return q
        parts = list(q)
        for column in self.known:
            parts[column] = 0.0 * parts[column]  # a NaN stays one
        phi, g, _ = self.equations(np.array([0.0 if k in self.known else x for k, x in enumerate(q)]), t, p)
        for column, row in self.known.items():
            parts[column] = parts[column] - phi[row] / g[row][column]
        return np.array(parts)

    def _rates(self, g: Array, system: RateSystem | LeastNorm, right: Array) -> Array:
        """x of G x = −right."""
        known = {column: -right[row] / g[row][column] for column, row in self.known.items()}
        less = -right
        for column, y in known.items():
            less = less - np.asarray(g)[:, column] * y
        return self._all(known, self._solved(system, less, refined=True))

    # -- freedom ------------------------------------------------------------------------------------------------
    def _solved(self, system: RateSystem | LeastNorm, right: Array, *, refined: bool = False) -> Array:
        return system.solve(right[self.least_norm] if self.least_norm else right, refined=refined)

    def _metric(self, q: Array, p: Array) -> Array:
        """A of the norm vᵀA v of the rates: the bodies' twists in the units by which `constraints/` measures them."""
        tree, scales = self.factory.tree, self._scales(p)
        columns = []
        for k in range(self.nv):
            traversal = moving(self.context(q, np.eye(self.nv)[k], 0.0, p))
            parts: list[Any] = []
            for i, body in enumerate(tree.topology.body.tolist()):
                w, frame = traversal.rows[i]["w"], traversal.links[i].frame
                origin = -(frame.rotation.matrix().T @ frame.p)
                twist = [*point_velocity(w[:3], w[3:], origin), *w[3:]]
                parts += [x * scale for x, scale in zip(twist, scales[body], strict=True)]
            columns.append(np.array(parts))
        return np.array([[dot(x, y) for y in columns] for x in columns])

    def _scales(self, p: Array) -> list[list[Any]]:
        """By what the bodies' twists are multiplied: turns by the bodies' lengths, which parameters may change."""
        if not self.lengths.vary:
            return [(1.0 / row).tolist() for row in Equations(self.factory.description).units]
        return [[1.0, 1.0, 1.0, x, x, x] for x in self.lengths.of_bodies(p)]

    def _least_rates(self, q: Array, t: Any, p: Array) -> Array:
        _, g, rate = self.equations(q, t, p)
        return self._solved(self._system(q, g, p), -rate, refined=True)

    def _changing(self, q: Array, v: Array, t: Any, p: Array) -> Array:
        """How the rates of least norm change along the motion."""
        block = trace(self._least_rates, [(self.nq,), (), (len(p),)])[0]
        recorder = q[0].recorder
        one = recorder.constant(1.0)
        rates = body_quantities.rate(self.context(q, v, t, p).traversal())
        tangents: list[Any] = [{} if is_zero(x) else {0: recorder.lift(x)} for x in rates]
        tangents += [{0: one}, *({} for _ in p)]
        flat = [recorder.lift(x) for x in (*q, t, *p)]
        pushed = push_forward(block, block.replay(recorder, flat), tangents)
        return np.array([row.get(0, recorder.zero) for row in pushed])

    @staticmethod
    def _largest(x: Array, units: Floats) -> Any:
        return reduce(maximum, [absolute(y * (1.0 / u)) for y, u in zip(x, units, strict=True)], 0.0)

    # -- bodies -------------------------------------------------------------------------------------------------
    def bodies(self, q: Array, v: Array, a: Array, p: Array) -> BodiesMoving:
        """The motion of the bodies at a state."""
        context = self.context(q, v, 0.0, p)
        traversal = context.traversal(a=a)
        traversal.outward(motions, {"w": np.zeros(6), "b": np.zeros(6)})
        traversal.outward(body_quantities.poses, body_quantities.GROUND_POSE)
        return BodiesMoving(self.factory, traversal, context.parameters)

    # -- programs -----------------------------------------------------------------------------------------------
    def step_program(self, further: Callable[[BodiesMoving], Sequence[Array]]) -> Program:
        """q, v, a, memory, t, h, p → q, v, a, memory, good, and what `further` makes of the motion there."""

        def motion_step(q: Array, v: Array, a: Array, memory: Array, t: Array, h: Array, p: Array = NONE) -> Any:
            step = self.step((q, v, a), memory, t[0], h[0], p)
            x = step.point
            return x.q, x.v, x.a, step.memory, np.array([step.good]), *further(self.bodies(x.q, x.v, x.a, p))

        return self.recorded(motion_step, self.nq, self.nv, self.nv, MEMORY, 1, 1)

    def march_program(self, width: int, carry: Callable[[Array, BodiesMoving, Any, Any], Array]) -> Program:
        """q, v, a, memory, good, carried, when, p → the first six at the end of a step: steps follow each other.

        `when` has the time there, the length of the step, whether the point counts, and whether it is the first that
        does. `good` stays 1 while all steps are good. `carried` has `width` numbers, which `carry` makes of those
        before, the motion of the bodies, the time and whether it is the first; where the point counts.
        """

        def motion_march(
            q: Array, v: Array, a: Array, memory: Array, good: Array, carried: Array, when: Array, p: Array = NONE
        ) -> Any:
            t, h, counts, first = when
            step = self.step((q, v, a), memory, t, h, p)
            x = step.point
            fresh = carry(carried, self.bodies(x.q, x.v, x.a, p), t, first)
            numbers = np.array([where(counts > 0.0, y, before) for y, before in zip(fresh, carried, strict=True)])
            return x.q, x.v, x.a, step.memory, np.array([minimum(good[0], step.good)]), numbers

        return self.recorded(motion_march, self.nq, self.nv, self.nv, MEMORY, 1, width, 4)

    def turn_program(self) -> Program:
        """q, v, a, p → rotations, angular velocities and angular accelerations of the bodies."""

        def turning_bodies(q: Array, v: Array, a: Array, p: Array = NONE) -> Any:
            return self.bodies(q, v, a, p).turns()

        return self.recorded(turning_bodies, self.nq, self.nv, self.nv)

    def recorded(self, function: Callable[..., Any], *shapes: int) -> Program:
        """The program of a function of arrays of these shapes, and of the free parameters last."""
        return record(function, *shapes, *((len(self.free),) if self.free else ()))


class BodiesMoving:
    """How the bodies of a tree move, in ground's axes, where a traversal has poses, twists and their rates."""

    def __init__(self, factory: RequestRules, traversal: Unrolled, parameters: Mapping[str, Any]) -> None:
        self.factory, self.traversal, self.parameters = factory, traversal, parameters

    def point(self, position: int, arm: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration of a point of a link (−1 is ground), `arm` in the link's axes."""
        if position < 0:
            return np.asarray(arm), np.zeros(3), np.zeros(3)
        row = self.traversal.rows[position]
        r, w, b = row["r"], row["w"], row["b"]
        velocity = point_velocity(w[:3], w[3:], arm)
        acceleration = point_acceleration(b[:3] + cross(w[3:], w[:3]), b[3:], w[3:], arm)
        return row["x"] + r @ arm, r @ velocity, r @ acceleration

    def measured(self, wanted: Sequence[tuple[Quantity, int]]) -> Array:
        """Quantities of places, distances and joints of the tree, each with the order of its time derivative."""
        return np.array([self._measured(quantity, order) for quantity, order in wanted])

    def _measured(self, quantity: Quantity, order: int) -> Any:
        tree = self.factory.tree
        if quantity.kind == "joint":
            link = self.traversal.links[tree.joint_positions[quantity.of[0]]]
            return (link.q, link.v, link.a)[order][quantity.index]
        if quantity.kind == "place":
            position, _, p = tree.place(quantity.of[0], self.parameters)
            if quantity.index < 3:
                return self.point(position, p)[order][quantity.index]
            row = (
                self.traversal.rows[position] if position >= 0 else {"r": np.eye(3), "w": np.zeros(6), "b": np.zeros(6)}
            )
            return (row["r"] @ row["w" if order == 1 else "b"][3:])[quantity.index - 3]
        ends = [self.point(*tree.place(name, self.parameters)[::2]) for name in quantity.of]
        line, rate, change = (second - first for first, second in zip(*ends, strict=True))
        length = np.sqrt(dot(line, line))
        if order == 0:
            return length
        speed = dot(line, rate) / length
        return speed if order == 1 else (dot(rate, rate) + dot(line, change) - speed * speed) / length

    def origins(self) -> tuple[Array, Array, Array]:
        """(nb, 3) each: position, velocity and acceleration of the bodies' origins."""
        rows: list[Any] = [None] * self.traversal.n
        for i, body in enumerate(self.factory.topology.body):
            frame = self.traversal.links[i].frame
            rows[int(body)] = self.point(i, -(frame.rotation.matrix().T @ frame.p))
        position, velocity, acceleration = (np.array(list(x)) for x in zip(*rows, strict=True))
        return position, velocity, acceleration

    def turns(self) -> tuple[Array, Array, Array]:
        """(nb, 3, 3), (nb, 3) and (nb, 3): rotations, angular velocities and angular accelerations of the bodies."""
        rows: list[Any] = [None] * self.traversal.n
        for i, body in enumerate(self.factory.topology.body):
            row, frame = self.traversal.rows[i], self.traversal.links[i].frame
            r = row["r"]
            rows[int(body)] = r @ frame.rotation.matrix().T, r @ row["w"][3:], r @ row["b"][3:]
        rotation, omega, alpha = (np.array(list(x)) for x in zip(*rows, strict=True))
        return rotation, omega, alpha


def _joined(parts: Sequence[Array]) -> Array:
    return np.concatenate([np.asarray(part) for part in parts])
