"""What is wrong with a cam: where its profile is undercut, where a roller cannot touch it, and what would avoid it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from linkwright.base.arrays import Bools, Floats
from linkwright.design.cam_followers import CamContact, CamFollower, contact, zero_level
from linkwright.design.cam_motion import GRID, TURN, CamMotion, degrees
from linkwright.errors import ModelError

_STEP_OF_GRID = float(GRID[1])
_PAIRS = slice(None, -1, 2)  # of the grid: points of the profile that are compared with points of the pitch curve
_TOUCH = 1e-9  # of the roller's radius: less than this is no interference
_SHARP = 1e-9  # of the base radius: a radius of curvature below is a cusp
_ZOOMS, _ZOOM = 6, 33
_EQUAL = 1e-13  # of a value: a difference by rounding
_STEP, _MOST, _BISECTIONS = 1.15, 1e3, 50


class CamExtreme(NamedTuple):
    """The largest or least value of a quantity over a turn, and the cam's angle (rad) at which it is."""

    value: float
    angle: float


class CamFault(NamedTuple):
    """What is wrong with a cam between two of its angles (rad): its kind, and a sentence.

    Kinds are "undercut" (the profile crosses itself), "cusp" (it comes to a point) and "interference" (another part of
    the cam is in the way of the roller).
    """

    kind: str
    begin: float
    end: float
    text: str


def largest(of: Callable[[Floats], Floats]) -> CamExtreme:
    """The largest value of a function of angles over a turn: on a grid, then on ever finer ones about its largest."""
    at, width = GRID, float(GRID[1])
    most, angle = -math.inf, 0.0
    for _ in range(_ZOOMS):
        heights = of(at)
        top = heights.max()
        near = _EQUAL * abs(top) if np.isfinite(top) else 0.0
        peak = int(np.argmax(heights >= top - near))  # the first of equal ones
        if heights[peak] > most + _EQUAL * abs(most) or most == -math.inf:
            most, angle = float(heights[peak]), float(at[peak])
        at, width = angle + np.linspace(-width, width, _ZOOM), 2.0 * width / (_ZOOM - 1)
    return CamExtreme(most, angle % TURN)


def faults(motion: CamMotion, base_radius: float, follower: CamFollower, sigma: float) -> list[CamFault]:
    """The faults of a cam, in the order of their kinds; none for one that moves its follower as wanted."""
    level = zero_level(follower, base_radius)
    values = motion(GRID[:-1])
    here = contact(follower, level, sigma, GRID[:-1], values)
    undercut = here.convex_radius < -_SHARP * base_radius
    sentences = [
        CamFault("undercut", a, b, f"the profile is undercut {_between(a, b)}")
        for a, b in ranges(undercut, _STEP_OF_GRID)
    ]
    if not sentences:
        sharpest = largest(lambda at: -contact(follower, level, sigma, at, motion(at)).convex_radius)
        if -sharpest.value <= _SHARP * base_radius and follower.contact != "knife":
            text = f"the profile comes to a point at {degrees(sharpest.angle)}"
            sentences.append(CamFault("cusp", sharpest.angle, sharpest.angle, text))
    if not sentences and follower.radius:
        for a, b in ranges(_interference(here, float(follower.radius)), _STEP_OF_GRID):
            text = f"another part of the cam is in the way of the roller {_between(a, b)}"
            sentences.append(CamFault("interference", a, b, text))
    return sentences


def check_reach(follower: CamFollower, base_radius: float, displacement: Floats) -> None:
    """Refuse a follower that reaches the axis of the cam, or an arm that passes over it."""
    place = zero_level(follower, base_radius) + displacement
    low, high = int(np.argmin(place)), int(np.argmax(place))
    if not follower.oscillates and place[low] <= 0.0:
        text = f"the follower would be {-place[low]:.4g} m below the cam's axis at {degrees(GRID[low])}"
        raise ModelError(f"{text}; give a larger base_radius or heights that are not negative")
    least, most = (-0.5 * math.pi, 0.5 * math.pi) if follower.contact == "flat" else (0.0, math.pi)
    if follower.oscillates and not least < place[low] <= place[high] < most:
        at = high if place[high] >= most else low
        text = f"the arm is at {degrees(place[at])} from the line to the cam's axis at {degrees(GRID[at])}"
        raise ModelError(
            f"{text}; it must stay between {degrees(least)} and {degrees(most)}: give a smaller motion (rad)"
        )


