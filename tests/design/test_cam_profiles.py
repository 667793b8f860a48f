"""Profiles of plate cams: textbook formulas, envelopes by distances, eccentric circles, and what cannot be made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import LinkwrightError, ModelError, NameNotFound
from linkwright.model.expression import Name

RISE, DWELL, BACK = np.radians([100.0, 160.0, 280.0])


def motion_345(lift: float) -> list[tuple[Any, ...]]:
    return [(RISE, lift, "rise345"), (DWELL, lift), (BACK, 0.0, "rise345")]


def textbook_345(theta: np.ndarray, lift: float) -> np.ndarray:
    """s, s′ and s″ of the same by Norton's polynomials."""
    s = np.zeros((3, len(theta)))
    for begin, end, sign in ((0.0, RISE, 1.0), (DWELL, BACK, -1.0)):
        beta = end - begin
        x = np.clip((theta - begin) / beta, 0.0, 1.0)
        s[0] += sign * lift * (10 * x**3 - 15 * x**4 + 6 * x**5)
        s[1] += sign * lift / beta * (30 * x**2 - 60 * x**3 + 30 * x**4)
        s[2] += sign * lift / beta**2 * (60 * x - 180 * x**2 + 120 * x**3)
    return s


ROLLER = lw.CamFollower(radius=0.008, offset=0.005)
OSCILLATING = lw.CamFollower(radius=0.008, pivot=0.09, arm=0.07)
FACE = lw.CamFollower("flat", pivot=0.09, offset=0.008)
CASES = {
    "in line": (lw.CamFollower(radius=0.008), 0.02),
    "offset": (ROLLER, 0.02),
    "offset the other way": (lw.CamFollower(radius=0.008, offset=-0.012), 0.02),
    "knife": (lw.CamFollower("knife", offset=0.004), 0.02),
    "flat": (lw.CamFollower("flat", offset=0.003), 0.02),
    "oscillating": (OSCILLATING, 0.3),
    "oscillating edge": (lw.CamFollower("knife", pivot=0.09, arm=0.07), 0.3),
    "oscillating flat": (FACE, 0.12),
}


@pytest.mark.parametrize("clockwise", [False, True])
def test_a_roller_cam_has_the_textbooks_profile_and_pressure_angle(clockwise: bool) -> None:
    base, radius, e, sense = 0.04, 0.008, 0.005, -1.0 if clockwise else 1.0
    cam = lw.cam_profile(motion_345(0.02), base, ROLLER, clockwise=clockwise)
    theta, (s, s1, s2) = cam.angles, textbook_345(cam.angles, 0.02)
    np.testing.assert_allclose(np.stack([cam.displacement, cam.velocity, cam.acceleration]), [s, s1, s2], atol=1e-14)
    y = s + np.sqrt((base + radius) ** 2 - e**2)
    phi = np.arctan((s1 - e) / y)
    pitch = np.stack([sense * (e * np.cos(theta) + y * np.sin(theta)), y * np.cos(theta) - e * np.sin(theta)], axis=1)
    profile = pitch - radius * np.stack([sense * np.sin(theta - phi), np.cos(theta - phi)], axis=1)
    rho = (y**2 + (s1 - e) ** 2) ** 1.5 / (y**2 + (s1 - e) * (2 * s1 - e) - y * s2)
    np.testing.assert_allclose(cam.pressure_angle, phi, atol=1e-13)
    np.testing.assert_allclose(cam.pitch, pitch, atol=1e-15)
    np.testing.assert_allclose(cam.profile, profile, atol=1e-15)
    np.testing.assert_allclose(1.0 / cam.curvature, rho - radius, rtol=1e-9)
    fine = np.linspace(0.0, 2 * np.pi, 200_001)
    fs, f1, _ = textbook_345(fine, 0.02)
    most = np.abs(np.arctan((f1 - e) / (fs + np.sqrt((base + radius) ** 2 - e**2)))).max()
    assert cam.largest_pressure_angle.value == pytest.approx(most, abs=1e-9)


