"""SDF: poses and frames of every version, joints, inertias, springs, nested and included models, what is refused."""

import math
import random
import re

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import FormatError, LinkwrightWarning
from linkwright.formats.model_files import read

HEAVY = "<inertial><mass>2</mass><inertia><ixx>.1</ixx><iyy>.2</iyy><izz>.25</izz></inertia></inertial>"


@pytest.fixture
def sdf(tmp_path):
    def write(inside, version="1.7", name="m.sdf", model="<model name='m'>"):
        path = tmp_path / name
        close = "</world>" if model.startswith("<world") else "</model>"
        path.write_text(f"<sdf version='{version}'>{model}{inside}{close}</sdf>")
        return path

    return write


def link(name, pose="", more=HEAVY):
    return f"<link name='{name}'>{f'<pose>{pose}</pose>' if pose else ''}{more}</link>"


def joint(name, kind, parent, child, more=""):
    return f"<joint name='{name}' type='{kind}'><parent>{parent}</parent><child>{child}</child>{more}</joint>"


def axis(xyz, more="", tag="axis", **attributes):
    words = "".join(f" {key}='{value}'" for key, value in attributes.items())
    return f"<{tag}><xyz{words}>{xyz}</xyz>{more}</{tag}>"


def origin(mech, q, name):
    return mech.pose(np.asarray(q, float), name)[:3, 3]


# -- poses ----------------------------------------------------------------------------------------------------------
def test_links_are_where_the_model_puts_them_and_joints_turn_at_their_own_pose(sdf):
    inside = link("a", "1 2 3 0 0 0") + joint(
        "j", "revolute", "world", "a", "<pose>0 0 -1 0 0 0</pose>" + axis("1 0 0")
    )
    m = lw.load(sdf(inside))
    assert np.allclose(origin(m, [0.0], "a"), [1, 2, 3])
    assert np.allclose(origin(m, [math.pi / 2], "a"), [1, 1, 2])


@pytest.mark.parametrize(
    ("version", "more", "expected"),
    [
        ("1.4", axis("1 0 0"), [1, 0, 0]),
        ("1.6", axis("1 0 0"), [0, 1, 0]),
        ("1.6", axis("1 0 0", "<use_parent_model_frame>1</use_parent_model_frame>"), [1, 0, 0]),
        ("1.7", axis("1 0 0"), [0, 1, 0]),
        ("1.7", axis("1 0 0", expressed_in="__model__"), [1, 0, 0]),
        ("1.7", axis("1 0 0", expressed_in="turned"), [0, 0, -1]),
    ],
)
def test_an_axis_is_in_the_frame_that_the_version_says(sdf, version, more, expected):
    frame = "<frame name='turned'><pose>0 0 0 0 1.5707963 0</pose></frame>" if version == "1.7" else ""
    inside = link("a", "0 0 0 0 0 1.5708") + frame + joint("j", "revolute", "world", "a", more)
    d = read(sdf(inside, version))
    assert np.allclose(d.ri[0][:, 2], expected)


def test_poses_follow_relative_to_through_frames_and_joints(sdf):
    inside = (
        "<frame name='f' attached_to='a'><pose>1 0 0 0 0 1.5707963</pose></frame>"
        + link("a", "0 0 1 0 0 0")
        + f"<link name='b'><pose relative_to='f'>1 0 0 0 0 0</pose>{HEAVY}</link>"
        + f"<link name='c'><pose relative_to='j'/>{HEAVY}</link>"
        + "<joint name='j' type='revolute'><pose relative_to='b'>0 0 5 0 0 0</pose><parent>b</parent><child>c</child>"
        + axis("0 0 1")
        + "</joint>"
        + joint("g", "fixed", "world", "a")
        + joint("h", "revolute", "f", "b", axis("0 0 1"))
    )
    m = lw.load(sdf(inside))
    assert np.allclose(origin(m, [0, 0], "f"), [1, 0, 1])
    assert np.allclose(origin(m, [0, 0], "b"), [1, 1, 1])
    assert np.allclose(origin(m, [0, 0], "c"), [1, 1, 6])


