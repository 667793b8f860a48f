"""Simulated, static and inverse dynamic cases of a study, against each of them by `lw.analyse`."""

from pathlib import Path

import numpy as np
import pytest
from test_engine import agree

import linkwright as lw
from linkwright.sweeps.case_dynamics import Dynamic
from linkwright.sweeps.case_engine import Engine
from linkwright.sweeps.task import make_task

MODELS = Path(__file__).parents[2] / "examples" / "models"

PENDULUM = """MODEL swing
SYSTEM (DYNAMIC ANALYSIS, ending time = 1, print interval = 0.1, relative tolerance = 1e-9);
PARAMETER length = 0.5; PARAMETER m = 2; PARAMETER start = 0.4; PARAMETER c = 0.1;
BODY g (ground);
BODY rod (mass = m, com = (length, 0, 0), inertia = (0.001, m*length^2/12, m*length^2/12));
TRIAD pivot (associated body = g, h = (0, -1, 0), f = (0, 0, -1));
TRIAD tip (associated body = rod, origin = (length, 0, 0));
REVOLUTE JOINT hinge (triad = pivot, triad = rod);
DAMPER rubs (joint = hinge, damping = c);
INITIAL (hinge.angle = start + length, hinge.rate = 2*start);
ENDMODEL
"""
NAMES = ("length", "m", "start", "c")
CASES = np.array([[0.5, 2.0, 0.4, 0.1], [0.8, 1.0, -0.3, 0.0], [0.3, 5.0, 2.0, 0.4]])


@pytest.fixture
def swing(tmp_path):
    path = tmp_path / "swing.mks"
    path.write_text(PENDULUM)
    return path


@pytest.mark.parametrize(
    "settings",
    [{}, pytest.param({"method": "dop853", "rtol": 1e-10}, marks=pytest.mark.slow), {"method": "rk4", "dt": 0.007}],
    ids=["rk45", "dop853", "rk4"],
)
def test_pendulums_swing_as_each_alone(swing, settings):
    outputs = ["hinge.angle", "hinge.rate", "tip.z", "high = max(tip.vx)"]
    task = make_task(swing, NAMES, outputs, analysis=lw.AnalysisSettings(**settings))
    assert isinstance(Engine(task).way, Dynamic)
    found = agree(task, CASES, 1e-10)
    np.testing.assert_allclose(found.arrays["hinge.angle"][:, 0], CASES[:, 2] + CASES[:, 0], atol=1e-14)


def test_an_impossible_mass_is_the_reason_of_its_case_alone(swing):
    task = make_task(swing, NAMES, ["hinge.angle"])
    agree(task, np.array([CASES[0], [0.5, -1.0, 0.4, 0.1], CASES[1]]), 1e-10)


def test_forces_are_outputs_too(swing):
    task = make_task(swing, NAMES, ["hinge.fz", "rubs.torque", "most = max(hinge.fx)"])
    agree(task, CASES[:2], 1e-8)


LOOP = """MODEL loop
SYSTEM (INVERSE DYNAMIC ANALYSIS, ending time = 2, print interval = 0.25);
PARAMETER a = 0.2; PARAMETER b = 0.6; PARAMETER m = 2;
GRAVITY (0, -9.81, 0);
BODY g (ground);
BODY crank (f = (0, 1, 0), mass = m, com = (a/2, 0, 0), inertia = (0.01, 0.01, 0.01));
BODY rod (origin = (0, a, 0), f = (sqrt(b^2-a^2), -a, 0), mass = m, com = (b/2, 0, 0), inertia = (0.01, 0.03, 0.03));
BODY block (origin = (sqrt(b^2-a^2), 0, 0), mass = 3, inertia = (0.1, 0.1, 0.1));
TRIAD pin (associated body = crank, origin = (a, 0, 0));
TRIAD eye (associated body = rod, origin = (b, 0, 0));
TRIAD rail (associated body = g, h = (1, 0, 0), f = (0, 1, 0));
TRIAD shoe (associated body = block, h = (1, 0, 0), f = (0, 1, 0));
REVOLUTE JOINT turn (triad = g, triad = crank);
REVOLUTE JOINT elbow (triad = pin, triad = rod);
REVOLUTE JOINT wrist (triad = eye, triad = block);
TRANSLATIONAL JOINT slide (triad = rail, triad = shoe);
DRIVER motor (turn.angle = pi/2 + TIME);
ENDMODEL
"""


