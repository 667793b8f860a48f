"""Poses of frames in other frames, as readers put them together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.model.frames import snapped


@dataclass(frozen=True, eq=False)
class Pose:
    """A frame's rotation and origin in another frame."""

    r: Floats
    p: Floats

    def __matmul__(self, other: Pose) -> Pose:
        return Pose(snapped(self.r @ other.r), self.p + self.r @ other.p)

    @property
    def is_here(self) -> bool:
        """Whether the two frames are the same, to the last bit."""
        return not self.p.any() and bool(np.array_equal(self.r, np.eye(3)))

    def inverse(self) -> Pose:
        return Pose(self.r.T, -(self.r.T @ self.p))


HERE = Pose(np.eye(3), np.zeros(3))
