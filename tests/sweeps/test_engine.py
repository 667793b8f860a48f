"""Kinematic cases side by side, against each of them by `lw.analyse`."""

from pathlib import Path

import numpy as np
import pytest
from reference_engine import Engine as Reference

import linkwright as lw
from linkwright.errors import ModelError, NameNotFound
from linkwright.model.parameter_cases import Cases
from linkwright.outputs.output_values import Motions
from linkwright.sweeps.case_engine import Engine
from linkwright.sweeps.study_model import StudyModel
from linkwright.sweeps.task import make_task
from linkwright.sweeps.tree_cases import TreeMarch

MODELS = Path(__file__).parents[2] / "examples" / "models"
SLIDER = MODELS / "slider_crank_parameters.mks"
NAMES = ("crank_length", "rod_length", "stroke")
OUTPUTS = [
    "travel = max(block.x) - min(block.x)",
    "angle = range(rev1.angle)",
    "rod = mean(distance(sph1pend1, sph2block)) - rod_length",
    "block.ax",
    "rev1.rate",
    "turning = pend2.wz + 0*rev1.angle",
    "trans1.shift",
    "when = argmax(block.vx)",
    "way = integral(block.vx) + final(TIME)*0",
    "share = rms(pend1.vy)*crank_length/2 + if(stroke < 2.5, 1, 0)",
]


def agree(task, values, tolerance=1e-9):
    ours, plain = Engine(task).run(values), Reference(task).run(values)
    assert ours.reasons == plain.reasons
    assert list(ours.arrays) == list(plain.arrays)
    for name, x in ours.arrays.items():
        y = plain.arrays[name]
        assert x.shape == y.shape, name
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance, err_msg=name)
    return ours


@pytest.fixture(scope="module")
def slider():
    return make_task(SLIDER, NAMES, OUTPUTS, times=np.linspace(0.0, 8.0, 81))


def test_the_slider_crank_with_parameters_is_the_papers_at_its_own_values(slider):
    ours, papers = lw.analyse(SLIDER), lw.analyse(MODELS / "slider_crank.mks")
    for body in ("pend1", "pend2", "block"):
        for quantity in ("position", "velocity", "acceleration", "angular_velocity"):
            one, other = getattr(ours, quantity)(body), getattr(papers, quantity)(body)
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


def test_cases_that_go_stop_and_do_not_assemble_are_as_each_alone(slider):
    good = [[6.0, 10.0, 3.0], [5.2, 9.7, 2.1]]
    stops, never, impossible = [5.0, 10.0, 5.9], [7.0, 10.0, 40.0], [11.0, 10.0, 3.0]
    found = agree(slider, np.array([*good, stops, never, impossible]))
    assert [bool(reason) for reason in found.reasons] == [False, False, True, True, True]
    assert "out of reach" in found.reasons[2]
    assert np.isfinite(found.arrays["block.ax"][2, 0])
    assert np.isnan(found.arrays["travel"][2:]).all()


def test_a_case_has_the_same_bits_whatever_comes_with_it(slider):
    values = np.random.default_rng(3).uniform([5.0, 9.5, 2.0], [7.0, 11.0, 3.0], (21, 3))
    engine = Engine(slider)
    whole = engine.run(values)
    parts = [engine.run(values[k : k + size]) for k, size in ((0, 1), (1, 7), (8, 13))]
    for name, x in whole.arrays.items():
        assert np.array_equal(x, np.concatenate([part.arrays[name] for part in parts]), equal_nan=True)


def test_many_cases_fill_several_batches(slider, monkeypatch):
    from linkwright.sweeps import case_engine as room

    values = np.random.default_rng(4).uniform([5.0, 9.5, 2.0], [7.0, 11.0, 3.0], (20, 3))
    one = Engine(slider).run(values)
    monkeypatch.setattr(room, "MEMORY", 1)
    assert Engine(slider)._at_once() == 8
    several = Engine(slider).run(values)
    assert np.array_equal(one.arrays["travel"], several.arrays["travel"])


