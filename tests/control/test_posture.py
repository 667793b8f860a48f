"""The state of a controller's model from measured joints: Newton from the last one, branches, singular postures."""

import numpy as np
import pytest
from controlled import five_bar, five_bar_start, planar_arm

import linkwright as lw
from closed_mechanisms import four_bar, platform
from linkwright.errors import ControlError, ModelError
from scaled_models import scaled
from unit_family import Asked, Unit, family


def test_the_whole_state_follows_from_the_driven_joints_in_few_iterations() -> None:
    mech = platform()
    q, _ = mech.initial_state()
    state = lw.control.ModelState(mech, frame="plate", guess=q)
    rng = np.random.default_rng(3)
    theta = q[state.q_places]
    state.start(theta, np.zeros(6))
    assert np.allclose(state.q, q, atol=1e-9)
    for _ in range(20):
        rates = rng.normal(size=6)
        theta = theta + 2e-3 * rates
        state.update(theta, rates)
        assert state.iterations <= 4
        assert np.abs(mech.kernels.position_correction(state.q)[1]).max() < 1e-9
        there, v = mech.project(state.q, state.v)
        assert np.allclose(there, state.q, atol=1e-9)
        assert np.allclose(v, state.v, atol=1e-8)
        assert np.allclose(state.twist, mech.twist(state.q, state.v, "plate", "aligned"), atol=1e-12)
        assert np.allclose(state.jacobian @ rates, state.twist, atol=1e-9)


def test_loops_in_micrometres_are_closed_as_those_in_metres() -> None:
    angles = []
    for length in (1.0, 1e-6):
        mech = scaled(five_bar(), length, 1.0)
        q = five_bar_start(mech)
        state = lw.control.ModelState(mech, guess=q)
        state.start(q[state.q_places], np.zeros(2))
        for _ in range(5):
            state.update(state.q[state.q_places] + [0.02, -0.03], np.zeros(2))
        assert np.abs(mech.kernels.position_correction(state.q)[1]).max() < 1e-9 * length
        angles.append(state.q.copy())
    assert np.allclose(*angles, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("make", [four_bar, platform], ids=["four-bar", "platform"])
def test_its_forces_are_those_of_inverse_dynamics(make) -> None:
    mech = make()
    q, _ = mech.initial_state()
    state = lw.control.ModelState(mech, guess=q)
    rng = np.random.default_rng(5)
    state.start(q[state.q_places], rng.normal(size=state.n))
    wanted = rng.normal(size=state.n)
    a = state.W @ wanted + state.drift
    expected = mech.inverse_dynamics(state.q, state.v, a)
    assert np.allclose(state.forces(wanted), expected[state.v_places], rtol=1e-9, atol=1e-9)
    rest = np.delete(expected, state.v_places)
    assert not rest.any()


def test_a_jump_of_the_joints_is_refused_and_the_state_kept() -> None:
    mech = five_bar()
    q = five_bar_start(mech)
    state = lw.control.ModelState(mech, guess=q)
    state.start(q[:2], np.zeros(2))
    with pytest.raises(ControlError, match="posture"):
        state.update(q[:2] + np.array([1.2, -1.2]), np.zeros(2))
    assert np.allclose(state.q, q, atol=1e-9)


def test_a_singular_posture_is_told_by_its_joints() -> None:
    # The rods come to lie in one line: with the cranks held, the pen could move across it.
    mech = five_bar()
    q = five_bar_start(mech)
    state = lw.control.ModelState(mech, guess=q)
    theta = q[:2].copy()
    state.start(theta, np.zeros(2))
    steps = theta + np.outer(np.arange(2000), [1e-3, -1e-3])
    with pytest.raises(ControlError) as caught:
        [state.update(theta, np.zeros(2)) for theta in steps]
    assert caught.value.reason in ("singular pose", "no posture", "jump")
    assert caught.value.joints


def test_too_few_and_too_many_joints_are_told() -> None:
    mech = five_bar()
    q = five_bar_start(mech)
    with pytest.raises(ControlError, match="can still move"):
        lw.control.ModelState(mech, ["A"], guess=q).start(q[:1], np.zeros(1))
    with pytest.raises(ModelError, match="more than the mechanism's degrees of freedom"):
        lw.control.ModelState(mech, ["A", "B", "C"], guess=q).start(q[:3], np.zeros(3))
    with pytest.raises(ModelError, match="name 2 of them"):
        lw.control.ModelState(mech, ["A", "B", "C", "D"], guess=q).start(q, np.zeros(4))
    with pytest.raises(ModelError, match="3 joints are measured and the model has 2"):
        lw.control.ModelState(mech, guess=q).start(q[:3], np.zeros(3))


def test_a_driver_in_the_model_is_refused() -> None:
    with pytest.raises(ModelError, match="driver 'motor' prescribes a motion"):
        lw.control.ModelState(four_bar(drive=True), ["B"])


def test_joints_of_a_tree_may_come_in_another_order() -> None:
    mech = planar_arm()
    state = lw.control.ModelState(mech, ["elbow", "shoulder"], "tip")
    rates = np.array([0.3, -0.7])
    state.start(np.array([0.9, 0.2]), rates)
    assert np.allclose(state.q, [0.2, 0.9])
    assert np.allclose(state.jacobian @ rates, mech.twist(state.q, state.v, "tip", "aligned"))
    expected = mech.inverse_dynamics(state.q, state.v, np.array([2.0, 1.0]))
    assert np.allclose(state.forces(np.array([1.0, 2.0])), expected[::-1])


def test_a_path_out_of_reach_stops_with_the_joints_in_its_sentence() -> None:
    mech = five_bar()
    q = five_bar_start(mech)
    a = q[[mech.joints[name].q_slice.start for name in "AB"]]
    reference = lw.control.MinimumJerk(a, a + np.array([1.5, -1.5]), duration=1.0)
    run = lw.control.Loop(mech, lw.control.computed_torque(mech, 400.0, 40.0, reference)).run(1.0, q)
    assert run.status.reason == "no posture"
    assert "measured joints 'A', 'B' does not close from the last one, where 'C'" in run.status.message


@pytest.mark.parametrize("length", [1e-9, 1e9])
def test_a_measured_slide_of_any_length_tells_the_crank(length: float) -> None:
    """Turns and shifts together: neither rank, condition nor jump depends on the unit."""
    states = []
    for unit in (1.0, length):
        asked = Asked(family("slider-crank"), Unit(length=unit))
        q, _ = asked.mech.initial_state()
        state = lw.control.ModelState(asked.mech, ["S"], guess=q)
        state.start(q[state.q_places], np.array([0.3 * unit]))
        for _ in range(4):
            state.update(state.q[state.q_places] + 0.01 * unit, np.array([0.3 * unit]))
        states.append(np.concatenate([state.q / asked.q_unit, state.v / asked.rate, state.drift / asked.rate]))
        with pytest.raises(ControlError):
            state.update(state.q[state.q_places] + 0.6 * unit, np.zeros(1))
    np.testing.assert_allclose(*states, rtol=1e-8, atol=1e-8)