def test_quarter_turns_that_were_rounded_are_exact_unless_asked_otherwise(sdf):
    path = sdf(link("a", "0 0 0 1.5708 -3.14159 1.57") + joint("j", "revolute", "world", "a", axis("0 0 1")))
    exact, written = read(path), read(path, angles="as written")
    assert np.allclose(exact.ri[0], written.ri[0], atol=1e-4)
    assert exact.ri[0][2, 2] == 0.0
    assert written.ri[0][2, 2] != 0.0
    assert exact.ri[0][1, 2] == pytest.approx(-math.cos(1.57))  # two decimals are taken as they are


def test_degrees_and_quaternions_are_read(sdf):
    inside = "<link name='a'><pose degrees='true'>0 0 0 0 0 90</pose></link>"
    inside += "<link name='b'><pose rotation_format='quat_xyzw'>0 0 0  0 0 1 1</pose></link>"
    inside += joint("j", "fixed", "a", "b")
    with pytest.warns(LinkwrightWarning, match="1 kg and 1 kg m²"):
        m = lw.load(sdf(inside, "1.9"), fixed="keep", base="fixed")
    for name in "ab":
        assert np.allclose(m.pose(m.neutral(), name)[:3, 0], [0, 1, 0])


def test_inertia_is_turned_and_shifted_by_its_pose(sdf):
    turned = HEAVY.replace("<mass>", "<pose>0 0.5 0 0 0 1.570796327</pose><mass>")
    m = lw.load(sdf(link("a", more=turned) + joint("j", "revolute", "world", "a", axis("1 0 0"))))
    assert m.mass_matrix([0.3])[0, 0] == pytest.approx(0.2 + 2 * 0.5**2)  # the file's yy is about the link's x


# -- joints ---------------------------------------------------------------------------------------------------------
def test_a_screw_joint_advances_by_its_pitch(sdf):
    for version, tag, value in (("1.10", "screw_thread_pitch", 0.5), ("1.6", "thread_pitch", -4 * math.pi)):
        more = axis("0 0 1") + f"<{tag}>{value}</{tag}>"
        m = lw.load(sdf(link("a") + joint("j", "screw", "world", "a", more), version))
        assert origin(m, [2 * math.pi], "a")[2] == pytest.approx(0.5)


@pytest.mark.parametrize("second", ["0 1 0", "1 1 0"])
def test_two_axes_turn_one_after_the_other(sdf, second):
    more = axis("1 0 0", "<dynamics><damping>2</damping></dynamics>") + axis(second, tag="axis2")
    m = lw.load(sdf(link("a", "0 0 0 0.3 0.2 0.1") + joint("j", "revolute2", "world", "a", more)))
    assert [j.kind for j in m.joints] == (["universal"] if second == "0 1 0" else ["revolute", "revolute"])
    x, y = np.array([1.0, 0, 0]), np.array([float(w) for w in second.split()])
    start = m.pose(m.neutral(), "a")[:3, :3]
    turned = start @ _turn(x, 0.7) @ _turn(y / np.linalg.norm(y), -0.4)
    assert np.allclose(m.pose(np.array([0.7, -0.4]), "a")[:3, :3], turned)
    plain = m.forward_dynamics([0, 0], [1.0, 0], [0, 0])
    pushed = m.forward_dynamics([0, 0], [1.0, 0], [2.0, 0])
    still = m.forward_dynamics([0, 0], [0, 0], [0, 0])
    assert np.linalg.norm(pushed - still) < np.linalg.norm(plain - still)


def _turn(u, angle):
    k = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
    return np.eye(3) + math.sin(angle) * k + (1 - math.cos(angle)) * k @ k


def test_springs_dampers_and_limits_are_those_of_the_file(sdf):
    words = {"damping": 3, "friction": 0, "spring_stiffness": 50, "spring_reference": 0.2}
    dynamics = "".join(f"<{key}>{value}</{key}>" for key, value in words.items())
    limit = "<limit><lower>-1</lower><upper>1e16</upper><effort>-1</effort><velocity>4</velocity></limit>"
    more = axis("0 0 1", f"<dynamics>{dynamics}</dynamics>{limit}")
    path = sdf(link("a") + joint("j", "prismatic", "world", "a", more))
    m = lw.load(path)
    assert m.forward_dynamics([0.5], [2.0], [0.0])[0] == pytest.approx((-50 * 0.3 - 3 * 2) / 2 - 9.81)
    d = m.description
    assert (d.lower[0], d.upper[0], d.effort_limit[0], d.velocity_limit[0]) == (-1, math.inf, math.inf, 4)
    free = lw.load(path, friction="ignore")
    assert free.forward_dynamics([0.5], [2.0], [0.0])[0] == pytest.approx(-50 * 0.3 / 2 - 9.81)


