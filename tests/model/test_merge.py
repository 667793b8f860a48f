"""Merging and locking change how a mechanism is written, never where its bodies are or what they weigh."""

import numpy as np
import pytest

from linkwright.analysis.analyse import analyse
from linkwright.errors import LinkwrightWarning, ModelError, NameNotFound, ShapeError
from linkwright.formats.urdf import read_urdf
from linkwright.mechanism import Mechanism
from linkwright.model.builder import Builder
from linkwright.model.elements import PointForce
from linkwright.model.expression import TIME
from linkwright.model.generators import random_tree
from linkwright.model.joint_kinds import KINDS
from linkwright.model.merge import lock, merge_fixed
from linkwright.model.model_checks import check_numbers
from linkwright.model.parameter_cases import with_parameters
from linkwright.model.placements import full_inertia
from linkwright.model.topology import reverse, span

pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle: pip install pin")

ROBOTS = pytest.importorskip("robots").folder()


def homogeneous(r, p):
    x = np.eye(4)
    x[:3, :3], x[:3, 3] = r, p
    return x


def places(d, q):
    """The pose of every body and frame, by name, for coordinates by joint name."""
    at = {-1: np.eye(4)}
    tree = span(d)
    for body, j, back in zip(tree.body.tolist(), tree.joint.tolist(), tree.reverse.tolist(), strict=True):
        kind = d.kind_of(j)
        terms = kind.terms(q.get(d.joint_names[j], kind.neutral()), d.pitch[j])
        motion = homogeneous(kind.rotation(terms).matrix(), kind.shift(terms, d.pitch[j]))
        across = homogeneous(d.ri[j], d.pi[j]) @ motion @ np.linalg.inv(homogeneous(d.rj[j], d.pj[j]))
        parent = int(d.child[j] if back else d.parent[j])
        at[body] = at[parent] @ (np.linalg.inv(across) if back else across)
    found = {d.body_names[b]: at[b] for b in range(d.nb)}
    for k, name in enumerate(d.frames.names):
        found[name] = at[int(d.frames.body[k])] @ homogeneous(d.frames.r[k], d.frames.p[k])
    return found


def whole(d, q):
    """Mass, first moment and second moment of everything, ground's part too, about ground's origin."""
    at = places(d, q)
    parts = [(at[d.body_names[b]], d.mass[b], d.com[b], d.inertia[b]) for b in range(d.nb)]
    if d.ground_inertia is not None:
        parts.append((np.eye(4), *d.ground_inertia))
    mass, moment, inertia = 0.0, np.zeros(3), np.zeros((3, 3))
    for x, m, com, packed in parts:
        c = x[:3, :3] @ com + x[:3, 3]
        mass, moment = mass + m, moment + m * c
        inertia = inertia + x[:3, :3] @ full_inertia(packed) @ x[:3, :3].T + m * (c @ c * np.eye(3) - np.outer(c, c))
    return mass, moment, inertia


def random_coordinates(d, seed=0):
    rng, q = np.random.default_rng(seed), {}
    for j, name in enumerate(d.joint_names):
        kind = d.kind_of(j)
        q[name] = kind.integrate(kind.neutral(), rng.uniform(-1, 1, kind.nv))
    return q


def assert_same(before, after, q):
    ours, theirs = places(after, q), places(before, q)
    assert ours.keys() == theirs.keys()
    for name in theirs:
        np.testing.assert_allclose(ours[name], theirs[name], atol=1e-12)
    for a, b in zip(whole(after, q), whole(before, q), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11)


@pytest.mark.parametrize("seed", range(6))
def test_merging_moves_no_body_and_loses_no_mass(seed):
    d = random_tree(20, seed, joints=["fixed", "fixed", *KINDS])
    merged = merge_fixed(d)
    assert 0 < merged.nb < d.nb
    assert "fixed" not in {merged.kind_of(j).name for j in range(merged.nj)}
    check_numbers(merged)
    assert_same(d, merged, random_coordinates(d, seed))


