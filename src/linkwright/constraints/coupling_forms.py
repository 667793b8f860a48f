"""Couplings: Φ of joint coordinates, parameters and TIME as a form of constraint equations, and how it changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from linkwright.constraints.constraint_forms import Form, Frame, between, near
from linkwright.model.coupling_relation import TURN, Relation, whole_turns
from linkwright.model.joint_kinds import KINDS, Measure
from linkwright.spatial.algebra import Array
from linkwright.tape.build import record
from linkwright.tape.program import Program


@cache
def form(relation: Relation, loose: tuple[int, ...] = (), by_relation: int | None = None) -> Form:
    """Φ of the frames of its joints, two of each, angles through all their turns; record: the parameters.

    The turns of the `loose` coordinates are not accumulated: they are taken within half a turn, and then the one that
    is given as `by_relation` where Φ is nearest to zero (`counted_by_relation`).
    """
    kinds = [KINDS[kind] for kind in relation.kinds]

    def measures(frames: Sequence[Frame]) -> list[Measure]:
        joints = [kind.measures(*between(*frames[2 * k : 2 * k + 2])) for k, kind in enumerate(kinds)]
        return [joints[k][index] for k, index in relation.coordinates]

    def angles(frames: Sequence[Frame]) -> tuple[Measure, ...]:
        return tuple(m for k, m in enumerate(measures(frames)) if relation.turning[k] and k not in loose)

    def equation(frames: Sequence[Frame], record: Array, turned: Array, law: Any) -> Array:
        accumulated = iter(turned)
        x = [
            m.shift if m.shift is not None else near(m, 0.0 if k in loose else next(accumulated))
            for k, m in enumerate(measures(frames))
        ]
        if by_relation is not None:
            x[by_relation] = x[by_relation] + TURN * whole_turns(relation, by_relation, x, record, law)
        return np.array([relation.value(x, record, law)])

    return Form(
        f"coupling {relation!r}" + (f", {loose} loose, {by_relation} by relation" if loose else ""),
        ("relation",),
        equation,
        sides=2 * len(kinds),
        numbers=relation.parameters,
        clock=relation.clock,
        angles=angles,
        turns=sum(turns and k not in loose for k, turns in enumerate(relation.turning)),
        lengths=(relation.is_length,),
        kind="coupling",
    )


@cache
def _rate(relation: Relation) -> Program:
    """Φ of x, the parameters and TIME, and its rate."""

    def phi(x: Array, p: Array, t: Array) -> Array:
        return np.array([relation.value(x, p, t[0]) + 0.0 * t[0]])

    return record(phi, len(relation.coordinates), max(relation.parameters, 1), 1, name="relation").forward()


@cache
def _second_rate(relation: Relation) -> Program:
    return _rate(relation).forward()


@dataclass(frozen=True)
class RelationAtState:
    """Φ, ∂Φ/∂x, ∂Φ/∂t, and Φ̈ where the coordinates do not accelerate."""

    phi: Any
    gradient: Array
    by_time: Any
    curvature: Any


def at_state(relation: Relation, x: Sequence[Any], v: Sequence[Any], p: Sequence[Any], t: Any) -> RelationAtState:
    """A relation where its coordinates are x and their rates v."""
    n, still, rate = len(x), np.zeros(max(relation.parameters, 1)), _rate(relation)
    inputs = np.array(x), np.array(p) if len(p) else still, np.array([t])
    none, one = np.zeros(1), np.ones(1)
    columns = [rate(*inputs, unit, still, none) for unit in np.eye(n)]
    motion = np.array(v), still, one if relation.clock else none
    second = _second_rate(relation)(*inputs, *motion, *motion, np.zeros(n), still, none)
    by_time = rate(*inputs, np.zeros(n), still, motion[2])[1][0]
    return RelationAtState(second[0][0], np.array([column[0] for _, column in columns]), by_time, second[3][0])
