"""Zero crossings of functions of the state."""

from __future__ import annotations

import numpy as np
import pytest
from moving_models import four_bar, oscillator

import linkwright as lw
from linkwright.errors import ModelError, ShapeError

ENGINES = [{}, {"method": "dop853"}, {"method": "rk4", "dt": 1e-3}, {"method": "radau"}]


def through_zero(t, q, v):
    return q[0]


@pytest.mark.parametrize("options", ENGINES)
def test_crossings_of_an_oscillator_are_met_at_their_times(options):
    sol = lw.simulate(oscillator(4.0), 5.0, q0=[1.0], rtol=1e-11, events=lw.Event(through_zero), **options)
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
    sol = lw.simulate(oscillator(4.0), 5.0, q0=[1.0], rtol=1e-10, events=event, **options)
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
    sol = lw.simulate(oscillator(4.0), 5.0, q0=[1.0], max_step=2.0, rtol=1e-4, events=events)
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
        assert np.abs(mech.program("closing")(event.q)[1]).max() < 1e-12


def test_events_must_be_functions_that_give_one_number():
    with pytest.raises(ModelError, match="function of t, q and v"):
        lw.Event(3.0)
    with pytest.raises(ShapeError, match="shape"):
        lw.simulate(oscillator(), 1.0, events=lw.Event(lambda t, q, v: q))
    with pytest.raises(ModelError, match=r"lw\.Event"):
        lw.simulate(oscillator(), 1.0, events=[through_zero])
