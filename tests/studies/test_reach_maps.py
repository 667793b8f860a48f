"""Maps of reach and condition: against the machine's own Jacobians, by hand, and their errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from linkwright.control.parallel.leg_kinematics import SingularPose, Unreachable, leg_jacobians, legs_at
from linkwright.errors import ModelError, ShapeError
from linkwright.studies.manipulator.machine import SIX_LEG
from linkwright.studies.manipulator.workspace import (
    FINE,
    REACH,
    SPHERICAL,
    UNIVERSAL,
    Limits,
    check_pose,
    quality,
    reach_map,
    tilts,
)

GEOMETRY = SIX_LEG
HOME = GEOMETRY.home


def test_rows_of_s_are_the_first_rows_of_the_legs_inverse_jacobians() -> None:
    pose = HOME + np.array([0.1, -0.05, 0.08, 0.0, 0.1, -0.05, 0.2])
    legs = legs_at(GEOMETRY, pose)
    inverse = np.linalg.inv(leg_jacobians(GEOMETRY, legs, pose[:3]))
    assert np.allclose(legs.rows / legs.ways[:, None], inverse[:, 0], rtol=1e-12, atol=1e-12)


def test_both_knees_reach_the_same_wrist_points() -> None:
    out, inside = (legs_at(GEOMETRY, HOME, knee=knee) for knee in (-1, 1))
    for legs in (out, inside):
        assert np.allclose(np.linalg.norm(legs.wrists - legs.knees, axis=1), GEOMETRY.rod)
        assert np.allclose(np.linalg.norm(legs.knees - GEOMETRY.base_points, axis=1), GEOMETRY.crank)
    assert (np.hypot(*out.knees[:, :2].T) > np.hypot(*inside.knees[:, :2].T)).all()


def test_reach_ends_where_crank_and_rod_are_in_line() -> None:
    heights = np.linspace(0.5, 1.6, 2001)
    poses = np.tile(HOME, (len(heights), 1))
    poses[:, 2] = heights
    top = heights[np.flatnonzero(quality(GEOMETRY, poses).end != REACH)[-1]]
    seen = GEOMETRY.frames[0].T @ (GEOMETRY.wrist_points[0] - GEOMETRY.base_points[0])
    far = GEOMETRY.crank + np.sqrt(GEOMETRY.rod**2 - seen[2] ** 2)  # in the plane of the crank
    assert np.isclose(top, np.sqrt(far**2 - seen[0] ** 2), atol=1e-3)


def test_the_map_has_the_machines_symmetry() -> None:
    made = reach_map(GEOMETRY, "xy", points=41)
    assert np.array_equal(made.reachable, made.reachable[::-1])  # mirrored in the xz plane
    finite = np.isfinite(made.quality.s)
    assert np.allclose(made.quality.s[finite], made.quality.s[::-1][finite], rtol=1e-6)


def test_more_orientations_never_reach_further() -> None:
    alone = reach_map(GEOMETRY, "xz", points=31)
    many = reach_map(GEOMETRY, "xz", points=31, orientations=tilts(np.deg2rad(20), 4))
    assert not (many.reachable & ~alone.reachable).any()
    assert many.area < alone.area
    assert (many.quality.s >= alone.quality.s).all()


def test_limits_name_what_ends_the_workspace() -> None:
    assert quality(GEOMETRY, HOME).end == FINE
    tight = quality(GEOMETRY, HOME, limits=Limits(universal=0.01))
    assert tight.end == UNIVERSAL
    tilted = np.r_[HOME[:3], np.cos(0.15), np.sin(0.15), 0.0, 0.0]
    assert quality(GEOMETRY, tilted, limits=Limits(spherical=0.2)).end == SPHERICAL
    assert quality(GEOMETRY, HOME + np.eye(7)[0]).end == REACH
    with pytest.raises(ModelError, match=r"leg \d is beyond a universal joint's tilt"):
        check_pose(GEOMETRY, HOME, limits=Limits(universal=0.01))


def test_conditions_are_small_at_home() -> None:
    found = check_pose(GEOMETRY, HOME)
    assert found.s < 2.5
    assert found.w < 15.0


def test_a_singular_pose_tells_condition_and_direction() -> None:
    # Tilting about y, the determinant changes its sign near 64°: there a motion of the plate needs no motor.
    low, high = np.deg2rad([50.0, 80.0])
    for _ in range(60):
        middle = (low + high) / 2
        pose = np.r_[HOME[:3], np.cos(middle / 2), 0.0, np.sin(middle / 2), 0.0]
        flat = np.deg2rad(50.0) / 2
        start = quality(GEOMETRY, np.r_[HOME[:3], np.cos(flat), 0.0, np.sin(flat), 0.0]).sign
        low, high = (middle, high) if quality(GEOMETRY, pose).sign * start > 0 else (low, middle)
    with pytest.raises(SingularPose, match="the motors do not hold the plate against") as caught:
        check_pose(GEOMETRY, pose)
    assert caught.value.which == "S"
    assert caught.value.condition > 1e8
    rows = legs_at(GEOMETRY, pose).rows
    direction = caught.value.direction / np.linalg.norm(caught.value.direction)
    assert np.abs(rows @ direction).max() < 1e-6


def test_bad_requests_say_what_to_give() -> None:
    with pytest.raises(Unreachable, match="leg"):
        check_pose(GEOMETRY, HOME + np.eye(7)[2])
    with pytest.raises(ShapeError, match="x, y, z and Euler parameters"):
        check_pose(GEOMETRY, HOME[:6])
    with pytest.raises(ModelError, match="not finite"):
        check_pose(GEOMETRY, HOME * np.nan)
    with pytest.raises(ShapeError, match="not all zero"):
        check_pose(GEOMETRY, np.zeros(7))
    with pytest.raises(ModelError, match="one of xy, xz, yz, tilt"):
        reach_map(GEOMETRY, "zx")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="at least 2"):
        reach_map(GEOMETRY, points=1)
    with pytest.raises(ShapeError, match="Euler parameters"):
        reach_map(GEOMETRY, orientations=np.ones(3))


@pytest.mark.parametrize("plane", ["xy", "xz", "tilt"])
def test_a_map_makes_a_picture(plane: str, tmp_path: Path) -> None:
    made = reach_map(GEOMETRY, plane, points=31)  # type: ignore[arg-type]
    path = made.plot(tmp_path / "maps" / f"{plane}.png")
    assert path.read_bytes()[:4] == b"\x89PNG"
    assert "condition of S" in str(made)
