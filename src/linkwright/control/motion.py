"""Programs of a mechanism that controllers and sensors ask at every sample: frames with their accelerations, loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.kernels.kernel import Kernel
from linkwright.tape.build import record
from linkwright.tape.program import Program

if TYPE_CHECKING:
    from linkwright.model import Mechanism


@dataclass(frozen=True)
class KinematicsRequest:
    """Which program of this module: its name, the frame that it is about, the free parameters."""

    name: str
    frame: str = ""
    free: tuple[str, ...] = ()


def coordinate_rates(mech: Mechanism) -> Callable[[Any, Any], Any]:
    """q̇ of q and v, to be recorded."""
    if mech.nq == mech.nv:
        return lambda q, v: v
    return mech.program("rate", form="unrolled")


def frame_motion(mech: Mechanism, frame: str, free: tuple[str, ...] = ()) -> Kernel:
    """q, v, a [, p] → pose (4, 4), twist (6) and its rate (6) of a frame: of its origin, in ground's axes.

    The first three numbers of the rate are the acceleration of the origin, the others the angular acceleration.
    """

    def make() -> Program:
        options: dict[str, Any] = {"frame": frame, "free": free, "form": "unrolled"}
        pose, moves = mech.program("pose", **options), coordinate_rates(mech)
        twist = mech.program("twist", reference="aligned", **options).forward()
        still = [np.zeros(len(free))] if free else []

        def motion(q: Any, v: Any, a: Any, *p: Any) -> Any:
            w, rate = twist(q, v, *p, moves(q, v), a, *still)
            return pose(q, *p), w, rate

        return record(motion, mech.nq, mech.nv, mech.nv, *([len(free)] if free else []), name=f"motion of {frame}")

    return mech.kernel(KinematicsRequest("frame motion", frame, free), make)


def loop_kinematics(mech: Mechanism) -> Kernel:
    """q, v → Φ (m), G (m, nv) and the drift Ġv (m) of a closed mechanism's constraints: Φ̇ = G v, Φ̈ = G a + drift."""

    def make() -> Program:
        settling = mech.program("settling", form="unrolled")
        closing = mech.program("closing", form="unrolled")
        rate = record(lambda q, v: settling(q, v)[1], mech.nq, mech.nv)
        drift, moves = rate.forward(), coordinate_rates(mech)

        def kinematics(q: Any, v: Any) -> Any:
            still = rate(q, np.zeros(mech.nv))
            g = np.stack([rate(q, row) - still for row in np.eye(mech.nv)], axis=1)
            return closing(q)[1], g, drift(q, v, moves(q, v), np.zeros(mech.nv))[1]

        return record(kinematics, mech.nq, mech.nv, name="loop kinematics")

    return mech.kernel(KinematicsRequest("loop kinematics"), make)


def frame_kinematics(mech: Mechanism, frame: str) -> Kernel:
    """q, v → pose (4, 4), Jacobian (6, nv), twist (6) and the drift J̇v (6) of a frame, in ground's axes."""

    def make() -> Program:
        pose = mech.program("pose", frame=frame, form="unrolled")
        jacobian = mech.program("jacobian", frame=frame, reference="aligned", form="unrolled")
        twist = mech.program("twist", frame=frame, reference="aligned", form="unrolled").forward()
        moves = coordinate_rates(mech)

        def kinematics(q: Any, v: Any) -> Any:
            w, drift = twist(q, v, moves(q, v), np.zeros(mech.nv))
            return pose(q), jacobian(q), w, drift

        return record(kinematics, mech.nq, mech.nv, name=f"kinematics of {frame}")

    return mech.kernel(KinematicsRequest("frame kinematics", frame), make)