def test_limits_the_wrong_way_round_are_no_limit_and_warned_of(sdf):
    limit = "<limit><lower>1</lower><upper>-1</upper></limit>"
    path = sdf(link("a") + joint("j", "prismatic", "world", "a", axis("0 0 1", limit)))
    with pytest.warns(lw.errors.LinkwrightWarning, match="lower limit 1 above its upper limit -1, .* no limit"):
        d = lw.load(path).description
    assert (d.lower[0], d.upper[0]) == (-math.inf, math.inf)


def test_a_gearbox_couples_two_angles_against_its_reference_body(sdf):
    inside = (
        link("base")
        + link("motor")
        + link("arm")
        + joint("to_base", "fixed", "world", "base")
        + joint("motor_joint", "revolute", "base", "motor", axis("0 0 -1"))
        + joint("arm_joint", "revolute", "base", "arm", axis("0 0 1"))
        + joint(
            "gear",
            "gearbox",
            "motor",
            "arm",
            axis("0 0 1")
            + axis("0 0 1", tag="axis2")
            + "<gearbox_ratio>0.25</gearbox_ratio><gearbox_reference_body>base</gearbox_reference_body>",
        )
    )
    m = lw.load(sdf(inside))
    assert m.nv == 1
    # The arm turns by −1/4 of the motor, both about z: the motor by −4 of the arm.
    turn = m.pose([0.1], "motor")[:3, :3]
    assert math.atan2(turn[1, 0], turn[0, 0]) == pytest.approx(-0.4)
    assert m.mass_matrix([0.0])[0, 0] == pytest.approx(0.25 * (1 + 16))


def test_a_mimic_follows_with_its_reference_and_offset(sdf):
    mimic = "<mimic joint='j'><multiplier>2</multiplier><offset>0.5</offset><reference>1</reference></mimic>"
    inside = link("a") + link("b") + joint("j", "revolute", "world", "a", axis("0 0 1"))
    inside += joint("k", "revolute", "world", "b", axis("0 0 1", mimic))
    (coupling,) = read(sdf(inside, "1.11")).mimics
    assert (coupling.ratio, coupling.offset) == (2.0, -1.5)


FOUR_BAR = (
    link("crank")
    + link("rod", "0 0 1 0 0 0")
    + link("rocker", "3 0 0 0 0 0")
    + joint("a", "revolute", "world", "crank", axis("0 1 0"))
    + joint("b", "revolute", "crank", "rod", axis("0 1 0"))
    + joint("c", "revolute", "world", "rocker", axis("0 1 0"))
    + joint("d", "ball", "rocker", "rod", "<pose>3 0 1 0 0 0</pose>")
)


def test_a_link_with_two_parents_closes_a_loop_where_the_file_draws_it(sdf):
    m = lw.load(sdf(FOUR_BAR))
    assert m.loops == ("d",)
    assert m.dof().left == 1
    assert np.allclose(m.assemble(m.neutral()), m.neutral())
    q = m.assemble([0.4, 0.0, 0.0], fixed=["a"])
    assert np.linalg.norm(origin(m, q, "rod") + m.pose(q, "rod")[:3, :3] @ [3, 0, 1] - [3, 0, 0]) == pytest.approx(2.0)


# -- models ---------------------------------------------------------------------------------------------------------
def test_a_model_floats_unless_it_is_held(sdf):
    path = sdf(link("a", "1 2 3 0 0 0") + link("b") + joint("j", "revolute", "b", "a", axis("0 0 1")))
    m = lw.load(path)
    assert (m.joints[0].kind, m.nv) == ("free", 7)
    assert np.allclose(origin(m, m.neutral(), "a"), [1, 2, 3])
    held = lw.load(path, base="fixed")
    assert held.nv == 1
    assert np.allclose(origin(held, [0], "a"), [1, 2, 3])


