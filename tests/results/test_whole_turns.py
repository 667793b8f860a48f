"""Joint angles of prescribed motions have the whole turns that drivers, initial values and gears state."""

from pathlib import Path

import numpy as np
import pytest

import linkwright as lw

TIMES = np.array([0.0, 0.05, 0.1])
BEGIN = [2.0, 4.0, -7.0, 25.0]


def driven(kind: str, index: int, begin: float) -> lw.Builder:
    """A body on a joint that is driven from an angle on, with a spring on it; its other coordinates stand still."""
    b = lw.Builder("driven")
    b.gravity((0, 0, 0))
    b.joint(kind, b.ground, b.body("bar", 1.0, (0.3, 0, 0), (1, 1, 1)), "j")
    for k in range({"revolute": 1, "cylindrical": 2, "universal": 2, "planar": 3}[kind]):
        b.driver("joint", "j", begin + lw.TIME if k == index else 0.0 * lw.TIME, index=k, name=f"d{k}")
    b.joint_spring("j", 10.0, 0.0, 0.0, index=index, name="s")
    return b


@pytest.mark.parametrize(("kind", "index"), [("revolute", 0), ("cylindrical", 0), ("universal", 1), ("planar", 2)])
@pytest.mark.parametrize("begin", BEGIN)
def test_a_spring_on_a_driven_joint_is_wound_by_the_whole_law(kind: str, index: int, begin: float) -> None:
    sol = lw.analyse(driven(kind, index, begin).build(), analysis="inverse dynamic", times=TIMES)
    np.testing.assert_allclose(sol.joint("j")[:, index], begin + TIMES, atol=1e-12)
    np.testing.assert_allclose(sol.series["s.torque"].values, -10.0 * (begin + TIMES), atol=1e-10)
    np.testing.assert_allclose(sol.series[f"d{index}.torque"].values, 10.0 * (begin + TIMES), atol=1e-10)


RATIOS, OFFSETS = {"b": -0.4, "c": 1.5}, {"b": 0.3, "c": -0.2}


def train(driver: str, begin: float, *, loop: bool) -> lw.Mechanism:
    """Three geared wheels with a spring each; with `loop`, a rod holds a further bar on the last one."""
    with lw.Builder("train") as b:
        b.gravity((0, -9.81, 0))
        for k, name in enumerate("abc"):
            wheel = b.body(f"wheel_{name}", 1.0, (0.2, 0.1, 0), (0.1, 0.1, 0.1))
            b.joint("revolute", b.triad(b.ground, (float(k), 0, 0)), wheel, name)
            b.joint_spring(name, 3.0, 0.0, 0.0, name=f"s_{name}")
        b.mimic("b", "a", RATIOS["b"], OFFSETS["b"], name="ab")
        b.mimic("c", "b", RATIOS["c"], OFFSETS["c"], name="bc")
        if loop:
            bar = b.body("bar", 0.5, (0.2, 0, 0), (0.01, 0.01, 0.01))
            b.joint("revolute", b.triad("wheel_c", (0.1, 0, 0)), bar, "pin")
            b.rod(b.triad(bar, (0.5, 0, 0)), b.triad(b.ground, (2.0, 0.8, 0)), 0.7, "rod")
        b.driver("joint", driver, begin + lw.TIME, name="d")
    return b.build()


def train_angles(driver: str, angle: np.ndarray) -> dict[str, np.ndarray]:
    if driver == "c":
        angle = (angle - OFFSETS["c"]) / RATIOS["c"]
    a = angle if driver == "a" else (angle - OFFSETS["b"]) / RATIOS["b"]
    b = RATIOS["b"] * a + OFFSETS["b"]
    return {"a": a, "b": b, "c": RATIOS["c"] * b + OFFSETS["c"]}


