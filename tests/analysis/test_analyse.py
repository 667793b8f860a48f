"""`lw.analyse`: where its model and its parameters come from."""

from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import LinkwrightError

TEXT = """
MODEL lift
PARAMETER size = 2;
PARAMETER half = size/2;
SYSTEM (KINEMATIC ANALYSIS, starting time = 0, ending time = 2, print interval = 1);
BODY frame (ground);
BODY block (mass = 1);
TRIAD foot (associated body = frame);
TRIAD sole (associated body = block, origin = (0, 0, -half));
TRANSLATIONAL JOINT slide (triad = foot, triad = sole);
DRIVER up (slide.shift = TIME);
ENDMODEL
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "lift.mks"
    path.write_text(TEXT)
    return path


def test_a_parameter_made_of_others_can_be_given_for_a_file(model: Path) -> None:
    sol = lw.analyse(model, parameters={"half": 3.0})
    np.testing.assert_allclose(sol.position("block")[:, 2], [3.0, 4.0, 5.0], atol=1e-12)


def test_parameters_made_of_one_that_is_given_follow(model: Path) -> None:
    sol = lw.analyse(model, parameters={"size": 4.0})
    np.testing.assert_allclose(sol.position("block")[:, 2], 2.0 + sol.time, atol=1e-12)


def test_a_parameter_that_a_file_does_not_have_is_told(model: Path) -> None:
    with pytest.raises(LinkwrightError, match="sise"):
        lw.analyse(model, times=[0.0], parameters={"sise": 6.0})


# -- Newton's tolerances, and settings that an analysis does not use ----------------------------------------------
SAMPLE = Path(__file__).parents[2] / "examples" / "models" / "slider_crank.mks"


def gap(sol: lw.Solution) -> float:
    """How far the coupler's ends are from where they are joined."""
    pairs = (("sph1pend1", "sph1pend2"), ("sph2pend2", "sph2block"))
    return float(max(np.abs(sol.position(a) - sol.position(b)).max() for a, b in pairs))


def with_settings(tmp_path: Path, settings: str, analysis: str = "KINEMATIC") -> Path:
    text = SAMPLE.read_text().replace("lu tolerance = 0.0000000001", settings).replace("KINEMATIC", analysis)
    assert settings in text
    path = tmp_path / "sample.mks"
    path.write_text(text)
    return path


@pytest.mark.parametrize("freedom", ["minimum-norm", "pivoting"])
def test_newtons_two_tolerances_can_be_set_and_loosened(freedom: str) -> None:
    usual = lw.analyse(SAMPLE, freedom=freedom)
    loose = lw.analyse(SAMPLE, freedom=freedom, newton_tolerance=0.01, constraint_tolerance=0.01)
    tight = lw.analyse(SAMPLE, freedom=freedom, constraint_tolerance=1e-13)
    assert gap(usual) < 1e-13
    assert 1e-13 < gap(loose) < 1e-4
    assert loose.counters.newton_iterations < usual.counters.newton_iterations < tight.counters.newton_iterations


def test_a_model_file_sets_newtons_two_tolerances(tmp_path: Path) -> None:
    path = with_settings(tmp_path, "newton tolerance = 0.01, constraint tolerance = 0.01")
    given = lw.analyse(SAMPLE, newton_tolerance=0.01, constraint_tolerance=0.01)
    read = lw.analyse(path)
    assert gap(read) == gap(given)


@pytest.mark.parametrize("name", ["newton_tolerance", "constraint_tolerance"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), 1e-20, "small"])
def test_a_tolerance_of_newtons_method_that_cannot_be_is_refused(name: str, value: float) -> None:
    with pytest.raises(LinkwrightError, match=f"{name}|{name.replace('_', ' ')}"):
        lw.analyse(SAMPLE, **{name: value})


@pytest.mark.parametrize("value", [0.0, 1e-20])
def test_two_tolerances_that_cannot_be_are_both_named(value: float) -> None:
    with pytest.raises(LinkwrightError) as told:
        lw.analyse(SAMPLE, newton_tolerance=value, constraint_tolerance=value)
    words = str(told.value).replace("_", " ")
    assert "newton tolerance" in words
    assert "constraint tolerance" in words


@pytest.mark.parametrize("kind", ["dynamic", "static"])
@pytest.mark.parametrize("setting", [{"freedom": "pivoting"}, {"newton_tolerance": 1e-6}])
def test_a_setting_of_kinematic_analysis_is_refused_elsewhere(kind: str, setting: dict) -> None:
    with pytest.raises(LinkwrightError, match=f"{kind} analysis takes no '{next(iter(setting))}'"):
        lw.analyse(SAMPLE, analysis=kind, **setting)


@pytest.mark.parametrize(
    ("settings", "note"),
    [
        ("lu tolerance = 1e-6", "lu tolerance is for kinematic analysis with freedom = pivoting"),
        ("relative tolerance = 1e-5", "relative tolerance is for dynamic analysis"),
        ("step = 0.01, method = rk4", "method is for dynamic analysis"),
    ],
)
def test_a_setting_of_a_file_that_does_nothing_is_noted(tmp_path: Path, settings: str, note: str) -> None:
    notes = lw.analyse(with_settings(tmp_path, settings)).status.notes
    assert any(note in line and "does nothing here" in line for line in notes)


@pytest.mark.parametrize("settings", ["lu tolerance = 1e-10", "lu tolerance = 1e-6, freedom = pivoting"])
def test_a_setting_that_is_usual_or_used_is_not_noted(tmp_path: Path, settings: str) -> None:
    notes = lw.analyse(with_settings(tmp_path, settings)).status.notes
    assert not any("does nothing" in line for line in notes)
