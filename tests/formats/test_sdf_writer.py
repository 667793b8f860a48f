"""Mechanisms written as SDF are the same when read again; what SDF cannot hold is told."""

import warnings

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import LinkwrightWarning, ModelError
from linkwright.formats.model_files import read
from linkwright.formats.sdf.sdf_writer import write_sdf
from robots import folder

CASSIE = folder() / "cassie_description/robots"
KINDS = ("revolute", "prismatic", "screw", "spherical", "universal", "fixed")


def again(path, d, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinkwrightWarning)
        path.write_text(write_sdf(d))
        return lw.load(path, fixed="keep", **options)


def assert_same_dynamics(a, b, seed=0):
    rng = np.random.default_rng(seed)
    assert [j.name for j in a.joints] == [j.name for j in b.joints]
    q, v = a.integrate(a.neutral(), 0.5 * rng.normal(size=a.nv)), rng.normal(size=a.nv)
    np.testing.assert_allclose(b.mass_matrix(q), a.mass_matrix(q), rtol=0, atol=1e-11)
    forces = [m.inverse_dynamics(q, v, np.zeros(m.nv)) for m in (a, b)]
    np.testing.assert_allclose(forces[1], forces[0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_random_trees_come_back(tmp_path, seed):
    tree = lw.random_tree(10, seed=seed, joints=KINDS)
    assert_same_dynamics(tree, again(tmp_path / "m.sdf", tree.description), seed)


def arm():
    with lw.Builder("arm") as b:
        one, two = (b.body(n, 1.0, (0.1, 0, 0), (0.2, 0.3, 0.4)) for n in ("one", "two"))
        b.joint("revolute", one, b.ground, "base", lower=-1.0, effort=5.0, damping=0.5, friction=0.1)
        b.joint("universal", b.triad(one, (0.3, 0, 0), (1, 1, 0)), two, "wrist", damping=0.2, actuated=False)
    return b


def test_springs_losses_limits_and_gravity_come_back_and_ground_may_be_the_second_body(tmp_path):
    b = arm()
    b.gravity((0.0, 1.0, -3.0))
    b.joint_spring("base", 30.0, 0.4)
    b.joint_spring("wrist", 7.0, -0.2, index=1)
    mech = lw.Mechanism(b.description())
    back = again(tmp_path / "m.sdf", mech.description)
    assert_same_dynamics(mech, back)
    d = back.description
    assert (d.lower[0], d.upper[0], d.effort_limit[0]) == (-1.0, np.inf, 5.0)
    assert np.array_equal(d.gravity, [0.0, 1.0, -3.0])


def test_a_coupling_comes_back(tmp_path):
    with lw.Builder("pair") as b:
        for name in "ab":
            b.joint("revolute", b.ground, b.body(name, 1.0, inertia=(1, 1, 1)), f"j{name}")
        b.mimic("jb", "ja", -2.0, 0.5)
    back = again(tmp_path / "m.sdf", b.description())
    (mimic,) = back.description.mimics
    assert (mimic.ratio, mimic.offset) == (-2.0, 0.5)


def test_cassie_comes_back_with_its_loops(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinkwrightWarning)
        first = read(CASSIE / "cassie_v2.sdf")
    back = again(tmp_path / "c.sdf", first)
    mech = lw.Mechanism(first)
    assert back.loops == mech.loops
    assert back.dof().left == mech.dof().left == 18
    assert back.description.elements == first.elements
    q = mech.integrate(mech.neutral(), np.linspace(-0.3, 0.3, mech.nv))
    np.testing.assert_allclose(back.mass_matrix(q), mech.mass_matrix(q), rtol=0, atol=1e-11)


def test_what_would_be_another_mechanism_is_an_error_that_names_it():
    b = arm()
    b.joint("planar", b.ground, b.body("puck", 1.0, inertia=(1, 1, 1)), "table")
    b.spring("two", b.ground, 5.0, 0.1, name="cord")
    b.joint_force("base", lambda t: np.sin(t), name="shake")
    told = r"'table', which is planar, the force 'shake' \(a law of its own\), the force 'cord' between two points"
    with pytest.raises(ModelError, match=rf"SDF cannot hold joint {told}; \.mks can"):
        write_sdf(b.description())


def test_a_loop_that_is_open_at_zero_is_an_error():
    with lw.Builder("loop") as b:
        one, two = (b.body(n, 1.0, inertia=(1, 1, 1)) for n in ("one", "two"))
        b.joint("revolute", b.ground, one, "a")
        b.joint("revolute", b.triad(one, (1, 0, 0)), two, "b")
        b.joint("spherical", b.triad(b.ground, (1, 1, 0)), b.triad(two, (1, 0, 0)), "c", cut=True)
    with pytest.raises(ModelError, match="the loop closed by joint 'c', which is open where all coordinates are zero"):
        write_sdf(b.description())


def test_names_that_sdf_does_not_take_are_changed_and_told(tmp_path):
    with lw.Builder("n") as b:
        b.joint("revolute", b.ground, b.body("arm::hand", 1.0, inertia=(1, 1, 1)), "arm_hand")
    with pytest.warns(LinkwrightWarning, match="'arm::hand' is 'arm_hand', 'arm_hand' is 'arm_hand_joint'"):
        write_sdf(b.description())
    assert list(again(tmp_path / "n.sdf", b.description()).description.body_names) == ["arm_hand"]
