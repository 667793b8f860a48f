"""Optimisation: known optima, limits, places where the mechanism cannot be, and sentences for what cannot be done."""

import re

import numpy as np
import pytest
from design_models import OSCILLATOR, ROOT, loaded

import linkwright as lw
from linkwright.errors import LinkwrightError

FOUR_BAR = ROOT / "examples" / "models" / "four_bar.mks"
TIMES = np.linspace(0.0, 6.0, 25)
STEPS = lw.AnalysisSettings(dt=0.05)
DRAWN = {"crank": 1.1, "coupler": 3.2, "along": 1.4, "above": 1.0}


@pytest.fixture(scope="module")
def drawn() -> dict[str, np.ndarray]:
    """The coupler curve of known lengths."""
    p = lw.analyse(lw.load(FOUR_BAR).with_parameters(**DRAWN), times=TIMES).position("pen")
    return {"pen.x": p[:, 0], "pen.y": p[:, 1]}


def test_the_lengths_behind_a_coupler_curve_are_found_again(drawn) -> None:
    found = lw.optimise(FOUR_BAR, drawn, dict.fromkeys(DRAWN, (0.5, 4.0)), times=TIMES)
    assert found.status
    assert found.parameters == pytest.approx(DRAWN, abs=1e-8)
    assert found.value < 1e-10 < found.before
    assert found.mechanism.parameters["crank"] == pytest.approx(1.1)
    assert found.evaluations == len(found.history) <= 30
    assert "converged, by least-squares" in found.report()


@pytest.mark.parametrize("solver", ["SLSQP", "L-BFGS-B", "trust-constr"])
def test_every_solver_comes_to_the_same_place(solver: str) -> None:
    # The pen is highest where its lever on the coupler is as long as it may be; its cost makes that an inner optimum.
    found = lw.optimise(
        FOUR_BAR,
        "mean((pen.y - 2)^2) + 0.05*above^2",
        {"above": (-2, 3)},
        times=TIMES,
        search=lw.Search(solver, tolerance=1e-10),
    )
    assert found.status
    slope = lw.sensitivities(found.mechanism, "mean((pen.y - 2)^2) + 0.05*above^2", "above", times=TIMES).gradient()
    assert abs(slope[0]) < 1e-4
    assert found.value < found.before


def test_limits_hold_at_the_optimum_and_at_all_times() -> None:
    limits = {"swing = range(d.angle)": (None, 0.7), "pen.y": (None, 2.6), "lift = max(pen.y)": (2.0, None)}
    found = lw.optimise(
        FOUR_BAR, "range(pen.x)", {"crank": (0.3, 1.2), "above": (0, 2)}, limits, maximise=True, times=TIMES
    )
    assert found.status
    sol = lw.analyse(found.mechanism, times=TIMES)
    assert np.ptp(sol.joint("d")[:, 0]) <= 0.7 + 1e-5
    assert sol.position("pen")[:, 1].max() <= 2.6 + 1e-5
    assert found.value == pytest.approx(np.ptp(sol.position("pen")[:, 0]), abs=1e-10)
    assert min(abs(found.constraints["swing"][1] - 0.7), abs(found.constraints["pen.y"][1] - 2.6)) < 1e-4  # one is met


def test_a_place_where_the_mechanism_cannot_be_makes_a_step_shorter() -> None:
    # The rocker swings farthest where the crank can just turn; a longer one cannot.
    found = lw.optimise(
        FOUR_BAR, "range(d.angle)", {"crank": (0.5, 3.5)}, maximise=True, times=TIMES, search=lw.Search(iterations=6)
    )
    assert found.failures > 0
    assert sum(bool(x.reason) for x in found.history) == found.failures
    assert found.value > found.before + 0.3
    assert lw.analyse(found.mechanism, times=TIMES).status
    assert "where the mechanism cannot be" in found.report()


def test_limits_that_cannot_be_met_and_nothing_to_gain_are_told() -> None:
    no = lw.optimise(FOUR_BAR, "max(pen.x)", {"crank": (0.5, 1.2)}, {"max(pen.y)": (50, 60)}, times=TIMES)
    assert not no.status
    assert "limits of 'max(pen.y)' were not met" in str(no.status)
    best = lw.optimise(FOUR_BAR, "(crank - 1)^2 + 0*max(pen.x)", {"crank": (0.5, 1.2)}, times=TIMES)
    assert best.status.reason == "nothing to gain"
    assert best.parameters["crank"] == 1.0


def test_several_starts_are_the_same_for_the_same_seed_and_find_the_better_of_two_valleys(tmp_path) -> None:
    text = "(k/50 - 1)^2*(k/50 - 3)^2 - 0.1*k/50 + 0*max(slide.shift)"
    mech, space = loaded(OSCILLATOR, tmp_path), {"k": (20.0, 200.0)}
    one = lw.optimise(mech, text, space, analysis=STEPS, times=[0, 0.1])
    several = [
        lw.optimise(mech, text, space, analysis=STEPS, times=[0, 0.1], search=lw.Search(starts=5, seed=3))
        for _ in range(2)
    ]
    assert one.parameters["k"] < 100 < several[0].parameters["k"]
    assert several[0].parameters == several[1].parameters
    assert several[0].value < one.value


