"""Every joint kind in a loop, every tie, gear and kind of driver, on small mechanisms with known motions.

They stand beside each other in one model: they do not touch, and are analysed together.
"""

import numpy as np
import pytest
from linkages import about_z, matrices, unit

import linkwright as lw
from linkwright.model.expression import TIME

ALONG_X = {"h": (1.0, 0.0, 0.0), "f": (0.0, 1.0, 0.0)}
ALONG_Y = {"h": (0.0, 1.0, 0.0), "f": (0.0, 0.0, 1.0)}
PITCH, RATIO, OFFSET, RADIUS = 0.03, -2.7, 0.4, 0.25
SUN, PLANET, RING = 20.0, 16.0, 52.0
TURN = 3.0 * TIME + np.sin(TIME)  # goes through more than two turns
CRANK, ROD, ROCKER, APART = 0.5, 1.4, 0.9, np.array([0.3, 1.1, 0.2])  # of the crank and rocker across


def turn(t):
    return 3.0 * t + np.sin(t)


def _screw(b):
    """A spindle turns on ground; a nut on its thread cannot turn."""
    spindle, nut = b.body("spindle"), b.body("nut")
    pivot = b.joint("revolute", b.triad(b.ground), b.triad(spindle, origin=(0.1, 0.2, 0.0)), "spindle pivot")
    b.joint("screw", b.triad(spindle, origin=(0.1, 0.2, 0.0)), b.triad(nut), "thread", pitch=PITCH)
    b.joint("prismatic", b.triad(b.ground), b.triad(nut), "nut guide")
    b.driver("joint", pivot, TURN)


def _gears(b):
    """A pair of wheels of no whole ratio, and a rack."""
    for name in ("pinion", "wheel", "rack"):
        b.body(name)
    first = b.joint("revolute", b.triad(b.ground, origin=(0, 3, 0)), b.triad("pinion", origin=(0.1, 0, 0)), "pinion")
    second = b.joint("revolute", b.triad(b.ground, origin=(0, 4, 0), **ALONG_X), b.triad("wheel"), "wheel")
    third = b.joint("prismatic", b.triad(b.ground, origin=(0, 5, 0), **ALONG_X), b.triad("rack", **ALONG_X), "rack")
    b.mimic(second, first, RATIO, OFFSET)
    b.mimic(third, first, RADIUS)
    b.driver("angle", b.triad(b.ground), TURN, other="pinion")


def _planetary(b):
    """Sun, planet and a still ring on a carrier: all teeth are told relative to the carrier."""
    carrier, sun, planet, ring = (b.body(name) for name in ("carrier", "sun", "planet", "ring"))
    b.joint("revolute", b.ground, carrier, "carrier pivot")
    on_carrier = b.joint("revolute", carrier, sun, "sun on carrier")
    spins = b.joint("revolute", b.triad(carrier, origin=(0.36, 0, 0)), planet, "planet pin")
    rings = b.joint("revolute", carrier, ring, "ring on carrier")
    b.joint("fixed", b.ground, ring, "ring held")
    b.mimic(spins, on_carrier, -SUN / PLANET)
    b.mimic(rings, on_carrier, -SUN / RING)
    b.driver("angle", b.ground, TURN, other=sun)


def _rod(b):
    """A crank about z and a rocker about x, with a rod between them: an RSSR linkage."""
    crank, rocker = b.body("rod crank"), b.body("rod rocker")
    pivot = b.joint("revolute", b.ground, crank, "rod crank pivot")
    b.joint("revolute", b.triad(b.ground, origin=APART, **ALONG_X), b.triad(rocker), "rod rocker pivot")
    b.place(rocker, APART, h=(1, 0, 0), f=(0, 0, 1))
    b.triad(rocker, origin=(ROCKER, 0, 0), name="rod to")
    b.rod(b.triad(crank, origin=(CRANK, 0, 0)), "rod to", ROD)
    b.driver("joint", pivot, TURN)


def _yoke(b):
    """A crank pin, on a cylindrical joint, in a slot across a yoke; a plate is welded to the yoke."""
    crank, stone, yoke, plate = (b.body(n) for n in ("yoke crank", "stone", "yoke", "plate"))
    b.place(stone, (CRANK, 0, 0))
    b.place(yoke, (CRANK, 0, 0))
    b.place(plate, (CRANK, 0, 0.5))
    pivot = b.joint("revolute", b.ground, crank, "yoke crank pivot")
    b.joint("cylindrical", b.triad(crank, origin=(CRANK, 0, 0)), b.triad(stone), "pin")
    b.joint("prismatic", b.triad(yoke, **ALONG_Y), b.triad(stone, **ALONG_Y), "slot")
    b.joint("prismatic", b.triad(b.ground, **ALONG_X), b.triad(yoke, **ALONG_X), "yoke guide")
    b.joint("fixed", b.triad(yoke, origin=(0, 0, 0.5)), plate, "weld")
    b.driver("joint", pivot, TURN)
    # The same by a point on a line.
    other = b.body("line yoke")
    b.place(other, (CRANK, 0, 0))
    b.joint("prismatic", b.triad(b.ground, **ALONG_X), b.triad(other, **ALONG_X), "line yoke guide")
    b.point_on_plane(b.triad(other, **ALONG_X), b.triad(crank, origin=(CRANK, 0, 0.3)))


