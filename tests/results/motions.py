"""Solutions whose every number is known in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np

import linkwright as lw
from linkwright.model.description import Description
from linkwright.results.solution import Solution
from linkwright.results.status import Counters, Status
from linkwright.spatial.rotation import euler_parameters

FINISHED = Status(ok=True, message="the analysis finished")
RADIUS, SPEED, GAIN = 0.5, 2.0, 3.0  # of `crank`: m, rad/s, rad/s²


def crank() -> lw.Mechanism:
    """A crank about ground's z, its body's origin off the axis, a triad on it and one on ground, and a still block."""
    with lw.Builder("crank and block") as b:
        turning = b.body("crank", mass=1.0, inertia=(1.0, 1.0, 1.0))
        still = b.body("block", mass=1.0, inertia=(1.0, 1.0, 1.0))
        b.triad(turning, origin=(0.2, 0.1, 0.3), h=(1.0, 0.0, 0.0), f=(0.0, 1.0, 0.0), name="tip")
        b.triad(b.ground, origin=(1.0, 2.0, 3.0), h=(0.0, 1.0, 0.0), name="mark")
        b.joint("revolute", b.triad(b.ground), b.triad(turning, origin=(-RADIUS, 0.0, 0.0)), name="pivot")
        b.joint("prismatic", b.ground, still, name="slide")
    return b.build()


def angle(time: Any) -> Any:
    """The crank's angle."""
    return SPEED * time + 0.5 * GAIN * time**2


def about_z(theta: Any) -> Any:
    """Rotation matrices (T, 3, 3) about z."""
    c, s, zero = np.cos(theta), np.sin(theta), np.zeros_like(theta)
    return np.moveaxis(np.array([[c, -s, zero], [s, c, zero], [zero, zero, zero + 1.0]]), -1, 0)


def crank_motion(time: Any, **options: Any) -> Solution:
    """The crank turning faster and faster, the block still."""
    time = np.asarray(time, dtype=float)
    theta, w = angle(time), SPEED + GAIN * time
    zero, one = np.zeros_like(theta), np.ones_like(theta)
    out = np.stack([np.cos(theta), np.sin(theta), zero], axis=-1)
    along = np.stack([-np.sin(theta), np.cos(theta), zero], axis=-1)
    still = np.zeros((len(time), 3))

    def both(first: Any, second: Any) -> Any:
        return np.stack([first, second], axis=1)

    return Solution.of(
        crank().description,
        time,
        both(RADIUS * out, still),
        both(np.stack([np.cos(theta / 2), zero, zero, np.sin(theta / 2)], -1), np.stack([one, zero, zero, zero], -1)),
        both(RADIUS * w[:, None] * along, still),
        both(np.stack([zero, zero, w], axis=-1), still),
        both(RADIUS * (GAIN * along - (w**2)[:, None] * out), still),
        both(np.stack([zero, zero, GAIN * one], axis=-1), still),
        **{
            "status": FINISHED,
            "counters": Counters(points=len(time)),
            "iterations": np.ones(len(time), int),
            **options,
        },
    )


def from_coordinates(mech: lw.Mechanism, time: Any, q: Any, v: Any) -> Solution:
    """The motion of every body at coordinates q (T, nq) with rates v (T, nv); accelerations are left at zero."""
    d: Description = mech.description
    poses = np.stack([mech.pose(q, name) for name in d.body_names], axis=1)
    twists = np.stack([mech.twist(q, v, name, reference="aligned") for name in d.body_names], axis=1)
    e = np.moveaxis(euler_parameters(np.moveaxis(poses[..., :3, :3], (-2, -1), (0, 1))), 0, -1)
    flips = np.where(np.sum(e[1:] * e[:-1], axis=-1) < 0.0, -1.0, 1.0)
    e[1:] *= np.cumprod(flips, axis=0)[..., None]
    still = np.zeros_like(twists[..., :3])
    return Solution.of(
        d,
        time,
        poses[..., :3, 3],
        e,
        twists[..., :3],
        twists[..., 3:],
        still,
        still,
        status=FINISHED,
        counters=Counters(points=len(time)),
        iterations=np.zeros(len(time), int),
    )
