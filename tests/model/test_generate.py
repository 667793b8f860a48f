"""Generated mechanisms: the chain of the design, complete trees and random trees."""

import tracemalloc

import numpy as np
import pytest

from linkwright.errors import ModelError, NameNotFound
from linkwright.model import topology
from linkwright.model.generators import chain, random_tree, tree
from linkwright.model.joint_kinds import KIND_LIST, KINDS
from linkwright.model.model_checks import check_numbers
from linkwright.model.placements import axis_frame, full_inertia, rpy_matrix
from linkwright.model.topology import span

pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle: pip install pin")


def test_the_chain_is_the_one_that_the_peers_are_timed_on():
    d, model = chain(6), pin.Model()
    before = 0
    for i in range(6):
        place = pin.SE3(np.eye(3), np.array([0, 0, 0.1 if i else 0.0]))
        before = model.addJoint(before, [pin.JointModelRX(), pin.JointModelRY()][i % 2], place, f"joint{i + 1}")
        box = pin.Inertia.FromBox(1.0, 0.05, 0.05, 0.1)
        model.appendBodyToJoint(before, box, pin.SE3(np.eye(3), np.array([0, 0, 0.05])))
    data = model.createData()
    pin.computeJointJacobians(model, data, np.zeros(6))
    for j in range(6):
        np.testing.assert_array_equal(d.ri[j] @ d.rj[j].T, np.eye(3))
        np.testing.assert_allclose(d.pi[j], model.jointPlacements[j + 1].translation)
        column = pin.getJointJacobian(model, data, j + 1, pin.LOCAL)[3:, j]
        np.testing.assert_array_equal(d.rj[j][:, 2], column)
        inertia = model.inertias[j + 1]
        assert d.mass[j] == inertia.mass
        np.testing.assert_allclose(d.com[j], inertia.lever)
        np.testing.assert_allclose(full_inertia(d.inertia[j]), inertia.inertia, atol=1e-18)
    assert list(d.parent) == [-1, 0, 1, 2, 3, 4]
    assert list(d.joint_names) == list(model.names[1:])


def test_the_chains_axes_are_exact():
    assert set(np.unique(chain(4).ri)) == {0.0, 1.0}


@pytest.mark.parametrize("kind", KINDS)
def test_links_of_any_kind_stand_straight_at_neutral(kind):
    d = chain(3, kind)
    check_numbers(d)
    for j in range(3):
        at_rest = KIND_LIST[d.kind[j]]
        turn = at_rest.rotation(at_rest.terms(at_rest.neutral(), d.pitch[j])).matrix()
        np.testing.assert_array_equal(d.ri[j] @ turn @ d.rj[j].T, np.eye(3))
        np.testing.assert_array_equal(d.ri[j][:, 2], np.eye(3)[j % 2])


def test_a_long_chain_costs_little_memory():
    n = 100_000
    tracemalloc.start()
    d = chain(n)
    span(d)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # One array of rotations, one of places, parents and children: under 40 numbers a link even at the peak.
    assert peak < 40 * 8 * n
    assert d.body_names[n - 1] == "link100000"
    assert d.joint_names.find("joint77777") == 77_776


def test_a_complete_tree_has_its_children_on_the_ends_of_its_links():
    d = tree(7)
    assert list(d.parent) == [-1, 0, 0, 1, 1, 2, 2]
    assert [d.rj[j][:, 2].argmax() for j in range(7)] == [0, 1, 1, 0, 0, 0, 0]
    np.testing.assert_array_equal(d.pi[:, 2], [0.0] + [0.1] * 6)
    assert list(tree(5, branching=3).parent) == [-1, 0, 0, 0, 1]
    check_numbers(d)


def test_a_tree_with_one_branch_is_the_chain():
    a, b = tree(6, branching=1), chain(6)
    np.testing.assert_array_equal(a.parent, b.parent)
    np.testing.assert_array_equal(a.ri, b.ri)


def test_a_random_tree_is_the_same_for_the_same_seed():
    assert random_tree(20, 7).digest == random_tree(20, 7).digest
    assert random_tree(20, 7).digest != random_tree(20, 8).digest


def test_random_trees_have_every_kind_and_only_the_wanted_ones():
    assert {KIND_LIST[k].name for k in random_tree(200, 0).kind} == set(KINDS)
    d = random_tree(50, 0, joints=["screw", "planar"])
    assert {KIND_LIST[k].name for k in d.kind} == {"screw", "planar"}
    assert np.all((d.pitch != 0) == [KIND_LIST[k].name == "screw" for k in d.kind])


