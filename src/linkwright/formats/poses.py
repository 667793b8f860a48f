"""Poses of frames in other frames, as readers put them together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwright.base.types import Floats
from linkwright.mechanism.frames import snapped


@dataclass(frozen=True, eq=False)
class Pose:
    """A frame's rotation and origin in another frame."""

    r: Floats
    p: Floats

    def __matmul__(self, other: Pose) -> Pose:
        return Pose(snapped(self.r @ other.r), self.p + self.r @ other.p)

    def inverse(self) -> Pose:
        return Pose(self.r.T, -(self.r.T @ self.p))


HERE = Pose(np.eye(3), np.zeros(3))
