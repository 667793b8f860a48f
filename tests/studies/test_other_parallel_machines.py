"""The Stewart platform and the Delta robot: closed forms, dynamics and the Delta's model file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from linkwright.control.parallel.leg_kinematics import Unreachable
from linkwright.errors import ModelError, ShapeError
from linkwright.studies.manipulator import delta, stewart

MODEL = Path(__file__).parents[2] / "examples" / "models" / "delta.mks"
STEWART, DELTA = stewart.Stewart(), delta.Delta()


@pytest.fixture(scope="module")
def platform() -> lw.Mechanism:
    return stewart.stewart(STEWART)


@pytest.fixture(scope="module")
def robot() -> lw.Mechanism:
    return delta.delta(DELTA)


def test_a_stewart_platform_moves_as_its_closed_form_says(platform: lw.Mechanism) -> None:
    assert platform.dof().left == 6
    pose = STEWART.home + np.array([0.05, -0.04, 0.06, 0.0, 0.05, 0.03, -0.06])
    twist = np.array([0.3, -0.2, 0.1, 0.4, -0.3, 0.2])
    q, v = stewart.state(platform, STEWART, pose, twist)
    assert np.abs(platform.kernels.position_correction(q)[1]).max() < 1e-12
    assert np.abs(platform.kernels.velocity_projection(q, v)[1]).max() < 1e-12
    assert np.allclose(platform.twist(q, v, "plate", "aligned"), twist, rtol=0, atol=1e-12)
    slides = [q[platform.joints[f"slide{k}"].q_slice][0] for k in range(1, 7)]
    assert np.allclose(slides, stewart.lengths(STEWART, pose))


def test_a_stewart_platforms_legs_carry_its_plate(platform: lw.Mechanism) -> None:
    # Alike by symmetry, the legs push with F: six F cos(leg, up) carry the plate and what of the legs hangs on it.
    q, v = stewart.state(platform, STEWART, STEWART.home)
    a = np.zeros(platform.nv)
    forces = platform.inverse_dynamics(q, v, a)[platform.actuated]
    assert np.allclose(forces, forces[0])
    h = 1e-6
    up, down = (stewart.state(platform, STEWART, STEWART.home + s * h * np.eye(7)[2])[0] for s in (1, -1))
    longer = stewart.lengths(STEWART, STEWART.home + h * np.eye(7)[2]) - stewart.lengths(
        STEWART, STEWART.home - h * np.eye(7)[2]
    )
    lifted = platform.potential_energy(up) - platform.potential_energy(down)
    assert np.isclose(forces.sum() * longer[0], lifted, rtol=1e-7)


def test_a_stewart_leg_that_would_be_too_long_or_short_is_named() -> None:
    with pytest.raises(Unreachable, match=r"leg \d would be .* mm too long; bring the plate nearer"):
        stewart.lengths(STEWART, STEWART.home + 0.9 * np.eye(7)[2])
    with pytest.raises(Unreachable, match="too short") as caught:
        stewart.lengths(STEWART, np.stack([STEWART.home, STEWART.home - 0.9 * np.eye(7)[2]]))
    assert caught.value.index == (1,)


def test_a_delta_robots_two_closed_forms_are_inverse() -> None:
    rng = np.random.default_rng(1)
    where = np.array([0.0, 0.0, DELTA.home_height]) + rng.uniform(-0.15, 0.15, (50, 3))
    assert np.allclose(delta.position(DELTA, delta.angles(DELTA, where)), where, rtol=0, atol=1e-12)


def test_a_delta_robot_moves_as_its_closed_form_says(robot: lw.Mechanism) -> None:
    report = robot.dof()
    assert report.left == 3
    assert report.redundant == ()
    velocity = np.array([0.3, -0.2, 0.1])
    q, v = delta.state(robot, DELTA, [0.1, -0.05, -0.7], velocity)
    assert np.abs(robot.kernels.position_correction(q)[1]).max() < 1e-12
    assert np.abs(robot.kernels.velocity_projection(q, v)[1]).max() < 1e-12
    assert np.allclose(robot.twist(q, v, "plate", "aligned"), [*velocity, 0, 0, 0], rtol=0, atol=1e-12)


def test_a_delta_robots_motors_carry_its_weight(robot: lw.Mechanism) -> None:
    where = np.array([0.0, 0.0, DELTA.home_height])
    q, v = delta.state(robot, DELTA, where)
    torques = robot.inverse_dynamics(q, v, np.zeros(robot.nv))[robot.actuated]
    h = 1e-6
    above, below = (where + s * h * np.eye(3)[2] for s in (1, -1))
    up, down = (delta.state(robot, DELTA, x)[0] for x in (above, below))
    turned = delta.angles(DELTA, above) - delta.angles(DELTA, below)
    assert np.isclose(torques @ turned, robot.potential_energy(up) - robot.potential_energy(down), rtol=1e-7)


def test_the_deltas_model_file_is_the_same_robot(robot: lw.Mechanism) -> None:
    free = lw.Mechanism(replace(lw.load(MODEL).description, drivers=()))
    q, v = delta.state(robot, DELTA, [0.1, -0.05, -0.7], [0.3, -0.2, 0.1])
    assert [j.name for j in free.joints] == [j.name for j in robot.joints]
    tau = np.zeros(robot.nv)
    for one, other in (
        (free.pose(q, "plate"), robot.pose(q, "plate")),
        (free.mass_matrix(q), robot.mass_matrix(q)),
        (free.bias_forces(q, v), robot.bias_forces(q, v)),
        (free.forward_dynamics(q, v, tau), robot.forward_dynamics(q, v, tau)),
    ):
        assert np.allclose(one, other, rtol=1e-11, atol=1e-12 * max(1.0, np.abs(other).max()))


def test_the_deltas_model_file_finds_the_cranks_angles() -> None:
    sol = lw.analyse(MODEL)
    assert sol.status
    found = np.stack([sol.q[:, sol.mechanism.joints[f"crank{k}"].q_slice.start] for k in (1, 2, 3)], axis=1)
    assert np.allclose(found, delta.angles(DELTA, sol.position("plate")), rtol=0, atol=1e-9)


def test_what_a_delta_robot_cannot_do_is_told() -> None:
    with pytest.raises(Unreachable, match=r"arm \d cannot reach: its rods are .* mm too short") as caught:
        delta.angles(DELTA, [0.0, 0.0, -1.2])
    assert caught.value.short > 0.1
    with pytest.raises(ModelError, match="the rods do not meet"):
        delta.position(replace(DELTA, rod=0.3), [0.0, 0.0, 0.0])
    with pytest.raises(ShapeError, match=r"give \(\.\.\., 3\)"):
        delta.angles(DELTA, [0.0, 0.0])
    for bad in (np.nan, np.inf):
        with pytest.raises(ModelError, match="not finite"):
            delta.angles(DELTA, [0.0, 0.0, bad])
        with pytest.raises(ModelError, match="not finite"):
            stewart.lengths(STEWART, STEWART.home + bad * np.eye(7)[2])


@pytest.mark.parametrize(
    ("dims", "change", "told"),
    [
        (STEWART, {"tube_length": 0.0}, "tube_length, a length in metres, must be a number greater than zero, not 0"),
        (STEWART, {"plate_mass": float("nan")}, "plate_mass, a mass in kilograms, must be a finite number"),
        (STEWART, {"shortest": 2.0}, "shortest, 2 m, must be less than longest, 1.8 m"),
        (DELTA, {"rod": -1.0}, "rod, a length in metres, must be a number greater than zero, not -1"),
    ],
)
def test_dimensions_that_no_machine_has_are_refused(dims, change, told) -> None:
    with pytest.raises(ModelError, match=told):
        replace(dims, **change)
