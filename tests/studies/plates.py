"""States of the manipulator for tests: poses within its range, with motions, and what its motors then do."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from linkwright.control import Hexapod
from linkwright.control.parallel.leg_kinematics import leg_motion
from linkwright.kernels.llvm import compiler
from linkwright.studies.manipulator.machine import state


class Plate(NamedTuple):
    pose: np.ndarray
    twist: np.ndarray
    acceleration: np.ndarray
    theta: np.ndarray
    rate: np.ndarray
    reference: np.ndarray


def plate_at(geometry: Hexapod, pose, twist, acceleration) -> Plate:
    q, v, _ = leg_motion(geometry, pose, twist, acceleration)
    theta, rate = np.ascontiguousarray(q[:, 0]), np.ascontiguousarray(v[:, 0])
    return Plate(pose, twist, acceleration, theta, rate, np.concatenate([pose, twist, acceleration]))


def random_pose(geometry: Hexapod, rng, size=1.0) -> np.ndarray:
    e = np.array([1.0, *(0.1 * size * rng.uniform(-1, 1, 3))])
    return np.concatenate([geometry.home[:3] + 0.12 * size * rng.uniform(-1, 1, 3), e / np.linalg.norm(e)])


def plates(geometry: Hexapod, count: int, seed: int = 0) -> list[Plate]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        twist, acceleration = rng.standard_normal(6), 10.0 * rng.standard_normal(6)
        found.append(plate_at(geometry, random_pose(geometry, rng), twist, acceleration))
    return found


def chain_torques(mech, geometry: Hexapod, some: list[Plate]) -> np.ndarray:
    """The motors' torques (n, 6) by the inverse dynamics of the whole closed chain, compiled quickly and not well."""
    q, v, a = (np.array(x) for x in zip(*(state(mech, geometry, *p[:3]) for p in some), strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "CARE", 0)
        tau = mech.inverse_dynamics(q, v, a)
    return tau[:, [k for k, joint in enumerate(mech.joints) if joint.name.startswith("crank")]]