def test_a_floating_random_tree_has_one_free_joint_at_its_root():
    d = random_tree(10, 1, joints=["revolute"], floating=True)
    assert [KIND_LIST[k].name for k in d.kind] == ["free"] + ["revolute"] * 9
    assert np.count_nonzero(d.parent == -1) == 1


def test_branching_one_is_a_chain_and_more_is_bushier():
    deepest = [int(span(random_tree(200, 0, branching=b)).depth.max()) for b in (1, 2, 10)]
    assert deepest[0] == 199
    assert deepest[0] > deepest[1] > deepest[2]


@pytest.mark.parametrize("n", [1, 2, 50])
def test_random_trees_are_trees_on_ground(n):
    for seed in range(5):
        d = random_tree(n, seed)
        assert len(span(d)) == n
        assert span(d).loops == ()


@pytest.mark.parametrize("make", [chain, tree, lambda n: random_tree(n, 0)])
@pytest.mark.parametrize("n", [0, -3])
def test_a_mechanism_has_at_least_one_link(make, n):
    with pytest.raises(ModelError, match=f"the number of links n must be a whole number from 1 on, not {n}"):
        make(n)


def test_wrong_kinds_and_branchings_are_told():
    with pytest.raises(NameNotFound, match="no joint kind named 'revolut'; did you mean 'revolute'"):
        chain(3, "revolut")
    with pytest.raises(NameNotFound, match="did you mean 'planar'"):
        random_tree(3, 0, joints=["plannar"])
    with pytest.raises(ModelError, match="leaves no joint kind"):
        random_tree(3, 0, joints=[])
    for make in (lambda: tree(3, branching=0), lambda: random_tree(3, 0, branching=0.5)):
        with pytest.raises(ModelError, match=r"branching must be a .*number from 1 on, not"):
            make()


# -- axes turned to z -----------------------------------------------------------------------------------------
AXES = [s * np.eye(3)[k] for k in range(3) for s in (1, -1)]


@pytest.mark.parametrize("axis", AXES)
def test_coordinate_axes_are_turned_by_signed_permutations(axis):
    r = axis_frame(5.0 * axis)
    assert set(np.unique(np.abs(r))) == {0.0, 1.0}
    np.testing.assert_array_equal(r[:, 2], axis)
    np.testing.assert_array_equal(r.T @ r, np.eye(3))
    assert np.linalg.det(r) == 1.0


def test_any_axis_becomes_the_third_column():
    rng = np.random.default_rng(0)
    near = [np.eye(3)[k] + 1e-8 * rng.standard_normal(3) for k in range(3)]
    tiny, huge = np.array([1.0, 2.0, 0.0]) * 1e-200, np.array([1.0, 2.0, -3.0]) * 1e200
    for axis in [*rng.standard_normal((50, 3)), *near, tiny, huge]:
        r = axis_frame(axis)
        unit = axis / np.abs(axis).max()
        np.testing.assert_allclose(r[:, 2], unit / np.linalg.norm(unit), atol=1e-14)
        np.testing.assert_allclose(r.T @ r, np.eye(3), atol=1e-14)
        assert np.linalg.det(r) > 0


def test_an_axis_in_a_coordinate_plane_keeps_its_normal():
    assert axis_frame([0.0, 3.0, 4.0])[:, 0].tolist() == [1.0, 0.0, 0.0]


def test_roll_pitch_yaw_is_that_of_pinocchio():
    rng = np.random.default_rng(0)
    for rpy in rng.uniform(-4, 4, (20, 3)):
        np.testing.assert_allclose(rpy_matrix(rpy), pin.rpy.rpyToMatrix(rpy), atol=1e-15)


@pytest.mark.parametrize("branching", [1, 1.5, 3, 200])
def test_many_bodies_are_put_in_the_order_in_which_few_are(branching, monkeypatch):
    description = random_tree(400, 1, branching=branching)
    slow = topology.span(description)
    monkeypatch.setattr(topology, "_MANY", 1)
    quick = topology.span(description)
    for name in ("body", "joint", "reverse", "parent", "loops"):
        np.testing.assert_array_equal(getattr(quick, name), getattr(slow, name))
