"""Mechanisms written as MJCF are the same to MuJoCo and to our own reader; what MJCF cannot hold is told."""

import warnings

import numpy as np
import pytest
from mujoco_coordinates import in_mujoco, mass_matrix

import linkwright as lw
from linkwright.errors import LinkwrightWarning, ModelError
from linkwright.formats.mjcf.mjcf_writer import write_mjcf
from linkwright.formats.model_files import read
from linkwright.model.joint_kinds import KINDS

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is the oracle: pip install mujoco")

MORE = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4)]


def quietly(d):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinkwrightWarning)
        return write_mjcf(d)


def in_its_own_words(mech):
    model = mujoco.MjModel.from_xml_string(quietly(mech.description))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return model, mujoco.MjData(model)


def state(mech, seed):
    rng = np.random.default_rng(seed)
    return mech.integrate(mech.neutral(), 0.7 * rng.normal(size=mech.nv)), rng.normal(size=mech.nv)


def assert_alike(mech, seed=0):
    """Mass matrix and bias forces, with springs and dampers; screws by the map that keeps their pitch."""
    model, data = in_its_own_words(mech)
    q, v = state(mech, seed)
    t, rest = in_mujoco(mech, model, data, q, v)
    m = mass_matrix(model, data)
    np.testing.assert_allclose(t.T @ m @ t, mech.mass_matrix(q), rtol=0, atol=1e-9)
    bias = t.T @ (data.qfrc_bias + m @ rest - data.qfrc_passive)
    force = mech.inverse_dynamics(q, v, np.zeros(mech.nv))
    np.testing.assert_allclose(bias, force, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", [0, *MORE])
def test_random_trees_of_all_kinds_have_the_same_dynamics_in_mujoco(seed):
    assert_alike(lw.random_tree(12, seed=seed), seed)


def arm(kind, *, backwards=False, **options):
    """Two bodies, the second on a joint of this kind with triads in odd places."""
    with lw.Builder("arm") as b:
        first = b.body("first", 1.0, (0.1, 0.0, 0.2), (0.2, 0.3, 0.4))
        second = b.body("second", 2.0, (0.0, 0.3, 0.1), (0.5, 0.4, 0.3, 0.01, 0.02, 0.03))
        b.joint("revolute", b.ground, b.triad(first, (0.1, 0, 0), (0, 1, 0.2), (1, 0, 0)), "base")
        ends = [b.triad(first, (0.3, 0.1, 0), (1, 0.5, 0), (0, 0, 1)), b.triad(second, (0, 0.2, 0.1), (0, 1, 1))]
        b.joint(kind, *(reversed(ends) if backwards else ends), "j", pitch=0.2 if kind == "screw" else 0.0, **options)
    return b


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("kind", [k for k in KINDS if k != "free"])
def test_every_joint_kind_is_written_from_either_side(kind, backwards):
    assert_alike(lw.Mechanism(arm(kind, backwards=backwards).description()))


def test_springs_dampers_and_armature_act_alike():
    b = arm("universal", damping=0.7, armature=0.3)
    b.joint_spring("base", 20.0, 0.3, 0.5)
    b.joint_spring("j", 5.0, -0.1, index=1)
    b.spring("second", b.ground, 7.0, 0.4, 0.2, name="cord")
    assert_alike(lw.Mechanism(b.description()))


@pytest.mark.parametrize("seed", [0, 7, *MORE])  # 7: a free joint at the root, away from the origin
def test_our_own_reader_finds_the_same_mechanism(tmp_path, seed):
    mech = lw.random_tree(8, seed=seed)
    path = tmp_path / "m.xml"
    path.write_text(quietly(mech.description))
    again = lw.load(path, fixed="keep")
    assert again.nv == mech.nv
    # As drawn: coordinates of free joints are MuJoCo's own, whose zero is the world's origin.
    drawn = [(m, m.initial_state()[0]) for m in (mech, again)]
    for name in mech.description.body_names:
        ours, theirs = (m.pose(q, name) for m, q in drawn)
        np.testing.assert_allclose(theirs, ours, atol=1e-12)
    energies = [m.potential_energy(q) for m, q in drawn]
    assert energies[0] == pytest.approx(energies[1], abs=1e-10)
    # Invariants of the mass matrix that do not know which coordinates come first; rates agree but for constant turns.
    spectra = [np.linalg.slogdet(m.mass_matrix(q))[1] for m, q in drawn]
    assert spectra[0] == pytest.approx(spectra[1], rel=1e-9)


def four_bar(closing="revolute"):
    with lw.Builder("bar") as b:
        crank, rod, rocker = (b.body(n, 1.0, (0.5, 0, 0), (0.1, 0.1, 0.1)) for n in ("crank", "rod", "rocker"))
        b.joint("revolute", b.ground, crank, "a")
        b.joint("revolute", b.triad(crank, (1, 0, 0)), rod, "b")
        b.joint("revolute", b.triad(b.ground, (3, 0, 0)), rocker, "c")
        b.joint(closing, b.triad(rod, (2.5, 0, 0)), b.triad(rocker, (2, 0, 0)), "d", cut=True)
    return b.description()


@pytest.mark.parametrize("closing", ["revolute", pytest.param("spherical", marks=pytest.mark.slow)])
def test_a_loop_is_held_softly_by_mujoco_and_closes_again_when_read(tmp_path, closing):
    d = four_bar(closing)
    mech = lw.Mechanism(d)
    with pytest.warns(LinkwrightWarning, match="soft equality constraints, which give way under load, hold 'd'"):
        text = write_mjcf(d)
    assert mujoco.MjModel.from_xml_string(text).neq == (2 if closing == "revolute" else 1)
    path = tmp_path / "bar.xml"
    path.write_text(text)
    again = lw.load(path)
    assert again.dof().left == mech.dof().left == 1
    q = again.assemble([1.0, 0.0, 1.0], fixed=["a"])
    ours = mech.assemble([1.0, 0.0, 1.0], fixed=["a"])
    places = {j.name: j.q_slice for j in again.joints}
    ordered = np.concatenate([q[places[j.name]] for j in mech.joints])
    np.testing.assert_allclose(ordered, ours, atol=1e-8)


def test_a_gear_keeps_its_ratio(tmp_path):
    b = arm("revolute")
    b.mimic("j", "base", -3.0, 0.25)
    path = tmp_path / "m.xml"
    path.write_text(quietly(b.description()))
    (gear,) = read(path).mimics
    assert (gear.ratio, gear.offset) == (-3.0, 0.25)


def _law(b):
    b.joint_force("j", lambda q, t: 3 * np.sin(q + t), name="law")


def _wrench(b):
    b.applied_wrench("second", (1.0, 0, 0), name="push")


def _rod(b):
    b.rod("second", b.ground, 1.0, "stay")


@pytest.mark.parametrize(
    ("change", "told"),
    [(_law, r"the force 'law' \(a law of its own\)"), (_wrench, "the force 'push'"), (_rod, "rod 'stay'")],
)
def test_what_would_be_another_mechanism_is_an_error_that_names_it(change, told):
    b = arm("revolute")
    change(b)
    with pytest.raises(ModelError, match=rf"MJCF cannot hold {told}.*; \.mks can"):
        write_mjcf(b.description())


def test_a_loop_that_mujoco_has_no_equality_for_is_an_error():
    with pytest.raises(ModelError, match="the loop closed by joint 'd', which is universal"):
        write_mjcf(four_bar("universal"))


def test_what_is_left_out_is_told():
    b = arm("revolute", lower=-1.0, upper=1.0)
    length = b.parameter("length", 0.3)
    b.driver("joint", "base", lambda t: t, name="turn")
    b.shape("second", "cone", (length, 1.0), name="hat")
    with pytest.warns(LinkwrightWarning) as caught:
        write_mjcf(b.description())
    text = str(caught[0].message)
    for part in (
        "the drivers 'turn'",
        "the parameters 'length'",
        "the shapes 'hat'",
        "limits are stops in MuJoCo: 'j'",
    ):
        assert part in text


def test_names_that_are_no_xml_are_refused():
    with lw.Builder("x") as b:
        b.joint("free", b.ground, b.body("a\x01", 1.0, inertia=(1, 1, 1)))
    with pytest.raises(ModelError, match="letters that XML cannot hold"):
        write_mjcf(b.description())


def test_bodies_deeper_than_xml_readers_go_are_refused():
    with pytest.raises(ModelError, match="more than 490 deep"):
        write_mjcf(lw.chain(600).description)


def test_several_joints_in_one_body_come_back_as_joints_of_one_body(tmp_path):
    joints = '<joint name="x" type="slide" axis="1 2 0"/><joint name="h" axis="0 1 1" pos=".1 .2 0" armature=".1"/>'
    joints += '<joint name="ball" type="ball" pos=".3 0 .1"/>'
    geom = '<geom type="box" size=".1 .2 .3" pos=".1 0 .2" euler="10 20 30"/>'
    inner = f'<body name="b" pos="1 0 0" euler="0 20 0"><joint name="y" axis="1 0 0"/><joint name="z"/>{geom}</body>'
    body = f'<body name="a" pos="1 2 3" euler="20 0 10">{joints}{geom}{inner}</body>'
    path = tmp_path / "m.xml"
    path.write_text(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    with pytest.warns(LinkwrightWarning, match=r"'a \(x\)', 'a \(h\)', 'b \(y\)' without mass are no bodies there"):
        text = write_mjcf(read(path))
    models = mujoco.MjModel.from_xml_path(str(path)), mujoco.MjModel.from_xml_string(text)
    rng = np.random.default_rng(0)
    q, v = models[0].qpos0.copy(), rng.normal(size=models[0].nv)
    mujoco.mj_integratePos(models[0], q, rng.uniform(-1.0, 1.0, models[0].nv), 1.0)
    found = []
    for model in models:
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(model, data)
        found.append(np.concatenate([mass_matrix(model, data).ravel(), data.qacc, data.xpos[-1]]))
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("kinds", [("revolute", "prismatic"), ("universal", "revolute"), ("planar", "cylindrical")])
@pytest.mark.parametrize("backwards", [False, True])
def test_links_without_mass_become_several_joints_of_one_body(tmp_path, kinds, backwards):
    with lw.Builder("arm") as b:
        first = b.body("first", 1.0, (0.1, 0.0, 0.2), (0.2, 0.3, 0.4))
        between = b.body("between", 0.0, (0, 0, 0), (0, 0, 0))
        last = b.body("last", 2.0, (0.0, 0.3, 0.1), (0.5, 0.4, 0.3, 0.01, 0.02, 0.03))
        b.joint("revolute", b.ground, b.triad(first, (0.1, 0, 0), (0, 1, 0.2), (1, 0, 0)), "base")
        ends = [(first, (0.3, 0.1, 0), (1, 0.5, 0)), (between, (0, 0.2, 0.1), (0, 1, 1))]
        ends += [(between, (0.1, 0, 0.4), (1, 2, 0)), (last, (0.2, 0, 0), (0, 1, -1))]
        for k, kind in enumerate(kinds):
            near, far = (b.triad(*end) for end in ends[2 * k : 2 * k + 2])
            b.joint(kind, *((far, near) if backwards else (near, far)), f"j{k}")
    mech = b.build()
    with pytest.warns(LinkwrightWarning, match="'between' without mass"):
        text = write_mjcf(mech.description)
    assert text.count("<body") == 2
    assert_alike(mech)
    path = tmp_path / "arm.xml"
    path.write_text(text)
    assert lw.load(path).nv == mech.nv
