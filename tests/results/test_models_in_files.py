"""A saved solution opens with its own model, as the modelling language writes and reads it."""

from pathlib import Path

import numpy as np
import pytest
from motions import crank_motion, from_coordinates
from numpy.testing import assert_allclose, assert_array_equal

import linkwright as lw
from linkwright.errors import LinkwrightWarning
from linkwright.model.expression import Call, Number

TIME = np.linspace(0.0, 1.0, 11)


def test_triads_and_joints_are_known_after_opening(tmp_path: Path) -> None:
    before = crank_motion(TIME)
    before.save(tmp_path / "x.nc")
    after = lw.open(tmp_path / "x.nc")
    assert after.description.name == "crank and block"
    assert_array_equal(after.position("crank"), before.position("crank"))
    assert_allclose(after.acceleration("tip"), before.acceleration("tip"), rtol=1e-14, atol=1e-14)
    assert_allclose(after.orientation("mark"), before.orientation("mark"), atol=1e-15)
    assert_allclose(after.joint("pivot"), before.joint("pivot"), atol=1e-14)


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_tree_of_every_kind_has_the_same_coordinates_after_opening(seed: int, tmp_path: Path) -> None:
    mech = lw.random_tree(12, seed=seed)
    rates = np.random.default_rng(seed).uniform(-1.0, 1.0, mech.nv)
    q = mech.integrate(np.tile(mech.neutral(), (len(TIME), 1)), rates * TIME[:, None])
    before = from_coordinates(mech, TIME, q, np.tile(rates, (len(TIME), 1)))
    before.save(tmp_path / "x.nc")
    after = lw.open(tmp_path / "x.nc")
    assert [j.kind for j in after.mechanism.joints] == [j.kind for j in mech.joints]
    assert_allclose(after.q, before.q, atol=1e-13)
    assert_allclose(after.v, before.v, atol=1e-13)


def still(law: object) -> lw.Solution:
    """A hinge at rest under a force of this law."""
    with lw.Builder() as b:
        b.joint("revolute", b.ground, b.body("arm", 1.0, (1, 0, 0), (1, 1, 1)), "hinge")
        b.joint_force("hinge", law)
    return from_coordinates(b.build(), TIME, np.zeros((len(TIME), 1)), np.zeros((len(TIME), 1)))


def test_a_spring_that_pushes_out_is_there_after_opening(tmp_path: Path) -> None:
    before = still(lambda q: -(-5.0 * (q - 0.0)))
    before.save(tmp_path / "x.nc")
    assert lw.open(tmp_path / "x.nc").description.elements == before.description.elements


def test_a_model_that_will_not_be_read_again_is_told_when_it_is_saved(tmp_path: Path) -> None:
    endless = Call("min", (Number(5.0), Call("exp", (Number(1000.0),))))
    told = r"x\.nc is written, but lw\.open will not read its model .*not a finite"
    with pytest.warns(LinkwrightWarning, match=told):
        still(endless).save(tmp_path / "x.nc")
    assert (tmp_path / "x.nc").exists()
