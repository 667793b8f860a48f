"""Where the six-leg manipulator reaches and how well: workspace, joint limits, conditions of S and W over planes.

S = ∂θ_A/∂x takes the plate's twist to the motors' rates, W = J⁻¹ to all rates of a leg; turns are measured at
`Hexapod.turn_length`. Where several orientations are asked for, a point is as good as its worst one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwright.base.arrays import Floats
from linkwright.control import (
    Hexapod,
    Legs,
    check_motors,
    check_reach,
    check_regular,
    leg_jacobians,
    legs_at,
    rotation_matrix,
)
from linkwright.errors import ModelError, ShapeError
from linkwright.studies.manipulator.geometry import SIX_LEG

Plane = Literal["xy", "xz", "yz", "tilt"]
PLANES: tuple[Plane, ...] = ("xy", "xz", "yz", "tilt")
#: What ends the workspace at a point: nothing, a leg's reach, its universal joint, its spherical joint.
FINE, REACH, UNIVERSAL, SPHERICAL = range(4)
ENDS = ("reachable", "a leg's reach", "a universal joint's tilt", "a spherical joint's tilt")


@dataclass(frozen=True)
class Limits:
    """How far joints go (rad): a universal joint out of the crank's plane, a spherical one from its rod at home."""

    universal: float = float(np.deg2rad(45.0))
    spherical: float = float(np.deg2rad(45.0))


@dataclass(frozen=True)
class Quality:
    """How well the machine stands at poses (...), or over a map's grid."""

    end: NDArray[np.int64]  # FINE, REACH, UNIVERSAL or SPHERICAL
    leg: NDArray[np.int64]  # the leg (from 1) that ends the workspace or is nearest to its end
    short: Floats  # what the worst leg lacks (m)
    slack: Floats  # what is left of the worst leg's reach (m), negative beyond
    room: Floats  # what is left of the worst joint's tilt (rad), negative beyond
    s: Floats  # condition of S; infinite out of reach
    w: Floats  # condition of the worst leg's W; infinite out of reach
    sign: Floats  # determinant of S's numerators, whose change of sign is a singular pose; NaN out of reach

    @property
    def reachable(self) -> NDArray[np.bool_]:
        """Within reach and all joint limits."""
        return np.asarray(self.end == FINE)


def quality(geometry: Hexapod, pose: ArrayLike, *, limits: Limits | None = None, knee: int = -1) -> Quality:
    """Reach, joint limits and conditions at poses (..., 7)."""
    where = np.asarray(pose, dtype=np.float64)
    limits = Limits() if limits is None else limits
    legs = legs_at(geometry, where, knee=knee)
    tilted = np.stack(
        [limits.universal - np.abs(legs.angles[..., 2]), limits.spherical - _ball_tilt(geometry, legs, where)], axis=-1
    )
    # The worst leg, by reach before tilts; of legs that are alike by symmetry the first counts, whatever rounding does.
    slack, room = legs.slack.min(axis=-1), tilted.min(axis=(-2, -1))
    out = slack < 0.0
    leg = np.where(out, _first_least(legs.slack), _first_least(tilted.min(axis=-1)))
    tight = np.argmin(np.take_along_axis(tilted, leg[..., None, None], axis=-2)[..., 0, :], axis=-1)
    end = np.where(out, REACH, np.where(room < 0.0, UNIVERSAL + tight, FINE))
    s, w, sign = (np.full(out.shape, x) for x in (np.inf, np.inf, np.nan))
    if not out.all():
        inside = Legs(*(x[~out] for x in legs))
        s[~out], w[~out], sign[~out] = _conditions(geometry, inside, where[..., :3][~out])
    return Quality(end, leg + 1, legs.short.max(axis=-1), slack, room, s, w, sign)


def _first_least(values: Floats) -> NDArray[np.int64]:
    return np.asarray(np.argmin(np.round(values, 9), axis=-1))


