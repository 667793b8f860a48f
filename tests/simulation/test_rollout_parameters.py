"""Motions side by side that differ in their parameters."""

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import LinkwrightError


@pytest.fixture(scope="module")
def pendulum():
    with lw.Builder("pendulum") as b:
        length, mass = b.parameter("length", 1.0), b.parameter("mass", 2.0)
        rod = b.body("rod", mass=mass, com=(0.0, 0.0, -length), inertia=(0.1, 0.1, 0.1))
        b.joint("revolute", b.ground, rod, "hinge", axis=(0.0, 1.0, 0.0))
    return b.build()


def test_each_motion_is_that_of_a_mechanism_with_its_parameters(pendulum):
    lengths, q0, v0 = np.array([0.5, 1.0, 1.7]), np.full((3, 1), 0.4), np.zeros((3, 1))
    ours = lw.rollout(pendulum, q0, v0, 0.01, 50, tau=[0.3], parameters={"length": lengths, "mass": 1.5})
    for k, length in enumerate(lengths):
        alone = pendulum.with_parameters(length=length, mass=1.5)
        wanted = lw.rollout(alone, q0[k], v0[k], 0.01, 50, tau=[0.3])
        np.testing.assert_allclose(ours.q[k], wanted.q, atol=1e-13)
        np.testing.assert_allclose(ours.v[k], wanted.v, atol=1e-13)


def test_one_state_spreads_over_the_values_of_parameters(pendulum):
    law = lambda t, q, v: -0.2 * v  # noqa: E731
    found = lw.rollout(pendulum, [0.4], [0.0], 0.01, 20, tau=law, parameters={"length": np.linspace(0.5, 1.5, 4)})
    assert found.q.shape == (4, 21, 1)
    assert len(np.unique(found.final_q)) == 4


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"lenght": 1.0}, "did you mean 'length'"),
        ({"length": [1.0, 2.0]}, r"'length' has shape \(2,\), and the motions \(3,\)"),
        ({"length": np.nan}, "no finite number"),
    ],
)
def test_wrong_parameters_are_named(pendulum, parameters, told):
    with pytest.raises(LinkwrightError, match=told):
        lw.rollout(pendulum, np.zeros((3, 1)), np.zeros((3, 1)), 0.01, 5, parameters=parameters)
