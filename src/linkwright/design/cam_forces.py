"""The force between a cam and its follower, the torque of the camshaft, and when they part: without friction."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.base.arguments import finite_number, real_array
from linkwright.base.arrays import Floats
from linkwright.design.cam_faults import ranges
from linkwright.design.cam_motion import TURN, size_of
from linkwright.errors import ModelError, ShapeError
from linkwright.model.units import RATE

if TYPE_CHECKING:
    from linkwright.design.cam_profiles import CamProfile


@dataclass(frozen=True, eq=False)
class CamForces:
    """The forces of a cam at a constant speed, over its angles (n,).

    `contact` (n,) is the force along the normal (N); negative where the follower would leave the cam. `torque` (n,)
    turns the cam (N m), positive in the direction of its motion. `lift_off` has the angles (rad) between which the
    follower would leave it, and `lift_off_speed` the least speed (rad/s) at which it would; infinite where it stays.
    """

    speed: float
    contact: Floats
    torque: Floats
    lift_off: list[tuple[float, float]] = field(default_factory=list)
    lift_off_speed: float = math.inf


def cam_forces(
    cam: CamProfile, speed: Any, mass: Any, load: Any, stiffness: Any, preload: Any, lever: Floats
) -> CamForces:
    """The forces: m ω² s″ + k s + preload + load = N · lever, and the power N · lever · s′ ω of the follower."""
    rate = size_of("speed", speed, RATE)
    if rate < 0.0:
        raise ModelError(f"the speed of the cam is {rate:g} rad/s; give its size, and clockwise=True to lw.cam_profile")
    inertia, spring = finite_number("mass", mass), finite_number("stiffness", stiffness)
    for name, number in (("mass", inertia), ("stiffness", spring)):
        if number < 0.0:
            raise ModelError(f"the {name} of a cam's follower is {number:g}; give a number that is not negative")
    static = finite_number("preload", preload) + spring * cam.displacement + _load(load, len(cam.angles))
    wanted = static + inertia * rate**2 * cam.acceleration
    with np.errstate(divide="ignore", invalid="ignore"):
        squared = np.where(inertia * cam.acceleration < 0.0, -static / (inertia * cam.acceleration), np.inf)
    return CamForces(
        rate,
        wanted / lever,
        wanted * cam.velocity,
        ranges(wanted < 0.0, TURN / len(wanted)),
        float(np.sqrt(max(squared.min(), 0.0))),
    )


def _load(load: Any, count: int) -> Floats:
    array = real_array("load", load)
    if array.shape not in ((), (count,)):
        text = f"load has shape {array.shape}; give a number, or an array ({count},) over the angles of the cam"
        raise ShapeError(text, given=array.shape, wanted=(count,))
    if not np.isfinite(array).all():
        raise ModelError("load has entries that are not finite numbers")
    return np.broadcast_to(array, (count,))
