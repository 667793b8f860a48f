"""Zero crossings of functions of the state."""

from __future__ import annotations

import numpy as np
import pytest
from moving_models import four_bar, oscillator

import linkwright as lw
from linkwright.errors import DtypeError, ModelError, ShapeError
from run_settings import settings

ENGINES = [{}, {"method": "dop853"}, {"method": "rk4", "dt": 1e-3}, {"method": "radau"}]


def through_zero(t, q, v):
    return q[0]


@pytest.mark.parametrize("options", ENGINES)
def test_crossings_of_an_oscillator_are_met_at_their_times(options):
    sol = lw.simulate(oscillator(4.0), 5.0, q0=[1.0], rtol=1e-11, events=lw.Event(through_zero), **settings(**options))
    wanted = np.pi / 4 + np.pi / 2 * np.arange(3)
    np.testing.assert_allclose([event.time for event in sol.events], wanted, atol=1e-7)
    assert {event.name for event in sol.events} == {"through_zero"}
    assert max(abs(event.q[0]) for event in sol.events) < 1e-13
    assert sol.time[-1] == 5.0


@pytest.mark.parametrize(("direction", "count"), [(1, 1), (-1, 2), (0, 3)])
def test_a_direction_chooses_crossings(direction, count):
    sol = lw.simulate(oscillator(4.0), 5.0, q0=[1.0], events=[lw.Event(through_zero, direction=direction)])
    assert len(sol.events) == count
    if direction:
        assert all(np.sign(event.v[0]) == direction for event in sol.events)


@pytest.mark.parametrize("options", [*ENGINES, {"interval": 0.1}, {"method": "rk4", "dt": 0.01, "interval": 0.1}])
def test_a_terminal_event_ends_the_run_where_it_happens(options):
    event = lw.Event(lambda t, q, v: q[0] - 0.5, terminal=True, name="half")
    sol = lw.simulate(oscillator(4.0), 5.0, q0=[1.0], rtol=1e-10, events=event, **settings(**options))
    assert sol.status.ok
    assert sol.status.reason == "event"
    assert sol.status.element == "half"
    assert sol.time[-1] == sol.events[-1].time == pytest.approx(np.pi / 6, abs=1e-6)
    assert sol.q[-1, 0] == pytest.approx(0.5, abs=1e-14)
    assert np.all(np.diff(sol.time) > 0.0)
    if "interval" in options:
        np.testing.assert_allclose(sol.time[:-1], 0.1 * np.arange(6), atol=1e-12)


def test_events_before_a_terminal_one_are_told_and_none_after():
    events = [
        lw.Event(lambda t, q, v: q[0] - 0.9, name="early"),
        lw.Event(lambda t, q, v: q[0] - 0.5, terminal=True, name="end"),
        lw.Event(lambda t, q, v: q[0] - 0.4, name="late"),
    ]
    sol = lw.simulate(oscillator(4.0), 5.0, q0=[1.0], rtol=1e-4, events=events, stepping=lw.Stepping(max_step=2.0))
    assert [event.name for event in sol.events] == ["early", "end"]


def test_a_zero_at_the_start_is_no_crossing():
    sol = lw.simulate(oscillator(4.0), 1.0, v0=[1.0], events=lw.Event(through_zero))
    assert sol.events == ()


def test_a_function_that_cannot_be_recorded_is_called():
    def crossing(t, q, v):
        return 1.0 if q[0] > 0.5 else -1.0

    sol = lw.simulate(oscillator(4.0), 1.0, q0=[1.0], rtol=1e-10, events=lw.Event(crossing, terminal=True))
    assert sol.status.time == pytest.approx(np.pi / 6, abs=1e-8)
    assert "called from Python" in sol.status.notes[0]


def test_the_state_of_an_event_closes_the_loops():
    mech = four_bar()
    sol = lw.simulate(mech, 2.0, events=lw.Event(lambda t, q, v: np.cos(q[0]), name="upright"))
    assert sol.events
    for event in sol.events:
        assert np.abs(mech.program("position_correction")(event.q)[1]).max() < 1e-12


def test_events_must_be_functions_that_give_one_number():
    with pytest.raises(ModelError, match="function of t, q and v"):
        lw.Event(3.0)
    with pytest.raises(ShapeError, match="shape"):
        lw.simulate(oscillator(), 1.0, events=lw.Event(lambda t, q, v: q))
    for value in (None, 1j, "text"):
        with pytest.raises(DtypeError, match="must give real numbers"):
            lw.simulate(oscillator(), 1.0, events=lw.Event(lambda t, q, v, value=value: value))
    with pytest.raises(ModelError, match=r"lw\.Event"):
        lw.simulate(oscillator(), 1.0, events=[through_zero])


