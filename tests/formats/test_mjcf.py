"""MJCF models: what each element becomes, with MuJoCo's reading of the same file as the measure."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from mjcf_oracle import Oracle

import linkwright as lw
from linkwright.errors import FormatError, LinkwrightWarning
from linkwright.formats.mjcf.mjcf_reader import read_mjcf
from linkwright.model.placements import full_inertia

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is the oracle: pip install mujoco")

U_SHAPE = """vertex="0 0 0 3 0 0 3 2 0 2 2 0 2 1 0 1 1 0 1 2 0 0 2 0 0 0 1 3 0 1 3 2 1 2 2 1 2 1 1 1 1 1 1 2 1 0 2 1"
face="0 4 1 1 4 2 2 4 3 0 5 4 0 7 5 5 7 6 8 9 12 9 10 12 10 11 12 8 12 13 8 13 15 13 14 15 0 1 9 0 9 8 1 2 10 1 10 9
2 3 11 2 11 10 3 4 12 3 12 11 4 5 13 4 13 12 5 6 14 5 14 13 6 7 15 6 15 14 7 0 8 7 8 15" """


def written(folder: Path, inside: str, name: str = "model.xml") -> Path:
    file = folder / name
    file.write_text(f"<mujoco>{inside}</mujoco>", encoding="utf-8")
    return file


def weights_differ(file: Path) -> float:
    """How far masses, centres and inertias of the bodies are from MuJoCo's."""
    d, m = read_mjcf(file, fixed="keep", equality="ignore"), mujoco.MjModel.from_xml_path(str(file))
    worst = 0.0
    for k in range(1, m.nbody):
        b = d.body_names.position("body", mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_BODY, k) or f"body{k}")
        r = np.zeros(9)
        mujoco.mju_quat2Mat(r, m.body_iquat[k])
        inertia = r.reshape(3, 3) @ np.diag(m.body_inertia[k]) @ r.reshape(3, 3).T
        parts = (d.mass[b] - m.body_mass[k], d.com[b] - m.body_ipos[k], full_inertia(d.inertia[b]) - inertia)
        sizes = (m.body_mass[k], 1.0, np.abs(inertia).max())
        worst = max(worst, *(float(np.abs(x).max()) / s for x, s in zip(parts, sizes, strict=True)))
    return worst


# -- what bodies weigh ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("rule", ["legacy", "exact", "convex", "shell"])
def test_a_mesh_weighs_what_its_rule_says(tmp_path: Path, rule: str) -> None:
    # Of this shape the rules make four masses: 17, 15, 18 and an area of 22.
    mesh = f'<asset><mesh name="u" inertia="{rule}" scale="-.1 .2 .3" refpos=".1 .2 .3" {U_SHAPE}/></asset>'
    geom = '<geom type="mesh" mesh="u" pos=".1 .2 .3" euler="10 20 30"/>'
    file = written(tmp_path, f"{mesh}<worldbody><body><freejoint/>{geom}</body></worldbody>")
    assert weights_differ(file) < 1e-9


@pytest.mark.parametrize(
    "compiler",
    [
        'boundmass="2" boundinertia="0.5"',
        'balanceinertia="true"',
        'inertiafromgeom="true"',
        'inertiafromgeom="true" inertiagrouprange="1 1" boundmass="0.1" boundinertia="0.1"',
        'settotalmass="5" balanceinertia="true"',
    ],
)
def test_the_compiler_repairs_inertias_as_mujoco_does(tmp_path: Path, compiler: str) -> None:
    moments = "0.1 0.1 0.9" if "balance" in compiler else "0.3 0.4 0.5"
    inertial = f'<inertial pos=".1 0 0" mass="1" diaginertia="{moments}" euler="20 0 30"/>'
    geoms = '<geom size=".1"/><geom type="box" size=".1 .2 .3" group="1" pos="0 .2 0"/>'
    bodies = f"<body><freejoint/>{inertial}{geoms}</body><body><freejoint/>{geoms}</body>"
    assert weights_differ(written(tmp_path, f"<compiler {compiler}/><worldbody>{bodies}</worldbody>")) < 1e-12


