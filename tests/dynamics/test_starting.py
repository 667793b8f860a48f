"""The state at which motion begins holds what is given, closes what is closed, and names what contradicts."""

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import ModelError
from linkwright.formats.mks.mks_reader import parse_mks

CHAIN = """MODEL chain
BODY g (ground);
BODY a (pqr = [(0,0,0), (0,1,0), (1,0,0)], com = (0.5,0,0), mass = 1, inertia = (0.1,0.1,0.1));
BODY b (pqr = [(1,0,0), (1,1,0), (2,0,0)], com = (0.5,0,0), mass = 1, inertia = (0.1,0.1,0.1));
TRIAD foot (associated body = g, h = (0,1,0), f = (1,0,0));
TRIAD tip (associated body = a, origin = (1,0,0));
TRIAD end (associated body = b, origin = (1,0,0));
REVOLUTE JOINT h1 (triad = foot, triad = a);
REVOLUTE JOINT h2 (triad = tip, triad = b);
"""
FOUR_BAR = """MODEL four
BODY g (ground);
BODY a (pqr = [(0,0,0), (0,0,1), (0,1,0)], com = (0.5,0,0), mass = 1, inertia = (0.1,0.1,0.1));
BODY b (pqr = [(0,1,0), (0,1,1), (2,2,0)], com = (0.5,0,0), mass = 1, inertia = (0.1,0.1,0.1));
BODY c (pqr = [(2,0,0), (2,0,1), (2,2,0)], com = (0.5,0,0), mass = 1, inertia = (0.1,0.1,0.1));
TRIAD foot (associated body = g, origin = (2,0,0));
TRIAD ta (associated body = a, origin = (1,0,0));
TRIAD tb (associated body = b, origin = (sqrt(5),0,0));
TRIAD tc (associated body = c, origin = (2,0,0));
REVOLUTE JOINT j1 (triad = g, triad = a);
REVOLUTE JOINT j2 (triad = ta, triad = b);
REVOLUTE JOINT j3 (triad = foot, triad = c);
REVOLUTE JOINT j4 (triad = tb, triad = tc);
"""


def mechanism(model: str, more: str) -> lw.Mechanism:
    return lw.Mechanism(parse_mks(f"{model}{more}\nENDMODEL"))


def joints(mech: lw.Mechanism, values: np.ndarray) -> dict[str, float]:
    return {joint.name: float(values[k]) for k, joint in enumerate(mech.joints)}


def test_what_is_not_said_is_as_drawn_and_at_rest() -> None:
    mech = mechanism(CHAIN, "INITIAL (h1.angle = 3, h2.rate = 2);")
    q, v = mech.initial_state()
    np.testing.assert_allclose(q, [3.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(v, [0.0, 2.0], atol=1e-12)


def test_places_and_velocities_of_points_are_met() -> None:
    mech = mechanism(CHAIN, "INITIAL (end.z = 0.5, end.vx = 1, b.wy = 2);")
    q, v = mech.initial_state()
    assert mech.pose(q, "end")[2, 3] == pytest.approx(0.5, abs=1e-10)
    twist = mech.twist(q, v, "end", "aligned")
    assert (twist[0], twist[4]) == (pytest.approx(1.0), pytest.approx(2.0))


def test_a_drawing_that_is_singular_is_left_aside() -> None:
    # Drawn in a line, no small turn changes the distance to first order.
    mech = mechanism(CHAIN, "INITIAL (distance(end, g) = 1, h1.angle = 20 deg);")
    q, _ = mech.initial_state()
    assert q[0] == pytest.approx(np.radians(20))
    assert np.linalg.norm(mech.pose(q, "end")[:3, 3]) == pytest.approx(1.0)


@pytest.mark.parametrize("held", ["j1.angle = 3, j1.rate = 2", "j4.angle = 1.5, j3.rate = 1", "tc.x = 1.2, tc.vy = 1"])
def test_a_loop_is_closed_about_what_is_given(held: str) -> None:
    mech = mechanism(FOUR_BAR, f"INITIAL ({held});")
    q, v = mech.initial_state()
    assert np.max(np.abs(mech.kernels.position_correction(q)[1])) < 1e-10
    assert np.max(np.abs(mech.kernels.velocity_projection(q, v)[1])) < 1e-9
    values, _ = mech.kernels.initial_values(q, v)
    wanted = [float(x.value.evaluate({})) for x in mech.description.initial]
    np.testing.assert_allclose(values, wanted, atol=1e-9)


def test_a_driver_moves_the_beginning_with_it() -> None:
    mech = mechanism(FOUR_BAR, "DRIVER d (j1.angle = 90 deg + 2*TIME);")
    q, v = mech.initial_state(t=0.1)
    assert joints(mech, q)["j1"] == pytest.approx(np.pi / 2 + 0.2)
    assert joints(mech, v)["j1"] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("model", "more", "told"),
    [
        (CHAIN, "INITIAL (distance(end, g) = 5);", r"initial value of 'distance\(end, g\)' cannot be met"),
        (CHAIN, "INITIAL (tip.y = 5);", r"'tip.y' cannot be met: its joints do not allow 5; .* tip.y = 0"),
        (CHAIN, "INITIAL (h1.angle = 1, h2.angle = 2, end.x = 1);", "values of 'h1.angle', 'h2.angle', 'end.x' contra"),
        (FOUR_BAR, "INITIAL (j1.angle = 1, j3.angle = 2);", "initial values of 'j1.angle', 'j3.angle' contradict"),
        (FOUR_BAR, "INITIAL (j1.rate = 1, j3.rate = 2);", "initial rates of 'j1.rate', 'j3.rate' contradict"),
        (FOUR_BAR, "DRIVER d (j1.angle = 90 deg + TIME); INITIAL (j1.rate = 3);", "is not what driver 'd' says"),
    ],
)
def test_contradictions_are_named(model: str, more: str, told: str) -> None:
    with pytest.raises(ModelError, match=told):
        mechanism(model, more).initial_state()


def test_parameters_may_say_how_motion_begins() -> None:
    mech = mechanism(CHAIN.replace("BODY g", "PARAMETER fast = 2;\nBODY g"), "INITIAL (h1.rate = 3*fast);")
    assert mech.initial_state()[1][0] == pytest.approx(6.0)
    assert mech.with_parameters(fast=1.0).initial_state()[1][0] == pytest.approx(3.0)


def test_a_simulation_begins_there() -> None:
    sol = lw.simulate(mechanism(CHAIN, "INITIAL (h1.angle = 1, h2.rate = 2);"), t_end=0.1)
    np.testing.assert_allclose(sol.q[0], [1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(sol.v[0], [0.0, 2.0], atol=1e-12)


@pytest.mark.parametrize("angle", ["1e9", "1e15", "1e300"])
def test_an_angle_that_rounding_makes_too_coarse_for_its_loop_is_refused(angle: str) -> None:
    mech = mechanism(FOUR_BAR, f"INITIAL (j1.angle = {angle});")
    with pytest.raises(ModelError, match=r"joint 'j1' begins at .* whole turns may be left out"):
        lw.analyse(mech, analysis="dynamic", times=[0.0, 0.1])
