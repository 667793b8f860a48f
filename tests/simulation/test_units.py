"""Amplitudes of any size: the default absolute tolerance is a part of the motion and of the mechanism's length."""

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import AssemblyError, ModelError
from linkwright.simulation.step_control import tolerances
from scaled_models import scaled

OMEGA = 3.0


def oscillator(joint="prismatic", inertia=1.0, push=0.0):
    with lw.Builder("oscillator") as b:
        b.gravity((0, 0, 0))
        b.joint(joint, b.ground, b.body("m", mass=2.0, inertia=inertia * np.eye(3)), "j")
        load = 2.0 if joint == "prismatic" else inertia
        b.joint_spring("j", stiffness=load * OMEGA**2)
        if push:
            b.joint_force("j", load * push)
    return b.build()


@pytest.mark.parametrize("record", [True, False])
@pytest.mark.parametrize("method", ["rk45", "dop853", "radau"])
@pytest.mark.parametrize("joint", ["prismatic", "revolute"])
def test_an_oscillator_of_any_amplitude_is_as_exact_as_one_of_a_metre(method, joint, record):
    mech = oscillator(joint)
    tau = None if record else (lambda t, q, v: np.zeros(1))
    for amplitude in (1.0, 1e-6, 1e-9) if record else (1e-9,):
        still = lw.simulate(mech, 5.0, q0=[amplitude], method=method, tau=tau, stepping=lw.Stepping(record=record))
        exact = amplitude * np.cos(OMEGA * still.time)
        np.testing.assert_allclose(still.q[:, 0] / amplitude, exact / amplitude, atol=1e-6)
        hit = lw.simulate(
            mech, 5.0, q0=[0.0], v0=[OMEGA * amplitude], method=method, tau=tau, stepping=lw.Stepping(record=record)
        )
        np.testing.assert_allclose(hit.q[:, 0] / amplitude, np.sin(OMEGA * hit.time), atol=1e-6)


@pytest.mark.parametrize("amplitude", [1.0, 1e-4, 1e-9])
def test_a_small_force_from_rest_is_followed_as_well_as_a_large_one(amplitude):
    sol = lw.simulate(oscillator(push=amplitude * OMEGA**2), 5.0)
    np.testing.assert_allclose(sol.q[:, 0] / amplitude, 1.0 - np.cos(OMEGA * sol.time), atol=1e-6)


@pytest.mark.parametrize("time", [1e-6, 1e6])
@pytest.mark.parametrize("start", ["displaced", "pushed off"])
def test_an_oscillator_of_any_period_is_as_exact_as_one_of_seconds(time, start):
    amplitude = 1e-9
    one, other = (scaled(oscillator(), 1.0, 1.0, x) for x in (1.0, time))
    pushed = start == "pushed off"
    q0, v0 = (0.0, OMEGA * amplitude) if pushed else (amplitude, 0.0)
    slow = lw.simulate(other, 5.0 * time, q0=[q0], v0=[v0 / time])
    assert slow.counters.steps == lw.simulate(one, 5.0, q0=[q0], v0=[v0]).counters.steps
    exact = (np.sin if pushed else np.cos)(OMEGA * slow.time / time)
    np.testing.assert_allclose(slow.q[:, 0] / amplitude, exact, atol=1e-6)


def test_small_shifts_beside_large_turns_are_followed():
    """A wheel makes whole turns while a slider beside it swings by a nanometre."""
    with lw.Builder("both") as b:
        b.gravity((0, 0, 0))
        b.joint("revolute", b.ground, b.body("wheel", mass=1.0, inertia=np.eye(3)), "wheel")
        b.joint("prismatic", b.ground, b.body("slider", mass=1.0), "slider")
        b.joint_spring("slider", stiffness=OMEGA**2)
    sol = lw.simulate(b.build(), 5.0, q0=[0.0, 1e-9], v0=[7.0, 0.0])
    np.testing.assert_allclose(sol.q[:, 1] / 1e-9, np.cos(OMEGA * sol.time), atol=1e-6)
    np.testing.assert_allclose(sol.q[:, 0], 7.0 * sol.time, rtol=1e-9)


def test_a_mechanism_at_rest_takes_fewer_steps_than_one_that_moves():
    """What rounding moves is not followed: links held by forces that balance gravity, and the same let go."""
    mech, q0 = lw.chain(3), np.array([0.3, -0.2, 0.1])
    held = lw.simulate(mech, 2.0, q0=q0, tau=mech.gravity_forces(q0))
    falling = lw.simulate(mech, 2.0, q0=q0)
    assert held.status
    assert held.counters.steps < falling.counters.steps


def test_a_given_absolute_tolerance_is_that_of_every_entry():
    mech = oscillator()
    state = np.zeros((3, 1))
    chosen = tolerances(mech.tree, False, 1.0, 5.0, 1e-8, 1e-3, tuple(state))
    np.testing.assert_array_equal(chosen.absolute(np.array([1e9, 0.0, 1e-9, 1.0])), [1e-3, 1e-3])
    few, many = (
        lw.simulate(mech, 5.0, q0=[1e-3], stepping=lw.Stepping(atol=atol)).counters.steps for atol in (1e-3, None)
    )
    assert few < many / 4


@pytest.mark.parametrize("speed", [1e100, 1e150])
def test_rates_too_large_for_numbers_end_in_a_status(speed):
    sol = lw.simulate(lw.chain(2), 1.0, v0=[speed, speed])
    assert not sol.status
    assert sol.status.reason in ("no value", "step underflow")


def test_rates_without_a_finite_acceleration_are_refused_at_the_start():
    with pytest.raises(ModelError, match="no finite number"):
        lw.simulate(lw.chain(2), 1.0, v0=[1e200, 1e200])


def bar_on_three_cranks(size, longer=0.0):
    """Redundant: the third crank is not needed, and cannot be joined if it is longer."""
    with lw.Builder("three cranks") as b:
        b.gravity((0, -9.81 * size, 0))
        bar = b.body("bar", mass=1.0, inertia=0.01 * size**2 * np.eye(3))
        b.place(bar, (0, size, 0))
        for k in range(3):
            crank = b.body(f"crank{k}", mass=1.0, inertia=0.01 * size**2 * np.eye(3))
            b.place(crank, (k * size, 0, 0), f=(0, 1, 0))
            length = (1.0 + longer * (k == 2)) * size
            b.joint("revolute", b.triad(b.ground, (k * size, 0, 0)), crank, f"A{k}")
            b.joint("revolute", b.triad(crank, (length, 0, 0)), b.triad(bar, (k * size, 0, 0)), f"B{k}", cut=k > 0)
    return b.build()


@pytest.mark.parametrize("size", [1e-9, 1e-6, 1.0, 1e6])
def test_a_loop_that_stays_open_is_refused_in_every_size(size):
    fits, open_ = bar_on_three_cranks(size), bar_on_three_cranks(size, 0.004)
    q = fits.initial_state()[0]
    v = fits.project(q, np.eye(fits.nv)[0])[1]
    turning = lw.simulate(fits, 1.0, q0=q, v0=v)
    assert turning.status
    assert np.abs(fits.kernels.position_correction(turning.q, 0.0)[1] / fits.programs.constraint_units).max() < 1e-13
    with pytest.raises(AssemblyError, match="B2"):
        lw.simulate(open_, 1.0, q0=q, v0=v)
