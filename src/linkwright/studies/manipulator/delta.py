"""A Delta robot with dynamics: three cranks, three parallelograms of two rods, a plate that only moves and never turns.

Arm i hangs at distance `base_radius` from the middle, in the direction e_i. Its frame has x along e_i, y up and
z = x × y along the driven axis (`crank1`, …). Two rods a crank, `width` apart, with a universal joint (`u1a`, `u1b`) at
the crank and a ball (`s1a`, `s1b`) at the plate: ten bodies and three degrees of freedom, none of them redundant. Both
directions of the kinematics have closed forms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from linkwright import Builder, Mechanism
from linkwright.base.arguments import finite_array, positive_number
from linkwright.base.arrays import Floats
from linkwright.control import Unreachable, crank_angles, euler_parameters
from linkwright.errors import ModelError
from linkwright.studies.manipulator.machine import about, put, universal_angles, universal_rates, universal_spin

ARMS = 3


@dataclass(frozen=True)
class Delta:
    """Dimensions (m) and masses (kg): uniform cranks and rods, a disc as plate."""

    base_radius: float = 0.20
    plate_radius: float = 0.06
    crank: float = 0.30
    rod: float = 0.75
    width: float = 0.08  # of a parallelogram
    home_height: float = -0.65
    crank_mass: float = 1.2
    rod_mass: float = 0.15
    plate_mass: float = 0.5

    def __post_init__(self) -> None:
        for name in ("base_radius", "plate_radius", "crank", "rod", "width"):
            positive_number(f"{name}, a length in metres,", getattr(self, name))
        for name in ("crank_mass", "rod_mass", "plate_mass"):
            positive_number(f"{name}, a mass in kilograms,", getattr(self, name))

    @property
    def frames(self) -> Floats:
        """The arms' frames in ground, (3, 3, 3): columns x (outward), y (up), z (the driven axis)."""
        angle = 2.0 * np.pi / 3.0 * np.arange(ARMS)
        x = np.stack([np.cos(angle), np.sin(angle), np.zeros(ARMS)], axis=1)
        up = np.broadcast_to([0.0, 0.0, 1.0], x.shape)
        return np.stack([x, up, np.cross(x, up)], axis=2)


def angles(dims: Delta, position: ArrayLike) -> Floats:
    """(..., 3): the cranks' angles (rad; 0 is level, positive raises) for plate positions (..., 3), knees outside."""
    reached = _reached(dims, position)
    theta, slack = crank_angles(reached, dims.crank, dims.rod, 1)
    if (slack < 0.0).any():
        *index, arm = (int(i) for i in np.unravel_index(int(np.argmin(slack)), slack.shape))
        far = float(np.linalg.norm(_along_rod(dims, reached[(*index, arm)], theta[(*index, arm)])))
        too_short = far > dims.rod
        text = (
            f"arm {arm + 1} cannot reach: its rods are {Unreachable.length(abs(far - dims.rod))} too "
            f"{'short' if too_short else 'long'} there; bring the plate {'nearer' if too_short else 'away'}, "
            "or change crank or rod"
        )
        raise Unreachable(text, leg=arm + 1, short=abs(far - dims.rod), index=tuple(index))
    return theta


def position(dims: Delta, turned: ArrayLike) -> Floats:
    """(..., 3): where the plate is (m), below the knees, for the cranks' angles (..., 3).

    The plate's middle is on three spheres about the knees, each moved inward by the plate's radius.
    """
    theta = finite_array("the angles of the cranks", turned, (ARMS,), batch=True)
    outward, up = dims.frames[:, :, 0], dims.frames[:, :, 1]
    reach = dims.base_radius - dims.plate_radius + dims.crank * np.cos(theta)
    centers = reach[..., None] * outward + dims.crank * np.sin(theta)[..., None] * up
    a, b, c = (centers[..., k, :] for k in range(ARMS))
    x = (b - a) / np.linalg.norm(b - a, axis=-1, keepdims=True)
    across = (c - a) - ((c - a) * x).sum(-1, keepdims=True) * x
    y = across / np.linalg.norm(across, axis=-1, keepdims=True)
    d, i, j = np.linalg.norm(b - a, axis=-1), ((c - a) * x).sum(-1), ((c - a) * y).sum(-1)
    u = d / 2.0
    v = (i**2 + j**2 - 2.0 * i * u) / (2.0 * j)
    left = dims.rod**2 - u**2 - v**2
    if not (left >= 0.0).all():
        raise ModelError(
            f"the rods do not meet at these crank angles: they are too short by {_lacking(dims, left):.3g} m; "
            "turn the cranks nearer to each other, or give longer rods"
        )
    return np.asarray(a + u[..., None] * x + v[..., None] * y - np.sqrt(left)[..., None] * np.cross(x, y))


def _lacking(dims: Delta, left: Floats) -> float:
    return float(np.sqrt(dims.rod**2 - np.min(left)) - dims.rod)


def _reached(dims: Delta, where: ArrayLike) -> Floats:
    """(..., 3, 3): the wrist points in the arms' axes, from the cranks' pivots."""
    x = finite_array("the position of the plate", where, (3,), batch=True)
    seen = np.einsum("aji,...j->...ai", dims.frames, x)
    return np.asarray(seen + np.array([dims.plate_radius - dims.base_radius, 0.0, 0.0]))


