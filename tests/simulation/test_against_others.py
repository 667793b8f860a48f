"""Motions against closed forms and against SciPy on a right-hand side in Python."""

from __future__ import annotations

import numpy as np
import pytest
from moving_models import SWUNG, double_pendulum, oscillator
from scipy.integrate import solve_ivp

import linkwright as lw

METHODS = [("rk45", None), ("dop853", None), ("radau", None), ("rk4", 1e-3)]


@pytest.mark.parametrize(("method", "dt"), METHODS)
def test_a_damped_oscillator_follows_its_closed_form(method, dt):
    mech = oscillator(stiffness=4.0, damping=0.2)
    sol = lw.simulate(mech, 6.0, q0=[0.5], v0=[-0.1], method=method, dt=dt, rtol=1e-10, saving=lw.Saving(interval=0.05))
    decay, turn = 0.1, np.sqrt(4.0 - 0.01)
    sine = (-0.1 + decay * 0.5) / turn
    t = sol.time
    wanted = np.exp(-decay * t) * (0.5 * np.cos(turn * t) + sine * np.sin(turn * t))
    np.testing.assert_allclose(sol.q[:, 0], wanted, atol=3e-8)
    np.testing.assert_allclose(sol.a[:, 0], -4.0 * sol.q[:, 0] - 0.2 * sol.v[:, 0], atol=1e-12)


@pytest.mark.parametrize("method", ["rk45", "dop853", "radau"])
def test_a_double_pendulum_moves_as_scipy_says(method):
    mech = double_pendulum()

    def slope(t, y):
        return np.concatenate([y[2:], mech.forward_dynamics(y[:2], y[2:], np.zeros(2))])

    times = np.linspace(0.0, 1.0, 21)
    theirs = solve_ivp(slope, (0.0, 1.0), [*SWUNG, 0.0, 0.0], "DOP853", times, rtol=1e-12, atol=1e-12)
    sol = lw.simulate(mech, 1.0, q0=SWUNG, method=method, rtol=1e-10, saving=lw.Saving(times=times))
    np.testing.assert_allclose(np.concatenate([sol.q, sol.v], axis=1), theirs.y.T, atol=2e-5)


def test_steps_are_about_as_many_as_scipys():
    mech = double_pendulum()

    def slope(t, y):
        return np.concatenate([y[2:], mech.forward_dynamics(y[:2], y[2:], np.zeros(2))])

    theirs = solve_ivp(slope, (0.0, 2.0), [*SWUNG, 0.0, 0.0], "RK45", rtol=1e-8, atol=1e-8)
    sol = lw.simulate(mech, 2.0, q0=SWUNG, rtol=1e-8)
    assert sol.counters.steps == pytest.approx(len(theirs.t), rel=0.25)


def test_forces_that_depend_on_time_are_taken_at_the_stages_times():
    with lw.Builder("shaken") as b:
        b.gravity((0.0, 0.0, 0.0))
        block = b.body("block", mass=2.0, inertia=(1.0, 1.0, 1.0))
        b.joint("prismatic", b.ground, block, name="slide")
    mech = b.build()
    sol = lw.simulate(mech, 3.0, tau=lambda t, q, v: np.array([2.0 * np.cos(t)]), method="rk4", dt=0.01)
    np.testing.assert_allclose(sol.q[:, 0], 1.0 - np.cos(sol.time), atol=1e-9)


def test_many_links_are_simulated_as_a_loop_over_them():
    mech = lw.chain(70)
    rng = np.random.default_rng(1)
    q0 = rng.normal(size=70) * 0.1
    sol = lw.simulate(mech, 0.02, q0=q0, rtol=1e-9)

    def slope(t, y):
        return np.concatenate([y[70:], mech.forward_dynamics(y[:70], y[70:], np.zeros(70))])

    theirs = solve_ivp(slope, (0.0, 0.02), np.concatenate([q0, np.zeros(70)]), "DOP853", rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(np.concatenate([sol.q[-1], sol.v[-1]]), theirs.y[:, -1], atol=1e-6)