# -- what holds bodies together -----------------------------------------------------------------------------------
BARS = """<worldbody><body name="a" pos="0 0 1"><joint name="ja" axis="0 1 0"/><geom size=".1" mass="1"/>
  <site name="tip" pos=".3 0 .1" euler="10 20 0"/>
  <body name="b" pos="1 0 0" euler="0 30 0"><joint name="jb" type="ball"/><geom size=".1" mass="1"/></body></body>
<body name="c" pos=".5 .5 0" euler="10 0 20"><freejoint name="jc"/><geom size=".1" mass="1"/>
  <site name="eye" pos="0 .2 .1" euler="0 40 0"/></body></worldbody>"""


@pytest.mark.parametrize(
    "hold",
    [
        '<connect body1="b" anchor=".4 0 0"/>',
        pytest.param('<connect body1="a" body2="c" anchor=".4 .1 0"/>', marks=pytest.mark.slow),
        '<connect site1="tip" site2="eye"/>',
        pytest.param('<weld body1="a" body2="c" anchor=".1 .2 .3"/>', marks=pytest.mark.slow),
        pytest.param('<weld body1="c" body2="a" relpose=".1 .2 .3 1 .2 .3 .4"/>', marks=pytest.mark.slow),
        '<weld body1="a" body2="c" anchor=".1 .2 .3" relpose=".1 .2 .3 1 .2 .3 .4"/>',
        '<weld site1="tip" site2="eye"/>',
    ],
)
def test_what_is_held_here_is_held_in_mujoco(tmp_path: Path, hold: str) -> None:
    file = written(tmp_path, f"{BARS}<equality>{hold}</equality>")
    mech, model = lw.load(file), mujoco.MjModel.from_xml_path(str(file))
    assert len(mech.loops) == 1
    rng = np.random.default_rng(0)
    q = mech.assemble(mech.integrate(mech.assemble(), 0.3 * rng.normal(size=mech.nv)))
    data = mujoco.MjData(model)
    for k in range(model.njnt):
        joint, at = mech.joints[mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, k)], model.jnt_qposadr[k]
        data.qpos[at : at + joint.q_slice.stop - joint.q_slice.start] = q[joint.q_slice]
    mujoco.mj_forward(model, data)
    equalities = data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
    assert equalities.sum() == (3 if "connect" in hold else 6)
    assert np.abs(data.efc_pos[equalities]).max() < 1e-9


def test_a_coupled_joint_follows_its_leader_from_their_references(tmp_path: Path) -> None:
    arm = """<worldbody><body><joint name="a" ref="20"/><geom size=".1" pos=".2 0 0"/>
    <body pos="1 0 0"><joint name="b" ref="-10"/><geom size=".1" pos=".2 0 0"/>
    <body pos="1 0 0"><joint name="c"/><geom size=".1" pos=".2 0 0"/></body></body></body></worldbody>"""
    hold = '<joint joint1="b" joint2="a" polycoef=".1 2"/><joint joint1="c" polycoef=".3"/>'
    mech = lw.load(written(tmp_path, f"{arm}<equality>{hold}</equality>"))
    [coupling] = mech.description.mimics
    assert coupling.ratio == 2.0
    assert coupling.offset == pytest.approx(np.deg2rad(-10) + 0.1 - 2.0 * np.deg2rad(20))
    assert [joint.name for joint in mech.joints] == ["a", "b"]  # c stands still


def test_bodies_that_move_together_need_no_weld(tmp_path: Path) -> None:
    body = '<body name="a"><freejoint/><geom size=".1"/><body name="b" pos="1 0 0"><geom size=".1"/></body></body>'
    weld = '<equality><weld body1="a" body2="b"/></equality>'
    assert lw.load(written(tmp_path, f"<worldbody>{body}</worldbody>{weld}")).loops == ()


