"""Loops that repeat each other's equations, typed with a few digits: what is simulated, and where a run ends."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import linkwright as lw
from linkwright.constraints.kinematics import Kinematics
from linkwright.constraints.newton import Batch, damped_newton, start_state
from linkwright.constraints.program_layout import moved
from linkwright.dynamics.closed import redundancy as rounding
from linkwright.errors import LinkwrightWarning
from linkwright.formats.mks.mks_writer import write_mks

G = 9.81
APART = (0.0, 0.8137, 1.4274, 2.1411)


#: Tilts of the plane, and digits of the numbers.
TYPED = [(tilt, digits) for tilt in (0.4, 1.234) for digits in (3, 4, 6)]
TURN = 3.0  # rad/s


def cranks(count: int, tilt: float, digits: int, drawn: float = 0.9, *, driven: bool = False) -> lw.Mechanism:
    """Equal cranks of 1 m that carry one platform, in a plane that is tilted in space, drawn at an angle.

    A driver turns the first one where they are driven.
    """
    c, s = np.cos(tilt), np.sin(tilt)
    turn = np.array([[1, 0, 0], [0, c, -s], [0, s, c]]) @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])

    def typed(*v: float) -> np.ndarray:
        return np.round(turn @ np.array(v, float), digits)

    tip = np.array([np.cos(drawn), np.sin(drawn), 0.0])
    with lw.Builder("cranks") as b:
        b.gravity(typed(0, -G, 0))
        b.body("platform", 2.0, (0.7, 0.1, 0), (0.2, 0.2, 0.2))
        b.place("platform", typed(*tip), h=typed(0, 0, 1), f=typed(1, 0, 0))
        for k, x in enumerate(APART[:count]):
            crank = b.body(f"crank{k}", 1.0, (0.5, 0, 0), (0.1, 0.1, 0.1))
            b.place(crank, typed(x, 0, 0), h=typed(0, 0, 1), f=typed(*tip))
            pivot = b.triad(b.ground, typed(x, 0, 0), h=typed(0, 0, 1), f=typed(1, 0, 0))
            b.joint("revolute", pivot, b.triad(crank), f"pivot{k}")
            pin = b.triad("platform", (round(x, digits), 0, 0))
            b.joint("revolute", b.triad(crank, (1, 0, 0)), pin, f"pin{k}")
        if driven:
            b.driver("joint", "pivot0", drawn + TURN * lw.TIME, name="motor")
    return b.build()


def turning(count: int, times: np.ndarray, drawn: float = 0.9) -> np.ndarray:
    """The rate of cranks that turn alike, by Lagrange's equation: the platform only translates."""
    inertia, torque = count * 0.35 + 2.0, G * (count * 0.5 + 2.0)
    y0, span = [drawn, 0.0], (0.0, float(times[-1]))
    sol = solve_ivp(
        lambda _, y: [y[1], -torque * np.cos(y[0]) / inertia], span, y0, rtol=1e-11, atol=1e-12, t_eval=times
    )
    return np.asarray(sol.y[1])


def speed(sol: lw.Solution, body: str) -> np.ndarray:
    return np.asarray(np.linalg.norm(sol.angular_velocity(body), axis=1))


@pytest.mark.parametrize(("count", "tilt", "digits"), [(2, 0.4, 3), (2, 1.234, 6), (3, 0.4, 6), (3, 1.234, 3)])
def test_equal_cranks_with_rounded_numbers_turn_alike_through_their_flat_position(
    count: int, tilt: float, digits: int
) -> None:
    sol = lw.simulate(cranks(count, tilt, digits), 1.6, saving=lw.Saving(interval=0.05))
    assert sol.status, str(sol.status)
    energy = sol.energy()
    assert np.ptp(energy) < 1e-6 * np.abs(energy).max()
    right = np.abs(turning(count, sol.time))
    for k in range(count):
        assert np.abs(speed(sol, f"crank{k}") - right).max() < 100.0 * 10.0**-digits
    assert speed(sol, "platform").max() < 100.0 * 10.0**-digits
    assert any("redundant loops are open by" in note and "moved" in note for note in sol.status.notes)