@pytest.mark.parametrize("clockwise", [False, True])
def test_a_flat_cam_has_the_textbooks_profile_and_curvature(clockwise: bool) -> None:
    cam = lw.cam_profile(motion_345(0.02), 0.05, "flat", clockwise=clockwise)
    theta, (s, s1, s2) = cam.angles, textbook_345(cam.angles, 0.02)
    x = (0.05 + s) * np.sin(theta) + s1 * np.cos(theta)
    y = (0.05 + s) * np.cos(theta) - s1 * np.sin(theta)
    np.testing.assert_allclose(cam.profile, np.stack([-x if clockwise else x, y], axis=1), atol=1e-15)
    np.testing.assert_allclose(1.0 / cam.curvature, 0.05 + s + s2, rtol=1e-12)
    np.testing.assert_allclose(cam.pressure_angle, 0.0, atol=1e-15)
    fine = textbook_345(np.linspace(0.0, 2 * np.pi, 200_001), 0.02)
    assert cam.face_range == pytest.approx((fine[1].min(), fine[1].max()), abs=1e-9)
    assert cam.least_convex_radius.value == pytest.approx(0.05 + (fine[0] + fine[2]).min(), abs=1e-9)
    assert cam.least_base_radius() == pytest.approx(-(fine[0] + fine[2]).min(), abs=1e-6)


def world(follower: lw.CamFollower, base: float, s: np.ndarray, sense: float) -> tuple[np.ndarray, np.ndarray]:
    """In the ground, as complex numbers: the centre of a roller, or a point of a face, and the face's normal."""
    radius, offset, pivot, arm = map(float, (follower.radius, follower.offset, follower.pivot, follower.arm))
    if not follower.oscillates:
        if follower.contact == "flat":
            return 1j * (base + s), np.full(len(s), 1j)
        return sense * offset + 1j * (np.sqrt((base + radius) ** 2 - offset**2) + s), np.full(len(s), 1j)
    if follower.contact == "flat":
        psi = np.arcsin((base - offset) / pivot) + s
        normal = 1j * np.exp(-1j * psi)
        return pivot + offset * normal, normal
    prime = base + radius
    psi = np.arccos((arm**2 + pivot**2 - prime**2) / (2 * arm * pivot)) + s
    return pivot - arm * np.exp(-1j * psi), 1j * np.exp(-1j * psi)


