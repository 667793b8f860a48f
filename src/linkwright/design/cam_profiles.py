"""Plate cams from a wanted motion: the profile that moves a follower so, and whether it can be made."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.base.arguments import check_names, finite_array, first_few, shown, whole_number
from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.design import cam_faults
from linkwright.design.cam_faults import CamExtreme, CamFault
from linkwright.design.cam_files import save_cam
from linkwright.design.cam_followers import CamContact, CamFollower, contact, zero_level
from linkwright.design.cam_forces import CamForces, cam_forces
from linkwright.design.cam_motion import GRID, TURN, CamMotion, degrees, size_of
from linkwright.errors import ModelError
from linkwright.model.units import ANGLE, LENGTH

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_POINTS = 200_000
_FAR = 100.0  # times the base radius: a motion beyond is a mistake of units
SPACINGS = ("angle", "arc")


@dataclass(frozen=True, eq=False, repr=False)
class CamProfile:
    """A plate cam by `lw.cam_profile`: its profile and all that follows from it, lengths in m, angles in rad.

    `motion`, `base_radius`, `follower` and `clockwise` are those that were asked for. Arrays over `angles` (n,) of the
    cam: `displacement`, `velocity` and `acceleration` (n,) of the follower by the angle (m or rad, per rad, per rad²);
    `profile` (n, 2), the points of contact; `pitch` (n, 2), the path of the roller's centre; `curvature` (n,) of the
    profile (1/m), positive where it is convex; `pressure_angle` (n,), positive where the cam pushes the follower in the
    direction of its own motion; `face` (n,), where a flat face is touched, from its stem or pivot. Points are in the
    cam's frame, which at angle 0 is that of the ground: a translating follower moves along y, an oscillating one turns
    about (pivot, 0).

    >>> segments = [("90 deg", "10 mm", "rise345"), ("180 deg", "10 mm"), ("270 deg", 0.0, "rise345")]
    >>> cam = lw.cam_profile(segments, "30 mm", "flat")
    >>> cam.profile.shape, cam.faults, cam.largest_pressure_angle.value, cam.acceleration_jumps.tolist()
    ((720, 2), (), 0.0, [])
    >>> round(cam.least_convex_radius.value, 4), cam.least_hollow_radius.value, round(cam.face_range[1], 4)
    (0.0159, inf, 0.0119)
    """

    motion: CamMotion
    base_radius: float
    follower: CamFollower
    clockwise: bool
    angles: Floats
    displacement: Floats
    velocity: Floats
    acceleration: Floats
    profile: Floats
    pitch: Floats
    curvature: Floats
    pressure_angle: Floats
    face: Floats

    def __repr__(self) -> str:
        return f"<CamProfile of {len(self.angles)} points, base radius {self.base_radius:g} m>"

    def contact(self, angles: Any) -> CamContact:
        """Points, pitch curve, curvature, pressure angle and the like at any `angles` (k,) of the cam (rad).

        Returns an object with `points` (k, 2), `pitch` (k, 2), `curvature`, `convex_radius`, `pressure_angle`, `face`,
        `lever` and `arc_rate` (k,), as exact as the arrays of the profile. Raises ModelError for angles that are not
        finite numbers.

        >>> cam = lw.cam_profile(lambda angle: 0.01 * (1 - np.cos(angle)), 0.03, "flat")
        >>> (cam.contact([0.0, np.pi]).points.round(12) + 0.0).tolist()
        [[0.0, 0.03], [0.0, -0.05]]
        """
        at = np.atleast_1d(np.asarray(angles, dtype=np.float64))
        return self._contact(finite_array("the angles of a cam", at, (at.size,)))

    def _contact(self, at: Floats) -> CamContact:
        return contact(self.follower, zero_level(self.follower, self.base_radius), self.sense, at, self.motion(at))

    @property
    def sense(self) -> float:
        """1 for a cam that turns counterclockwise, −1 for one that turns clockwise."""
        return -1.0 if self.clockwise else 1.0

    def points(self, count: int = 720, spacing: str = "angle") -> Floats:
        """(count, 2): the closed profile in the cam's frame (m); the last point is not the first again.

        - `count`: how many, 720 by default; 16 at least.
        - `spacing`: "angle" (the default), even in the cam's angle, or "arc", even along the profile.

        Each point is on the profile itself. They go round against the cam's own turn: clockwise for a cam that turns
        counterclockwise. Raises ModelError and NameNotFound for what cannot be used.

        >>> cam = lw.cam_profile([("180 deg", 0.01, "rise345"), ("360 deg", 0.0, "rise345")], 0.03, "knife")
        >>> cam.points(100, "arc").shape
        (100, 2)
        """
        whole_number("count of points", count, 16, MOST_POINTS)
        check_names("spacing of a cam's points", [spacing], SPACINGS)
        at = _even(count)
        if spacing == "arc":
            fine = np.linspace(0.0, TURN, max(4 * count, 11_520) + 1)
            ends, middles = self._contact(fine).arc_rate, self._contact(0.5 * (fine[1:] + fine[:-1])).arc_rate
            length = np.concatenate([[0.0], np.cumsum(ends[1:] + 4.0 * middles + ends[:-1])])  # Simpson's rule
            at = np.interp(_even(count) * (length[-1] / TURN), length, fine)
        return self._contact(at).points

    # -- what a designer asks ---------------------------------------------------------------------------------
    @cached_property
    def faults(self) -> tuple[CamFault, ...]:
        """What is wrong with the cam, each with its kind, the angles (rad) between which it is, and a sentence."""
        return tuple(cam_faults.faults(self.motion, self.base_radius, self.follower, self.sense))

    @cached_property
    def largest_pressure_angle(self) -> CamExtreme:
        """The size of the largest pressure angle (rad), and where it is."""
        return cam_faults.largest(lambda at: np.abs(self._contact(at).pressure_angle))

    @cached_property
    def least_convex_radius(self) -> CamExtreme:
        """The least radius of curvature (m) where the profile is convex; it is negative where that is undercut."""
        most, angle = cam_faults.largest(lambda at: -self._contact(at).convex_radius)
        return CamExtreme(-most, angle)

    @cached_property
    def least_hollow_radius(self) -> CamExtreme:
        """The least radius of curvature (m) where the profile is hollow; infinite where it is convex all round.

        The wheel that grinds the cam must be smaller.
        """
        most, angle = cam_faults.largest(lambda at: _hollowness(self._contact(at)))
        return CamExtreme(math.inf if most <= 1e-9 / self.base_radius else 1.0 / most, angle)

    @property
    def face_range(self) -> tuple[float, float]:
        """Between where a flat face is touched, from its stem or pivot (m): so far it must go."""
        low = -cam_faults.largest(lambda at: -self._contact(at).face).value
        return low, cam_faults.largest(lambda at: self._contact(at).face).value

    @cached_property
    def acceleration_jumps(self) -> Floats:
        """(k,): the angles (rad) at which the follower's acceleration jumps, as with the harmonic law."""
        return self.motion.jumps(2)

    def least_base_radius(self, pressure_angle: float | str | None = None) -> float | None:
        """The least base radius (m) from which on this motion and follower are not undercut.

        - `pressure_angle`: that it shall not exceed either (rad), or a text such as "30 deg"; None (the default) for
          any.

        Returns 0 where every cam will do, None where none will. Raises ModelError for an angle that is not between 0
        and 90°.

        >>> cam = lw.cam_profile(lambda angle: 0.01 * (1 - np.cos(angle)), 0.03, lw.CamFollower(radius=0.008))
        >>> round(cam.least_base_radius("20 deg"), 4)
        0.0112
        """
        if pressure_angle is None:
            return cam_faults.least_radius(self.motion, self.base_radius, self.follower, self.sense)
        limit = size_of("pressure_angle", pressure_angle, ANGLE)
        if not 0.0 < limit < 0.5 * math.pi:
            raise ModelError(f"pressure_angle is {degrees(limit)}; give an angle between 0 and 90°, such as '30 deg'")
        return cam_faults.least_radius(self.motion, self.base_radius, self.follower, self.sense, limit)

    def forces(
        self,
        speed: float | str,
        *,
        mass: float = 0.0,
        load: Any = 0.0,
        stiffness: float = 0.0,
        preload: float = 0.0,
    ) -> CamForces:
        """The contact force and the torque of the camshaft at a constant speed, without friction.

        - `speed`: of the cam (rad/s), or a text such as "300 rpm".
        - `mass`: of the follower (kg; of one that oscillates its moment of inertia about the pivot, kg m²), 0 by
          default.
        - `load`: that presses the follower onto the cam (N; N m of one that oscillates): a number, 0 by default, or an
          array over the `angles`. Weight is a load too.
        - `stiffness`: of a spring that does so (N/m; N m/rad), 0 by default.
        - `preload`: the spring's force where the displacement is 0 (N; N m), 0 by default.

        Returns an object with `contact` and `torque` (n,), `lift_off`, the angles between which the follower would
        leave the cam, and `lift_off_speed` (rad/s). Raises ModelError and ShapeError for what cannot be used.

        >>> cam = lw.cam_profile(lambda angle: 0.01 * (1 - np.cos(angle)), 0.03, "flat")
        >>> forces = cam.forces("600 rpm", mass=0.4, stiffness=2000, preload=40)
        >>> f"{forces.contact.min():.1f} to {forces.contact.max():.1f} N, {forces.lift_off_speed:.0f} rad/s"
        '55.8 to 64.2 N, 141 rad/s'
        """
        lever = self._contact(self.angles).lever
        return cam_forces(self, speed, mass, load, stiffness, preload, lever)

    # -- files and figures ------------------------------------------------------------------------------------
    def save(self, path: str | os.PathLike[str], *, unit: str = "mm", count: int = 720) -> None:
        """Write the profile to a `path` in .dxf, .svg or .csv, whole or not at all.

        - `unit`: of lengths, such as "mm" (the default), "m" or "inch".
        - `count`: points, even in the cam's angle, 720 by default.

        A .dxf has the profile as a closed polyline on layer CAM, the pitch curve, the base circle and the axis on
        layers of their own. An .svg is drawn one to one. A .csv has a row for each angle with all quantities, their
        units in the names of the columns. Raises LinkwrightError for another ending or a place where nothing can be
        written, ModelError for a unit that is no length.

        >>> import tempfile
        >>> cam = lw.cam_profile(lambda angle: 0.01 * (1 - np.cos(angle)), 0.03, "flat")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     cam.save(f"{folder}/cam.dxf", unit="mm")
        ...     cam.save(f"{folder}/cam.csv", unit="m", count=360)
        """
        whole_number("count of points", count, 16, MOST_POINTS)
        save_cam(_sampled(self.motion, self.base_radius, self.follower, self.clockwise, count), path, unit)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """The cam with its base circle, pitch curve and follower, and beside it the motion over one turn.

        Displacement, velocity, acceleration, pressure angle (of a flat follower that translates, where its face is
        touched) and curvature. `path` may end in .png, .svg or .pdf. Returns a matplotlib figure. Raises
        LinkwrightError without matplotlib, or for a path that cannot be written.

        >>> len(lw.cam_profile(lambda angle: 0.01 * (1 - np.cos(angle)), 0.03, "flat").plot().axes)
        6
        """
        from linkwright.design.cam_plots import plot_cam  # weight: matplotlib

        return plot_cam(self, path)

    def report(self) -> str:
        """Sizes, extremes and faults as text.

        >>> print(lw.cam_profile(lambda angle: 0.01 * (1 - np.cos(angle)), 0.03, "flat").report())
        cam, turning counterclockwise: base radius 30 mm
        flat follower that translates, motion from 0 to 20 mm
        largest pressure angle 0° at 0°
        least radius of curvature 40 mm (convex, at 0°)
        the face is touched from -10 to 10 mm
        no faults
        """
        f, mm = self.follower, 1e3
        moves = "oscillates" if f.oscillates else "translates"
        size = f" of radius {mm * float(f.radius):.6g} mm" if f.radius else ""
        turning = "clockwise" if self.clockwise else "counterclockwise"
        unit, scale = ("°", math.degrees(1.0)) if f.oscillates else (" mm", mm)
        s, pressure, sharp, hollow = self.displacement, *self._extremes()
        lines = [
            f"cam, turning {turning}: base radius {mm * self.base_radius:.6g} mm",
            f"{f.contact} follower{size} that {moves}, "
            f"motion from {scale * s.min():.6g} to {scale * s.max():.6g}{unit}",
            f"largest pressure angle {degrees(pressure.value)} at {degrees(pressure.angle)}",
        ]
        for name, extreme in (("convex", sharp), ("hollow", hollow)):
            if math.isfinite(extreme.value):
                where = f"{name}, at {degrees(extreme.angle)}"
                lines.append(f"least radius of curvature {mm * extreme.value:.6g} mm ({where})")
        if f.contact == "flat":
            low, high = self.face_range
            lines.append(f"the face is touched from {mm * low:.6g} to {mm * high:.6g} mm")
        lines += [f"the acceleration jumps at {degrees(at)}" for at in self.acceleration_jumps]
        lines += [fault.text for fault in self.faults] or ["no faults"]
        return "\n".join(lines)

    def _extremes(self) -> tuple[CamExtreme, CamExtreme, CamExtreme]:
        return self.largest_pressure_angle, self.least_convex_radius, self.least_hollow_radius