@pytest.mark.slow
@pytest.mark.compiled
def test_a_four_bar_that_can_and_cannot_turn_round():
    task = make_task(
        MODELS / "four_bar.mks",
        ["crank", "rocker"],
        ["pen.x", "rocks = range(d.angle)", "fast = max(rocker_bar.wz)"],
        times=np.linspace(0.0, 6.3, 64),
    )
    agree(task, np.array([[1.0, 2.5], [0.7, 2.4], [2.9, 0.4]]))


@pytest.mark.slow
def test_a_quick_return_whose_arm_meets_its_dead_centre():
    outputs = ["ram.x", "stroke = range(ram.x)", "arm_swings.angle", "turned = final(wheel_turns.angle)"]
    task = make_task(MODELS / "quick_return.mks", ["crank", "height"], outputs, times=np.linspace(0.0, 6.2, 63))
    found = agree(task, np.array([[0.5, 1.0], [0.4, 1.1], [1.1, 1.0]]))
    assert found.reasons[:2] == ["", ""]


def test_a_parameter_that_depends_on_others_becomes_independent():
    task = make_task(SLIDER, ["middle"], ["initial(block.x)"])
    found = Engine(task).run(np.array([[8.0], [8.1]]))
    np.testing.assert_allclose(found.arrays["initial(block.x)"], [8.0, 8.1], atol=1e-9)


BAR = """MODEL turning
PARAMETER a = 1; PARAMETER idle = 4; PARAMETER weight = 2;
SYSTEM (KINEMATIC ANALYSIS, ending time = 1, print interval = 0.25);
BODY g (ground);
BODY bar (mass = weight);
TRIAD tip (associated body = bar, origin = (a, 0, 0));
REVOLUTE JOINT hinge (triad = g, triad = bar);
DRIVER motor (hinge.angle = TIME);
ENDMODEL
"""


@pytest.fixture
def bar(tmp_path):
    path = tmp_path / "bar.mks"
    path.write_text(BAR)
    return path


def test_where_the_reader_alone_knows_what_a_parameter_does_the_model_is_read_for_every_case(bar, monkeypatch):
    monkeypatch.setattr(StudyModel, "_is_read_anew", lambda self: True)
    engine = Engine(make_task(bar, ["a"], ["x = max(tip.x)"]))
    assert engine.way is None
    found = engine.run(np.array([[1.0], [2.0]]))
    np.testing.assert_allclose(found.arrays["x"], [1.0, 2.0])


@pytest.mark.parametrize("name", ["idle", "weight"])
def test_a_parameter_that_changes_nothing_is_named(bar, name):
    with pytest.raises(ModelError, match=f"'{name}' changes nothing in a kinematic analysis"):
        Engine(make_task(bar, ["a", name], ["tip.x"]))
    assert Engine(make_task(bar, ["a", name], [f"x = {name}*max(tip.x)"])).run(np.ones((1, 2))).reasons == [""]


def test_an_unknown_parameter_is_named(bar):
    with pytest.raises(NameNotFound, match="'b'"):
        Engine(make_task(bar, ["b"], ["tip.x"]))


def test_functions_of_a_solution_are_called_case_by_case(bar):
    def far(solution):
        return float(solution.position("tip")[-1, 1])

    def fails(solution):
        raise ValueError("no")

    engine = Engine(make_task(bar, ["a"], {"far": far}))
    np.testing.assert_allclose(engine.run(np.array([[1.0], [3.0]])).arrays["far"], np.sin(1.0) * np.array([1.0, 3.0]))
    assert "raised ValueError: no" in Engine(make_task(bar, ["a"], {"bad": fails})).run(np.ones((1, 1))).reasons[0]


def test_a_rod_of_no_length_is_the_reason_of_its_case(tmp_path):
    path = tmp_path / "rod.mks"
    rod = "BODY end (origin = (2, 0, 0)); ROD link (triad = tip, triad = end, length = long);"
    rail = "TRIAD rail (associated body = g, h = (1, 0, 0), f = (0, 1, 0));"
    rail += "TRIAD shoe (associated body = end, h = (1, 0, 0), f = (0, 1, 0));"
    slide = "TRANSLATIONAL JOINT slide (triad = rail, triad = shoe);"
    text = BAR.replace("PARAMETER a", "PARAMETER long = 3; PARAMETER a")
    path.write_text(text.replace("DRIVER", f"{rod}{rail}{slide} DRIVER"))
    found = agree(make_task(path, ["long"], ["end.x"]), np.array([[3.0], [-3.0], [0.0], [2.5]]))
    assert [bool(reason) for reason in found.reasons] == [False, True, True, False]


