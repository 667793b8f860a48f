"""URDF that was written reads back with the same dynamics; what URDF cannot hold is listed."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwright as lw
import robots
from linkwright.errors import LinkwrightWarning, ModelError
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.formats.model_files import read
from linkwright.formats.urdf_writer import write_urdf
from linkwright.model.builder import Builder
from linkwright.model.description import Description
from linkwright.model.generators import random_tree
from linkwright.model.placements import roll_pitch_yaw, rpy_matrix

pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle: pip install pin")

SAMPLE = Path(__file__).resolve().parents[2] / "examples/models/slider_crank.mks"


def assert_same_dynamics(d: Description, folder: Path, **options: str) -> None:
    file = folder / "out.urdf"
    file.write_text(write_urdf(d), encoding="utf-8")
    a, b = lw.Mechanism(d), lw.load(file, **options)
    assert [j.name for j in a.joints] == [j.name for j in b.joints]
    rng = np.random.default_rng(1)
    q = np.array([a.integrate(a.neutral(), rng.normal(size=a.nv)) for _ in range(3)])
    v, tau = rng.normal(size=(2, 3, a.nv))
    mine = a.forward_dynamics(q, v, tau)
    assert robots.relative(b.forward_dynamics(q, v, tau), mine) < 1e-12 * max(1.0, np.linalg.cond(a.mass_matrix(q[0])))


@pytest.mark.parametrize("seed", range(6))
def test_a_random_tree_keeps_its_dynamics(seed, tmp_path):
    d = random_tree(6, seed, joints=["revolute", "prismatic", "planar", "free"])
    assert_same_dynamics(d, tmp_path, fixed="keep")


@pytest.mark.parametrize("name", ["panda.urdf", "ur5_robot.urdf", "solo12.urdf"])
def test_a_robot_keeps_its_dynamics_and_frames(name, tmp_path):
    d = read(robots.find(name))
    assert_same_dynamics(d, tmp_path)
    again = read(tmp_path / "out.urdf")
    assert set(again.frames.names) == set(d.frames.names)
    np.testing.assert_array_equal(again.lower, d.lower)
    np.testing.assert_array_equal(again.effort_limit, d.effort_limit)
    assert again.mimics == d.mimics


LIMITS = {
    "bounds alone": ("revolute", {"lower": -1.0, "upper": 2.0}),
    "one bound": ("revolute", {"upper": 2.0}),
    "effort alone": ("revolute", {"effort": 3.0}),
    "none": ("revolute", {}),
    "a tube without any": ("prismatic", {}),
    "a tube's velocity": ("prismatic", {"velocity": 3.0}),
    "all": ("prismatic", {"lower": 0.0, "upper": 1.0, "effort": 2.0, "velocity": 3.0}),
}


@pytest.mark.parametrize("case", LIMITS)
def test_limits_come_back_and_pinocchio_reads_them(case, tmp_path):
    kind, limits = LIMITS[case]
    b = Builder()
    b.joint(kind, b.ground, b.body("arm", 1.0, (0.1, 0, 0), (1, 1, 1)), "j", **limits)
    d = b.description()
    file = tmp_path / "out.urdf"
    file.write_text(write_urdf(d), encoding="utf-8")
    again = read(file)
    for name in ("lower", "upper", "effort_limit", "velocity_limit"):
        np.testing.assert_array_equal(getattr(again, name), getattr(d, name))
    assert pin.buildModelFromUrdf(str(file)).njoints == 2


def test_a_joint_seen_from_its_far_side_is_turned_round(tmp_path):
    b = Builder()
    arm, fore = b.body("arm", 1.0, (0.1, 0, 0), (1, 1, 1)), b.body("fore", 2.0, (0, 0.2, 0), (1, 1, 1))
    b.joint("revolute", b.triad(arm, (0.5, 0.1, 0), (1, 1, 0)), b.triad(b.ground, (0, 0, 1.0), (0, 1, 0)), "first")
    b.joint("prismatic", b.triad(fore, (0.5, 0.1, 0), (1, 1, 0)), b.triad(arm, (0, 0, 1.0), (0, 1, 0)), "second")
    assert_same_dynamics(b.description(), tmp_path)


def test_what_urdf_cannot_hold_is_listed():
    with pytest.raises(ModelError) as caught:
        write_urdf(read(SAMPLE))
    assert "the loop closed by joint 'sph2'" in str(caught.value)
    assert "joint 'sph1', which is spherical" in str(caught.value)


def test_what_can_be_left_out_is_told():
    d = parse_mks(
        "MODEL m SYSTEM (KINEMATIC ANALYSIS); PARAMETER p = 2; BODY g (ground); BODY a (mass = p);"
        "REVOLUTE JOINT j (triad = g, triad = a); DRIVER d (j.angle = TIME); GRAVITY (0, -9.81, 0); ENDMODEL"
    )
    with pytest.warns(LinkwrightWarning, match="SYSTEM; the drivers 'd'; the parameters 'p'.*gravity"):
        text = write_urdf(d)
    assert '<mass value="2"/>' in text


def test_names_are_quoted_as_xml_wants_them(tmp_path):
    b = Builder()
    b.joint("revolute", b.ground, b.body('a<b>&"c"', 1.0, inertia=(1, 1, 1)), "j'k")
    assert_same_dynamics(b.description(), tmp_path)


@settings(deadline=None)
@given(st.tuples(*[st.floats(-3.2, 3.2)] * 3))
def test_roll_pitch_yaw_gives_the_rotation_back(angles):
    r = rpy_matrix(angles)
    np.testing.assert_allclose(rpy_matrix(roll_pitch_yaw(r)), r, atol=1e-8)
