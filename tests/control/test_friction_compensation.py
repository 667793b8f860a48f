"""Compensation of friction: added to a controller it takes away the error that friction leaves."""

import numpy as np
import pytest
from controlled import planar_arm

import linkwright as lw
from linkwright.errors import ModelError, NameNotFound

STATIC, VISCOUS = 2.0, 0.5


def rubbing() -> lw.Mechanism:
    """The arm of `planar_arm` with friction in both joints."""
    with lw.Builder("rubbing arm") as b:
        b.gravity((0, -9.81, 0))
        upper, lower = (b.body(name, 1.5, (0.25, 0, 0), (0.001, 0.03, 0.03)) for name in ("upper", "lower"))
        for name, i, j in (("shoulder", b.ground, upper), ("elbow", b.triad(upper, (0.5, 0, 0)), b.triad(lower))):
            b.joint("revolute", i, j, name)
            b.joint_force(name, -STATIC * np.tanh(b.rate(name) / 0.01) - VISCOUS * b.rate(name))
    return b.build()


def path_error(*more: lw.control.Controller) -> float:
    model, plant = planar_arm(), rubbing()
    reference = lw.control.MinimumJerk([0.2, 0.8], [0.9, 0.1], 0.5)
    controller = lw.control.computed_torque(model, 400.0, 40.0, reference)
    for one in more:
        controller = controller + one
    run = lw.control.Loop(plant, controller, encoders=lw.control.Encoder(rate="exact")).run(0.6, [0.2, 0.8])
    assert run.status
    wanted = reference.table(run.time).x
    return float(np.abs(run.q - wanted).max())


@pytest.mark.parametrize("of", ["measured", "reference"])
def test_compensation_takes_away_most_of_the_error(of: str) -> None:
    bare = path_error()
    helped = path_error(lw.control.friction(STATIC, VISCOUS, velocity_scale=0.01, of=of))
    assert bare > 0.01
    assert helped < 0.2 * bare


def test_named_joints_alone_are_compensated() -> None:
    one = lw.control.friction(1.0, [2.0], joints=["elbow"])
    measured = lw.control.Measured(
        1e-3, np.zeros(2), np.array([0.5, -0.5]), np.zeros(2), np.zeros(2), ("shoulder", "elbow"), ("m1", "m2")
    )
    one.start(measured)
    assert np.allclose(one.step(0, 0.0, measured), [0.0, -1.0 - 1.0])
    by_drive = lw.control.friction(1.0, 2.0, joints="m1")
    by_drive.start(measured)
    assert np.allclose(by_drive.step(0, 0.0, measured), [2.0, 0.0])


def test_its_law_is_recorded_into_a_simulation() -> None:
    mech = rubbing()
    sol = lw.simulate(mech, 0.5, q0=[0.3, 0.4], v0=[1.0, 0.0], tau=lw.control.friction(2.0, 0.5, mech=mech).law())
    free = lw.simulate(planar_arm(), 0.5, q0=[0.3, 0.4], v0=[1.0, 0.0])
    assert not sol.status.notes
    assert np.allclose(sol.q[-1], free.q[-1], atol=1e-5)


def test_bad_compensation_is_told() -> None:
    with pytest.raises(ModelError, match="velocity_scale"):
        lw.control.friction(1.0, 1.0, velocity_scale=0.0)
    with pytest.raises(NameNotFound, match="rate named"):
        lw.control.friction(1.0, 1.0, of="wish")
    with pytest.raises(ModelError, match="give mech="):
        lw.control.friction(1.0, 1.0).law()
    alone = lw.control.Loop(planar_arm(), lw.control.friction(1.0, of="reference"))
    assert "added behind a controller" in str(alone.run(0.01, [0.0, 0.0]).status)
    wrong = lw.control.Loop(planar_arm(), lw.control.friction(1.0, joints=["knee"]))
    assert "no measured or driven joint named 'knee'" in str(wrong.run(0.01, [0.0, 0.0]).status)
