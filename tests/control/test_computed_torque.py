"""Computed torque: with an exact model the errors obey a linear equation, up to what sampling does."""

import numpy as np
import pytest
from controlled import five_bar, five_bar_start, planar_arm

import linkwright as lw
from linkwright.errors import ModelError

KP, KD = 100.0, 20.0


def critical(t: np.ndarray, e: np.ndarray) -> np.ndarray:
    """ë + 20 ė + 100 e = 0 from rest."""
    return e * ((1.0 + 10.0 * t) * np.exp(-10.0 * t))[:, None]


def arm_error(period: float) -> float:
    mech, start = planar_arm(), np.array([0.6, -0.5])
    controller = lw.control.computed_torque(mech, KP, KD, lw.control.Hold([0.2, 0.3]))
    run = lw.control.Loop(mech, controller, period=period, sensors="exact").run(0.6, start)
    return float(np.abs(run.q - [0.2, 0.3] - critical(run.time, start - [0.2, 0.3])).max())


def test_errors_of_a_tree_obey_the_linear_equation_to_first_order_of_the_period() -> None:
    errors = [arm_error(period) for period in (4e-3, 2e-3, 1e-3)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert errors[-1] < 2e-3
    assert np.all((orders > 0.9) & (orders < 1.2))


def test_errors_of_a_closed_chain_obey_the_same_equation() -> None:
    mech = five_bar()
    q = five_bar_start(mech)
    goal = q[:2] + np.array([0.1, -0.15])
    errors = []
    for period in (2e-3, 1e-3):
        controller = lw.control.computed_torque(mech, KP, KD, lw.control.Hold(goal), guess=q)
        run = lw.control.Loop(mech, controller, period=period, sensors="exact").run(0.6, q)
        assert run.status
        errors.append(np.abs(run.q[:, :2] - goal - critical(run.time, q[:2] - goal)).max())
    assert errors[1] < 1e-3
    assert 0.9 < np.log2(errors[0] / errors[1]) < 1.2


def test_the_law_without_sampling_obeys_it_exactly() -> None:
    mech = five_bar()
    q = five_bar_start(mech)
    goal = q[:2] + np.array([0.1, -0.15])
    law = lw.control.computed_torque(mech, KP, KD, lw.control.Hold(goal), guess=q).law()
    sol = lw.simulate(mech, 0.3, q0=q, tau=law, rtol=1e-9)
    assert sol.status
    assert np.allclose(sol.q[:, :2] - goal, critical(sol.time, q[:2] - goal), atol=1e-7)


def test_encoders_alone_do_as_well_as_the_true_state_when_they_are_exact() -> None:
    mech = five_bar()
    q = five_bar_start(mech)
    runs = []
    for options in ({"sensors": "exact"}, {"encoders": lw.control.Encoder(rate="exact")}):
        controller = lw.control.computed_torque(mech, KP, KD, lw.control.Hold(q[:2] + 0.1), guess=q)
        runs.append(lw.control.Loop(mech, controller, **options).run(0.3, q))
    assert np.allclose(runs[0].q, runs[1].q, atol=1e-9)
    assert runs[1].signals["iterations"].max() <= 3


def test_a_model_that_differs_from_the_plant_leaves_an_error_that_gains_make_small() -> None:
    plant, model = five_bar(1.3), five_bar(1.0)
    q = five_bar_start(plant)
    left = []
    for kp in (100.0, 400.0):
        controller = lw.control.computed_torque(model, kp, 2.0 * np.sqrt(kp), lw.control.Hold(q[:2]), guess=q)
        run = lw.control.Loop(plant, controller).run(2.0, q)
        left.append(np.abs(run.q[-1, :2] - q[:2]).max())
    assert left[0] > 1e-3
    assert 3.5 < left[0] / left[1] < 4.5


def test_a_joint_that_nothing_measures_is_told() -> None:
    with pytest.raises(ModelError, match=r"under-actuated: the joint .elbow. is neither measured"):
        lw.control.computed_torque(planar_arm(), 1.0, 1.0, lw.control.Hold([0.0]), joints=["shoulder"])
