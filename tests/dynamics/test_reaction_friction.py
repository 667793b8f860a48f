"""Friction that follows reactions against closed forms, SciPy, and Newton and Euler written out for a slider-crank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, fsolve

import linkwright as lw
from linkwright.errors import JammedError, ModelError
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.formats.mks.mks_writer import write_mks
from linkwright.sweeps.case_engine import Engine
from linkwright.sweeps.task import make_task

G = 9.81


def incline(slope: float, mu: float, **options: float) -> lw.Mechanism:
    """A block of 2 kg on a guide that falls at an angle, its centre of mass 0.1 m above the guide."""
    with lw.Builder("incline") as b:
        block = b.body("block", 2.0, (-0.1 * np.sin(-slope), 0.0, 0.1 * np.cos(slope)), (0.1, 0.1, 0.1))
        b.joint("prismatic", b.ground, block, "guide", axis=(np.cos(slope), 0.0, -np.sin(slope)))
        b.reaction_friction("guide", b.parameter("mu", mu), name="rub", **options)
    return b.build()


@pytest.mark.parametrize("mu", [0.0, 0.2, 1.5])
@pytest.mark.parametrize("slope", [0.3, 1.2])
def test_a_block_slides_down_an_incline(slope: float, mu: float) -> None:
    mech = incline(slope, mu)
    for rate, sign in ((1.0, 1.0), (-1.0, -1.0), (0.0, 0.0)):
        a = mech.forward_dynamics([0.3], [rate], [0.0])
        np.testing.assert_allclose(a, G * (np.sin(slope) - sign * mu * np.cos(slope)), rtol=1e-9)
    np.testing.assert_allclose(mech.inverse_dynamics([0.3], [1.0], a), 2.0 * mu * G * np.cos(slope), atol=1e-9)


def test_a_guide_of_a_length_bears_the_couple_at_its_ends() -> None:
    slope, mu, length = 0.4, 0.15, 0.05
    mech = incline(slope, mu, length=length)
    force = mech.inverse_dynamics([0.0], [2.0], [0.0])[0]
    across, couple = 2.0 * G * np.cos(slope), 2.0 * G * np.sin(slope) * 0.1
    ends = abs(across / 2 + couple / length) + abs(across / 2 - couple / length)
    assert ends > across  # one end lifts
    np.testing.assert_allclose(force, mu * ends - 2.0 * G * np.sin(slope), rtol=1e-9)


def test_a_shaft_bears_its_overhung_weight_in_two_bearings_and_a_collar() -> None:
    """Levers: of a weight at 0.06 m before the middle of 0.1 m, the near bearing has 1.1 of it and the far one 0.1."""
    slope, mu, weight = 0.3, 0.2, 1.5 * G
    with lw.Builder("shaft") as b:
        shaft = b.body("shaft", 1.5, (0.06 * np.cos(slope), 0.0, 0.06 * np.sin(slope)), (0.01, 0.01, 0.01))
        b.joint("revolute", b.ground, shaft, "bearing", axis=(np.cos(slope), 0, np.sin(slope)))
        b.reaction_friction("bearing", mu, 0.02, axial_radius=0.03, length=0.1, speed=1e-6)
    torque = b.build().inverse_dynamics([0.0], [1e-3], [0.0])[0]
    across, along = weight * np.cos(slope), weight * np.sin(slope)
    np.testing.assert_allclose(torque, mu * (0.02 * across * (1.1 + 0.1) + 0.03 * along), rtol=1e-6)


SWINGING = """MODEL pendulum
SYSTEM (DYNAMIC ANALYSIS, ending time = 1, print interval = 0.1);
PARAMETER mu = {mu}; PARAMETER arm = 0.5;
GRAVITY (0, -9.81, 0);
BODY g (ground); BODY bob (mass = 2, com = (0, -arm, 0), inertia = (0.01, 0.01, 0.01));
HINGE pivot (body = g, body = bob, at = (0, 0));
FRICTION pin (joint = pivot, coefficient = mu, radius = 30 mm);
INITIAL (pivot.angle = 1);
ENDMODEL
"""


def loaded(text: str) -> lw.Mechanism:
    return lw.Mechanism(parse_mks(text))


def pendulum(mu: float, radius: float, *, speed: float = 0.01, start: float = 1.0) -> lw.Mechanism:
    with lw.Builder("pendulum") as b:
        bob = b.body("bob", 1.5, (0, 0, -0.4), (0.02, 0.02, 0.02))
        b.joint("revolute", b.ground, bob, "pivot", axis=(0, 1, 0))
        b.reaction_friction("pivot", mu, radius, speed=speed, name="pin")
        b.initial("pivot", start)
    return b.build()


def test_a_pendulum_on_a_pin_moves_as_its_equation_says() -> None:
    m, arm, inertia, torque = 1.5, 0.4, 0.02 + 1.5 * 0.16, 0.3 * 0.03

    def acceleration(angle: float, rate: float) -> float:
        def left(a: float) -> float:
            pin = m * np.hypot(arm * a + G * np.sin(angle), arm * rate**2 + G * np.cos(angle))
            return inertia * a + m * G * arm * np.sin(angle) + torque * pin * np.tanh(rate / 0.05)

        return brentq(left, -1e3, 1e3, xtol=1e-14)

    mech = pendulum(0.3, 0.03, speed=0.05)
    for angle, rate in ((0.7, 1.3), (-1.1, 4.0), (2.0, -0.02)):
        np.testing.assert_allclose(mech.forward_dynamics([angle], [rate], [0.0]), acceleration(angle, rate), rtol=1e-9)
    times = np.linspace(0.0, 2.0, 21)
    sol = lw.simulate(mech, 2.0, rtol=1e-9, saving=lw.Saving(times=times))
    assert sol.status
    other = solve_ivp(
        lambda t, y: [y[1], acceleration(*y)], (0, 2), [1.0, 0.0], t_eval=times, rtol=1e-8, atol=1e-9, method="LSODA"
    )
    np.testing.assert_allclose(sol.q[:, 0], other.y[0], atol=1e-6)


def test_small_swings_lose_the_same_angle_each() -> None:
    """2 μ r / l of every half swing of a point on a pin: here l is the reduced length for the weight's torque."""
    mu, radius, arm = 0.2, 0.01, 0.4
    mech = pendulum(mu, radius, speed=1e-4, start=0.1)
    turning = lw.Event(lambda t, q, v: v[0], name="turn")
    sol = lw.simulate(mech, 3.5, events=turning, rtol=1e-7)
    ends = np.array([abs(x.q[0]) for x in sol.events if x.time > 0.1])
    assert len(ends) >= 3
    np.testing.assert_allclose(-np.diff([0.1, *ends])[:3], 2.0 * mu * radius / arm, rtol=0.02)