def test_the_mechanism_that_closes_is_within_the_rounding_of_the_numbers() -> None:
    for count, tilt, digits in ((2, 0.7, 4), (3, 0.3, 4), (4, 1.0, 3), (4, 0.6, 6)):
        mech = cranks(count, tilt, digits)
        near = rounding.nearest_closed(mech).mechanism
        assert near is not mech
        assert near.programs.gap == 0.0
        for name in ("ri", "pi", "rj", "pj"):
            assert np.abs(getattr(near.description, name) - getattr(mech.description, name)).max() < 10.0**-digits


def test_a_mechanism_whose_loops_close_is_simulated_as_it_is() -> None:
    mech = cranks(3, 0.4, 16)
    nearest = rounding.nearest_closed(mech)
    assert nearest.mechanism is mech
    assert not nearest.note


def test_a_run_ends_where_rounded_numbers_leave_open_how_a_singular_position_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rounding, "closing_mechanism", lambda *_: None)
    for digits in (4, 6):
        sol = lw.simulate(cranks(3, 0.4, digits), 1.6)
        assert sol.status.reason == "rounded numbers"
        assert sol.status.time < 0.6  # the cranks come to lie flat at 0.47 s
        assert "singular position" in sol.status.message
        assert "more digits" in sol.status.advice
        energy = sol.energy()
        assert np.ptp(energy) < 1e-5 * np.abs(energy).max()


@pytest.mark.parametrize(("tilt", "digits"), TYPED)
def test_assembly_projection_and_the_initial_state_stay_within_the_rounding_of_the_drawing(
    tilt: float, digits: int
) -> None:
    mech = cranks(3, tilt, digits)
    drawn = cranks(3, tilt, 16).assemble()
    with pytest.warns(LinkwrightWarning, match="redundant loops are open by .* moved"):
        states = [mech.assemble(), mech.initial_state()[0], mech.project(drawn)[0], mech.assemble(drawn, ["pivot0"])]
    for q in states:
        assert np.abs(q - drawn).max() < 5.0 * 10.0**-digits


@pytest.mark.parametrize("tilt", [0.4, 0.7, 1.234])
@pytest.mark.parametrize("drawn", [0.5, 1.1, 2.0])
def test_bodies_that_are_drawn_open_by_rounding_are_assembled_nearby_wherever_they_are_drawn(
    tilt: float, drawn: float
) -> None:
    with pytest.warns(LinkwrightWarning, match="redundant loops are open by .* moved"):
        q = cranks(3, tilt, 3, drawn).assemble()
    assert np.abs(np.abs(q) - drawn).max() < 5e-3


@pytest.mark.parametrize("tilt", [0.0, 0.4])
def test_bodies_beside_a_closed_position_are_assembled_about_as_near_as_that_is(tilt: float) -> None:
    kinematics = Kinematics(cranks(3, tilt, 16).description)
    closed = start_state(kinematics.equations)
    rng = np.random.default_rng(5)
    for aside in (1e-4, 1e-5):
        for _ in range(40):
            shake = rng.uniform(-aside, aside, (kinematics.equations.nb, 6))
            start = np.ascontiguousarray(moved(closed.T, shake.T).T)
            state = damped_newton(Batch.of_one(kinematics.programs), start[None], None, 0.0, leave_out_turned=True)[0]
            assert state.miss < 1e-11
            assert np.abs(state.q - start).max() < 2.0 * aside