def _trammel(b):
    """A bar in the plane whose ends are on the axes, driven by the angle of its planar joint."""
    bar = b.body("trammel")
    b.place(bar, (0.0, 0, 0.2))
    plane = b.joint("planar", b.triad(b.ground, origin=(0, 0, 0.2)), bar, "plane")
    b.point_on_line(b.triad(b.ground, origin=(0, 0, 0.2), **ALONG_X), b.triad(bar, origin=(1.2, 0, 0)))
    b.point_on_line(b.triad(b.ground, origin=(0, 0, 0.2), **ALONG_Y), b.triad(bar, name="trammel end"))
    b.driver("joint", plane, TURN, index=2)


def _table(b):
    """A tilting table lifts a plunger; the tilt is told by an angle between axes that are not parallel."""
    table, plunger = b.body("table"), b.body("plunger")
    b.joint("revolute", b.triad(b.ground, **ALONG_Y), b.triad(table, **ALONG_Y), "hinge")
    b.joint("prismatic", b.triad(b.ground, origin=(0.8, 0.1, 0)), plunger, "plunger guide")
    b.point_on_plane(table, plunger)
    b.place(table, rotation=_about_y(0.3))
    law = np.pi / 2 + 0.3 + 0.5 * np.sin(TIME)
    b.driver("angle", b.triad(b.ground, name="upright"), law, other=table, axes=("h", "f"))