def test_how_it_ended_is_told_of_the_start_that_led_to_the_best(tmp_path, monkeypatch) -> None:
    from linkwright.design import optimise as room

    mech, space = loaded(OSCILLATOR, tmp_path), {"k": (20.0, 200.0)}
    runs: list[int] = []

    def said(solver, evaluations, z, search) -> str:
        runs.append(len(runs))
        evaluations.at(evaluations.space.place(np.array([150.0])) if runs[-1] == leads else z, slopes=True)
        return "it gave up" if runs[-1] == fails else ""

    monkeypatch.setattr(room, "_minimised", said)
    for leads, fails in ((1, 1), (1, 2)):
        runs.clear()
        found = lw.optimise(
            mech, "abs(k - 150) + 0*max(slide.shift)", space, analysis=STEPS, times=[0, 0.1], search=lw.Search(starts=3)
        )
        assert len(runs) == 3
        assert found.parameters["k"] == pytest.approx(150.0)
        assert bool(found.status) == (leads != fails)


def test_a_place_with_a_value_and_no_slope_is_no_success(tmp_path) -> None:
    objective = "sqrt(max(k/50 - 1, 0)) + 0*max(slide.shift)"
    found = lw.optimise(loaded(OSCILLATOR, tmp_path), objective, {"k": (20, 80, 200)}, analysis=STEPS, times=[0, 0.1])
    assert found.value == 0.0
    assert not found.status
    assert "a place without slopes" in str(found.status)


def test_an_objective_that_is_nothing_at_its_start_is_followed_below_it(tmp_path) -> None:
    found = lw.optimise(
        loaded(OSCILLATOR, tmp_path), "(k/50 - 1) + (k/50 - 1)^2 + 0*max(slide.shift)", {"k": (0, 200)}, analysis=STEPS,
        times=[0, 0.1],
    )  # fmt: skip
    assert found.status
    assert found.parameters["k"] == pytest.approx(25.0, abs=1e-3)


def test_a_spring_is_tuned_through_a_simulation(tmp_path) -> None:
    mech = loaded(OSCILLATOR, tmp_path)
    wanted = lw.sensitivities(
        mech.with_parameters(k=80.0), "slide.shift", "k", analysis=lw.AnalysisSettings(dt=0.01)
    ).value()
    found = lw.optimise(mech, {"slide.shift": wanted}, {"k": (20, 200)}, analysis=lw.AnalysisSettings(dt=0.01))
    assert found.parameters["k"] == pytest.approx(80.0, rel=1e-8)


@pytest.mark.parametrize(
    ("objective", "parameters", "options", "match"),
    [
        ("pen.x", {"crank": (1, 2)}, {}, "is a number at every time"),
        ("max(pen.x)", {"crank": (2, 1)}, {}, "the bounds of parameter 'crank' are 2 and 1"),
        ("max(pen.x)", {"crank": 3.0}, {}, "give .lower, upper."),
        ("max(pen.x)", {"crank": (20, 30)}, {}, "the start crank = 20 cannot be evaluated"),
        ("log(min(pen.x) - 100)", {"crank": (0.5, 1.2)}, {}, "has no finite value"),
        ("max(pen.x)", {"crnk": (0.5, 1.2)}, {}, "did you mean 'crank'"),
        ("max(pen.x)", {"crank": (0.5, 1.2)}, {"constraints": {"max(pen.y)": (5, 4)}}, "must not be greater"),
        ("max(pen.x)", {"crank": (0.5, 1.2)}, {"constraints": "pen"}, "constraints are outputs with limits"),
        ({"pen.x": [1.0, 2.0, 3.0]}, {"crank": (0.5, 1.2)}, {}, "one per time point"),
        ({"pen.x": [np.nan, 2.0]}, {"crank": (0.5, 1.2)}, {}, "must be finite"),
        ("max(pen.x)", {"crank": (0.5, 1.2)}, {"search": {"solver": "bfgs"}}, "did you mean 'L-BFGS-B'"),
        ("max(pen.x)", {"crank": (0.5, 1.2)}, {"search": {"solver": "least-squares"}}, "needs series with targets"),
        ("max(pen.x)", {"crank": (None, 1.2)}, {"search": {"starts": 3}}, "several starts need bounds"),
        (["max(pen.x)", "max(pen.y)"], {"crank": (0.5, 1.2)}, {}, "one objective is optimised"),
    ],
)
def test_bad_orders_are_answered_in_a_sentence(objective, parameters, options, match: str) -> None:
    def ask() -> None:
        search = lw.Search(**options.get("search", {}))
        constraints = options.get("constraints", ())
        lw.optimise(FOUR_BAR, objective, parameters, constraints, times=[0.0, 1.0], search=search)

    with pytest.raises(LinkwrightError, match=match):
        ask()


@pytest.mark.parametrize("keyword", ["solver", "starts", "seed", "tolerance", "iterations", "progress", "dt", "method"])
def test_a_keyword_of_a_settings_object_names_it(keyword: str) -> None:
    home = "analysis=lw.AnalysisSettings" if keyword in ("dt", "method") else "search=lw.Search"
    with pytest.raises(LinkwrightError, match=re.escape(f"give {home}({keyword}=...)")):
        lw.optimise(FOUR_BAR, "max(pen.x)", {"crank": (0.5, 1.2)}, **{keyword: 1})


def test_the_path_of_an_optimisation_leaves_its_start_once_and_is_a_figure_that_notebooks_show() -> None:
    lengths = {"crank": (0.5, 1.5), "coupler": (2.0, 4.0), "along": (0.0, 2.0), "above": (0, 2)}
    found = lw.optimise(FOUR_BAR, {"pen.y": 2.0}, lengths, times=TIMES)
    assert found.evaluations > 9
    figure = found.plot()
    assert [len(ax.lines) for ax in figure.axes] == [1, 4]
    assert [visit.parameters for visit in found.history].count(found.history[0].parameters) == 1
    assert figure._repr_png_().startswith(b"\x89PNG")
