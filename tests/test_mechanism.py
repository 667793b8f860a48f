"""The mechanism as its users call it: views, locks, parameters, forces, wrong input."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from closed_mechanisms import geared_wheels
from linkwright.errors import DtypeError, ModelError, NameNotFound, ShapeError
from robots import find, relative


def double_pendulum() -> lw.Mechanism:
    with lw.Builder("double pendulum") as b:
        length, mass = b.parameter("length", 0.7), b.parameter("mass", 1.3)
        upper = b.body("upper", mass=mass, com=(0, 0, -length / 2), inertia=(0.01, 0.01, 0.001))
        lower = b.body("lower", mass=0.8, com=(0, 0, -0.2), inertia=(0.004, 0.004, 0.001))
        b.joint("revolute", b.ground, upper, name="shoulder", axis=(0, 1, 0))
        b.joint("revolute", upper, lower, name="elbow", axis=(0, 1, 0), at=(0, 0, -length))
    return b.build()


@pytest.mark.filterwarnings("ignore::linkwright.errors.LinkwrightWarning")
def test_joints_and_bodies_tell_what_they_are() -> None:
    mech = lw.load(find("panda.urdf"), mimic="follow")
    assert (mech.nq, mech.nv, mech.nb) == (8, 8, 9)
    joint = mech.joints["panda_joint4"]
    assert (joint.kind, joint.parent, joint.child) == ("revolute", "panda_link3", "panda_link4")
    assert joint.q_slice == slice(3, 4)
    assert mech.joints["panda_finger_joint2"].mimics == "panda_finger_joint1"
    assert [body.joint for body in mech.bodies] == [joint.name for joint in mech.joints]
    assert mech.dof().degrees_of_freedom == 8
    assert "panda_hand" in mech.frames


def test_a_follower_shares_its_leader_s_coordinate_unless_that_one_closes_a_loop() -> None:
    shared, tied = geared_wheels().joints["shaft two"], geared_wheels(loop=True).joints["shaft two"]
    assert (shared.mimics, shared.shares, shared.q_slice) == ("shaft one", True, slice(0, 1))
    assert (tied.mimics, tied.shares, tied.q_slice) == ("again", False, slice(1, 2))


@pytest.mark.parametrize("passive", ["one", "two"])
def test_a_shared_coordinate_is_actuated_by_either_joint(passive: str) -> None:
    assert geared_wheels(passive=passive).actuated.tolist() == [True]
    assert geared_wheels(passive=passive, loop=True).actuated.tolist() == [passive != "one", passive != "two"]


def test_coordinates_are_numbered_breadth_first() -> None:
    mech = lw.tree(7, 2)
    assert [joint.q_slice.start for joint in mech.joints] == list(range(7))
    depths = [mech.joints[k].parent for k in range(3)]
    assert depths[0] == "ground"
    assert depths[1] == depths[2] == mech.bodies[0].name


@pytest.mark.filterwarnings("ignore::linkwright.errors.LinkwrightWarning")
def test_a_locked_robot_moves_as_one_whose_joints_are_held() -> None:
    mech = lw.load(find("panda.urdf"), mimic="independent")
    locked = mech.lock({"panda_finger_joint1": 0.01, "panda_finger_joint2": 0.02})
    rng = np.random.default_rng(0)
    q, v, a = rng.standard_normal((3, 7))
    held = (np.append(q, [0.01, 0.02]), np.append(v, [0, 0]), np.append(a, [0, 0]))
    assert relative(locked.inverse_dynamics(q, v, a), mech.inverse_dynamics(*held)[:7]) < 1e-12


def test_a_free_parameter_is_an_input_and_with_parameters_gives_the_same() -> None:
    mech = double_pendulum()
    program = mech.program("forward_dynamics", free=("length", "mass"))
    rng = np.random.default_rng(1)
    q, v, tau = rng.standard_normal((3, 5, 2))
    for length, mass in ((0.7, 1.3), (0.4, 2.0)):
        fixed = mech.with_parameters(length=length, mass=mass).forward_dynamics(q, v, tau)
        assert relative(program(q, v, tau, np.array([length, mass])), fixed) < 1e-12


def test_the_derivative_by_a_free_parameter_is_the_slope_of_the_answer() -> None:
    mech = double_pendulum()
    jacobian = mech.program("forward_dynamics", free=("length",)).jacobian(wrt=3)
    rng = np.random.default_rng(2)
    q, v, tau = rng.standard_normal((3, 2))
    step = 1e-6
    high, low = (mech.with_parameters(length=0.7 + s).forward_dynamics(q, v, tau) for s in (step, -step))
    assert relative(jacobian(q, v, tau, np.array([0.7]))[:, 0], (high - low) / (2 * step)) < 1e-8


def test_springs_dampers_and_forces_in_time_act() -> None:
    with lw.Builder("oscillator") as b:
        block = b.body("block", mass=2.0)
        slide = b.joint("prismatic", b.ground, block, name="slide", axis=(1, 0, 0))
        b.joint_spring(slide, 50.0)
        b.joint_damper(slide, 3.0)
        b.joint_force(slide, 5.0 * lw.TIME)
    mech = b.build()
    q, v = np.array([0.1]), np.array([-0.4])
    expected = (-50.0 * 0.1 + 3.0 * 0.4 + 5.0 * 2.0 + 1.0) / 2.0
    assert mech.forward_dynamics(q, v, np.ones(1), t=2.0) == pytest.approx(expected)
    assert mech.inverse_dynamics(q, v, np.array([expected]), t=2.0) == pytest.approx(1.0)


def test_a_spring_between_two_points_pulls_along_its_line() -> None:
    with lw.Builder("hanging") as b:
        ball = b.body("ball", mass=1.5, inertia=(0.1, 0.1, 0.1))
        b.joint("free", b.ground, ball, name="flight")
        hook = b.triad(b.ground, (0.0, 0.0, 2.0), name="hook")
        eye = b.triad(ball, (0.0, 0.0, 0.0), name="eye")
        b.spring(hook, eye, stiffness=100.0, length=1.0)
    mech = b.build()
    q = mech.neutral()  # two metres below the hook: stretched by one
    a = mech.forward_dynamics(q, np.zeros(6), np.zeros(6))
    assert a == pytest.approx([0, 0, 100.0 / 1.5 - 9.81, 0, 0, 0], abs=1e-12)


def test_derivatives_include_the_forces_of_springs() -> None:
    with lw.Builder("oscillator") as b:
        block = b.body("block", mass=2.0)
        slide = b.joint("prismatic", b.ground, block, name="slide", axis=(1, 0, 0))
        b.joint_spring(slide, 50.0)
        b.joint_damper(slide, 3.0)
    da_dq, da_dv, da_dtau = b.build().forward_dynamics_derivatives(np.array([0.1]), np.array([0.2]), np.zeros(1))
    assert (da_dq[0, 0], da_dv[0, 0], da_dtau[0, 0]) == pytest.approx((-25.0, -1.5, 0.5))


def test_armature_adds_to_the_mass_matrix_and_slows_the_joint() -> None:
    with lw.Builder("geared") as b:
        rotor = b.body("rotor", mass=1.0, inertia=(0.1, 0.1, 0.2))
        b.joint("revolute", b.ground, rotor, name="axle", armature=0.3)
    mech = b.build()
    assert mech.mass_matrix(np.zeros(1)) == pytest.approx(0.5)
    assert mech.forward_dynamics(np.zeros(1), np.zeros(1), np.ones(1)) == pytest.approx(2.0)


def test_what_is_for_trees_refuses_a_closed_loop_by_name() -> None:
    with lw.Builder("loop") as b:
        bars = [b.body(f"bar{k}", mass=1.0, inertia=(0.1, 0.1, 0.1)) for k in range(3)]
        b.joint("revolute", b.ground, bars[0], name="a", axis=(0, 1, 0))
        b.joint("revolute", bars[0], bars[1], name="b", axis=(0, 1, 0), at=(0, 0, 1))
        b.joint("revolute", bars[1], bars[2], name="c", axis=(0, 1, 0), at=(1, 0, 1))
        b.joint("revolute", bars[2], b.ground, name="d", axis=(0, 1, 0), at=(1, 0, 0))
    mech = b.build()
    (loop,) = mech.loops
    with pytest.raises(ModelError, match=f"joint '{loop}' closes a loop"):
        mech.inverse_dynamics_derivatives(mech.neutral(), np.zeros(mech.nv), np.zeros(mech.nv))


def test_a_wrong_shape_names_the_array_and_both_shapes() -> None:
    mech = lw.chain(3)
    with pytest.raises(ShapeError, match=r"v has shape \(4,\); needed is \(\.\.\., 3\)"):
        mech.forward_dynamics(np.zeros(3), np.zeros(4), np.zeros(3))
    mech.forward_dynamics(np.zeros(3), np.zeros(3), np.zeros(3))  # from here on by the short way
    with pytest.raises(ShapeError, match=r"v has shape \(4,\); needed is \(\.\.\., 3\)"):
        mech.forward_dynamics(np.zeros(3), np.zeros(4), np.zeros(3))


def test_a_wrong_dtype_names_the_array_and_both_dtypes() -> None:
    mech = lw.chain(3)
    with pytest.raises(DtypeError, match="q has dtype complex128; needed is float64"):
        mech.forward_dynamics(np.zeros(3, complex), np.zeros(3), np.zeros(3))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda m: m.pose(np.zeros(3), "link33"), "no frame named 'link33'"),
        (lambda m: m.lock({"joint9": 0.0}), "no joint named 'joint9'"),
        (lambda m: m.jacobian(np.zeros(3), "ground", "wrold"), "did you mean 'world'"),
        (lambda m: m.forward_dynamics(np.zeros(3), np.zeros(3), np.zeros(3), method="articulated"), "articulated-body"),
        (lambda m: m.program("forward_dynamic"), "did you mean 'forward_dynamics'"),
        (lambda m: m.with_parameters(length=1.0), "no parameter named 'length'"),
        (lambda m: m.program("mass_matrix", free=("length",)), "no parameter named 'length'"),
    ],
)
def test_a_wrong_name_is_told_with_what_there_is(call, told: str) -> None:
    with pytest.raises(NameNotFound, match=told):
        call(lw.chain(3))


def test_nan_stays_in_its_own_state() -> None:
    mech = lw.chain(5)
    rng = np.random.default_rng(3)
    q, v, tau = rng.standard_normal((3, 40, 5))
    clean = mech.forward_dynamics(q, v, tau)
    q[7, 2] = np.nan
    spoiled = mech.forward_dynamics(q, v, tau)
    assert np.isnan(spoiled[7]).any()
    others = np.arange(40) != 7
    assert np.array_equal(clean[others], spoiled[others])


def test_nan_is_not_lost_in_a_coordinate_that_does_not_matter() -> None:
    with lw.Builder("carousel") as b:
        disc = b.body("disc", mass=1.0, inertia=(0.1, 0.1, 0.2))
        arm = b.body("arm", mass=0.5, com=(0.2, 0, 0), inertia=(0.01, 0.01, 0.01))
        b.joint("revolute", b.ground, disc, name="vertical", axis=(0, 0, 1))
        b.joint("revolute", disc, arm, name="swing", axis=(0, 1, 0))
    mech = b.build()
    q = np.array([[0.1, 0.2], [np.nan, 0.2]])
    for answer in (mech.forward_dynamics(q, 0 * q[0], 0 * q[0]), mech.mass_matrix(q), mech.potential_energy(q)):
        assert np.isfinite(answer[0]).all()
        assert np.isnan(answer[1]).any()


def test_a_mechanism_becomes_part_of_a_recording() -> None:
    mech = double_pendulum()
    cost = lw.record(lambda q: (mech.pose(q, "lower")[:3, 3] ** 2).sum() + mech.potential_energy(q), 2)
    q = np.array([0.3, -0.8])
    step = 1e-6
    slope = [(cost(q + d) - cost(q - d)) / (2 * step) for d in step * np.eye(2)]
    assert cost.jacobian()(q).reshape(2) == pytest.approx(slope, rel=1e-7)


def test_a_driver_is_not_silently_ignored() -> None:
    with lw.Builder("driven") as b:
        block = b.body("block", mass=2.0)
        b.joint("prismatic", b.ground, block, "slide", axis=(1, 0, 0))
        b.driver("joint", "slide", 3.0 * lw.TIME * lw.TIME)
    assert b.build().forward_dynamics(np.zeros(1), np.zeros(1), np.zeros(1), t=0.0) == pytest.approx([6.0])


def test_a_point_mass_on_its_own_axis_is_told_by_name() -> None:
    with lw.Builder("bead") as b:
        b.joint("revolute", b.ground, b.body("bead", mass=1.0), name="axle")
    with pytest.raises(ModelError, match="joint 'axle' has no inertia along its freedom"):
        b.build().forward_dynamics(np.zeros(1), np.zeros(1), np.ones(1))


def test_two_threads_may_ask_a_new_mechanism_at_once() -> None:
    mech = lw.random_tree(9, 4)
    rng = np.random.default_rng(4)
    q = mech.integrate(np.tile(mech.neutral(), (6, 1)), rng.standard_normal((6, mech.nv)))
    v, tau = rng.standard_normal((2, 6, mech.nv))
    expected = lw.Mechanism(mech.description).forward_dynamics(q, v, tau)
    found: dict[int, list[np.ndarray]] = {}

    def ask(k: int) -> None:
        found[k] = [mech.forward_dynamics(q[k], v[k], tau[k]) for _ in range(200)]

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(6):
        assert all(relative(a, expected[k]) < 1e-12 for a in found[k])


def test_integrate_and_difference_undo_each_other() -> None:
    mech = lw.random_tree(12, 7, floating=True)
    rng = np.random.default_rng(7)
    q = mech.integrate(mech.neutral(), rng.standard_normal(mech.nv))
    dv = 0.5 * rng.standard_normal((4, mech.nv))
    assert relative(mech.difference(q, mech.integrate(q, dv)), dv) < 1e-10


@pytest.mark.parametrize("ratio", [-2.0, 0.5])
def test_the_difference_of_geared_joints_is_that_of_their_leader(ratio: float) -> None:
    b = lw.Builder()
    for name in ("one", "two"):
        b.joint("revolute", b.ground, b.body(name, 1.0, inertia=(1.0, 1.0, 1.0)), f"shaft {name}")
    b.mimic("shaft two", "shaft one", ratio)
    mech = b.build()
    q, dv = np.array([0.1]), np.array([0.2])
    np.testing.assert_allclose(mech.difference(q, mech.integrate(q, dv)), dv, rtol=1e-14)


def test_a_million_links_load_in_linear_memory() -> None:
    mech = lw.chain(1_000_000)
    assert mech.nv == 1_000_000
    assert mech.joints[999_999].parent == mech.bodies[999_998].name


@pytest.mark.parametrize("value", ["10 deg", None, [1.0, 2.0]])
def test_a_value_of_a_parameter_that_is_no_number_is_refused_by_its_name(value):
    mech = lw.load(Path(__file__).parents[1] / "examples" / "models" / "four_bar.mks")
    name = next(iter(mech.parameters))
    with pytest.raises(ModelError, match=f"parameter '{name}' is .*give it a number"):
        mech.with_parameters(**{name: value})


def test_help_of_a_method_says_where_its_arguments_are_explained() -> None:
    for name in ("forward_dynamics", "pose", "jacobian", "inverse_dynamics_derivatives", "reactions", "linearise"):
        assert "Arguments: see `Mechanism`." in (getattr(lw.Mechanism, name).__doc__ or ""), name
