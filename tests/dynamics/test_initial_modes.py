"""INITIAL is met on any assembly mode, by any number of consistent values, in every analysis and every unit."""

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import ModelError
from linkwright.formats.mks.mks_reader import parse_mks

CRANK, COUPLER, ROCKER, BASE = 1.0, np.sqrt(5.0), 2.0, 2.0
MODEL = """MODEL four
{system}
PARAMETER L = {size};
BODY g (ground);
BODY a (com = (0.5*L,0,0), mass = 1, inertia = (0.1,0.1,0.1));
BODY b (com = (0.5*L,0,0), mass = 1, inertia = (0.1,0.1,0.1));
BODY c (com = (0.5*L,0,0), mass = 1, inertia = (0.1,0.1,0.1), pqr = [(2*L,0,0), (2*L,0,1), (2*L,2*L,0)]);
TRIAD foot (associated body = g, origin = (2*L,0,0));
TRIAD ta (associated body = a, origin = (L,0,0));
TRIAD tb (associated body = b, origin = (sqrt(5)*L,0,0));
TRIAD tc (associated body = c, origin = (2*L,0,0));
REVOLUTE JOINT jA0 (triad = g, triad = a);
REVOLUTE JOINT jA (triad = ta, triad = b);
REVOLUTE JOINT jB0 (triad = foot, triad = c);
REVOLUTE JOINT jB (triad = tb, triad = tc);
{more}
ENDMODEL"""
DRIVEN = "DRIVER d (jA0.angle = 90 deg + 0.5*TIME);"


def four_bar(more: str, size: float = 1.0, system: str = "") -> lw.Mechanism:
    return lw.Mechanism(parse_mks(MODEL.format(more=more, size=size, system=system)))


def rocker_tips(crank: float) -> list[np.ndarray]:
    """Both places of jB, where the circles about jA and jB0 meet."""
    a, c = CRANK * np.array([np.cos(crank), np.sin(crank)]), np.array([BASE, 0.0])
    apart = np.linalg.norm(c - a)
    u = (c - a) / apart
    along = (COUPLER**2 - ROCKER**2 + apart**2) / (2.0 * apart)
    across = np.sqrt(COUPLER**2 - along**2) * np.array([-u[1], u[0]])
    return [a + along * u + across, a + along * u - across]


def rocker_angle(tip: np.ndarray) -> float:
    return float(np.arctan2(tip[1], tip[0] - BASE))


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e3])
@pytest.mark.parametrize("mode", [0, 1])
def test_either_assembly_mode_of_a_driven_four_bar_is_met(mode: int, size: float) -> None:
    tip = rocker_tips(np.pi / 2)[mode]
    mech = four_bar(f"{DRIVEN} INITIAL (jB0.angle = {rocker_angle(tip)!r});", size)
    q, _ = mech.initial_state()
    np.testing.assert_allclose(mech.pose(q, "tc")[:2, 3], size * tip, atol=1e-9 * size)
    np.testing.assert_allclose(mech.pose(q, "tb")[:2, 3], size * tip, atol=1e-9 * size)


@pytest.mark.parametrize("analysis", ["kinematic", "inverse dynamic", "static", "dynamic"])
def test_every_analysis_begins_on_the_mode_that_is_given(analysis: str) -> None:
    tip = rocker_tips(np.pi / 2)[1]
    mech = four_bar(f"{DRIVEN} INITIAL (jB0.angle = {rocker_angle(tip)!r});")
    sol = lw.analyse(mech, times=[0.0, 0.1], analysis=analysis)
    assert sol.status
    np.testing.assert_allclose(sol.position("tc")[0, :2], tip, atol=1e-8)
    later = rocker_tips(np.pi / 2 + 0.05)[1]
    np.testing.assert_allclose(sol.position("tc")[-1, :2], later, atol=1e-6)


def test_free_coordinates_of_a_kinematic_analysis_begin_where_initial_says() -> None:
    mech = four_bar("INITIAL (jA0.angle = 2, jA0.rate = 3);")
    sol = lw.analyse(mech, times=[0.0, 1.0])
    angles = sol.joint("jA0")[:, 0]
    np.testing.assert_allclose(angles, 2.0, atol=1e-9)
    assert any("'jA0.rate' is left out" in note for note in sol.status.notes)


@pytest.mark.parametrize("turns", [0, -3, 3000, 10**6])
def test_angles_of_any_number_of_turns_are_met_at_once(turns: int) -> None:
    mech = four_bar(f"INITIAL (jA0.angle = {2.0 + 2.0 * np.pi * turns!r});")
    q, _ = mech.initial_state()
    assert q[mech.joints["jA0"].q_slice] == pytest.approx(2.0 + 2.0 * np.pi * turns, rel=1e-14)
    tip = mech.pose(q, "tc")[:2, 3]
    assert min(np.linalg.norm(tip - x) for x in rocker_tips(2.0)) < 1e-8


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("decimals", [4, 6, 12])
def test_values_that_say_the_same_twice_agree_to_their_digits(decimals: int, size: float) -> None:
    tip, crank = rocker_tips(1.3)[1], 1.3
    coupler = np.arctan2(*(tip - [np.cos(crank), np.sin(crank)])[::-1]) - crank
    values = {"jA0.angle": crank, "jB0.angle": rocker_angle(tip), "jA.angle": coupler}
    typed = ", ".join(f"{name} = {value:.{decimals}f}" for name, value in values.items())
    mech = four_bar(f"INITIAL ({typed});", size)
    q, v = mech.initial_state()
    np.testing.assert_allclose(mech.kernels.initial_values(q, v)[0], list(values.values()), atol=2.0 * 10.0**-decimals)
    np.testing.assert_allclose(mech.pose(q, "tc"), mech.pose(q, "tc"))
    assert np.max(np.abs(mech.kernels.position_correction(q)[1])) < 1e-12 * max(size, 1.0)