def test_cases_begin_on_the_assembly_mode_that_initial_gives(tmp_path):
    # A dyad of legs 2 and 3 from a driven crank: its other side, which no drawing shows.
    model = tmp_path / "dyad.mks"
    model.write_text(
        """MODEL dyad
        PARAMETER crank = 1; PARAMETER side = -1;
        BODY g (ground); BODY a; BODY b; BODY c;
        TRIAD foot (associated body = g, origin = (3, 0, 0));
        TRIAD ta (associated body = a, origin = (crank, 0, 0));
        TRIAD tb (associated body = b, origin = (3, 0, 0));
        TRIAD tc (associated body = c, origin = (2, 0, 0));
        REVOLUTE JOINT j1 (triad = g, triad = a);
        REVOLUTE JOINT j2 (triad = ta, triad = b);
        REVOLUTE JOINT j3 (triad = foot, triad = c);
        REVOLUTE JOINT j4 (triad = tb, triad = tc);
        DRIVER d (j1.angle = 0.3*TIME);
        INITIAL (j3.angle = side*acos((9 - 4 - (3 - crank)^2) / (4*(3 - crank))));
        ENDMODEL"""
    )
    task = make_task(model, ("crank", "side"), ["tc.y"], times=[0.0, 0.5])
    found = agree(task, np.array([[1.0, 1.0], [1.0, -1.0], [0.8, -1.0], [1.0, 0.5]]))
    y = found.arrays["tc.y"][:, 0]
    assert y[0] > 1.0 > -1.0 > y[1] == pytest.approx(-y[0], abs=1e-9)
    assert "j3.angle" in found.reasons[3]


# -- in the tree's coordinates ----------------------------------------------------------------------------------------
FOUR_BAR = MODELS / "four_bar.mks"
LINKS = ("crank", "coupler", "apart")
MEASURES = [
    "wide = max(pen.x)",
    "fast = min(pen.vy)",
    "sharp = rms(pen.ax)",
    "turn = range(d.angle)",
    "spin = final(coupler_bar.wz) + mean(rocker_bar.alphaz)",
    "apart_by = mean(distance(pen, right))",
    "nearing = max(distance_rate(pen, right)) + min(distance_acceleration(pen, right))",
    "pen.y",
    "driven = final(a.angle) - initial(a.angle) + final(a.rate)",
]


def _four_bars(n, seed=0):
    return np.random.default_rng(seed).uniform([0.8, 2.8, 2.9], [1.1, 3.2, 3.2], (n, 3))


def test_regular_cases_of_a_four_bar_agree_with_the_absolute_form_and_with_each_analysed_alone():
    task, values = make_task(FOUR_BAR, LINKS, MEASURES, times=np.linspace(0.0, 7.0, 71)), _four_bars(12)
    engine, absolute = Engine(task), Engine(task)
    assert engine.way.program is not None
    absolute.way.program = None
    ours, oracle = engine.run(values), absolute.run(values)
    assert ours.reasons == oracle.reasons == [""] * 12
    for name, x in ours.arrays.items():
        np.testing.assert_allclose(x, oracle.arrays[name], rtol=1e-10, atol=1e-10, err_msg=name)
    agree(make_task(FOUR_BAR, LINKS, MEASURES[:4], times=task.times), values[:3])


