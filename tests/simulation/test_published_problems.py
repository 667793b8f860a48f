"""Simulations of published benchmark problems, against solutions that owe nothing to the package."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import linkwright as lw
import rotation
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.formats.mks.mks_writer import write_mks
from published import problems, solutions
from published.problems import ANGLES, Floats, Problem


def simulated(problem: Problem, end: float, **how: object) -> tuple[lw.Mechanism, lw.Solution]:
    mech = problem.make()
    q, v = problem.state(mech)
    sol = lw.simulate(mech, t_end=end, q0=q, v0=v, **how)
    assert sol.time[-1] == end, sol.status
    return mech, sol


def apart(mech: lw.Mechanism, sol: lw.Solution, wanted: dict[str, Floats]) -> float:
    """The largest difference of a coordinate."""
    return max(float(np.abs(sol.q[:, mech.joints[name].q_slice][:, 0] - x).max()) for name, x in wanted.items())


SOLVED: list[tuple[Problem, Callable[[Floats], dict[str, Floats]], float]] = [
    (problems.pendulum(), solutions.pendulum, 10.0),
    (problems.four_bars(1), lambda t: solutions.four_bars(1, t), 10.0),
    (problems.four_bars(3), lambda t: solutions.four_bars(3, t), 10.0),
    (problems.squeezer(), solutions.squeezer, 0.05),
    (problems.bricard(), solutions.bricard, 10.0),
    (problems.governor(), solutions.governor, 1.0),
]


@pytest.mark.parametrize(("problem", "solution", "end"), SOLVED, ids=[p.name for p, _, _ in SOLVED])
def test_a_published_problem_comes_out_as_solved_by_hand(
    problem: Problem, solution: Callable[[Floats], dict[str, Floats]], end: float
) -> None:
    mech, sol = simulated(problem, end, rtol=1e-10)
    assert apart(mech, sol, solution(np.asarray(sol.time))) < 1e-6


@pytest.mark.parametrize(
    ("problem", "allowed"),
    [(problems.pendulum(), 5e-5), (problems.four_bars(3), 1e-3), (problems.bricard(), 1e-3)],
    ids=lambda x: x.name if isinstance(x, Problem) else "",
)
def test_a_published_problem_keeps_its_energy(problem: Problem, allowed: float) -> None:
    mech, sol = simulated(problem, problem.end)
    energy = mech.kinetic_energy(sol.q, sol.v) + mech.potential_energy(sol.q)
    assert np.abs(energy - energy[0]).max() < allowed


def test_the_squeezer_is_where_the_test_set_says_after_003_seconds() -> None:
    mech, sol = simulated(problems.squeezer(), 0.03, rtol=1e-10)
    at = [mech.joints[name].q_slice.start for name in ANGLES]
    np.testing.assert_allclose(sol.q[-1, at], solutions.SQUEEZER_AT_003[0], atol=1e-7)
    np.testing.assert_allclose(sol.v[-1, at], solutions.SQUEEZER_AT_003[1], rtol=1e-6, atol=1e-5)


#: The start as it is printed in the test set, each angle with its digits.
PRINTED = {
    "beta": "-0.0617138900142764496358948458001",
    "theta": "0",
    "gamma": "0.455279819163070380255912382449",
    "phi": "0.222668390165885884674473185609",
    "delta": "0.487364979543842550225598953530",
    "omega": "-0.222668390165885884674473185609",
    "epsilon": "1.23054744454982119249735015568",
}


def squeezer_from(values: dict[str, str]) -> lw.Mechanism:
    """The squeezer as a model file without poses of bodies, with these angles as INITIAL."""
    text = write_mks(problems.squeezer().make().description)
    given = ", ".join(f"{name}.angle = {value}" for name, value in values.items())
    return lw.Mechanism(parse_mks(text.replace("ENDMODEL", f"INITIAL ({given});\nENDMODEL")))


def published_angles(mech: lw.Mechanism, q: Floats) -> Floats:
    return np.array([q[mech.joints[name].q_slice.start] for name in ANGLES])


def test_the_squeezer_typed_in_as_initial_is_where_the_test_set_says_after_003_seconds() -> None:
    mech = squeezer_from(PRINTED)
    np.testing.assert_allclose(published_angles(mech, mech.initial_state()[0]), problems.SQUEEZER_START, atol=1e-12)
    sol = lw.simulate(mech, t_end=0.03, rtol=1e-10)
    assert sol.status
    at = [mech.joints[name].q_slice.start for name in ANGLES]
    np.testing.assert_allclose(sol.q[-1, at], solutions.SQUEEZER_AT_003[0], atol=1e-7)
    np.testing.assert_allclose(sol.v[-1, at], solutions.SQUEEZER_AT_003[1], rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("digits", [4, 6, 9])
def test_the_squeezer_s_angles_are_met_with_fewer_digits(digits: int) -> None:
    mech = squeezer_from({name: f"{float(value):.{digits}f}" for name, value in PRINTED.items()})
    q, _ = mech.initial_state()
    np.testing.assert_allclose(published_angles(mech, q), problems.SQUEEZER_START, atol=2.0 * 10.0**-digits)
    assert np.abs(mech.kernels.position_correction(q)[1]).max() < 1e-13


PAIRS = list(itertools.combinations(ANGLES, 2))


@pytest.mark.parametrize("pair", rotation.some(PAIRS, 6), ids="-".join)
def test_any_two_of_the_squeezer_s_angles_are_met(pair: tuple[str, str]) -> None:
    # Every one but beta and theta is at a turning point of its motion: the others follow from it to a root only.
    mech = squeezer_from({name: PRINTED[name] for name in pair})
    q, _ = mech.initial_state()
    met = {name: q[mech.joints[name].q_slice.start] for name in pair}
    np.testing.assert_allclose(list(met.values()), [float(PRINTED[name]) for name in pair], atol=1e-12)
    assert np.abs(mech.kernels.position_correction(q)[1]).max() < 1e-12


@pytest.mark.parametrize("n", [1, 3, 10])
def test_four_bars_stay_parallel_when_they_pass_positions_without_rank(n: int) -> None:
    mech, sol = simulated(problems.four_bars(n), 10.0, method="rk4", dt=5e-3)
    angles = np.stack([sol.q[:, mech.joints[f"pivot{k}"].q_slice.start] for k in range(n + 1)])
    # All of them lie along x ten times in these ten seconds, where each could fold its own way.
    assert np.sum(np.diff(np.sign(np.sin(angles[0]))) != 0) >= 8
    assert np.ptp(angles, axis=0).max() < 1e-9


def test_the_governor_s_energy_falls_by_its_dampers_alone() -> None:
    mech, sol = simulated(problems.governor(), 0.5)
    g, time = problems.GOVERNOR, np.asarray(sol.time)
    slide, arm = (mech.joints[name].q_slice.start for name in ("slide", "arm0"))
    a, va, x, vx = sol.q[:, arm], sol.v[:, arm], -sol.q[:, slide], -sol.v[:, slide]
    side, down = 0.5 * g.arm * np.sin(a), x - 0.5 * g.arm * np.cos(a)
    length = np.hypot(side, down)
    rate = (side * 0.5 * g.arm * np.cos(a) * va + down * (vx + 0.5 * g.arm * np.sin(a) * va)) / length
    springs = g.stiffness * (length - g.length) ** 2
    energy = mech.kinetic_energy(sol.q, sol.v) + mech.potential_energy(sol.q) + springs
    lost = 2.0 * g.damping * np.concatenate([[0.0], np.cumsum(np.diff(time) * 0.5 * (rate[1:] ** 2 + rate[:-1] ** 2))])
    np.testing.assert_allclose(energy + lost, energy[0], atol=1e-4)
