"""A Stewart platform with dynamics: six legs that get longer, and their lengths in closed form.

Leg k stands on a universal joint (`fork1`, …) at foot F_k, gets longer by the driven joint `slide1`, … and ends in a
ball (`ball1`, …) at H_k of the plate: its length is |x + R H_k − F_k|. The loops are cut at the balls of legs 2 to 6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.types import Floats
from linkwright.building import Builder
from linkwright.errors import ModelError, ShapeError
from linkwright.model import Mechanism
from linkwright.spatial.algebra import point_velocity
from linkwright.spatial.rotation import euler_parameters
from linkwright.studies.manipulator.geometry import check_positive
from linkwright.studies.manipulator.kinematics import Unreachable, finite, length, rotation

LEGS = 6


@dataclass(frozen=True)
class Stewart:
    """Dimensions (m, rad), masses (kg) and inertias (kg m²); legs are uniform rods of `tube` and `piston`."""

    base_radius: float = 1.0
    base_half_angle: float = float(np.deg2rad(10.0))  # of two neighbouring feet from their middle
    plate_radius: float = 0.6
    plate_half_angle: float = float(np.deg2rad(10.0))
    home_height: float = 1.2
    shortest: float = 0.9
    longest: float = 1.8
    plate_mass: float = 40.0
    plate_inertia: tuple[float, float, float] = (4.0, 4.0, 7.5)
    tube_mass: float = 8.0
    tube_length: float = 0.8
    piston_mass: float = 4.0
    piston_length: float = 0.8

    def __post_init__(self) -> None:
        masses = ("plate_mass", "tube_mass", "piston_mass")
        sizes = ("base_radius", "plate_radius", "home_height", "shortest", "longest", "tube_length", "piston_length")
        check_positive(self, dict.fromkeys(sizes, "a length in metres") | dict.fromkeys(masses, "a mass in kilograms"))
        if self.shortest >= self.longest:
            text = f"shortest, {self.shortest:g} m, must be less than longest, {self.longest:g} m"
            raise ModelError(text, element="shortest")

    @property
    def feet(self) -> Floats:
        """F_k in ground, (6, 3)."""
        return _ring(self.base_radius, self.base_half_angle, 0.0)

    @property
    def heads(self) -> Floats:
        """H_k in the plate, (6, 3): the plate's pairs stand between those of the base."""
        return _ring(self.plate_radius, np.pi / 3.0 - self.plate_half_angle, 0.0)

    @property
    def home(self) -> Floats:
        """The plate's home: x, y, z and Euler parameters."""
        return np.array([0.0, 0.0, self.home_height, 1.0, 0.0, 0.0, 0.0])


def _ring(radius: float, half: float, start: float) -> Floats:
    pairs = start + 2.0 * np.pi / 3.0 * np.repeat(np.arange(3), 2)
    angle = pairs + np.tile([-half, half], 3)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros(LEGS)], axis=1)


def leg_vectors(dims: Stewart, pose: ArrayLike) -> Floats:
    """(..., 6, 3): from feet to heads at poses (..., 7)."""
    where = finite(pose, 7, "poses (x, y, z and Euler parameters)")
    heads = np.einsum("...ij,lj->...li", rotation(where[..., 3:]), dims.heads)
    return np.asarray(where[..., None, :3] + heads - dims.feet)


def lengths(dims: Stewart, pose: ArrayLike) -> Floats:
    """(..., 6): the legs' lengths (m); one that a leg does not have is an error that names it."""
    found = np.asarray(np.linalg.norm(leg_vectors(dims, pose), axis=-1))
    beyond = np.maximum(found - dims.longest, dims.shortest - found)
    if (beyond > 0.0).any():
        *index, leg = (int(i) for i in np.unravel_index(int(np.argmax(beyond)), beyond.shape))
        size, by = float(found[(*index, leg)]), float(beyond[(*index, leg)])
        words = ("long", "nearer to", "longest") if size > dims.longest else ("short", "away from", "shortest")
        text = (
            f"leg {leg + 1} would be {length(size)}, {length(by)} too {words[0]}; bring the plate "
            f"{words[1]} its foot, tilt it less, or change `{words[2]}`"
        )
        raise Unreachable(text, leg=leg + 1, short=by, index=tuple(index))
    return found