def test_cases_that_do_not_reach_or_meet_dead_centres_have_the_reasons_of_the_absolute_form():
    values = np.array([[1.0, 3.0, 3.0], [2.9, 3.0, 3.0], [1.0, 9.0, 3.0], [2.5, 3.0, 3.0], [1.0, 3.0, 3.0]])
    task = make_task(FOUR_BAR, LINKS, [*MEASURES[:2], "pen.x"], times=np.linspace(0.0, 6.3, 64))
    engine, absolute = Engine(task), Engine(task)
    absolute.way.program = None
    ours, oracle = engine.run(values), absolute.run(values)
    assert ours.reasons == oracle.reasons
    assert any(ours.reasons)
    assert not all(ours.reasons)
    for name, x in ours.arrays.items():
        np.testing.assert_allclose(x, oracle.arrays[name], rtol=1e-9, atol=1e-9, err_msg=name)


def test_a_four_bar_has_the_same_bits_whatever_others_come_with_it():
    task, values = make_task(FOUR_BAR, LINKS, MEASURES, times=np.linspace(0.0, 6.3, 13)), _four_bars(40, 3)
    engine = Engine(task)
    every = engine.run(values)
    for rows in ([7], [3, 30], list(range(9)), list(range(11, 40))):
        some = engine.run(values[rows])
        for name, x in some.arrays.items():
            np.testing.assert_array_equal(x, every.arrays[name][rows], err_msg=name)


@pytest.mark.parametrize("count", [9, 64, 97])
def test_steps_that_are_tested_later_have_the_bits_of_steps_tested_one_by_one(count, monkeypatch):
    wild = np.random.default_rng(2).uniform([0.5, 1.5, 2.9], [2.0, 3.6, 3.2], (30, 3))
    values = np.concatenate([_four_bars(10, 4), wild])
    task = make_task(FOUR_BAR, LINKS, [*MEASURES[:3], "pen.x"], times=np.linspace(0.0, 6.3, count))
    later = Engine(task).run(values)
    monkeypatch.setattr(TreeMarch, "through", TreeMarch.one_by_one)
    at_once = Engine(task).run(values)
    assert later.reasons == at_once.reasons
    assert 0 < sum(map(bool, later.reasons)) < 30
    for name, x in later.arrays.items():
        np.testing.assert_array_equal(x, at_once.arrays[name], err_msg=name)


@pytest.mark.parametrize("model", ["four_bar", "slider_crank_parameters", "delta", "governor", "quick_return"])
def test_the_coordinates_of_joints_at_the_start_are_those_of_their_motion(model):
    mech = lw.load(MODELS / f"{model}.mks")
    d, n = mech.description, 3
    system = d.system
    times = np.linspace(system.start, system.end, 40)[:5]
    solution = lw.analyse(mech, times=times, analysis="kinematic")
    bodies = {name: np.repeat(x[:, None], n, axis=1) for name, x in solution.arrays.items()}
    names = tuple(d.parameters)[:1]
    values = np.repeat([[d.parameters[name] for name in names]], n, axis=0)
    motions = Motions(Cases(d, names, values), times, bodies, [""] * n)
    for j in range(d.nj):
        np.testing.assert_array_equal(motions.joint_at_start(j), motions.joint(j)[0][:, 0])


@pytest.mark.parametrize("model", ["four-bar", "slider-crank"])
def test_fewer_times_leave_no_case_to_go_alone(model, monkeypatch):
    from linkwright.constraints.case_motions import CaseKinematics

    def refuse(*_):
        raise AssertionError("a case goes alone")

    monkeypatch.setattr(CaseKinematics, "_alone", refuse)
    if model == "four-bar":
        file, names, values, output, end = FOUR_BAR, LINKS, _four_bars(10, 5), "pen.x", 6.0
    else:
        values = np.random.default_rng(1).uniform([5.0, 9.5, 2.0], [7.0, 11.0, 3.0], (10, 3))
        file, names, output, end = SLIDER, NAMES, "rev1.angle", 8.0
    fine = Engine(make_task(file, names, [output], times=np.linspace(0.0, end, 65))).run(values)
    for count in (2, 5, 9, 17):
        coarse = Engine(make_task(file, names, [output], times=np.linspace(0.0, end, count))).run(values)
        assert coarse.reasons == [""] * 10
        wanted = fine.arrays[output][:, :: 64 // (count - 1)]
        np.testing.assert_allclose(coarse.arrays[output], wanted, rtol=1e-10, atol=1e-10)