# -- a slider-crank -------------------------------------------------------------------------------------------------
SLIDER_CRANK = """MODEL slider_crank
SYSTEM ({analysis} ANALYSIS, ending time = 3, print interval = 0.25{units});
GRAVITY (0, {g}, 0);
PARAMETER mu = 0.15;
BODY base (ground);
BODY crank (origin = (0, 0), mass = 1, inertia = ({i}, {i}, {i}), com = ({c1}, 0, 0));
BODY rod (origin = ({l1}, 0), mass = 2, com = ({c2}, 0, 0), inertia = ({j}, {j}, {j}));
BODY piston (origin = ({l3}, 0), mass = 1.5, inertia = ({i}, {i}, {i}));
HINGE a (body = base, body = crank, at = (0, 0));
HINGE b (body = crank, body = rod, at = ({l1}, 0));
HINGE c (body = rod, body = piston, at = ({l3}, 0));
SLIDER s (body = base, body = piston, at = ({l3}, 0), axis = (1, 0));
FRICTION fa (joint = a, coefficient = mu, radius = {ra});
FRICTION fb (joint = b, coefficient = mu, radius = {rb});
FRICTION fc (joint = c, coefficient = mu, radius = {rc});
FRICTION fs (joint = s, coefficient = mu);
FORCE load (triad = piston, force = (-300, 0), axes = ground);
{more}
ENDMODEL
"""
METRES: dict[str, Any] = {
    "units": "", "g": -9.81, "i": 0.01, "j": 0.03, "c1": 0.03, "c2": 0.2, "l1": 0.1, "l3": 0.5,
    "ra": 0.02, "rb": 0.015, "rc": 0.01,
}  # fmt: skip
MILLIMETRES: dict[str, Any] = {
    "units": ", length unit = mm", "g": -9810, "i": 0.01e6, "j": 0.03e6, "c1": 30, "c2": 200, "l1": 100, "l3": 500,
    "ra": 20, "rb": 15, "rc": 10,
}  # fmt: skip
DRIVEN = "DRIVER motor (a.angle = 5*TIME + 0.3);"


