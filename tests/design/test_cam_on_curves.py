"""Profiles of `lw.cam_profile` as curves that a roller touches move, press and turn as by hand and as the profile's own
forces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwright as lw
from linkwright.base.arrays import Floats

UPRIGHT = {"h": (0, 1, 0), "f": (1, 0, 0)}
BASE, ROLLER, RISE, OFFSET = 0.04, 0.008, 0.02, 0.005
ENDS = np.radians([100.0, 170.0, 280.0])  # of the rise, the dwell and the return
MASS, STIFFNESS, PRELOAD, SPEED = 0.4, 2000.0, 60.0, 15.0 * np.pi
LEVEL = np.sqrt((BASE + ROLLER) ** 2 - OFFSET**2)  # of the roller's centre on the base circle
SAMPLES = 175  # in a turn; almost all are between the points of the profiles
TOP = 0.2


def profile(count: int) -> lw.CamProfile:
    rise, dwell, back = ENDS.tolist()
    law = [(rise, RISE, "rise345"), (dwell, RISE), (back, 0.0, "rise345")]
    return lw.cam_profile(law, BASE, lw.CamFollower(radius=ROLLER, offset=OFFSET), count=count)


def machine(points: Floats) -> lw.Solution:
    """A turn of a shaft with a closed curve through points under a roller that a spring presses on it."""
    with lw.Builder("cam") as b:
        b.gravity((0, 0, 0))
        shaft, tappet = b.body("shaft", 1.0, inertia=(0.01, 0.01, 0.002)), b.body("tappet", MASS)
        b.place(tappet, (OFFSET, LEVEL, 0))
        b.joint("revolute", b.ground, shaft, "crank")
        b.joint("prismatic", b.triad(b.ground, (OFFSET, 0, 0), **UPRIGHT), b.triad(tappet, **UPRIGHT), "slide")
        disc = b.curve("disc", shaft, points, closed=True)
        b.curve_on_curve(disc, b.curve("roller", tappet, circle=ROLLER), "touch")
        top = b.triad(b.ground, (OFFSET, TOP, 0), name="top")
        b.spring(top, tappet, STIFFNESS, TOP - LEVEL + PRELOAD / STIFFNESS)
        b.driver("joint", "crank", lambda t: SPEED * t, name="motor")
        turn = 2 * np.pi / SPEED
        b.system(analysis="inverse dynamic", end=turn, interval=turn / SAMPLES)
    sol = lw.analyse(b.build())
    assert sol.status, str(sol.status)
    assert len(sol) == SAMPLES + 1
    return sol


def polynomial(angle: Floats) -> tuple[Floats, Floats, Floats]:
    """s, s′ and s″ of the rise, the dwell and the return by the textbook's 10 x³ − 15 x⁴ + 6 x⁵."""
    angle = np.mod(angle, 2 * np.pi)
    s, slope, second = (np.zeros_like(angle) for _ in range(3))
    rise, dwell, back = ENDS.tolist()
    for start, end, level, sign in ((0.0, rise, 0.0, 1.0), (rise, dwell, RISE, 0.0), (dwell, back, RISE, -1.0)):
        within = (angle >= start) & (angle < end)
        b = end - start
        x = (angle[within] - start) / b
        s[within] = level + sign * RISE * (10 * x**3 - 15 * x**4 + 6 * x**5)
        slope[within] = sign * RISE / b * (30 * x**2 - 60 * x**3 + 30 * x**4)
        second[within] = sign * RISE / b**2 * (60 * x - 180 * x**2 + 120 * x**3)
    return s, slope, second


@pytest.mark.parametrize(("count", "lift", "pressure", "share"), [(360, 1e-9, 2e-5, 4e-4), (720, 1e-10, 5e-6, 1e-4)])
def test_a_roller_on_a_345_profile_presses_as_by_hand(count: int, lift: float, pressure: float, share: float) -> None:
    sol = machine(profile(count).profile)
    s, slope, second = polynomial(sol.joint("crank")[:, 0])
    np.testing.assert_allclose(sol.position("tappet")[:, 1] - LEVEL, s, atol=lift)
    angle = np.arctan(np.abs(slope - OFFSET) / (s + LEVEL))
    np.testing.assert_allclose(sol.series["touch.pressure_angle"].values, angle, atol=pressure)
    load = MASS * second * SPEED**2 + STIFFNESS * s + PRELOAD
    contact = load / np.cos(angle)
    force = sol.series["touch.force"].values
    np.testing.assert_allclose(force, contact, atol=share * contact.max())
    np.testing.assert_allclose(sol.series["motor.torque"].values, load * slope, atol=share * np.abs(load * slope).max())
    assert np.ptp(force) > 0.3 * force.max()
    assert MASS * np.ptp(second) * SPEED**2 > 0.4 * force.max()  # inertia is a good part of it


def test_a_roller_presses_a_profile_as_the_profile_says() -> None:
    cam = profile(4 * SAMPLES)
    sol, forces = machine(cam.points(720)), cam.forces(SPEED, mass=MASS, stiffness=STIFFNESS, preload=PRELOAD)
    turn: Any = np.arange(0, len(cam.angles), 4)
    np.testing.assert_allclose(sol.series["touch.force"].values[:-1], forces.contact[turn], rtol=1e-4)
    np.testing.assert_allclose(sol.series["motor.torque"].values[:-1], forces.torque[turn], atol=2e-4)
    pressure = np.abs(cam.pressure_angle[turn])
    np.testing.assert_allclose(sol.series["touch.pressure_angle"].values[:-1], pressure, atol=5e-6)
    # The contact is where the profile is touched, and the roller's centre on the pitch curve.
    at = np.stack([sol.series[f"touch.{axis}"].values for axis in "xy"], axis=1)[:-1]
    c, s = np.cos(cam.angles[turn]), np.sin(cam.angles[turn])
    x, y = cam.profile[turn].T
    np.testing.assert_allclose(at, np.stack([c * x - s * y, s * x + c * y], axis=1), atol=2e-7)
