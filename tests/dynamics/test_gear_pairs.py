"""Gear pairs move bodies, and load bearings and carriers, as Newton, Euler and the textbooks of gears have it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import linkwright as lw
from gear_cases import ALPHA, IDS, PAIRS, Floats, Pair
from linkwright.errors import ModelError
from mechanism_parts import GROUND, Drawn, Joint, Solid, rotation
from newton_euler import Balance, Motion, motion_of

GRAVITY = np.array([1.0, -2.0, -9.81])
HERE = (np.eye(3), np.zeros(3))
AXIS = rotation(np.array([1.0, 2.0, 0.5]), 0.8)  # of the hinge that carries a pair


def solid(mass: float, size: float) -> Solid:
    inertia = mass * size**2 * np.diag([1.0, 1.3, 1.7])
    return Solid(mass, size * np.array([0.3, -0.2, 0.1]), inertia)


def carried(pair: Pair, driven: str = "") -> tuple[lw.Mechanism, Drawn]:
    """Both gears on an arm that swings about a skew axis: its hinge is free, and a torque turns the first gear; or the
    hinge and the joint of one gear are driven."""
    solids = {"arm": solid(2.0, 0.1), "one": solid(0.7, 0.02), "two": solid(1.1, 0.03)}
    slide = "prismatic" if pair.slides else "revolute"
    joints = {
        "swing": ("revolute", GROUND, "arm", (AXIS, np.array([0.1, 0.2, 0.3])), (AXIS, np.array([0.02, -0.05, 0.01]))),
        "first": ("revolute", "arm", "one", HERE, HERE),
        "second": (slide, "arm", "two", (pair.turn, pair.centre), HERE),
    }
    drawn, b = Drawn(0, GRAVITY, solids), lw.Builder("carried")
    b.gravity(GRAVITY)
    bodies: dict[str, Any] = {GROUND: b.ground}
    for name, x in solids.items():
        bodies[name] = b.body(name, x.mass, x.com, x.inertia)
    for name, (kind, parent, child, i, j) in joints.items():
        b.joint(kind, b.frame(bodies[parent], *i), b.frame(bodies[child], *j), name)
        drawn.joints[name] = Joint(name, kind, parent, child, i, j, np.zeros(1), 0.0, 0.0, False)
    b.gear_pair("one", "two", pair.kind, name="mesh", **pair.keywords)
    if driven:
        b.driver("joint", "swing", lambda t: 0.4 * np.sin(5.0 * t), name="arm")
        speed = 9.0 if not pair.slides else 9.0 if driven == "first" else 0.1
        b.driver("joint", driven, lambda t: speed * t - 3.0 * speed * t**2, name="motor")
        b.system(analysis="inverse dynamic", end=0.6, interval=0.05)
    else:
        b.joint_force("first", lambda t: 0.3 + 4.0 * np.sin(30.0 * t), name="motor")
        b.system(analysis="dynamic", method="dop853", end=0.3, interval=0.02)
    return b.build(), drawn


def vector(series: Any, name: str, letter: str) -> Floats:
    return np.stack([series[f"{name}.{letter}{axis}"].values for axis in "xyz"], axis=1)


def teeth(m: Motion, pair: Pair, force: Floats, frame: str = "arm") -> tuple[Floats, Floats]:
    """Where a pair that a body carries touches, and what the second's teeth do to the first's."""
    push = force[:, None] * pair.push - np.abs(force)[:, None] * pair.apart
    return m.point(frame, pair.at), np.einsum("tij,tj->ti", m.r[frame], push)


def balanced(sol: lw.Solution, drawn: Drawn, joints: list[str]) -> Balance:
    """With what the joints exert, as the solution's series say."""
    balance = Balance(drawn, motion_of(sol, list(drawn.solids)))
    for name in joints:
        joint = drawn.joints[name]
        at = balance.motion.point(joint.child, joint.j[1])
        balance.between((joint.child, joint.parent), at, vector(sol.series, name, "f"), vector(sol.series, name, "m"))
    return balance


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_newton_and_euler_hold_for_every_body_of_a_pair_on_a_swinging_arm(pair: Pair) -> None:
    mech, drawn = carried(pair)
    sol = lw.analyse(mech)
    assert sol.status, str(sol.status)
    balance = balanced(sol, drawn, ["swing", "first", "second"])
    force = sol.series["mesh.force"].values
    assert force.min() < -1.0 < 1.0 < force.max()  # the teeth push both ways
    at, push = teeth(balance.motion, pair, force)
    balance.between(("one", "two"), at, push, np.zeros(3))
    assert np.abs(balance.residual()).max() < 1e-9
    # no slip along the push: the teeth exert no power
    m = balance.motion
    slip = m.velocity("one", at) - m.velocity("two", at)
    power, size = np.sum(push * slip, axis=1), np.abs(push * m.velocity("one", at)).max()
    assert np.abs(power).max() < 1e-9 * size
    first, second = (sol.joint_rate(name) for name in ("first", "second"))
    np.testing.assert_allclose(second, pair.ratio * first, atol=1e-9 * np.abs(first).max())


