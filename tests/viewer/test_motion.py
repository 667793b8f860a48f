"""The arrays of a motion: what is refused, what is left out, what is kept."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from linkwright.errors import ModelError, ShapeError
from linkwright.viewer import page as rooms
from linkwright.viewer.page import checked, rotation_matrices


def arrays(points: int, bodies: int = 2) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(points)
    e = rng.normal(size=(points, bodies, 4))
    return {"position": rng.normal(size=(points, bodies, 3)), "orientation": e / np.linalg.norm(e, axis=-1)[..., None]}


def test_a_motion_of_no_points_is_refused_and_told() -> None:
    with pytest.raises(ModelError, match="no time points"):
        checked([], arrays(0), 2, 2)


def test_an_array_of_the_wrong_shape_is_named_with_the_right_one() -> None:
    with pytest.raises(ShapeError, match=r"position has the shape \(3, 2, 3\); give \(4, 2, 3\)"):
        checked(np.arange(4.0), {**arrays(4), "position": np.zeros((3, 2, 3))}, 2, 2)


def test_times_that_go_back_are_refused() -> None:
    with pytest.raises(ModelError, match="go back"):
        checked([0.0, 2.0, 1.0], arrays(3), 2, 2)


def test_points_without_a_finite_pose_are_left_out_and_told() -> None:
    given = arrays(4)
    given["position"][2, 1, 0] = np.nan
    kept = checked(np.arange(4.0), given, 2, 2)
    assert_array_equal(kept.time, [0, 1, 3])
    assert kept.notes == ("1 time point left out: the poses there are not finite",)


def test_a_motion_without_any_finite_pose_is_refused() -> None:
    given = arrays(2)
    given["orientation"][:] = 0.0
    with pytest.raises(ModelError, match="nothing can be shown"):
        checked([0.0, 1.0], given, 2, 2)


def test_a_long_motion_is_thinned_out_evenly_with_both_ends_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "BUDGET", 6400)
    kept = checked(np.arange(1001.0), arrays(1001), 2, 2)
    assert 90 <= len(kept.time) <= 101
    assert kept.time[0] == 0
    assert kept.time[-1] == 1000
    assert np.ptp(np.diff(kept.time)) <= 1
    assert f"{len(kept.time)} of 1,001 time points" in kept.notes[0]


def test_points_of_bodies_go_where_their_poses_take_them() -> None:
    given = arrays(5)
    kept = checked(np.arange(5.0), given, 2, 2)
    r = rotation_matrices(given["orientation"][:, 1])
    assert_allclose(kept.places(1, [1.0, 2.0, 3.0])[:, 0], given["position"][:, 1] + r @ [1.0, 2.0, 3.0], atol=1e-12)


def test_points_of_ground_stay() -> None:
    kept = checked(np.arange(5.0), arrays(5), 2, 2)
    assert_array_equal(kept.places(-1, [1.0, 2.0, 3.0]), np.tile([1.0, 2.0, 3.0], (5, 1, 1)))