@pytest.mark.parametrize("kind", KINDS)
def test_a_locked_joint_of_any_kind_keeps_its_bodies_where_the_coordinates_put_them(kind):
    d = random_tree(6, 3, joints=[kind, "revolute"])
    q = random_coordinates(d)
    names = [d.joint_names[j] for j in range(d.nj) if d.kind_of(j).name == kind]
    locked = lock(d, {name: q[name] for name in names})
    assert set(locked.joint_names) == set(d.joint_names) - set(names)
    assert_same(d, locked, q)


def test_locking_a_joint_whose_child_is_nearer_to_ground_is_the_same():
    with Builder() as b:
        for k in range(3):
            b.body(f"b{k}", 1.0 + k, (0.1, 0.2, 0.3), (1, 1, 1))
        b.joint("revolute", b.triad("b0", (0, 0, 1), h=(1, 2, 3)), "ground", "backwards")
        b.joint("screw", b.triad("b1", (0, 1, 0)), b.triad("b0", h=(1, 0, 0), f=(0, 1, 0)), "screw", pitch=0.1)
        b.joint("prismatic", "b1", "b2", "slide")
    d = b.description()
    q = {"backwards": np.array([0.3]), "screw": np.array([-0.7]), "slide": np.array([0.2])}
    for name in q:
        assert_same(d, lock(d, {name: q[name]}), q)


@pytest.mark.parametrize(
    ("file", "joints"),
    [
        ("panda_description/urdf/panda.urdf", {"panda_joint3": 0.4, "panda_joint7": -1.0}),
        ("talos_data/robots/talos_reduced.urdf", {"arm_left_4_joint": -0.5, "torso_1_joint": 0.2}),
    ],
)
def test_locking_gives_the_reduced_model_of_pinocchio(file, joints):
    d = lock(read_urdf(ROBOTS / file, mimic="independent"), joints)
    model = pin.buildModelFromUrdf(str(ROBOTS / file))
    q = pin.neutral(model)
    for name, value in joints.items():
        q[model.joints[model.getJointId(name)].idx_q] = value
    reduced = pin.buildReducedModel(model, [model.getJointId(name) for name in joints], q)
    assert set(d.joint_names) == set(reduced.names[1:])
    for j, name in enumerate(d.joint_names):
        k = reduced.getJointId(name)
        np.testing.assert_allclose(d.ri[j] @ d.rj[j].T, reduced.jointPlacements[k].rotation, atol=1e-12)
        np.testing.assert_allclose(d.pi[j], reduced.jointPlacements[k].translation, atol=1e-12)
        body, inertia = int(d.child[j]), reduced.inertias[k]
        assert d.mass[body] == pytest.approx(inertia.mass)
        np.testing.assert_allclose(d.com[body], inertia.lever, atol=1e-12)
        np.testing.assert_allclose(full_inertia(d.inertia[body]), inertia.inertia, atol=1e-12)


def four(*, cut=False):
    """Four bodies in a row on revolute joints, for couplings and closures."""
    b = Builder()
    for k in range(1, 5):
        b.body(f"b{k}", 1.0, (0.0, 0.0, 0.1), (0.1, 0.1, 0.1))
        before = "ground" if k == 1 else f"b{k - 1}"
        b.joint("revolute", before, f"b{k}", f"j{k}", at=(0, 0, 0.2), axis=(0, 1, 0), cut=cut and k == 4)
    return b


def test_followers_are_locked_where_the_leader_takes_them():
    b = four()
    b.mimic("j3", "j1", ratio=-2.0, offset=0.1)
    d = b.description()
    locked = lock(d, {"j1": 0.5})
    assert list(locked.joint_names) == ["j2", "j4"]
    assert locked.mimics == ()
    assert_same(d, locked, {"j1": np.array([0.5]), "j3": np.array([-0.9])})


