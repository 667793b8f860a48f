"""URDF reading, against Pinocchio on every robot of example-robot-data, and on small files with one fault each."""

import math
import warnings

import numpy as np
import pytest

from linkwright.errors import FormatError, LinkwrightWarning
from linkwright.formats.urdf import read_urdf
from linkwright.model.model_checks import check_numbers
from linkwright.model.placements import full_inertia
from linkwright.model.topology import span
from linkwright.model.tree import Tree
from robots import folder

pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle: pip install pin")

ROBOTS = folder()
FILES = sorted(ROBOTS.glob("**/*.urdf"))
NOT_ROBOTS = ("ur3.urdf", "falcon.urdf")
ALL = [pytest.param(f, id=f.relative_to(ROBOTS).as_posix()) for f in FILES if f.name not in NOT_ROBOTS]


def robot(name):
    return next(f for f in FILES if f.name == name)


def read_quietly(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinkwrightWarning)
        return read_urdf(path, **options)


def peer(path, base="fixed", **options):
    root = (pin.JointModelFreeFlyer(),) if base == "floating" else ()
    return pin.buildModelFromUrdf(str(path), *root, **options)


def test_the_wheel_has_the_77_files_that_the_design_counts():
    assert len(FILES) == 77
    assert len(ALL) == 75


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("path", ALL)
def test_a_robot_has_the_joints_placements_and_inertias_that_pinocchio_reads(path, base):
    d, model = read_quietly(path, base=base), peer(path, base)
    assert set(d.joint_names) == set(model.names[1:])
    for j, name in enumerate(d.joint_names):
        k = model.getJointId(name)
        parent, placement, inertia = model.parents[k], model.jointPlacements[k], model.inertias[k]
        carrier = int(d.parent[j])
        assert model.names[parent] == ("universe" if carrier < 0 else _joint_under(d, carrier))
        rotation = d.ri[j] @ d.rj[j].T
        np.testing.assert_allclose(rotation, placement.rotation, atol=1e-12)
        np.testing.assert_allclose(d.pi[j], placement.translation, atol=1e-12)
        assert not d.pj[j].any()
        body = int(d.child[j])
        assert d.mass[body] == pytest.approx(inertia.mass, rel=1e-12)
        if inertia.mass:
            np.testing.assert_allclose(d.com[body], inertia.lever, atol=1e-12)
        scale = 1e-12 * max(1.0, np.abs(inertia.inertia).max())
        np.testing.assert_allclose(full_inertia(d.inertia[body]), inertia.inertia, atol=scale)


def _joint_under(d, body):
    return d.joint_names[int(np.flatnonzero(d.child == body)[0])]


@pytest.mark.parametrize("path", ALL)
def test_every_link_name_stays_a_body_or_a_frame_where_pinocchio_has_it(path):
    d, model = read_quietly(path), peer(path)
    for frame in model.frames:
        if frame.type != pin.BODY:
            continue
        k = d.frames.names.find(frame.name)
        if k is None:
            assert d.body_names.find(frame.name) is not None
            np.testing.assert_allclose(frame.placement.homogeneous, np.eye(4), atol=1e-12)
            continue
        np.testing.assert_allclose(d.frames.r[k], frame.placement.rotation, atol=1e-12)
        np.testing.assert_allclose(d.frames.p[k], frame.placement.translation, atol=1e-12)
        body = int(d.frames.body[k])
        assert model.names[frame.parentJoint] == ("universe" if body < 0 else _joint_under(d, body))