def slider_crank(analysis: str = "INVERSE DYNAMIC", more: str = DRIVEN, numbers: Any = None) -> lw.Mechanism:
    return lw.Mechanism(parse_mks(SLIDER_CRANK.format(analysis=analysis, more=more, **(numbers or METRES))))


def by_hand(angle: float, rate: float, mu: float) -> tuple[float, np.ndarray]:
    """The driving torque at a constant rate, and the forces (a, b, c on the outer body, then the guide's)."""
    l1, l2 = 0.1, 0.4
    radii = mu * np.array([0.02, 0.015, 0.01])

    def points(s: float) -> tuple[np.ndarray, ...]:
        x = angle + rate * s
        pin = l1 * np.array([np.cos(x), np.sin(x)])
        tilt = -np.arcsin(pin[1] / l2)
        way = np.array([np.cos(tilt), np.sin(tilt)])
        return 0.3 * pin, pin + 0.2 * way, pin + l2 * way, np.array([tilt]), pin

    h = 1e-4
    before, now, later = points(-h), points(0.0), points(h)
    a1, a2, a3, tilting, _ = ((x - 2 * y + z) / h**2 for x, y, z in zip(before, now, later, strict=True))
    tilt_rate, slide = (later[3][0] - before[3][0]) / (2 * h), (later[2][0] - before[2][0]) / (2 * h)
    c1, c2, end, _, pin = now
    turns = np.tanh(np.array([rate, tilt_rate - rate, -tilt_rate]) / 0.01)

    def cross(p: np.ndarray, f: np.ndarray) -> float:
        return float(p[0] * f[1] - p[1] * f[0])

    def left(z: np.ndarray) -> np.ndarray:
        fa, fb, fc, normal, moment, drive = z[0:2], z[2:4], z[4:6], z[6], z[7], z[8]
        ta, tb, tc = -radii * np.array([np.hypot(*f) for f in (fa, fb, fc)]) * turns
        weight = np.array([0.0, -G])
        rub = np.array([-mu * abs(normal) * np.tanh(slide / 0.01), normal])
        return np.array([
            *(fa - fb + 1.0 * (weight - a1)),
            drive + ta - tb + cross(-c1, fa) - cross(pin - c1, fb),
            *(fb - fc + 2.0 * (weight - a2)),
            tb - tc + cross(pin - c2, fb) - cross(end - c2, fc) - 0.03 * tilting[0],
            *(fc + rub + np.array([-300.0, 0.0]) + 1.5 * (weight - a3)),
            tc + moment,
        ])  # fmt: skip

    z, _, good, text = fsolve(left, np.zeros(9) + 50.0, full_output=True, xtol=1e-13)
    assert good == 1 or np.abs(left(z)).max() < 1e-7, text
    return z[8], z[:8]


@pytest.fixture(scope="module")
def driven() -> lw.Solution:
    return lw.analyse(slider_crank())


def test_the_torque_of_a_slider_crank_is_that_of_newton_and_euler_by_hand(driven: lw.Solution) -> None:
    for k in range(0, len(driven), 2):
        torque, forces = by_hand(5 * driven.time[k] + 0.3, 5.0, 0.15)
        np.testing.assert_allclose(driven.series["motor.torque"].values[k], torque, rtol=1e-5, atol=1e-4)
        for joint, at in (("a", 0), ("b", 2), ("c", 4)):
            pair = [abs(driven.series[f"{joint}.f{axis}"].values[k]) for axis in "xy"]
            np.testing.assert_allclose(pair, np.abs(forces[at : at + 2]), rtol=1e-5, atol=2e-4)
        np.testing.assert_allclose(abs(driven.series["s.fy"].values[k]), abs(forces[6]), rtol=1e-5, atol=2e-4)