@pytest.mark.parametrize("loop", [False, True], ids=["tree", "loop"])
@pytest.mark.parametrize("driver", "abc")
@pytest.mark.parametrize("begin", [2.0, 25.0])
def test_geared_joints_are_where_the_driver_of_one_of_them_puts_them(driver: str, begin: float, loop: bool) -> None:
    mech = train(driver, begin, loop=loop)
    sol = lw.analyse(mech, analysis="inverse dynamic", times=TIMES)
    assert sol.status, str(sol.status)
    for name, angle in train_angles(driver, begin + TIMES).items():
        np.testing.assert_allclose(sol.joint(name)[:, 0], angle, atol=1e-8)
        np.testing.assert_allclose(sol.series[f"s_{name}.torque"].values, -3.0 * angle, atol=1e-7)
    # Coordinates of the tree put the bodies where they are.
    for body in mech.bodies:
        np.testing.assert_allclose(mech.pose(sol.q, body.name)[:, :3, 3], sol.position(body.name), atol=1e-8)
        turn = mech.pose(sol.q, body.name)[:, :2, 0]
        e = sol.orientation(body.name)
        np.testing.assert_allclose(turn[:, 0] + 1j * turn[:, 1], (e[:, 0] + 1j * e[:, 3]) ** 2, atol=1e-8)


def test_a_pinion_has_the_turns_that_its_rack_tells() -> None:
    with lw.Builder("rack") as b:
        b.joint("revolute", b.ground, b.body("pinion", 1.0, (0, 0, 0), (1, 1, 1)), "turn")
        b.joint("prismatic", b.ground, b.body("rack", 1.0, (0, 0, 0), (1, 1, 1)), "slide")
        b.mimic("slide", "turn", 0.1, name="mesh")
        b.driver("joint", "slide", 1.3 + lw.TIME, name="d")
    sol = lw.analyse(b.build(), analysis="inverse dynamic", times=TIMES)
    np.testing.assert_allclose(sol.joint("turn")[:, 0], 13.0 + 10.0 * TIMES, atol=1e-9)


@pytest.mark.parametrize("ratio", [5.0, -0.5])
def test_a_follower_has_the_turns_of_a_leader_that_no_driver_of_its_own_moves(ratio: float) -> None:
    with lw.Builder("wound") as b:
        lead, follow = (b.body(name, 1.0, (0.1, 0, 0), (1, 1, 1)) for name in ("lead", "follow"))
        b.joint("revolute", b.ground, lead, "leader")
        b.joint("revolute", b.ground, follow, "follower")
        b.mimic("follower", "leader", ratio, 3.0, name="mesh")
        b.joint_spring("follower", 2.0, 0.0, 0.0, name="s")
        b.driver("angle", b.ground, 0.9 + lw.TIME, other=lead, name="d")
    sol = lw.analyse(b.build(), analysis="inverse dynamic", times=TIMES)
    assert sol.status, str(sol.status)
    np.testing.assert_allclose(sol.joint("leader")[:, 0], 0.9 + TIMES, atol=1e-9)
    np.testing.assert_allclose(sol.joint("follower"), ratio * sol.joint("leader") + 3.0, atol=1e-9)
    np.testing.assert_allclose(sol.series["s.torque"].values, -2.0 * sol.joint("follower")[:, 0], atol=1e-8)


FOUR_BAR = """MODEL four_bar
BODY base (ground);
BODY crank (f = (cos(0.9), sin(0.9), 0), mass = 1, inertia = (0.1, 0.1, 0.1));
BODY coupler (origin = (cos(0.9), sin(0.9), 0), f = (1, 0.3, 0), mass = 1, inertia = (0.1, 0.1, 0.1));
BODY rocker (origin = (3, 0, 0), f = (0, 1, 0), mass = 1, inertia = (0.1, 0.1, 0.1));
REVOLUTE JOINT a (triad = base, triad = crank);
REVOLUTE JOINT b (triad = (associated body = crank, origin = (1, 0, 0)), triad = coupler);
REVOLUTE JOINT c (triad = (associated body = coupler, origin = (3, 0, 0)),
                  triad = (associated body = rocker, origin = (2.5, 0, 0)));
REVOLUTE JOINT d (triad = (associated body = base, origin = (3, 0, 0)), triad = rocker);
DRIVER motor (a.angle = 0.9 + 5*TIME);
SPRING s (joint = d, stiffness = 2);
INITIAL (d.angle = {angle!r});
ENDMODEL"""


