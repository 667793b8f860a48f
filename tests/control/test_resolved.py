"""Resolved acceleration: serial, redundant and closed chains follow poses; singular ones stop with a sentence."""

from pathlib import Path

import numpy as np
import pytest
from controlled import five_bar, five_bar_start, planar_arm

import linkwright as lw
from closed_mechanisms import four_bar
from linkwright.errors import ModelError, NameNotFound

SETTINGS = lw.control.ResolvedSettings
PANDA = Path(__file__).parents[2] / "examples" / "models" / "panda.dh.toml"


def test_a_redundant_arm_follows_a_pose_and_comes_to_rest() -> None:
    mech = lw.load(PANDA)
    q = np.array([0.1, -0.6, 0.2, -2.0, 0.1, 1.6, 0.4])
    frame = mech.bodies[-1].name
    home = mech.pose(q, frame)
    shift, turn = np.array([0.1, -0.08, 0.12]), np.array([0.2, -0.3, 0.5])
    reference = lw.control.Pose(
        lw.control.MinimumJerk(np.zeros(3), shift, 0.6), lw.control.MinimumJerk(np.zeros(3), turn, 0.6), origin=home
    )
    controller = lw.control.resolved_acceleration(mech, frame, 400.0, 40.0, reference)
    loop = lw.control.Loop(mech, controller, encoders=lw.control.Encoder(counts=2**20))
    run = loop.run(1.6, q)
    assert run.status
    error = np.abs(run.signals["error"])
    assert error[:300].max() < 2e-3
    assert error[-1].max() < 2e-5
    assert np.allclose(run.position(frame)[-1], home[:3, 3] + shift, atol=2e-5)
    assert np.abs(run.v[-1]).max() < 1e-2  # also what it might do besides the task


def test_a_closed_chain_follows_a_circle_with_its_pen() -> None:
    mech = five_bar()
    q = five_bar_start(mech)
    home = mech.pose(q, "pen")[:3, 3]
    angles = np.linspace(0.0, 2.0 * np.pi, 25)
    circle = 0.04 * np.stack([np.cos(angles) - 1.0, np.sin(angles), 0.0 * angles], axis=1)
    circle[-1] = circle[0]
    reference = lw.control.Pose(lw.control.Curve(circle + home, 0.8))
    errors = []
    for period in (2e-3, 1e-3):
        controller = lw.control.resolved_acceleration(
            mech, "pen", 900.0, 60.0, reference, axes="xy", settings=SETTINGS(guess=q)
        )
        run = lw.control.Loop(mech, controller, period=period, encoders=lw.control.Encoder(rate="exact")).run(1.0, q)
        assert run.status
        assert run.signals["iterations"].max() <= 3
        errors.append(float(np.abs(run.signals["error"]).max()))
    assert errors[1] < 3e-4
    assert errors[1] < 0.6 * errors[0]
    assert np.allclose(run.position("pen")[-1], home, atol=1e-5)


def test_a_crank_moves_its_rocker_along_one_direction() -> None:
    mech = four_bar()
    q, _ = mech.initial_state()
    at = mech.pose(q, "rocker")
    reference = lw.control.Pose(None, lw.control.MinimumJerk(np.zeros(3), [0.0, 0.0, 0.2], 0.5), origin=at)
    controller = lw.control.resolved_acceleration(
        mech, "rocker", 400.0, 40.0, reference, axes=["rz"], settings=SETTINGS(guess=q)
    )
    run = lw.control.Loop(mech, controller).run(1.2, q)
    assert run.status
    turned = run.joint("D")[-1, 0] - run.joint("D")[0, 0]
    assert abs(turned - 0.2) < 1e-4


def test_errors_of_an_exact_model_obey_the_linear_equation_in_the_task() -> None:
    mech = planar_arm()
    q = np.array([0.3, 1.1])
    start = mech.pose(q, "tip")[:2, 3]
    goal = start + np.array([0.06, -0.05])
    errors = []
    for period in (2e-3, 1e-3):
        controller = lw.control.resolved_acceleration(
            mech, "tip", 100.0, 20.0, lw.control.Pose([*goal, 0.0]), axes="xy"
        )
        run = lw.control.Loop(mech, controller, period=period, sensors="exact").run(0.6, q)
        t = run.time[:, None]
        expected = (goal - start) * (1.0 + 10.0 * t) * np.exp(-10.0 * t)
        errors.append(np.abs(goal - run.position("tip")[:, :2] - expected).max())
    assert errors[1] < 5e-4
    assert 0.9 < np.log2(errors[0] / errors[1]) < 1.2


