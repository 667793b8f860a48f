"""Where the legs are when the plate is somewhere: inverse kinematics in closed form, over arrays of poses.

In a leg's frame the wrist point p is reached by a crank at θ₁ if |p − l (cos θ₁, sin θ₁, 0)| is the rod's length, with
l the crank's:

    p_x cos θ₁ + p_y sin θ₁ = k,   k = (p·p + l² − rod²) / 2 l,   θ₁ = atan2(p_y, p_x) ∓ acos(k / √(p_x² + p_y²)).

The upper sign has the knee outside (`knee=-1`, as the machine is built), the lower inside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.types import Floats
from linkwright.errors import ModelError, ShapeError
from linkwright.spatial.algebra import point_acceleration
from linkwright.spatial.rotation import euler_parameters_matrix
from linkwright.studies.manipulator.geometry import Geometry

WORST = 1e8  # the condition above which a leg or the machine counts as singular


class Unreachable(ModelError):
    """A pose that a leg cannot reach; carries the leg (from 1), what it lacks (m), and the pose's index."""

    def __init__(self, message: str, *, leg: int, short: float, index: tuple[int, ...]) -> None:
        super().__init__(message, element=f"leg {leg}")
        self.leg, self.short, self.index = leg, short, index


class SingularPose(ModelError):
    """A pose where the legs or the motors lose a direction.

    Carries `which` ("S" of the motors or "W" of a leg), the leg (from 1, 0 for S), the condition and the lost
    direction: velocity (m/s) and angular velocity (rad/s) of the plate in ground's axes.
    """

    def __init__(self, message: str, *, which: str, leg: int, condition: float, direction: Floats) -> None:
        super().__init__(message, element=f"leg {leg}" if leg else None)
        self.which, self.leg, self.condition, self.direction = which, leg, condition, direction


class Legs(NamedTuple):
    """The legs at poses (...): all in ground's axes unless said otherwise."""

    angles: Floats  # (..., 6, 6): θ₁ … θ₆ of each leg (rad)
    knees: Floats  # (..., 6, 3): the cranks' ends (m)
    wrists: Floats  # (..., 6, 3): the wrist points (m)
    short: Floats  # (..., 6): how far the wrist point is out of the leg's reach (m), 0 where it is in it
    slack: Floats  # (..., 6): √(p_x² + p_y²) − |k| (m): negative out of reach, 0 where crank and rod are in line
    axes: Floats  # (..., 6, 6, 3): the axes of the six joints, unit vectors


def rotation(euler_parameters: ArrayLike) -> Floats:
    """(..., 3, 3) of Euler parameters (..., 4), scalar first; they need not be normalised."""
    e = np.asarray(euler_parameters, dtype=np.float64)
    size = np.linalg.norm(e, axis=-1, keepdims=True)
    if e.shape[-1:] != (4,) or not (np.isfinite(e).all() and (size > 0.0).all()):
        raise ShapeError("give four finite Euler parameters e0, e1, e2, e3, not all zero, in the last axis")
    return np.moveaxis(euler_parameters_matrix(np.moveaxis(e / size, -1, 0)), (0, 1), (-2, -1))


def finite(values: ArrayLike, last: int, what: str) -> Floats:
    """Numbers (..., last) as an array; a wrong shape, or one that is not finite, is an error."""
    found = np.asarray(values, dtype=np.float64)
    if found.shape[-1:] != (last,):
        text = f"{what} have shape {found.shape}; give (..., {last})"
        raise ShapeError(text, given=found.shape, wanted=(last,))
    if not np.isfinite(found).all():
        raise ModelError(f"{what} have numbers that are not finite; give the legs a place to go to")
    return found