@pytest.mark.parametrize("turns", [0, 3, -2])
@pytest.mark.parametrize("mode", [1, -1])
def test_an_initial_angle_of_some_turns_is_held_in_prescribed_motions(mode: int, turns: int, tmp_path: Path) -> None:
    line = np.exp(0.9j) - 3.0
    opening = np.arccos((abs(line) ** 2 + 2.5**2 - 9.0) / (2 * 2.5 * abs(line)))
    angle = float(np.angle(line) + mode * opening + 2 * np.pi * turns)
    path = tmp_path / "four_bar.mks"
    path.write_text(FOUR_BAR.format(angle=angle))
    for analysis in ("kinematic", "inverse dynamic"):
        sol = lw.analyse(path, analysis=analysis, times=TIMES)
        np.testing.assert_allclose(sol.joint("d")[0, 0], angle, atol=1e-9)
        assert np.abs(np.diff(sol.joint("d")[:, 0])).max() < 0.5
    np.testing.assert_allclose(sol.series["s.torque"].values, -2.0 * sol.joint("d")[:, 0], atol=1e-9)


def test_a_law_tells_the_turns_between_points_that_are_far_apart() -> None:
    """Seen once a period, its rate is that of thirty turns, and it is where it was."""
    with lw.Builder("swinging") as b:
        b.joint("revolute", b.ground, b.body("bar", 1.0, (0, 0, 0), (1, 1, 1)), "j")
        b.driver("joint", "j", 30.0 * np.sin(2 * np.pi * lw.TIME), name="d")
    times = np.array([0.0, 1.0, 1.2, 2.0])
    sol = lw.analyse(b.build(), times=times)
    np.testing.assert_allclose(sol.joint("j")[:, 0], 30.0 * np.sin(2 * np.pi * times), atol=1e-8)


def test_whole_turns_are_the_same_in_a_file_that_is_opened_again(tmp_path: Path) -> None:
    sol = lw.analyse(train("c", 25.0, loop=False), times=TIMES)
    sol.save(tmp_path / "train.nc")
    again = lw.open(tmp_path / "train.nc")
    for name in "abc":
        np.testing.assert_array_equal(again.joint(name), sol.joint(name))


@pytest.mark.parametrize("analysis", ["kinematic", "inverse dynamic"])
def test_the_cases_of_a_study_have_the_turns_of_their_own_laws_and_gears(analysis: str) -> None:
    with lw.Builder("swept") as b:
        begin, ratio = b.parameter("begin", 2.0), b.parameter("ratio", 0.4)
        for name in "ab":
            b.joint("revolute", b.ground, b.body(f"wheel_{name}", 1.0, (0, 0, 0), (1, 1, 1)), name)
            b.joint_spring(name, 3.0, 0.0, 0.0, name=f"s_{name}")
        b.mimic("b", "a", ratio, 0.1, name="mesh")
        b.driver("joint", "b", begin + lw.TIME, name="d")
    forces = ["s_a.torque"] if analysis == "inverse dynamic" else []
    grid = {"begin": [2.0, 25.0], "ratio": [0.4, -1.5]}
    study = lw.sweep(b.build(), grid, ["a.angle", "b.angle", *forces], analysis=analysis, times=TIMES)
    for k in range(4):
        case = study.data.isel(case=k)
        leader = (case["begin"].item() + TIMES - 0.1) / case["ratio"].item()
        np.testing.assert_allclose(case["b.angle"], case["begin"].item() + TIMES, atol=1e-9)
        np.testing.assert_allclose(case["a.angle"], leader, atol=1e-8)
        for name in forces:
            np.testing.assert_allclose(case[name], -3.0 * leader, atol=1e-8)