def _interference(here: CamContact, radius: float) -> Bools:
    """Where the roller's centre is nearer than its radius to another point of the profile."""
    points = here.points[_PAIRS]
    near: Bools = np.zeros(len(here.pitch), dtype=bool)
    for k, centre in enumerate(here.pitch):
        near[k] = np.hypot(*(points - centre).T).min() < radius * (1.0 - _TOUCH)
    return near


def ranges(mask: Bools, step: float) -> list[tuple[float, float]]:
    """The angles (rad) between which a mask at even steps over a turn holds; one that goes through 0 ends beyond 2π."""
    if mask.all():
        return [(0.0, TURN)]
    first = int(np.argmin(mask))  # a place where it does not hold
    steps = np.diff(np.concatenate([[0], np.roll(mask, -first).astype(int), [0]]))
    begins, ends = np.flatnonzero(steps == 1) + first, np.flatnonzero(steps == -1) - 1 + first
    count = len(mask)
    return [(a % count * step, (a % count + b - a) * step) for a, b in zip(begins.tolist(), ends.tolist(), strict=True)]


def _between(begin: float, end: float) -> str:
    if end - begin >= TURN:
        return "all round"
    return f"from {degrees(begin)} to {degrees(end % TURN)}"


def advice(motion: CamMotion, base_radius: float, follower: CamFollower, sigma: float) -> str:
    """What would avoid an undercut: the least base radius, or the largest roller; empty where neither does."""
    options = []
    least = least_radius(motion, base_radius, follower, sigma)
    if least is not None:
        options.append(f"a base radius of at least {_rounded(least, up=True)} m")
    if follower.radius:
        largest_roller = _bisected(
            lambda radius: _is_convex(motion, base_radius, replace(follower, radius=radius), sigma),
            float(follower.radius),
            1e-6 * base_radius,
        )
        if largest_roller is not None:
            options.append(f"a roller of at most {_rounded(largest_roller, up=False)} m")
    return " or ".join(options)


def least_radius(
    motion: CamMotion, base_radius: float, follower: CamFollower, sigma: float, pressure_angle: float = math.inf
) -> float | None:
    """The least base radius (m) from which on the profile is not undercut; 0 if each will do, None if none will.

    With a `pressure_angle` (rad), also the least with which it is nowhere larger.
    """

    def will_do(radius: float) -> bool:
        return _is_convex(motion, radius, follower, sigma, pressure_angle)

    works = base_radius
    while not will_do(works):
        works *= _STEP
        if works > base_radius * _MOST:
            return None
    fails = works / _STEP
    while will_do(fails):
        works, fails = fails, fails / _STEP
        if works < base_radius / _MOST:
            return 0.0
    return _bisected(will_do, fails, works)


def _bisected(holds: Callable[[float], bool], fails: float, works: float) -> float | None:
    """The value nearest to `fails` with which it holds, between that and one with which it does."""
    if not holds(works):
        return None
    for _ in range(_BISECTIONS):
        middle = 0.5 * (fails + works)
        fails, works = (fails, middle) if holds(middle) else (middle, works)
    return works


def _is_convex(
    motion: CamMotion, base_radius: float, follower: CamFollower, sigma: float, pressure_angle: float = math.inf
) -> bool:
    try:
        level = zero_level(follower, base_radius)
        values = motion(GRID)
        check_reach(follower, base_radius, values[0])
    except ModelError:
        return False
    here = contact(follower, level, sigma, GRID, values)
    return bool((here.convex_radius > 0.0).all() and (np.abs(here.pressure_angle) <= pressure_angle).all())


def _rounded(x: float, *, up: bool) -> str:
    """Four digits of a length, rounded to the safe side."""
    unit = 10.0 ** (math.floor(math.log10(x)) - 3)
    return f"{(math.ceil(x / unit) if up else math.floor(x / unit)) * unit:.4g}"