def test_frictions_are_those_of_the_reactions_reported_beside_them(driven: lw.Solution) -> None:
    rates = {"a": np.full(len(driven), 5.0), "b": driven.angular_velocity("rod")[:, 2] - 5.0}
    rates["c"] = -driven.angular_velocity("rod")[:, 2]
    for joint, radius in (("a", 0.02), ("b", 0.015), ("c", 0.01)):
        size = np.hypot(driven.series[f"{joint}.fx"].values, driven.series[f"{joint}.fy"].values)
        wanted = -0.15 * radius * size * np.tanh(rates[joint] / 0.01)
        np.testing.assert_allclose(driven.series[f"f{joint}.torque"].values, wanted, rtol=1e-9, atol=1e-9)
    across = np.abs(driven.series["s.fy"].values) * np.tanh(driven.velocity("piston")[:, 0] / 0.01)
    np.testing.assert_allclose(driven.series["fs.force"].values, -0.15 * across, rtol=1e-9, atol=1e-9)


def test_a_slider_crank_in_millimetres_is_the_same(driven: lw.Solution) -> None:
    small = lw.analyse(slider_crank(numbers=MILLIMETRES))
    for name in ("motor.torque", "fa.torque", "fs.force"):
        np.testing.assert_allclose(small.series[name].values, driven.series[name].values, rtol=1e-8, atol=1e-8)


def test_forward_and_inverse_dynamics_undo_each_other_in_batches() -> None:
    mech = slider_crank("DYNAMIC", "INITIAL (a.angle = 0.3, a.rate = 2);")
    q, v = mech.initial_state()
    tau = np.zeros(3)
    tau[0] = 20.0
    a = mech.forward_dynamics(np.array([q, q]), np.array([v, -v]), tau)
    np.testing.assert_allclose(a[1], mech.forward_dynamics(q, -v, tau), rtol=1e-9)
    tau_back = mech.inverse_dynamics(q, v, a[0])
    np.testing.assert_allclose(mech.forward_dynamics(q, v, tau_back), a[0], rtol=1e-8, atol=1e-8)
    bare = mech.with_parameters(mu=0.0)
    assert np.abs(bare.forward_dynamics(q, v, tau) - a[0]).max() > 1.0
    # The frictions alone take what the energy loses.
    sol = lw.analyse(mech, analysis="dynamic", times=np.linspace(0.0, 0.2, 401))
    a, b, c = (sol.series[f"f{k}.torque"].values for k in "abc")
    rod, crank = sol.angular_velocity("rod")[:, 2], sol.angular_velocity("crank")[:, 2]
    lost = a * crank + b * (rod - crank) - c * rod + sol.series["fs.force"].values * sol.velocity("piston")[:, 0]
    energy = mech.kinetic_energy(sol.q, sol.v) + mech.potential_energy(sol.q) + 300.0 * sol.position("piston")[:, 0]
    total = np.concatenate([[0.0], np.cumsum(0.5 * (lost[1:] + lost[:-1]) * np.diff(sol.time))])
    assert (lost <= 1e-9).all()
    np.testing.assert_allclose(energy - energy[0], total, atol=5e-3 * np.abs(total).max())


