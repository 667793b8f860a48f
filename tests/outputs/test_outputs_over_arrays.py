"""Outputs as expressions over (time, case): what they may say, and the error of those that say something else."""

from pathlib import Path

import numpy as np
import pytest

from linkwright.errors import LinkwrightError
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.model.parameter_cases import Cases
from linkwright.outputs.output_language import output_of
from linkwright.outputs.output_values import Motions, values_of
from linkwright.sweeps.case_engine import NO_FORCES

MODEL = Path(__file__).parents[2] / "examples" / "models" / "slider_crank_parameters.mks"


@pytest.fixture(scope="module")
def description():
    return parse_mks(MODEL.read_text())


@pytest.fixture
def motions(description):
    cases = Cases(description, ("stroke",), np.array([[1.0], [2.0]]))
    found = Motions.empty(cases, np.array([0.0, 1.0, 3.0]))
    found.bodies["position"][:, 0, 2, 0] = [1.0, 4.0, 2.0]
    found.bodies["position"][:, 1, 2, 0] = [-1.0, -3.0, 5.0]
    return found


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("max(block.x)", [4.0, 5.0]),
        ("min(block.x)", [1.0, -3.0]),
        ("mean(block.x)", [7.0 / 3.0, 1.0 / 3.0]),
        ("rms(block.x)", [7.0**0.5, (35.0 / 3.0) ** 0.5]),
        ("final(block.x) - initial(block.x)", [1.0, 6.0]),
        ("range(block.x)", [3.0, 8.0]),
        ("argmax(block.x)", [1.0, 3.0]),
        ("argmin(block.x)", [0.0, 1.0]),
        ("integral(block.x)", [8.5, 0.0]),
        ("max(min(block.x, 2))", [2.0, 2.0]),
        ("max(min(block.x, 2, 1.5))", [1.5, 1.5]),
        ("stroke^2 + pi*0", [1.0, 4.0]),
        ("max(stroke*block.x)", [4.0, 10.0]),
        ("max(TIME)", [3.0, 3.0]),
        ("180 deg/pi", [1.0, 1.0]),
        ("max(if(block.x < 0, 1, 0))", [0.0, 1.0]),
        ("max(block.x - mean(block.x))", [4.0 - 7.0 / 3.0, 5.0 - 1.0 / 3.0]),
    ],
)
def test_reductions_over_time_give_a_number_a_case(description, motions, text, wanted):
    np.testing.assert_allclose(values_of(output_of(description, "x", text), motions), wanted, atol=1e-12)


def test_without_a_reduction_it_is_a_series(description, motions):
    found = values_of(output_of(description, "x", "2*block.x + TIME"), motions)
    np.testing.assert_allclose(found, [[2.0, 9.0, 7.0], [-2.0, -5.0, 13.0]])


def test_numbers_of_a_failed_case_are_nan_and_its_series_stays(description, motions):
    motions.reasons[1] = "stopped"
    assert np.isnan(values_of(output_of(description, "x", "max(block.x)"), motions)).tolist() == [False, True]
    assert np.isfinite(values_of(output_of(description, "x", "block.x"), motions)).all()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("max(blok.x)", "did you mean 'block'"),
        ("block.q", "'block' has no 'q'; it has x, y, z"),
        ("rev1.shift", "joint 'rev1' is revolute and has no 'shift'; it has angle, rate, acceleration"),
        ("maximum(block.x)", "no function named 'maximum'; did you mean 'max'?"),
        ("strok*2", "did you mean 'stroke'"),
        ("max(block.x", "at its end"),
        ("block.x; 1", "without ';'"),
        ("max()", "the output 'x'"),
        ("d1.force", "is a force, which this analysis does not compute"),
        ("block", "'block' alone is no number; name one of its quantities, as in block.x"),
        ("distance(block)", "between two bodies or frames"),
        ("distance(block, pend9)", "pend9"),
        ("__import__('os')", "is no expression"),
        ("(1, 2)", "is no expression, at ', 2)'"),
        ("(" * 400 + "1" + ")" * 400, "the output 'x'"),
    ],
)
def test_what_cannot_be_computed_is_named(description, text, told):
    with pytest.raises(LinkwrightError) as caught:
        output_of(description, "x", text).refuse_forces(NO_FORCES)
    assert told in str(caught.value)
    assert "the output 'x'" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rev1.angel", "has no 'angel'; it has angle, rate, acceleration, fx"),
        ("d1.frce", "'d1' exerts a force and has no 'frce'; it has force or torque"),
    ],
)
def test_a_misspelt_force_is_told_before_any_case_runs(description, text, told):
    with pytest.raises(LinkwrightError) as caught:
        output_of(description, "x", text)
    assert told in str(caught.value)
