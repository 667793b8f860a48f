"""Mechanisms with more equations than they need move all the same, and what is redundant is named."""

from typing import Any

import numpy as np
import pytest
from linkages import bar, four_bar, kinematics, matrices, pin, unit
from scipy.optimize import fsolve

import linkwright as lw
from linkwright.model.expression import TIME

LENGTHS = (1.0, 3.0, 2.5, 3.0)


def _turn(axis, angle):
    c, s = np.cos(angle), np.sin(angle)
    if axis == "x":
        return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def test_a_planar_four_bar_of_revolute_joints_has_three_redundant_equations():
    mech = four_bar(LENGTHS, 0.3 + TIME, 0.3)
    k = kinematics(mech)
    report = k.freedom(k.assemble(0.0, 1e-3), 0.0)
    assert (report.coordinates, report.equations, report.rank, report.left) == (18, 21, 18, 0)
    # What leaves the plane is said once too often: a shift along h and two turns, of the last joint.
    assert [name.split(":")[0] for name in report.redundant] == ["joint 'D'"] * 3
    motions = "translation along its axis", "rotation about (0, 1, 0)", "rotation about (1, 0, 0)"
    assert {name.split(": ")[1] for name in report.redundant} == set(motions)
    joined = "joint 'D': translation along its axis, rotations about (0, 1, 0) and (1, 0, 0), which other joints"
    assert any(f"3 equations are redundant, such as {joined}" in note for note in k.motion(np.array([0.0, 0.1])).notes)


def test_the_same_four_bar_with_a_spherical_and_a_cylindrical_joint_has_none():
    mech = four_bar(LENGTHS, 0.3 + TIME, 0.3, kinds=("revolute", "cylindrical", "spherical", "revolute"))
    k = kinematics(mech)
    report = k.freedom(k.assemble(0.0, 1e-3), 0.0)
    assert (report.equations, report.rank, report.redundant, report.left) == (18, 18, (), 0)


def test_without_its_motor_a_four_bar_has_one_freedom_that_moves_all_its_bars():
    k = kinematics(four_bar(LENGTHS, None, 0.3))
    report = k.freedom(k.assemble(0.0, 1e-3), 0.0)
    assert (report.left, report.moving) == (1, ("crank", "coupler", "rocker"))


# -- Bennett's linkage ----------------------------------------------------------------------------------------------
A, ALPHA, BETA = 1.0, 0.6, 1.1
B = A * np.sin(BETA) / np.sin(ALPHA)


def _link(length, twist):
    """From one axis to the next: along x, then a twist about it."""
    return _turn("x", twist), np.array([length, 0.0, 0.0])


def _bennett_second(first):
    """The second angle by the first: tan(θ₁/2) tan(θ₂/2) = sin(½(β + α)) / sin(½(β − α))."""
    return 2.0 * np.arctan2(np.sin((BETA + ALPHA) / 2), np.sin((BETA - ALPHA) / 2) * np.tan(first / 2))


@pytest.fixture(scope="module")
def bennett():
    r1, p1 = _link(A, ALPHA)
    r2, p2 = _link(B, BETA)
    start = 0.7
    with lw.Builder("Bennett") as b:
        one, two, three = (b.body(name) for name in ("one", "two", "three"))
        first = b.joint("revolute", b.ground, one, "first")
        b.joint("revolute", b.frame(one, r1, p1), two, "second")
        b.joint("revolute", b.frame(two, r2, p2), three, "third")
        b.joint("revolute", b.frame(three, r1, p1), b.frame(b.ground, r2.T, -r2.T @ p2), "fourth")
        at = _turn("z", start)
        b.place(one, rotation=at)
        b.place(two, at @ p1, rotation=at @ r1 @ _turn("z", _bennett_second(start)))
        at2 = at @ r1 @ _turn("z", _bennett_second(start))
        b.place(three, at @ p1 + at2 @ p2, rotation=at2 @ r2 @ _turn("z", -start))
        b.driver("joint", first, start + TIME, name="motor")
    return b.build()


def test_bennett_s_linkage_moves_against_the_count_of_its_equations(bennett):
    k = kinematics(bennett)
    start = k.assemble(0.0, 1e-3)
    report = k.freedom(start, 0.0)
    assert (report.equations, report.rank, report.left, len(report.redundant)) == (21, 18, 0, 3)
    sol = lw.analyse(bennett, times=np.linspace(0.0, 6.0, 61))
    assert sol.status, sol.status
    first, second = 0.7 + sol.time, sol.joint("second")[:, 0]
    np.testing.assert_allclose(np.exp(1j * second), np.exp(1j * _bennett_second(first)), atol=1e-9)
    # Opposite angles are equal and opposite.
    np.testing.assert_allclose(np.exp(1j * sol.joint("third")[:, 0]), np.exp(-1j * first), atol=1e-9)


def test_the_velocity_of_bennett_s_linkage_is_the_derivative_of_its_angle_equation(bennett):
    sol = lw.analyse(bennett, times=np.linspace(0.0, 2.0, 21))
    h = 1e-5
    rate = np.angle(np.exp(1j * (_bennett_second(0.7 + sol.time + h) - _bennett_second(0.7 + sol.time - h)))) / (2 * h)
    np.testing.assert_allclose(sol.joint_rate("second")[:, 0], rate, atol=1e-8)


