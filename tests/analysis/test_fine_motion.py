"""Motions of many points in the tree's coordinates, against the absolute form, which is their oracle."""

import math
from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from linkwright.analysis import fine_motion
from linkwright.model.body_motion import QUANTITIES

MODELS = Path(__file__).parents[2] / "examples" / "models"
POINTS = 700


@pytest.fixture(autouse=True)
def _few_points(monkeypatch):
    monkeypatch.setattr(fine_motion, "FEWEST", 500)
    monkeypatch.setattr(fine_motion, "EACH", 0)


def both(monkeypatch, mech, times, **settings):
    """The solution, and that of the absolute form alone."""
    ours = lw.analyse(mech, times=times, **settings)
    with monkeypatch.context() as m:
        m.setattr(fine_motion, "worthwhile", lambda *_: False)
        oracle = lw.analyse(mech, times=times, **settings)
    return ours, oracle


def assert_same(ours, oracle, size, *, fine=True):
    assert (ours.states is not None) == fine
    assert ours.status == oracle.status
    assert len(ours) == len(oracle)
    for name in QUANTITIES:
        x, y = ours.arrays[name], oracle.arrays[name]
        scale = max(float(np.abs(y).max(initial=0.0)), size if name == "position" else 1.0)
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-9 * scale, err_msg=name)
    for name in "qva":
        x, y = getattr(ours, name), getattr(oracle, name)
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-9 * max(1.0, np.abs(y).max()), err_msg=name)


@pytest.mark.parametrize("name", ["four_bar", "peaucellier", "quick_return", "cardan", "delta", "stewart"])
def test_examples_move_as_in_the_absolute_form(monkeypatch, name):
    mech = lw.load(MODELS / f"{name}.mks")
    system = mech.description.system
    times = np.linspace(system.start, system.end, 3 * POINTS if name == "delta" else POINTS)
    ours, oracle = both(monkeypatch, mech, times)
    assert_same(ours, oracle, mech.description.length_scale)
    for joint in mech.description.joint_names:
        np.testing.assert_allclose(ours.joint(joint), oracle.joint(joint), rtol=0, atol=1e-8)


def test_a_freedom_that_is_not_excited_moves_as_in_the_absolute_form(monkeypatch):
    mech = lw.load(MODELS / "slider_crank.mks")
    ours, oracle = both(monkeypatch, mech, np.linspace(0.0, 8.0, POINTS))
    assert "1 undriven degree of freedom" in str(ours.status)
    assert_same(ours, oracle, mech.description.length_scale)


def test_pivoting_is_left_to_the_absolute_form(monkeypatch):
    mech = lw.load(MODELS / "slider_crank.mks")
    ours, oracle = both(monkeypatch, mech, np.linspace(0.0, 0.5, POINTS), freedom="pivoting")
    assert_same(ours, oracle, mech.description.length_scale, fine=False)


def test_a_freedom_that_is_excited_is_left_to_the_absolute_form(monkeypatch):
    mech = lw.load(MODELS / "rssr.mks")
    ours, oracle = both(monkeypatch, mech, np.linspace(0.0, 1.0, POINTS))
    assert_same(ours, oracle, mech.description.length_scale, fine=False)


def test_a_freedom_beside_redundant_equations_is_left_to_the_absolute_form(monkeypatch, tmp_path):
    text = planar_text((1.0, 3.0, 2.5, 3.0)).replace("DRIVER motor (a.angle = 30 deg + TIME);", "")
    mech = loaded(tmp_path, text)
    ours, oracle = both(monkeypatch, mech, np.linspace(0.0, 1.0, POINTS), analysis="kinematic")
    assert ours.status == oracle.status
    np.testing.assert_allclose(ours.arrays["position"], oracle.arrays["position"], atol=1e-12)


def planar_text(lengths, unit=1.0, law="30 deg + TIME", tilt=0.0):
    """A driven four-bar as a model; the plane is turned about x."""
    crank, coupler, rocker, base = (unit * x for x in lengths)
    c, s = math.cos(tilt), math.sin(tilt)
    h = f"h = (0, {-s!r}, {c!r})"

    def at(x, y):
        return f"({x!r}, {y * c!r}, {y * s!r})"

    return f"""MODEL planar
SYSTEM (KINEMATIC ANALYSIS, starting time = 0, ending time = 6.3, print interval = 0.1);
PARAMETER more = 0;
BODY base (ground);
BODY crank_bar (origin = {at(0.0, 0.0)}, {h}, f = {at(1.0, 0.5)});
BODY coupler_bar (origin = {at(crank, 0.5 * unit)}, {h}, f = {at(1.0, 0.7)});
BODY rocker_bar (origin = {at(base, 0.0)}, {h}, f = {at(0.0, 1.0)});
TRIAD left (associated body = base, origin = (0, 0, 0), {h}, f = (1, 0, 0));
TRIAD right (associated body = base, origin = ({base!r} + more, 0, 0), {h}, f = (1, 0, 0));
TRIAD crank_tip (associated body = crank_bar, origin = ({crank!r}, 0, 0));
TRIAD coupler_end (associated body = coupler_bar, origin = ({coupler!r}, 0, 0));
TRIAD rocker_tip (associated body = rocker_bar, origin = ({rocker!r}, 0, 0));
REVOLUTE JOINT a (triad = left, triad = crank_bar);
REVOLUTE JOINT b (triad = crank_tip, triad = coupler_bar);
REVOLUTE JOINT c (triad = coupler_end, triad = rocker_tip);
REVOLUTE JOINT d (triad = right, triad = rocker_bar);
DRIVER motor (a.angle = {law});
ENDMODEL
"""


