"""Forces that jump are named, with what to do: dry friction at rest, and laws that are held between samples."""

from __future__ import annotations

import numpy as np
import pytest
from moving_models import oscillator, out_of_reach
from scipy.integrate import solve_ivp

import linkwright as lw

DRY = 1.2  # N, where the spring of 4 N/m holds a mass that comes to rest within 0.3 m


def sign_in_numpy(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    return -DRY * np.sign(v)


def sign_by_if(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.array([-DRY if v[0] > 0.0 else DRY])


@pytest.mark.parametrize("law", [sign_in_numpy, sign_by_if])
@pytest.mark.parametrize("method", ["rk45", "dop853"])
def test_a_python_law_that_chatters_at_rest_ends_the_run_with_its_name_and_what_to_do(law, method) -> None:
    sol = lw.simulate(oscillator(), 40.0, q0=[1.0], v0=[0.0], tau=law, method=method)
    assert not sol.status
    assert sol.status.reason == "law jumps"
    assert "tau jumps to and fro" in sol.status.message
    assert "'slide'" in sol.status.message
    assert "tanh" in sol.status.advice
    assert sol.counters.steps < 20_000
    # Half periods of π/2 s, each 2·0.3 m shorter than the one before, to rest at 1 − 2·0.6 = −0.2.
    assert abs(sol.time[-1] - np.pi) < 0.1
    assert abs(sol.q[-1, 0] + 0.2) < 1e-3


def test_why_numpys_sign_was_not_recorded_says_what_to_use() -> None:
    sol = lw.simulate(oscillator(), 0.5, q0=[1.0], v0=[0.0], tau=sign_in_numpy)
    assert any("lw.sign" in note and "np.sign" in note for note in sol.status.notes)


def test_a_recorded_sign_is_compiled_and_its_chatter_is_noted() -> None:
    end = lw.Event(lambda t, q, v: t - 3.4, terminal=True, name="enough")
    sol = lw.simulate(oscillator(), 40.0, q0=[1.0], v0=[0.0], tau=lambda t, q, v: -DRY * lw.sign(v), events=end)
    assert sol.status
    assert any("tau jumps to and fro" in note and "tanh" in note for note in sol.status.notes)
    assert not any("could not be recorded" in note for note in sol.status.notes)
    assert abs(sol.q[-1, 0] + 0.2) < 1e-3


def test_a_force_of_the_model_that_chatters_is_noted_by_its_name() -> None:
    with lw.Builder("dry") as b:
        b.gravity((0.0, 0.0, 0.0))
        block = b.body("block", mass=1.0, inertia=(1.0, 1.0, 1.0))
        slide = b.joint("prismatic", b.ground, block, name="slide")
        b.joint_spring(slide, 4.0, name="spring")
        b.joint_force(slide, lambda q, v: -DRY * lw.sign(v), name="rubs")
    end = lw.Event(lambda t, q, v: t - 3.4, terminal=True, name="enough")
    sol = lw.simulate(b.build(), 40.0, q0=[1.0], v0=[0.0], events=end)
    assert any("force 'rubs' jumps to and fro" in note for note in sol.status.notes)


@pytest.mark.parametrize("record", [True, False])
def test_a_smooth_law_of_dry_friction_comes_to_rest_without_a_word(record: bool) -> None:
    def law(t, q, v):
        return -DRY * np.tanh(v / 0.01)

    sol = lw.simulate(oscillator(), 6.0, q0=[1.0], v0=[0.0], tau=law, rtol=1e-6, stepping=lw.Stepping(record=record))
    assert sol.status
    assert not any("jumps" in note for note in sol.status.notes)
    right = solve_ivp(
        lambda t, y: [y[1], -4.0 * y[0] - DRY * np.tanh(y[1] / 0.01)],
        (0.0, 6.0),
        [1.0, 0.0],
        method="Radau",
        rtol=1e-9,
        atol=1e-11,
    )
    assert abs(sol.q[-1, 0] - right.y[0, -1]) < 1e-5


def test_a_law_that_is_held_between_samples_is_noted_with_what_each_jump_costs() -> None:
    def held(t, q, v):
        return np.array([0.1 * float(np.sin(3.7 * int(t / 0.05)))])

    sol = lw.simulate(oscillator(), 3.0, q0=[1.0], v0=[0.0], tau=held, stepping=lw.Stepping(record=False))
    assert sol.status
    note = next(note for note in sol.status.notes if "jumps" in note)
    assert note.startswith("tau jumps ")
    assert 40 <= int(note.split()[2]) <= 60
    assert "dt" in note
    right = lw.simulate(
        oscillator(), 3.0, q0=[1.0], v0=[0.0], tau=held, method="rk4", dt=0.0125, stepping=lw.Stepping(record=False)
    )
    assert not any("jumps" in note for note in right.status.notes)
    assert sol.counters.steps + sol.counters.rejected < 60 * 40  # some attempts a sample


@pytest.mark.parametrize("method", ["rk45", "dop853"])
@pytest.mark.parametrize("record", [True, False])
def test_short_steps_before_a_singular_position_are_no_jumps_of_a_smooth_law(method: str, record: bool) -> None:
    mech = out_of_reach()
    q0 = mech.assemble([0.0, 1.0])
    for tolerance in (1e-5, 1e-6, 1e-7, 1e-8):
        sol = lw.simulate(
            mech,
            2.0,
            q0=q0,
            tau=lambda t, q, v: 0.2 * np.sin(t) - 0.1 * v,
            method=method,
            rtol=tolerance,
            stepping=lw.Stepping(atol=tolerance, record=record),
        )
        assert sol.status.reason == "step underflow"
        assert not any("jumps" in note for note in sol.status.notes)


@pytest.mark.parametrize("end", [2.5, 2.52])  # at a jump, and between two
def test_jumps_are_noted_too_where_the_run_ends_early(end: float) -> None:
    def held(t, q, v):
        return np.array([np.nan if t > end else 0.1 * float(np.sin(3.7 * int(t / 0.05)))])

    sol = lw.simulate(oscillator(), 3.0, q0=[1.0], v0=[0.0], tau=held, stepping=lw.Stepping(record=False))
    assert not sol.status
    note = next(note for note in sol.status.notes if "jumps" in note)
    assert 30 <= int(note.split()[2]) <= 50


def test_a_law_that_jumps_once_needs_no_note() -> None:
    sol = lw.simulate(
        oscillator(), 3.0, q0=[1.0], v0=[0.0], tau=lambda t, q, v: np.array([lw.where(t > 1.0, 5.0, 0.0)])
    )
    assert sol.status
    assert not sol.status.notes


@pytest.mark.parametrize("stiffness", [1e4, 1e6])
def test_a_stiff_stop_is_short_steps_and_no_jump(stiffness: float) -> None:
    def stop(t, q, v):
        return -stiffness * lw.maximum(q - 0.5, 0.0)

    sol = lw.simulate(oscillator(), 60.0, q0=[-1.0], v0=[0.0], tau=stop)
    assert sol.status
    assert not sol.status.notes