@pytest.fixture
def loop(tmp_path):
    path = tmp_path / "loop.mks"
    path.write_text(LOOP)
    return path


@pytest.mark.parametrize("analysis", ["inverse dynamic", pytest.param("dynamic", marks=pytest.mark.slow)])
def test_driven_loops_need_the_forces_that_each_alone_needs(loop, analysis):
    task = make_task(loop, ("a", "b", "m"), ["motor.torque", "block.x"], analysis=analysis, times=np.linspace(0, 1, 6))
    agree(task, np.array([[0.2, 0.6, 2.0], [0.15, 0.7, 1.0]]), 1e-8)


CRANK = """MODEL crank
SYSTEM (DYNAMIC ANALYSIS, ending time = 0.3, print interval = 0.1, relative tolerance = 1e-9);
PARAMETER r = 0.1; PARAMETER l = 0.3; PARAMETER mr = 1; PARAMETER mb = 2;
BODY g (ground);
BODY crank (mass = 1, com = (r/2, 0, 0), inertia = (0.001, 0.01, 0.01), origin = (0, 0, 0));
BODY rod (mass = mr, com = (l/2, 0, 0), inertia = (0.001*mr, 0.01*mr, 0.01*mr), origin = (r, 0, 0));
BODY block (mass = mb, origin = (r + l, 0, 0));
TRIAD a (associated body = crank, origin = (r, 0, 0));
TRIAD b (associated body = rod, origin = (l, 0, 0));
TRIAD rail (associated body = g, h = (1, 0, 0), f = (0, 0, 1));
TRIAD shoe (associated body = block, h = (1, 0, 0), f = (0, 0, 1));
REVOLUTE JOINT jo (triad = g, triad = crank);
REVOLUTE JOINT ja (triad = a, triad = rod);
REVOLUTE JOINT jb (triad = b, triad = block);
TRANSLATIONAL JOINT slide (triad = rail, triad = shoe);
INITIAL (jo.angle = 0.5, jo.rate = 3);
ENDMODEL
"""


@pytest.mark.parametrize(
    ("names", "cases", "fixed"),
    [
        (("mb",), [[0.0], [1.0], [2.0]], {}),
        (("mr", "l"), [[0.0, 0.3], [1.0, 0.35]], {}),
        (("l",), [[0.3], [0.35]], {"mb": 0.0, "mr": 0.0}),
    ],
)
def test_bodies_without_mass_that_loops_move_are_simulated_in_studies_as_alone(tmp_path, names, cases, fixed):
    path = tmp_path / "crank.mks"
    path.write_text(CRANK)
    task = make_task(path, names, ["block.x", "f = final(jo.rate)"], parameters=fixed)
    found = agree(task, np.array(cases), 1e-8)
    assert not any(found.reasons)


@pytest.mark.slow
def test_suspensions_ride_as_each_alone():
    outputs = ["chassis.z", "heave.rate", "top = max(hub.z)"]
    task = make_task(MODELS / "suspension.mks", ("car", "k", "c"), outputs, times=np.linspace(0.0, 3.0, 31))
    # Tyres leave the road: what rounding makes of such a corner is within the tolerance of the steps.
    agree(task, np.array([[320.0, 52_000.0, 7000.0], [380.0, 64_000.0, 8500.0]]), 1e-6)


@pytest.mark.slow
def test_suspensions_rest_as_each_alone():
    task = make_task(MODELS / "suspension.mks", ("car", "k"), ["chassis.z"], analysis="static", times=[0.0])
    agree(task, np.array([[320.0, 52_000.0], [380.0, 64_000.0]]), 1e-8)


def test_what_the_reader_alone_refuses_is_the_reason_of_its_case(swing):
    task = make_task(swing, ("c",), ["hinge.angle", "rubs.torque"])
    found = agree(task, np.array([[0.1], [-0.2], [0.0]]), 1e-8)
    assert "is negative; give 0 or more" in found.reasons[1]
    alone = Engine(task).run(np.array([[-0.2]]))
    assert alone.reasons == found.reasons[1:2]
    assert alone.arrays["hinge.angle"].shape == (1, 11)


def test_cases_that_all_fail_have_reasons_and_no_forces(swing):
    task = make_task(swing, NAMES, ["rubs.torque"], analysis="static", times=[0.0])
    found = Engine(task).run(np.array([[0.5, -1.0, 0.4, 0.1]]))
    assert "mass" in found.reasons[0]
    assert np.isnan(found.arrays["rubs.torque"]).all()


