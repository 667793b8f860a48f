"""A number that a run gives besides motion, at every time point: a force, a torque."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.model.description import sealed


@dataclass(frozen=True, eq=False)
class Series:
    """Values (T,) and their unit."""

    values: NDArray[np.float64]
    unit: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", sealed(np.array(self.values, dtype=np.float64)))

    def __len__(self) -> int:
        return len(self.values)


def loads(series: Mapping[str, Series]) -> list[tuple[str, list[tuple[str, str, Any]]]]:
    """Series put together by what they are of: for each its name and sheets of heading, unit and (T,) or (3, T).

    The components `hinge.fx`, `hinge.fy`, `hinge.fz` are one sheet, Force, and those of the moment another.
    """
    sheets: dict[str, list[tuple[str, str, Any]]] = {}
    for name, one in series.items():
        stem, _, part = name.rpartition(".")
        if part in ("fx", "mx") and all(f"{stem}.{part[0]}{x}" in series for x in "yz"):
            vector = np.stack([series[f"{stem}.{part[0]}{x}"].values for x in "xyz"])
            sheets.setdefault(stem, []).append(("Force" if part == "fx" else "Moment", one.unit, vector))
        elif part not in ("fx", "fy", "fz", "mx", "my", "mz"):
            sheets.setdefault(stem or name, []).append((part.capitalize(), one.unit, one.values))
    return list(sheets.items())