@pytest.mark.parametrize("driven", ["first", "second"])
@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_a_driver_on_either_gear_moves_both_and_its_force_is_what_they_need(pair: Pair, driven: str) -> None:
    mech, drawn = carried(pair, driven)
    assert mech.dof().left == 0
    sol = lw.analyse(mech)
    assert sol.status, str(sol.status)
    first, second = (sol.joint(name) for name in ("first", "second"))
    np.testing.assert_allclose(second, pair.ratio * first, rtol=1e-11, atol=1e-13)
    assert np.abs(first if driven == "first" else second).max() > (2.0 if not pair.slides else 0.02)
    balance = balanced(sol, drawn, ["swing", "first", "second"])
    at, push = teeth(balance.motion, pair, sol.series["mesh.force"].values)
    balance.between(("one", "two"), at, push, np.zeros(3))
    assert np.abs(balance.residual()).max() < 1e-9


# -- gear trains --------------------------------------------------------------------------------------------------
SUN, PLANET, RING, MODULE = 24, 18, 60, 0.002
CENTRES = MODULE * (SUN + PLANET) / 2


def planetary(planets: int, speed: float = 0.0) -> lw.Mechanism:
    """Sun and carrier about ground's z, a ring that ground carries, and planets on the carrier's pins; a driven sun."""
    b = lw.Builder("planetary")
    b.gravity((0.0, 0.0, 0.0))
    sun = b.body("sun", 0.5, inertia=(1e-4, 1e-4, 2e-4))
    carrier = b.body("carrier", 1.0, inertia=(1e-3, 1e-3, 2e-3))
    b.joint("revolute", b.ground, sun, "sun shaft")
    b.joint("revolute", b.ground, carrier, "carrier shaft")
    for k in range(planets):
        angle = 2.0 * math.pi * k / planets
        planet = b.body(f"planet {k}", 0.2, inertia=(3e-5, 3e-5, 6e-5))
        at = CENTRES * np.array([math.cos(angle), math.sin(angle), 0.0])
        b.joint("revolute", b.triad(carrier, origin=at), planet, f"pin {k}", actuated=False)
        b.gear_pair(sun, planet, teeth=(SUN, PLANET), module=MODULE, name=f"sun mesh {k}")
        b.gear_pair(planet, b.ground, "internal", teeth=(PLANET, RING), module=MODULE, name=f"ring mesh {k}")
    if speed:
        b.driver("joint", "sun shaft", lambda t: speed * t)
        b.system(analysis="kinematic", end=2.0, interval=0.1)
    return b.build()


def test_a_load_on_a_carrier_is_held_by_its_one_pin() -> None:
    """10 N m on a carrier whose one planet pin lies at 42 mm: 238 N on the pin, half of it in each mesh."""
    mech = planetary(1)
    q, v = mech.neutral(), np.zeros(3)
    on_sun = 10.0 * SUN / (SUN + RING)  # of the power: ω_carrier / ω_sun is this ratio
    tau = np.array([-on_sun, 10.0, 0.0])
    np.testing.assert_allclose(mech.forward_dynamics(q, v, tau), 0.0, atol=1e-9)
    sun, carrier, pin = mech.reactions(q, v, tau)
    tangential = 10.0 / CENTRES / 2.0
    np.testing.assert_allclose(pin[:3], [0.0, 2.0 * tangential, 0.0], atol=1e-9)  # of the meshes; apart they cancel
    np.testing.assert_allclose(sun[:3], [tangential * math.tan(ALPHA), -tangential, 0.0], atol=1e-9)
    np.testing.assert_allclose(carrier, [0.0, 2.0 * tangential, 0.0, 0.0, 0.0, 10.0], atol=1e-9)
    np.testing.assert_allclose(mech.constraint_forces(q, v, tau), [tangential, -tangential], atol=1e-9)


