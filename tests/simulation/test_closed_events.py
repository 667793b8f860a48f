"""Events of closed mechanisms: a parallelogram, whose cranks are one pendulum."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import linkwright as lw
from linkwright.errors import LinkwrightError, ModelError
from run_settings import settings

PULL = 9.81 * 2.0 / (2 * 0.35 + 1.0)  # of both cranks and the coupler, over what they resist
START, END = 0.6, 3.0
ENGINES = [{}, {"method": "dop853"}, {"method": "rk4", "dt": 0.002}, {"method": "radau", "rtol": 1e-9}]


@cache
def cranks() -> tuple[lw.Mechanism, np.ndarray]:
    """Cranks of 1 m hang from feet 2 m apart; all angles are from where they hang. The joint that closes is `far`."""
    with lw.Builder("cranks") as b:
        b.gravity((9.81, 0.0, 0.0))
        first, coupler, second = (b.body(n, 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1)) for n in "abc")
        b.joint("revolute", b.triad(b.ground), b.triad(first), "first")
        b.joint("revolute", b.triad(first, (1, 0, 0)), b.triad(coupler), "near")
        b.joint("revolute", b.triad(b.ground, (0, 2, 0)), b.triad(second), "last")
        b.joint("revolute", b.triad(coupler, (0, 2, 0)), b.triad(second, (1, 0, 0)), "far", cut=True)
    mech = b.build()
    way = np.zeros(3)
    for name, sign in (("first", 1.0), ("near", -1.0), ("last", 1.0)):
        way[mech.joints[name].v_slice] = sign
    return mech, way


@cache
def pendulum():
    return solve_ivp(
        lambda t, y: [y[1], -PULL * np.sin(y[0])],
        (0.0, END),
        [START, 0.0],
        method="DOP853",
        rtol=1e-12,
        atol=1e-13,
        dense_output=True,
    ).sol


def crossings(function) -> np.ndarray:
    """The times at which a function of the pendulum's angle and rate crosses zero, by Brent's method."""
    times = np.linspace(1e-9, END, 20_001)
    values = np.array([function(*pendulum()(t)) for t in times])
    at = np.flatnonzero(values[:-1] * values[1:] < 0.0)
    return np.array([brentq(lambda t: function(*pendulum()(t)), times[k], times[k + 1], xtol=1e-14) for k in at])


def swing(events, **options):
    mech, way = cranks()
    return lw.simulate(mech, END, q0=START * way, v0=0.0 * way, events=events, **settings(**{"rtol": 1e-10, **options}))


def times_of(sol, name: str) -> list[float]:
    return [event.time for event in sol.events if event.name == name]


@pytest.mark.parametrize("options", ENGINES)
def test_angles_rates_points_and_forces_of_a_loop_are_met_at_their_times(options) -> None:
    mech, way = cranks()
    near = int(np.argmin(way))
    foot = mech.joints["first"].v_slice.start

    def height(t, q, v):  # of the coupler's far end, which the loop joint holds
        return mech.pose(np.asarray(q, float), "b")[0, 3] - 0.95

    def force(t, q, v):
        """Along the cranks' plane, of what the loop joint exerts: it changes its sign on the way."""
        return float(mech.constraint_forces(np.asarray(q, float), np.asarray(v, float), np.zeros(3))[0])

    events = [
        lw.Event(lambda t, q, v: q[foot] - 0.2, name="angle"),
        lw.Event(lambda t, q, v: v[near], name="rate"),
        lw.Event(height, name="height"),
        lw.Event(force, name="force"),
    ]
    sol = swing(events, **options)
    assert sol.status
    np.testing.assert_allclose(times_of(sol, "angle"), crossings(lambda x, w: x - 0.2), atol=1e-6)
    np.testing.assert_allclose(times_of(sol, "rate"), crossings(lambda x, w: w), atol=1e-6)
    np.testing.assert_allclose(times_of(sol, "height"), crossings(lambda x, w: np.cos(x) - 0.95), atol=1e-6)
    values = [force(0.0, x * way, w * way) for x, w in pendulum()(np.linspace(0.0, END, 2001)).T]
    assert len(times_of(sol, "force")) == np.count_nonzero(np.diff(np.sign(values)))
    assert max(abs(force(e.time, e.q, e.v)) for e in sol.events if e.name == "force") < 1e-6
    for event in sol.events:
        assert np.abs(event.q - event.q[foot] * way).max() < 1e-9  # its loops are closed


@pytest.mark.parametrize("options", ENGINES)
def test_two_crossings_within_one_step_of_a_loop_are_found(options) -> None:
    foot = cranks()[0].joints["first"].v_slice.start
    depth = 1e-5  # below where it turns: the crossings are some milliseconds apart
    sol = swing(lw.Event(lambda t, q, v: q[foot] + START - depth, name="deep"), **options)
    wanted = crossings(lambda x, w: x + START - depth)
    assert len(wanted) >= 2
    np.testing.assert_allclose(times_of(sol, "deep"), wanted, atol=1e-4)


@pytest.mark.parametrize("options", ENGINES)
def test_a_terminal_event_ends_a_loops_motion_where_it_happens_and_not_where_it_begins(options) -> None:
    foot = cranks()[0].joints["first"].v_slice.start
    events = [
        lw.Event(lambda t, q, v: q[foot] - START, name="start", terminal=True),
        lw.Event(lambda t, q, v: q[foot] + 0.3, name="far", terminal=True, direction=-1),
        lw.Event(lambda t, q, v: q[foot], name="middle"),
    ]
    sol = swing(events[1:], **options)
    assert [event.name for event in sol.events] == ["middle", "far"]
    assert abs(sol.time[-1] - crossings(lambda x, w: x + 0.3)[0]) < 1e-6
    # From zero itself nothing crosses: it is met, if at all, when it comes back.
    back = swing(events[0], **options)
    assert back.time[-1] > 1.0


def test_an_event_that_a_loop_only_touches_is_noted() -> None:
    foot = cranks()[0].joints["first"].v_slice.start
    sol = swing(lw.Event(lambda t, q, v: q[foot] + START, name="touch"))
    assert sol.status
    met, noted = len(times_of(sol, "touch")), sum("'touch'" in note for note in sol.status.notes)
    assert noted or met


@pytest.mark.parametrize("record", [True, False])
def test_an_event_that_is_infinite_at_the_initial_state_is_refused_by_its_name(record: bool) -> None:
    def pole(t, q, v):
        return 1.0 / (0.0 * np.float64(1.0) + 0.0 * q[0])

    with pytest.raises(ModelError, match=r"event 'pole' has no finite value at the initial state: .* inf"):
        swing(lw.Event(pole, name="pole"), record=record)


def test_an_event_that_becomes_infinite_ends_the_run_with_its_name_and_no_warning() -> None:
    def wall(t, q, v):
        return lw.where(t > 0.5, np.inf, 1.0) + 0.0 * q[0]

    sol = swing(lw.Event(wall, name="wall"))
    assert sol.status.reason == "event has no value"
    assert sol.status.element == "wall"
    assert "inf" in sol.status.message
    assert 0.2 < sol.time[-1] <= 0.5


@pytest.mark.parametrize("error", [ZeroDivisionError, StopIteration, KeyError])
def test_an_event_that_raises_at_the_first_call_is_named(error) -> None:
    def raises(t, q, v):
        raise error("no")

    with pytest.raises(LinkwrightError, match=rf"event 'bad' raised {error.__name__}") as told:
        swing(lw.Event(raises, name="bad"))
    assert isinstance(told.value.__cause__, error)
