"""Motion laws of cams against the textbook's table, and programmes of rises and dwells across whole turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

import linkwright as lw
from linkwright.errors import LinkwrightError, MksError
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.formats.mks.mks_writer import write_mks
from linkwright.model.expression import FUNCTIONS, Call, Name, Number
from linkwright.model.motion_laws import MOTION_LAWS
from linkwright.tape.build import record

#: The largest velocity and acceleration for a unit rise over a unit of time (Norton, table 8-3).
PEAKS = {
    "harmonic": (np.pi / 2, np.pi**2 / 2),
    "cycloidal": (2.0, 2 * np.pi),
    "rise345": (15 / 8, 10 / np.sqrt(3)),
    "rise4567": (35 / 16, 84 * np.sqrt(5) / 25),
    "modified_sine": (3 * np.pi / (4 + np.pi) + np.pi / (4 + np.pi), 4 * np.pi**2 / (4 + np.pi)),
    "modified_trapezoid": (2.0, 8 * np.pi / (2 + np.pi)),
}


def derivatives(name: str, s: float) -> tuple[float, ...]:
    """Value and first three derivatives of a law from 0 at 0 to 1 at 1, by the tape."""
    law = record(lambda x: np.array([MOTION_LAWS[name](x[0], 0.0, 0.0, 1.0, 1.0)]), 1)
    x, one, none = np.array([s]), np.ones(1), np.zeros(1)
    first = law.forward()
    second = first.forward()
    third = second.forward()
    seeds = (x, one, one, none, one, none, none, none)
    return float(law(x)[0]), float(first(x, one)[1][0]), float(second(*seeds[:4])[3][0]), float(third(*seeds)[7][0])


@pytest.mark.parametrize("name", PEAKS)
def test_a_law_has_the_textbooks_peaks_and_is_the_integral_of_its_slope(name: str) -> None:
    s = np.linspace(0.0, 1.0, 241)
    rows = np.array([derivatives(name, float(x)) for x in s])
    assert np.abs(rows[:, 1]).max() == pytest.approx(PEAKS[name][0], rel=1e-6)
    assert np.abs(rows[:, 2]).max() == pytest.approx(PEAKS[name][1], rel=2e-4)
    for order in (0, 1):
        area = quad(lambda x, k=order + 1: derivatives(name, x)[k], 0.0, 0.3, points=[0.125], epsabs=1e-11)[0]
        change = derivatives(name, 0.3)[order] - derivatives(name, 1e-14)[order]
        assert area == pytest.approx(change, abs=1e-9)


@pytest.mark.parametrize("name", PEAKS)
def test_a_law_is_smooth_at_its_ends_and_the_same_from_both(name: str) -> None:
    ends = np.array([derivatives(name, x) for x in (1e-9, 1 - 1e-9)]) - [[0.0], [1.0]] * np.array([1.0, 0, 0, 0])
    np.testing.assert_allclose(ends[:, :2], 0.0, atol=1e-8)
    if name != "harmonic":
        np.testing.assert_allclose(ends[:, 2], 0.0, atol=1e-6)
    if name == "rise4567":
        np.testing.assert_allclose(ends[:, 3], 0.0, atol=1e-5)
    for x in (0.07, 0.2, 0.44):
        here, there = derivatives(name, x), derivatives(name, 1 - x)
        np.testing.assert_allclose([1 - there[0], there[1], -there[2], there[3]], here, atol=1e-9)
    assert derivatives(name, -0.2) == (0.0, 0.0, 0.0, 0.0)
    assert derivatives(name, 1.2) == (1.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("name", [*PEAKS, "mod"])
def test_a_law_has_a_closed_form(name: str) -> None:
    """The formula that equations show, and its Python, where a force on a ram has the law."""
    x = Name("x")
    wanted = Call(name, (x, Number(1.3)) if name == "mod" else (x, *map(Number, (0.2, 1.0, 1.7, 3.0))))
    with lw.Builder("press") as b:
        b.gravity((0, 0, 0))
        b.joint("prismatic", b.ground, b.body("ram", 2.0), "slide")
        b.joint_force("slide", lambda q: Call(wanted.function, (q, *wanted.arguments[1:])))
    equations = lw.equations(b.build())
    module: dict[str, Any] = {}
    exec(equations.python(), module)  # what users run: text of our own making
    for x0 in (0.3, 0.5, 1.1, 1.6, 2.9):
        force = FUNCTIONS[name][1](x0, *(a.evaluate({}) for a in wanted.arguments[1:]))
        assert module["springs"]([x0]) == pytest.approx([-force], abs=1e-12)


SEGMENTS = ((np.pi / 2, 0.02, "rise345"), (np.pi, 0.02), (1.5 * np.pi, 0.005, "modified_sine"), (6.0, 0.0, "cycloidal"))


def test_a_programme_repeats_smoothly_in_every_turn() -> None:
    angle = np.linspace(-7.0, 20.0, 4001)
    lift = lw.cam(angle, 2 * np.pi, *SEGMENTS)
    np.testing.assert_allclose(lift, lw.cam(angle + 4 * np.pi, 2 * np.pi, *SEGMENTS), atol=1e-15)
    inside = np.mod(angle, 2 * np.pi)
    np.testing.assert_allclose(lift[(inside > np.pi / 2) & (inside < np.pi)], 0.02)
    np.testing.assert_allclose(lift[inside > 6.0], 0.0, atol=1e-16)
    rise = inside < np.pi / 2
    np.testing.assert_allclose(lift[rise], lw.rise(inside[rise], 0.0, 0.0, np.pi / 2, 0.02))
    slope = np.gradient(lift, angle)
    assert np.abs(np.diff(slope)).max() < 0.02 * 6 * (27 / 4000)  # no jump of the slope
    assert lw.rise(0.25, 0.0, 1.0, 1.0, 3.0, "harmonic") == pytest.approx(1 + (1 - np.cos(np.pi / 4)))


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ((), "has no segments"),
        (((1.0, 0.1, "rise345"), (0.5, 0.0, "rise345")), "0.5 is not after 1"),
        (((1.0, 0.1, "rise345"), (7.0, 0.0, "rise345")), "beyond its period"),
        (((1.0, 0.1), (2.0, 0.0, "rise345")), "dwells at the height that it has, 0.0, not at 0.1"),
        (((1.0, 0.1, "parabola"),), "no motion law named 'parabola'"),
        (((1.0,),), r"is \(end, height, law\)"),
    ],
)
def test_programmes_that_cannot_be_are_refused(segments: Any, message: str) -> None:
    with pytest.raises(LinkwrightError, match=message):
        lw.cam(0.5, 2 * np.pi, *segments)


TEXT = """MODEL cam
PARAMETER h = 0.02;
{system}BODY frame (ground);
BODY shaft (mass = 1, inertia = (1, 1, 1));
BODY tappet (mass = 1, inertia = (1, 1, 1));
REVOLUTE JOINT crank (triad = frame, triad = shaft);
TRANSLATIONAL JOINT slide (triad = frame, triad = tappet);
COUPLING lift (slide.shift = {law});
DRIVER motor (crank.angle = {motion});
ENDMODEL
"""
LAW = (
    "cam(crank.angle, 360 deg, (90 deg, h, rise345), (180 deg, h), (270 deg, h/4, modified_sine), "
    "(6 rad, 0, cycloidal))"
)


def test_a_cam_of_a_file_is_the_one_of_python_and_comes_back() -> None:
    d = parse_mks(TEXT.format(law=LAW, system="", motion="9*TIME"))
    text = write_mks(d)
    assert parse_mks(text).point_constraints == d.point_constraints
    assert write_mks(parse_mks(text)) == text
    sol = lw.analyse(lw.Mechanism(d), times=np.linspace(0.0, 2.0, 101))
    np.testing.assert_allclose(sol.joint("slide")[:, 0], lw.cam(9 * sol.time, 2 * np.pi, *SEGMENTS), atol=1e-13)


def test_the_drive_of_a_cam_carries_the_followers_load() -> None:
    """F = m (a + g) on the follower, T = I α + F ds/dφ on the shaft, by the chain rule and complex steps."""
    motion = "9*TIME + 0.5*TIME^2"
    mech = lw.Mechanism(parse_mks(TEXT.format(law=LAW, system="", motion=motion)))
    sol = lw.analyse(mech, analysis="inverse dynamic", times=np.linspace(0.01, 1.0, 61))
    angle, rate = 9 * sol.time + 0.5 * sol.time**2, 9 + sol.time
    step = 1e-4
    lifts = [lw.cam(angle + k * step, 2 * np.pi, *SEGMENTS) for k in (-1, 0, 1)]
    slope, change = (lifts[2] - lifts[0]) / (2 * step), (lifts[2] - 2 * lifts[1] + lifts[0]) / step**2
    force = 1.0 * (slope * 1.0 + change * rate**2 + 9.81)
    np.testing.assert_allclose(sol.series["lift.force"].values, force, atol=2e-2)
    np.testing.assert_allclose(
        sol.series["motor.torque"].values, 1.0 + sol.series["lift.force"].values * slope, atol=1e-5
    )


@pytest.mark.parametrize(
    ("law", "system", "message"),
    [
        ("cam(crank.angle, 2*pi)", "", "9:30: a cam needs an angle, its period and segments"),
        ("cam(crank.angle, 2*pi, (1, h, rise354), (2, 0, rise345))", "", "did you mean 'rise345'"),
        ("cam(crank.angle, 2*pi, (1, h, rise345), (0.5, 0, rise345))", "", "0.5 is not after 1"),
        ("cam(crank.angle, 2*pi, (1, h, rise345), (7, 0, rise345))", "", "ends beyond its period"),
        ("cam(crank.angle, 2*pi, (1, h, rise345), (2, 0.1), (3, 0, rise345))", "", "a cam dwells at the height"),
        ("cam(crank.angle, 2*pi, h)", "", "a segment of a cam is"),
        ("rise345(crank.angle, 0, 0, h)", "", "rise345 takes 5 arguments, not 4"),
        ("cam(crank.angle, 360, (90, h, rise345), (180, 0, rise345))", "deg", "write it with deg or rad"),
        ("rise345(crank.angle, 0, 0, 90, h)", "deg", "write it with deg or rad"),
    ],
)
def test_cams_of_files_that_cannot_be_have_their_place(law: str, system: str, message: str) -> None:
    head = "SYSTEM (KINEMATIC ANALYSIS, angle unit = degree);\n" if system else "\n"
    with pytest.raises(MksError, match=message):
        parse_mks(TEXT.format(law=law, system=head, motion="9*TIME"))