@pytest.mark.parametrize("planets", [1, 3])
def test_a_planetary_train_moves_by_willis_and_by_its_reduced_inertia(planets: int) -> None:
    mech = planetary(planets)
    a = mech.forward_dynamics(mech.neutral(), np.zeros(mech.nv), np.array([1.0, *[0.0] * (mech.nv - 1)]))
    carrier = SUN / (SUN + RING)
    planet = -RING / PLANET * carrier  # relative to ground, less the carrier's turn
    reduced = 2e-4 + carrier**2 * (2e-3 + planets * 0.2 * CENTRES**2) + planets * 6e-5 * (planet + carrier) ** 2
    np.testing.assert_allclose(a, np.array([1.0, carrier, *[planet] * planets]) / reduced, rtol=1e-9)


def test_three_planets_share_a_load_equally_and_one_share_is_not_determined() -> None:
    mech = planetary(3)
    assert mech.dof().left == 1
    assert len(mech.dof().redundant) == 2
    q, v = mech.neutral(), np.zeros(mech.nv)
    tau = np.array([-10.0 * SUN / (SUN + RING), 10.0, 0.0, 0.0, 0.0])
    wrenches = mech.reactions(q, v, tau)
    share = 10.0 / CENTRES / 3.0
    np.testing.assert_allclose(np.linalg.norm(wrenches[2:, :3], axis=1), share, rtol=1e-9)
    np.testing.assert_allclose(wrenches[:2, :3], 0.0, atol=1e-8)  # the shafts' bearings carry nothing
    r = [np.array([math.cos(x), math.sin(x)]) for x in np.arange(3) * 2.0 * math.pi / 3.0]
    for wrench, out in zip(wrenches[2:], r, strict=True):  # planets stand with their axes along ground's
        np.testing.assert_allclose(wrench[:2], share * np.array([-out[1], out[0]]), atol=1e-8)


