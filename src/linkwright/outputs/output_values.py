"""Outputs over arrays: motions of a batch of cases, with times first and cases second, and values of outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.errors import NameNotFound
from linkwright.model.body_motion import QUANTITIES, at_point, find, of_ground, turned
from linkwright.model.description import GROUND
from linkwright.model.expression import Expression
from linkwright.model.joint_kinds import JointKind
from linkwright.model.joint_motion import (
    FrameMotion,
    References,
    angle_references,
    coordinates_at_start,
    relative_motion,
)
from linkwright.model.parameter_cases import Cases
from linkwright.model.topology import of_first_leader, span
from linkwright.model.tree import Tree
from linkwright.outputs.output_functions import REDUCTIONS, Force, Measure, names_outside, reductions
from linkwright.outputs.output_language import Output
from linkwright.results.solution import Solution

#: What a place has as position, velocity and acceleration, and as angular velocity and acceleration.
_OF_PLACES = (
    ("position",),
    ("velocity", "angular_velocity"),
    ("acceleration", "angular_acceleration"),
)


@dataclass(eq=False)
class Motions:
    """`bodies` by quantity (T, n, nb, 3 or 4), NaN where a case did not come; `reasons` are empty for good cases.

    `states` are q, v and a of the spanning tree (T, n, ...), where the analysis has them; `series` the forces asked
    for, by name (T, n).
    """

    cases: Cases
    time: Floats
    bodies: dict[str, Floats]
    reasons: list[str]
    states: tuple[Floats, Floats, Floats] | None = None
    series: dict[str, Floats] = field(default_factory=dict)

    @classmethod
    def empty(cls, cases: Cases, time: Floats, series: tuple[str, ...] = ()) -> Motions:
        """Of cases that have yet to be computed, with forces of these names."""
        nb = cases.description.nb
        shape = (len(time), len(cases), nb)
        bodies = {name: np.full((*shape, size), np.nan) for name, (size, _, _) in QUANTITIES.items()}
        none = {name: np.full(shape[:2], np.nan) for name in series}
        return cls(cases, time, bodies, [""] * len(cases), series=none)

    @classmethod
    def of_bodies(cls, cases: Cases, time: Floats, q: Floats, v: Floats, a: Floats, reasons: list[str]) -> Motions:
        """Of poses (T, n, nb, 7), and velocities and accelerations (T, n, nb, 6) of bodies, linear first."""
        parts = (q[..., :3], q[..., 3:], v[..., :3], v[..., 3:], a[..., :3], a[..., 3:])
        return cls(cases, time, dict(zip(QUANTITIES, parts, strict=True)), reasons)

    def put(self, k: int, solution: Solution, series: tuple[str, ...]) -> None:
        """The motion of one case, as far as it went."""
        points = len(solution)
        for name, array in self.bodies.items():
            array[:points, k] = solution.arrays[name]
        if solution.states is not None:
            states = (solution.states.q, solution.states.v, solution.states.a)
            if self.states is None:
                shape = (len(self.time), len(self.cases))
                self.states = tuple(np.full((*shape, x.shape[1]), np.nan) for x in states)  # type: ignore[assignment]
            assert self.states is not None
            for array, part in zip(self.states, states, strict=True):
                array[:points, k] = part
        for name in series:
            if name in solution.series:
                self.series[name][:points, k] = solution.series[name].values
            elif points and bool(solution.status):
                raise NameNotFound("quantity", name, [*solution.series])

    # -- quantities -------------------------------------------------------------------------------------------
    def measured(self, measure: Measure) -> Floats:
        """(T, n): a quantity of the state."""
        quantity, order = measure.quantity, measure.order
        if quantity.kind == "place":
            vector, axis = divmod(quantity.index, 3)
            return np.asarray(self.place(quantity.of[0], _OF_PLACES[order][vector])[axis])
        if quantity.kind == "joint":
            joint = self.cases.description.joint_names.position("joint", quantity.of[0])
            return np.asarray(self.joint(joint)[order][quantity.index])
        return self._distance(quantity.of, order)

    def place(self, name: str, quantity: str) -> Floats:
        """(3 or 4, T, n): a quantity of a body or frame, in ground's axes, as `Solution` has it."""
        body, frame = find(self.cases.description, name)
        if frame is None or quantity not in ("position", "velocity", "acceleration"):
            return self._body(quantity, body)
        arm = turned(self._body("orientation", body), self.cases.array("frame_p")[:, frame].T)
        return at_point(quantity, arm, lambda part: self._body(part, body))

    def joint(self, j: int) -> tuple[Floats, Floats, Floats]:
        """(nq, T, n), (nv, T, n), (nv, T, n): coordinates, rates and accelerations of a joint, by its number."""
        known = self._from_states(j)
        if known is not None:
            return known
        return self.from_poses(j, self._turns(j))

    def joint_at_start(self, j: int) -> Floats:
        """(nq, n): the coordinates of a joint at the first time, by the poses of its bodies."""
        kind, bodies, frames = self._ends(j)
        ends = [(self._body("position", body)[:, :1], self._body("orientation", body)[:, :1]) for body in bodies]
        pitch = self.cases.array("pitch")[:, j]
        with np.errstate(invalid="ignore"):
            return coordinates_at_start(kind, ends, frames, pitch, self.time, self._turns(j))[:, 0]

    def _turns(self, j: int) -> dict[int, Floats]:
        """The references of a joint's angles, by their index."""
        angles = self.cases.description.kind_of(j).angles
        return {k: self._references[j, k] for k in angles if (j, k) in self._references}

    def _ends(self, j: int) -> tuple[JointKind, tuple[int, int], list[tuple[Floats, Floats]]]:
        """A joint's kind, its bodies, and its frames on them: rotations (3, 3, n) and origins (3, n)."""
        d, array = self.cases.description, self.cases.array
        frames = [(np.moveaxis(array(r)[:, j], 0, -1), array(p)[:, j].T) for r, p in (("ri", "pi"), ("rj", "pj"))]
        return d.kind_of(j), (int(d.parent[j]), int(d.child[j])), frames

    @cached_property
    def _references(self) -> References:
        """Near which values the angles of joints are, by joint and index."""

        def measured(j: int, reference: Floats | None) -> Floats:
            return np.asarray(self.from_poses(j, {} if reference is None else {0: reference})[0][0])

        gears = self.cases.array("gear")
        return angle_references(self.cases.description, self.cases.parameters, gears, self.time, measured)

    def from_poses(self, j: int, references: Mapping[int, Floats]) -> tuple[Floats, Floats, Floats]:
        """The same of any joint, by how its bodies move; angles, by their index, are near their references."""
        kind, bodies, frames = self._ends(j)
        ends = [FrameMotion.of(partial(self._body, body=body)) for body in bodies]
        with np.errstate(invalid="ignore"):
            return relative_motion(kind, ends, frames, self.cases.array("pitch")[:, j], self.time, references)

    def _body(self, quantity: str, body: int) -> Floats:
        """Components first."""
        if body != GROUND:
            return np.moveaxis(self.bodies[quantity][:, :, body], -1, 0)
        return of_ground(quantity, len(self.time), len(self.cases))

    def _from_states(self, j: int) -> tuple[Floats, Floats, Floats] | None:
        """Of a joint of the spanning tree, where its coordinates are known."""
        if self.states is None:
            return None
        d = self.cases.description
        topology = span(d)
        at = np.flatnonzero(topology.joint == j)
        if not len(at):
            return None
        i, kind, x = int(at[0]), d.kind_of(j), Tree(d, topology).coordinates
        q = self.states[0][:, :, int(x.q_at[i]) : int(x.q_at[i]) + kind.nq]
        v, a = (y[:, :, int(x.v_at[i]) : int(x.v_at[i]) + kind.nv] for y in self.states[1:])
        if x.follows[i]:
            within, gear = set(topology.joint.tolist()), self.cases.array("gear")[..., None]
            gears = {m.follower: (m.leader, gear[:, k, 0], gear[:, k, 1]) for k, m in enumerate(d.mimics)}
            _, ratio, offset = of_first_leader({n: x for n, x in gears.items() if n in within and x[0] in within}, j)
            q, v, a = q * ratio + offset, v * ratio, a * ratio
        return np.moveaxis(q, -1, 0), np.moveaxis(v, -1, 0), np.moveaxis(a, -1, 0)

    def _distance(self, ends: tuple[str, ...], order: int) -> Floats:
        """(T, n): the distance between two places, or its time derivative of this order."""
        first, second = ends
        line, *rates = (self.place(second, x[0]) - self.place(first, x[0]) for x in _OF_PLACES[: order + 1])
        length = np.sqrt(np.sum(line * line, axis=0))
        if order == 0:
            return np.asarray(length)
        with np.errstate(invalid="ignore", divide="ignore"):
            rate = np.sum(line * rates[0], axis=0) / length
            if order == 1:
                return np.asarray(rate)
            return np.asarray((np.sum(rates[0] ** 2 + line * rates[1], axis=0) - rate**2) / length)

    def spread(self, x: Floats) -> Floats:
        """A number for every case, or for every time, as (T, n)."""
        return np.asarray(np.broadcast_to(x, (len(self.time), len(self.cases))))


def values_of(output: Output, motions: Motions) -> Floats:
    """(n,), or of a series (n, T): NaN for numbers of cases that failed, and where a series did not come."""
    with np.errstate(all="ignore"):
        values = np.asarray(_evaluated(output.expression, motions), dtype=np.float64)
    if output.series:
        return np.ascontiguousarray(motions.spread(values).T)
    numbers = np.array(np.broadcast_to(values, (len(motions.cases),)))
    numbers[[bool(reason) for reason in motions.reasons]] = np.nan
    return numbers


def _evaluated(expression: Expression, motions: Motions) -> Any:
    """One number, (n,) for every case, or (T, n) at every time."""
    names: dict[str, Any] = {**motions.cases.parameters, "TIME": motions.time[:, None]}
    for name in names_outside(expression):
        if isinstance(name, Measure):
            names[name.name] = motions.measured(name)
        elif isinstance(name, Force):
            names[name.name] = motions.series[name.name]
    for part in reductions(expression):
        series = motions.spread(_evaluated(part.inner, motions))
        names[part.key] = REDUCTIONS[part.kind].value(series, motions.time)
    return expression.evaluate(names)
