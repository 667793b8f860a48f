"""Motions to follow: velocity and acceleration are the derivatives of position, and ends are where they should be."""

import numpy as np
import pytest

import linkwright as lw
from linkwright.control.loop.references import turn_matrix, turn_vector
from linkwright.errors import ModelError, ShapeError
from linkwright.spatial.rotation import euler_parameters_matrix, exponential, logarithm

C = lw.control
LINE = [[0, 0, 0], [0.1, 0.05, 0], [0.2, 0, 0], [0.1, -0.05, 0.02], [0, 0, 0]]
MOTIONS = {
    "hold": C.Hold([1.0, 2.0, 3.0]),
    "minimum jerk": C.MinimumJerk([0, 0, 0], [1, 2, -1], 0.8, start=0.1),
    "curve": C.Curve(LINE, 0.9),
    "open curve": C.Curve(LINE[:3], 0.9),
    "sine": C.Sine([0, 0, 0], [0.1, 0, 0.2], 2.0, ramp=0.5),
    "sine of acceleration": C.Sine([0, 0, 1], [0, 0, 5.0], 16.0, of="acceleration"),
    "sweep": C.Sweep([0, 0, 0], [0.1, 0.2, 0], 1.0, 5.0, 0.7, ramp=0.3),
    "sum": C.Hold([1.0, 0, 0]) + C.MinimumJerk([0, 0, 0], [0, 1, 0], 1.0),
}


@pytest.mark.parametrize("name", MOTIONS)
def test_velocity_and_acceleration_are_derivatives(name: str) -> None:
    motion, h = MOTIONS[name], 1e-5
    for t in (0.2, 0.43, 0.66, 0.95):
        before, here, after = motion.at(t - h), motion.at(t), motion.at(t + h)
        assert np.allclose((after.x - before.x) / (2 * h), here.xd, rtol=1e-5, atol=1e-5)
        assert np.allclose((after.xd - before.xd) / (2 * h), here.xdd, rtol=1e-4, atol=1e-3)


def test_up_and_down_is_bang_bang_and_ends_where_it_began() -> None:
    motion = C.up_and_down([0.0, 0.0, 1.0], [0, 0, 10.0], 0.1, rest=0.05, start=0.2)
    assert np.array_equal(motion.at(0.1).x, [0, 0, 1])
    assert np.array_equal(motion.at(0.2).xdd, [0, 0, 10.0])
    assert np.allclose(motion.at(0.3).xd, [0, 0, 1.0])
    assert np.array_equal(motion.at(0.3).xdd, [0, 0, -10.0])
    assert np.allclose(motion.at(0.42).x, [0, 0, 1.1])
    assert np.allclose(motion.at(0.9).x, [0, 0, 1.0])
    assert np.allclose(motion.at(0.9).xd, 0.0)
    assert np.array_equal(motion.at(0.9).xdd, np.zeros(3))


def test_accelerations_of_a_sequence_are_held_one_period_each() -> None:
    rows = np.random.default_rng(1).normal(size=(50, 1))
    motion = C.Accelerations([0.0], rows, 2e-3)
    found = motion.table(2e-3 * np.arange(50))
    assert np.array_equal(found.xdd, rows)
    assert np.allclose(found.xd[1:], np.cumsum(rows, axis=0)[:-1] * 2e-3)


def test_a_curve_goes_through_its_points() -> None:
    points = np.array([[0, 0], [1, 2], [3, 1], [4, 4.0]])
    motion = C.Curve(points, 2.0)
    found = motion.table(np.linspace(0, 2, 4001)).x
    for point in points:
        assert np.linalg.norm(found - point, axis=1).min() < 3e-3
    assert np.allclose(motion.at(5.0).x, points[-1], atol=1e-14)


