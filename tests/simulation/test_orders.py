"""Errors shrink with the step as the order of a method says."""

from __future__ import annotations

import numpy as np
import pytest
from moving_models import SWUNG, double_pendulum, end_state, exact, four_bar, oscillator, top

import linkwright as lw

ORDERS = {"semi-implicit-euler": 1, "rk4": 4, "rk45": 5, "dop853": 8}
STEPS = {"semi-implicit-euler": 5e-4, "rk4": 0.02, "rk45": 0.01, "dop853": 0.05}


def measured(mech, t_end, method, dt, **options):
    wanted = exact(mech, t_end, **options)
    errors = [
        np.linalg.norm(end_state(lw.simulate(mech, t_end, method=method, dt=h, **options)) - wanted)
        for h in (dt, dt / 2)
    ]
    return np.log2(errors[0] / errors[1])


@pytest.mark.parametrize("method", ORDERS)
def test_a_double_pendulum_converges_at_the_order_of_the_method(method):
    found = measured(double_pendulum(), 0.4, method, STEPS[method], q0=SWUNG)
    assert found == pytest.approx(ORDERS[method], abs=0.5)


@pytest.mark.parametrize("method", ORDERS)
def test_a_turning_body_converges_at_the_order_of_the_method(method):
    v0 = np.array([0.3, -0.2, 0.1, 1.0, 2.0, 0.5])
    found = measured(top(), 2.0, method, 5 * STEPS[method], v0=v0)
    assert found == pytest.approx(ORDERS[method], abs=0.45)


@pytest.mark.parametrize("method", ["rk4", "rk45", "semi-implicit-euler"])
def test_a_closed_mechanism_converges_at_the_order_of_the_method(method):
    found = measured(four_bar(), 0.5, method, STEPS[method])
    assert found == pytest.approx(ORDERS[method], abs=0.45)


@pytest.mark.parametrize(("method", "dt"), [("rk4", 0.02), ("rk45", None), ("dop853", None), ("radau", None)])
def test_a_free_body_keeps_energy_momentum_and_unit_euler_parameters(method, dt):
    mech = top()
    sol = lw.simulate(mech, 5.0, v0=[0.3, -0.2, 0.1, 1.0, 2.0, 0.5], method=method, dt=dt)
    momentum = mech.momentum(sol.q, sol.v)
    np.testing.assert_allclose(momentum, np.broadcast_to(momentum[0], momentum.shape), atol=2e-5)
    assert np.ptp(sol.energy()) < 2e-5
    np.testing.assert_allclose(np.linalg.norm(sol.q[:, 3:], axis=1), 1.0, atol=4e-16)
    np.testing.assert_allclose(sol.q[-1, 3:] @ sol.q[-1, 3:], 1.0, atol=1e-15)


def test_the_error_follows_the_tolerance():
    mech = double_pendulum()
    wanted = exact(mech, 0.5, q0=SWUNG)
    errors = [np.linalg.norm(end_state(lw.simulate(mech, 0.5, q0=SWUNG, rtol=r)) - wanted) for r in (1e-6, 1e-9)]
    assert errors[0] < 1e-4
    assert 50.0 < errors[0] / errors[1] < 2e4


def test_the_semi_implicit_step_keeps_an_oscillators_energy_in_bounds():
    mech = oscillator(stiffness=4.0)
    sol = lw.simulate(mech, 200.0, q0=[0.5], method="semi-implicit-euler", dt=0.01)
    energy = 0.5 * sol.v[:, 0] ** 2 + 2.0 * sol.q[:, 0] ** 2
    assert np.ptp(energy) < 0.03 * energy[0]
    assert np.ptp(energy[-1000:]) == pytest.approx(np.ptp(energy[:1000]), rel=0.05)
