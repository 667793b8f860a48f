"""Radau's method on stiff forces."""

from __future__ import annotations

import numpy as np
from moving_models import double_pendulum, oscillator

import linkwright as lw


def test_a_stiff_damper_takes_few_steps():
    mech = oscillator(stiffness=1e6, damping=1e5)
    stiff = lw.simulate(mech, 10.0, q0=[1.0], method="radau", rtol=1e-6)
    rates = np.roots([1.0, 1e5, 1e6])
    fast, slow = min(rates), max(rates)
    wanted = (fast * np.exp(slow * stiff.time) - slow * np.exp(fast * stiff.time)) / (fast - slow)
    assert stiff.counters.steps < 400
    np.testing.assert_allclose(stiff.q[:, 0], wanted, atol=1e-4)


def test_its_jacobian_is_that_of_the_slopes():
    from linkwright.simulation.initialise import Settings, engine_of, first_point
    from linkwright.simulation.state_derivatives import Slopes
    from linkwright.simulation.step_programs import Kernels

    mech = double_pendulum()
    kernels = Kernels(mech)
    q, v, tau = np.array([0.3, -0.2]), np.array([0.5, 1.0]), np.zeros(2)
    settings = Settings("radau", 0.0, 1.0, None, 1e-6, 1e-6, np.inf, None)
    slopes = Slopes(kernels, None, tau)
    engine = engine_of(mech, slopes, settings, first_point(mech, slopes, 0.0, q, v, []))
    found = engine.jacobian(0.0, np.concatenate([q, v]))
    da_dq, da_dv, _ = mech.forward_dynamics_derivatives(q, v, tau)
    wanted = np.block([[np.zeros((2, 2)), np.eye(2)], [da_dq, da_dv]])
    np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(wanted).max())
