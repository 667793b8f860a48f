"""Assembly from rough drawings, and what is said where it fails."""

import numpy as np
import pytest
from linkages import about_z, four_bar, four_bar_top, kinematics, matrices, unit

import linkwright as lw
from linkwright.errors import AssemblyError, ModelError
from linkwright.model.expression import TIME

LENGTHS = (1.0, 3.0, 2.5, 3.0)


@pytest.mark.parametrize("seed", range(12))
def test_a_four_bar_drawn_a_quarter_off_and_turned_by_half_a_radian_goes_together(seed):
    rng = np.random.default_rng(seed)
    off = rng.uniform(-1.0, 1.0, (3, 3))
    off *= rng.uniform(0.2, 0.3, (3, 1)) / np.linalg.norm(off, axis=1)[:, None] * np.array([[1.0], [3.0], [2.5]])
    mech = four_bar(LENGTHS, 0.9 + TIME, 0.9, off=off, turn=rng.choice([-0.5, 0.5], 3))
    sol = lw.analyse(mech, times=[0.0, 0.1])
    assert sol.status
    np.testing.assert_allclose(sol.position("top"), four_bar_top(LENGTHS, 0.9 + sol.time), atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_bodies_turned_out_of_their_plane_go_together(seed):
    rng = np.random.default_rng(seed)
    d = four_bar(LENGTHS, None, 0.9).description
    k = kinematics(lw.Mechanism(d))
    for body in range(3):
        axis = rng.normal(size=3)
        w = 0.5 * axis / np.linalg.norm(axis)
        k.equations.start_r[body] = _turned(w) @ k.equations.start_r[body]
        k.equations.start_p[body] += rng.normal(size=3) * 0.15
    found = k.assemble(0.0, 1e-3)
    assert found.miss < 1e-10
    e = found.q[:, 3:]
    np.testing.assert_allclose(np.linalg.norm(e, axis=1), 1.0, atol=1e-14)


def _turned(w):
    angle = np.linalg.norm(w)
    x, y, z = w / angle
    k = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * k + (1.0 - np.cos(angle)) * k @ k


def test_a_mechanism_that_is_drawn_exactly_stays_as_drawn():
    k = kinematics(four_bar(LENGTHS, None, 0.9))
    found = k.assemble(0.0, 1e-3)
    np.testing.assert_allclose(found.q[:, :3], k.equations.start_p, atol=1e-12)


def _short():
    """Two bars of 1 m on pivots 5 m apart."""
    with lw.Builder("short") as b:
        for name, x in (("left", 0.0), ("right", 5.0)):
            b.place(b.body(name), (x, 0, 0), rotation=about_z(1.0))
            b.joint("revolute", b.triad(b.ground, origin=(x, 0, 0)), name, f"{name} foot")
        b.joint("revolute", b.triad("left", origin=(1, 0, 0)), b.triad("right", origin=(1, 0, 0)), "top")
    return b.build()


def test_bars_that_are_too_short_are_told_with_the_gap_at_the_joint_that_the_drawing_leaves_open():
    with pytest.raises(AssemblyError, match="cannot be assembled at t = 0: joint 'top' stays open") as told:
        lw.analyse(_short(), times=[0.0, 1.0])
    error = told.value
    # 3 m are missing, at whichever of the three joints is let go.
    assert set(error.misses) == {"joint 'left foot'", "joint 'top'", "joint 'right foot'"}
    np.testing.assert_allclose(list(error.misses.values()), 3.0, rtol=1e-4)
    assert "a gap of 3 m across the joint axis; check the lengths" in str(error)
    assert error.element == "top"


def test_the_report_on_freedom_says_that_a_mechanism_cannot_be_assembled():
    report = _short().dof()
    assert report.rank is None
    assert "cannot be assembled" in report.problem
    assert "'top' stays open" in report.problem
    assert "cannot be assembled" in str(report)


def test_the_report_on_freedom_of_a_mechanism_that_goes_together_tells_no_problem():
    report = four_bar(LENGTHS, None, 0.9).dof()
    assert (report.problem, report.degrees_of_freedom) == ("", 1)
    assert "assembled" not in str(report)


def _misfit(off, tolerance):
    """A four-bar whose last pivot is this far out of the plane of the others."""
    with lw.Builder("misfit") as b:
        crank, coupler, rocker = (b.body(name) for name in ("crank", "coupler", "rocker"))
        top = four_bar_top(LENGTHS, np.array(0.9))
        b.place(crank, rotation=about_z(0.9))
        b.place(coupler, unit(0.9), f=top - unit(0.9))
        b.place(rocker, (3, 0, 0), f=top - [3.0, 0.0, 0.0])
        motor = b.joint("revolute", b.ground, crank, "A")
        b.joint("revolute", b.triad(crank, origin=(1, 0, 0)), coupler, "B")
        b.joint("revolute", b.triad(coupler, origin=(3, 0, 0)), b.triad(rocker, origin=(2.5, 0, 0)), "C")
        b.joint("revolute", b.triad(b.ground, origin=(3, 0, off)), rocker, "D")
        b.driver("joint", motor, 0.9 + TIME)
        b.system(assembly_tolerance=tolerance)
    return b.build()


def test_a_small_misfit_is_told_if_it_is_above_the_assembly_tolerance():
    with pytest.raises(AssemblyError, match=r"0\.0005 m apart along the joint axis, out of plane") as told:
        lw.analyse(_misfit(5e-4, 1e-5))
    np.testing.assert_allclose(list(told.value.misses.values()), 5e-4, rtol=1e-4)


@pytest.mark.parametrize("size", [1e-9, 1e-8, 1e-6, 1e-4, 5e-4])
def test_a_misfit_such_as_rounded_numbers_make_is_no_harm(size):
    sol = lw.analyse(_misfit(size, 1e-3))
    assert sol.status, sol.status
    top = sol.position("coupler") + 3.0 * matrices(sol.orientation("coupler"))[:, :, 0]
    np.testing.assert_allclose(top[:, :2], four_bar_top(LENGTHS, 0.9 + sol.time)[:, :2], atol=10.0 * size)
    np.testing.assert_allclose(sol.joint("A")[:, 0], 0.9 + sol.time, atol=10.0 * size)


def test_a_joint_that_would_close_with_opposite_axes_is_named():
    """A bar held by two revolute joints whose axes are opposite as drawn and can never agree."""
    with lw.Builder("opposed") as b:
        b.body("bar")
        b.joint("revolute", b.ground, "bar", "hinge")
        b.joint("revolute", b.triad(b.ground, h=(0, 0, -1)), b.triad("bar"), "wrong")
    with pytest.raises(AssemblyError) as told:
        lw.analyse(b.build(), times=[0.0])
    assert told.value.element in ("hinge", "wrong")
    assert "opposite" in str(told.value)
    assert "turn one of its frames" in str(told.value)


@pytest.mark.parametrize("alpha", [20.0, 30.0, 40.0])
def test_a_state_with_opposite_axes_gives_way_to_one_that_closes_as_drawn(alpha):
    """A Bennett linkage without poses, its driver at the flat position, where both kinds of states are near."""
    twists = np.radians([50.0, alpha, 50.0, alpha])
    ends = [((np.sin(x), 0, 0), {"h": (0, -np.sin(x), np.cos(x)), "f": (1, 0, 0)}) for x in twists]
    with lw.Builder("Bennett") as b:
        links = [b.ground, *(b.body(f"l{k}") for k in range(1, 4))]
        joints = []
        for k in range(4):
            carried = links[k + 1] if k < 3 else b.triad(b.ground)
            joints.append(b.joint("revolute", b.triad(links[k], ends[k][0], **ends[k][1]), carried, f"r{k}"))
        b.driver("joint", joints[0], TIME)
    sol = lw.analyse(b.build(), times=np.linspace(0.0, 6.3, 8))
    assert sol.status, sol.status
    np.testing.assert_allclose(sol.joint("r0")[:, 0], sol.time, atol=1e-9)
    # tan(r0/2) tan(r1/2) is constant: Bennett's relation.
    ratio = np.tan(0.5 * sol.joint("r0")[1:, 0]) * np.tan(0.5 * sol.joint("r1")[1:, 0])
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)


def test_the_start_of_a_law_may_be_far_from_the_drawing():
    mech = four_bar(LENGTHS, 2.4 + TIME, 0.9)
    sol = lw.analyse(mech, times=[0.0, 0.1])
    np.testing.assert_allclose(sol.position("crank")[0], 0.0, atol=1e-10)
    np.testing.assert_allclose(sol.position("coupler"), unit(2.4 + sol.time), atol=1e-9)
    # The rocker is on the side on which it was drawn.
    np.testing.assert_allclose(sol.position("top"), four_bar_top(LENGTHS, 2.4 + sol.time), atol=1e-9)


def test_a_body_that_nothing_connects_is_told():
    with lw.Builder("alone") as b:
        b.joint("revolute", b.ground, b.body("held"))
        b.joint("revolute", b.body("one"), b.body("two"))
    with pytest.raises(ModelError, match="'one'"):
        lw.analyse(b.build(), times=[0.0])


def test_an_analysis_starts_when_its_times_say():
    sol = lw.analyse(four_bar(LENGTHS, 0.9 + TIME, 0.9), times=[0.7, 0.8])
    np.testing.assert_allclose(sol.joint("A")[:, 0], [1.6, 1.7], atol=1e-12)
