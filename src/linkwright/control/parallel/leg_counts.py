"""Operation counts of a leg: each part as a program of its own, and all of them as one (the paper's unified
computation).

Parts hand each other joint angles, rates and accelerations, as separate routines do, so that each begins with sines,
cosines and turns that the others have too. The one program needs no angles at all, and records what is common once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linkwright.control.parallel import legs
from linkwright.control.parallel.hexapod import Hexapod
from linkwright.control.parallel.legs import COLUMNS, Forces, Motion
from linkwright.tape.build import record
from linkwright.tape.program import Program

_TAKE = {"table": (COLUMNS,), "place": (3,), "turn": (3, 3), "v": (3,), "w": (3,), "a": (3,), "dw": (3,)}


def part_programs(geometry: Hexapod) -> dict[str, Program]:
    """A leg's routines, each recorded alone."""
    g = geometry

    def inverse_kinematics(table: Any, place: Any, turn: Any) -> Any:
        leg = legs.leg_of(table)
        at, _ = legs.posture(g, leg, place, turn)
        return np.array(legs.joint_angles(leg, at, turn))

    def joint_motion(table: Any, turn: Any, v: Any, w: Any, a: Any, dw: Any, q: Any) -> tuple[Any, Any]:
        leg = legs.leg_of(table)
        at = legs.turned(q, legs.wrist_point(leg, [0.0, 0.0, 0.0], turn)[0])
        rates = legs.joint_rates(g, leg, at, v, w)
        rise = legs.joint_accelerations(g, leg, at, rates, w, a, dw)
        return np.array(rates.joints()), np.array(rise.joints())

    def newton_euler(q: Any, qd: Any, qdd: Any) -> Any:
        at = legs.turned(q, [0.0, 0.0, 0.0])
        moves = [Motion(x[0], x[0] + x[1], *x[2:]) for x in (qd, qdd)]
        tau = legs.newton_euler(g, at, *moves)
        return np.array([*tau[:5], 0.0 * q[0]])

    def transformation(table: Any, turn: Any, q: Any, tau: Any) -> tuple[Any, Any]:
        leg = legs.leg_of(table)
        at = legs.turned(q, legs.wrist_point(leg, [0.0, 0.0, 0.0], turn)[0])
        force, moment = legs.share(g, leg, at, Forces(*tau))
        row, driven = legs.row(g, leg, at)
        return np.array([*force, *moment]), np.array([x / driven for x in row])

    shapes: dict[str, tuple[Callable[..., Any], list[Any]]] = {
        "inverse kinematics": (inverse_kinematics, [(COLUMNS,), 3, (3, 3)]),
        "rates and accelerations": (joint_motion, [(COLUMNS,), (3, 3), 3, 3, 3, 3, 6]),
        "Newton–Euler": (newton_euler, [6, 6, 6]),
        "Jacobian and its share": (transformation, [(COLUMNS,), (3, 3), 6, 6]),
    }
    return {name: record(function, *sizes, name=name) for name, (function, sizes) in shapes.items()}


def unified_program(geometry: Hexapod, *, angles: bool = False) -> Program:
    """The same results as one program: share of τ_G and row of S; with `angles` also joint angles, rates, rise."""
    g = geometry

    def leg_program(table: Any, place: Any, turn: Any, v: Any, w: Any, a: Any, dw: Any) -> tuple[Any, ...]:
        leg = legs.leg_of(table)
        at, _ = legs.posture(g, leg, place, turn)
        rates = legs.joint_rates(g, leg, at, v, w)
        rise = legs.joint_accelerations(g, leg, at, rates, w, a, dw)
        tau = legs.newton_euler(g, at, rates, rise)
        force, moment = legs.share(g, leg, at, tau)
        row, driven = legs.row(g, leg, at)
        transformed = np.array([*force, *moment]), np.array([x / driven for x in row])
        if not angles:
            return transformed
        forces = np.array([*tau[:5], 0.0 * place[0]])
        joints = (np.array(x) for x in (legs.joint_angles(leg, at, turn), rates.joints(), rise.joints()))
        return *transformed, *joints, forces

    return record(leg_program, *_TAKE.values(), name="leg")


def leg_counts(geometry: Hexapod) -> dict[str, int]:
    """Operations of one leg of a hexapod, by name: the parts, their sum, and the one program.

    >>> import linkwright as lw
    >>> from linkwright.studies.manipulator.machine import SIX_LEG
    >>> lw.control.leg_counts(SIX_LEG)["one program"]
    597

    `part_programs` and `unified_program` give the programs themselves.
    """
    counts = {name: sum(program.count().values()) for name, program in part_programs(geometry).items()}
    counts["sum of the parts"] = sum(counts.values())
    counts["one program with angles"] = sum(unified_program(geometry, angles=True).count().values())
    counts["one program"] = sum(unified_program(geometry).count().values())
    return counts
