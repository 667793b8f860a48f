"""Which joints a plant commands and measures, and where their numbers are."""

import pytest

from closed_mechanisms import geared_wheels
from linkwright.control.loop.plant import joint_positions
from linkwright.errors import ModelError


def test_joints_that_share_a_coordinate_are_one_drive() -> None:
    names, q_at, v_at = joint_positions(geared_wheels(), None, "drives")
    assert (names, q_at.tolist(), v_at.tolist()) == (("shaft one",), [0], [0])
    assert joint_positions(geared_wheels(loop=True), None, "drives")[0] == ("shaft one", "shaft two")


def test_a_follower_without_a_coordinate_of_its_own_is_no_drive() -> None:
    with pytest.raises(ModelError, match="'shaft two' has no coordinate of its own: it follows 'shaft one'; name that"):
        joint_positions(geared_wheels(), ["shaft two"], "drives")
