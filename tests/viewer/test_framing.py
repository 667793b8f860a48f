"""From where motions are seen."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sample_motions import Played, slider_crank, spatial_four_bar

from linkwright.spatial.rotation import euler_parameters
from linkwright.viewer.page import Motion, along, box, checked, outermost, rotation_matrices, view_of


def motion(played: Played, turn: np.ndarray | None = None) -> Motion:
    """The motion as a whole turned by a rotation."""
    data = dict(played.data)
    if turn is not None:
        data["position"] = data["position"] @ turn.T
        matrices = turn @ rotation_matrices(data["orientation"])
        data["orientation"] = np.moveaxis(euler_parameters(np.moveaxis(matrices, (-2, -1), (0, 1))), 0, -1)
    nb = played.description.nb
    return checked(played.time, data, nb, nb)


def points(m: Motion) -> np.ndarray:
    return m.origins[0]


def test_planar_motion_in_x_and_y_shows_x_to_the_right_and_y_up() -> None:
    m = motion(slider_crank())
    view = view_of(m, points(m), (0, 0, -9.81))
    assert view.planar
    assert_allclose(view.axes, np.eye(3), atol=1e-9)


def test_planar_motion_in_x_and_z_shows_x_to_the_right_and_z_up() -> None:
    m = motion(slider_crank(), np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]))
    view = view_of(m, points(m), (0, 0, -9.81))
    assert view.planar
    assert_allclose(view.axes, [[1, 0, 0], [0, 0, 1], [0, -1, 0]], atol=1e-9)


def test_gravity_in_the_plane_points_down_in_the_picture() -> None:
    m = motion(slider_crank())
    assert_allclose(view_of(m, points(m), (-9.81, 0, 0)).axes[1], [1, 0, 0], atol=1e-9)


def test_any_plane_is_seen_face_on() -> None:
    turn = along([1.0, -2.0, 0.7])
    m = motion(slider_crank(), turn)
    view = view_of(m, points(m), (0, 0, -9.81))
    assert view.planar
    assert abs(view.axes[2] @ turn[:, 2]) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("gravity", [(0, 0, -9.81), (0, -9.81, 0), (3.0, 0, -4.0)])
def test_spatial_motion_has_gravity_downwards(gravity: tuple[float, ...]) -> None:
    m = motion(spatial_four_bar())
    view = view_of(m, points(m), gravity)
    assert not view.planar
    assert_allclose(view.axes[1], -np.array(gravity) / np.linalg.norm(gravity), atol=1e-12)


def test_without_gravity_z_is_up() -> None:
    m = motion(spatial_four_bar())
    assert_allclose(view_of(m, points(m), (0, 0, 0)).axes[1], [0, 0, 1], atol=1e-12)


@pytest.mark.parametrize("played", [slider_crank(), spatial_four_bar()], ids=["planar", "spatial"])
def test_the_axes_of_a_picture_are_a_rotation(played: Played) -> None:
    m = motion(played)
    axes = view_of(m, points(m), (0, 0, -9.81)).axes
    assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(axes) == pytest.approx(1.0)


def test_the_box_holds_every_point() -> None:
    rng = np.random.default_rng(3)
    cloud, axes = rng.normal(size=(50, 3)), along([1.0, 2.0, 3.0]).T
    middle, half = box(cloud, axes)
    assert (np.abs((cloud - middle) @ axes.T) <= half + 1e-12).all()


def test_the_outermost_points_are_the_corners_of_a_cube() -> None:
    rng = np.random.default_rng(4)
    cube = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    cloud = rng.permutation(np.concatenate([0.9 * rng.uniform(-1, 1, size=(45_000, 3)), cube]))
    assert {tuple(p) for p in outermost(cloud)} == {tuple(p) for p in cube}
