"""The arrays of a motion, checked: which time points are kept for the page, and where points of bodies come by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.base.text import counted
from linkwright.errors import ModelError, ShapeError
from linkwright.model.bodies import QUANTITIES
from linkwright.spatial.rotation import euler_parameters_matrix

#: What a page may hold of a motion, in bytes of float32 before they are written as base64.
BUDGET = 9_000_000
_SAMPLES = 240  # time points that sizes and views are judged by
_SAMPLED = 400_000  # body poses that are looked at for that


@dataclass(frozen=True, eq=False)
class Motion:
    """A motion of some bodies: time (T,), and for each quantity (T, bodies, width)."""

    time: Floats
    values: dict[str, Floats]
    notes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return int(self.values["position"].shape[1])

    @cached_property
    def _rows(self) -> NDArray[np.intp]:
        most = int(np.clip(_SAMPLED // max(self.count, 1), 2, _SAMPLES))
        return spread(len(self.time), most)

    @cached_property
    def origins(self) -> Floats:
        """Where the bodies are at some time points (S, bodies, 3)."""
        return self.values["position"][self._rows]

    @cached_property
    def turns(self) -> Floats:
        """How the bodies are turned at these time points (S, bodies, 3, 3)."""
        return rotation_matrices(self.values["orientation"][self._rows])

    def places(self, body: int, points: Any) -> Floats:
        """Where points (n, 3) of a body come by (S, n, 3); ground, which is body −1, stays."""
        points = np.asarray(points, dtype=np.float64).reshape(-1, 3)
        if body < 0:
            return np.broadcast_to(points, (len(self.origins), *points.shape))
        places: Floats = self.origins[:, body, None, :] + points @ self.turns[:, body].transpose(0, 2, 1)
        return places

    def directions(self, body: int, direction: Any) -> Floats:
        """How a direction that is fixed to a body points (S, 3)."""
        direction = np.asarray(direction, dtype=np.float64)
        if body < 0:
            return np.broadcast_to(direction, (len(self.origins), 3))
        turned: Floats = self.turns[:, body] @ direction
        return turned


def checked(time: Any, quantities: Mapping[str, Any], bodies: int, drawn: int) -> Motion:
    """A motion that can be shown: arrays of the right shapes, finite, thinned out to what a page can hold."""
    t = np.asarray(time, dtype=np.float64)
    if t.ndim != 1:
        raise ShapeError(f"time has the shape {t.shape}; give one number a time point", given=t.shape, wanted=("T",))
    values = {}
    for name, (width, _, _) in QUANTITIES.items():
        if quantities.get(name) is None:
            continue
        array, wanted = np.asarray(quantities[name], dtype=np.float64), (len(t), bodies, width)
        if array.shape != wanted:
            raise ShapeError(f"{name} has the shape {array.shape}; give {wanted}", given=array.shape, wanted=wanted)
        values[name] = array[:, :drawn]
    if not len(t):
        raise ModelError("the solution has no time points, so that there is nothing to show; see its status for why")
    notes = []
    good = np.isfinite(t)
    for name in ("position", "orientation"):
        good &= np.isfinite(values[name]).all(axis=(1, 2))
    good &= (np.linalg.norm(values["orientation"], axis=-1) > 1e-6).all(axis=1)
    if not good.any():
        raise ModelError("the solution has no time point at which every body has a finite pose; nothing can be shown")
    if not good.all():
        t, values = t[good], {name: array[good] for name, array in values.items()}
        notes.append(f"{counted(int((~good).sum()), 'time point')} left out: the poses there are not finite")
    if (np.diff(t) < 0).any():
        raise ModelError("the times of the solution go back; sort its time points before it is shown")
    row = 8 + 4 * drawn * sum(QUANTITIES[name][0] for name in values)
    most = max(2, BUDGET // row)
    if len(t) > most:
        rows = spread(len(t), most)
        notes.append(f"{len(rows):,} of {len(t):,} time points are on this page, to keep it small")
        t, values = t[rows], {name: array[rows] for name, array in values.items()}
    e = values["orientation"]
    values["orientation"] = e / np.linalg.norm(e, axis=-1, keepdims=True)
    return Motion(t, values, tuple(notes))


def spread(count: int, most: int) -> NDArray[np.intp]:
    """At most so many numbers from 0 to count − 1, evenly, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp))


def rotation_matrices(e: Floats) -> Floats:
    """The rotation matrices (..., 3, 3) of unit Euler parameters (..., 4), scalar first."""
    return np.moveaxis(euler_parameters_matrix(np.moveaxis(e, -1, 0)), (0, 1), (-2, -1))


def along(direction: Any) -> Floats:
    """A rotation whose z axis has this direction; the identity for no direction."""
    z = np.asarray(direction, dtype=np.float64)
    length = float(np.linalg.norm(z))
    if not length > 0.0:
        return np.eye(3)
    z = z / length
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)
