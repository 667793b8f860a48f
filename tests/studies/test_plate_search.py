"""Forward kinematics: found to rounding, in few corrections, on its own branch, and never NaN."""

import numpy as np
import pytest
from plates import plate_at, plates, random_pose

from linkwright.control.parallel.forward_kinematics import TOLERANCE, forward_kinematics
from linkwright.control.parallel.leg_kinematics import legs_at
from linkwright.studies.manipulator.machine import SIX_LEG

GEOMETRY = SIX_LEG


@pytest.fixture(scope="module")
def search():
    return forward_kinematics(GEOMETRY)


def apart(pose, other):
    """Between two poses: metres, and twice the sine of half the angle."""
    return max(np.abs(pose[:3] - other[:3]).max(), 2.0 * np.sqrt(max(0.0, 1.0 - (pose[3:] @ other[3:]) ** 2)))


def near(pose, rng, size):
    e = pose[3:] + size * rng.uniform(-1, 1, 4)
    return np.concatenate([pose[:3] + size * rng.uniform(-1, 1, 3), e / np.linalg.norm(e)])


@pytest.mark.parametrize(("size", "most"), [(2e-5, 2), (2e-3, 3), (0.02, 4)])
def test_a_pose_nearby_is_found_in_few_corrections(search, size, most):
    rng = np.random.default_rng(0)
    for plate in plates(GEOMETRY, 50):
        pose, (found, corrections, residual) = search(plate.theta, near(plate.pose, rng, size))
        assert found
        assert corrections <= most
        assert residual <= TOLERANCE
        assert np.abs(pose[:3] - plate.pose[:3]).max() <= 1e-12
        assert np.abs(pose[3:] - plate.pose[3:]).max() <= 1e-12


def test_along_a_path_at_full_speed_each_sample_takes_at_most_four_and_stays_on_the_branch(search):
    pose, steps = GEOMETRY.home.copy(), 400
    for k in range(steps):
        t = 2e-3 * k
        at = GEOMETRY.home.copy()
        at[:3] += [0.1 * np.sin(9 * t), 0.1 * np.sin(11 * t), 0.1 * np.sin(10 * t)]
        turn = 0.1 * np.sin(8 * t)
        at[3:] = [np.cos(turn / 2), 0.0, np.sin(turn / 2), 0.0]
        theta = np.ascontiguousarray(legs_at(GEOMETRY, at).angles[:, 0])
        pose, (found, corrections, _) = search(theta, pose)
        assert found
        assert corrections <= 4
        assert apart(pose, at) < 1e-7


def test_angles_that_no_pose_fits_leave_the_pose_and_say_so(search):
    start = GEOMETRY.home
    theta = np.array([3.0, -3.0, 0.1, 2.0, -1.0, 0.5])
    pose, (found, _, residual) = search(theta, start)
    assert not found
    assert residual > TOLERANCE
    assert (pose == start).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_angles_that_are_no_numbers_leave_the_pose(search, bad):
    theta = np.ascontiguousarray(legs_at(GEOMETRY, GEOMETRY.home).angles[:, 0])
    theta[3] = bad
    pose, (found, *_) = search(theta, GEOMETRY.home)
    assert not found
    assert (pose == GEOMETRY.home).all()


def test_a_far_start_finds_the_pose_or_says_that_it_did_not(search):
    rng = np.random.default_rng(5)
    outcomes = []
    for _ in range(100):
        plate = plate_at(GEOMETRY, random_pose(GEOMETRY, rng), np.zeros(6), np.zeros(6))
        start = near(plate.pose, rng, 0.3)
        pose, (found, *_) = search(plate.theta, start)
        outcomes.append(bool(found))
        if found:
            ends = legs_at(GEOMETRY, pose)
            lengths = np.linalg.norm(ends.wrists - legs_at(GEOMETRY, plate.pose).knees, axis=1)
            assert np.abs(lengths - GEOMETRY.rod).max() < 1e-11
        else:
            assert (pose == start).all()
    assert not all(outcomes)


def test_batches_take_each_state_its_own_number_of_corrections(search):
    rng = np.random.default_rng(1)
    some = plates(GEOMETRY, 17)
    theta = np.array([p.theta for p in some])
    start = np.array([near(p.pose, rng, 10.0 ** -rng.integers(1, 7)) for p in some])
    poses, reports = search(theta, start)
    for k in range(len(some)):
        pose, report = search(theta[k], start[k])
        assert report[1] == reports[k, 1]
        np.testing.assert_allclose(poses[k], pose, atol=1e-13)
    assert len(set(reports[:, 1])) > 1