def test_a_value_off_in_its_last_digits_contradicts() -> None:
    tip = rocker_tips(1.3)[1]
    with pytest.raises(ModelError, match=r"of 'jA0.angle', 'jB0.angle' contradict each other"):
        four_bar(f"INITIAL (jA0.angle = 1.3, jB0.angle = {rocker_angle(tip) + 0.0021234567!r});").initial_state()


def test_the_nearest_state_that_exists_is_reported() -> None:
    # Crank and coupler in line reach farthest: r = 1 + √5 from the origin and 2 from (2, 0).
    farthest = (CRANK + COUPLER) ** 2 / 4.0
    with pytest.raises(ModelError, match=rf"'jB' does not allow 20000; .* has tc.x = {farthest:.4f}"):
        four_bar("INITIAL (tc.x = 20000);").initial_state()


def test_a_point_beyond_its_crank_is_blamed_on_the_joint_of_the_crank() -> None:
    """The loop has no share in it: the crank alone reaches 1 m."""
    with pytest.raises(ModelError, match=r"'ta.x' cannot be met: joint 'jA0' does not allow 3; .* has ta.x = 1;"):
        four_bar("INITIAL (ta.x = 3);").initial_state()


def test_a_value_names_the_driver_that_forbids_it() -> None:
    with pytest.raises(ModelError, match=r"driver 'd', joint 'jB' do not allow 2 rad .*; .*jB0.angle = 1.57"):
        four_bar(f"{DRIVEN} INITIAL (jB0.angle = 2);").initial_state()
    with pytest.raises(ModelError, match=r"is not what driver 'd' says: 2 rad .* against 1.5708 rad \(90°\) at"):
        four_bar(f"{DRIVEN} INITIAL (jA0.angle = 2);").initial_state()


def test_kinematic_analysis_refuses_what_contradicts_a_driver() -> None:
    mech = four_bar(f"{DRIVEN} INITIAL (jA0.rate = 2);")
    with pytest.raises(ModelError, match=r"'jA0.rate' is not what driver 'd' says: 2 rad/s .* against 0.5 rad/s"):
        lw.analyse(mech, times=[0.0, 1.0])


def test_whole_turns_of_a_gear_are_those_that_are_given() -> None:
    model = """MODEL gears
    BODY g (ground);
    BODY a (mass = 1, inertia = (1,1,1));
    BODY b (mass = 1, inertia = (1,1,1));
    REVOLUTE JOINT j1 (triad = g, triad = a);
    REVOLUTE JOINT j2 (triad = g, triad = b);
    GEAR pair (joint = j2, joint = j1, ratio = 0.5);
    INITIAL (j1.angle = 7);
    ENDMODEL"""
    mech = lw.Mechanism(parse_mks(model))
    sol = lw.analyse(mech, times=[0.0, 1.0])
    r = sol.orientation("b")[0]
    turned = 2.0 * np.arctan2(r[3], r[0])
    assert np.cos(turned - 3.5) == pytest.approx(1.0)


def test_values_that_agree_to_their_digits_only_are_noted() -> None:
    tip = rocker_tips(1.3)[1]
    mech = four_bar(f"INITIAL (jA0.angle = 1.3, jB0.angle = {rocker_angle(tip):.4f});")
    for analysis in ("kinematic", "dynamic"):
        notes = lw.analyse(mech, times=[0.0, 0.01], analysis=analysis).status.notes
        assert any("'jB0.angle' agree with the others to" in note for note in notes)


SPATIAL = """MODEL rssr
BODY g (ground); BODY a; BODY c;
TRIAD foot (associated body = g, origin = (3,0,1), h = (0,1,0), f = (0,0,1));
TRIAD ta (associated body = a, origin = (1,0,0));
TRIAD tc (associated body = c, origin = (2,0,0));
REVOLUTE JOINT j1 (triad = g, triad = a);
REVOLUTE JOINT j3 (triad = foot, triad = c);
ROD rod (triad = ta, triad = tc, length = 3);
DRIVER d (j1.angle = 0.5 + TIME);
INITIAL (j3.angle = %r);
ENDMODEL"""


def test_both_assembly_modes_of_a_spatial_four_bar_are_met() -> None:
    # |(3 + 2 sin x, 0, 1 + 2 cos x) − a| = 3 is linear in sin x and cos x, with a the crank's end.
    a = np.array([np.cos(0.5), np.sin(0.5), 0.0])
    base = np.array([3.0, 0.0, 1.0]) - a
    right = (9.0 - 4.0 - base @ base) / 4.0  # base_x sin x + base_z cos x
    size, phase = np.hypot(base[0], base[2]), np.arctan2(base[0], base[2])
    for side in (1.0, -1.0):
        angle = float(phase + side * np.arccos(right / size))
        q, _ = (mech := lw.Mechanism(parse_mks(SPATIAL % angle))).initial_state()
        apart = mech.pose(q, "tc")[:3, 3] - mech.pose(q, "ta")[:3, 3]
        assert np.linalg.norm(apart) == pytest.approx(3.0, abs=1e-12)
        assert q[mech.joints["j1"].q_slice] == pytest.approx(0.5, abs=1e-12)
        assert q[mech.joints["j3"].q_slice] == pytest.approx(angle, abs=1e-12)