def _about_y(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def _hoist(b):
    """An arm lifted by a cylinder between a point of ground and its end."""
    arm = b.body("arm")
    b.place(arm, rotation=about_z(0.8))
    b.joint("revolute", b.ground, arm, "arm pivot")
    foot, end = b.triad(b.ground, origin=(1.0, 0, 0)), b.triad(arm, origin=(0.7, 0, 0))
    b.driver("distance", foot, 0.9 + 0.3 * np.sin(TIME), other=end)


def _carried(b):
    """A body without a joint, carried by coordinates of three of its points."""
    body = b.body("carried")
    b.place(body, (0.1, 0.2, 0.3))
    b.joint("free", b.ground, body, "carried freely")
    b.triad(body, origin=(1, 0, 0), name="ahead")
    b.triad(body, origin=(0, 1, 0), name="aside")
    for place, axis, law in CARRIED:
        b.driver("absolute", place, law, coordinate=axis)


CARRIED = (
    ("carried", "x", 0.1 + 0.2 * TIME),
    ("carried", "y", 0.2 * np.cos(TIME)),
    ("carried", "z", 0.3 + 0.0 * TIME),
    ("ahead", "y", 0.2 * np.cos(TIME) + 0.4 * np.sin(TIME)),
    ("ahead", "z", 0.3 + 0.1 * np.sin(2 * TIME)),
    ("aside", "z", 0.3 - 0.2 * np.sin(TIME)),
)


@pytest.fixture(scope="module")
def sol():
    with lw.Builder("many") as b:
        for part in (_screw, _gears, _planetary, _rod, _yoke, _trammel, _table, _hoist, _carried):
            part(b)
    found = lw.analyse(b.build(), times=np.linspace(0.0, 6.0, 121))
    assert found.status, found.status
    return found


def _turned(sol, name, angle, atol=1e-9):
    """A body has turned about z by these angles."""
    np.testing.assert_allclose(matrices(sol.orientation(name)), [about_z(a) for a in angle], atol=atol)


def test_a_nut_moves_along_its_screw_through_all_turns(sol):
    np.testing.assert_allclose(sol.position("nut")[:, 2], -PITCH * turn(sol.time), atol=1e-10)
    np.testing.assert_allclose(sol.velocity("nut")[:, 2], -PITCH * (3.0 + np.cos(sol.time)), atol=1e-9)
    np.testing.assert_allclose(sol.acceleration("nut")[:, 2], PITCH * np.sin(sol.time), atol=1e-9)


def test_the_coordinate_of_a_screw_counts_its_turns(sol):
    np.testing.assert_allclose(sol.joint("thread")[:, 0], -turn(sol.time), atol=1e-8)


def test_wheels_turn_by_a_ratio_that_is_no_whole_number(sol):
    np.testing.assert_allclose(sol.joint("wheel")[:, 0], RATIO * turn(sol.time) + OFFSET, atol=1e-9)
    np.testing.assert_allclose(sol.angular_velocity("wheel")[:, 0], RATIO * (3.0 + np.cos(sol.time)), atol=1e-9)


def test_a_rack_moves_by_the_radius_of_its_pinion(sol):
    np.testing.assert_allclose(sol.joint("rack")[:, 0], RADIUS * turn(sol.time), atol=1e-10)


def test_an_angle_between_parallel_axes_is_followed_through_all_turns(sol):
    np.testing.assert_allclose(sol.joint("pinion")[:, 0], turn(sol.time), atol=1e-9)


def test_a_planetary_train_obeys_willis(sol):
    _turned(sol, "sun", turn(sol.time))
    carrier = turn(sol.time) * SUN / (SUN + RING)
    _turned(sol, "carrier", carrier)
    _turned(sol, "planet", carrier - (turn(sol.time) - carrier) * SUN / PLANET)
    np.testing.assert_allclose(sol.angular_velocity("ring"), 0.0, atol=1e-12)


def test_a_rod_moves_its_rocker_as_the_input_output_equation_of_an_rssr_linkage_says(sol):
    tip = CRANK * unit(turn(sol.time))
    end = sol.position("rod to") - APART
    psi = np.unwrap(np.arctan2(end[:, 2], end[:, 1]))
    # |APART + ROCKER (0, cos ψ, sin ψ) − tip|² = ROD²
    d = APART - tip
    a, c = 2 * ROCKER * d[:, 2], 2 * ROCKER * d[:, 1]
    rest = ROD**2 - np.sum(d**2, axis=1) - ROCKER**2
    np.testing.assert_allclose(a * np.sin(psi) + c * np.cos(psi), rest, atol=1e-10)
    # Of its two solutions always the same one.
    solutions = np.arctan2(a, c)[:, None] + np.arccos(rest / np.hypot(a, c))[:, None] * [1.0, -1.0]
    off = np.abs(np.exp(1j * solutions) - np.exp(1j * psi)[:, None])
    assert np.max(np.min(off, axis=1)) < 1e-9
    assert len(set(np.argmin(off, axis=1))) == 1
    np.testing.assert_allclose(end[:, 0], 0.0, atol=1e-12)


@pytest.mark.parametrize("name", ["yoke", "line yoke"])
def test_a_scotch_yoke_moves_with_the_cosine(sol, name):
    angle, rate = turn(sol.time), 3.0 + np.cos(sol.time)
    np.testing.assert_allclose(sol.position(name)[:, 0], CRANK * np.cos(angle), atol=1e-10)
    np.testing.assert_allclose(sol.velocity(name)[:, 0], -CRANK * np.sin(angle) * rate, atol=1e-9)
    second = -CRANK * (np.cos(angle) * rate**2 - np.sin(angle) * np.sin(sol.time))
    np.testing.assert_allclose(sol.acceleration(name)[:, 0], second, atol=1e-8)


def test_a_body_that_is_welded_on_moves_along(sol):
    np.testing.assert_allclose(sol.position("plate") - sol.position("yoke"), [[0, 0, 0.5]] * len(sol), atol=1e-11)


def test_a_trammel_keeps_its_ends_on_the_axes(sol):
    np.testing.assert_allclose(sol.joint("plane")[:, 2], turn(sol.time), atol=1e-9)
    np.testing.assert_allclose(sol.position("trammel end")[:, 1], -1.2 * np.sin(turn(sol.time)), atol=1e-10)
    np.testing.assert_allclose(sol.position("trammel end")[:, 0], 0.0, atol=1e-10)


def test_a_plunger_rides_on_a_table_whose_tilt_is_an_angle_in_space(sol):
    tilt = 0.3 + 0.5 * np.sin(sol.time)
    np.testing.assert_allclose(sol.position("plunger")[:, 2], -0.8 * np.tan(tilt), atol=1e-10)
    rate = 0.5 * np.cos(sol.time)
    np.testing.assert_allclose(sol.velocity("plunger")[:, 2], -0.8 * rate / np.cos(tilt) ** 2, atol=1e-9)


def test_a_distance_turns_an_arm_by_the_law_of_cosines(sol):
    length = 0.9 + 0.3 * np.sin(sol.time)
    angle = np.arccos((1.0 + 0.49 - length**2) / 1.4)
    np.testing.assert_allclose(sol.joint("arm pivot")[:, 0], angle, atol=1e-10)
    rate = 2 * length * 0.3 * np.cos(sol.time) / (1.4 * np.sin(angle))
    np.testing.assert_allclose(sol.angular_velocity("arm")[:, 2], rate, atol=1e-9)


@pytest.mark.parametrize(("place", "axis", "law"), CARRIED, ids=[f"{p}.{a}" for p, a, _ in CARRIED])
def test_a_point_is_carried_by_its_coordinate(sol, place, axis, law):
    k, h = "xyz".index(axis), 1e-4
    f = [law.evaluate({"TIME": sol.time + s}) + 0.0 * sol.time for s in (-h, 0.0, h)]
    np.testing.assert_allclose(sol.position(place)[:, k], f[1], atol=1e-11)
    np.testing.assert_allclose(sol.velocity(place)[:, k], (f[2] - f[0]) / (2 * h), atol=1e-8)
    np.testing.assert_allclose(sol.acceleration(place)[:, k], (f[2] - 2 * f[1] + f[0]) / h**2, atol=1e-6)
