"""Bushings against formulas written out with SciPy's rotations, and against the limits that they have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import linkwright as lw
from linkwright.errors import ModelError
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.model.elements import Bushing
from linkwright.viewer.shapes import RUBBER, bushing_ends

K, KT = np.array([900.0, 2000.0, 700.0]), np.array([30.0, 20.0, 45.0])
C, CT = np.array([5.0, 6.0, 7.0]), np.array([1.0, 2.0, 3.0])
F0, M0 = np.array([1.0, -2.0, 3.0]), np.array([0.3, 0.2, -0.1])
MASS, COM, INERTIA = (2.0, 3.0), ((0.1, 0.0, 0.05), (0.0, 0.1, 0.05)), ((0.1, 0.2, 0.25), (0.3, 0.2, 0.4))
FRAMES = (((0.1, 0.2, 0.3), (1.0, 0.4, 0.2), (0.2, -1.0, 0.3)), ((0.3, 0.1, -0.2), (0.1, 1.0, 0.7), (1.0, 0.0, 0.2)))


def two_free(damped: bool = True, preloaded: bool = True) -> lw.Mechanism:
    """Two bodies in space without gravity, with a bushing between frames askew."""
    with lw.Builder("floating pair") as b:
        b.gravity((0.0, 0.0, 0.0))
        scale = b.parameter("scale", 1.0)
        for k, name in enumerate(("one", "two")):
            b.joint("free", b.ground, b.body(name, MASS[k], COM[k], INERTIA[k]))
            origin, h, f = FRAMES[k]
            b.triad(name, origin, h=h, f=f, name=f"on {name}")
        damping = {"damping": C, "torsional_damping": CT} if damped else {}
        loads = {"preload": F0, "preload_torque": M0} if preloaded else {}
        stiffness = [scale * float(k) for k in K]
        b.bushing("on one", "on two", stiffness, [scale * float(k) for k in KT], name="mount", **damping, **loads)
    return b.build()


def potential(mech: lw.Mechanism, q: np.ndarray) -> float:
    """½ rᵀ k r + ½ θᵀ kₜ θ."""
    one, two = mech.pose(q, "on one"), mech.pose(q, "on two")
    r = one[:3, :3].T @ (two[:3, 3] - one[:3, 3])
    theta = Rotation.from_matrix(one[:3, :3].T @ two[:3, :3]).as_rotvec()
    return float(0.5 * r @ (K * r) + 0.5 * theta @ (KT * theta))


def turned_by(mech: lw.Mechanism, angle: float, seed: int = 0) -> np.ndarray:
    """Coordinates with this angle between the bushing's frames."""
    rng = np.random.default_rng(seed)
    q = mech.integrate(mech.neutral(), 0.3 * rng.normal(size=12))
    one, two = (mech.pose(q, name)[:3, :3] for name in ("on one", "on two"))
    axis = rng.normal(size=3)
    wanted = one @ Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix()
    body = mech.pose(q, "two")[:3, :3]
    turn = Rotation.from_matrix(body.T @ wanted @ two.T @ body).as_rotvec()
    return mech.integrate(q, np.concatenate([np.zeros(9), turn]))


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-3, 0.7, 2.0, np.deg2rad(170.0)])
def test_the_springs_are_the_derivative_of_their_potential(angle: float) -> None:
    mech = two_free(damped=False, preloaded=False)
    q = turned_by(mech, angle)
    a = mech.forward_dynamics(q, np.zeros(12), np.zeros(12))
    force = mech.mass_matrix(q) @ a
    h = 1e-5
    steps = h * np.eye(12)
    slope = [(potential(mech, mech.integrate(q, s)) - potential(mech, mech.integrate(q, -s))) / (2 * h) for s in steps]
    np.testing.assert_allclose(force, -np.array(slope), atol=2e-7 * np.abs(slope).max())


def test_newton_and_euler_hold_for_both_bodies() -> None:
    mech = two_free()
    rng = np.random.default_rng(3)
    q, v = turned_by(mech, 0.02), rng.normal(size=12)
    a = mech.forward_dynamics(q, v, np.zeros(12))
    one, two = mech.pose(q, "on one"), mech.pose(q, "on two")
    axes = one[:3, :3]
    wa, wb = mech.twist(q, v, "one", "aligned"), mech.twist(q, v, "two", "aligned")
    arm = two[:3, 3] - one[:3, 3]
    speed = mech.twist(q, v, "on two", "aligned")[:3]
    slip = speed - (mech.twist(q, v, "on one", "aligned")[:3] + np.cross(wa[3:], arm))
    theta = Rotation.from_matrix(axes.T @ two[:3, :3]).as_rotvec()
    force = axes @ (F0 - K * (axes.T @ arm) - C * (axes.T @ slip))
    # J(θ)⁻ᵀ to second order, enough for 0.02 rad
    turn = KT * theta
    turn = turn + 0.5 * np.cross(theta, turn) + np.cross(theta, np.cross(theta, turn)) / 12.0
    torque = axes @ (M0 - turn - CT * (axes.T @ (wb[3:] - wa[3:])))
    for k, (name, sign) in enumerate((("one", -1.0), ("two", 1.0))):
        pose = mech.pose(q, name)
        r, centre = pose[:3, :3], pose[:3, 3] + pose[:3, :3] @ np.array(COM[k])
        w = mech.twist(q, v, name, "body")[3:]
        linear = a[6 * k : 6 * k + 3] + np.cross(w, v[6 * k : 6 * k + 3])
        alpha = a[6 * k + 3 : 6 * k + 6]
        centre_a = linear + np.cross(alpha, COM[k]) + np.cross(w, np.cross(w, COM[k]))
        inertia = np.diag(INERTIA[k])
        np.testing.assert_allclose(r @ centre_a * MASS[k], sign * force, rtol=1e-9, atol=1e-8)
        moment = sign * (torque + np.cross(two[:3, 3] - centre, force))
        np.testing.assert_allclose(r @ (inertia @ alpha + np.cross(w, inertia @ w)), moment, rtol=1e-6, atol=1e-7)