@pytest.mark.parametrize("options", [{}, {"method": "dop853"}, {"method": "radau"}, {"record": False}])
def test_two_crossings_within_one_step_are_found(options):
    """A swing that passes a level just below its height: up and down again within one step."""
    level = 1.0 - 1e-6
    event = lw.Event(lambda t, q, v: q[0] - level, name="top")
    sol = lw.simulate(oscillator(1.0), 20.0, q0=[1.0], rtol=1e-10, events=event, **settings(**options))
    away = np.arccos(level)
    wanted = [away, *(2.0 * np.pi * k + side * away for k in (1, 2, 3) for side in (-1, 1))]
    np.testing.assert_allclose([e.time for e in sol.events], wanted, atol=2e-5)
    steps = np.searchsorted(sol.time, wanted)
    assert len(set(steps.tolist())) < len(steps)  # or the test shows nothing


@pytest.mark.parametrize("direction", [1, -1])
def test_of_two_crossings_within_one_step_a_direction_chooses_one(direction):
    event = lw.Event(lambda t, q, v: q[0] - (1.0 - 1e-4), direction=direction)
    sol = lw.simulate(oscillator(1.0), 7.0, q0=[-1.0], method="dop853", rtol=1e-9, events=event)
    assert [np.sign(e.v[0]) for e in sol.events] == [direction]


def test_crossings_faster_than_steps_are_counted():
    event = lw.Event(lambda t, q, v: np.sin(40.0 * t) + 0.0 * q[0], name="fast")
    sol = lw.simulate(oscillator(1.0), 20.0, q0=[1.0], method="dop853", events=event)
    wanted = np.pi / 40.0 * np.arange(1, int(20.0 * 40.0 / np.pi) + 1)
    np.testing.assert_allclose([e.time for e in sol.events], wanted, atol=1e-9)


def test_an_event_that_may_only_touch_zero_is_noted():
    event = lw.Event(lambda t, q, v: 1.0 - q[0], name="touch")
    sol = lw.simulate(oscillator(1.0), 7.0, q0=[1.0], events=event)
    assert sol.status
    assert any("'touch'" in note and "not resolved" in note for note in sol.status.notes)


@pytest.mark.parametrize("record", [True, False])
@pytest.mark.parametrize("options", [{}, {"method": "rk4", "dt": 0.1}, {"method": "radau"}, {"interval": 0.25}])
def test_an_event_without_a_value_ends_the_run_with_its_name(options, record):
    def root(t, q, v):
        with np.errstate(invalid="ignore"):
            return np.sqrt(0.55 - t) + 0.0 * q[0]

    sol = lw.simulate(
        oscillator(1.0), 2.0, q0=[1.0], events=lw.Event(root, name="root"), **settings(record=record, **options)
    )
    assert not sol.status
    assert sol.status.reason == "event has no value"
    assert sol.status.element == "root"
    assert "'root'" in str(sol.status)
    assert 0.2 < sol.time[-1] <= 0.55


def test_an_event_without_a_value_after_a_terminal_one_does_not_matter():
    stop = lw.Event(lambda t, q, v: q[0] - np.cos(0.3), terminal=True, name="stop")
    late = lw.Event(lambda t, q, v: np.sqrt(0.9 - t) + 0.0 * q[0], name="late")
    sol = lw.simulate(oscillator(1.0), 2.0, q0=[1.0], events=[late, stop], stepping=lw.Stepping(max_step=0.1))
    assert sol.status
    assert sol.status.reason == "event"
    assert sol.time[-1] == pytest.approx(0.3, abs=1e-6)


@pytest.mark.parametrize("w", [450.0, 500.0, 1999.0])
def test_crossings_whose_periods_fit_into_the_parts_of_steps_are_counted(w):
    """At 500 rad/s the eighths of a step of 0.1 s are whole periods: values there do not change."""
    sol = lw.simulate(oscillator(), 20.0, q0=[1.0], events=lw.Event(lambda t, q, v: np.sin(w * t), name="beat"))
    expected = np.arange(1, int(20.0 * w / np.pi) + 1) * np.pi / w
    times = np.array([event.time for event in sol.events])
    assert len(times) == len(expected)
    assert np.allclose(times, expected, rtol=0, atol=1e-12)