# -- a parallelogram with an extra bar --------------------------------------------------------------------------------
def test_a_parallelogram_with_an_extra_parallel_bar_moves_through_its_change_points():
    start = 0.8
    with lw.Builder("three cranks") as b:
        coupler = bar(b, "coupler", unit(start), np.add(unit(start), [2.0, 0, 0]))
        for k, at in enumerate(np.array([(0.0, 0.0, 0.0), (0.7, 0.5, 0.0), (2.0, 0.0, 0.0)])):
            crank = bar(b, f"crank{k}", at, unit(start) + at)
            foot = pin(b, "revolute", b.ground, at, crank, (0, 0, 0), f"foot{k}")
            pin(b, "revolute", crank, (1, 0, 0), coupler, at, f"pin{k}")
            if k == 0:
                b.driver("joint", foot, start + TIME, name="motor")
    mech = b.build()
    k = kinematics(mech)
    report = k.freedom(k.assemble(0.0, 1e-3), 0.0)
    # Twice three that leave the plane, and one that the extra bar repeats in it.
    assert (report.left, len(report.redundant)) == (0, 7)
    sol = lw.analyse(mech, times=np.linspace(0.0, 7.0, 71))
    assert sol.status, sol.status
    np.testing.assert_allclose(sol.position("coupler"), unit(start + sol.time), atol=1e-8)
    np.testing.assert_allclose(matrices(sol.orientation("coupler")), [np.eye(3)] * len(sol), atol=1e-8)
    # With a crank beside the line of the two others there is no other branch: nothing singular is met.
    assert not any("singular" in note for note in sol.status.notes)


# -- an independent solution ------------------------------------------------------------------------------------------
def test_a_six_bar_moves_as_its_hand_written_equations_say():
    """Watt's chain: a four-bar whose rocker drives a second one."""
    lengths, second = (1.0, 3.0, 2.5, 3.0), (1.2, 2.2, 1.6)
    far = np.array([3.0, 0.0, 0.0])
    last = np.array([5.0, 0.3, 0.0])

    def closes(x, angle):
        coupler, rocker, link, end = x
        one = unit(angle) + lengths[1] * unit(coupler) - far - lengths[2] * unit(rocker)
        two = far + second[0] * unit(rocker + 0.4) + second[1] * unit(link) - last - second[2] * unit(end)
        return [*one[:2], *two[:2]]

    start = fsolve(closes, [0.6, 1.9, 0.0, 1.2], args=(0.4,), xtol=1e-14)
    points = [unit(0.4), far, far + second[0] * unit(start[1] + 0.4), last]
    with lw.Builder("six-bar") as b:
        crank, coupler = bar(b, "crank", (0, 0, 0), unit(0.4)), bar(b, "coupler", points[0], points[0] + unit(start[0]))
        rocker = bar(b, "rocker", far, far + unit(start[1]))
        link, end = bar(b, "link", points[2], points[2] + unit(start[2])), bar(b, "end", last, last + unit(start[3]))
        motor = pin(b, "revolute", b.ground, (0, 0, 0), crank, (0, 0, 0), "A")
        pin(b, "revolute", crank, (1, 0, 0), coupler, (0, 0, 0), "B")
        pin(b, "revolute", coupler, (lengths[1], 0, 0), rocker, (lengths[2], 0, 0), "C")
        pin(b, "revolute", b.ground, far, rocker, (0, 0, 0), "D")
        pin(b, "revolute", rocker, second[0] * unit(0.4), link, (0, 0, 0), "E")
        pin(b, "revolute", link, (second[1], 0, 0), end, (second[2], 0, 0), "F")
        pin(b, "revolute", b.ground, last, end, (0, 0, 0), "G")
        b.driver("joint", motor, 0.4 + TIME)
    sol = lw.analyse(b.build(), times=np.linspace(0.0, 1.5, 31))
    assert sol.status, sol.status
    found = np.array(start)
    for k, t in enumerate(sol.time):
        found = fsolve(closes, found, args=(0.4 + t,), xtol=1e-14)
        for name, angle in zip(("coupler", "rocker", "link", "end"), found, strict=True):
            along = matrices(sol.orientation(name)[k : k + 1])[0, :, 0]
            np.testing.assert_allclose(along, unit(angle), atol=1e-9)


@pytest.mark.parametrize("digits", [9, 7, 6, 4])
def test_a_rounded_parallelogram_in_a_tilted_plane_is_assembled_where_it_is_drawn(digits: int) -> None:
    """Its axes are parallel but for rounding, which leaves isolated positions that close exactly: these are far."""
    axes = np.linalg.qr(np.array([[0.9, 0.0, 0.4], [0.2, 0.9, -0.4], [-0.4, 0.4, 0.8]]))[0]
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    crank = np.array([np.cos(0.9), np.sin(0.9), 0.0])

    def rounded(x: Any) -> Any:
        return np.round(axes @ np.asarray(x, dtype=float), digits)

    with lw.Builder("tilted") as b:
        places = {"first": (np.zeros(3), crank), "second": ((0.8137, 0, 0), crank), "platform": (crank, (1, 0, 0))}
        for name, (origin, along) in places.items():
            b.body(name, 1.0, (0.5, 0, 0), (0.1, 0.1, 0.1))
            b.place(name, rounded(origin), h=rounded((0, 0, 1)), f=rounded(along))
        for name, x in (("first", 0.0), ("second", 0.8137)):
            foot = b.triad(b.ground, rounded((x, 0, 0)), h=rounded((0, 0, 1)), f=rounded((1, 0, 0)))
            b.joint("revolute", foot, b.triad(name), f"{name} foot")
            b.joint("revolute", b.triad(name, (1, 0, 0)), b.triad("platform", (x, 0, 0)), f"{name} pin")
    q, _ = b.build().initial_state()
    assert np.allclose(np.abs(q), 0.9, rtol=0, atol=20 * 10.0**-digits)