def test_a_driven_sun_turns_its_planets_through_many_turns() -> None:
    sol = lw.analyse(planetary(1, speed=40.0))
    assert sol.status, str(sol.status)
    sun = 40.0 * sol.time
    np.testing.assert_allclose(sol.joint("sun shaft")[:, 0], sun, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(sol.joint_rate("carrier shaft")[:, 0], 40.0 * SUN / (SUN + RING), rtol=1e-11)
    out = sol.position("planet 0") / CENTRES
    angle = sun * SUN / (SUN + RING)
    np.testing.assert_allclose(out[:, :2], np.stack([np.cos(angle), np.sin(angle)], axis=1), atol=1e-11)
    turned = angle * (1.0 - RING / PLANET)  # the planet's own turn in ground
    e = sol.orientation("planet 0")
    np.testing.assert_allclose(np.abs(e[:, 0] * np.cos(turned / 2) + e[:, 3] * np.sin(turned / 2)), 1.0, atol=1e-12)


@pytest.mark.parametrize("driven", [0, 1])
@pytest.mark.parametrize("ratio", [1e-6, 1e-5, 1e5, 1e6])
def test_pairs_of_any_ratio_are_driven_from_either_side(ratio: float, driven: int) -> None:
    b = lw.Builder("pair")
    b.gravity((0.0, 0.0, 0.0))
    radii = (0.01, 0.01 / ratio) if ratio < 1.0 else (0.01 * ratio, 0.01)
    teeth = (4, round(4 / ratio)) if ratio < 1.0 else (round(4 * ratio), 4)
    one, two = b.body("one", 1.0, inertia=(0.3,) * 3), b.body("two", 1.0, inertia=(0.4,) * 3)
    b.joint("revolute", b.ground, one, "j0")
    b.joint("revolute", b.ground, two, "j1", at=(sum(radii), 0, 0))
    b.gear_pair(one, two, teeth=teeth, radius=radii, name="mesh")
    fastest = max(ratio, 1.0)
    rate = (ratio if driven else 1.0) / fastest
    b.driver("joint", f"j{driven}", lambda t: rate / 2.0 * t**2, name="d")
    b.joint_force("j1", 20.0, name="load")
    b.system(analysis="inverse dynamic", end=1.0, interval=0.5)
    sol = lw.analyse(b.build())
    assert sol.status, str(sol.status)
    first, second = (rate / -ratio, rate) if driven else (rate, -ratio * rate)
    np.testing.assert_allclose(sol.angular_acceleration("one")[:, 2], first, rtol=1e-9)
    np.testing.assert_allclose(sol.angular_acceleration("two")[:, 2], second, rtol=1e-9)
    mesh = 0.3 * first / radii[0] if driven else (0.4 * second - 20.0) / radii[1]
    np.testing.assert_allclose(sol.series["mesh.force"].values, mesh, rtol=1e-8, atol=1e-14 * 20.0 / min(radii))


def differential(tau: tuple[float, float, float], planets: int = 2) -> tuple[lw.Mechanism, Floats]:
    """A case with a spider of bevel pinions between two side gears, all of 45° or less; forces on case and shafts."""
    b = lw.Builder("differential")
    b.gravity((0.0, 0.0, 0.0))
    case = b.body("case", 2.0, inertia=(0.01,) * 3)
    b.joint(
        "revolute", b.triad(b.ground, h=(1, 0, 0), f=(0, 1, 0)), b.triad(case, h=(1, 0, 0), f=(0, 1, 0)), "case shaft"
    )
    for name, side in (("left", -1.0), ("right", 1.0)):
        gear = b.body(name, 0.5, inertia=(1e-3,) * 3)
        b.place(gear, origin=(side * 0.02, 0, 0), h=(1, 0, 0), f=(0, 1, 0))
        b.joint(
            "revolute", b.triad(b.ground, origin=(side * 0.02, 0, 0), h=(1, 0, 0), f=(0, 1, 0)), gear, f"{name} shaft"
        )
    for k in range(planets):
        sign = 1.0 - 2.0 * k
        pinion = b.body(f"pinion {k}", 0.1, inertia=(1e-4,) * 3)
        b.place(pinion, origin=(0, 0, sign * 0.03), h=(0, 0, 1), f=(1, 0, 0))
        pin = b.triad(case, origin=(0, 0, sign * 0.03))
        b.joint("revolute", pin, pinion, f"pin {k}", actuated=False)
        for name in ("left", "right"):
            b.gear_pair(name, pinion, "bevel", teeth=(24, 16), module=0.0025, name=f"{name} mesh {k}")
    mech = b.build()
    return mech, np.array([*tau, *[0.0] * planets])


def test_a_differential_halves_its_torque_and_its_speeds_add_up() -> None:
    mech, tau = differential((30.0, -14.0, -14.0))
    assert mech.dof().left == 2
    q, v = mech.neutral(), np.zeros(mech.nv)
    a = mech.forward_dynamics(q, v, tau)
    assert abs(a[1] + a[2] - 2.0 * a[0]) < 1e-9 * abs(a[0])
    np.testing.assert_allclose(a[1], a[2], rtol=1e-9)
    # as one: 30 − 28 N m on all that turns
    whole = 0.01 + 2e-3 + 2.0 * (1e-4 + 0.1 * 0.03**2)
    np.testing.assert_allclose(a[0], 2.0 / whole, rtol=1e-9)
    a = mech.forward_dynamics(q, v, np.array([0.0, 1.0, -1.0, 0.0, 0.0]))
    reduced = 1e-3 + 1e-4 * (24 / 16) ** 2  # of each half: a side gear and one pinion
    np.testing.assert_allclose(a[:3], [0.0, 1.0 / reduced, -1.0 / reduced], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.abs(a[3:]), 24 / 16 / reduced, rtol=1e-9)


def test_the_spider_s_pins_carry_the_torque_of_a_differential_at_rest() -> None:
    """One pinion: the case's 30 N m are a force on its pin at the pitch radius of the side gears, 30 mm: 1 kN; the
    teeth of each side gear push with half of it, and press it outward."""
    mech, tau = differential((30.0, -15.0, -15.0), planets=1)
    q, v = mech.neutral(), np.zeros(mech.nv)
    np.testing.assert_allclose(mech.forward_dynamics(q, v, tau), 0.0, atol=1e-8)
    names = [j.name for j in mech.joints]
    wrenches = dict(zip(names, mech.reactions(q, v, tau), strict=True))
    cone = math.atan2(24, 16)  # of the side gears
    apart = 500.0 * math.tan(ALPHA)
    force, up = 1000.0, 2.0 * apart * math.cos(cone)  # both side gears press the pinion outward
    # The pinion's frame is ground's: the pitch radius lies along z, the case pushes it along −y.
    np.testing.assert_allclose(wrenches["pin 0"][:3], [0.0, -force, -up], atol=1e-7)
    # side gears: frames with h along ground's x, f along y
    for name, side in (("left", -1.0), ("right", 1.0)):
        f = wrenches[f"{name} shaft"][:3]
        np.testing.assert_allclose(f, [force / 2, apart * math.cos(cone), -side * apart * math.sin(cone)], atol=1e-7)


@pytest.mark.parametrize(("kind", "turn"), [("belt", 1.0), ("crossed belt", -1.0), ("chain", 1.0)])
def test_a_belt_turns_wheels_and_pulls_their_shafts_along_its_spans(kind: Any, turn: float) -> None:
    """Tight and slack side differ by λ; of a chain the slack side has no tension."""
    r1, r2, c = 0.03, 0.05, 0.2
    b = lw.Builder("belt")
    b.gravity((0.0, 0.0, 0.0))
    one, two = b.body("one", 1.0, inertia=(1e-3,) * 3), b.body("two", 1.0, inertia=(4e-3,) * 3)
    b.joint("revolute", b.ground, one, "j1")
    b.joint("revolute", b.triad(b.ground, origin=(c, 0, 0)), two, "j2")
    b.gear_pair(one, two, kind, radius=(r1, r2), name="belt")
    mech = b.build()
    tau = np.array([2.0, -1.0 * turn])
    a = mech.forward_dynamics(mech.neutral(), np.zeros(2), tau)
    ratio = turn * r1 / r2
    np.testing.assert_allclose(a, np.array([1.0, ratio]) * (2.0 - r1 / r2) / (1e-3 + 4e-3 * ratio**2), rtol=1e-10)
    difference = (1e-3 * a[0] - 2.0) / r1  # what the belt does to the first wheel: tight less slack side
    np.testing.assert_allclose(mech.constraint_forces(mech.neutral(), np.zeros(2), tau), [difference], rtol=1e-10)
    # The spans leave the first wheel at its tangent points; their pull on it, tight side on the one that resists.
    lean = math.asin((r1 - turn * r2) / c)
    spans = [np.array([math.cos(lean), -s * math.sin(lean)]) for s in (1.0, -1.0)]  # at +y and −y, towards the second
    tight = 0 if difference < 0.0 else 1  # a pull at +y turns the wheel backwards
    if kind == "chain":
        pull = abs(difference) * spans[tight]
    else:  # nothing is told of the mean tension: half the difference each way
        pull = 0.5 * abs(difference) * (spans[tight] - spans[1 - tight])
    wrenches = mech.reactions(mech.neutral(), np.zeros(2), tau)
    np.testing.assert_allclose(wrenches[0, :2], -pull, atol=1e-9)
    np.testing.assert_allclose(wrenches[1, :2], pull, atol=1e-9)
    b.gear_pair(one, two, kind, radius=(0.1, 0.15))
    with pytest.raises(ModelError, match="overlap"):
        b.build()


def test_a_module_is_a_parameter_and_geometry_that_no_longer_fits_is_refused() -> None:
    def built(m: float) -> lw.Mechanism:
        b = lw.Builder("pair")
        module = b.parameter("m", m)
        place = b.parameter("place", 30.0)
        one, two = b.body("one", 1.0, inertia=(1e-3,) * 3), b.body("two", 1.0, inertia=(1e-3,) * 3)
        b.joint("revolute", b.ground, one, "j1")
        b.joint("revolute", b.triad(b.ground, origin=(place * module, 0, 0)), two, "j2")
        b.gear_pair(one, two, teeth=(20, 40), module=module, helix_angle=0.0, name="mesh")
        return b.build()

    mech = built(0.002)
    state = mech.neutral(), np.zeros(2), np.array([1.0, 0.3])
    other = mech.with_parameters(m=0.005)
    for one, two in ((other, built(0.005)), (mech, built(0.002))):
        np.testing.assert_allclose(one.constraint_forces(*state), two.constraint_forces(*state), rtol=1e-13)
    with pytest.raises(ModelError, match=r"gear pair 'mesh' cannot mesh: its centres are 0\.062 m apart"):
        mech.with_parameters(place=31.0)