def test_couplings_cuts_and_passive_joints_keep_their_joints():
    b = four(cut=True)
    b.joint("fixed", "b3", "b4", "weld")
    b.joint("free", "ground", b.body("floating", 1.0), "free")
    b.mimic("j3", "j2", 2.0)
    d = b.description()
    locked = lock(d, {"j1": 0.0})
    assert [locked.joint_names[j] for j in sorted(locked.passive)] == ["free"]
    assert [locked.joint_names[j] for j in sorted(locked.cuts)] == ["j4"]
    (m,) = locked.mimics
    assert (locked.joint_names[m.follower], locked.joint_names[m.leader], m.ratio) == ("j3", "j2", 2.0)


def test_a_follower_cannot_be_locked_itself():
    b = four()
    b.mimic("j3", "j1")
    with pytest.raises(ModelError, match="joint 'j3' follows 'j1'; lock 'j1' instead"):
        lock(b.description(), {"j3": 0.0})


def test_an_unknown_joint_is_told_with_the_near_ones():
    with pytest.raises(NameNotFound, match="no joint named 'j11'; did you mean 'j1'"):
        lock(four().description(), {"j11": 0.0})


def test_a_joint_is_locked_at_as_many_numbers_as_it_has():
    with pytest.raises(ShapeError, match="'j1' is revolute and has 1 coordinates; it cannot be locked at 2"):
        lock(four().description(), {"j1": [0.0, 1.0]})


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_joint_is_locked_at_finite_numbers(value):
    with pytest.raises(ModelError, match="give finite numbers"):
        lock(four().description(), {"j1": value})


def test_euler_parameters_to_lock_at_are_made_unit_and_zero_is_refused():
    d = random_tree(1, 0, joints=["spherical"])
    assert_same(d, lock(d, {"joint1": [1.1, 0, 0, 0]}), {"joint1": np.array([1.0, 0, 0, 0])})
    with pytest.raises(ModelError, match="Euler parameters of joint 'joint1' have length 0"):
        lock(d, {"joint1": [0, 0, 0, 0]})


def test_locking_nothing_changes_nothing():
    d = four().description()
    assert lock(d, {}) is d
    assert merge_fixed(d) is d


def test_forces_on_a_locked_joint_go_with_it_and_a_driver_is_told():
    b = four()
    b.joint_spring("j1", 3.0)
    b.joint_spring("j2", 3.0, name="stays")
    b.driver("joint", "j1", TIME, name="motor")
    with pytest.warns(LinkwrightWarning, match="driver 'motor' went away with the locked joint 'j1'"):
        d = lock(b.description(), {"j1": 0.0})
    assert [e.name for e in d.elements] == ["stays"]
    assert d.drivers == ()


def tied(length=0.4):
    """Two bars on ground: a rod from the first's tip to ground, one between both, and drivers of the first."""
    b = four()
    b.triad("b1", (0.3, 0, 0), name="tip")
    b.triad("ground", (0, 0.4, 0.2), name="hook")
    b.rod("b1", "hook", length, name="stay")
    b.rod("b1", "b3", 0.4, name="other")
    b.driver("absolute", "tip", TIME, coordinate="x", name="push")
    b.driver("distance", "tip", TIME, other="hook", name="pull")
    b.driver("angle", "tip", TIME, other="b4", name="turn")
    return b.description()


def test_ties_and_drivers_of_a_body_that_becomes_part_of_ground_are_left_out_and_told():
    with pytest.warns(LinkwrightWarning) as told:
        d = lock(tied(), {"j1": 0.0})
    assert [x.name for x in d.point_constraints] == ["other"]
    assert [x.name for x in d.drivers] == ["turn"]
    text = [str(w.message) for w in told]
    assert text == [
        "rod 'stay' is left out: 'b1' and 'hook' no longer move against each other",
        "driver 'push' is left out: 'tip' no longer moves",
        "driver 'pull' is left out: 'tip' and 'hook' no longer move against each other",
    ]