@pytest.mark.parametrize("path", ALL)
def test_axes_limits_damping_and_friction_are_those_that_pinocchio_reads(path):
    d, model = read_quietly(path), peer(path)
    data = model.createData()
    for j, name in enumerate(d.joint_names):
        k = model.getJointId(name)
        joint, iv = model.joints[k], model.joints[k].idx_v
        kind = d.kind_of(j).name
        assert joint.nv == d.kind_of(j).nv
        if kind not in ("revolute", "prismatic"):
            continue
        pin.computeJointJacobians(model, data, pin.neutral(model))
        column = pin.getJointJacobian(model, data, k, pin.LOCAL)[:, iv]
        np.testing.assert_allclose(column[3:] if kind == "revolute" else column[:3], d.rj[j][:, 2], atol=1e-9)
        if joint.nq == 1:
            assert (d.lower[j], d.upper[j]) == (
                model.lowerPositionLimit[joint.idx_q],
                model.upperPositionLimit[joint.idx_q],
            )
        else:
            assert (d.lower[j], d.upper[j]) == (-np.inf, np.inf)
        assert d.damping[j] == model.damping[iv]
        assert d.friction[j] == model.upperDryFrictionLimit[iv]
        if np.isfinite(d.effort_limit[j]):
            assert d.effort_limit[j] == model.upperEffortLimit[iv]
            assert d.velocity_limit[j] == model.upperVelocityLimit[iv]


@pytest.mark.parametrize("path", ALL)
def test_fixed_joints_can_be_kept_and_then_every_link_but_the_root_is_a_body(path):
    d = read_quietly(path, fixed="keep")
    links = {f.name for f in peer(path).frames if f.type == pin.BODY}
    assert set(d.body_names) | set(d.frames.names) == links
    assert len(d.frames.names) == 1
    assert len(span(d)) == len(links) - 1


@pytest.mark.parametrize("name", ["panda.urdf", "baxter.urdf", "pr2.urdf", "tiago_pro.urdf"])
def test_mimic_joints_follow_their_leaders_as_in_pinocchio(name):
    d, model = read_quietly(robot(name)), peer(robot(name), mimic=True)
    theirs = {}
    for follower, leader in zip(model.mimicking_joints, model.mimicked_joints, strict=True):
        joint = model.joints[follower].extract()
        theirs[model.names[follower]] = (model.names[leader], joint.scaling, joint.offset)
    ours = {d.joint_names[m.follower]: (d.joint_names[m.leader], m.ratio, m.offset) for m in d.mimics}
    assert ours == theirs
    assert ours


def test_mimic_joints_can_be_independent():
    assert read_quietly(robot("panda.urdf"), mimic="independent").mimics == ()


def test_the_root_links_inertia_becomes_grounds_and_stays_known():
    d, model = read_quietly(robot("panda.urdf")), peer(robot("panda.urdf"))
    mass, com, inertia = d.ground_inertia
    assert mass == pytest.approx(model.inertias[0].mass)
    np.testing.assert_allclose(com, model.inertias[0].lever, atol=1e-12)
    np.testing.assert_allclose(full_inertia(inertia), model.inertias[0].inertia, atol=1e-12)


def test_a_floating_base_is_a_free_joint_without_an_actuator():
    d = read_quietly(robot("anymal.urdf"), base="floating")
    j = d.joint_names.position("joint", "root_joint")
    assert d.kind_of(j).name == "free"
    assert d.parent[j] == -1
    assert d.passive == {j}


def test_a_file_without_links_is_named_so():
    with pytest.raises(FormatError, match=r"ur3\.urdf:6: has no <link>"):
        read_urdf(robot("ur3.urdf"))


def test_a_joint_to_an_undefined_link_names_joint_and_link():
    with pytest.raises(FormatError, match=r"falcon\.urdf:180: joint 'top_propeller_joint'.*'Z_propeller'") as caught:
        read_urdf(robot("falcon.urdf"))
    assert caught.value.element == "Z_propeller"
    assert caught.value.line == 180


# -- small files ----------------------------------------------------------------------------------------------
INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


def link(name, inertial=INERTIAL):
    return f'<link name="{name}">{inertial}</link>'


def joint(name, parent, child, kind="revolute", inside=""):
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{inside}</joint>'