@pytest.mark.parametrize(("tilt", "digits"), TYPED)
def test_prescribed_rates_and_driver_torques_are_those_of_the_exact_mechanism_to_the_rounding(
    tilt: float, digits: int
) -> None:
    times = np.linspace(0.0, 1.2, 13)  # the cranks lie flat at 0.747 s
    sol = lw.analyse(cranks(3, tilt, digits, driven=True), times=times, analysis="inverse dynamic")
    assert sol.status, str(sol.status)
    assert any("redundant loops are open by" in note and "moved" in note for note in sol.status.notes)
    for k in range(3):
        assert np.abs(speed(sol, f"crank{k}") - TURN).max() < 100.0 * 10.0**-digits
    assert speed(sol, "platform").max() < 100.0 * 10.0**-digits
    # The cranks turn evenly and the platform only translates: gravity alone takes work.
    torque = G * (3 * 0.5 + 2.0) * np.cos(0.9 + TURN * times)
    assert np.abs(sol.series["motor.torque"].values - torque).max() < 1000.0 * 10.0**-digits


@pytest.mark.parametrize("tilt", [0.4, 1.0])
def test_four_cranks_whose_gaps_no_assembly_closes_are_assembled_as_the_nearest_mechanism(tilt: float) -> None:
    with pytest.warns(LinkwrightWarning, match="redundant loops are open by .* moved"):
        q = cranks(4, tilt, 3).assemble()
    assert np.abs(np.abs(q) - 0.9).max() < 5e-3
    sol = lw.analyse(cranks(4, tilt, 3, driven=True), times=[0.0, 0.1], analysis="kinematic")
    assert np.abs(speed(sol, "crank3") - TURN).max() < 0.1


def test_a_rollout_and_a_sampled_loop_are_the_motion_that_is_simulated() -> None:
    for digits in (3, 6):
        mech = cranks(3, 0.4, digits)
        sol = lw.simulate(mech, 0.3, dt=1e-3, method="rk4")
        with pytest.warns(LinkwrightWarning, match="redundant loops are open by .* moved"):
            motions = lw.rollout(mech, sol.q[0], sol.v[0], 1e-3, 300)
        assert np.abs(motions.final_q - sol.q[-1]).max() < 1e-9

        class Idle:
            def step(self, *_: object) -> np.ndarray:
                return np.zeros(1)

        run = lw.control.Loop(mech, Idle(), period=1e-2, drives=("pivot0",)).run(0.3)
        assert np.abs(run.q[-1] - sol.q[-1]).max() < 1e-9
        assert sum("redundant loops are open by" in note for note in run.status.notes) == 1


def test_cases_of_a_sweep_are_those_of_the_exact_mechanism_to_the_rounding(tmp_path: Path) -> None:
    text = write_mks(cranks(3, 0.4, 4, driven=True).description)
    assert text.count("3*TIME") == 1
    file = tmp_path / "cranks.mks"
    file.write_text(text.replace("3*TIME", "turn*TIME").replace("BODY", "PARAMETER turn = 3;\nBODY", 1))
    with pytest.warns(LinkwrightWarning, match="redundant loops are open by .* moved"):
        study = lw.sweep(file, {"turn": [2.0, 3.0]}, ["rate = max(pivot2.rate)"], times=[0.0, 0.1, 0.2])
    assert np.abs(np.asarray(study["rate"]) - [2.0, 3.0]).max() < 1e-3


def test_equal_cranks_rest_where_their_masses_hang_lowest_whatever_their_digits() -> None:
    for digits in (3, 6):
        with pytest.warns(LinkwrightWarning, match="redundant loops"):
            rest = cranks(3, 0.4, digits, drawn=-0.9).equilibrium()
        assert rest.stable
        assert np.abs(rest.q[:3] + np.pi / 2).max() < 10.0 * 10.0**-digits


def test_nothing_is_reported_where_loops_close() -> None:
    mech = cranks(3, 0.4, 16)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LinkwrightWarning)
        q, v = mech.initial_state()
        mech.project(mech.assemble())
        lw.rollout(mech, q, v, 1e-3, 2)
    sol = lw.analyse(cranks(3, 0.4, 16, driven=True), times=[0.0, 0.1], analysis="kinematic")
    assert not any("rounded" in note for note in sol.status.notes)
