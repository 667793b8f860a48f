"""Solutions that are made of coordinates: their bodies are found when they are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import linkwright as lw
from linkwright.errors import ShapeError
from linkwright.results.solution import Solution
from linkwright.results.status import Counters, Status


def random_states(mech: lw.Mechanism, points: int = 9, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = mech.integrate(np.tile(mech.neutral(), (points, 1)), rng.normal(size=(points, mech.nv)))
    return q, rng.normal(size=(points, mech.nv)), rng.normal(size=(points, mech.nv))


def of(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> Solution:
    time = np.arange(len(q)) * 0.1
    return Solution.of_states(mech.description, time, q, v, a, status=Status(True), counters=Counters())


@pytest.mark.parametrize("seed", range(6))
def test_bodies_of_a_tree_of_every_kind_move_as_its_coordinates_say(seed: int) -> None:
    mech = lw.random_tree(14, seed=seed)
    q, v, a = random_states(mech, seed=seed)
    solution = of(mech, q, v, a)
    step = 1e-6
    for body in mech.bodies:
        pose = mech.pose(q, body.name)
        assert_allclose(solution.position(body.name), pose[:, :3, 3], atol=1e-12)
        twist = mech.twist(q, v, body.name, reference="aligned")
        assert_allclose(solution.velocity(body.name), twist[:, :3], atol=1e-12)
        assert_allclose(solution.angular_velocity(body.name), twist[:, 3:], atol=1e-12)
        later, before = (
            mech.twist(mech.integrate(q, s * v), v + s * a, body.name, reference="aligned") for s in (step, -step)
        )
        change = (later - before) / (2.0 * step)
        assert_allclose(solution.acceleration(body.name), change[:, :3], atol=2e-6 * np.abs(change).max())
        assert_allclose(solution.angular_acceleration(body.name), change[:, 3:], atol=2e-6 * np.abs(change).max())


def test_joints_of_the_tree_are_the_coordinates_themselves() -> None:
    mech = lw.random_tree(8, seed=3)
    q, v, a = random_states(mech)
    solution = of(mech, q, v, a)
    assert np.array_equal(solution.q, q)
    for joint in mech.joints:
        assert np.array_equal(solution.joint(joint.name), q[:, joint.q_slice])
        assert np.array_equal(solution.joint_rate(joint.name), v[:, joint.v_slice])
        assert np.array_equal(solution.joint_acceleration(joint.name), a[:, joint.v_slice])


def test_an_angle_keeps_its_turns() -> None:
    mech = lw.chain(1)
    solution = of(mech, np.array([[0.0], [40.0]]), np.zeros((2, 1)), np.zeros((2, 1)))
    assert solution.joint(mech.joints[0].name)[1, 0] == 40.0


def test_a_follower_moves_with_its_leader() -> None:
    with lw.Builder("gears") as b:
        first = b.body("first", mass=1.0, inertia=(1.0, 1.0, 1.0))
        second = b.body("second", mass=1.0, inertia=(1.0, 1.0, 1.0))
        leader = b.joint("revolute", b.ground, first, name="leader")
        follower = b.joint("revolute", b.ground, second, name="follower")
        b.mimic(follower, leader, ratio=-2.0, offset=0.3)
    mech = b.build()
    q, v, a = (np.array([[x], [2 * x]]) for x in (0.4, 1.5, -0.7))
    solution = of(mech, q, v, a)
    assert_allclose(solution.joint("follower"), -2.0 * q + 0.3)
    assert_allclose(solution.angular_velocity("second")[:, 2], -2.0 * v[:, 0])
    assert_allclose(solution.angular_acceleration("second")[:, 2], -2.0 * a[:, 0])


def test_nothing_is_computed_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(*given: object) -> dict[str, np.ndarray]:
        calls.append(given)
        return {"position": np.zeros((9, mech.nb, 3))}

    monkeypatch.setattr("linkwright.results.motion_quantities.body_motion", counted)
    mech = lw.chain(3)
    solution = of(mech, *random_states(mech))
    assert solution.q.shape == (9, 3)
    assert len(solution) == 9
    assert not calls
    solution.position(mech.bodies[0].name)
    solution.position(mech.bodies[1].name)
    assert len(calls) == 1


def test_coordinates_and_events_survive_a_file(tmp_path: object) -> None:
    mech = lw.chain(2)
    event = lw.Event(lambda t, q, v: q[0] - 1.0, name="low")
    solution = lw.simulate(mech, 1.0, q0=[0.9, 0.1], events=event)
    assert solution.events
    path = f"{tmp_path}/swing.nc"
    solution.save(path)
    again = lw.open(path)
    for name in ("time", "q", "v", "a"):
        assert np.array_equal(getattr(again, name), getattr(solution, name))
    assert [(e.name, e.time) for e in again.events] == [(e.name, e.time) for e in solution.events]
    assert np.array_equal(again.events[0].q, solution.events[0].q)
    assert np.array_equal(again.position(mech.bodies[1].name), solution.position(mech.bodies[1].name))


def test_energy_is_that_of_the_mechanism() -> None:
    mech = lw.chain(2)
    solution = lw.simulate(mech, 0.5, q0=[0.9, 0.1], rtol=1e-10)
    assert_allclose(solution.energy(), mech.potential_energy(np.array([0.9, 0.1])), atol=1e-7)


def test_arrays_of_another_shape_are_refused() -> None:
    mech = lw.chain(2)
    with pytest.raises(ShapeError, match="v has shape"):
        of(mech, np.zeros((4, 2)), np.zeros((4, 3)), np.zeros((4, 2)))


def test_accelerations_of_an_analysis_are_found_from_its_bodies() -> None:
    mech = lw.random_tree(6, seed=2)
    q, v, a = random_states(mech)
    solution = of(mech, q, v, a)
    arrays = {name: solution.arrays[name] for name in solution.arrays}
    again = Solution.of(
        mech.description,
        solution.time,
        **arrays,
        status=Status(True),
        counters=Counters(),
        iterations=np.zeros(len(q), int),
    )
    assert_allclose(again.a, a, atol=1e-10)