def test_a_rod_within_bodies_made_one_is_left_out_where_it_holds_and_else_refused():
    with pytest.warns(LinkwrightWarning, match="rod 'other' is left out: 'b1' and 'b3' no longer move"):
        d = lock(tied(), {"j2": 0.0, "j3": 0.0})
    assert [x.name for x in d.point_constraints] == ["stay"]
    assert len(d.drivers) == 3
    with pytest.raises(ModelError, match=r"rod 'other' is between 'b1' and 'b3'.* has a gap of 0\.0\d+ m"):
        lock(tied(), {"j2": 1.0, "j3": 0.8})


def test_a_mechanism_locked_to_ground_in_part_is_still_analysed():
    b = Builder()
    for name, x in (("left", 0.0), ("right", 1.0)):
        b.joint("revolute", b.triad("ground", (x, 0, 0)), b.body(name), name)
    b.driver("absolute", b.triad("left", (1, 0, 0)), TIME, coordinate="x", name="push")
    b.driver("joint", "right", TIME, name="motor")
    with pytest.warns(LinkwrightWarning, match="push"):
        locked = lock(b.description(), {"left": 0.0})
    sol = analyse(Mechanism(locked), times=[0.0, 1.0])
    np.testing.assert_allclose(sol.joint("right")[:, 0], [0.0, 1.0], atol=1e-12)


def test_forces_between_frames_keep_their_names_on_merged_bodies():
    b = four()
    b.spring(b.triad("b1", (0, 0.1, 0), name="here"), "b3", 100.0, 0.1)
    d = lock(b.description(), {"j1": 0.3, "j3": 0.1})
    (spring,) = d.elements
    assert isinstance(spring, PointForce)
    assert {spring.first, spring.second} <= set(d.frames.names) | set(d.body_names)
    assert_same(b.description(), d, {"j1": np.array([0.3]), "j3": np.array([0.1])})


def test_a_loop_of_fixed_joints_is_refused():
    b = four()
    b.joint("fixed", "b1", "b2", "weld")
    b.joint("fixed", "b2", "b3", "second")
    b.joint("fixed", "b1", "b3", "third")
    with pytest.raises(ModelError, match=r"'(weld|second|third)' closes a loop of fixed joints"):
        merge_fixed(b.description())


def test_a_joint_between_bodies_that_are_held_together_is_refused():
    b = four()
    b.joint("fixed", "b1", "b2", "weld")
    with pytest.raises(ModelError, match="joint 'j2' joins two bodies that fixed joints already hold together"):
        merge_fixed(b.description())


def test_a_weld_that_closes_a_loop_is_merged_and_another_joint_closes_it():
    b = four()
    b.joint("fixed", "b4", "ground", "weld")
    d = merge_fixed(b.description())
    assert list(d.body_names) == ["b1", "b2", "b3"]
    assert len(span(d).loops) == 1
    assert d.frames.body[d.frames.names.position("frame", "b4")] == -1


def test_a_whole_is_drawn_where_any_part_of_it_is_placed():
    b = Builder()
    length = b.parameter("length", 0.5)
    b.joint("free", "ground", b.body("arm", 1.0), "free")
    b.joint("fixed", b.triad("arm", (length, 0, 0), h=(1, 0, 0), f=(0, 1, 0)), b.body("hand", 1.0), "wrist")
    b.joint("fixed", b.triad("hand", (0, 0, 0.2)), b.body("tool", 1.0), "grip")
    b.place("tool", (1.0, 2.0, 3.0), h=(0, 1, 0), f=(1, 0, 0))
    d = merge_fixed(b.description())
    assert list(d.body_names) == ["arm"]
    for now, size in ((d, 0.5), (with_parameters(d, {"length": 0.9}), 0.9)):
        assert now.start.placed.tolist() == [True]
        k = now.frames.names.position("frame", "tool")
        arm = homogeneous(now.start.r[0], now.start.p[0])
        tool = arm @ homogeneous(now.frames.r[k], now.frames.p[k])
        np.testing.assert_allclose(tool[:3, 3], (1.0, 2.0, 3.0), atol=1e-12)
        np.testing.assert_allclose(tool[:3, 2], (0, 1, 0), atol=1e-12)
        np.testing.assert_allclose(arm[:3, 3], (1.0, 2.0 - 0.2 - size, 3.0), atol=1e-12)