def loaded(folder, text):
    file = folder / "planar.mks"
    file.write_text(text)
    return lw.load(file)


@pytest.mark.parametrize("seed", range(4))
def test_random_four_bars_in_any_unit_and_plane(monkeypatch, tmp_path, seed):
    rng = np.random.default_rng(seed)
    lengths = (rng.uniform(0.6, 1.1), rng.uniform(2.6, 3.2), rng.uniform(2.4, 2.9), rng.uniform(2.7, 3.2))
    unit, tilt = (1.0, 1e-3, 1e3, 25.4)[seed], (0.0, 0.7, 0.0, -2.0)[seed]
    mech = loaded(tmp_path, planar_text(lengths, unit, "0.4 + 0.3*TIME^2 - 0.02*TIME^3", tilt))
    ours, oracle = both(monkeypatch, mech, np.linspace(0.0, 9.0, POINTS))
    assert_same(ours, oracle, mech.description.length_scale)


def test_whole_turns_are_accumulated(monkeypatch, tmp_path):
    mech = loaded(tmp_path, planar_text((1.0, 3.0, 2.5, 3.0), law="62.9 + TIME"))
    times = np.linspace(0.0, 40.0, 4 * POINTS)
    ours, oracle = both(monkeypatch, mech, times)
    assert_same(ours, oracle, 3.0)
    np.testing.assert_allclose(ours.joint("a")[:, 0], 62.9 + times, atol=1e-12)


@pytest.mark.parametrize("law", ["0.5 + abs(TIME - 1)", "if(TIME < 1, TIME, TIME + 0.3)", "sqrt(1.9 - TIME)"])
def test_laws_with_corners_jumps_and_no_value_are_left_to_the_absolute_form(monkeypatch, tmp_path, law):
    mech = loaded(tmp_path, planar_text((1.0, 3.0, 2.5, 3.0), law=law))
    ours, oracle = both(monkeypatch, mech, np.linspace(0.0, 2.0, POINTS))
    assert_same(ours, oracle, 3.0, fine=False)


def test_a_short_pulse_of_a_law_is_not_overlooked(monkeypatch, tmp_path):
    law = "TIME + 0.4*if(TIME > 1.0003, 1, 0)*if(TIME < 1.004, 1, 0)"
    mech = loaded(tmp_path, planar_text((1.0, 3.0, 2.5, 3.0), law=law))
    ours, oracle = both(monkeypatch, mech, np.linspace(0.0, 2.0, POINTS))
    assert_same(ours, oracle, 3.0, fine=False)
    assert not ours.status


@pytest.mark.parametrize("lengths", [(1.0, 3.0, 1.0, 3.0), (1.5, 2.0, 1.0, 3.5)])
def test_singular_positions_are_passed_or_explained_as_before(monkeypatch, tmp_path, lengths):
    mech = loaded(tmp_path, planar_text(lengths, law="0.3 + TIME"))
    ours, oracle = both(monkeypatch, mech, np.linspace(0.0, 4.0, POINTS))
    assert_same(ours, oracle, 3.0, fine=False)
    assert ours.status.notes or not ours.status


def test_a_mechanism_at_other_parameters_uses_the_code_of_its_source(monkeypatch, tmp_path):
    mech = loaded(tmp_path, planar_text((1.0, 3.0, 2.5, 3.0)))
    times = np.linspace(0.0, 6.3, POINTS)
    other = mech.with_parameters(more=0.1)
    for one in (mech, other, mech.with_parameters(more=-0.05)):
        ours, oracle = both(monkeypatch, one, times)
        assert_same(ours, oracle, 3.0)
    assert not np.allclose(lw.analyse(mech, times=times).q, lw.analyse(other, times=times).q, atol=1e-3)


def test_a_saved_motion_opens_again(tmp_path):
    mech = lw.load(MODELS / "four_bar.mks")
    solution = lw.analyse(mech, times=np.linspace(0.0, 6.0, POINTS))
    solution.save(tmp_path / "motion.nc")
    again = lw.open(tmp_path / "motion.nc")
    for name in QUANTITIES:
        np.testing.assert_array_equal(again.arrays[name], solution.arrays[name])


def test_a_warm_motion_assembles_nothing_anew(monkeypatch):
    mech = lw.load(MODELS / "four_bar.mks")
    first = lw.analyse(mech, times=np.linspace(0.0, 6.0, POINTS))

    def refuse(*_, **__):
        raise AssertionError("assembled anew")

    monkeypatch.setattr(fine_motion, "MotionStart", refuse)
    second = lw.analyse(mech, times=np.linspace(0.0, 3.0, POINTS))
    np.testing.assert_array_equal(first.q[0], second.q[0])


def test_arrays_of_a_motion_cannot_be_made_writable():
    mech = lw.load(MODELS / "four_bar.mks")
    ours = lw.analyse(mech, times=np.linspace(0.0, 6.0, POINTS))
    assert ours.states is not None
    for x in (ours.arrays["position"], ours.arrays["acceleration"], ours.q, ours.a):
        with pytest.raises(ValueError, match="WRITEABLE"):
            x.setflags(write=True)