def stewart(dims: Stewart | None = None) -> Mechanism:
    """The platform as a mechanism with the slides driven, drawn at home; six degrees of freedom."""
    d = Stewart() if dims is None else dims
    lengths(d, d.home)
    b = Builder("stewart")
    plate_mass = b.parameter("plate_mass", d.plate_mass)
    plate = b.body("plate", plate_mass, inertia=[x / d.plate_mass * plate_mass for x in d.plate_inertia])
    b.place(plate, d.home[:3])
    for k, vector in enumerate(leg_vectors(d, d.home), 1):
        foot, head = d.feet[k - 1], d.heads[k - 1]
        lower = b.body(f"tube{k}", d.tube_mass, (0, 0, d.tube_length / 2), _rod(d.tube_mass, d.tube_length))
        upper = b.body(f"piston{k}", d.piston_mass, (0, 0, -d.piston_length / 2), _rod(d.piston_mass, d.piston_length))
        axes = _axes(foot)
        along = axes.T @ vector
        turned = axes @ _fork(*_fork_angles(along / np.linalg.norm(along)))
        b.place(lower, foot, rotation=turned)
        b.place(upper, foot + vector, rotation=turned)
        below = b.triad(b.ground, foot, h=axes[:, 2], f=axes[:, 0], name=f"foot{k}")
        b.joint("universal", below, b.triad(lower, h=(0, 1, 0), f=(0, 0, 1)), f"fork{k}", actuated=False)
        b.joint("prismatic", lower, upper, f"slide{k}", lower=d.shortest, upper=d.longest)
        above = b.triad(plate, head, name=f"head{k}")
        b.joint("spherical", upper, above, f"ball{k}", actuated=False, cut=k > 1)
        for body, size, at, color in (
            (lower, (0.05, d.tube_length), d.tube_length / 2, "#b5382e"),
            (upper, (0.03, d.piston_length), -d.piston_length / 2, "#a8b0ba"),
        ):
            b.shape(b.triad(body, (0, 0, at)), "cylinder", size, color)
        b.shape(above, "sphere", (0.05,), "#c9a227")
    b.shape(b.triad(plate, (0, 0, 0.05)), "cylinder", (1.08 * d.plate_radius, 0.05), "#35608f", name="deck")
    b.shape(b.triad(b.ground, (0, 0, -0.06)), "cylinder", (1.1 * d.base_radius, 0.06), "#5b6068", name="floor")
    return b.build()


def state(mech: Mechanism, dims: Stewart, pose: ArrayLike, twist: ArrayLike | None = None) -> tuple[Floats, Floats]:
    """q and v of the platform at one pose (7,) that moves with a twist (6,) in ground's axes, linear part first."""
    where = np.asarray(pose, dtype=np.float64)
    if where.shape != (7,):
        raise ShapeError(f"the pose has shape {where.shape}; give (7,): x, y, z and Euler parameters")
    w = np.zeros(6) if twist is None else np.asarray(twist, dtype=np.float64)
    found, turn = lengths(dims, where), rotation(where[3:])
    q, v = mech.neutral(), np.zeros(mech.nv)
    for k, vector in enumerate(leg_vectors(dims, where)):
        axes, length = _axes(dims.feet[k]), found[k]
        along = axes.T @ vector / length
        speed = axes.T @ point_velocity(w[:3], w[3:], turn @ dims.heads[k])
        slide = float(along @ speed)
        f, g, h = (speed - slide * along) / length
        first, second = _fork_angles(along)
        rates = np.array([(along[0] * g - along[1] * f) / (along[0] ** 2 + along[1] ** 2), -h / np.cos(second)])
        _put(mech, q, v, f"fork{k + 1}", (first, second), rates)
        _put(mech, q, v, f"slide{k + 1}", (length,), (slide,))
        if f"ball{k + 1}" not in mech.loops:
            spin = axes @ (
                rates[0] * np.array([0.0, 0.0, 1.0]) + rates[1] * np.array([-np.sin(first), np.cos(first), 0.0])
            )
            inner = (axes @ _fork(first, second)).T @ turn
            _put(mech, q, v, f"ball{k + 1}", euler_parameters(inner), turn.T @ (w[3:] - spin))
    return q, v


def _put(mech: Mechanism, q: Floats, v: Floats, name: str, value: ArrayLike, rate: ArrayLike) -> None:
    joint = mech.joints[name]
    q[joint.q_slice], v[joint.v_slice] = value, rate


def _axes(foot: Floats) -> Floats:
    """The axes of a fork on the base: f up, h across the foot's direction."""
    outward = foot / np.linalg.norm(foot)
    up = np.array([0.0, 0.0, 1.0])
    return np.stack([up, np.cross(np.cross(up, outward), up), np.cross(up, outward)], axis=1)


def _fork_angles(along: Floats) -> tuple[float, float]:
    """The two angles of a universal joint whose leg runs along (f, g, h) of the base's triad."""
    return float(np.arctan2(along[1], along[0])), float(-np.arcsin(along[2]))


def _fork(first: float, second: float) -> Floats:
    """The axes of a tube in those of its fork's triad on the base: z along the leg, y the fork's second axis."""
    c, s, e, t = np.cos(first), np.sin(first), np.cos(second), np.sin(second)
    along, across = np.array([c * e, s * e, -t]), np.array([-s, c, 0.0])
    return np.stack([np.cross(across, along), across, along], axis=1)


def _rod(mass: float, length: float) -> tuple[float, float, float]:
    """A rod along z, 5 cm thick."""
    across = mass * (length**2 / 12.0 + 0.025**2 / 4.0)
    return (across, across, mass * 0.025**2 / 2.0)
