"""A slide that follows another joint exerts what Newton's equation of its body asks for, whichever file it is in."""

from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import FormatError
from linkwright.formats.mjcf.mjcf_writer import write_mjcf
from linkwright.formats.mks.mks_writer import write_mks
from linkwright.formats.sdf.sdf_writer import write_sdf
from linkwright.formats.urdf_writer import write_urdf

MASS, CENTRE, GRAVITY = 2.0, np.array([0.3, 0.0, 0.1]), np.array([0.0, 0.0, -9.81])
TILT = (np.cos(0.4), np.sin(0.4), 0.0, 0.0)  # of the follower's body in its parent's, about x
URDF = """<robot name="r"><link name="base"/>
<link name="a"><inertial><mass value="1"/><origin xyz="0.1 0.2 0"/>
  <inertia ixx=".1" iyy=".2" izz=".25" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="b"><inertial><mass value="2"/><origin xyz="0.3 0 0.1"/>
  <inertia ixx=".1" iyy=".2" izz=".25" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="ja" type="{0}"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/></joint>
<joint name="jb" type="{1}"><parent link="a"/><child link="b"/><origin xyz="0.5 0 0" rpy="0.8 0 0"/>
  <axis xyz="0 0 1"/><mimic joint="ja" multiplier="-0.7" offset="0.2"/></joint></robot>"""
MJCF = """<mujoco><compiler angle="radian" autolimits="false"/><worldbody>
<body name="a"><inertial pos="0.1 0.2 0" mass="1" diaginertia=".1 .2 .25"/><joint name="ja" type="{0}" axis="0 1 0"/>
<body name="b" pos="0.5 0 0" quat="{2}"><inertial pos="0.3 0 0.1" mass="2" diaginertia=".1 .2 .25"/>
<joint name="jb" type="{1}" axis="0 0 1"/></body></body></worldbody>
<equality><joint joint1="jb" joint2="ja" polycoef="0.2 -0.7 0 0 0"/></equality></mujoco>"""
WORDS = {"continuous": "hinge", "prismatic": "slide"}


def mechanism(form: str, leader: str, folder: Path) -> lw.Mechanism:
    urdf, mjcf, mks = folder / "r.urdf", folder / "r.xml", folder / "r.mks"
    urdf.write_text(URDF.format(leader, "prismatic").replace("<axis", '<limit lower="-9" upper="9"/><axis'))
    mjcf.write_text(MJCF.format(WORDS[leader], "slide", " ".join(f"{x:.17g}" for x in TILT)))
    mks.write_text(write_mks(lw.load(urdf).description))
    return lw.load({"urdf": urdf, "mjcf": mjcf, "mks": mks}[form])


@pytest.mark.parametrize("form", ["urdf", "mjcf", "mks"])
@pytest.mark.parametrize("leader", ["prismatic", "continuous"])
def test_a_following_slide_exerts_the_force_that_its_body_needs(form: str, leader: str, tmp_path: Path) -> None:
    mech = mechanism(form, leader, tmp_path)
    sol = lw.analyse(mech, times=np.linspace(0.0, 0.3, 4), analysis="dynamic")
    acceleration = np.empty((len(sol), 3))
    for k, (s, x, y, z) in enumerate(sol.orientation("b")):
        turn = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        axes = np.eye(3) + 2 * s * turn + 2 * turn @ turn
        arm, w, b = axes @ CENTRE, sol.angular_velocity("b")[k], sol.angular_acceleration("b")[k]
        acceleration[k] = sol.acceleration("b")[k] + np.cross(b, arm) + np.cross(w, np.cross(w, arm))
        acceleration[k] = axes.T @ (acceleration[k] - GRAVITY)
    name = f"{mech.description.mimics[0].name or 'jb'}.force"
    assert np.all(np.abs(sol.series[name].values) > 1.0)
    assert np.allclose(sol.series[name].values, MASS * acceleration[:, 2], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["ball", "free"])
def test_a_follower_of_a_joint_with_several_coordinates_is_refused_by_name(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "r.xml"
    file.write_text(MJCF.format(kind, "slide", "1 0 0 0"))
    with pytest.raises(FormatError, match="couples joint 'ja'"):
        lw.load(file)
    urdf = tmp_path / "r.urdf"
    urdf.write_text(URDF.format("floating" if kind == "free" else "planar", "continuous"))
    with pytest.raises(FormatError, match="'jb' mimics 'ja', but 'ja' is"):
        lw.load(urdf)


@pytest.mark.parametrize("ending", ["urdf", "sdf", "xml", "mks"])
def test_a_gear_train_is_written_and_read_back_as_declared(ending: str, tmp_path: Path) -> None:
    b = lw.Builder("train")
    for name in "abc":
        b.joint("revolute", b.ground, b.body(f"wheel_{name}", mass=1.0, inertia=(0.1, 0.2, 0.25)), name)
    b.mimic("c", "b", -3.0, 0.25)
    b.mimic("b", "a", 0.5, 0.125)
    write = {"urdf": write_urdf, "sdf": write_sdf, "xml": write_mjcf, "mks": write_mks}[ending]
    file = tmp_path / f"train.{ending}"
    file.write_text(write(b.description()))
    d = lw.load(file).description
    gears = {d.joint_names[m.follower]: (d.joint_names[m.leader], m.ratio, m.offset) for m in d.mimics}
    assert gears == {"b": ("a", 0.5, 0.125), "c": ("b", -3.0, 0.25)}
