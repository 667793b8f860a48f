"""A Stewart platform with dynamics: six legs that get longer, and their lengths in closed form.

Leg k stands on a universal joint (`fork1`, …) at foot F_k, gets longer by the driven joint `slide1`, … and ends in a
ball (`ball1`, …) at H_k of the plate: its length is |x + R H_k − F_k|. The loops are cut at the balls of legs 2 to 6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from linkwright import Builder, Mechanism
from linkwright.base.arguments import finite_array, positive_number
from linkwright.base.arrays import Floats
from linkwright.control import Unreachable, euler_parameters, rotation_matrix
from linkwright.errors import ModelError
from linkwright.studies.manipulator.machine import about, put, universal_angles, universal_rates, universal_spin

_LEG_IS_Z = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])  # axes whose z is the leg's x


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
        sizes = ("base_radius", "plate_radius", "home_height", "shortest", "longest", "tube_length", "piston_length")
        for name in sizes:
            positive_number(f"{name}, a length in metres,", getattr(self, name))
        for name in ("plate_mass", "tube_mass", "piston_mass"):
            positive_number(f"{name}, a mass in kilograms,", getattr(self, name))
        if self.shortest >= self.longest:
            text = f"shortest, {self.shortest:g} m, must be less than longest, {self.longest:g} m"
            raise ModelError(text, element="shortest")

    @property
    def feet(self) -> Floats:
        """F_k in ground, (6, 3)."""
        return _ring(self.base_radius, self.base_half_angle)

    @property
    def heads(self) -> Floats:
        """H_k in the plate, (6, 3): the plate's pairs stand between those of the base."""
        return _ring(self.plate_radius, np.pi / 3.0 - self.plate_half_angle)

    @property
    def home(self) -> Floats:
        """The plate's home: x, y, z and Euler parameters."""
        return np.array([0.0, 0.0, self.home_height, 1.0, 0.0, 0.0, 0.0])


def _ring(radius: float, half: float) -> Floats:
    angle = 2.0 * np.pi / 3.0 * np.repeat(np.arange(3), 2) + np.tile([-half, half], 3)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros_like(angle)], axis=1)


def leg_vectors(dims: Stewart, pose: ArrayLike) -> Floats:
    """(..., 6, 3): from feet to heads at poses (..., 7)."""
    where = finite_array("the pose (x, y, z and Euler parameters)", pose, (7,), batch=True)
    heads = np.einsum("...ij,lj->...li", rotation_matrix(where[..., 3:]), dims.heads)
    return np.asarray(where[..., None, :3] + heads - dims.feet)


def lengths(dims: Stewart, pose: ArrayLike) -> Floats:
    """(..., 6): the legs' lengths (m); one that a leg does not have is an error that names it."""
    sizes = np.asarray(np.linalg.norm(leg_vectors(dims, pose), axis=-1))
    beyond = np.maximum(sizes - dims.longest, dims.shortest - sizes)
    if (beyond > 0.0).any():
        *index, leg = (int(i) for i in np.unravel_index(int(np.argmax(beyond)), beyond.shape))
        size, by = float(sizes[(*index, leg)]), float(beyond[(*index, leg)])
        words = ("long", "nearer to", "longest") if size > dims.longest else ("short", "away from", "shortest")
        text = (
            f"leg {leg + 1} would be {Unreachable.length(size)}, {Unreachable.length(by)} too {words[0]}; "
            f"bring the plate {words[1]} its foot, tilt it less, or change `{words[2]}`"
        )
        raise Unreachable(text, leg=leg + 1, short=by, index=tuple(index))
    return sizes


def stewart(dims: Stewart | None = None) -> Mechanism:
    """The platform as a mechanism with the slides driven, drawn at home; six degrees of freedom."""
    d = dims or Stewart()
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
        turned = axes @ _fork(*universal_angles(along / np.linalg.norm(along)))
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
    where = finite_array("the pose (x, y, z and Euler parameters)", pose, (7,))
    w = np.zeros(6) if twist is None else finite_array("the plate's twist", twist, (6,))
    turn = rotation_matrix(where[3:])
    q, v = mech.neutral(), np.zeros(mech.nv)
    for k, (vector, length) in enumerate(zip(leg_vectors(dims, where), lengths(dims, where), strict=True)):
        axes = _axes(dims.feet[k])
        along = axes.T @ vector / length
        speed = axes.T @ (w[:3] + np.cross(w[3:], turn @ dims.heads[k]))
        slide = float(along @ speed)
        first, second = universal_angles(along)
        rates = universal_rates(along, (speed - slide * along) / length)
        put(mech, q, v, f"fork{k + 1}", (first, second), rates)
        put(mech, q, v, f"slide{k + 1}", (length,), (slide,))
        if f"ball{k + 1}" not in mech.loops:
            spin = axes @ universal_spin(first, rates)
            inner = (axes @ _fork(first, second)).T @ turn
            put(mech, q, v, f"ball{k + 1}", euler_parameters(inner), turn.T @ (w[3:] - spin))
    return q, v


def _axes(foot: Floats) -> Floats:
    """The axes of a fork on the base: f up, h across the foot's direction."""
    outward = foot / np.linalg.norm(foot)
    up = np.array([0.0, 0.0, 1.0])
    return np.stack([up, np.cross(np.cross(up, outward), up), np.cross(up, outward)], axis=1)


def _fork(first: float, second: float) -> Floats:
    """The axes of a tube in those of its fork's frame on the base: z along the leg, y the fork's second axis."""
    return np.asarray(about(2, first) @ about(1, second) @ _LEG_IS_Z)


def _rod(mass: float, length: float) -> tuple[float, float, float]:
    """A rod along z, 5 cm thick."""
    across = mass * (length**2 / 12.0 + 0.025**2 / 4.0)
    return (across, across, mass * 0.025**2 / 2.0)
