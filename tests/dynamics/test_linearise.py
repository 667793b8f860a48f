"""Linear models about a state and their natural motions."""

from __future__ import annotations

import numpy as np
import pytest

import linkwright as lw
from closed_mechanisms import driven_arm, four_bar, pen_on_line, platform, rssr, slider_with_rod, state
from linear_differences import by_differences
from linkwright.dynamics.equilibrium import Mode
from linkwright.errors import ModelError


def pendulum(bars: int) -> lw.Mechanism:
    """Bars of 1 m and 1 kg that hang from each other, turned by revolute joints about y."""
    with lw.Builder("pendulum") as b:
        below = b.ground
        for k in range(bars):
            bar = b.body(f"bar{k}", 1.0, (0, 0, -0.5), (1 / 12, 1 / 12, 1e-6))
            b.joint("revolute", below, bar, f"j{k}", axis=(0, 1, 0), at=(0, 0, -1.0 if k else 0.0))
            below = bar
    return b.build()


def test_a_bar_swings_as_the_closed_form_says() -> None:
    a, b, modes = pendulum(1).linearise(np.zeros(1))
    assert a == pytest.approx(np.array([[0.0, 1.0], [-1.5 * 9.81, 0.0]]), abs=1e-12)
    assert b == pytest.approx(np.array([[0.0], [3.0]]), abs=1e-12)
    assert modes[0].frequency == pytest.approx(np.sqrt(1.5 * 9.81) / (2 * np.pi), rel=1e-12)
    assert modes[0].damping == pytest.approx(0.0, abs=1e-12)


def test_a_mode_without_damping_has_none_of_either_sign() -> None:
    for real in (0.0, -0.0, 1e-17):
        assert repr(Mode(complex(real, 2 * np.pi), np.ones(1, complex))) == "<Mode 1 Hz, damping 0>"
    assert repr(Mode(complex(-1.0, 0.0), np.ones(1, complex))) == "<Mode 0 Hz, damping 1>"


def test_a_damped_bar_has_its_damping_ratio() -> None:
    with lw.Builder("damped") as b:
        bar = b.body("bar", 1.0, (0, 0, -0.5), (1 / 12, 1 / 12, 1e-6))
        b.joint("revolute", b.ground, bar, "j", axis=(0, 1, 0), damping=0.2)
    mode = b.build().linearise(np.zeros(1)).modes[0]
    omega = np.sqrt(1.5 * 9.81)
    assert mode.damping == pytest.approx(0.2 * 3.0 / (2.0 * omega), rel=1e-8)


def test_a_parallelogram_swings_like_its_bars() -> None:
    """Two equal uprights hanging from ground and a bar between their tips: one degree of freedom, known inertia."""
    with lw.Builder("swing") as b:
        left, right, floor = (
            b.body(n, 1.0, c, (1 / 12, 1 / 12, 1 / 12))
            for n, c in (("left", (0, 0, -0.5)), ("right", (0, 0, -0.5)), ("floor", (0.5, 0, 0)))
        )
        b.joint("revolute", b.ground, left, "A", axis=(0, 1, 0))
        b.joint("revolute", b.ground, right, "D", axis=(0, 1, 0), at=(1, 0, 0))
        b.joint("revolute", left, floor, "B", axis=(0, 1, 0), at=(0, 0, -1))
        h = {"h": (0.0, 1.0, 0.0)}
        b.joint("revolute", b.triad(floor, (1, 0, 0), **h), b.triad(right, (0, 0, -1), **h), "C", cut=True)
    linear = b.build().linearise(np.zeros(3))
    # Inertia of both bars about their pivots, and of the floor's mass at their tips.
    inertia, moment = 2.0 * (1 / 12 + 0.25) + 1.0, 2.0 * 0.5 + 1.0
    assert linear.A.shape == (2, 2)
    assert linear.modes[0].frequency == pytest.approx(np.sqrt(moment * 9.81 / inertia) / (2 * np.pi), rel=1e-9)
    assert np.abs(linear.modes[0].shape) == pytest.approx([1.0, 1.0, 1.0], abs=1e-9)


