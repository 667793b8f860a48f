"""A chain left to itself keeps its energy, to the order of the integrator."""

from itertools import pairwise

import numpy as np
import pytest

import linkwright as lw
from linkwright.dynamics.functions import FORWARD_METHODS
from linkwright.dynamics.requests import UNROLL


def drift(mech: lw.Mechanism, method: str, seconds: float, steps: int) -> float:
    """The greatest error of energy (J), at 50 times, of a bent chain that swings down by Runge–Kutta steps."""
    q, v, tau, dt = np.zeros(mech.nq), np.zeros(mech.nv), np.zeros(mech.nv), seconds / steps
    q[:2], q[2:] = (2.4, 0.5), 0.8 / mech.nq  # from the far side of upright, curled along its length
    v[0] = 1.0

    def a(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return mech.forward_dynamics(q, v, tau, method=method)

    energy = [mech.kinetic_energy(q, v) + mech.potential_energy(q)]
    for step in range(1, steps + 1):
        a1 = a(q, v)
        v2 = v + dt / 2 * a1
        a2 = a(q + dt / 2 * v, v2)
        v3 = v + dt / 2 * a2
        a3 = a(q + dt / 2 * v2, v3)
        v4 = v + dt * a3
        a4 = a(q + dt * v3, v4)
        q, v = q + dt / 6 * (v + 2 * v2 + 2 * v3 + v4), v + dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        if step % (steps // 50) == 0:
            energy.append(mech.kinetic_energy(q, v) + mech.potential_energy(q))
    return float(np.abs(np.array(energy) - energy[0]).max())


@pytest.mark.parametrize("method", FORWARD_METHODS)
def test_halving_the_step_divides_the_energy_error_by_two_to_the_fourth_or_fifth(method):
    mech = lw.chain(6)
    errors = [drift(mech, method, 0.5, steps) for steps in (50, 100, 200)]
    assert errors[0] < 1e-4
    assert all(2**3.7 < coarse / fine < 2**5.3 for coarse, fine in pairwise(errors)), errors


def test_a_chain_long_enough_to_be_rolled_keeps_its_energy_to_the_same_order():
    mech = lw.chain(UNROLL + 16)
    errors = [drift(mech, "articulated-body", 0.6, steps) for steps in (150, 300, 600)]
    assert errors[0] < 1e-3
    assert all(2**3.7 < coarse / fine < 2**5.3 for coarse, fine in pairwise(errors)), errors