# -- forces ---------------------------------------------------------------------------------------------------------
def test_springs_of_any_order_and_tendons_between_sites_act_as_in_mujoco(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        """<compiler angle="radian"/><worldbody><site name="s" pos="1 0 0"/><body name="a">
    <joint name="h" axis="0 1 0" springref=".3" stiffness="2 3 4" damping="1 2 3"/>
    <joint name="x" type="slide" axis="1 2 0"/><geom size=".1" pos=".2 .1 .3"/><site name="t" pos="0 .5 .2"/></body>
    </worldbody><tendon><spatial stiffness="20" damping="2"><site site="s"/><site site="t"/></spatial></tendon>
    <actuator><motor joint="h" gear="3" armature=".1" damping=".2"/></actuator>""",
    )
    mech, rng = lw.load(file), np.random.default_rng(1)
    oracle = Oracle(mujoco.MjModel.from_xml_path(str(file)), mech)
    for _ in range(3):
        q, v = oracle.random_state(rng)
        assert max(oracle.errors(q, v, rng.normal(size=2)).values()) < 1e-9


def test_what_changes_the_motion_and_is_left_out_is_told(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        """<option viscosity="1"/><worldbody><body><joint name="elbow" type="ball" stiffness="3"/><geom size=".1"/>
    </body></worldbody>""",
    )
    with pytest.warns(LinkwrightWarning, match="springs of the ball and free joints") as told:
        lw.load(file)
    assert "fluid" in str(told[0].message)


def test_disabled_forces_do_not_act(tmp_path: Path) -> None:
    flags = 'gravity="disable" spring="disable" damper="disable" frictionloss="disable"'
    joint = '<joint stiffness="3" damping="2" frictionloss="1"/>'
    body = f"<worldbody><body>{joint}<geom size='.1'/></body></worldbody>"
    mech = lw.load(written(tmp_path, f"<option><flag {flags}/></option>{body}"))
    assert mech.description.elements == ()
    assert not mech.gravity.any()


def test_losses_can_be_kept_as_numbers_alone(tmp_path: Path) -> None:
    joint = '<joint name="j" damping="2" frictionloss="1" stiffness="3"/>'
    body = f"<worldbody><body>{joint}<geom size='.1'/></body></worldbody>"
    file = written(tmp_path, body)
    names = [[e.name for e in lw.load(file, **o).description.elements] for o in ({}, {"friction": "ignore"})]
    assert names == [["j damping", "j spring"], ["j spring"]]
    kept = lw.load(file, friction="ignore").description
    assert (kept.damping[0], kept.friction[0]) == (2.0, 1.0)


# -- actuators ------------------------------------------------------------------------------------------------------
ARM = """<compiler angle="radian"/><default><motor ctrlrange="-.5 .5"/><default class="strong">
<position kp="7"/></default></default><worldbody><body><joint name="a" range="-1 1"/><geom size=".1" pos=".2 0 0"/>
<body pos="1 0 0"><joint name="b"/><geom size=".1" pos=".2 0 0"/></body></body></worldbody>"""


def test_a_joint_is_actuated_and_as_strong_as_what_drives_it(tmp_path: Path) -> None:
    mech = lw.load(written(tmp_path, f'{ARM}<actuator><motor joint="a" gear="-30"/></actuator>'))
    assert mech.actuated.tolist() == [True, False]
    assert mech.joints["a"].effort_limit == pytest.approx(15.0)
    assert (mech.joints["a"].lower, mech.joints["a"].upper) == (-1.0, 1.0)


def test_without_any_actuator_every_joint_may_have_one(tmp_path: Path) -> None:
    assert lw.load(written(tmp_path, ARM)).actuated.all()


def test_a_shortcut_takes_what_classes_say_of_other_shortcuts(tmp_path: Path) -> None:
    # As in MuJoCo, all shortcuts of a class fill one default: kp comes from the class, the range from <motor>.
    file = written(tmp_path, f'{ARM}<actuator><position name="p" class="strong" joint="a"/></actuator>')
    model = mujoco.MjModel.from_xml_path(str(file))
    assert model.actuator_ctrlrange[0].tolist() == [-0.5, 0.5]
    mech = lw.load(file, actuators="apply").with_parameters(ctrl_p=3.0)
    force = -mech.bias_forces(np.array([0.1, 0.0]), np.zeros(2)) + lw.load(file).bias_forces([0.1, 0.0], np.zeros(2))
    assert force == pytest.approx([7.0 * (0.5 - 0.1), 0.0])
    assert model.actuator_gainprm[0, 0] == 7.0


