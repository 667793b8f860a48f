"""A joint that follows a follower moves as if it followed the first leader by the product of the ratios."""

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import LinkwrightWarning, ModelError
from linkwright.formats.mks.printer import write_mks
from linkwright.formats.mks.reader import parse_mks

JOINTS = "abcd"
RATIOS, OFFSETS = {"b": -0.5, "c": 3.0, "d": -2.0}, {"b": 0.1, "c": -0.2, "d": 0.3}
ORDERS = ["bcd", "dcb", "cbd"]


def built(gears: list[tuple[str, str, object, object]]) -> lw.Builder:
    b = lw.Builder("train")
    for k, name in enumerate(JOINTS):
        body = b.body(f"wheel_{name}", mass=1.0 + k, inertia=(0.1, 0.2, 0.3))
        b.joint("revolute", b.ground, body, name, axis=(0, 0, 1))
    for follower, leader, ratio, offset in gears:
        b.mimic(follower, leader, ratio, offset)
    return b


def leader_of(joint: str) -> str:
    return JOINTS[JOINTS.index(joint) - 1]


def angles(q_a: float) -> dict[str, float]:
    found = {"a": q_a}
    for joint in "bcd":
        found[joint] = RATIOS[joint] * found[leader_of(joint)] + OFFSETS[joint]
    return found


@pytest.mark.parametrize("order", ORDERS)
def test_a_train_moves_by_the_products_of_its_ratios(order: str) -> None:
    with pytest.warns(LinkwrightWarning, match="'d' of 'c' as of 'a'"):
        mech = built([(j, leader_of(j), RATIOS[j], OFFSETS[j]) for j in order]).build()
    assert mech.nq == 1
    for joint, angle in angles(0.7).items():
        turned = mech.pose(np.array([0.7]), f"wheel_{joint}")[:3, :3]
        assert np.allclose(turned[0, :2], (np.cos(angle), -np.sin(angle)), atol=1e-14)
    speeds = {"a": 1.0, "b": -0.5, "c": -1.5, "d": 3.0}
    assert np.isclose(mech.mass_matrix(np.array([0.7]))[0, 0], 0.3 * sum(s * s for s in speeds.values()))


@pytest.mark.parametrize("order", ORDERS)
def test_a_train_in_a_file_keeps_its_parameters(order: str) -> None:
    lines = [f"BODY {j} (mass = 1, inertia = (1, 1, 1));\nREVOLUTE JOINT j{j} (triad = g, triad = {j});" for j in "abc"]
    gears = {
        "b": "GEAR g1 (joint = jb, joint = ja, ratio = r, offset = 0.5);",
        "c": "GEAR g2 (joint = jc, joint = jb, ratio = 2*r, offset = 0.25);",
    }
    text = "\n".join(["MODEL m\nPARAMETER r = 3;\nBODY g (ground);", *lines, *(gears[j] for j in order if j in gears)])
    with pytest.warns(LinkwrightWarning, match="'jc' of 'jb' as of 'ja'"):
        d = parse_mks(text + "\nENDMODEL")
    for model in (d, parse_mks(write_mks(d))):
        mech = lw.Mechanism(model).with_parameters(r=5.0)
        assert np.isclose(mech.mass_matrix(np.zeros(1))[0, 0], 1 + 5**2 + 50**2)
        gear = next(m for m in mech.description.mimics if m.name == "g2")
        assert np.isclose(gear.offset, 10 * 0.5 + 0.25)


def test_a_circle_of_gears_is_refused_by_its_joints() -> None:
    with pytest.raises(ModelError, match="circle, a → d → c → b → a; remove one"):
        built([(j, leader_of(j), 1.0, 0.0) for j in "bcd"] + [("a", "d", 1.0, 0.0)]).description()
