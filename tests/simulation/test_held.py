"""Steps under held forces: the same numbers as a simulation, for trees, closed chains and free parameters."""

import numpy as np
import pytest

import linkwright as lw
from closed_mechanisms import four_bar, pen_on_line
from linkwright.simulation.integrators import tableau_of
from linkwright.simulation.step_programs import HeldKernels

MECHANISMS = {"chain": lambda: lw.chain(3), "four-bar": four_bar, "pen on line": pen_on_line}


def weighted(mass: float) -> lw.Mechanism:
    with lw.Builder("pendulum") as b:
        b.gravity((0, 0, -9.81))
        m, length = b.parameter("m", mass), b.parameter("length", 0.7)
        rod = b.body("rod", m, (0, 0, -0.5 * length), (0.1 * m, 0.1 * m, 0.01 * m))
        b.joint("revolute", b.triad(b.ground, h=(0, 1, 0)), b.triad(rod, h=(0, 1, 0)), "hinge")
    return b.build()


@pytest.mark.parametrize("method", ["rk4", "semi-implicit-euler"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_held_steps_are_those_of_a_simulation(name: str, method: str) -> None:
    mech = MECHANISMS[name]()
    q, v = mech.initial_state()
    tau = np.where(mech.actuated, 0.7, 0.0)
    kernels = HeldKernels(mech, tableau_of(method))
    q1, v1, a1, summary = kernels.advance(q, v, np.array([0.5, 1e-3, 20.0]), tau)
    sol = lw.simulate(mech, 0.52, q0=q, v0=v, tau=tau, method=method, dt=1e-3, stepping=lw.Stepping(t_start=0.5))
    assert np.allclose(q1, sol.q[-1], atol=1e-12)
    assert np.allclose(v1, sol.v[-1], atol=1e-11)
    assert np.allclose(a1, sol.a[-1], atol=1e-8)
    assert summary[0] < 1e-8
    assert (summary[1] >= 20) == mech.closed


def test_free_parameters_are_given_with_the_state() -> None:
    mech = weighted(1.0)
    kernels = HeldKernels(mech, tableau_of("rk4"), ("m", "length"))
    state = np.array([0.4]), np.array([0.2]), np.array([0.0, 1e-3, 50.0]), np.array([0.3])
    for mass in (1.0, 2.5):
        found = kernels.advance(*state, np.array([mass, 0.7]))
        expected = HeldKernels(weighted(mass), tableau_of("rk4")).advance(*state)
        for x, y in zip(found, expected, strict=True):
            assert np.allclose(x, y, atol=1e-13)


def test_states_side_by_side_are_the_same_as_alone() -> None:
    mech = four_bar()
    q, v = mech.initial_state()
    kernel = HeldKernels(mech, tableau_of("rk4")).advance
    tau = np.outer(np.linspace(-1.0, 1.0, 9), mech.actuated)
    settings = np.array([0.0, 1e-3, 10.0])
    many = kernel(np.tile(q, (9, 1)), np.tile(v, (9, 1)), settings, tau)
    for k in range(9):
        for x, y in zip(many, kernel(q, v, settings, tau[k]), strict=True):
            assert np.allclose(x[k], y, atol=1e-12)
