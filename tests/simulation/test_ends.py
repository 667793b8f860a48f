"""Each way in which a run can end: its reason is told and what was computed is kept."""

from __future__ import annotations

import numpy as np
import pytest
from moving_models import SWUNG, double_pendulum, oscillator, out_of_reach

import linkwright as lw
from linkwright.dynamics.programs import Kernels
from linkwright.simulation.compiled_engines import Adaptive, Trouble
from linkwright.simulation.samples import Rows
from linkwright.simulation.termination import ended


def test_a_run_that_finishes_says_so():
    sol = lw.simulate(double_pendulum(), 0.1, q0=SWUNG)
    assert sol.status.ok
    assert sol.status.reason == "finished"
    assert sol.status.time == 0.1


def not_after(limit):
    return lambda t, q, v: np.sqrt(limit - t) + 0.0 * v


@pytest.mark.parametrize(
    "options", [{}, {"method": "dop853"}, {"method": "rk4", "dt": 0.01}, {"method": "radau", "rtol": 1e-4}]
)
def test_numbers_that_are_none_end_a_run_with_the_joints_name(options):
    sol = lw.simulate(oscillator(), 2.0, q0=[0.5], tau=not_after(1.0), **options)
    assert not sol.status
    assert sol.status.reason in ("no value", "step underflow")
    assert "slide" in str(sol.status)
    assert 0.9 < sol.status.time <= 1.0
    assert sol.time[-1] == sol.status.time
    assert np.isfinite(sol.q).all()
    assert np.isfinite(sol.a).all()


def test_a_blown_up_run_of_fixed_steps_keeps_the_steps_before():
    sol = lw.simulate(double_pendulum(), 100.0, q0=SWUNG, method="rk4", dt=0.3)
    assert sol.status.reason == "no value"
    assert "joint" in sol.status.message
    assert 0 < len(sol) < 334
    assert np.isfinite(sol.q).all()


@pytest.mark.parametrize("called", [False, True])
def test_a_force_that_grows_without_bound_ends_in_step_underflow(called):
    def law(t, q, v):
        return 1.0 / (1.0 - t) ** 2 + 0.0 * v

    def only_python(t, q, v):
        return law(t, q, v) if t > -1.0 else None

    sol = lw.simulate(oscillator(), 2.0, tau=only_python if called else law)
    assert sol.status.reason == "step underflow"
    assert sol.status.time == pytest.approx(1.0, abs=1e-6)
    assert sol.status.element == "slide"
    assert "tolerances" in sol.status.message
    assert sol.status.advice


@pytest.mark.parametrize("options", [{}, {"method": "rk4", "dt": 0.01}, {"method": "radau", "rtol": 1e-5}])
def test_constraints_that_cannot_be_met_end_a_run_with_their_name(options):
    mech = out_of_reach()
    start = mech.assemble([0.0, 1.0])
    sol = lw.simulate(mech, 3.0, q0=start, **options)
    assert not sol.status
    assert sol.status.reason in ("constraint cannot be met", "step underflow")
    assert sol.status.time < 3.0
    assert sol.status.time == sol.time[-1]
    assert np.abs(mech.program("position_correction")(sol.q, sol.time)[1]).max() < 1e-9


def test_a_dead_centre_is_told_with_the_constraints_that_meet_in_it():
    mech = out_of_reach()
    sol = lw.simulate(mech, 3.0, q0=mech.assemble([0.0, 1.0]))
    driver = mech.description.drivers[0].name
    assert f"driver {driver!r}" in str(sol.status)
    assert "depend on each other" in str(sol.status)


@pytest.mark.parametrize("options", [{}, {"method": "rk4", "dt": 0.01}, {"method": "radau", "rtol": 1e-4}])
def test_a_law_that_raises_on_the_way_ends_the_run_with_what_it_said(options):
    def law(t, q, v):
        if t > 0.5:
            raise ValueError("no force today")
        return -v

    sol = lw.simulate(oscillator(), 2.0, q0=[0.5], tau=law, **options)
    assert sol.status.reason == "law failed"
    assert "ValueError: no force today" in sol.status.message
    assert 0.0 < sol.time[-1] <= 0.5
    assert len(sol) > 1


@pytest.mark.parametrize("options", [{}, {"method": "rk4", "dt": 0.01}, {"method": "radau", "rtol": 1e-4}])
@pytest.mark.parametrize("answer", [[[1.0], [1.0, 2.0]], "fast", None, [1.0, 2.0], [1j]], ids=str)
def test_a_law_that_gives_no_numbers_on_the_way_ends_the_run(answer, options):
    sol = lw.simulate(oscillator(), 2.0, q0=[0.5], tau=lambda t, q, v: answer if t > 0.5 else -v, **options)
    assert sol.status.reason == "law failed"
    assert 0.0 < sol.time[-1] <= 0.5


@pytest.mark.parametrize("options", [{}, {"method": "rk4", "dt": 0.01}, {"method": "radau", "rtol": 1e-4}])
def test_an_event_that_fails_on_the_way_keeps_the_points_before(options):
    event = lw.Event(lambda t, q, v: "late" if t > 0.5 else q[0] + 9.0, name="clock")
    sol = lw.simulate(oscillator(), 2.0, q0=[0.5], events=event, **options)
    assert sol.status.reason == "law failed"
    assert "clock" in sol.status.message
    assert 0.1 < sol.time[-1] <= 0.5
    assert sol.status.time == sol.time[-1]


def test_an_interrupt_returns_what_there_is(monkeypatch):
    advance, calls = Adaptive.advance, []

    def interrupted(self):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return advance(self)

    monkeypatch.setattr(Adaptive, "advance", interrupted)
    sol = lw.simulate(double_pendulum(), 50.0, q0=SWUNG)
    assert sol.status.reason == "interrupted"
    assert not sol.status
    assert len(sol) > 10
    assert sol.status.time == sol.time[-1] < 50.0


def test_a_run_that_ended_early_can_be_saved_and_opened(tmp_path):
    sol = lw.simulate(oscillator(), 2.0, tau=not_after(1.0))
    sol.save(tmp_path / "early.nc")
    again = lw.open(tmp_path / "early.nc")
    assert again.status == sol.status
    assert np.array_equal(again.q, sol.q)


def test_what_explains_an_end_cannot_lose_the_run(monkeypatch):
    with lw.Builder("rod") as b:
        bar = b.body("bar", 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1))
        b.joint("revolute", b.ground, bar, "j")
        b.joint("revolute", b.ground, b.triad(bar), "again", cut=True)
    mech = b.build()

    def fail(*_, **__):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(lw.Mechanism, "singular", fail)
    monkeypatch.setattr(Kernels, "position_correction", fail)
    row = Rows(np.zeros(1), np.zeros((1, mech.nq)), np.zeros((1, mech.nv)), np.zeros((1, mech.nv)))
    for reason in ("step underflow", "constraint cannot be met"):
        status = ended(mech, Trouble(reason, 0.5, 0.1, row), row)
        assert status.reason == reason
        assert "0.5" in status.message
