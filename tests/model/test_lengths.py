"""A mechanism's lengths grow with it, whatever tells them."""

from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from linkwright.model.parameter_cases import Cases
from linkwright.model.placements import body_lengths, length_scale

MODELS = Path(__file__).parents[2] / "examples" / "models"


def crank_and_rod(s):
    with lw.Builder("crank") as b:
        crank, rod = b.body("crank", mass=1.0), b.body("rod", mass=1.0)
        b.joint("revolute", b.ground, crank, "A")
        b.joint("revolute", b.triad(crank, origin=(0.3 * s, 0, 0)), rod, "B")
    return b.build()


def pendulum(s):
    with lw.Builder("pendulum") as b:
        b.joint("revolute", b.ground, b.body("bob", mass=1.0, com=(0, 0, -0.3 * s)), "A")
    return b.build()


def top(s):
    with lw.Builder("top") as b:
        b.joint("free", b.ground, b.body("top", mass=2.0, inertia=0.3 * s**2 * np.eye(3)), "A")
    return b.build()


def point_on_ground(s):
    with lw.Builder("point") as b:
        b.joint("prismatic", b.triad(b.ground, origin=(0.3 * s, 0, 0)), b.body("point", mass=1.0), "A")
    return b.build()


@pytest.mark.parametrize("model", [crank_and_rod, pendulum, top, point_on_ground])
@pytest.mark.parametrize("factor", [1e-9, 1e-3, 1e6])
def test_the_length_scale_grows_with_the_model(model, factor):
    one = model(1.0).description.length_scale
    assert 0.1 < one < 1.0
    assert model(factor).description.length_scale == pytest.approx(factor * one, rel=1e-12)


def test_a_mechanism_without_any_length_has_one_metre():
    with lw.Builder("mass") as b:
        b.joint("prismatic", b.ground, b.body("mass", mass=1.0), "A")
    assert b.build().description.length_scale == 1.0


def test_cases_have_the_lengths_of_each_mechanism_alone():
    d = lw.load(MODELS / "slider_crank_parameters.mks").description
    name = next(iter(d.parameters))
    values = d.parameters[name] * np.array([[0.9], [1.0], [1.1]])
    cases = Cases(d, [name], values)
    for k in range(3):
        np.testing.assert_allclose(body_lengths(d, cases.array)[k], body_lengths(cases.one(k)), rtol=1e-14)
    alone = [cases.one(k).length_scale for k in range(3)]
    np.testing.assert_allclose(length_scale(d, cases.array), alone, rtol=1e-14)
