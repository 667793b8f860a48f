"""Points on curves and curves on curves move and load bodies as cranks, guides, rods, gears and the textbooks of cams
have it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import linkwright as lw
from linkwright.constraints.constraint_equations import Equations
from linkwright.errors import ModelError, NameNotFound
from newton_euler import Floats, motion_of

UPRIGHT = {"h": (0, 1, 0), "f": (1, 0, 0)}
E, R, ROLLER, MASS = 0.01, 0.03, 0.008, 0.4
RATE, LENGTH, TOP = 100.0, 0.3, 0.2  # of the spring above a follower


def swinging(guide: str) -> lw.Solution:
    """A heavy link that a spring turns, whose origin goes round on a crank, or on a circle; or slides on a line."""
    b = lw.Builder(guide)
    b.gravity((0.5, -9.81, 0))
    link = b.body("link", 1.3, com=(0.05, 0.02, 0), inertia=(0.001, 0.002, 0.003))
    corner = b.triad(b.ground, h=(0, 0, 1), f=(3, 1, 0), name="corner")
    if guide == "crank":
        arm = b.body("arm")
        b.joint("revolute", corner, arm, "crank")
        b.joint("revolute", b.triad(arm, (0.3, 0, 0), f=(3, -1, 0)), link, "turn")
    elif guide == "slide":
        runner = b.body("runner")
        b.joint("prismatic", b.triad(b.ground, h=(3, 1, 0), f=(0, 0, 1)), b.triad(runner, h=(3, 1, 0), f=(0, 0, 1)))
        b.joint("revolute", runner, link, "turn")
    else:
        b.place(link, (0.3 * 3 / np.sqrt(10), 0.3 / np.sqrt(10), 0) if guide == "circle" else (0, 0, 0))
        b.joint("planar", b.ground, link, "plane")
        size = {"circle": 0.3} if guide == "circle" else {"line": 4.0}
        b.point_on_curve(b.curve("guide", corner, **size), link, "pin")
    b.spring(b.triad(b.ground, (0.4, 0.3, 0), name="hook"), b.triad(link, (0.2, 0, 0), name="end"), 15.0, 0.2)
    settings: Any = {"method": "dop853", "rtol": 1e-11, "saving": lw.Saving(interval=0.05)}
    return lw.simulate(b.build(), 0.5, **settings)


@pytest.mark.parametrize(("curve", "joint"), [("circle", "crank"), ("line", "slide")])
def test_a_point_on_a_circle_moves_as_a_crank_and_on_a_line_as_a_slider(curve: str, joint: str) -> None:
    one, other = swinging(curve), swinging(joint)
    assert one.status, str(one.status)
    assert other.status
    for quantity in ("position", "velocity", "acceleration", "angular_acceleration"):
        exact = getattr(other, quantity)("link")
        np.testing.assert_allclose(getattr(one, quantity)("link"), exact, atol=1e-7 * np.abs(exact).max())
    assert np.ptp(one.position("link"), axis=0)[:2].min() > 0.02


def test_a_trammel_of_two_lines_draws_an_ellipse_and_so_does_a_point_on_that_ellipse() -> None:
    long, short = 0.3, 0.12
    with lw.Builder("trammel") as b:
        rod = b.body("rod", 1.0, inertia=(0.01, 0.01, 0.01))
        angle = 0.4
        b.place(
            rod, (long * np.cos(angle), short * np.sin(angle), 0), f=(-np.cos(angle), np.sin(angle), 0), h=(0, 0, 1)
        )
        b.joint("planar", b.ground, rod, "plane")
        # The rod's origin is its tracing point; it slides on the x axis at `short`, and on the y axis at `long`.
        for name, at, along in (("x", short, (1, 0, 0)), ("y", long, (0, 1, 0))):
            line = b.curve(f"{name} axis", b.triad(b.ground, f=along), line=1.0)
            b.point_on_curve(line, b.triad(rod, (at, 0, 0)), f"pin {name}")
        b.driver("joint", "plane", lambda t: np.pi - angle - t, index=2, name="motor")
        b.system(end=1.0, interval=0.05)
    sol = lw.analyse(b.build())
    assert sol.status
    x, y, _ = sol.position("rod").T
    assert np.abs((x / long) ** 2 + (y / short) ** 2 - 1.0).max() < 1e-9
    assert np.ptp(x) > 0.1


# -- disc cams ----------------------------------------------------------------------------------------------------
def cam(follower: str, shape: str = "expressions", analysis: Any = "inverse dynamic") -> lw.Builder:
    """An eccentric disc that turns under a follower with a flat face or a roller, and a spring on that."""
    b = lw.Builder("cam")
    b.gravity((0, 0, 0))
    e, r = b.parameter("e", E), b.parameter("r", R)
    shaft, tappet = b.body("shaft", 1.0, inertia=(0.01, 0.01, 0.002)), b.body("tappet", MASS)
    b.place(shaft)
    b.place(tappet, (0, R + E if follower == "flat" else 0.037, 0))
    b.joint("revolute", b.ground, shaft, "crank")
    b.joint("prismatic", b.triad(b.ground, **UPRIGHT), b.triad(tappet, **UPRIGHT), "slide")
    if shape == "circle":
        disc = b.curve("disc", b.triad(shaft, (e, 0, 0)), circle=r)
    elif shape == "points":
        u = np.linspace(0, 2 * np.pi, 180, endpoint=False)
        disc = b.curve("disc", shaft, np.stack([E + R * np.cos(u), R * np.sin(u)], axis=1), closed=True)
    else:
        disc = b.curve("disc", shaft, lambda u: (e + r * np.cos(u), r * np.sin(u)), closed=True)
    size = {"line": 0.1} if follower == "flat" else {"circle": ROLLER}
    b.curve_on_curve(disc, b.curve("face", tappet, **size), "touch")
    b.spring(b.triad(b.ground, (0, TOP, 0), name="top"), tappet, RATE, LENGTH)
    b.driver("joint", "crank", lambda t: 3 * t + 0.5 * t * t, name="motor")
    b.system(analysis=analysis, end=3.0, interval=0.02)
    return b


def lift(follower: str, angle: Floats, e: float = E, r: float = R) -> tuple[Floats, Floats]:
    """The height of the follower of an eccentric disc, and the pressure angle."""
    if follower == "flat":
        return r + e * np.sin(angle), 0.0 * angle
    side = e * np.cos(angle)
    return e * np.sin(angle) + np.sqrt((r + ROLLER) ** 2 - side**2), np.arcsin(np.abs(side) / (r + ROLLER))


@pytest.mark.parametrize("shape", ["expressions", "circle", "points"])
@pytest.mark.parametrize("follower", ["flat", "roller"])
def test_an_eccentric_disc_lifts_and_presses_a_follower_by_the_closed_form(follower: str, shape: str) -> None:
    sol = lw.analyse(cam(follower, shape).build())
    assert sol.status, str(sol.status)
    close = 1e-8 if shape == "points" else 1e-12
    angle, height = sol.joint("crank")[:, 0], sol.position("tappet")[:, 1]
    exact, pressure = lift(follower, angle)
    np.testing.assert_allclose(height, exact, atol=close)
    np.testing.assert_allclose(sol.series["touch.pressure_angle"].values, pressure, atol=1e3 * close)
    rate, change = angle * 0 + 3.0 + sol.time, 1.0
    h = 1e-4
    slope = (lift(follower, angle + h)[0] - lift(follower, angle - h)[0]) / (2 * h)
    second = (lift(follower, angle + h)[0] - 2 * exact + lift(follower, angle - h)[0]) / h**2
    acceleration = second * rate**2 + slope * change
    np.testing.assert_allclose(sol.acceleration("tappet")[:, 1], acceleration, atol=2e-4 if shape == "points" else 1e-5)
    load = MASS * sol.acceleration("tappet")[:, 1] + RATE * (LENGTH - TOP + height)
    force = sol.series["touch.force"].values
    np.testing.assert_allclose(force, load / np.cos(pressure), rtol=1e-5 if shape == "points" else 1e-9)
    assert force.min() > 5.0  # it presses all the time
    # The contact point is on the disc, and the motor gives what the follower and the shaft take.
    at = np.stack([sol.series[f"touch.{axis}"].values for axis in "xyz"], axis=1)
    np.testing.assert_allclose(at, sol.position("touch point"), atol=close)
    centre = E * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    np.testing.assert_allclose(np.linalg.norm(at - centre, axis=1), R, atol=close)
    power = load * sol.velocity("tappet")[:, 1] + 0.002 * rate
    np.testing.assert_allclose(sol.series["motor.torque"].values * rate, power, rtol=1e-6)


def test_newton_and_euler_hold_for_the_shaft_and_the_follower() -> None:
    sol = lw.analyse(cam("roller").build())
    m, force = motion_of(sol, ["shaft", "tappet"]), sol.series["touch.force"].values
    at = sol.position("touch point")
    centre = sol.position("tappet") * [1, 1, 0]
    push = force[:, None] * (centre - at) / ROLLER  # along the normal, through the centre of the roller
    spring = np.zeros_like(push)
    spring[:, 1] = -RATE * (LENGTH - TOP + m.p["tappet"][:, 1])
    slide = np.stack([sol.series[f"slide.f{axis}"].values for axis in "xyz"], axis=1)
    np.testing.assert_allclose(push + spring + slide, MASS * m.a["tappet"], atol=1e-9)
    bearing = np.stack([sol.series[f"crank.f{axis}"].values for axis in "xyz"], axis=1)
    np.testing.assert_allclose(bearing - push, 0.0 * push, atol=1e-9)
    # The moment of a joint contains its drive.
    moment = sol.series["crank.mz"].values - np.cross(at, push)[:, 2]
    np.testing.assert_allclose(moment, 0.002 * m.b["shaft"][:, 2], atol=1e-9)


def test_a_roller_cam_under_a_345_law_presses_as_by_hand() -> None:
    """A pitch curve of polar points: the centre of the roller is on it, and rises by the 3-4-5 polynomial."""
    base, rise, omega = 0.04, 0.012, 20.0
    u = np.linspace(0, 2 * np.pi, 720, endpoint=False)

    def programme(angle: Any) -> Any:
        return base + lw.cam(angle, 2 * np.pi, (2.0, rise, "rise345"), (3.0, rise, "dwell"), (5.5, 0.0, "rise345"))

    radius = programme(u)
    with lw.Builder("roller cam") as b:
        b.gravity((0, 0, 0))
        shaft, tappet = b.body("shaft", 1.0, inertia=(0.01, 0.01, 0.002)), b.body("tappet", MASS)
        b.place(tappet, (0, base, 0))
        b.joint("revolute", b.ground, shaft, "crank")
        b.joint("prismatic", b.triad(b.ground, **UPRIGHT), b.triad(tappet, **UPRIGHT), "slide")
        # The follower stands at 90°: the shaft turns by −angle, and the point of the profile at `angle` is there.
        turned = u + np.pi / 2
        pitch = b.curve(
            "pitch", shaft, np.stack([radius * np.cos(turned), radius * np.sin(turned)], axis=1), closed=True
        )
        b.point_on_curve(pitch, tappet, "pin")
        b.driver("joint", "crank", lambda t: -omega * t, name="motor")
        b.system(analysis="inverse dynamic", end=0.3, interval=0.002)
    sol = lw.analyse(b.build())
    angle = omega * sol.time
    assert np.abs(sol.position("tappet")[:, 1] - programme(angle)).max() < 2e-8
    h = 1e-4
    slope = (programme(angle + h) - programme(angle - h)) / (2 * h)
    second = (programme(angle + h) - 2 * programme(angle) + programme(angle - h)) / h**2
    pressure = np.arctan(np.abs(slope) / programme(angle))
    assert np.abs(sol.series["pin.pressure_angle"].values - pressure).max() < 1e-4
    force = MASS * second * omega**2 / np.cos(pressure)
    assert np.abs(np.abs(sol.series["pin.force"].values) - np.abs(force)).max() < 0.01 * np.abs(force).max()
    assert np.abs(force).max() > 1.0


# -- two circles ----------------------------------------------------------------------------------------------------
def circles(*, rolling: bool, ellipse: bool = False) -> lw.Mechanism:
    """A wheel on a carriage that a force presses against a wheel with a motor."""
    with lw.Builder("wheels") as b:
        b.gravity((0, 0, 0))
        one, two = (b.body(name, 1.0, inertia=(0.01, 0.01, size)) for name, size in (("one", 0.01), ("two", 0.02)))
        carriage = b.body("carriage", 0.5)
        side = {"h": (1, 0, 0), "f": (0, 1, 0)}
        b.joint("revolute", b.ground, one, "first")
        b.joint("prismatic", b.triad(b.ground, (0.05, 0, 0), **side), b.triad(carriage, **side), "slide")
        b.joint("revolute", carriage, two, "second")
        b.joint_force("slide", -20.0, name="push")
        rim = b.curve("rim", one, circle=0.02)
        if ellipse:
            rim = b.curve("oval", one, lambda u: (0.02 * np.cos(u), 0.017 * np.sin(u)), closed=True)
        wheel = b.curve("wheel", b.triad(two, f=(1, 1, 0)), circle=0.03)
        b.curve_on_curve(rim, wheel, "mesh", rolling=rolling)
        b.driver("joint", "first", lambda t: 5 * t + t * t, name="motor")
        b.system(analysis="inverse dynamic", end=1.5, interval=0.01)
    return b.build()


def test_a_circle_that_rolls_on_a_circle_turns_as_a_gear_pair() -> None:
    sol = lw.analyse(circles(rolling=True))
    assert sol.status, str(sol.status)
    np.testing.assert_allclose(sol.joint("second"), -2 / 3 * sol.joint("first"), atol=1e-11)
    np.testing.assert_allclose(sol.series["mesh.force"].values, 20.0, rtol=1e-9)
    np.testing.assert_allclose(np.abs(sol.series["mesh.friction"].values), 0.02 * (2 * 2 / 3) / 0.03, rtol=1e-9)


def test_an_ellipse_that_rolls_on_a_circle_lays_off_its_length() -> None:
    sol = lw.analyse(circles(rolling=True, ellipse=True))
    assert sol.status, str(sol.status)
    one, two = sol.series["mesh.u1"].values, np.unwrap(sol.series["mesh.u2"].values)
    u = np.linspace(0.0, 4.0 * np.pi, 400_001)
    speed = np.hypot(0.02 * np.sin(u), 0.017 * np.cos(u))
    arc = np.concatenate([[0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) * np.diff(u))])
    total = arc[len(u) // 2]
    along = np.unwrap(one, period=total)  # the parameter of a curve that rolls is its length
    np.testing.assert_allclose(np.abs(along - along[0]), 0.03 * np.abs(two - two[0]), atol=1e-12)
    # The same from the angles of the wheels: where they touch in ground's axes.
    at = np.stack([sol.series[f"mesh.{axis}"].values for axis in "xy"], axis=1)
    turn = sol.joint("first")[:, 0]
    x, y = at[:, 0] * np.cos(turn) + at[:, 1] * np.sin(turn), at[:, 1] * np.cos(turn) - at[:, 0] * np.sin(turn)
    place = np.unwrap(np.arctan2(y / 0.017, x / 0.02))
    length = np.interp(np.abs(place - place[0]), u, arc)
    np.testing.assert_allclose(np.abs(along - along[0]), length, atol=2e-9)


def test_circles_that_slide_keep_their_centres_as_a_rod_does() -> None:
    def pair(rod: bool) -> lw.Solution:
        b = lw.Builder("pair")
        b.gravity((0, -9.81, 0))
        bob = b.body("bob", 1.0, com=(0.01, 0.02, 0), inertia=(0.01, 0.01, 0.001))
        b.place(bob, (0.04, 0.03, 0))
        b.joint("planar", b.ground, bob, "plane")
        if rod:
            b.rod(b.ground, bob, 0.05, "link")
        else:
            first, second = b.curve("one", b.ground, circle=0.03), b.curve("two", bob, circle=0.02)
            b.curve_on_curve(first, second, "link")
        return lw.simulate(b.build(), 0.15, rtol=1e-11, method="dop853", saving=lw.Saving(interval=0.01))

    one, other = pair(False), pair(True)
    assert one.status, str(one.status)
    assert other.status
    np.testing.assert_allclose(one.position("bob"), other.position("bob"), atol=1e-9)
    np.testing.assert_allclose(one.acceleration("bob"), other.acceleration("bob"), atol=1e-6)


# -- ends, parameters and bad input -----------------------------------------------------------------------------------
def bead(speed: float = 3.0) -> lw.Mechanism:
    b = lw.Builder("slot")
    b.gravity((0, -9.81, 0))
    body = b.body("bead", 1.0, inertia=(0.01, 0.01, 0.01))
    b.place(body, (0.3, 0.01, 0))
    b.joint("planar", b.ground, body, "plane")
    b.point_on_curve(b.curve("slot", b.ground, lambda u: (u, 0.1 * u**2), ends=(-1, 0.5)), body, "pin")
    b.initial(b.rate("plane", 0), speed)
    b.system(analysis="dynamic", end=2.0, interval=0.01)
    return b.build()


def test_a_motion_ends_where_a_point_runs_off_an_open_curve() -> None:
    sol = lw.analyse(bead())
    assert not sol.status
    assert (sol.status.reason, sol.status.element) == ("off the curve", "pin")
    assert "runs off the end of curve 'slot'" in str(sol.status)
    assert 0.45 < sol.position("bead")[-1, 0] <= 0.5
    assert len(sol.series["pin.force"].values) == len(sol)
    x, y, _ = sol.position("bead").T
    np.testing.assert_allclose(y, 0.1 * x**2, atol=1e-9)


def test_energy_is_kept_on_a_curve() -> None:
    sol = lw.simulate(bead(0.3), 0.5, rtol=1e-11, saving=lw.Saving(interval=0.05))
    assert np.ptp(sol.energy()) < 1e-9 * np.abs(sol.energy()).max()


def test_numbers_of_curves_are_parameters_with_exact_derivatives() -> None:
    mech = cam("roller", analysis="kinematic").build()
    times = [0.0, 0.4, 0.7]
    slopes = lw.sensitivities(mech, "tappet.y", ("e", "r"), times=times).gradient()
    angle, h = 3.0 * np.array(times) + 0.5 * np.array(times) ** 2, 1e-6
    wanted = [
        (lift("roller", angle, E + x, R + y)[0] - lift("roller", angle, E - x, R - y)[0]) / (2 * h)
        for x, y in ((h, 0.0), (0.0, h))
    ]
    np.testing.assert_allclose(np.squeeze(slopes), np.transpose(wanted), rtol=1e-7)


def test_a_curve_is_refused_by_name() -> None:
    b = lw.Builder("bad")
    body = b.body("body", 1.0)
    circle = b.curve("circle", b.ground, circle=0.1)
    cases: list[tuple[Any, str]] = [
        (lambda: b.curve("c", body), "has no shapes"),
        (lambda: b.curve("c", body, circle=0.1, line=0.2), "has 2 shapes"),
        (lambda: b.curve("c", body, lambda u: (u, u, u)), "three coordinates"),
        (lambda: b.curve("c", body, lambda u: (u,)), "a function of 1 entries"),
        (lambda: b.curve("c", body, lambda: 1), "cannot be called with u"),
        (lambda: b.curve("c", body, [(0, 0), (1, np.nan), (2, 0)]), "its number 2; give finite numbers"),
        (lambda: b.curve("c", body, [(0, 0)]), "has 1 points; an open curve takes 2 to 2000"),
        (lambda: b.curve("c", body, [(0, 0, 0), (1, 0, 1)]), "is not in a plane"),
        (lambda: b.curve("c", body, lambda u: (abs(u), u), ends=(-1, 1)), "has a corner of 90° at u = 0"),
        (lambda: b.curve("circle", body, circle=0.1), "there is a curve 'circle' already"),
        (lambda: b.point_on_curve(circle, b.ground), "both on 'ground'"),
        (lambda: b.point_on_curve(circle, body, start=np.inf), "the start inf"),
    ]
    for make, text in cases:
        with pytest.raises(ModelError, match=text.replace("(", r"\(")):
            make()
    with pytest.raises(NameNotFound, match="circle"):
        b.point_on_curve("circel", body)


def test_the_slider_of_a_curve_cannot_be_locked() -> None:
    with pytest.raises(ModelError, match="'pin along' is part of a curve"):
        bead().lock({"pin along": 0.0})


def free_cam() -> lw.Mechanism:
    """An eccentric disc, driven by a torque of 1 N m, under a roller 6 mm beside the shaft with a spring."""
    upright = {"h": (0, 1, 0), "f": (1, 0, 0)}
    with lw.Builder("free") as b:
        b.gravity((0, 0, 0))
        e = b.parameter("e", 0.01)
        shaft, tappet = b.body("shaft", 1.0, inertia=(0.01, 0.01, 0.002)), b.body("tappet", 0.4)
        b.place(shaft)
        b.place(tappet, (0.006, 0.045, 0))
        b.joint("revolute", b.ground, shaft, "crank")
        b.joint("prismatic", b.triad(b.ground, (0.006, 0.0, 0), **upright), b.triad(tappet, **upright), "slide")
        disc = b.curve("disc", shaft, lambda u: (e + 0.03 * np.cos(u), 0.03 * np.sin(u)), closed=True)
        b.curve_on_curve(disc, b.curve("roller", tappet, circle=0.008), "touch")
        b.joint_spring("slide", 1000.0)
        b.applied_wrench(shaft, torque=(0, 0, 1.0))
    return b.build()


def test_a_cam_without_a_motor_moves_as_its_one_equation_of_motion() -> None:
    mech = free_cam()
    sol = lw.simulate(mech, 0.3, rtol=1e-9, saving=lw.Saving(interval=0.05))
    assert sol.status, sol.status

    def lift(angle: float) -> tuple[float, float, float]:
        """y of the roller's centre, and its derivatives by the angle."""
        x, dx, d2x = 0.006 - 0.01 * np.cos(angle), 0.01 * np.sin(angle), 0.01 * np.cos(angle)
        root = np.sqrt(0.038**2 - x**2)
        second = -dx - (dx**2 + x * d2x) / root - (x * dx) ** 2 / root**3
        return dx + root, d2x - x * dx / root, second

    def motion(t: float, state: Floats) -> list[float]:
        y, slope, second = lift(state[0])
        force = 1.0 - 1000.0 * y * slope - 0.4 * slope * second * state[1] ** 2
        return [state[1], force / (0.002 + 0.4 * slope**2)]

    start = [sol.joint("crank")[0, 0], 0.0]
    exact = solve_ivp(motion, (0.0, 0.3), start, rtol=1e-11, atol=1e-12, t_eval=sol.time)
    np.testing.assert_allclose(sol.joint("crank")[:, 0], exact.y[0], atol=1e-6 * np.ptp(exact.y[0]))
    assert np.ptp(exact.y[0]) > 3.0


def test_parameters_of_a_simulated_cam_are_refused_with_what_to_do() -> None:
    with pytest.raises(ModelError, match=r"curve on curve 'touch' brings massless bodies along.*by lw\.sweep"):
        free_cam().program("forward_dynamics", free=("e",))


def test_refusals_name_a_contact_as_the_model_does() -> None:
    mech = free_cam()
    assert "curve on curve 'touch'" in map(str, Equations(mech.description).constraints)
    assert "point on curve 'pin'" in map(str, Equations(bead().description).constraints)
    with pytest.raises(ModelError, match="curve on curve 'touch'"):
        lw.equations(mech)