def check_pose(
    geometry: Hexapod, pose: ArrayLike, *, worst: float = 1e4, limits: Limits | None = None, knee: int = -1
) -> Quality:
    """How well the machine stands at one pose (7,).

    A pose that a leg cannot reach raises `Unreachable`; one where the condition of S or of a leg's W is above `worst`,
    `SingularPose`; one beyond a joint's limit, where `limits` are given, `ModelError`.
    """
    where = np.asarray(pose, dtype=np.float64)
    if where.shape != (7,):
        raise ShapeError(f"the pose has shape {where.shape}; give (7,): x, y, z and Euler parameters")
    legs = legs_at(geometry, where, knee=knee)
    check_reach(geometry, legs)
    check_motors(geometry, legs, worst)
    check_regular(geometry, legs, leg_jacobians(geometry, legs, where[:3]), worst)
    here = quality(geometry, where, limits=limits, knee=knee)
    if limits is not None and here.end != FINE:
        leg = int(here.leg)
        text = f"leg {leg} is beyond {ENDS[int(here.end)]}; bring the plate towards home, or allow its joint more"
        raise ModelError(text, element=f"leg {leg}")
    return here


def _ball_tilt(geometry: Hexapod, legs: Legs, pose: Floats) -> Floats:
    """(..., 6): the angle between each rod and its direction at home, as the plate sees them."""

    def seen(x: Legs, turn: Floats) -> Floats:
        u = x.wrists - x.knees
        return np.asarray(np.einsum("...ji,...lj->...li", turn, u / np.linalg.norm(u, axis=-1, keepdims=True)))

    home = seen(legs_at(geometry, geometry.home), rotation_matrix(geometry.home[3:]))
    cosine = (seen(legs, rotation_matrix(pose[..., 3:])) * home).sum(axis=-1)
    return np.asarray(np.arccos(np.clip(cosine, -1.0, 1.0)))


def _conditions(geometry: Hexapod, legs: Legs, position: Floats) -> tuple[Floats, Floats, Floats]:
    """The conditions of S and of the worst leg's W, and the determinant of S's numerators."""
    size = geometry.twist_scale
    rows = legs.rows / size
    s = rows / np.where(np.abs(legs.ways) < 1e-12, 1e-12, legs.ways)[..., None]
    jacobians = size[:, None] * leg_jacobians(geometry, legs, position)
    return np.linalg.cond(s), np.linalg.cond(jacobians).max(axis=-1), np.linalg.det(rows)


def tilts(angle: float, count: int = 8) -> Floats:
    """(count + 1, 4): Euler parameters of no tilt and of tilts by `angle` (rad) about horizontal axes all around."""
    around = 2.0 * np.pi * np.arange(count) / count
    zero = np.zeros(count)
    half = np.sin(angle / 2.0)
    tilted = np.stack([zero + np.cos(angle / 2.0), half * np.cos(around), half * np.sin(around), zero], axis=1)
    return np.vstack([[1.0, 0.0, 0.0, 0.0], tilted])


@dataclass(frozen=True)
class Map:
    """Quality over a grid: arrays of shape (points of the second axis, points of the first)."""

    geometry: Hexapod
    plane: Plane
    at: float  # the coordinate that stays (m); of "tilt", the height of home
    first: Floats  # the grid along the horizontal axis (m, or rad of "tilt")
    second: Floats
    orientations: int  # how many were asked for at each point
    quality: Quality

    @property
    def reachable(self) -> NDArray[np.bool_]:
        """Within reach and all joint limits, in every orientation."""
        return self.quality.reachable

    @property
    def area(self) -> float:
        """The reachable part of the grid (m², or rad²)."""
        cell = (self.first[1] - self.first[0]) * (self.second[1] - self.second[0])
        return float(self.reachable.sum() * cell)

    def __str__(self) -> str:
        unit = "rad²" if self.plane == "tilt" else "m²"
        if not self.reachable.any():
            return f"reach over {self.plane}: nowhere on the grid; widen it, or ask for smaller tilts"
        s, w = self.quality.s[self.reachable], self.quality.w[self.reachable]
        return (
            f"reach over {self.plane}, {self.orientations} orientation{'s' * (self.orientations > 1)}: "
            f"{self.area:.3g} {unit}; condition of S {s.min():.3g} to {s.max():.3g}, of W up to {w.max():.3g}"
        )

    def plot(self, path: str | Path) -> Path:
        """A picture: what ends the workspace, the conditions of S and of the worst leg's W, singular poses."""
        from linkwright.studies.manipulator.map_pictures import plot

        return plot(self, Path(path))