@pytest.mark.parametrize("clockwise", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_the_follower_touches_the_profile_and_nowhere_enters_it(case: str, clockwise: bool) -> None:
    """The envelope by distances: of each point of the profile to the follower at every angle of the cam."""
    follower, lift = CASES[case]
    sense = -1.0 if clockwise else 1.0
    cam = lw.cam_profile(motion_345(lift), 0.04, follower, clockwise=clockwise)

    def gap(points: np.ndarray, theta: np.ndarray) -> np.ndarray:
        place, normal = world(follower, 0.04, textbook_345(theta, lift)[0], sense)
        turned = np.exp(-1j * sense * theta)
        if follower.contact == "flat":
            return -np.real((points - place * turned) * np.conj(normal * turned))
        return np.abs(points - place * turned) - follower.radius

    shown = slice(None, None, 7)
    points = cam.profile[shown] @ [1.0, 1j]
    np.testing.assert_allclose(gap(points, cam.angles[shown]), 0.0, atol=1e-15)  # it touches at its angle
    for _, theta in zip(range(60), np.random.default_rng(1).uniform(0, 2 * np.pi, 60), strict=True):
        assert gap(points, np.array([theta])).min() > -1e-15  # and has room at all others
    if follower.contact != "knife":
        for step in (-1e-5, 1e-5):  # tangent: the gap grows with the square of the step
            assert np.abs(gap(points, cam.angles[shown] + step)).max() < 1e-9


@pytest.mark.parametrize("case", [name for name in CASES if "flat" not in name])
def test_the_pressure_angle_is_between_the_normal_and_the_followers_motion(case: str) -> None:
    follower, lift = CASES[case]
    cam = lw.cam_profile(motion_345(lift), 0.04, follower, clockwise=True)
    _, velocity = world(follower, 0.04, cam.displacement, -1.0)
    normal = ((cam.pitch - cam.profile) @ [1.0, 1j]) * np.exp(-1j * cam.angles)
    if follower.contact == "knife":  # across the pitch curve, by central differences
        fine = cam.contact(cam.angles + 1e-6).points - cam.contact(cam.angles - 1e-6).points
        normal = -1j * (fine @ [1.0, 1j]) * np.exp(-1j * cam.angles)
    np.testing.assert_allclose(-np.angle(normal / velocity), cam.pressure_angle, atol=1e-8)


@pytest.mark.parametrize("case", CASES)
def test_curvature_and_length_are_those_of_the_points(case: str) -> None:
    follower, lift = CASES[case]
    cam = lw.cam_profile(motion_345(lift), 0.04, follower)
    theta = np.array([0.3, 0.9, 1.4, 2.1, 3.3, 4.4, 5.5])
    before, here, after = (cam.contact(theta + h).points @ [1.0, 1j] for h in (-1e-4, 0.0, 1e-4))
    a, b = here - before, after - here
    turned = np.abs(np.angle(b / a)) / (0.5 * (np.abs(a) + np.abs(b)))
    np.testing.assert_allclose(np.abs(cam.contact(theta).curvature), turned, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(cam.contact(theta).arc_rate, np.abs(after - before) / 2e-4, rtol=1e-5)


def test_an_eccentric_circle_is_the_cam_of_its_motion() -> None:
    radius, e, roller = 0.05, 0.012, 0.01
    centre = np.array([0.0, -e])

    def in_line(angle: Any) -> Any:
        return np.sqrt((radius + roller) ** 2 - (e * np.sin(angle)) ** 2) - e * np.cos(angle) - (radius + roller - e)

    def arm(angle: Any) -> Any:  # of 0.08 from a pivot at 0.1: the angles of two triangles, less those at 0
        x, y = 0.1 - e * np.sin(angle), -e * np.cos(angle)
        squared = x * x + y * y
        triangle = np.arccos((0.08**2 + squared - (radius + roller) ** 2) / (0.16 * np.sqrt(squared)))
        return triangle - np.arctan(-y / x) - start

    def face(angle: Any) -> Any:
        x, y = 0.1 - e * np.sin(angle), -e * np.cos(angle)
        return np.arcsin(radius / np.sqrt(x * x + y * y)) - np.arctan(-y / x) - begin

    start = begin = 0.0
    start, begin = float(arm(0.0)), float(face(0.0))
    base = 0.1 * np.sin(begin)
    prime = np.sqrt(0.08**2 + 0.1**2 - 2 * 0.08 * 0.1 * np.cos(start))
    laws: list[tuple[Callable[[Any], Any], float, lw.CamFollower]] = [
        (lambda angle: e * (1.0 - np.cos(angle)), radius - e, lw.CamFollower("flat")),
        (in_line, radius - e, lw.CamFollower(radius=roller)),
        (arm, prime - roller, lw.CamFollower(radius=roller, pivot=0.1, arm=0.08)),
        (face, base, lw.CamFollower("flat", pivot=0.1)),
    ]
    for law, least, follower in laws:
        cam = lw.cam_profile(law, least, follower)
        np.testing.assert_allclose(np.hypot(*(cam.profile - centre).T), radius, atol=1e-14)
        np.testing.assert_allclose(cam.curvature, 1.0 / radius, rtol=1e-10)
        even = cam.points(500, "arc") - centre
        steps = np.diff(np.unwrap(np.arctan2(even[:, 1], even[:, 0])))
        np.testing.assert_allclose(np.abs(steps), 2 * np.pi / 500, rtol=1e-4)


def test_a_motion_may_be_segments_a_function_an_expression_or_a_text() -> None:
    angle = Name("crank")
    segments = [("100 deg", "20 mm", "rise345"), ("160 deg", 0.02), ("280 deg", 0.0, "rise345")]
    text = "cam(angle, 360 deg, (100 deg, 20 mm, rise345), (160 deg, 20 mm), (280 deg, 0, rise345))"
    motions = [segments, text, lambda a: lw.cam(a, 2 * np.pi, *motion_345(0.02))]
    motions.append(lw.cam(angle, 2 * np.pi, *motion_345(0.02)))
    wanted = lw.cam_profile(motion_345(0.02), 0.04, ROLLER).profile
    for motion in motions:
        np.testing.assert_allclose(lw.cam_profile(motion, "40 mm", ROLLER).profile, wanted, atol=1e-15)


@pytest.mark.parametrize("law", ["cycloidal", "rise4567", "modified_sine", "modified_trapezoid", "harmonic"])
def test_every_law_makes_a_cam_and_jumps_of_the_acceleration_are_named(law: str) -> None:
    cam = lw.cam_profile([(1.5, 0.02, law), (2.5, 0.02), (4.0, 0.0, law)], 0.05, ROLLER)
    assert cam.faults == ()
    jumps = [0.0, 1.5, 2.5, 4.0] if law == "harmonic" else []
    np.testing.assert_allclose(cam.acceleration_jumps, jumps, atol=1e-8)


def test_an_undercut_is_named_with_what_avoids_it() -> None:
    quick = [("35 deg", 0.02, "rise345"), ("160 deg", 0.02), ("280 deg", 0.0, "rise345")]
    with pytest.raises(ModelError, match=r"undercut from \d.*°; a base radius of at least .* or a roller of at most"):
        lw.cam_profile(quick, 0.04, lw.CamFollower(radius=0.02))
    cam = lw.cam_profile(quick, 0.04, lw.CamFollower(radius=0.02), check=False)
    assert cam.faults[0].kind == "undercut"
    assert cam.faults[0].begin <= cam.least_convex_radius.angle <= cam.faults[0].end
    assert cam.least_convex_radius.value < 0.0
    assert 0.02 < cam.least_hollow_radius.value < 0.1
    assert cam.least_hollow_radius.angle < cam.faults[0].begin
    least = cam.least_base_radius()
    assert least is not None
    for factor, kinds in ((1.0005, ()), (0.999, ("undercut",))):
        again = lw.cam_profile(quick, factor * least, lw.CamFollower(radius=0.02), check=False)
        assert tuple(fault.kind for fault in again.faults) == kinds
    with pytest.raises(ModelError, match="undercut"):
        lw.cam_profile(quick, 0.04, "flat")


def test_a_flat_cam_of_the_least_radius_comes_to_a_point() -> None:
    def law(angle: Any) -> Any:
        return 0.01 * np.cos(2.0 * angle)  # s + s″ is −0.03 at least

    with pytest.raises(ModelError, match=r"comes to a point at"):
        lw.cam_profile(law, 0.03, "flat")
    assert lw.cam_profile(law, 0.0301, "flat").least_convex_radius.value == pytest.approx(1e-4, abs=1e-12)


def test_a_roller_for_which_a_lobe_has_a_neck_is_refused() -> None:
    """The sides of the lobe would cross, which the curvature of the roller's path does not show."""
    lobe = [("30 deg", 0.1, "rise345"), ("40 deg", 0.1), ("70 deg", 0.0, "rise345")]
    cam = lw.cam_profile(lobe, 0.002, lw.CamFollower(radius=0.008), check=False)
    assert {fault.kind for fault in cam.faults} == {"interference"}
    assert cam.least_convex_radius.value > 0.0
    fault = cam.faults[0]
    near = cam.contact([0.5 * (fault.begin + fault.end)]).pitch - cam.points(2000)
    assert np.hypot(*near.T).min() < 0.0079
    with pytest.raises(ModelError, match="another part of the cam is in the way of the roller from"):
        lw.cam_profile(lobe, 0.002, lw.CamFollower(radius=0.008))
    assert lw.cam_profile(lobe, 0.05, lw.CamFollower(radius=0.008)).faults == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((motion_345(0.02), 0.0, "flat"), "base_radius is 0 m"),
        ((motion_345(0.02), -0.01, "flat"), "greater than zero"),
        ((motion_345(0.02), float("nan"), "flat"), "base_radius must be a finite number"),
        ((motion_345(0.02), "40 deg", "flat"), "base_radius is '40 deg'.*length"),
        ((motion_345(0.02), 0.03, 0.01), r"lw\.CamFollower\(radius="),
        ((motion_345(0.02), 0.01, lw.CamFollower(radius=0.005, offset=0.02)), "offset 0.02 m is not less"),
        ((motion_345(0.3), 0.03, lw.CamFollower(radius=0.01, pivot=0.2, arm=0.05)), "does not reach the prime circle"),
        ((motion_345(2.9), 0.04, OSCILLATING), "must stay between 0° and 180°"),
        ((motion_345(0.3), 0.3, FACE), "place the pivot farther away"),
        ((lambda a: lw.rise(a, 0.0, 0.0, 3.0, 0.01), 0.03, "flat"), "does not close.*let it end as it begins"),
        ((lambda a: 0.001 * (a - 6.0) * a, 0.03, "flat"), "does not close"),
        (
            (lambda a: lw.where(a < 2.0, 0.01, lw.where(a < 4.0, 0.0, 0.01)), 0.03, "flat"),
            r"displacement .* jumps at 114.6°",
        ),
        ((lambda a: lw.where(a < np.pi, a, 2 * np.pi - a) * 0.01, 0.03, "flat"), "velocity"),
        ((lambda a: np.log(a), 0.03, "flat"), "no finite number at 0°"),
        ((lambda a: np.array([a, a]), 0.03, "flat"), "one number for one angle"),
        ((lambda a: -0.05 + 0.01 * np.sin(a), 0.03, "flat"), "below the cam's axis"),
        (([(1.0, 20.0, "rise345"), (3.0, 0.0, "rise345")], 0.04, "flat"), "moves by 20 m .* '20 mm'"),
        (("rise345(x, 1, 0, 1, 1 mm)", 0.04, "flat"), "does not close"),
        (("1 mm / (x - x)", 0.04, "flat"), "divides by zero|no finite number"),
        ((Name("a") + Name("b"), 0.03, "flat"), "of one name, its angle; it has a, b"),
        (("3 * x +", 0.03, "flat"), "the motion of the cam is"),
        (([], 0.03, "flat"), r"give \[\(end, height, law\)"),
        (([(90.0, 0.02, "rise345"), (180.0, 0.0, "rise345")], 0.03, "flat"), "ends at 90 rad.*'90 deg'"),
        (([(1.0, "3 deg", "rise345")], 0.03, "flat"), "the height of segment 1"),
        (([(1.0,)], 0.03, "flat"), r"segment 1 of the cam is \(1.0,\)"),
        (([(1.0, np.inf, "rise345")], 0.03, "flat"), "height of segment 1 must be a finite number"),
        (([(1.0, 0.01, "rise345"), (0.5, 0.0, "rise345")], 0.03, "flat"), "is not after"),
    ],
)
def test_what_cannot_be_a_cam_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(LinkwrightError, match=message):
        lw.cam_profile(*arguments)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "a roller has a radius"),
        ({"radius": -0.01}, "is not negative"),
        ({"radius": "8 kg"}, "the radius of the follower is '8 kg'"),
        ({"contact": "flat", "radius": 0.01}, "has no roller"),
        ({"radius": 0.01, "pivot": 0.1}, "give arm="),
        ({"radius": 0.01, "arm": 0.1}, "pivot="),
        ({"radius": 0.01, "pivot": 0.1, "arm": 0.1, "offset": 0.01}, "offset is of followers that translate"),
        ({"contact": "flat", "pivot": 0.1, "arm": 0.1}, "leave the arm out"),
    ],
)
def test_what_cannot_be_a_follower_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        lw.CamFollower(**fields)


def test_laws_contacts_and_counts_are_checked() -> None:
    with pytest.raises(NameNotFound, match="cycloid"):
        lw.cam_profile([(1.0, 0.01, "cycloid"), (2.0, 0.0, "cycloidal")], 0.03, "flat")
    with pytest.raises(NameNotFound, match="mushroom"):
        lw.cam_profile(motion_345(0.02), 0.03, "mushroom")
    cam = lw.cam_profile(motion_345(0.02), 0.05, "flat", count=16)
    assert cam.points().shape == (720, 2)
    for call in (lambda: cam.points(3), lambda: cam.points(100, "length"), lambda: cam.contact([np.nan])):
        with pytest.raises(LinkwrightError):
            call()