def test_turns_of_a_pose_have_their_angular_velocity_and_acceleration() -> None:
    origin = np.eye(4)
    origin[:3, :3], origin[:3, 3] = turn_matrix(np.array([0.4, -0.8, 1.9])), (1.0, 2.0, 3.0)
    turning = C.Sine([0.3, -0.2, 0.1], [0.5, 0.9, -1.2], 0.7)
    for base in (None, origin):
        motion, h = C.Pose(C.Hold([0.1, 0, 0]), turning, origin=base), 1e-5
        for t in (0.0, 0.31, 0.77, 1.4):
            before, here, after = (turn_matrix(motion.at(s).x[3:]) for s in (t - h, t, t + h))
            if t == 0.0:
                before, h2 = here, h
            else:
                h2 = 2 * h
            omega = turn_vector(after @ before.T) / h2
            at = motion.at(t + h / 2 if t == 0.0 else t)
            assert np.allclose(omega, at.xd[3:], atol=1e-4)
            if t:
                change = (motion.at(t + h).xd[3:] - motion.at(t - h).xd[3:]) / (2 * h)
                assert np.allclose(change, at.xdd[3:], atol=1e-4)


def test_small_turns_join_the_series_smoothly() -> None:
    from linkwright.control.loop.references import turning

    direction, rate, bend = np.array([0.6, 0.0, 0.8]), np.array([0.3, 1.0, -0.5]), np.array([2.0, 0.1, 0.4])
    inside, outside = (turning(r * direction, rate, bend) for r in (0.00999999, 0.01000001))
    for x, y in zip(inside, outside, strict=True):
        assert np.allclose(x, y, atol=1e-7)


def test_matrices_and_vectors_of_turns_belong_together_up_to_a_half_turn() -> None:
    rng = np.random.default_rng(2)
    for size in (0.0, 1e-7, 1e-3, 1.0, 2.5, 3.1, 3.14159):
        axis = rng.normal(size=3)
        r = size * axis / np.linalg.norm(axis)
        m = turn_matrix(r)
        assert np.allclose(m @ m.T, np.eye(3), atol=1e-14)
        assert np.allclose(turn_vector(m), r, atol=1e-8)
        e = exponential(r)
        assert np.allclose(m, euler_parameters_matrix(e), atol=1e-14)
        assert np.allclose(turn_vector(m), logarithm(e), atol=1e-8)


def test_bad_motions_are_told() -> None:
    with pytest.raises(ModelError, match="duration must be a number greater than zero"):
        C.MinimumJerk([0.0], [1.0], 0.0)
    with pytest.raises(ShapeError, match="shapes"):
        C.MinimumJerk([0.0], [1.0, 2.0], 1.0)
    with pytest.raises(ModelError, match="points 1 and 2 are the same"):
        C.Curve([[0, 0], [1, 1], [1, 1]], 1.0)
    with pytest.raises(ShapeError, match="cannot be added"):
        C.Hold([0.0]) + C.Hold([0.0, 1.0])
    with pytest.raises(ShapeError, match="give three"):
        C.Pose([0.0, 1.0])
    with pytest.raises(ShapeError, match=r"give \(m, 2\)"):
        C.Accelerations([0.0, 1.0], [[1.0, 2.0, 3.0]], 0.1)
    with pytest.raises(ModelError, match="'position' or 'acceleration'"):
        C.Sine([0.0], 1.0, 2.0, of="speed")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_times_that_are_not_finite_are_refused(bad: float) -> None:
    for make in (
        lambda: C.MinimumJerk([0.0], [1.0], 1.0, start=bad),
        lambda: C.Curve([[0.0], [1.0]], 1.0, start=bad),
        lambda: C.Accelerations([0.0], [[1.0]], 0.1, start=bad),
        lambda: C.up_and_down([0.0], [1.0], 0.1, start=bad),
        lambda: C.Sine([0.0], 1.0, 2.0, start=bad),
        lambda: C.Sine([0.0], 1.0, 2.0, ramp=bad),
        lambda: C.Sweep([0.0], 1.0, 2.0, 3.0, 1.0, ramp=bad),
    ):
        with pytest.raises(ModelError, match=r"(start|ramp) must be a finite number"):
            make()
    with pytest.raises(ModelError, match="ramp must be a time from 0 on"):
        C.Sine([0.0], 1.0, 2.0, ramp=-1.0)


def test_amplitudes_and_speeds_that_are_no_numbers_or_too_many_are_refused() -> None:
    for amplitude in (np.nan, [1.0, 2.0]):
        with pytest.raises(ShapeError, match="amplitude must be one finite number or 1"):
            C.Sine([0.0], amplitude, 2.0)
    with pytest.raises(ShapeError, match="v must be"):
        C.Accelerations([0.0], [[1.0]], 0.1, v=np.nan)