def test_nested_models_have_their_own_names_and_places(sdf):
    inner = f"<model name='arm'><pose>0 0 5 0 0 0</pose>{link('hand', '1 0 0 0 0 0')}</model>"
    inside = link("base") + joint("w", "fixed", "world", "base") + inner
    inside += joint("j", "revolute", "base", "arm::hand", axis("0 0 1"))
    m = lw.load(sdf(inside))
    assert np.allclose(origin(m, [0], "arm::hand"), [1, 0, 5])


def test_included_models_are_looked_up_beside_the_file_or_in_the_folders_named(sdf, tmp_path):
    library = tmp_path / "library" / "wheel"
    library.mkdir(parents=True)
    config = "<model><sdf version='1.4'>old.sdf</sdf><sdf version='1.6'>new.sdf</sdf></model>"
    (library / "model.config").write_text(config)
    (library / "new.sdf").write_text(f"<sdf version='1.6'><model name='wheel'>{link('rim')}</model></sdf>")
    (tmp_path / "m").mkdir()
    wheels = "".join(
        f"<include><uri>model://wheel</uri><name>{n}</name><pose>{n == 'w1':d} 0 0 0 0 0</pose></include>"
        for n in ("w1", "w2")
    )
    path = sdf(link("base") + joint("g", "fixed", "world", "base") + wheels, name="m/m.sdf")
    with pytest.raises(FormatError, match="'wheel', which is not in"):
        read(path)
    m = lw.load(path, folders=[tmp_path / "library"])
    names = {body.name for body in m.bodies}
    assert {"w1::rim", "w2::rim"} <= names
    assert np.allclose(origin(m, m.neutral(), "w1::rim"), [1, 0, 0])


def test_a_world_has_all_its_models_its_gravity_and_what_is_static_on_ground(sdf):
    one = f"<model name='one'><pose>0 0 1 0 0 0</pose>{link('a')}</model>"
    two = f"<model name='two'><static>true</static>{link('a', '0 0 7 0 0 0')}</model>"
    path = sdf(f"<gravity>0 0 -1.6</gravity>{one}{two}", model="<world name='w'>")
    m = lw.load(path)
    assert [body.name for body in m.bodies] == ["one::a"]
    assert np.allclose(m.description.gravity, [0, 0, -1.6])
    assert np.allclose(origin(m, m.neutral(), "two::a"), [0, 0, 7])
    assert np.allclose(origin(m, m.neutral(), "one::a"), [0, 0, 1])
    assert lw.load(path, base="floating").nv == 12


def test_a_link_without_gravity_does_not_fall(sdf):
    m = lw.load(sdf(link("a", more=HEAVY + "<gravity>false</gravity>")))
    assert np.allclose(m.forward_dynamics(m.neutral(), np.zeros(6), np.zeros(6)), 0.0)


# -- what is refused or told ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("inside", "told"),
    [
        (link("a") + link("a"), "two things in 'm' are named 'a'"),
        (link("__model__"), "which SDF keeps for itself"),
        (link("a::b"), "has '::'"),
        ("<link/>", "a <link> has no name"),
        (link("a") + joint("j", "revolute", "world", "b"), "there is no link, frame, joint or model 'b'"),
        (link("a") + joint("j", "revolute", "a", "a"), "joins 'a' to itself"),
        (link("a") + joint("j", "hinge", "world", "a"), "has the type 'hinge'; SDF knows revolute"),
        (link("a") + joint("j", "revolute", "world", "a", axis("0 0 0")), "has a zero <axis>"),
        (link("a") + joint("j", "revolute", "world", "a", axis("0 0 x")), "'0 0 x' is not a list of numbers"),
        (link("a") + joint("j", "revolute", "world", "a", axis("0 1")), "has 2 numbers; 3 wanted"),
        ("<link name='a'><pose relative_to='b'/></link><link name='b'><pose relative_to='a'/></link>", "in a ring"),
        (
            "<frame name='f' attached_to='g'/><frame name='g' attached_to='f'/>"
            + link("a")
            + joint("j", "fixed", "a", "f"),
            "ring",
        ),
        ("<include><uri>m.sdf</uri></include>", "includes itself"),
        ("<include><uri>https://fuel.example/x</uri></include>", "nothing is fetched over a network"),
        ("<include/>", "has no <uri>"),
        ("", "has no <link>"),
        ("<static>1</static>" + link("a"), "all of it is static"),
        (link("a", more="<inertial auto='true'/>"), "write mass and inertia out"),
        (link("a", more="<inertial><mass>-1</mass></inertial>"), "negative <mass>"),
        (link("a", "0 0 nan 0 0 0"), "is not finite"),
    ],
)
@pytest.mark.filterwarnings("ignore::linkwright.errors.LinkwrightWarning")
def test_what_is_wrong_is_told_with_its_name(sdf, inside, told):
    with pytest.raises(FormatError, match=r"m\.sdf.*" + told.replace("(", r"\(").replace("*", r"\*")):
        read(sdf(inside))


