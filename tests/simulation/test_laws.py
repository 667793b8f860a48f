"""Joint forces by laws: recorded into the step, or called from Python."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from moving_models import SWUNG, double_pendulum, end_state, four_bar, out_of_reach, top

import linkwright as lw
from linkwright.errors import LinkwrightError, ShapeError
from linkwright.simulation.step_programs import Kernels
from linkwright.simulation.steps import slope
from run_settings import settings

METHODS = [{}, {"method": "dop853"}, {"method": "rk4", "dt": 1e-3}, {"method": "semi-implicit-euler", "dt": 1e-3}]


def recorded(t, q, v):
    return 0.3 * np.sin(q) - 0.05 * v + 0.1 * np.cos(3.0 * t)


def only_python(t, q, v):
    return recorded(t, q, v) if t > -1.0 else None


@pytest.mark.parametrize("options", [*METHODS, {"method": "radau", "rtol": 1e-6}])
def test_a_law_does_the_same_recorded_and_called(options):
    mech = double_pendulum()
    fast = lw.simulate(mech, 0.3, q0=SWUNG, tau=recorded, **settings(**options))
    slow = lw.simulate(mech, 0.3, q0=SWUNG, tau=only_python, **settings(**options))
    assert fast.status.notes == ()
    assert "called from Python" in slow.status.notes[0]
    assert len(fast) == len(slow)
    np.testing.assert_allclose(end_state(slow), end_state(fast), atol=1e-11)


@pytest.mark.parametrize("mech", [four_bar(), top()], ids=["four bar", "top"])
def test_called_laws_move_projected_mechanisms_as_recorded_ones(mech):
    def law(t, q, v):
        return -0.1 * v + 0.2 * np.sin(t)

    def called(t, q, v):
        return law(t, q, v) if t > -1.0 else None

    times = np.linspace(0.0, 0.4, 9)
    fast, slow = (lw.simulate(mech, 0.4, tau=x, saving=lw.Saving(times=times)) for x in (law, called))
    np.testing.assert_allclose(slow.q, fast.q, atol=1e-10)
    np.testing.assert_allclose(slow.a, fast.a, atol=1e-7)


@pytest.mark.parametrize("options", METHODS[:3])
@pytest.mark.parametrize("name", ["four bar", "top", "out of reach", "no value"])
def test_both_engines_take_the_same_steps_to_the_same_end(name, options):
    mech = {"four bar": four_bar, "top": top, "out of reach": out_of_reach, "no value": four_bar}[name]()

    def law(t, q, v):
        return -0.1 * v + (np.sqrt(0.3 - t) if name == "no value" else 0.2 * np.sin(t))

    def called(t, q, v):
        return law(t, q, v) if t > -1.0 else None

    start = mech.assemble([0.0, 1.0]) if name == "out of reach" else None
    # Tolerances that follow the motion from rest would give first steps whose errors are rounding.
    options = {**options, "rtol": 1e-6, "atol": 1e-6}
    if "dt" in options:
        options["dt"] = 0.02
    fast, slow = (lw.simulate(mech, 2.0, q0=start, tau=x, **settings(**options)) for x in (law, called))
    assert slow.status.reason == fast.status.reason
    if fast.status.ok or "dt" in options:  # the last steps to where no more can be made hang on rounding
        assert slow.status.message == fast.status.message
        assert slow.counters == fast.counters
        np.testing.assert_allclose(slow.time, fast.time, rtol=0.0, atol=1e-7)
    assert len(slow.status.notes) == len(fast.status.notes) + 1
    assert fast.status.ok == (name in ("four bar", "top"))


def test_constant_forces_are_those_of_a_constant_law():
    mech = double_pendulum()
    one = lw.simulate(mech, 0.5, q0=SWUNG, tau=[0.1, 0.05])
    other = lw.simulate(mech, 0.5, q0=SWUNG, tau=lambda t, q, v: np.array([0.1, 0.05]))
    np.testing.assert_allclose(end_state(one), end_state(other), atol=1e-12)


def test_a_recorded_program_is_a_law():
    mech = double_pendulum()
    program = lw.record(recorded, (), 2, 2)
    one, other = (lw.simulate(mech, 0.3, q0=SWUNG, tau=tau) for tau in (program, recorded))
    assert np.array_equal(one.q, other.q)


def test_a_law_that_keeps_something_of_its_own_is_not_recorded():
    calls = []

    def counting(t, q, v):
        calls.append(t)
        return np.full(2, 1e-3 * len(calls))

    sol = lw.simulate(double_pendulum(), 0.01, q0=SWUNG, tau=counting)
    assert "keeps something of its own" in sol.status.notes[0]
    assert len(calls) > sol.counters.steps


class Controller:
    """Proportional and integral control, its integral over the times at which it is asked."""

    def __init__(self):
        self.integral, self.last = np.zeros(2), 0.0

    def __call__(self, t, q, v):
        self.integral = self.integral + (t - self.last) * (0.1 - q)
        self.last = t
        return -0.5 * q - 0.2 * v + 0.3 * self.integral


def controller_in_a_closure():
    integral, last = np.zeros(2), 0.0

    def law(t, q, v):
        nonlocal integral, last
        integral, last = integral + (t - last) * (0.1 - q), t
        return -0.5 * q - 0.2 * v + 0.3 * integral

    return law


KEEPING = {
    "object": Controller,
    "method": lambda: Controller().__call__,
    "partial": lambda: partial(Controller.__call__, Controller()),
    "closure": controller_in_a_closure,
}


@pytest.mark.parametrize("name", KEEPING)
def test_a_law_with_an_integral_of_its_own_is_called_and_left_whole(name):
    options = {"q0": SWUNG, "method": "rk4", "dt": 1e-3}
    asked, found = (
        lw.simulate(double_pendulum(), 0.2, tau=KEEPING[name](), **settings(record=r, **options)) for r in (False, True)
    )
    assert "record=False" in asked.status.notes[0]
    assert "keeps something of its own" in found.status.notes[0]
    np.testing.assert_array_equal(found.q, asked.q)


def test_what_recording_put_into_a_law_is_taken_out_again():
    kept = {"seen": 0.0}

    def law(t, q, v):
        if not isinstance(t, float):
            kept["seen"] = t  # shows itself only while it is recorded
        return kept["seen"] - 0.1 * v

    sol = lw.simulate(double_pendulum(), 0.1, q0=SWUNG, tau=law)
    assert "'seen'" in sol.status.notes[0]
    assert kept == {"seen": 0.0}


def test_a_law_that_does_something_else_nearby_is_not_recorded():
    def law(t, q, v):
        plain = isinstance(t, float) and t > 0.0
        return (2.0 if plain else 1.0) * -v

    sol = lw.simulate(double_pendulum(), 0.1, q0=SWUNG, v0=[1.0, 0.0], tau=law)
    assert "other numbers" in sol.status.notes[0]


def test_a_law_that_reads_a_table_or_asks_a_mechanism_is_still_recorded():
    mech, gains = double_pendulum(), {"p": [3.0, 1.0], "d": np.array([0.1, 0.2])}

    def law(t, q, v):
        return mech.gravity_forces(q) - np.array(gains["p"]) * q - gains["d"] * v

    assert lw.simulate(mech, 0.1, q0=SWUNG, tau=law).status.notes == ()


def test_laws_that_were_compiled_are_kept_as_long_as_there_is_room():
    mech = double_pendulum()
    laws = [lw.record(lambda t, q, v, k=k: -0.01 * k * v, (), 2, 2) for k in range(16)]
    slopes = [Kernels(mech, program).of(slope) for program in laws]
    assert all(Kernels(mech, program).of(slope) is kernel for program, kernel in zip(laws, slopes, strict=True))


def test_a_law_of_the_wrong_shape_is_told_before_anything_runs():
    with pytest.raises(ShapeError, match=r"tau\(t, q, v\) gave an array of shape \(3,\); it must be \(2,\)"):
        lw.simulate(double_pendulum(), 1.0, tau=lambda t, q, v: np.zeros(3))


def test_an_error_in_a_law_at_the_initial_state_names_the_law_and_has_its_cause():
    with pytest.raises(LinkwrightError, match=r"at t = 0 s tau raised ZeroDivisionError") as told:
        lw.simulate(double_pendulum(), 1.0, tau=lambda t, q, v: 1 / 0)
    assert isinstance(told.value.__cause__, ZeroDivisionError)


def test_proportional_control_brings_an_arm_to_its_place():
    mech = double_pendulum()
    goal = np.array([0.3, -0.2])

    def control(t, q, v):
        return mech.gravity_forces(q) + 30.0 * (goal - q) - 3.0 * v

    sol = lw.simulate(mech, 5.0, q0=[0.0, 0.0], tau=control)
    assert sol.status.notes == ()
    np.testing.assert_allclose(sol.q[-1], goal, atol=1e-4)


def test_a_law_that_gives_a_list_is_recorded_too():
    sol = lw.simulate(lw.chain(2), 0.1, tau=lambda t, q, v: [-v[0], 0.5])
    assert sol.status
    assert not sol.status.notes


@pytest.mark.parametrize("method", ["rk45", "dop853", "radau"])
@pytest.mark.parametrize("size", [1.0, 1e-3])
def test_a_law_with_random_numbers_ends_with_a_status_that_says_so(method, size):
    rng = np.random.default_rng(0)
    sol = lw.simulate(lw.chain(2), 10.0, q0=[0.3, 0.1], tau=lambda t, q, v: size * rng.normal(size=2), method=method)
    assert not sol.status
    assert sol.status.reason == "no function of the state"
    assert "random" in sol.status.message
    assert sol.counters.steps + sol.counters.rejected < 2000


@pytest.mark.parametrize("size", [1.0, 1e-15])
def test_a_law_that_depends_on_more_than_the_state_is_not_recorded_however_small_it_is(size):
    calls = itertools.count(1)
    sol = lw.simulate(lw.chain(2), 0.02, tau=lambda t, q, v: size * next(calls) + 0.0 * q, method="rk4", dt=0.01)
    assert any("called from Python" in note for note in sol.status.notes)


def test_a_law_with_random_numbers_goes_on_in_steps_of_one_length():
    rng = np.random.default_rng(0)
    sol = lw.simulate(lw.chain(2), 0.2, tau=lambda t, q, v: rng.normal(size=2), method="rk4", dt=0.01)
    assert sol.status
