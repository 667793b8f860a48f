"""The parts of a mechanism as plain data in NumPy, and the poses that joints lead to. Nothing here asks the package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import linkwright as lw

Floats = NDArray[np.float64]
Pose = tuple[Floats, Floats]
GROUND = "ground"
#: The rates of each joint kind; those of one coordinate lead and follow.
RATES = {"revolute": 1, "prismatic": 1, "screw": 1, "cylindrical": 2, "universal": 2, "planar": 3, "spherical": 3}
SINGLE = ("revolute", "prismatic", "screw")


@dataclass(frozen=True)
class Solid:
    """A body: its inertia is about the centre of mass, in body axes."""

    mass: float
    com: Floats
    inertia: Floats


@dataclass(frozen=True)
class Joint:
    """A joint from a frame on its parent to one on its child, each a rotation and an origin in body axes."""

    name: str
    kind: str
    parent: str
    child: str
    i: Pose
    j: Pose
    q: Floats  # where it is drawn
    pitch: float
    armature: float
    cut: bool


@dataclass(frozen=True)
class Gear:
    name: str
    follower: str
    leader: str
    ratio: float
    offset: float


@dataclass(frozen=True)
class Coupled:
    """A relation Φ of coordinates (joint, index); `slopes(x, t)` are its derivatives by each, and last by t."""

    name: str
    coordinates: tuple[tuple[str, int], ...]
    slopes: Callable[[Any, Any], Any]


@dataclass(frozen=True)
class JointLoad:
    """A force law on rate `index` of a joint; `value(q, v, t)`."""

    name: str
    joint: str
    index: int
    value: Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class PairLoad:
    """A force that pushes two points apart; `value(d, ḋ, t)`."""

    name: str
    ends: tuple[tuple[str, Floats], tuple[str, Floats]]
    value: Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class Wrench:
    """Force and torque (a, a + b·t) at a frame, in the axes of a frame; the opposite on another body, if any."""

    body: str
    at: Floats
    axes: tuple[str, Floats]  # body and rotation
    start: Floats
    rate: Floats
    reaction: str | None


@dataclass(frozen=True)
class Push:
    """What acts along a line: from the first point to the second, or on one point along an axis of a body."""

    ends: tuple[tuple[str, Floats], ...]
    axis: tuple[str, Floats] | None = None  # the body and the direction in its axes


@dataclass(frozen=True)
class Drive:
    """A driver of coordinate `index` of a joint, or along a line; `rate(t)` is that of its law."""

    name: str
    rate: Callable[[Any], Any]
    joint: str = ""
    index: int = 0
    push: Push | None = None


@dataclass
class Drawn:
    """A mechanism and the data that it was built of."""

    seed: int
    gravity: Floats
    solids: dict[str, Solid] = field(default_factory=dict)
    joints: dict[str, Joint] = field(default_factory=dict)
    gears: list[Gear] = field(default_factory=list)
    couplings: list[Coupled] = field(default_factory=list)
    joint_loads: list[JointLoad] = field(default_factory=list)
    pair_loads: list[PairLoad] = field(default_factory=list)
    wrenches: list[Wrench] = field(default_factory=list)
    drives: list[Drive] = field(default_factory=list)
    point_constraints: dict[str, Push] = field(default_factory=dict)
    rests: bool = False  # whether springs hold it
    prescribed: bool = False  # whether drivers prescribe all of its motion
    mech: lw.Mechanism = None  # type: ignore[assignment]


def rotation(axis: Floats, angle: float) -> Floats:
    """Rodrigues' formula."""
    x, y, z = axis / np.linalg.norm(axis)
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * (k @ k)


def moved(kind: str, q: Floats, pitch: float) -> Pose:
    """The pose of frame j in frame i."""
    z = np.array([0.0, 0.0, 1.0])
    if kind == "revolute":
        return rotation(z, q[0]), np.zeros(3)
    if kind == "prismatic":
        return np.eye(3), q[0] * z
    if kind == "screw":
        return rotation(z, q[0]), pitch * q[0] * z
    if kind == "cylindrical":
        return rotation(z, q[0]), q[1] * z
    if kind == "universal":
        quarter = rotation(np.array([1.0, 0.0, 0.0]), -np.pi / 2)
        return rotation(z, q[0]) @ quarter @ rotation(z, q[1]), np.zeros(3)
    if kind == "planar":
        return rotation(z, q[2]), np.array([q[0], q[1], 0.0])
    assert kind == "spherical"
    return rotation(q + 1e-3, float(np.linalg.norm(q))), np.zeros(3)


def after(a: Pose, b: Pose) -> Pose:
    """The pose b of a frame that has the pose a."""
    return a[0] @ b[0], a[1] + a[0] @ b[1]


def inverse(a: Pose) -> Pose:
    return a[0].T, -a[0].T @ a[1]