def legs_at(geometry: Geometry, pose: ArrayLike, *, knee: int = -1) -> Legs:
    """The legs at poses (..., 7): x, y, z (m) and Euler parameters.

    An unreachable leg is stretched (or folded) towards its wrist point as far as it goes and has `short` > 0.
    """
    where = finite(pose, 7, "poses (x, y, z and Euler parameters)")
    turn = rotation(where[..., 3:])
    base, attached, frames = geometry.base_points, geometry.wrist_points, geometry.frames
    wrists = where[..., None, :3] + np.einsum("...ij,lj->...li", turn, attached)
    p = np.einsum("lji,...lj->...li", frames, wrists - base)
    first, slack = crank_angles(p, geometry.crank, geometry.rod, knee)
    end = geometry.crank * np.stack([np.cos(first), np.sin(first), np.zeros_like(first)], axis=-1)
    along = p - end
    reach = np.linalg.norm(along, axis=-1)
    direction = along / np.where(reach > 0.0, reach, 1.0)[..., None]
    short = np.where(slack < 0.0, np.abs(reach - geometry.rod), 0.0)
    tilt = -np.arcsin(np.clip(direction[..., 2], -1.0, 1.0))
    raised = np.arctan2(direction[..., 1], direction[..., 0])
    rod = about(2, raised) @ about(1, tilt)
    plate = np.einsum("lji,...jk,lkm->...lim", frames, turn, frames)
    wrist = np.swapaxes(rod, -1, -2) @ plate
    fourth = np.arctan2(wrist[..., 1, 0], wrist[..., 0, 0])
    fifth = -np.arcsin(np.clip(wrist[..., 2, 0], -1.0, 1.0))
    sixth = np.arctan2(wrist[..., 2, 1], wrist[..., 2, 2])
    second = (raised - first + np.pi) % (2.0 * np.pi) - np.pi
    first = (first + np.pi) % (2.0 * np.pi) - np.pi
    turned = rod @ about(2, fourth)
    up = np.zeros((*first.shape, 3))
    up[..., 2] = 1.0
    local = [up, up, about(2, raised)[..., 1], rod[..., 2], turned[..., 1], (turned @ about(1, fifth))[..., 0]]
    return Legs(
        np.stack([first, second, tilt, fourth, fifth, sixth], axis=-1),
        base + np.einsum("lij,...lj->...li", frames, end),
        wrists,
        short,
        slack,
        np.einsum("lij,...lkj->...lki", frames, np.stack(local, axis=-2)),
    )


def crank_angles(p: Floats, crank: float, rod: float, knee: int) -> tuple[Floats, Floats]:
    """Crank angles (...) with which a rod reaches p (..., 3) in the leg's axes, and what `Legs` calls slack."""
    flat = np.hypot(p[..., 0], p[..., 1])
    k = ((p * p).sum(axis=-1) + crank**2 - rod**2) / (2.0 * crank)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = np.clip(np.where(flat > 0.0, k / flat, np.sign(k)), -1.0, 1.0)
    return np.arctan2(p[..., 1], p[..., 0]) + knee * np.arccos(cosine), flat - np.abs(k)


def length(metres: float) -> str:
    """A length for people: in mm below a metre."""
    return f"{metres:.3g} m" if abs(metres) >= 1.0 else f"{1e3 * metres:.3g} mm"


def check_reach(geometry: Geometry, legs: Legs) -> None:
    """Refuse poses that a leg cannot reach: which leg, by how much, and what to try."""
    if not (legs.short > 0.0).any():
        return
    *index, leg = (int(i) for i in np.unravel_index(int(np.argmax(legs.short)), legs.short.shape))
    short = float(legs.short[(*index, leg)])
    knee, wrist = legs.knees[(*index, leg)], legs.wrists[(*index, leg)]
    far = float(np.linalg.norm(wrist - knee)) > geometry.rod
    where = f" at pose {tuple(index)}" if index else ""
    text = (
        f"leg {leg + 1} cannot reach its wrist point{where}: it is {length(short)} too {'far' if far else 'near'} "
        f"with the crank turned towards it; bring the plate {'nearer to' if far else 'away from'} the leg's base "
        f"({', '.join(f'{x:.3g}' for x in geometry.base_points[leg])}), tilt it less, or change crank or rod"
    )
    raise Unreachable(text, leg=leg + 1, short=short, index=tuple(index))


def check_regular(geometry: Geometry, legs: Legs, jacobians: Floats, worst: float = WORST) -> None:
    """Refuse poses where a leg's W = J⁻¹ is of no use, with the direction that the leg cannot follow."""
    size = np.array([1.0, 1.0, 1.0, *[geometry.turn_length] * 3])
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


def leg_jacobians(geometry: Geometry, legs: Legs, position: ArrayLike) -> Floats:
    """(..., 6 legs, 6, 6): from a leg's rates to the plate's twist, velocity of its origin first, in ground's axes."""
    at = np.asarray(position, dtype=np.float64)
    base = np.broadcast_to(geometry.base_points, legs.knees.shape)
    points = np.stack([base, legs.knees, legs.knees, legs.wrists, legs.wrists, legs.wrists], axis=-2)
    arms = at[..., None, None, :] - points
    return np.concatenate([np.cross(legs.axes, arms), legs.axes], axis=-1).swapaxes(-1, -2)