def test_a_case_in_which_nothing_has_a_mass_is_told(swing):
    agree(make_task(swing, NAMES, ["hinge.angle"]), np.array([CASES[0], [0.5, 0.0, 0.4, 0.1]]), 1e-9)


PARALLELOGRAM = """MODEL cranks
SYSTEM (DYNAMIC ANALYSIS, ending time = 0.3, print interval = 0.05, relative tolerance = 1e-11);
PARAMETER m = 1; PARAMETER start = -0.5;
GRAVITY (0, -9.81, 0);
BODY g (ground);
BODY one (f = (cos(start), sin(start), 0), mass = m, com = (0.5, 0, 0), inertia = (0.01, 0.1, 0.1));
BODY bar (origin = (cos(start), sin(start), 0), mass = 1, com = (0.5, 0, 0), inertia = (0.01, 0.1, 0.1));
BODY two (origin = (2, 0, 0), f = (cos(start), sin(start), 0), mass = m, com = (0.5, 0, 0), inertia = (0.01, 0.1, 0.1));
TRIAD foot (associated body = g, origin = (2, 0, 0));
TRIAD pin (associated body = one, origin = (1, 0, 0));
TRIAD eye (associated body = bar, origin = (2, 0, 0));
TRIAD tip (associated body = two, origin = (1, 0, 0));
REVOLUTE JOINT turn (triad = g, triad = one);
REVOLUTE JOINT near (triad = pin, triad = bar);
REVOLUTE JOINT follow (triad = foot, triad = two);
REVOLUTE JOINT far (triad = eye, triad = tip);
INITIAL (turn.rate = 6);
ENDMODEL
"""


def test_cases_pass_singular_positions_as_each_alone(tmp_path):
    path = tmp_path / "cranks.mks"
    path.write_text(PARALLELOGRAM)
    task = make_task(path, ("m", "start"), ["turn.angle", "turn.rate"], analysis=lw.AnalysisSettings(method="dop853"))
    assert isinstance(Engine(task).way, Dynamic)
    found = agree(task, np.array([[1.0, -0.5], [2.0, -0.4], [1.5, -0.3]]), 1e-7)
    assert np.all(found.arrays["turn.angle"][:, -1] > 0.2)


SIZED = """MODEL sized
SYSTEM ({} ANALYSIS, ending time = 0.5, print interval = 0.1);
PARAMETER s = 1;
GRAVITY (0, -9.81*s, 0);
BODY g (ground);
BODY crank (com = (0.1*s, 0, 0), mass = 1, inertia = (0.01*s^2, 0.01*s^2, 0.01*s^2));
BODY rod (origin = (0.2*s, 0, 0), com = (0.3*s, 0, 0), mass = 1, inertia = (0.02*s^2, 0.02*s^2, 0.02*s^2));
BODY block (origin = (0.8*s, 0, 0), h = (1, 0, 0), f = (0, 1, 0), mass = 2, inertia = (0.02*s^2, 0.02*s^2, 0.02*s^2));
TRIAD tip (associated body = crank, origin = (0.2*s, 0, 0));
TRIAD eye (associated body = rod, origin = (0.6*s, 0, 0));
TRIAD pin (associated body = block, h = (0, 1, 0), f = (1, 0, 0));
TRIAD rail (associated body = g, h = (1, 0, 0), f = (0, 1, 0));
REVOLUTE JOINT A (triad = g, triad = crank);
REVOLUTE JOINT B (triad = tip, triad = rod);
CYLINDRICAL JOINT C (triad = eye, triad = pin);
TRANSLATIONAL JOINT S (triad = rail, triad = block);
SPRING k (joint = S, stiffness = 50, rest = 0.6*s, damping = 0.5);
INITIAL (A.angle = 1);
ENDMODEL
"""


@pytest.mark.parametrize("analysis", ["DYNAMIC", "STATIC"])
def test_cases_a_million_times_as_large_move_and_rest_alike(tmp_path: Path, analysis: str) -> None:
    """The programs that serve all cases of a study take its lengths from each case, not from the model as written."""
    path = tmp_path / "sized.mks"
    path.write_text(SIZED.format(analysis))
    task = make_task(path, ("s",), ["A.angle", "shift = S.shift/s", "force = A.fx/s"])
    found = Engine(task).run(np.array([[1.0], [1e-6], [1e6]]))
    assert found.reasons == ["", "", ""]
    for name, values in found.arrays.items():
        np.testing.assert_allclose(values[1:], values[[0, 0]], rtol=1e-6, err_msg=name)