def reach_map(
    geometry: Hexapod = SIX_LEG,
    plane: Plane = "xz",
    *,
    at: float | None = None,
    span: tuple[tuple[float, float], tuple[float, float]] | None = None,
    points: int = 141,
    orientations: ArrayLike | None = None,
    limits: Limits | None = None,
    knee: int = -1,
) -> Map:
    """Reach and conditions over a plane of the plate's positions, or ("tilt") of its tilts about x and y at home.

    `at` is the coordinate that stays (m; home's unless given), `span` the grid's limits along its two axes, with
    `points` along each. `orientations` (k, 4) are Euler parameters, home's alone unless given; `tilts(0.2)` makes
    some. A point is as good as its worst one.
    """
    g = geometry
    if plane not in PLANES:
        raise ModelError(f"plane is {plane!r}; give one of {', '.join(PLANES)}")
    if points < 2:
        raise ModelError(f"points is {points}; give at least 2 along each axis")
    turns = np.atleast_2d(np.asarray(g.home[3:] if orientations is None else orientations, dtype=np.float64))
    if turns.ndim != 2 or turns.shape[1] != 4 or (plane == "tilt" and orientations is not None):
        text = "orientations are (k, 4) Euler parameters, for planes of positions"
        raise ShapeError(text, given=turns.shape, wanted=(4,))
    wide, low, high = _spans(g, plane)
    (a0, a1), (b0, b1) = ((-wide, wide), (low, high)) if span is None else span
    if not (a0 < a1 and b0 < b1):
        raise ModelError(f"span is {span}; give ((low, high), (low, high))")
    first, second = np.linspace(a0, a1, points), np.linspace(b0, b1, points)
    one, two = np.meshgrid(first, second)
    pose = np.broadcast_to(g.home, (len(turns), *one.shape, 7)).copy()
    pose[..., 3:] = turns[:, None, None]
    if plane == "tilt":
        at = g.home_height if at is None else at
        pose[..., 2] = at
        angle = np.hypot(one, two)
        pose[0, ..., 3] = np.cos(angle / 2.0)
        pose[0, ..., 4:6] = (0.5 * np.sinc(angle / (2.0 * np.pi)))[..., None] * np.stack([one, two], axis=-1)
    else:
        stays = next(k for k, axis in enumerate("xyz") if axis not in plane)
        at = float(g.home[stays]) if at is None else at
        pose[..., stays] = at
        pose[..., "xyz".index(plane[0])], pose[..., "xyz".index(plane[1])] = one, two
    worst = _worst(quality(g, pose, limits=limits, knee=knee))
    return Map(g, plane, float(at), first, second, len(turns), worst)


def _worst(each: Quality) -> Quality:
    """Of all orientations (first axis): the orientation that is furthest out says what ends the workspace."""
    out = (each.slack < 0.0).any(axis=0)
    worst = np.where(out, *(_first_least(np.moveaxis(x, 0, -1)) for x in (each.slack, each.room)))[None]
    end, leg = (np.take_along_axis(x, worst, axis=0)[0] for x in (each.end, each.leg))
    least = np.min(np.abs(each.sign), axis=0) * np.where((each.sign < 0.0).any(axis=0), -1.0, 1.0)
    slack, room = (x.min(axis=0) for x in (each.slack, each.room))
    short, s, w = (x.max(axis=0) for x in (each.short, each.s, each.w))
    return Quality(end, leg, short, slack, room, s, w, np.where(out, np.nan, least))


def _spans(g: Hexapod, plane: Plane) -> tuple[float, float, float]:
    """Half the width of a default grid, and its limits along the second axis."""
    if plane == "tilt":
        return np.pi / 2, -np.pi / 2, np.pi / 2
    wide = 0.85 * (g.crank + g.rod)
    return (wide, 0.0, 1.05 * (g.crank + g.rod)) if "z" in plane else (wide, -wide, wide)