def motor_rows(geometry: Geometry, legs: Legs, position: ArrayLike) -> tuple[Floats, Floats]:
    """S = ∂θ_A/∂x (..., 6, 6) as numerators A (..., 6, 6) and denominators (..., 6): row i of S is A_i / b_i.

    With u along the rod and t the way of the crank's end a radian, u·ẋ_P = (u·t) θ̇: A_i = [u, (P − x) × u], b_i = u·t.
    A singular A lets the plate move with all motors held; b_i = 0 is a leg whose crank and rod are in line.
    """
    u = (legs.wrists - legs.knees) / np.linalg.norm(legs.wrists - legs.knees, axis=-1, keepdims=True)
    arms = legs.wrists - np.asarray(position, dtype=np.float64)[..., None, :]
    tangents = np.cross(legs.axes[..., 0, :], legs.knees - geometry.base_points)
    return np.concatenate([u, np.cross(arms, u)], axis=-1), (u * tangents).sum(axis=-1)


def check_motors(geometry: Geometry, legs: Legs, position: ArrayLike, worst: float = WORST) -> float:
    """The condition of S at one pose (turns measured at `turn_length`); above `worst` the pose is refused."""
    rows, ways = motor_rows(geometry, legs, position)
    size = np.array([1.0, 1.0, 1.0, *[geometry.turn_length] * 3])
    scaled, b = rows / size, ways / geometry.crank
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
        lost = rows[leg]
        what = f"crank and rod of leg {leg + 1} are in line, and no motor moves the plate along its rod: "
        what += in_words(lost / np.linalg.norm(lost))
    text = f"the pose is singular (condition of S {condition:.2g}): {what}; keep the path away from it"
    raise SingularPose(text, which="S", leg=0, condition=condition, direction=lost)


def motion(
    geometry: Geometry, pose: ArrayLike, twist: ArrayLike | None, acceleration: ArrayLike | None, *, knee: int = -1
) -> tuple[Floats, Floats, Floats]:
    """Angles, rates and accelerations (..., 6 legs, 6) of the legs at poses (..., 7) for the plate's motion.

    Twist and acceleration (..., 6) in ground's axes, linear part first, zero unless given.
    """
    where = np.asarray(pose, dtype=np.float64)
    legs = legs_at(geometry, where, knee=knee)
    check_reach(geometry, legs)
    if twist is None and acceleration is None:
        return legs.angles, np.zeros_like(legs.angles), np.zeros_like(legs.angles)
    jacobian = leg_jacobians(geometry, legs, where[..., :3])
    check_regular(geometry, legs, jacobian)
    w = np.zeros(6) if twist is None else finite(twist, 6, "twists of the plate")
    b = np.zeros(6) if acceleration is None else finite(acceleration, 6, "accelerations of the plate")
    rates = _solved(jacobian, w[..., None, :] + np.zeros_like(legs.angles))
    left = b[..., None, :] - _velocity_products(geometry, legs, where[..., :3], rates)
    return legs.angles, rates, _solved(jacobian, left)


def _solved(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.linalg.solve(a, b[..., None])[..., 0], dtype=np.float64)


def _velocity_products(geometry: Geometry, legs: Legs, position: Floats, rates: Floats) -> Floats:
    """(..., 6 legs, 6): the plate's acceleration when the joints of a leg turn evenly."""
    spins = legs.axes * rates[..., None]
    omega = np.cumsum(spins, axis=-2)  # of the body after each joint
    alpha = np.cumsum(np.cross(omega, spins), axis=-2)
    base = np.broadcast_to(geometry.base_points, legs.knees.shape)
    ends = np.broadcast_to(np.asarray(position)[..., None, :], legs.knees.shape)
    total = np.moveaxis(np.zeros(legs.knees.shape), -1, 0)
    for body, start, end in ((0, base, legs.knees), (2, legs.knees, legs.wrists), (5, legs.wrists, ends)):
        turning = (alpha[..., body, :], omega[..., body, :], end - start)
        total = point_acceleration(total, *(np.moveaxis(x, -1, 0) for x in turning))
    return np.concatenate([np.moveaxis(total, 0, -1), alpha[..., 5, :]], axis=-1)


def about(axis: int, angle: ArrayLike) -> Floats:
    """(..., 3, 3): the turn by angles (...) about coordinate axis 0, 1 or 2."""
    c, s = np.cos(angle), np.sin(angle)
    found = np.zeros((*np.shape(angle), 3, 3))
    i, j = (axis + 1) % 3, (axis + 2) % 3
    found[..., axis, axis] = 1.0
    found[..., i, i] = found[..., j, j] = c
    found[..., i, j], found[..., j, i] = -s, s
    return found