def delta(dims: Delta | None = None) -> Mechanism:
    """The robot as a mechanism with the cranks driven, drawn at home; three degrees of freedom."""
    d = dims or Delta()
    home = np.array([0.0, 0.0, d.home_height])
    theta, seen = angles(d, home), _reached(d, home)
    b = Builder("delta")
    p = {name: b.parameter(name, getattr(d, name)) for name in ("crank_mass", "rod_mass", "plate_mass")}
    r = d.plate_radius
    plate = b.body("plate", p["plate_mass"], inertia=[p["plate_mass"] * r**2 * k for k in (0.25, 0.25, 0.5)])
    b.place(plate, home)
    for arm in range(1, ARMS + 1):
        frame = d.frames[arm - 1]
        crank = b.body(f"crank{arm}", p["crank_mass"], (d.crank / 2, 0, 0), _bar(p["crank_mass"], d.crank, 0.02))
        turned = frame @ about(2, theta[arm - 1])
        b.place(crank, frame[:, 0] * d.base_radius, rotation=turned)
        foot = b.frame(b.ground, frame, frame[:, 0] * d.base_radius, f"foot{arm}")
        b.joint("revolute", foot, crank, f"crank{arm}")
        bar = b.triad(crank, (d.crank / 2, 0, 0), h=(1, 0, 0), f=(0, 1, 0))
        b.shape(bar, "cylinder", (0.02, d.crank), "#b5382e")
        b.shape(b.triad(crank, (d.crank, 0, 0)), "cylinder", (0.012, 1.3 * d.width), "#b5382e")
        b.shape(foot, "cylinder", (0.045, 0.11), "#5b6068")
        raised, tilt = universal_angles(_along_rod(d, seen[arm - 1], theta[arm - 1]) / d.rod)
        for name, side in (("a", -0.5), ("b", 0.5)):
            rod = b.body(f"rod{arm}{name}", p["rod_mass"], (d.rod / 2, 0, 0), _bar(p["rod_mass"], d.rod, 0.006))
            knee = frame[:, 0] * d.base_radius + turned @ np.array([d.crank, 0.0, side * d.width])
            b.place(rod, knee, rotation=frame @ about(2, raised) @ about(1, tilt))
            pin = b.triad(crank, (d.crank, 0, side * d.width), name=f"knee{arm}{name}")
            eye = b.triad(rod, h=(0, 1, 0), f=(1, 0, 0))
            b.joint("universal", pin, eye, f"u{arm}{name}", actuated=False)
            tip = b.triad(rod, (d.rod, 0, 0), name=f"tip{arm}{name}")
            at = frame @ np.array([d.plate_radius, 0.0, side * d.width])
            cut = (arm, name) != (1, "a")
            b.joint(
                "spherical", tip, b.triad(plate, at, name=f"wrist{arm}{name}"), f"s{arm}{name}", actuated=False, cut=cut
            )
            along = b.triad(rod, (d.rod / 2, 0, 0), h=(1, 0, 0), f=(0, 1, 0))
            b.shape(along, "cylinder", (0.007, d.rod), "#a8b0ba")
            b.shape(tip, "sphere", (0.013,), "#c9a227")
    b.shape(plate, "cylinder", (1.3 * d.plate_radius, 0.02), "#35608f", name="disc")
    b.shape(b.triad(b.ground, (0, 0, 0.06)), "cylinder", (1.15 * d.base_radius, 0.03), "#5b6068", name="ceiling")
    b.trace(plate, "#c9a227", name="path")
    return b.build()


def state(mech: Mechanism, dims: Delta, where: ArrayLike, velocity: ArrayLike | None = None) -> tuple[Floats, Floats]:
    """q and v of the robot with its plate at one position (3,) that moves with a velocity (3,), in ground's axes."""
    x = finite_array("the position of the plate", where, (3,))
    speed = np.zeros(3) if velocity is None else finite_array("the velocity of the plate", velocity, (3,))
    theta, seen = angles(dims, x), _reached(dims, x)
    q, v = mech.neutral(), np.zeros(mech.nv)
    for arm in range(ARMS):
        frame, first = dims.frames[arm], float(theta[arm])
        along = _along_rod(dims, seen[arm], first) / dims.rod
        way = dims.crank * np.array([-np.sin(first), np.cos(first), 0.0])  # of the knee, a radian
        local = frame.T @ speed
        rate = float(along @ local) / float(along @ way)
        raised, tilt = universal_angles(along)
        turns = universal_rates(along, (local - rate * way) / dims.rod)
        put(mech, q, v, f"crank{arm + 1}", (first,), (rate,))
        for name in "ab":
            lift = (raised - first + np.pi) % (2.0 * np.pi) - np.pi
            put(mech, q, v, f"u{arm + 1}{name}", (lift, tilt), (turns[0] - rate, turns[1]))
            if f"s{arm + 1}{name}" not in mech.loops:
                rod = frame @ about(2, raised) @ about(1, tilt)
                spin = frame @ universal_spin(raised, turns)
                put(mech, q, v, f"s{arm + 1}{name}", euler_parameters(rod.T), -spin)
    return q, v


def _along_rod(dims: Delta, p: Floats, theta: float) -> Floats:
    """From the end of a crank at the angle θ to the wrist point p, in the arm's axes (m)."""
    return p - dims.crank * np.array([np.cos(theta), np.sin(theta), 0.0])


def _bar(mass: object, length: float, radius: float) -> list[object]:
    """The moments of a uniform bar along x."""
    across = length**2 / 12.0 + radius**2 / 4.0
    return [mass * (radius**2 / 2.0), mass * across, mass * across]  # type: ignore[operator]  # a number or a symbol