def cam_profile(
    motion: Any,
    base_radius: float | str,
    follower: CamFollower | str,
    *,
    clockwise: bool = False,
    count: int = 720,
    check: bool = True,
) -> CamProfile:
    """The profile of a plate cam that moves a follower as wanted, exact at every point.

    - `motion`: the follower's displacement over one turn of the cam (m; of one that oscillates rad): a list of
      (end, height, law) as of `lw.cam`, whose ends (rad) and heights may be texts with units; a function of the angle
      in NumPy syntax; or an expression of one angle, also as a text of `.mks`. Its derivatives are exact.
    - `base_radius`: of the cam where the displacement is 0 (m), or a text such as "40 mm".
    - `follower`: an `lw.CamFollower`, or "flat" or "knife" for one that translates on the cam's axis.
    - `clockwise`: how the cam turns; False by default.
    - `count`: points of the arrays, even in the cam's angle, 720 by default; 16 at least.
    - `check`: False returns a cam that is undercut, or that its follower cannot follow, with its `faults`; by default
      it is an error that says where, and what would avoid it.

    Returns a `CamProfile`. Raises ModelError for such a cam, for a motion that does not close or jumps, and for sizes
    that cannot be; NameNotFound for a law or a contact that there is not.

    >>> segments = [("90 deg", "20 mm", "rise345"), ("180 deg", "20 mm"), ("270 deg", 0.0, "rise345")]
    >>> cam = lw.cam_profile(segments, "40 mm", lw.CamFollower(radius="8 mm"))
    >>> print(f"{np.degrees(cam.largest_pressure_angle.value):.2f} degrees, {cam.least_convex_radius.value:.4f} m")
    22.64 degrees, 0.0314 m
    """
    follower = _follower(follower)
    radius = size_of("base_radius", base_radius, LENGTH)
    if radius <= 0.0:
        raise ModelError(f"base_radius is {radius:g} m; give the radius of the base circle, greater than zero")
    whole_number("count of points", count, 16, MOST_POINTS)
    law = CamMotion(motion, ANGLE if follower.oscillates else LENGTH)
    displacement = law(GRID)[0]
    size = float(np.abs(displacement).max())
    if not follower.oscillates and size > _FAR * radius:
        text = f"the follower moves by {size:.4g} m about a base circle of {radius:g} m"
        raise ModelError(f"{text}; heights are in metres, or texts such as '20 mm'")
    cam_faults.check_reach(follower, radius, displacement)
    profile = _sampled(law, radius, follower, bool(clockwise), count)
    if check and profile.faults:
        texts = first_few([fault.text for fault in profile.faults], 2)
        avoided = ""
        if profile.faults[0].kind in ("undercut", "cusp"):
            avoided = cam_faults.advice(law, radius, follower, profile.sense)
            avoided = f"; {avoided} avoids it" if avoided else ""
        raise ModelError(f"this cam cannot be made: {texts}{avoided}; check=False shows it")
    return profile


def _sampled(motion: CamMotion, base_radius: float, follower: CamFollower, clockwise: bool, count: int) -> CamProfile:
    at = _even(count)
    displacement, velocity, acceleration = values = motion(at)
    here = contact(follower, zero_level(follower, base_radius), -1.0 if clockwise else 1.0, at, values)
    return CamProfile(
        *(motion, base_radius, follower, clockwise, at, displacement, velocity, acceleration),
        profile=here.points,
        pitch=here.pitch,
        curvature=here.curvature,
        pressure_angle=here.pressure_angle,
        face=here.face,
    )


def _follower(follower: Any) -> CamFollower:
    if isinstance(follower, CamFollower):
        return follower
    if isinstance(follower, str):
        return CamFollower(follower)
    raise ModelError(f"a cam's follower is {shown(follower)[:80]}; give lw.CamFollower(radius=...), 'flat' or 'knife'")


def _hollowness(here: CamContact) -> Floats:
    """The curvature (1/m) where the profile is hollow, else 0; not where it is undercut, and turns back."""
    return np.where(np.isinf(here.convex_radius), -here.curvature, 0.0)


def _even(count: int) -> Floats:
    return np.arange(count, dtype=np.float64) * (TURN / count)
