"""A number that a run gives besides motion, at every time point: a force, a torque."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwright.mechanism.description import sealed


@dataclass(frozen=True, eq=False)
class Series:
    """Values (T,) and their unit."""

    values: NDArray[np.float64]
    unit: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", sealed(np.array(self.values, dtype=np.float64)))

    def __len__(self) -> int:
        return len(self.values)
