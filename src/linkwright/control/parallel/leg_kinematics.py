"""The legs of a hexapod at poses of its plate: inverse kinematics over arrays, checks that name the leg, and
operation counts.

A leg is that of `legs`, evaluated over arrays of poses and legs. Here are added: legs whose wrist point is out of
reach, the Jacobians of the legs, and the rows of S = ∂θ_A/∂x, which takes the plate's twist to the motors' rates.

Parts hand each other joint angles, rates and accelerations, as separate routines do, so that each begins with sines,
cosines and turns that the others have too. The one program needs no angles at all, and records what is common once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import finite_array
from linkwright.base.arrays import Floats
from linkwright.control.parallel import legs
from linkwright.control.parallel.hexapod import Hexapod
from linkwright.control.parallel.legs import (
    COLUMNS,
    KNEE,
    Forces,
    Leg,
    Motion,
    Posture,
    along_rod,
    crank_direction,
    crank_end,
    crank_terms,
    joint_accelerations,
    joint_angles,
    joint_axes,
    joint_rates,
    leg_of,
    leg_table,
    plus,
    posture_of,
    row,
    wrist_point,
)
from linkwright.errors import ModelError, ShapeError
from linkwright.spatial.rotation import euler_parameters_matrix
from linkwright.tape.build import record
from linkwright.tape.program import Program

WORST = 1e8  # the condition above which a leg or the machine counts as singular


class Unreachable(ModelError):
    """A pose that a leg cannot reach: `leg` (from 1), `short`, what the leg lacks (m), and the pose's `index`.

    It is a `ModelError` that `check_reach`, `leg_motion` and `ControlStep` raise.
    """

    def __init__(self, message: str, *, leg: int, short: float, index: tuple[int, ...]) -> None:
        super().__init__(message, element=f"leg {leg}")
        self.leg, self.short, self.index = leg, short, index

    @staticmethod
    def length(metres: float) -> str:
        """A length in the message: in mm below a metre."""
        return f"{metres:.3g} m" if abs(metres) >= 1.0 else f"{1e3 * metres:.3g} mm"


class SingularPose(ModelError):
    """A pose where the legs or the motors lose a direction.

    Carries `which` ("S" of the motors or "W" of a leg), the `leg` (from 1, 0 for S), the `condition` and the lost
    `direction`: velocity (m/s) and angular velocity (rad/s) of the plate in ground's axes. It is a `ModelError` that
    `check_motors`, `check_regular`, `leg_motion` and `ControlStep` raise.
    """

    def __init__(self, message: str, *, which: str, leg: int, condition: float, direction: Floats) -> None:
        super().__init__(message, element=f"leg {leg}" if leg else None)
        self.which, self.leg, self.condition, self.direction = which, leg, condition, direction


class Legs(NamedTuple):
    """The legs of a hexapod at poses (...), as `legs_at` gives them; vectors are in ground's axes.

    - `angles` (..., 6, 6): θ₁ … θ₆ of each leg (rad).
    - `knees`, `wrists` (..., 6, 3): the ends of the cranks, and the wrist points (m).
    - `short` (..., 6): how far the wrist point is out of the leg's reach (m); 0 where it is in reach.
    - `slack` (..., 6): √(p_x² + p_y²) − |k| (m): negative out of reach, 0 where crank and rod are in line.
    - `axes` (..., 6, 6, 3): the axes of the six joints, unit vectors.
    - `rows` (..., 6, 6), `ways` (..., 6): row i of S = ∂θ_A/∂x is rows_i / ways_i. With u along the rod and t the way
      of the crank's end a radian, u·ẋ_P = (u·t) θ̇: rows_i = [u, (P − x) × u] and ways_i = u·t. Singular `rows` let the
      plate move with all motors held; a way of 0 is that of a leg whose crank and rod are in line.

    >>> import linkwright as lw
    >>> from linkwright.studies.manipulator.machine import SIX_LEG
    >>> legs = lw.control.legs_at(SIX_LEG, SIX_LEG.home)
    >>> legs.knees.shape, float(legs.short.max())
    ((6, 3), 0.0)

    Nothing is checked when one is made by hand.
    """

    angles: Floats
    knees: Floats
    wrists: Floats
    short: Floats
    slack: Floats
    axes: Floats
    rows: Floats
    ways: Floats


def rotation_matrix(euler_parameters: ArrayLike) -> Floats:
    """The rotation matrices (..., 3, 3) of `euler_parameters` (..., 4), scalar first, which need not be normalised.

    >>> import linkwright as lw
    >>> lw.control.rotation_matrix([0.0, 0.0, 0.0, 1.0]).tolist()  # half a turn about z
    [[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]]

    Raises `ShapeError` where they are not four finite numbers, or all zero.
    """
    e = np.asarray(euler_parameters, dtype=np.float64)
    size = np.linalg.norm(e, axis=-1, keepdims=True)
    if e.shape[-1:] != (4,) or not (np.isfinite(e).all() and (size > 0.0).all()):
        raise ShapeError("give four finite Euler parameters e0, e1, e2, e3, not all zero, in the last axis")
    return np.moveaxis(euler_parameters_matrix(np.moveaxis(e / size, -1, 0)), (0, 1), (-2, -1))


def legs_at(geometry: Hexapod, pose: ArrayLike, *, knee: int = KNEE) -> Legs:
    """The legs of `geometry`, a `Hexapod`, with the plate at `pose` (..., 7): x, y, z (m) and Euler parameters.

    `knee` is −1 for knees outside, 1 for knees inside. An unreachable leg is stretched (or folded) towards its wrist
    point as far as it goes and has `short` > 0: no error.

    >>> import linkwright as lw
    >>> from linkwright.studies.manipulator.machine import SIX_LEG
    >>> float(lw.control.legs_at(SIX_LEG, SIX_LEG.home).angles[0, 0].round(3))  # of the first motor
    0.216

    Raises `ShapeError` for another shape, `ModelError` for numbers that are not finite.
    """
    return _standing(geometry, pose, knee)[2]


def _standing(geometry: Hexapod, pose: ArrayLike, knee: int) -> tuple[Leg, Posture, Legs]:
    """All legs at poses (...), as `legs` has them, over arrays (..., 6); and what is known of them."""
    where = finite_array("the pose (x, y, z and Euler parameters)", pose, (7,), batch=True)
    place = _components(where[..., :3])
    turn = np.moveaxis(rotation_matrix(where[..., 3:]), (-2, -1), (0, 1))[..., None]
    leg = leg_of(list(leg_table(geometry)))
    arm, p = wrist_point(leg, place, turn)
    direction, slack = _crank(geometry.crank, geometry.rod, p, knee)
    along = along_rod(geometry.crank, p, direction)
    rod = np.sqrt(sum(x * x for x in along))  # out of reach it is not the rod's length
    at = posture_of(leg, turn, arm, direction, along, rod)
    rows, ways = row(geometry, leg, at)
    legs = Legs(
        _joined(joint_angles(leg, at, turn)),
        _joined(crank_end(geometry, leg, *direction)),
        _joined(plus(place, arm)),
        np.where(slack < 0.0, np.abs(rod - geometry.rod), 0.0),
        slack,
        np.stack(np.broadcast_arrays(*map(_joined, joint_axes(leg, at))), axis=-2),
        _joined(rows),
        ways,
    )
    return leg, at, legs


def _components(vectors: Floats) -> list[Floats]:
    """The three components of vectors (..., 3), each (..., 1): the same for all legs."""
    return list(np.moveaxis(vectors, -1, 0)[..., None])


def _joined(components: Any) -> Floats:
    """Components in a last axis."""
    return np.stack(np.broadcast_arrays(*components), axis=-1)


def _crank(crank: float, rod: float, p: Any, knee: int) -> tuple[tuple[Floats, Floats], Floats]:
    """Direction (cos θ₁, sin θ₁) of the crank, towards p as far as it goes where p is out of reach; and the slack."""
    x = np.where((p[0] == 0.0) & (p[1] == 0.0), 1e-150, p[0])  # on the driven axis any direction is as good
    flat, k = crank_terms(crank, rod, [x, p[1], p[2]])
    size = np.sqrt(flat)
    return crank_direction([x, p[1]], flat, np.clip(k, -size, size), knee), size - np.abs(k)


def crank_angles(p: ArrayLike, crank: float, rod: float, knee: int = KNEE) -> tuple[Floats, Floats]:
    """The angles (...) of a crank whose rod ends at points `p` (..., 3), m, and the slack (m) of `Legs`.

    The crank turns about z, at the origin; `crank` and `rod` are lengths (m), `knee` is −1 or 1 for the two solutions.
    A point out of reach has a negative slack; the crank then points towards it, or away from it.

    >>> import linkwright as lw
    >>> angle, slack = lw.control.crank_angles([0.3, 0.4, 0.0], 0.3, 0.4, knee=-1)
    >>> abs(float(angle.round(9)))
    0.0

    Raises `ShapeError` for another shape of p, `ModelError` for numbers that are not finite.
    """
    (cosine, sine), slack = _crank(crank, rod, np.moveaxis(finite_array("the point", p, (3,), batch=True), -1, 0), knee)
    return np.arctan2(sine, cosine), slack


def check_reach(geometry: Hexapod, legs: Legs) -> None:
    """Raise `Unreachable` for poses that a leg cannot reach: which leg, by how much, and what to try.

    >>> import linkwright as lw
    >>> from linkwright.studies.manipulator.machine import SIX_LEG
    >>> lw.control.check_reach(SIX_LEG, lw.control.legs_at(SIX_LEG, SIX_LEG.home))

    `legs` are those of `legs_at` for the same `geometry`.
    """
    if not (legs.short > 0.0).any():
        return
    *index, leg = (int(i) for i in np.unravel_index(int(np.argmax(legs.short)), legs.short.shape))
    short = float(legs.short[(*index, leg)])
    knee, wrist = legs.knees[(*index, leg)], legs.wrists[(*index, leg)]
    far = float(np.linalg.norm(wrist - knee)) > geometry.rod
    where = f" at pose {tuple(index)}" if index else ""
    text = (
        f"leg {leg + 1} cannot reach its wrist point{where}: it is {Unreachable.length(short)} too "
        f"{'far' if far else 'near'} with the crank turned towards it; bring the plate "
        f"{'nearer to' if far else 'away from'} the leg's base "
        f"({', '.join(f'{x:.3g}' for x in geometry.base_points[leg])}), tilt it less, or change crank or rod"
    )
    raise Unreachable(text, leg=leg + 1, short=short, index=tuple(index))


def check_regular(geometry: Hexapod, legs: Legs, jacobians: Floats, worst: float = WORST) -> None:
    """Raise `SingularPose` where the condition of a leg's W = J⁻¹ is above `worst`, by default 1e8.

    `legs` are those of `legs_at` for the same `geometry`, `jacobians` (..., 6, 6, 6) those of `leg_jacobians`. The
    error has the direction that the leg cannot follow.

    >>> import linkwright as lw
    >>> from linkwright.studies.manipulator.machine import SIX_LEG
    >>> legs = lw.control.legs_at(SIX_LEG, SIX_LEG.home)
    >>> lw.control.check_regular(SIX_LEG, legs, lw.control.leg_jacobians(SIX_LEG, legs, SIX_LEG.home[:3]))

    Turns are measured at the geometry's `turn_length`.
    """
    size = geometry.twist_scale
    condition = np.linalg.cond(size[:, None] * jacobians)
    if (condition <= worst).all():
        return
    at = np.unravel_index(int(np.argmax(condition)), condition.shape)
    lost = np.linalg.svd(size[:, None] * jacobians[at])[0][:, -1] * size
    leg, angles = int(at[-1]) + 1, legs.angles[at]
    stretched = abs(np.sin(angles[1])) < abs(np.cos(angles[4]))
    wrist = "its wrist's middle joint is at 90° and the outer two turn about one axis"
    why = "its crank and rod are in line" if stretched else wrist
    text = (
        f"leg {leg} is singular (condition of W {condition[at]:.2g}): {why}, so that it cannot follow "
        f"{in_words(lost / np.linalg.norm(lost))}; keep the pose away from there, or turn the plate otherwise"
    )
    raise SingularPose(text, which="W", leg=leg, condition=float(condition[at]), direction=lost)


def in_words(twist: Floats) -> str:
    """A direction of motion, by its larger parts."""
    names = ("moving along x", "along y", "along z", "turning about x", "about y", "about z")
    largest = float(np.abs(twist).max())
    return ", ".join(f"{x:+.2f} {n}" for x, n in zip(twist, names, strict=True) if abs(x) > 0.1 * largest)


def leg_jacobians(geometry: Hexapod, legs: Legs, position: ArrayLike) -> Floats:
    """The Jacobians (..., 6 legs, 6, 6) from a leg's rates to the plate's twist, velocity of its origin first.

    `geometry` is a `Hexapod`, `legs` are those of `legs_at`, `position` (..., 3) are the positions of the plate's
    origin (m); ground's axes.

    >>> import linkwright as lw
    >>> from linkwright.studies.manipulator.machine import SIX_LEG
    >>> legs = lw.control.legs_at(SIX_LEG, SIX_LEG.home)
    >>> lw.control.leg_jacobians(SIX_LEG, legs, SIX_LEG.home[:3]).shape
    (6, 6, 6)

    Their inverses are W, from the plate's twist to the rates of a leg.
    """
    at = np.asarray(position, dtype=np.float64)
    base = np.broadcast_to(geometry.base_points, legs.knees.shape)
    points = np.stack([base, legs.knees, legs.knees, legs.wrists, legs.wrists, legs.wrists], axis=-2)
    arms = at[..., None, None, :] - points
    return np.concatenate([np.cross(legs.axes, arms), legs.axes], axis=-1).swapaxes(-1, -2)


def check_motors(geometry: Hexapod, legs: Legs, worst: float = WORST) -> float:
    """The condition of S at one pose of a `geometry`, with turns measured at its `turn_length`; `legs` are those there.

    >>> import linkwright as lw
    >>> from linkwright.studies.manipulator.machine import SIX_LEG
    >>> round(lw.control.check_motors(SIX_LEG, lw.control.legs_at(SIX_LEG, SIX_LEG.home)), 2)
    1.96

    Raises `SingularPose` where the condition is above `worst` (1e8 by default).
    """
    size = geometry.twist_scale
    scaled, b = legs.rows / size, legs.ways / geometry.crank
    with np.errstate(divide="ignore"):
        s = scaled / b[:, None]
    condition = float(np.linalg.cond(s)) if np.isfinite(s).all() else np.inf
    if condition <= worst:
        return condition
    if np.linalg.cond(scaled) > 1.0 / np.abs(b).min():  # the motors held, the plate still moves
        lost = np.linalg.svd(scaled)[2][-1] / size
        what = f"the motors do not hold the plate against {in_words(lost / np.linalg.norm(lost))}"
    else:
        leg = int(np.argmin(np.abs(b)))
        lost = legs.rows[leg]
        what = f"crank and rod of leg {leg + 1} are in line, and no motor moves the plate along its rod: "
        what += in_words(lost / np.linalg.norm(lost))
    text = f"the pose is singular (condition of S {condition:.2g}): {what}; keep the path away from it"
    raise SingularPose(text, which="S", leg=0, condition=condition, direction=lost)


def leg_motion(
    geometry: Hexapod, pose: ArrayLike, twist: ArrayLike | None, acceleration: ArrayLike | None, *, knee: int = KNEE
) -> tuple[Floats, Floats, Floats]:
    """Angles (rad), rates (rad/s) and accelerations (rad/s²) of the legs' joints, each (..., 6 legs, 6).

    The plate of `geometry`, a `Hexapod`, is at `pose` (..., 7) and moves with `twist` and `acceleration` (..., 6),
    velocity of its origin first, in ground's axes; both are zero where they are None. `knee` is that of `legs_at`.

    >>> import linkwright as lw
    >>> from linkwright.studies.manipulator.machine import SIX_LEG
    >>> angles, rates, _ = lw.control.leg_motion(SIX_LEG, SIX_LEG.home, [0.0, 0.0, 0.1, 0.0, 0.0, 0.0], None)
    >>> rates[:, 0].round(3).tolist()  # of the motors
    [0.167, 0.167, 0.167, 0.167, 0.167, 0.167]

    Raises `Unreachable` and, where the plate moves, `SingularPose`.
    """
    leg, at, legs = _standing(geometry, pose, knee)
    check_reach(geometry, legs)
    if twist is None and acceleration is None:
        return legs.angles, np.zeros_like(legs.angles), np.zeros_like(legs.angles)
    check_regular(geometry, legs, leg_jacobians(geometry, legs, np.asarray(pose, dtype=np.float64)[..., :3]))
    still = np.zeros(6)
    velocity = finite_array("the plate's twist", still if twist is None else twist, (6,), batch=True)
    change = finite_array("the plate's acceleration", still if acceleration is None else acceleration, (6,), batch=True)
    v, w, a, dw = (_components(x) for part in (velocity, change) for x in (part[..., :3], part[..., 3:]))
    rates = joint_rates(geometry, leg, at, v, w)
    rise = joint_accelerations(geometry, leg, at, rates, w, a, dw)
    return legs.angles, _joined(rates.joints()), _joined(rise.joints())


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
    """Operations of one leg of `geometry`, a `Hexapod`, by name: the parts, their sum, and the one program.

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