def test_a_long_ring_of_frames_in_nested_models_is_refused(sdf):
    inside = "".join(
        f"<model name='m{k}'><pose relative_to='m{(k + 1) % 3000}::l'/>{link('l')}</model>" for k in range(3000)
    )
    with pytest.raises(FormatError, match=r"in a ring|too deeply"):
        read(sdf(inside))


@pytest.mark.parametrize("version", ["1.3", "2.0", "x", "", "1.²"])
def test_other_versions_are_refused(sdf, version):
    with pytest.raises(FormatError, match=r"SDF 1\.4 to 1\.12 is read"):
        read(sdf(link("a"), version))


def test_extensions_that_may_change_the_motion_are_named(sdf):
    inside = "<drake:joint name='d' xmlns:drake='drake.mit.edu'/>" + link("a") + "<plugin name='p'/>"
    with pytest.warns(LinkwrightWarning, match=r"not read, though it may change the motion: <drake:joint> \('d'\)"):
        read(sdf(inside))


WHOLE = f"""<frame name="f" attached_to="a"><pose>1 0 0 0 0 1.5708</pose></frame>
{link("a", "1 2 3 0 0 0")}<link name="b"><pose relative_to="f">1 0 0 0 0 0</pose>{HEAVY}</link>
<model name="n"><pose relative_to="b">0 0 1 0 0 0</pose>{link("c")}</model>
{joint("w", "fixed", "world", "a")}{joint("j", "revolute", "a", "b", axis("0 0 1", expressed_in="f"))}
{joint("k", "ball", "b", "n::c")}{joint("l", "screw", "world", "n::c", axis("0 1 0"))}"""


@pytest.mark.filterwarnings("ignore::linkwright.errors.LinkwrightWarning")
def test_whatever_is_changed_in_a_file_it_is_read_or_refused(sdf):
    words = [
        "a",
        "b",
        "f",
        "world",
        "__model__",
        "n::c",
        "x::y",
        "",
        "0",
        "nan",
        "1e300",
        "1 0 0",
        "universal",
        "gearbox",
    ]
    places = [m.span(1) for m in re.finditer(r"""(?:=["']|>)([^<>"']*\w[^<>"']*)["'<]""", WHOLE)]
    choose = random.Random(5)
    fine, told = 0, []
    for _ in range(150):
        first, last = choose.choice(places)
        path = sdf(WHOLE[:first] + choose.choice(words) + WHOLE[last:])
        try:
            read(path, fixed=choose.choice(["merge", "keep"]))
            fine += 1
        except FormatError as error:
            told.append(str(error))
    assert 10 < fine < 140
    assert all(text.startswith(str(path)) for text in told)


def test_misspelt_elements_of_joints_and_inertias_are_named(sdf):
    axis = "<axis><xyz>0 1 0</xyz><dynamics><dampin>3</dampin></dynamics></axis>"
    joint = f"<joint name='j' type='revolute'><parent>world</parent><child>a</child>{axis}</joint>"
    told = r"<dampin> in <dynamics> \('j'\); <Mass> in <inertial> \('a'\)"
    with pytest.warns(LinkwrightWarning, match=told):
        read(sdf(joint + link("a", more=HEAVY.replace("mass", "Mass"))))