@pytest.mark.parametrize("make", [four_bar, pytest.param(platform, marks=pytest.mark.slow), pen_on_line])
def test_a_linear_model_predicts_small_motions(make) -> None:
    """The state nearby moves as A says: compared with the nonlinear equations at a consistent state beside it."""
    mech = make()
    q, v = state(mech)
    tau = np.random.default_rng(2).normal(size=mech.nv)
    linear = mech.linearise(q, v, tau)
    z, p, d = linear.basis, linear.projection, linear.basis.shape[1]
    x = np.random.default_rng(4).normal(size=2 * d)
    errors = []
    for size in (1e-3, 5e-4):
        q1 = mech.project(mech.integrate(q, z @ (size * x[:d])))[0]
        y = p @ mech.difference(q, q1)
        guess = v + z @ (size * x[d:])
        v1 = mech.project(q1, guess)[1]
        u = p @ (v1 - v)
        change = p @ (mech.forward_dynamics(q1, v1, tau) - mech.forward_dynamics(q, v, tau))
        errors.append(np.abs(change - (linear.A @ np.concatenate([y, u]))[d:]).max())
    assert errors[1] < 0.3 * errors[0] + 1e-9  # what is left is of second order


def test_trees_agree_with_differences() -> None:
    mech = lw.random_tree(6, seed=3)
    rng = np.random.default_rng(0)
    q = mech.integrate(mech.neutral(), rng.normal(size=mech.nv))
    v, tau = rng.normal(size=mech.nv), rng.normal(size=mech.nv)
    exact, differences = mech.linearise(q, v, tau), by_differences(mech, q, v, tau, 0.0)
    assert pytest.approx(exact.A, abs=1e-7 * np.abs(exact.A).max()) == differences.A
    assert pytest.approx(exact.B, abs=1e-10) == differences.B


@pytest.mark.parametrize("make", [four_bar, rssr, slider_with_rod, pen_on_line, driven_arm])
def test_small_loops_agree_with_differences(make) -> None:
    mech, t = make(), 0.2
    q, v = state(mech, t)
    tau = np.random.default_rng(2).normal(size=mech.nv)
    exact, differences = mech.linearise(q, v, tau, t=t), by_differences(mech, q, v, tau, t)
    assert pytest.approx(exact.A, abs=1e-7 * max(1.0, np.abs(exact.A).max())) == differences.A
    assert pytest.approx(exact.B, abs=1e-9) == differences.B


def with_stops(closed: bool) -> lw.Mechanism:
    """A slide that a weak spring holds between stiff stops at ±1 mm, of a body of half a metre; or two with a rod."""
    with lw.Builder("slides") as b:
        b.gravity((0, 0, 0))
        for k in range(1 + closed):
            block = b.body(f"block{k}", 1.0, (0.5, 0, 0), (0.1, 0.1, 0.1))
            along = {"h": (1.0, 0.0, 0.0), "f": (0.0, 1.0, 0.0)}
            at = b.triad(b.ground, (0, 0.4 * k, 0), **along)
            b.joint("prismatic", at, b.triad(block, (0, 0, 0), **along), f"slide{k}")
            b.joint_spring(f"slide{k}", 50.0)
            b.stop(f"slide{k}", -1e-3, 1e-3, 1e7)
        if closed:
            b.rod(b.triad("block0", (0, 0, 0)), b.triad("block1", (0.3, 0, 0)), 0.5, "rod")
    return b.build()


@pytest.mark.parametrize("closed", [False, True])
def test_stops_are_not_felt_from_the_middle(closed: bool) -> None:
    mech = with_stops(closed)
    q, v, tau = np.zeros(mech.nq), np.zeros(mech.nv), np.zeros(mech.nv)
    linear = mech.linearise(q, v, tau)
    assert linear.modes[0].frequency == pytest.approx(np.sqrt(50.0) / (2.0 * np.pi), rel=1e-5)


def test_a_free_body_turns_in_moving_axes() -> None:
    """δ and δ' of a rotation beside a turning one, against rotations multiplied out."""
    with lw.Builder("top") as b:
        b.gravity((0, 0, 0))
        b.joint("spherical", b.ground, b.body("top", 1.0, (0, 0, 0), (1.0, 2.0, 2.5)), "ball")
    mech = b.build()
    q, v = mech.neutral(), np.array([0.3, -1.2, 2.0])
    a = mech.linearise(q, v).A
    delta, h = np.array([1e-5, -2e-5, 1.5e-5]), 1e-5
    there = mech.integrate(q, delta)
    ahead = mech.difference(mech.integrate(q, h * v), mech.integrate(there, h * v))
    assert (ahead - delta) / h == pytest.approx(a[:3, :3] @ delta, abs=1e-8)


def test_a_state_that_opens_its_loop_is_refused() -> None:
    mech = four_bar()
    q, v = state(mech)
    with pytest.raises(ModelError, match="project"):
        mech.linearise(q + 0.01, v)
    with pytest.raises(ModelError, match="project"):
        mech.linearise(q, v + 1.0)
