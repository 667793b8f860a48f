"""What is kept of a run: every step, or the states at given times."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from moving_models import SWUNG, double_pendulum, four_bar, oscillator, top

import linkwright as lw
from linkwright.simulation.integrators import TABLEAUX
from run_settings import settings


def test_every_step_is_kept_from_the_start_to_the_end():
    sol = lw.simulate(double_pendulum(), 1.0, q0=SWUNG, stepping=lw.Stepping(t_start=0.25))
    assert sol.time[0] == 0.25
    assert sol.time[-1] == 1.0
    assert np.all(np.diff(sol.time) > 0.0)
    assert len(sol) == sol.counters.steps + 1 == sol.counters.points


def test_steps_of_one_length_end_exactly_at_the_end():
    sol = lw.simulate(oscillator(), 1.0, q0=[0.5], method="rk4", dt=0.3)
    np.testing.assert_allclose(sol.time, [0.0, 0.3, 0.6, 0.9, 1.0], atol=1e-15)
    assert sol.time[-1] == 1.0
    assert len(lw.simulate(double_pendulum(), 1.0, method="rk4", dt=0.1)) == 11


def test_a_shorter_last_step_is_taken_with_its_own_length():
    mech = oscillator(stiffness=4.0)
    sol = lw.simulate(mech, 1.0, q0=[1.0], method="rk4", dt=0.03)
    assert sol.q[-1, 0] == pytest.approx(np.cos(2.0), abs=1e-6)


@pytest.mark.parametrize("options", [{}, {"method": "dop853"}, {"method": "rk4", "dt": 0.01}, {"method": "radau"}])
def test_asked_times_are_given_exactly(options):
    times = np.array([0.1, 0.10001, 0.5, 0.77])
    sol = lw.simulate(double_pendulum(), 1.0, q0=SWUNG, **settings(times=times, **options))
    assert np.array_equal(sol.time, times)
    assert sol.status.ok


def test_an_interval_includes_both_ends():
    sol = lw.simulate(double_pendulum(), 1.0, q0=SWUNG, saving=lw.Saving(interval=0.3))
    np.testing.assert_allclose(sol.time, [0.0, 0.3, 0.6, 0.9, 1.0])
    assert np.array_equal(sol.q[0], SWUNG)


@pytest.mark.parametrize("name", TABLEAUX)
def test_between_two_steps_the_error_has_the_order_of_dense_output(name):
    mech, turn = oscillator(stiffness=4.0), 2.0
    errors = []
    for dt in (0.4, 0.2):
        times = dt * np.linspace(0.0, 1.0, 9)
        sol = lw.simulate(mech, 2.0, q0=[0.7], v0=[0.6], method=name, dt=dt, saving=lw.Saving(times=times))
        wanted = 0.7 * np.cos(turn * times) + 0.3 * np.sin(turn * times)
        errors.append(np.abs(sol.q[:, 0] - wanted).max())
    order = {"semi-implicit-euler": 2, "rk4": 4, "rk45": 5, "dop853": 8}[name]  # of one step
    assert np.log2(errors[0] / errors[1]) > order - 0.5


def test_states_between_steps_are_possible_ones():
    mech = four_bar()
    sol = lw.simulate(mech, 1.0, v0=None, saving=lw.Saving(interval=0.003))
    assert np.abs(mech.program("position_correction")(sol.q)[1]).max() < 1e-12
    assert np.abs(mech.program("velocity_projection")(sol.q, sol.v)[1]).max() < 1e-12
    body = lw.simulate(top(), 1.0, v0=[0.0, 0.0, 0.0, 1.0, 2.0, 3.0], saving=lw.Saving(interval=0.01))
    np.testing.assert_allclose(np.linalg.norm(body.q[:, 3:], axis=1), 1.0, atol=4e-16)


@pytest.mark.parametrize("options", [{}, {"method": "rk4", "dt": 0.004}])
def test_accelerations_are_those_of_the_states(options):
    mech = double_pendulum()
    for sol in (
        lw.simulate(mech, 0.5, q0=SWUNG, tau=[0.1, -0.2], **options),
        lw.simulate(mech, 0.5, q0=SWUNG, tau=[0.1, -0.2], **settings(interval=0.01, **options)),
    ):
        wanted = mech.forward_dynamics(sol.q, sol.v, np.array([0.1, -0.2]))
        np.testing.assert_allclose(sol.a, wanted, rtol=1e-9, atol=1e-9)


def test_progress_is_told_up_to_the_end():
    seen = []
    lw.simulate(
        double_pendulum(),
        2.0,
        q0=SWUNG,
        stepping=lw.Stepping(t_start=1.0),
        saving=lw.Saving(progress=lambda done, whole: seen.append((done, whole))),
    )
    assert seen[-1] == (1.0, 1.0)
    assert all(a[0] <= b[0] for a, b in pairwise(seen))


def test_a_second_run_records_nothing_anew(monkeypatch):
    mech = double_pendulum()
    first = lw.simulate(mech, 0.1, q0=SWUNG)

    def never(*_):
        raise AssertionError("recorded again")

    monkeypatch.setattr("linkwright.simulation.steps.attempt", never)
    monkeypatch.setattr("linkwright.tape.build.trace", never)
    again = lw.simulate(mech, 0.1, q0=SWUNG)
    assert np.array_equal(first.q, again.q)