# -- where motion begins --------------------------------------------------------------------------------------------
def test_motion_begins_where_the_file_draws_the_model_or_at_a_keyframe(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        """<worldbody><body pos="1 2 3" euler="0 0 90"><joint name="f" type="free"/><geom size=".1"/></body>
    <body><joint name="h" ref="30"/><geom size=".1" pos="1 0 0"/></body></worldbody>
    <keyframe><key/><key name="k" qpos="0 0 1 0 1 0 0 7" qvel="1 2 3 4 5 6 7"/></keyframe>""",
    )
    q, v = lw.load(file).initial_state()
    assert q == pytest.approx([1, 2, 3, np.sqrt(0.5), 0, 0, np.sqrt(0.5), np.deg2rad(30)])
    assert not v.any()
    mech = lw.load(file, keyframe="k")
    q, v = mech.initial_state()
    assert q == pytest.approx([0, 0, 1, 0, 1, 0, 0, 7])
    # MuJoCo's linear rates are along the world's axes, ours along the body's: half a turn about x.
    assert v == pytest.approx([1, -2, -3, 4, 5, 6, 7])
    assert lw.load(file, keyframe=1).description.digest == mech.description.digest


# -- files ----------------------------------------------------------------------------------------------------------
def test_includes_are_read_where_they_stand_and_names_stay(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "arm.xml").write_text(
        '<mujocoinclude><body name="arm"><joint name="j"/><geom size=".1" pos="1 0 0"/></body></mujocoinclude>'
    )
    inside = '<worldbody><body name="base" pos="0 0 1"><include file="parts/arm.xml"/></body></worldbody>'
    mech = lw.load(written(tmp_path, inside))
    assert [joint.name for joint in mech.joints] == ["j"]
    assert mech.pose(np.zeros(1), "arm")[:3, 3] == pytest.approx([0, 0, 1])
    assert "base" in mech.frames


def test_a_mesh_outside_of_the_folder_is_read_only_if_its_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "stl").mkdir()
    corners = ["v 0 0 0", "v 1 0 0", "v 0 1 0", "v 0 0 1", "f 1 3 2", "f 1 2 4", "f 1 4 3", "f 2 3 4"]
    (tmp_path / "stl" / "part.obj").write_text("\n".join(corners))
    inside = """<compiler meshdir="../stl"/><asset><mesh file="part.obj"/></asset>
    <worldbody><body><freejoint/><geom type="mesh" mesh="part"/></body></worldbody>"""
    file = written(tmp_path / "model", inside)
    with pytest.raises(FormatError, match="folders="):
        lw.load(file)
    mech = lw.load(file, folders=[tmp_path / "stl"])
    assert mech.bodies[0].mass == pytest.approx(1000.0 / 6.0)
    [shape] = mech.description.shapes
    assert (shape.kind, shape.file) == ("mesh", "../stl/part.obj")


def test_geoms_are_drawn_where_mujoco_shows_them(tmp_path: Path) -> None:
    inside = """<asset><material name="red" rgba="1 0 0 1"/></asset><worldbody><geom type="plane" size="1 1 1"/>
    <body name="a"><freejoint/><geom type="box" size=".1 .2 .3" material="red"/>
    <geom name="rod" type="capsule" size=".05" fromto="0 0 0 0 0 2" rgba="0 .5 1 1"/><geom size=".1" group="3"/></body>
    </worldbody>"""
    box, rod = lw.load(written(tmp_path, inside)).description.shapes
    assert (box.place, box.color, [x.evaluate({}) for x in box.size]) == ("a", "#ff0000", [0.2, 0.4, 0.6])
    assert (rod.place, rod.color, [x.evaluate({}) for x in rod.size]) == ("rod", "#0080ff", [0.05, 2.0])


def test_a_model_without_surprises_loads_without_a_warning(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.load(written(tmp_path, ARM))


def test_a_chain_as_deep_as_files_may_be_is_read(tmp_path: Path) -> None:
    link = '<body pos="0 0 .1"><joint/><geom size=".02"/>'
    mech = lw.load(written(tmp_path, f"<worldbody>{link * 490}{'</body>' * 490}</worldbody>"))
    assert (mech.nb, mech.nv) == (490, 490)