# -- parameters -------------------------------------------------------------------------------------------
def bound():
    """A chain with a weld in the middle, all of whose numbers depend on two parameters."""
    b = Builder()
    size, mass = b.parameter("size", 0.3), b.parameter("mass", 2.0)
    b.body("arm", mass, (size / 2, 0, 0), (0.1 * mass, 0.1 * mass, 0.1 * mass))
    b.body("tool", mass * 0.5, (0, size / 3, 0), (0.02, 0.03, 0.02, 0.001, 0, 0))
    b.body("tip", 0.1, (0, 0, size), (0.01, 0.01, 0.01))
    b.joint("revolute", b.triad("ground", (0, 0, 0.5)), "arm", "shoulder")
    b.joint("fixed", b.triad("arm", (size, 0, 0), h=(1, 0, 1), f=(0, 1, 0)), b.triad("tool", (0, 0, 0.1)), "weld")
    b.joint("screw", b.triad("tool", (0, size, 0), name="nut"), "tip", "screw", pitch=size / 10)
    return b.description()


def test_parameters_survive_a_merge():
    d = bound()
    merged, values = merge_fixed(d), {"size": 0.7, "mass": 5.0}
    assert merged.nb == 2
    q = {"shoulder": np.array([0.4]), "screw": np.array([2.0])}
    assert_same(d, merged, q)
    assert_same(with_parameters(d, values), with_parameters(merged, values), q)


def test_parameters_survive_a_lock():
    d, values = bound(), {"size": 0.7, "mass": 5.0}
    q = {"shoulder": np.array([0.4]), "screw": np.array([2.0])}
    locked = lock(d, {"screw": 2.0})
    assert_same(with_parameters(d, values), with_parameters(locked, values), q)


def test_a_parameter_of_a_mass_that_becomes_part_of_ground_is_named():
    with pytest.raises(ModelError, match="parameter 'mass' sets the mass of 'arm', which becomes part of ground"):
        lock(bound(), {"shoulder": 0.0})


def test_a_parameter_of_a_locked_joints_armature_is_named():
    b = Builder()
    b.body("arm", 1.0)
    b.joint("revolute", "ground", "arm", "j", armature=b.parameter("rotor", 0.1))
    with pytest.raises(ModelError, match="parameter 'rotor' sets the armature of joint 'j'"):
        lock(b.description(), {"j": 0.0})


@pytest.mark.parametrize("kind", ["screw", "revolute"])
def test_a_locked_joint_keeps_a_bound_pitch_where_its_kind_has_one(kind):
    b = Builder()
    pitch = b.parameter("pitch", 0.1)
    b.joint("revolute", "ground", b.body("one", 1.0), "first")
    b.joint(kind, "one", b.body("two", 2.0, (0.1, 0, 0)), "second", pitch=pitch)
    d = b.description()
    locked = lock(d, {"second": 0.5})
    for value in (0.1, 0.3):
        q = {"first": np.array([0.3]), "second": np.array([0.5])}
        assert_same(with_parameters(d, {"pitch": value}), with_parameters(locked, {"pitch": value}), q)
    assert bool(locked.bindings) == (kind == "screw")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_checked_coordinates_have_unit_euler_parameters_and_are_else_as_given(kind):
    rng = np.random.default_rng(0)
    exact = kind.integrate(kind.neutral(), rng.uniform(-1, 1, kind.nv))
    for seen in (kind, reverse(kind)):
        np.testing.assert_allclose(seen.checked(exact, "j"), exact, rtol=1e-15)
        if not kind.paired:
            longer = exact.copy()
            longer[-4:] *= 1.5
            np.testing.assert_allclose(seen.checked(longer, "j"), exact, rtol=1e-15)
            with pytest.raises(ModelError, match="Euler parameters of joint 'j' have length 0"):
                seen.checked(0.0 * exact, "j")
