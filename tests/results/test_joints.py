"""Joint coordinates and rates found from the motion of bodies, against those that made it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from motions import GAIN, angle, crank_motion, from_coordinates
from numpy.testing import assert_allclose

import linkwright as lw
from linkwright.model.joint_kinds import KINDS

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"
TIME = np.linspace(0.0, 1.0, 41)


def path(mech: lw.Mechanism, seed: int, size: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """q (T, nq) along a path of constant rates from a random start, and the rates (T, nv)."""
    rng = np.random.default_rng(seed)
    v = rng.uniform(-size, size, mech.nv)
    start = mech.integrate(mech.neutral(), rng.uniform(-1.5, 1.5, mech.nv))
    q = mech.integrate(np.tile(start, (len(TIME), 1)), v * TIME[:, None])
    return q, np.tile(v, (len(TIME), 1))


def difference(mech: lw.Mechanism, q0: np.ndarray, q1: np.ndarray) -> np.ndarray:
    return np.asarray(mech.difference(np.ascontiguousarray(q0), np.ascontiguousarray(q1)))


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))])
def test_coordinates_of_a_random_tree_of_every_kind_are_found_again(seed: int) -> None:
    mech = lw.random_tree(14, seed=seed)
    q, v = path(mech, seed)
    solution = from_coordinates(mech, TIME, q, v)
    assert_allclose(difference(mech, q, solution.q), 0.0, atol=1e-12)
    assert_allclose(solution.v, v, atol=1e-12)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_kind_gives_its_coordinates_to_the_number(kind: str) -> None:
    mech = lw.random_tree(3, seed=1, joints=[kind])
    q, v = path(mech, 3)
    solution = from_coordinates(mech, TIME, q, v)
    for joint in mech.joints:
        found, wanted = solution.joint(joint.name), q[:, joint.q_slice]
        if kind in ("spherical", "free"):  # one sign for the whole path
            found[:, -4:] *= np.sign(np.sum(found[0, -4:] * wanted[0, -4:]))
        assert_allclose(found, wanted, atol=1e-13)
        assert_allclose(solution.joint_rate(joint.name), v[:, joint.v_slice], atol=1e-12)


def test_a_joint_written_from_its_child_has_the_same_coordinates() -> None:
    for kind in sorted(set(KINDS) - {"fixed"}):
        with lw.Builder() as b:
            body = b.body("bar", mass=1.0, inertia=(1.0, 1.0, 1.0))
            here = b.triad(body, origin=(0.1, 0.2, 0.3), h=(1.0, 1.0, 0.0), f=(0.0, 0.0, 1.0))
            b.joint(kind, here, b.triad(b.ground, origin=(0.3, 0.0, 0.0)), name="back", pitch=0.1)
        mech = b.build()
        q, v = path(mech, 4)
        solution = from_coordinates(mech, TIME, q, v)
        assert_allclose(difference(mech, q, solution.q), 0.0, atol=1e-13, err_msg=kind)
        assert_allclose(solution.v, v, atol=1e-13, err_msg=kind)


def test_angles_count_on_through_whole_turns() -> None:
    time = np.linspace(0.0, 4.0, 200)
    solution = crank_motion(time)
    assert angle(time[-1]) > 4 * np.pi
    assert_allclose(solution.joint("pivot")[:, 0], angle(time), atol=1e-12)


def test_rates_tell_how_many_turns_lie_between_far_points() -> None:
    # More than ten turns from point to point: the positions alone cannot tell.
    time = np.linspace(0.0, 40.0, 21)
    solution = crank_motion(time)
    assert np.diff(angle(time)).min() > 2 * np.pi
    assert_allclose(solution.joint("pivot")[:, 0], angle(time), atol=1e-9)


def rocker(points_a_turn: int, start: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """The angle and rate (T,) of the rocker of a crank-rocker over five turns of its crank."""
    with lw.Builder("crank-rocker") as b:
        crank, coupler, bar = (b.body(name) for name in ("crank", "coupler", "rocker"))
        for body, origin in ((crank, (0, 0, 0)), (coupler, (1.0, 0.0, 0.0)), (bar, (2.0, 0.0, 0.0))):
            b.place(body, origin)
        first = b.joint("revolute", b.ground, crank, name="A")
        b.joint("revolute", b.triad(crank, origin=(1.0, 0, 0)), coupler, name="B")
        b.joint("revolute", b.triad(coupler, origin=(2.0, 0, 0)), b.triad(bar, origin=(1.2, 0, 0)), name="C")
        b.joint("revolute", b.triad(b.ground, origin=(2.0, 0, 0)), bar, name="D")
        b.driver("joint", first, start + 2.0 * np.pi * lw.TIME, name="motor")
    solution = lw.analyse(b.build(), times=np.linspace(0.0, 5.0, 5 * points_a_turn + 1))
    assert solution.status
    return solution.joint("D")[:, 0], solution.joint_rate("D")[:, 0]


@pytest.mark.parametrize("start", [0.0, 1.0, 1.5, 4.0])
def test_a_rocker_seen_once_in_a_turn_of_its_crank_makes_no_turn(start: float) -> None:
    angles, rates = rocker(1, start)
    assert_allclose(angles, angles[0], atol=1e-9)
    assert_allclose(rates, rates[0], atol=1e-8)
    closely, _ = rocker(60, start)
    assert_allclose(closely[::60], angles, atol=1e-9)


def test_without_rates_the_nearest_angle_is_taken() -> None:
    time = np.linspace(0.0, 3.0, 200)
    whole = crank_motion(time)
    arrays = {**whole.arrays, "angular_velocity": np.full((200, 2, 3), np.nan)}
    broken = type(whole).of(
        whole.description, time, **arrays, status=whole.status, counters=whole.counters, iterations=whole.iterations
    )
    assert_allclose(broken.joint("pivot")[:, 0], angle(time), atol=1e-12)


def test_a_screw_is_known_by_its_shift_from_the_first_point() -> None:
    with lw.Builder() as b:
        b.joint("screw", b.ground, b.body("nut", mass=1.0, inertia=(1.0, 1.0, 1.0)), name="thread", pitch=-0.002)
    mech = b.build()
    q = 100.0 + 3.0 * TIME[:, None]
    solution = from_coordinates(mech, TIME, q, np.full((len(TIME), 1), 3.0))
    assert_allclose(solution.q, q, atol=1e-11)


def test_a_screw_without_pitch_is_a_revolute_joint() -> None:
    mech = lw.Mechanism(replace(lw.chain(1, joint="screw").description, pitch=np.zeros(1)))
    q = 1.0 + 9.0 * TIME[:, None]
    assert_allclose(from_coordinates(mech, TIME, q, np.full((len(TIME), 1), 9.0)).q, q, atol=1e-13)


def test_euler_parameters_do_not_change_sign_on_the_way() -> None:
    mech = lw.chain(1, joint="spherical")
    v = np.tile([9.0, 1.0, 0.0], (len(TIME), 1))
    q = mech.integrate(np.tile(mech.neutral(), (len(TIME), 1)), v * TIME[:, None])
    e = from_coordinates(mech, TIME, q, v).q
    assert np.all(np.sum(e[1:] * e[:-1], axis=1) > 0.9)
    assert_allclose(e, q, atol=1e-14)


def test_the_joint_that_closes_a_parallelogram_has_the_angle_of_its_crank() -> None:
    with lw.Builder("parallelogram") as b:
        bars = [b.body(name, mass=1.0, inertia=(1.0, 1.0, 1.0)) for name in ("left", "coupler", "right")]
        left, coupler, right = bars
        b.joint("revolute", b.ground, left, name="a")
        b.joint("revolute", b.triad(left, origin=(1.0, 0.0, 0.0)), coupler, name="b")
        b.joint("revolute", b.triad(b.ground, origin=(0.0, 2.0, 0.0)), right, name="d")
        tip, end = b.triad(coupler, origin=(0.0, 2.0, 0.0)), b.triad(right, origin=(1.0, 0.0, 0.0))
        b.joint("revolute", end, tip, name="c", cut=True)
    mech = b.build()
    assert mech.loops == ("c",)
    theta, rate = 0.3 + 7.0 * TIME, np.full(len(TIME), 7.0)
    signs = np.array([{"a": 1.0, "b": -1.0, "d": 1.0}[j.name] for j in mech.joints])
    solution = from_coordinates(mech, TIME, theta[:, None] * signs, rate[:, None] * signs)
    assert_allclose(solution.q, theta[:, None] * signs, atol=1e-13)
    assert_allclose(solution.joint("c")[:, 0], -theta, atol=1e-13)
    assert_allclose(solution.joint_rate("c")[:, 0], -rate, atol=1e-13)


def test_a_follower_has_no_place_in_q_but_its_own_coordinate() -> None:
    with lw.Builder() as b:
        wheels = [b.body(name, mass=1.0, inertia=(1.0, 1.0, 1.0)) for name in ("big", "small")]
        first = b.joint("revolute", b.ground, wheels[0], name="first")
        second = b.joint("revolute", b.triad(b.ground, origin=(1.0, 0.0, 0.0)), wheels[1], name="second")
        b.mimic(second, first, ratio=-3.0, offset=0.5)
    mech = b.build()
    q = 4.0 * TIME[:, None]
    solution = from_coordinates(mech, TIME, q, np.full((len(TIME), 1), 4.0))
    assert_allclose(solution.q, q, atol=1e-13)
    assert_allclose(solution.joint("second"), 0.5 - 3.0 * q, atol=1e-13)
    assert_allclose(solution.joint_rate("second"), -12.0, atol=1e-13)


@pytest.mark.parametrize("name", ["slider_crank", "four_bar", "cardan"])
def test_accelerations_of_joints_are_the_derivatives_of_their_rates(name: str) -> None:
    mech = lw.load(MODELS / f"{name}.mks")
    solution = lw.analyse(mech, times=np.linspace(0.0, 0.5, 501))
    for joint in mech.description.joint_names:
        found, rate = solution.joint_acceleration(joint), solution.joint_rate(joint)
        assert_allclose(found[2:-2], np.gradient(rate, solution.time, axis=0)[2:-2], atol=1e-3 * (1 + abs(found).max()))
    assert max(abs(solution.joint_acceleration(joint)).max() for joint in mech.description.joint_names) > 0.1


def test_a_crank_has_the_acceleration_of_its_angle() -> None:
    assert_allclose(crank_motion(TIME).joint_acceleration("pivot")[:, 0], GAIN, rtol=1e-12)