def test_all_methods_agree() -> None:
    mech = two_free()
    q, v = turned_by(mech, 1.2), np.random.default_rng(4).normal(size=12)
    a = mech.forward_dynamics(q, v, np.zeros(12))
    for method in ("mass-matrix", "triangular", "diagonal", "virtual-work", "assembly"):
        np.testing.assert_allclose(mech.forward_dynamics(q, v, np.zeros(12), method=method), a, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(mech.inverse_dynamics(q, v, a), 0.0, atol=1e-9)


def test_energy_is_kept_through_large_turns() -> None:
    mech = two_free(damped=False, preloaded=False)
    q0 = turned_by(mech, 1.5)
    sol = lw.simulate(mech, t_end=1.0, q0=q0, v0=np.zeros(12), rtol=1e-10, stepping=lw.Stepping(atol=1e-10))
    rows = zip(sol.q[::10], sol.v[::10], strict=True)
    energy = [float(mech.kinetic_energy(q, v)) + potential(mech, q) for q, v in rows]
    np.testing.assert_allclose(energy, energy[0], rtol=1e-7)


def test_a_body_on_a_bushing_has_the_frequencies_of_its_springs() -> None:
    with lw.Builder("mount") as b:
        b.gravity((0.0, 0.0, 0.0))
        block = b.body("block", 2.0, inertia=(0.1, 0.2, 0.3))
        b.joint("free", b.ground, block)
        b.bushing(b.ground, block, (200.0, 800.0, 1800.0), (0.4, 1.8, 4.8))
    mech = b.build()
    system = mech.linearise(mech.neutral(), np.zeros(6), np.zeros(6))
    frequencies = np.sort(np.abs(np.linalg.eigvals(system.A).imag))[::2]
    np.testing.assert_allclose(frequencies, np.sort([10.0, 20.0, 30.0, 2.0, 3.0, 4.0]), rtol=1e-9)


@pytest.mark.parametrize("stiffness", [1e6, 1e8])
def test_a_stiff_bushing_is_nearly_a_hinge(stiffness: float) -> None:
    """At rest under gravity and a torque about its axis, the pendulum hangs as on a hinge, to 1/stiffness."""
    with lw.Builder("pendulum") as b:
        b.gravity((0.0, 0.0, -9.81))
        rod = b.body("rod", 2.0, (0, 0, -0.5), (0.2, 0.2, 0.01))
        b.joint("free", b.ground, rod)
        b.bushing(b.ground, rod, stiffness, (stiffness, 0.0, stiffness), name="pivot")
        b.applied_wrench(rod, torque=(0, 3.0, 0), axes="ground")
    mech = b.build()
    q = mech.equilibrium(mech.neutral()).q
    turn = Rotation.from_matrix(mech.pose(q, "rod")[:3, :3]).as_rotvec()
    np.testing.assert_allclose(turn[1], np.arcsin(3.0 / (2.0 * 9.81 * 0.5)), rtol=3e-5)
    np.testing.assert_allclose(mech.pose(q, "rod")[:3, 3], [0.0, 0.0, -2.0 * 9.81 / stiffness], rtol=1e-4, atol=1e-9)


def test_half_a_turn_is_finite_and_continuous_up_to_it() -> None:
    mech = two_free(damped=False, preloaded=False)
    angles = np.deg2rad([169.9, 170.0, 179.9, 179.99])
    q = np.array([turned_by(mech, angle) for angle in angles])
    a = mech.forward_dynamics(q, np.zeros((4, 12)), np.zeros((4, 12)))
    assert np.isfinite(a).all()
    size = np.abs(a).max()
    assert np.abs(a[1] - a[0]).max() < 0.01 * size
    assert np.abs(a[3] - a[2]).max() < 0.01 * size


def test_derivatives_by_a_parameter_are_those_of_differences() -> None:
    mech = two_free()
    q, v = turned_by(mech, 0.9), np.random.default_rng(5).normal(size=12)
    program = mech.program("forward_dynamics", free=("scale",))
    h = 1e-6

    def at(scale: float) -> np.ndarray:
        return mech.with_parameters(scale=scale).forward_dynamics(q, v, np.zeros(12))

    np.testing.assert_allclose(program(q, v, np.zeros(12), np.array([1.3])), at(1.3), rtol=1e-9, atol=1e-9)
    slope = (at(1.0 + h) - at(1.0 - h)) / (2 * h)
    by_p = program.jacobian(wrt=3)(q, v, np.zeros(12), np.array([1.0]))
    np.testing.assert_allclose(by_p[:, 0], slope, rtol=1e-6, atol=1e-6)


def test_derivatives_by_the_state_are_those_of_differences() -> None:
    mech = two_free()
    q, v, tau = turned_by(mech, 0.0), np.random.default_rng(6).normal(size=12), np.zeros(12)
    by_q = mech.forward_dynamics_derivatives(q, v, tau)[0]
    h = 1e-6

    def at(s: np.ndarray) -> np.ndarray:
        return mech.forward_dynamics(mech.integrate(q, s), v, tau)

    columns = [(at(s) - at(-s)) / (2 * h) for s in h * np.eye(12)]
    np.testing.assert_allclose(by_q, np.array(columns).T, atol=1e-6 * np.abs(columns).max())


MOUNT = """MODEL mount
SYSTEM (DYNAMIC ANALYSIS, ending time = 0.5, print interval = 0.05, relative tolerance = 1e-10{0});
GRAVITY (0, 0, {1});
BODY g (ground);
BODY engine (mass = 3, inertia = ({2}, {2}, {2}));
FREE JOINT f (triad = g, triad = engine);
BUSHING mount (triad = g, triad = (associated body = engine, origin = ({3}, 0, {3})), stiffness = ({4}, {4}, {5}),
    torsional stiffness = {6}, damping = {7}, torsional damping = {8}, preload = ({9}, 0, 0));
ENDMODEL
"""


def test_a_model_in_millimetres_moves_alike() -> None:
    metres = ("", -9.81, 0.02, 0.05, 4000, 9000, 12, 20, 0.1, 3)
    small = (", length unit = mm", -9810, 0.02e6, 50, 4, 9, 12e3, 0.02, 100, 3)
    one, two = (lw.analyse(lw.Mechanism(parse_mks(MOUNT.format(*numbers)))) for numbers in (metres, small))
    np.testing.assert_allclose(one.position("engine"), two.position("engine"), rtol=1e-7, atol=1e-10)
    for axis in ("fx", "fz", "my"):
        series = one.series[f"mount.{axis}"]
        np.testing.assert_allclose(series.values, two.series[f"mount.{axis}"].values, rtol=1e-6, atol=1e-7)
        assert series.unit == ("N m" if axis == "my" else "N")


def test_a_stiffness_below_zero_is_refused_when_a_parameter_makes_it_so() -> None:
    mech = two_free()
    with pytest.raises(ModelError, match="stiffness of bushing 'mount' is -900; give 0 or more"):
        mech.with_parameters(scale=-1.0)


def test_a_bushing_takes_one_number_or_three() -> None:
    b = lw.Builder()
    bushing = b.bushing(b.ground, b.body("block", 1.0), b.parameter("k", 5.0), (1, 2, 3))
    assert isinstance(bushing, Bushing)
    assert [str(x) for x in bushing.laws[:6]] == ["k", "k", "k", "1.0", "2.0", "3.0"]
    with pytest.raises(ModelError, match="the stiffness of bushing 'x' needs 3 numbers, 2 given"):
        b.bushing(b.ground, "block", (1.0, 2.0), name="x")
    with pytest.raises(ModelError, match="both on 'block'"):
        b.bushing("block", b.triad("block"), 1.0)
    with pytest.raises(ModelError, match="the damping of bushing 'x' is -1; give 0 or more"):
        b.bushing(b.ground, "block", 1.0, damping=-1.0, name="x")


def test_equations_leave_a_bushing_out_by_name() -> None:
    with lw.Builder("arm") as b:
        b.joint("revolute", b.ground, b.body("rod", 1.0, (0, 0, -1), (1, 1, 1)), "pivot", axis=(0, 1, 0))
        b.bushing(b.ground, "rod", 1.0, 2.0, name="rubber")
    assert tuple(lw.equations(b.build()).left_out) == ("bushing 'rubber'",)


def test_the_viewer_draws_a_sleeve_and_a_pin(tmp_path: Path) -> None:
    d = two_free().description
    assert [(first.body, second.body) for first, second in bushing_ends(d, d.nb)] == [(0, 1)]
    mech = lw.Mechanism(parse_mks(MOUNT.format("", -9.81, 1, 0, 9, 9, 9, 9, 9, 0)))
    page = lw.analyse(mech).animate(tmp_path / "mount.html")
    assert RUBBER in page.read_text(encoding="utf-8")
