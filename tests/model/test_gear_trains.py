"""A joint that follows a follower moves by the product of the ratios, and each gear exerts what it passes on too."""

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import ModelError
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.formats.mks.mks_writer import write_mks

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
    q = {"a": q_a}
    for joint in "bcd":
        q[joint] = RATIOS[joint] * q[leader_of(joint)] + OFFSETS[joint]
    return q


@pytest.mark.parametrize("order", ORDERS)
def test_a_train_moves_by_the_products_of_its_ratios(order: str) -> None:
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
    d = parse_mks(text + "\nENDMODEL")
    for model in (d, parse_mks(write_mks(d))):
        mech = lw.Mechanism(model).with_parameters(r=5.0)
        assert np.isclose(mech.mass_matrix(np.zeros(1))[0, 0], 1 + 5**2 + 50**2)
        gear = next(m for m in mech.description.mimics if m.name == "g2")
        assert (mech.description.joint_names[gear.leader], gear.ratio, gear.offset) == ("jb", 10.0, 0.25)
        assert np.isclose(mech.pose(np.zeros(1), "c")[0, 0], np.cos(10 * 0.5 + 0.25))


def test_a_circle_of_gears_is_refused_by_its_joints() -> None:
    with pytest.raises(ModelError, match="circle, a → d → c → b → a; remove one"):
        built([(j, leader_of(j), 1.0, 0.0) for j in "bcd"] + [("a", "d", 1.0, 0.0)]).description()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("driven", "abcd")
def test_a_driver_far_along_a_train_turns_all_of_it_through_any_number_of_turns(order: str, driven: str) -> None:
    b = built([(j, leader_of(j), RATIOS[j], OFFSETS[j]) for j in order])
    b.driver("joint", driven, angles(25.0)[driven] + lw.TIME)
    sol = lw.analyse(b.build(), times=[0.0, 0.1])
    assert sol.status, sol.status
    rate = angles(1.0)[driven] - angles(0.0)[driven]
    for joint, angle in angles(25.0 + 0.1 / rate).items():
        e = sol.orientation(f"wheel_{joint}")[-1]
        assert np.isclose(np.exp(2j * np.arctan2(e[3], e[0])), np.exp(1j * angle), atol=1e-9), joint


@pytest.mark.parametrize("order", ORDERS)
def test_a_train_is_locked_by_its_first_leader(order: str) -> None:
    b = built([(j, leader_of(j), RATIOS[j], OFFSETS[j]) for j in order])
    tail = b.body("tail", mass=1.0, inertia=(1, 1, 1))
    b.joint("prismatic", "wheel_d", tail, "t", axis=(1, 0, 0))
    mech = b.build()
    with pytest.raises(ModelError, match="'c' follows 'a'; lock 'a' instead"):
        mech.lock({"c": 0.2})
    locked = mech.lock({"a": 0.7})
    assert (locked.nq, locked.description.mimics) == (1, ())
    angle = angles(0.7)["d"]
    assert np.allclose(locked.pose(np.array([2.0]), "tail")[:2, 3], (2 * np.cos(angle), 2 * np.sin(angle)))


def test_a_sweep_has_the_angles_of_a_train_of_each_case() -> None:
    b = lw.Builder("swept")
    ratio = b.parameter("ratio", 2.0)
    for name in "abc":
        b.joint("revolute", b.ground, b.body(f"wheel_{name}", mass=1.0, inertia=(0.1, 0.2, 0.3)), name)
    b.mimic("c", "b", 3 * ratio, 0.1)
    b.mimic("b", "a", ratio, 0.2)
    b.initial("a", 0.4, rate=1.0)
    study = lw.sweep(
        b.build(),
        {"ratio": [2.0, -0.5]},
        ["c.angle", "c.rate"],
        analysis="dynamic",
        times=[0.0, 0.1],
        execution=lw.Execution(workers=1),
    )
    assert study.ok.all()
    for k, r in enumerate((2.0, -0.5)):
        assert study["c.angle"][k] == pytest.approx(3 * r * (r * np.array([0.4, 0.5]) + 0.2) + 0.1)
        assert study["c.rate"][k] == pytest.approx([3 * r * r] * 2)


# -- what the gears of a train exert ------------------------------------------------------------------------------
INERTIAS = {"a": 0.3, "b": 0.2, "c": 0.5}
R1, R2 = -0.5, 3.0
SHAFTS = """MODEL shafts
BODY g (ground);
{shafts}
{gears}
TORQUE load_b (joint = jb, law = {b});
TORQUE load_c (joint = jc, law = {c});
{rest}
ENDMODEL"""
GEARS = [
    "GEAR g1 (joint = jb, joint = ja, ratio = -0.5);",
    "GEAR g2 (joint = jc, joint = jb, ratio = 3, offset = 0.2);",
]


def shafts(b: float, c: float, rest: str = "", *, swapped: bool = False) -> lw.Mechanism:
    bodies = [
        f"BODY {j} (mass = 1, inertia = (1, 1, {x}));\nREVOLUTE JOINT j{j} (triad = g, triad = {j});"
        for j, x in INERTIAS.items()
    ]
    gears = "\n".join(GEARS[::-1] if swapped else GEARS)
    return lw.Mechanism(parse_mks(SHAFTS.format(shafts="\n".join(bodies), gears=gears, b=b, c=c, rest=rest)))


def expect(sol: lw.Solution, torques: dict[str, float]) -> None:
    for name, torque in torques.items():
        assert sol.series[name].values == pytest.approx(len(sol) * [torque], abs=1e-8), name


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("analysis", ["inverse dynamic", "dynamic"])
def test_the_first_gear_of_a_train_passes_on_what_the_second_takes(analysis: str, swapped: bool) -> None:
    """At constant speed: T₂ = −C, T₁ = −B + r₂ T₂, and the driver has r₁ T₁."""
    mech = shafts(5.0, 20.0, "DRIVER d (ja.angle = 10*TIME);", swapped=swapped)
    sol = lw.analyse(mech, analysis=analysis, times=[0.0, 0.1])
    second = -20.0
    first = -5.0 + R2 * second
    moments = {"ja.mz": R1 * first, "jb.mz": 5.0, "jc.mz": 20.0}
    expect(sol, {"g2.torque": second, "g1.torque": first, "d.torque": R1 * first, **moments})


@pytest.mark.parametrize("swapped", [False, True])
def test_gears_of_a_free_train_move_the_shafts_after_them(swapped: bool) -> None:
    """(I_a + r₁² (I_b + r₂² I_c)) a = r₁ (B + r₂ C); each gear has the inertia and the load behind it."""
    sol = lw.analyse(shafts(5.0, 20.0, swapped=swapped), analysis="dynamic", times=[0.0, 0.1])
    a = R1 * (5.0 + R2 * 20.0) / (0.3 + R1**2 * (0.2 + R2**2 * 0.5))
    second = 0.5 * R2 * R1 * a - 20.0
    first = 0.2 * R1 * a - 5.0 + R2 * second
    assert -R1 * first == pytest.approx(0.3 * a)
    expect(sol, {"g2.torque": second, "g1.torque": first, "ja.mz": 0.0, "jb.mz": 5.0, "jc.mz": 20.0})