def test_the_compiled_run_is_that_of_states_one_by_one() -> None:
    mech = slider_crank("DYNAMIC", "INITIAL (a.angle = 0.3, a.rate = 2);")
    sol = lw.simulate(mech, 0.05, rtol=1e-9)
    assert not any("Python" in note for note in sol.status.notes)
    for k in (1, len(sol) // 2, -1):
        np.testing.assert_allclose(
            mech.forward_dynamics(sol.q[k], sol.v[k], np.zeros(3)), sol.a[k], rtol=1e-7, atol=1e-7
        )


# -- self-locking ---------------------------------------------------------------------------------------------------
def drawer(mu: float) -> lw.Mechanism:
    """A drawer on a guide of 0.2 m, pulled against 10 N at a handle 0.3 m beside the guide."""
    with lw.Builder("drawer") as b:
        b.gravity((0.0, 0.0, 0.0))
        box = b.body("box", 1.0, inertia=(0.1, 0.1, 0.1))
        b.joint("prismatic", b.ground, box, "guide", axis=(1, 0, 0))
        b.reaction_friction("guide", b.parameter("mu", mu), length=0.2, name="rub")
        b.applied_wrench(box, force=(-10.0, 0, 0), axes="ground")
        b.driver("absolute", b.triad(box, (0, 0.3, 0), name="handle"), 0.5 * lw.TIME, coordinate="x", name="pull")
    return b.build()


def test_a_drawer_is_pulled_harder_the_nearer_it_is_to_locking() -> None:
    for mu in (0.05, 0.2, 0.33):
        sol = lw.analyse(drawer(mu), analysis="inverse dynamic", times=[0.0, 0.1])
        pull = 10.0 / (1.0 - 2.0 * mu * 0.3 / 0.2)
        np.testing.assert_allclose(sol.series["pull.force"].values, pull, rtol=1e-7)


def test_a_drawer_that_locks_is_named() -> None:
    sol = lw.analyse(drawer(0.4), analysis="inverse dynamic", times=[0.0, 0.1])
    assert (sol.status.ok, sol.status.reason, sol.status.element) == (False, "self-locking", "guide")
    assert "friction 'rub' locks joint 'guide' at t = 0 s: no friction forces agree with the reactions" in str(
        sol.status
    )
    assert "about 81 %" in str(sol.status)  # of 0.4: 1/3 is 83 %
    mech = drawer(0.4)
    with pytest.raises(JammedError) as caught:
        mech.reactions([0.0], [0.5], [0.0])
    assert (caught.value.element, caught.value.time) == ("guide", 0.0)


@pytest.mark.parametrize("slope", [0.5, 0.9])
def test_a_wedge_pushed_from_the_side(slope: float) -> None:
    """W tan(slope + φ), and nothing moves it where that angle is a right one."""
    for mu in (0.2, 0.5, 1.9):
        with lw.Builder("wedge") as b:
            block = b.body("block", 2.0, inertia=(0.1, 0.1, 0.1))
            b.joint("prismatic", b.ground, block, "ramp", axis=(np.cos(slope), 0, np.sin(slope)))
            b.reaction_friction("ramp", mu)
            b.driver("absolute", block, 0.3 * lw.TIME, coordinate="x", name="push")
        mech = b.build()
        if mu * np.tan(slope) < 1.0:
            push = lw.analyse(mech, analysis="inverse dynamic", times=[0.0, 0.1]).series["push.force"].values
            np.testing.assert_allclose(push, 2.0 * G * np.tan(slope + np.arctan(mu)), rtol=1e-8)
        else:
            with pytest.raises(JammedError, match="locks joint 'ramp'"):
                mech.reactions([0.0], [0.3 / np.cos(slope)], [0.0])


# -- where it goes, and where not -----------------------------------------------------------------------------------
def test_what_cannot_hold_it_says_so(tmp_path: Path) -> None:
    mech = pendulum(0.3, 0.03)
    q, v = np.array([0.3]), np.array([1.0])
    wanted = "friction 'pin' follows the reaction of joint 'pivot', which no compiled program holds"
    for refused in (
        lambda: mech.program("forward_dynamics"),
        lambda: mech.program("bias_forces"),
        lambda: mech.linearise(q),
        lambda: mech.forward_dynamics_derivatives(q, v, [0.0]),
        lambda: mech.inverse_dynamics_derivatives(q, v, [0.0]),
        lambda: lw.rollout(mech, q, v, 1e-3, 5),
        lambda: lw.export(mech, tmp_path / "out", function="forward_dynamics"),
        lambda: lw.export(mech, tmp_path / "gpu", to="cuda"),
    ):
        with pytest.raises(ModelError, match=wanted):
            refused()
    assert tuple(lw.equations(mech).left_out) == ("friction 'pin'",)
    assert np.isfinite(mech.program("mass_matrix")(q)).all()


def test_a_sweep_of_inverse_dynamics_follows_the_coefficient() -> None:
    engine = Engine(make_task(drawer(0.2), ["mu"], "max(pull.force)", times=[0.0, 0.1], analysis="inverse dynamic"))
    pulls = engine.run(np.array([[0.0], [0.3]])).arrays["max(pull.force)"]
    np.testing.assert_allclose(pulls, [10.0, 10.0 / 0.1], rtol=1e-7)


def test_simulated_cases_are_those_of_analyses() -> None:
    mech = loaded(SWINGING.format(mu=0.1))
    engine = Engine(make_task(mech, ["mu"], "end = final(pivot.angle)", times=[0.0, 0.2, 0.4]))
    values = engine.run(np.array([[0.0], [0.1], [0.4]])).arrays["end"]
    for mu, value in zip((0.0, 0.1, 0.4), values, strict=True):
        sol = lw.analyse(loaded(SWINGING.format(mu=mu)), times=[0.0, 0.2, 0.4])
        np.testing.assert_allclose(value, sol.joint("pivot")[-1, 0], rtol=1e-9)


def test_another_coefficient_needs_no_other_programs() -> None:
    mech = loaded(SWINGING.format(mu=0.1))
    other = mech.with_parameters(mu=0.2)
    assert other.friction.bare is mech.friction.bare
    longer = mech.with_parameters(arm=0.7)
    assert longer.friction.bare.programs.source is mech.friction.bare.programs
    q, v = np.array([0.3]), np.array([1.0])
    fresh = loaded(SWINGING.format(mu=0.1).replace("arm = 0.5", "arm = 0.7"))
    a = longer.forward_dynamics(q, v, [0.0])
    np.testing.assert_allclose(a, fresh.forward_dynamics(q, v, [0.0]), rtol=1e-12)


def test_at_rest_it_is_not_there_and_a_note_says_so() -> None:
    mech = loaded(SWINGING.format(mu=0.1))
    sol = lw.analyse(mech, analysis="static", times=[0.0])
    np.testing.assert_allclose(sol.q[0], 0.0, atol=1e-6)
    assert any("at rest there is no force of 'pin', which follows reactions" in note for note in sol.status.notes)


def test_a_locked_joint_takes_its_friction_with_it() -> None:
    mech = slider_crank("DYNAMIC", "").lock({"s": 0.0})
    assert [e.name for e in mech.description.elements] == ["fa", "fb", "fc", "load"]


def test_a_model_is_written_as_it_was_read() -> None:
    d = parse_mks(SLIDER_CRANK.format(analysis="DYNAMIC", more="", **METRES))
    with lw.Builder("x") as b:
        b.joint("revolute", b.ground, b.body("a", 1.0), "j")
        e = b.reaction_friction("j", b.parameter("mu", 0.3), 0.01, axial_radius=0.02, length=0.05, speed=0.1, name="f")
    (again,) = parse_mks(write_mks(b.description())).elements
    assert again == e
    assert parse_mks(write_mks(d)).elements == d.elements


def test_builder_refuses_what_is_no_friction_of_a_joint() -> None:
    b = lw.Builder()
    b.joint("revolute", b.ground, b.body("a", 1.0), "j")
    b.joint("prismatic", b.ground, b.body("c", 1.0), "s")
    b.joint("spherical", b.ground, b.body("d", 1.0), "ball")
    for arguments, text in (
        (("j", 0.1), "has no radius; add radius"),
        (("j", -0.1, 0.01), "the coefficient of friction 'friction1' is -0.1; give 0 or more"),
        (("s", 0.1, 0.01), "prismatic joint 's' has a radius, which a guide does not have"),
        (("ball", 0.1, 0.01), "which is spherical; only revolute and prismatic joints"),
    ):
        with pytest.raises(ModelError, match=text):
            b.reaction_friction(*arguments)
