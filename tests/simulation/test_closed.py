"""Closed mechanisms: loops stay closed, energy is kept, drivers prescribe."""

from __future__ import annotations

import numpy as np
import pytest
from moving_models import four_bar

import linkwright as lw
from linkwright.errors import AssemblyError

#: Each with what it may lose or gain of the energy.
METHODS = [
    ({}, 1e-6),
    ({"method": "dop853"}, 1e-6),
    ({"method": "rk4", "dt": 2e-3}, 1e-6),
    ({"method": "radau", "rtol": 1e-6}, 1e-4),
]


def left_open(mech, sol):
    """What is left of the constraints at every point, in position and in velocity."""
    t = (sol.time,) if mech.description.drivers else ()
    phi = mech.program("position_correction")(sol.q, *t)[1]
    rate = mech.program("velocity_projection")(sol.q, sol.v, *t)[1]
    return np.abs(phi).max(), np.abs(rate).max()


@pytest.mark.parametrize(("options", "drift"), METHODS)
def test_loops_stay_closed_and_energy_is_kept(options, drift):
    mech = four_bar()
    sol = lw.simulate(mech, 2.0, **options)
    phi, rate = left_open(mech, sol)
    assert sol.status.ok
    assert phi < 1e-10
    assert rate < 1e-9
    assert np.ptp(sol.energy()) < drift


def test_loops_stay_closed_over_many_steps():
    mech = four_bar()
    sol = lw.simulate(mech, 100.0, method="rk4", dt=1e-3)
    phi, rate = left_open(mech, sol)
    assert len(sol) == 100_001
    assert phi < 1e-10
    assert rate < 1e-9
    assert np.ptp(sol.energy()) < 1e-5


def test_a_start_that_does_not_close_the_loops_is_brought_to_the_nearest_that_does():
    mech = four_bar()
    drawn = mech.assemble()
    sol = lw.simulate(mech, 0.1, q0=drawn + np.array([1e-3, -2e-3, 1e-3]), v0=[1.0, 0.0, 0.0])
    phi, rate = left_open(mech, sol)
    assert phi < 1e-10
    assert rate < 1e-9
    assert np.abs(sol.q[0] - drawn).max() < 1e-2
    assert any("v0" in note for note in sol.status.notes)


def test_a_start_that_is_too_far_off_is_an_error():
    with lw.Builder("too short") as b:
        bar = b.body("bar", mass=1.0, inertia=(1.0, 1.0, 1.0))
        b.joint("revolute", b.triad(b.ground), b.triad(bar), "a")
        b.joint("spherical", b.triad(b.ground, origin=(2.0, 0.0, 0.0)), b.triad(bar, origin=(1.0, 0.0, 0.0)), "b")
    with pytest.raises(AssemblyError):
        lw.simulate(b.build(), 1.0, q0=[0.0])


def test_a_driven_mechanism_moves_as_kinematic_analysis_says():
    mech = four_bar(crank=np.pi / 2 + 2.0 * lw.TIME)
    asked = lw.analyse(mech, times=np.linspace(0.0, 2.0, 21))
    found = lw.simulate(mech, 2.0, saving=lw.Saving(times=asked.time))
    for name in mech.description.body_names:
        np.testing.assert_allclose(found.position(name), asked.position(name), atol=1e-9)
        np.testing.assert_allclose(found.acceleration(name), asked.acceleration(name), atol=1e-7)


def test_a_drivers_motion_is_met_to_the_tolerance_of_closure():
    with lw.Builder("driven") as b:
        b.gravity((0.0, -9.81, 0.0))
        bar = b.body("bar", mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
        hinge = b.joint("revolute", b.triad(b.ground), b.triad(bar), "hinge")
        b.driver("joint", hinge, 0.3 * lw.TIME * lw.TIME)
    mech = b.build()
    sol = lw.simulate(mech, 2.0, rtol=1e-6)
    np.testing.assert_allclose(sol.q[:, 0], 0.3 * sol.time**2, atol=1e-10)
    np.testing.assert_allclose(sol.v[:, 0], 0.6 * sol.time, atol=1e-9)
    np.testing.assert_allclose(sol.a[:, 0], 0.6, atol=1e-9)


def test_a_pendulum_held_by_a_loop_swings_as_one_held_by_a_joint():
    def pendulum(kind):
        with lw.Builder(kind) as b:
            bob = b.body("bob", mass=1.0, inertia=(0.1, 0.2, 0.25))
            arm = b.triad(bob, origin=(0.0, 0.0, 0.7))
            if kind == "free":
                b.joint("free", b.ground, b.triad(bob), "flight")
            b.joint("spherical", b.triad(b.ground), arm, "pivot")
        return b.build()

    tree, closed = pendulum("tree"), pendulum("free")
    v0 = np.array([1.0, 0.5, 0.3])
    times = np.linspace(0.0, 2.0, 21)
    one = lw.simulate(tree, 2.0, v0=v0, rtol=1e-10, saving=lw.Saving(times=times))
    start = np.array([0.0, 0.0, -0.7, 1.0, 0.0, 0.0, 0.0])
    rates = np.concatenate([np.cross(v0, [0.0, 0.0, -0.7]), v0])
    other = lw.simulate(closed, 2.0, q0=start, v0=rates, rtol=1e-10, saving=lw.Saving(times=times))
    assert closed.loops == ("pivot",)
    np.testing.assert_allclose(other.position("bob"), one.position("bob"), atol=1e-7)