def test_a_singular_pose_on_the_path_stops_the_run_by_its_name_and_time() -> None:
    # The arm is a metre long: on the way to 1.1 m it is stretched.
    mech = planar_arm()
    q = np.array([0.3, 0.8])
    here = mech.pose(q, "tip")[:3, 3]
    far = lw.control.MinimumJerk(here, 1.1 * here / np.linalg.norm(here), 0.5)
    path = lw.control.Pose(far)
    controller = lw.control.resolved_acceleration(
        mech, "tip", 100.0, 20.0, path, axes="xy", settings=SETTINGS(condition=50)
    )
    run = lw.control.Loop(mech, controller, sensors="exact").run(1.0, q)
    assert not run.status
    assert run.status.reason == "singular pose"
    assert run.status.element in ("shoulder", "elbow")
    assert 0.1 < run.status.time < 0.5
    assert "cannot move 'tip' along" in str(run.status)
    assert f"t = {run.status.time:.9g} s" in str(run.status)
    assert len(run) == round(run.status.time / 2e-3) + 1
    assert np.isfinite(run.q).all()
    assert np.array_equal(run.torque[-1], run.torque[-2])


def test_damped_least_squares_go_on_where_the_pose_is_singular() -> None:
    mech = planar_arm()
    q = np.array([0.3, 0.8])
    here = mech.pose(q, "tip")[:3, 3]
    far = lw.control.Pose(lw.control.MinimumJerk(here, 1.1 * here / np.linalg.norm(here), 0.5))
    controller = lw.control.resolved_acceleration(
        mech, "tip", 100.0, 20.0, far, axes="xy", settings=SETTINGS(damped=True)
    )
    run = lw.control.Loop(mech, controller, sensors="exact", torque_limit=200.0).run(1.0, q)
    assert run.status
    reach = np.linalg.norm(run.position("tip"), axis=1)
    assert reach[0] < 0.93
    assert reach[-1] > 0.97


def test_an_outer_loop_corrects_what_is_followed() -> None:
    mech = five_bar()
    q = five_bar_start(mech)
    reference = lw.control.Pose(origin=mech.pose(q, "pen"))
    inner = lw.control.resolved_acceleration(mech, "pen", 0.0, 0.0, reference, axes="xy", settings=SETTINGS(guess=q))

    class Push:
        def start(self, measured) -> None:
            self.seen = []

        def __call__(self, k, t, measured, target):
            self.seen.append(measured.signals["pen.acceleration"].copy())
            return target.x, target.xd, target.xdd + 0.5 * np.eye(6)[0]

    push = Push()
    loop = lw.control.Loop(
        mech, lw.control.Corrected(inner, push), sensors=[lw.control.Accelerometer("pen")], period=1e-3
    )
    run = loop.run(0.05, q)
    assert run.status
    assert np.allclose(run.signals["corrected.xdd"][:, 0], 0.5)
    assert np.allclose(push.seen[10], [0.5, 0.0, 0.0], atol=0.02)
    assert np.allclose(run.sensors["pen.acceleration"], run.acceleration("pen"), atol=1e-9)


def test_what_cannot_be_controlled_is_told() -> None:
    mech = planar_arm()
    reference = lw.control.Pose([0.5, 0.5, 0.0])
    with pytest.raises(ModelError, match="cannot move 'tip' in six directions"):
        lw.control.resolved_acceleration(mech, "tip", 1.0, 1.0, reference)
    with pytest.raises(ModelError, match="control fewer"):
        lw.control.resolved_acceleration(mech, "tip", 1.0, 1.0, reference, axes="xyz")
    with pytest.raises(NameNotFound, match="no axis named 'w'"):
        lw.control.resolved_acceleration(mech, "tip", 1.0, 1.0, reference, axes="xw")
    with pytest.raises(NameNotFound, match="no frame named 'tipp'"):
        lw.control.resolved_acceleration(mech, "tipp", 1.0, 1.0, reference, axes="xy")
