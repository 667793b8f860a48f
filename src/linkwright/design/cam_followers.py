r"""Followers of plate cams and where they touch: exact pitch curve, profile, curvature and pressure angle.

Frames. The cam turns about the origin by θ, counterclockwise (σ = 1) or clockwise (σ = −1); at θ = 0 its frame is that
of the ground. A point w(θ) of the ground is R(−σθ) w in the cam's frame. A translating follower moves along +y, its
offset e at x = σe. An oscillating one turns about (d, 0), its arm above the x axis.

Rollers: with t = w′ − σ J w (J turns by 90°) and t′ = w″ − 2σ J w′ − w the pitch curve has the tangent t, the normal
n = σ J t/|t| away from the cam and the curvature κ = −σ (t × t′)/|t|³; the profile is w − r n, with the curvature
κ/(1 − κ r).

Flat faces: the face has the normal n at the angle β in the cam's frame and the distance k from its axis; the profile is
their envelope, k n + k_β J n, with the radius of curvature k + k_ββ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.base.arguments import check_names
from linkwright.base.arrays import Floats
from linkwright.design.cam_motion import size_of
from linkwright.errors import ModelError
from linkwright.model.units import LENGTH

CONTACTS = ("roller", "flat", "knife")


@dataclass(frozen=True)
class CamFollower:
    """The follower of a plate cam, for `lw.cam_profile`.

    - `contact`: "roller" (the default), "flat" for a flat face, or "knife" for an edge.
    - `radius`: of the roller (m); of no other follower.
    - `offset`: of a translating follower's path from the cam's axis (m), 0 by default. Positive is the side on which it
      lowers the pressure angle of a rise: that from which the cam's top turns away. Of an oscillating flat follower,
      how far its face is from the parallel through its pivot, positive away from the cam.
    - `pivot`: the distance of an oscillating follower's pivot from the cam's axis (m); 0 (the default) for a follower
      that translates.
    - `arm`: from the pivot to the roller or the edge (m).

    Lengths may be texts with units, such as "8 mm". Raises ModelError and NameNotFound for what cannot be used.

    >>> lw.CamFollower(radius="8 mm", offset=0.004)
    CamFollower(contact='roller', radius=0.008, offset=0.004, pivot=0.0, arm=0.0)
    >>> lw.CamFollower(radius=0.008, pivot=0.09, arm=0.07).oscillates
    True
    """

    contact: str = "roller"
    radius: float | str = 0.0
    offset: float | str = 0.0
    pivot: float | str = 0.0
    arm: float | str = 0.0

    def __post_init__(self) -> None:
        check_names("contact of a cam's follower", [self.contact], CONTACTS)
        for name in ("radius", "offset", "pivot", "arm"):
            number = size_of(f"the {name} of the follower", getattr(self, name), LENGTH)
            if number < 0.0 and name != "offset":
                raise ModelError(f"the {name} of the follower is {number:g} m; give a length that is not negative")
            object.__setattr__(self, name, number)
        if self.contact == "roller" and not self.radius:
            raise ModelError("a roller has a radius; give radius=..., or contact='knife' for an edge")
        if self.contact != "roller" and self.radius:
            raise ModelError(f"a {self.contact} follower has no roller; leave the radius out, or say contact='roller'")
        if self.contact == "flat" and self.arm:
            raise ModelError("a flat follower has no arm; its face goes along it: leave the arm out")
        if self.contact != "flat" and self.oscillates:
            if not self.arm:
                raise ModelError("an oscillating follower has an arm from its pivot to the roller; give arm=...")
            if self.offset:
                raise ModelError("the offset is of followers that translate; an oscillating roller has pivot and arm")
        if self.arm and not self.oscillates:
            raise ModelError("an arm is of a follower that oscillates; give the distance of its pivot too: pivot=...")

    @property
    def oscillates(self) -> bool:
        """Whether it turns about a pivot; its motion is an angle then."""
        return float(self.pivot) > 0.0

    @property
    def sizes(self) -> tuple[float, float, float, float]:
        """Radius, offset, pivot and arm (m)."""
        return float(self.radius), float(self.offset), float(self.pivot), float(self.arm)


@dataclass(frozen=True, eq=False)
class CamContact:
    """Where a follower touches its cam at angles (n,), in the cam's frame, with lengths in m and angles in rad.

    `points` (n, 2) of the profile; `pitch` (n, 2), the path of the roller's centre; `curvature` (n,) of the profile in
    1/m, positive where it is convex; `convex_radius` (n,), the radius of curvature where it is convex, zero at a cusp,
    negative where the profile is undercut, and infinite where it is hollow; `pressure_angle` (n,), positive where the
    cam pushes the follower in the direction of its own motion; `face` (n,), where a flat face is touched, from its stem
    or pivot; `lever` (n,), how far the follower's point of contact moves along the normal per unit of displacement;
    `arc_rate` (n,), the length of the profile per angle in m/rad.
    """

    points: Floats
    pitch: Floats
    curvature: Floats
    convex_radius: Floats
    pressure_angle: Floats
    face: Floats
    lever: Floats
    arc_rate: Floats


def zero_level(follower: CamFollower, base_radius: float) -> float:
    """Where displacement 0 is: the height of the follower (m), or the angle of its arm (rad).

    Raises ModelError where the follower does not reach the base circle.
    """
    radius, offset, pivot, arm = follower.sizes
    prime = base_radius + radius
    if follower.contact == "flat" and follower.oscillates:
        if not abs(base_radius - offset) < pivot:
            text = f"the face does not reach a base circle of {base_radius:g} m from a pivot at {pivot:g} m"
            raise ModelError(f"{text}; place the pivot farther away")
        return math.asin((base_radius - offset) / pivot)
    if follower.contact == "flat":
        return base_radius
    if follower.oscillates:
        if not abs(pivot - arm) < prime < pivot + arm:
            text = f"an arm of {arm:g} m from a pivot at {pivot:g} m does not reach the prime circle of {prime:g} m"
            advice = f"the radius must lie between {abs(pivot - arm):g} m and {pivot + arm:g} m"
            raise ModelError(f"{text}; {advice}")
        return math.acos((arm**2 + pivot**2 - prime**2) / (2.0 * arm * pivot))
    if abs(offset) >= prime:
        text = f"the offset {offset:g} m is not less than the radius of the prime circle, {prime:g} m"
        raise ModelError(f"{text}; give a smaller offset or a larger base_radius")
    return math.sqrt(prime**2 - offset**2)


def contact(follower: CamFollower, level: float, sigma: float, angles: Floats, motion: Floats) -> CamContact:
    """The contact at angles (n,) for a motion (3, n): s, s′ and s″; `sigma` is 1 counterclockwise, −1 clockwise."""
    place = _flat if follower.contact == "flat" else _roller
    with np.errstate(all="ignore"):
        return place(follower, level, sigma, angles, motion)


def _roller(follower: CamFollower, level: float, sigma: float, angles: Floats, motion: Floats) -> CamContact:
    radius, offset, pivot, arm = follower.sizes
    s, rate, change = motion
    none, one = np.zeros_like(s), np.ones_like(s)
    if follower.oscillates:
        sine, cosine = np.sin(level + s), np.cos(level + s)
        w = np.array([pivot - arm * cosine, arm * sine])
        along, bend = arm * np.array([sine, cosine]), arm * np.array([cosine, -sine])  # ∂w/∂s and ∂²w/∂s²
    else:
        w, along, bend = np.array([sigma * offset * one, level + s]), np.array([none, one]), np.zeros((2, len(s)))
    w1, w2 = along * rate, bend * rate**2 + along * change
    t = w1 - sigma * _left(w)
    t1 = w2 - 2.0 * sigma * _left(w1) - w
    size = np.hypot(*t)
    normal = sigma * _left(t) / size
    curvature = -sigma * _cross(t, t1) / size**3
    lever = _dot(normal, along)
    return CamContact(
        points=_turned(w - radius * normal, -sigma * angles),
        pitch=_turned(w, -sigma * angles),
        curvature=curvature / (1.0 - curvature * radius),
        convex_radius=np.where(curvature > 0.0, 1.0 / curvature - radius, np.inf),
        pressure_angle=np.arctan2(sigma * _cross(along, normal), lever),
        face=none,
        lever=lever,
        arc_rate=size * np.abs(1.0 - curvature * radius),
    )


def _flat(follower: CamFollower, level: float, sigma: float, angles: Floats, motion: Floats) -> CamContact:
    _, offset, pivot, _ = follower.sizes
    s, rate, change = motion
    one, none = np.ones_like(s), np.zeros_like(s)
    if follower.oscillates:
        sine, cosine = np.sin(level + s), np.cos(level + s)
        normal, turn, turn1 = np.array([sine, cosine]), -(sigma + rate), -change  # β′ and β″
        k, k1 = pivot * sine + offset, pivot * cosine * rate
        k2 = pivot * (cosine * change - sine * rate**2)
    else:
        normal, turn, turn1 = np.array([none, one]), -sigma * one, none
        k, k1, k2 = level + s, rate, change
    slope = k1 / turn
    radius = k + (k2 * turn - k1 * turn1) / turn**3
    place = k * normal + slope * _left(normal)
    if follower.oscillates:
        face = slope + pivot * cosine
        lever, pressure = face, np.arctan2(sigma * offset, face)
    else:
        face, lever, pressure = sigma * place[0] - offset, one, none
    points = _turned(place, -sigma * angles)
    return CamContact(
        points=points,
        pitch=points,
        curvature=1.0 / radius,
        convex_radius=np.where(sigma * turn < 0.0, radius, -np.inf),
        pressure_angle=pressure,
        face=face,
        lever=lever,
        arc_rate=np.abs(radius * turn),
    )


def _left(x: Any) -> Floats:
    """Vectors (2, n) turned by 90°."""
    return np.array([-x[1], x[0]])


def _cross(a: Floats, b: Floats) -> Floats:
    turned: Floats = a[0] * b[1] - a[1] * b[0]
    return turned


def _dot(a: Floats, b: Floats) -> Floats:
    product: Floats = a[0] * b[0] + a[1] * b[1]
    return product


def _turned(x: Floats, angle: Floats) -> Floats:
    """(n, 2): vectors (2, n), each turned by its angle."""
    sine, cosine = np.sin(angle), np.cos(angle)
    return np.stack([cosine * x[0] - sine * x[1], sine * x[0] + cosine * x[1]], axis=1)