@pytest.fixture
def urdf(tmp_path):
    def write(*parts, around='<robot name="r">{}</robot>'):
        path = tmp_path / "r.urdf"
        path.write_text(around.format("\n".join(parts)))
        return path

    return write


AB = (link("a"), link("b"))
FAULTS = {
    "another outermost element": (("<sdf/>",), r"r\.urdf:1: is not a URDF: .*<sdf>", "{}"),
    "two roots": ((*AB, link("c"), joint("j", "a", "b")), r"2 root links, 'a', 'c'; connect"),
    "a cycle beside a tree": (
        (*AB, link("c"), link("d"), joint("j", "a", "b"), joint("k", "c", "d"), joint("l", "d", "c")),
        "cycle, (c → d → c|d → c → d)",
    ),
    "a cycle of everything": ((*AB, joint("j", "a", "b"), joint("k", "b", "a")), "the joints form a cycle"),
    "a link on itself": ((link("a"), joint("j", "a", "a")), "cycle, a → a"),
    "two parents": ((*AB, link("c"), joint("j", "a", "c"), joint("k", "b", "c")), "'c' is the child of two joints"),
    "a missing parent": ((*AB, joint("j", "x", "b")), "'j' names 'x' as its parent"),
    "no parent element": ((*AB, '<joint name="j" type="fixed"><child link="b"/></joint>'), "names no parent"),
    "duplicate links": ((link("a"), link("a")), r"r\.urdf:2: two links are named 'a' \(the first on line 1\)"),
    "duplicate joints": ((*AB, link("c"), joint("j", "a", "b"), joint("j", "b", "c")), "two joints are named 'j'"),
    "a nameless link": (("<link/>",), "a <link> has no name"),
    "an unknown joint type": ((*AB, joint("j", "a", "b", "hinge")), "type 'hinge'; URDF knows revolute"),
    "a word for a mass": (
        (link("a", '<inertial><mass value="abc"/></inertial>'),),
        r":1: a: value='abc'.*not a number",
    ),
    "a missing coordinate": (
        (*AB, joint("j", "a", "b", "fixed", '<origin xyz="1 2"/>')),
        "xyz='1 2' of <origin> has 2 numbers; 3 wanted",
    ),
    "a number that is not finite": ((link("a", '<inertial><mass value="nan"/></inertial>'),), "not finite"),
    "a negative mass": ((link("a", '<inertial><mass value="-2"/></inertial>'),), "'a' has the negative mass -2"),
    "a number with an underscore": ((link("a", '<inertial><mass value="1_0"/></inertial>'),), "'1_0'.*not a number"),
    "digits of another script": ((link("a", '<inertial><mass value="&#1633;"/></inertial>'),), "not a number"),
    "two signs of an infinity": (
        (*AB, joint("j", "a", "b", "revolute", '<limit effort="--inf"/>')),
        "'--inf'.*not a number",
    ),
    "a negative damping": (
        (*AB, joint("j", "a", "b", "revolute", '<dynamics damping="-1"/>')),
        r":3: joint 'j' has the negative damping -1; give 0 or more",
    ),
    "a negative effort": (
        (*AB, joint("j", "a", "b", "revolute", '<limit effort="-1"/>')),
        r":3: joint 'j' has the negative effort limit -1; give 0 or more",
    ),
    "a zero axis": ((*AB, joint("j", "a", "b", "revolute", '<axis xyz="0 0 0"/>')), "'j' has a zero axis"),
    "a mimic of a fixed joint": (
        (*AB, link("c"), joint("j", "a", "b", "fixed"), joint("k", "b", "c", "revolute", '<mimic joint="j"/>')),
        "'k' mimics 'j', but 'j' is fixed",
    ),
    "a mimic of itself": ((*AB, joint("j", "a", "b", "revolute", '<mimic joint="j"/>')), "in a circle, j → j"),
    "a mimic without a leader": ((*AB, joint("j", "a", "b", "revolute", "<mimic/>")), "mimics no joint"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_has_its_own_error(urdf, fault):
    parts, message, *around = FAULTS[fault]
    with pytest.raises(FormatError, match=message):
        read_urdf(urdf(*parts, **({"around": around[0]} if around else {})))


@pytest.mark.parametrize("option", ["base", "mimic", "fixed", "friction"])
def test_a_wrong_option_value_is_told_with_the_right_ones(urdf, option):
    with pytest.raises(FormatError, match=f"{option}='maybe' must be"):
        read_urdf(urdf(link("a")), **{option: "maybe"})


def test_limits_the_wrong_way_round_are_no_limit_and_warned_of(urdf):
    path = urdf(*AB, joint("j", "a", "b", "revolute", '<limit lower="1" upper="-1" velocity="3"/>'))
    with pytest.warns(LinkwrightWarning, match="joint 'j' has the lower limit 1 above its upper limit -1, .* no limit"):
        d = read_urdf(path)
    assert (d.lower[0], d.upper[0], d.velocity_limit[0]) == (-math.inf, math.inf, 3.0)


def test_missing_inertials_are_told_in_one_warning(urdf):
    path = urdf(link("a"), link("b", ""), link("c", ""), joint("j", "a", "b"), joint("k", "a", "c", "fixed"))
    with pytest.warns(LinkwrightWarning, match=r"no <inertial> in 'b', 'c'.*Of these, 'b' hang.*singular") as caught:
        d = read_urdf(path, fixed="keep")
    assert len(caught) == 1
    assert d.mass.tolist() == [0.0, 0.0]


def test_an_impossible_inertia_is_a_warning_that_names_the_link(urdf):
    bad = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="3" ixy="0" ixz="0" iyz="0"/></inertial>'
    with pytest.warns(LinkwrightWarning, match="no body can have the inertia of 'b'"):
        read_urdf(urdf(link("a"), link("b", bad), joint("j", "a", "b")))


def test_chains_of_mimics_keep_the_leaders_that_the_file_has(urdf):
    parts = [*AB, link("c"), link("d"), joint("j", "a", "b")]
    parts.append(joint("l", "c", "d", "revolute", '<mimic joint="k" multiplier="3" offset="5"/>'))
    parts.append(joint("k", "b", "c", "revolute", '<mimic joint="j" multiplier="-2" offset="1"/>'))
    d = read_urdf(urdf(*parts))
    found = {d.joint_names[m.follower]: (d.joint_names[m.leader], m.ratio, m.offset) for m in d.mimics}
    assert found == {"k": ("j", -2.0, 1.0), "l": ("k", 3.0, 5.0)}
    x = Tree(d, span(d)).coordinates
    assert (x.nq, sorted(zip(x.ratio.tolist(), x.offset.tolist(), strict=True))) == (1, [(-6, 8), (-2, 1), (1, 0)])


def test_a_mimic_of_a_joint_that_is_not_there_stays_independent_with_a_warning(urdf):
    with pytest.warns(LinkwrightWarning, match=r"k \(of x\)|j \(of x\)"):
        d = read_urdf(urdf(*AB, joint("j", "a", "b", "revolute", '<mimic joint="x"/>')))
    assert d.mimics == ()


def test_a_missing_axis_is_x_and_a_long_one_is_made_a_unit(urdf):
    d = read_urdf(urdf(*AB, link("c"), joint("j", "a", "b"), joint("k", "b", "c", inside='<axis xyz="0 -3 0"/>')))
    assert d.rj[0][:, 2].tolist() == [1.0, 0.0, 0.0]
    assert d.rj[1][:, 2].tolist() == [0.0, -1.0, 0.0]


def test_quarter_turns_are_exact(urdf):
    origin = '<origin rpy="1.5707963267948966 0 -1.5707963267948966"/>'
    d = read_urdf(urdf(*AB, joint("j", "a", "b", "floating", origin)))
    assert set(np.unique(d.ri[0])) == {-1.0, 0.0, 1.0}
    check_numbers(d)


def test_a_planar_joint_has_its_normal_along_the_axis(urdf):
    d = read_urdf(urdf(*AB, joint("j", "a", "b", "planar", '<axis xyz="0 1 0"/>')))
    assert d.kind_of(0).name == "planar"
    assert d.ri[0][:, 2].tolist() == [0.0, 1.0, 0.0]


def test_limits_may_be_infinite(urdf):
    d = read_urdf(urdf(*AB, joint("j", "a", "b", inside='<limit lower="-inf" upper="inf" effort="1" velocity="inf"/>')))
    assert (d.lower[0], d.upper[0], d.effort_limit[0], d.velocity_limit[0]) == (-np.inf, np.inf, 1.0, np.inf)


def test_a_link_named_ground_does_not_clash_with_ground(urdf):
    d = read_urdf(urdf(link("ground"), link("b"), joint("j", "ground", "b")))
    check_numbers(d)
    assert d.ground_name == "world"


def test_a_joint_named_root_joint_leaves_the_floating_base_another_name(urdf):
    d = read_urdf(urdf(*AB, joint("root_joint", "a", "b")), base="floating")
    check_numbers(d)
    assert list(d.joint_names) == ["root_joint of a", "root_joint"]


def test_a_merged_link_without_inertial_is_a_mere_frame_if_what_it_merges_into_has_mass(urdf):
    parts = (*AB, link("tool", ""), joint("j", "a", "b"), joint("k", "b", "tool", "fixed"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(read_urdf(urdf(*parts)).frames.names) == ["a", "tool"]
    with pytest.warns(LinkwrightWarning, match="no <inertial> in 'tool'; taken as massless$"):
        read_urdf(urdf(*parts), fixed="keep")
    with pytest.warns(LinkwrightWarning, match="no <inertial> in 'tool'; taken as massless$"):  # it carries c
        read_urdf(urdf(*parts, link("c"), joint("l", "tool", "c")))
    massless = (link("a"), link("b", ""), link("tool", ""), *parts[3:])
    with pytest.warns(LinkwrightWarning, match="no <inertial> in 'b', 'tool'.*Of these, 'b' hang"):
        read_urdf(urdf(*massless))


def test_half_an_inertial_is_told(urdf):
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    no_value, no_inertia = f"<inertial><mass/>{inertia}</inertial>", '<inertial><mass value="2"/></inertial>'
    path = urdf(link("a"), link("b", no_value), link("c", no_inertia), joint("j", "a", "b"), joint("k", "a", "c"))
    message = "no <mass value> in 'b'; taken as massless. There is no <inertia> in 'c'; taken as point masses. Of these"
    with pytest.warns(LinkwrightWarning, match=message) as caught:
        read_urdf(path)
    assert len(caught) == 1


def test_of_very_many_massless_links_the_first_are_named(urdf):
    n = 3000
    parts = [link(f"l{k}", "") for k in range(n)] + [joint(f"j{k}", f"l{k}", f"l{k + 1}") for k in range(n - 1)]
    with pytest.warns(LinkwrightWarning, match=f"and {n - 9} more hang on moving joints"):
        read_urdf(urdf(*parts))


def test_damping_and_friction_act_only_if_asked_for(urdf):
    dynamics = '<dynamics damping="0.5" friction="0.25"/>'
    path = urdf(*AB, link("c"), joint("j", "a", "b", "revolute", dynamics), joint("k", "b", "c", "fixed", dynamics))
    assert read_urdf(path).elements == ()
    d = read_urdf(path, friction="apply")
    assert [(e.name, e.joint, e.index) for e in d.elements] == [("j damping", "j", 0)]
    assert [d.elements[0].law.evaluate({"v": v}) for v in (2.0, -2.0)] == [-1.25, 1.25]
    assert d.damping.tolist() == [0.5]
    check_numbers(d)
