"""SDF of whole robots: Cassie with its loops, and URDF robots said in SDF, which must have the same dynamics."""

import warnings
from xml.etree import ElementTree

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import FormatError, LinkwrightWarning
from robots import folder

ROBOTS = folder()
CASSIE = ROBOTS / "cassie_description/robots"
LOADED = {
    # bodies, coordinates, rates, loops, degrees of freedom
    "cassie.sdf": (35, 31, 30, 6, 17),
    "cassie_reduced.sdf": (23, 23, 23, 4, 11),
    "cassie_simple.sdf": (23, 23, 23, 4, 11),
    "cassie_v2.sdf": (23, 29, 28, 4, 18),
    "cassie_wo_gearbox_spring.sdf": (23, 23, 23, 4, 13),
}


@pytest.mark.filterwarnings("ignore::linkwright.errors.LinkwrightWarning")
@pytest.mark.parametrize("name", LOADED)
def test_every_cassie_loads_with_its_loops_and_is_assembled_as_drawn(name):
    m = lw.load(CASSIE / name)
    assert (len(m.bodies), m.nq, m.nv, len(m.loops), m.dof().left) == LOADED[name]
    assert np.allclose(m.assemble(m.neutral()), m.neutral(), atol=1e-9)


def test_the_world_of_cassie_is_told_to_be_no_xml():
    with pytest.raises(FormatError, match=r"cassie\.world:17: is not well-formed XML"):
        lw.load(CASSIE / "cassie.world")


def test_what_cassie_says_of_ball_joints_is_named():
    with pytest.warns(LinkwrightWarning, match=r"<dynamics> of ball joints.*'left-pitch-rod-joint'"):
        lw.load(CASSIE / "cassie_v2.sdf")


@pytest.mark.slow  # its equations of motion take a while to compile
@pytest.mark.filterwarnings("ignore::linkwright.errors.LinkwrightWarning")
def test_cassie_swings_for_a_second_without_losing_energy_or_opening_its_loops():
    """Its pelvis held and its dampers off; feet within their limits, as the file draws them near a dead centre."""
    m = lw.load(CASSIE / "cassie_v2.sdf", base="fixed", friction="ignore")
    at = {joint.name: joint.q_slice for joint in m.joints}
    guess = m.neutral().copy()
    for side in ("left", "right"):
        for name, angle in (("foot-op", -1.5), ("tarsus-crank-joint", -1.5), ("crank-rod-joint", 1.5)):
            guess[at[f"{side}-{name}"]] = angle
    q = m.assemble(guess, fixed=["left-foot-op", "right-foot-op"])
    run = lw.simulate(m, t_end=1.0, q0=q, v0=np.zeros(m.nv), rtol=1e-6)
    assert run.status, run.status
    stiffness = {"knee-shin-joint": 1500.0, "tarsus-spring-joint": 1250.0}  # as the file has them
    places = [(at[f"{side}-{name}"], k) for side in ("left", "right") for name, k in stiffness.items()]
    some = slice(None, None, 50)
    energy = m.kinetic_energy(run.q[some], run.v[some]) + m.potential_energy(run.q[some])
    energy = energy + sum(0.5 * k * run.q[some][:, where][:, 0] ** 2 for where, k in places)
    moving = m.kinetic_energy(run.q, run.v).max()
    assert moving > 1.0
    assert np.ptp(energy) < 1e-5 * moving
    assert max(_open(m, one) for one in run.q[:: len(run.q) // 10]) < 1e-9


def _open(m, q):
    """How far the two points of each ball joint that closes a loop are apart."""
    d = m.description
    far = 0.0
    for name in m.loops:
        j = d.joint_names.position("joint", name)
        ends = []
        for body, p in ((int(d.parent[j]), d.pi[j]), (int(d.child[j]), d.pj[j])):
            pose = m.pose(q, d.body_names[body])
            ends.append(pose[:3, :3] @ p + pose[:3, 3])
        far = max(far, float(np.linalg.norm(ends[0] - ends[1])))
    return far


@pytest.mark.parametrize(
    "name",
    [
        "panda_description/urdf/panda.urdf",
        "allegro_hand_description/urdf/allegro_left_hand.urdf",
        "solo_description/robots/solo12.urdf",
    ],
)
def test_a_urdf_robot_said_in_sdf_has_the_same_dynamics(tmp_path, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinkwrightWarning)
        urdf = lw.load(ROBOTS / name, mimic="independent")
        (tmp_path / "r.sdf").write_text(said_in_sdf(ROBOTS / name))
        sdf = lw.load(tmp_path / "r.sdf", base="fixed", friction="ignore", angles="as written")
    assert [j.name for j in sdf.joints] == [j.name for j in urdf.joints]
    rng = np.random.default_rng(1)
    for _ in range(3):
        q, v = rng.normal(size=urdf.nq), rng.normal(size=urdf.nv)
        np.testing.assert_allclose(sdf.mass_matrix(q), urdf.mass_matrix(q), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(sdf.bias_forces(q, v), urdf.bias_forces(q, v), rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(sdf.description.upper, urdf.description.upper)


def said_in_sdf(path):
    """A URDF word for word in SDF: joints are placed in their parents, links in the joints that carry them."""
    robot = ElementTree.parse(path).getroot()
    carried = {j.find("child").get("link"): j.get("name") for j in robot.findall("joint")}
    lines = ["<sdf version='1.8'><model name='r'>"]
    for link in robot.findall("link"):
        name = link.get("name")
        place = f"<pose relative_to='{carried[name]}'/>" if name in carried else ""
        lines.append(f"<link name='{name}'>{place}")
        inertial = link.find("inertial")
        if inertial is None:
            lines.append("<inertial><mass>0</mass><inertia><ixx>0</ixx><iyy>0</iyy><izz>0</izz></inertia></inertial>")
        else:
            moments = "".join(f"<{k}>{x}</{k}>" for k, x in inertial.find("inertia").items())
            lines.append(f"<inertial>{pose(inertial)}<mass>{inertial.find('mass').get('value')}</mass>")
            lines.append(f"<inertia>{moments}</inertia></inertial>")
        lines.append("</link>")
    for joint in robot.findall("joint"):
        parent, child = joint.find("parent").get("link"), joint.find("child").get("link")
        lines.append(f"<joint name='{joint.get('name')}' type='{joint.get('type')}'>")
        lines.append(pose(joint, f" relative_to='{parent}'") + f"<parent>{parent}</parent><child>{child}</child>")
        if joint.find("axis") is not None:
            limit = joint.find("limit")
            bounds = "" if limit is None else "".join(f"<{k}>{x}</{k}>" for k, x in limit.items())
            lines.append(f"<axis><xyz>{joint.find('axis').get('xyz')}</xyz><limit>{bounds}</limit></axis>")
        lines.append("</joint>")
    return "\n".join([*lines, "</model></sdf>"])


def pose(element, words=""):
    found = element.find("origin")
    xyz, rpy = ("0 0 0" if found is None else found.get(key, "0 0 0") for key in ("xyz", "rpy"))
    return f"<pose{words}>{xyz} {rpy}</pose>"
