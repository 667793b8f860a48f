"""`linkwright run` and `linkwright check` on mechanisms with drivers: good input, bad input, motions that stop."""

from pathlib import Path

import numpy as np
import pytest
from command import linkwright

import linkwright as lw

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "models" / "slider_crank.mks"


def rewritten(folder: Path, old: str, new: str) -> Path:
    """The sample with something else in it."""
    text = SAMPLE.read_text(encoding="utf-8")
    assert old in text
    path = folder / "changed.mks"
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def test_a_run_prints_the_table_and_writes_results_and_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, "run", SAMPLE, "-o", tmp_path, "--csv", "--plot")
    assert outcome.code == 0, outcome.err
    assert outcome.err == ""
    rows = [line.split() for line in outcome.out.splitlines()]
    assert ["trans1", "translational", "joint", "5"] in rows
    assert ["equations", "27"] in rows
    assert ["degrees", "of", "freedom", "by", "count", "1"] in rows
    assert sorted(f.name for f in tmp_path.iterdir()) == [f"slider_crank.{x}" for x in ("csv", "html", "nc", "png")]
    sol = lw.open(tmp_path / "slider_crank.nc")
    np.testing.assert_allclose(sol.position("block")[:, 0], 8 + 3 * np.sin(sol.time), atol=1e-12)


def test_other_times_and_no_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("-o", tmp_path, "--times", "0:1:0.5", "--no-page", "--freedom", "pivoting")
    outcome = linkwright(capsys, "run", SAMPLE, *words)
    assert outcome.code == 0, outcome.err
    assert [f.name for f in tmp_path.iterdir()] == ["slider_crank.nc"]
    np.testing.assert_array_equal(lw.open(tmp_path / "slider_crank.nc").time, [0.0, 0.5, 1.0])


def test_a_parameter_is_set_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = rewritten(tmp_path, "BODY g1", "PARAMETER stroke = 3;\nBODY g1")
    model.write_text(model.read_text().replace("3*sin", "stroke*sin"))
    words = ("run", model, "-o", tmp_path, "--times", "0:1:0.5", "--no-page")
    assert linkwright(capsys, *words, "--set", "stroke=1.5").code == 0
    sol = lw.open(tmp_path / "changed.nc")
    np.testing.assert_allclose(sol.position("block")[:, 0], 8 + 1.5 * np.sin(sol.time), atol=1e-12)
    outcome = linkwright(capsys, *words, "--set", "strok=1.5")
    assert outcome.code == 1
    assert "did you mean 'stroke'" in outcome.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--set", "stroke"), "give NAME=VALUE"),
        (("--set", "stroke="), "give NAME=VALUE"),
        (("--set", "stroke=much"), "such as 0.3, 25 deg or 2*pi"),
        (("--set", "stroke=1; PARAMETER x = 2"), "such as 0.3, 25 deg or 2*pi"),
        (("--set", "stroke=1/0"), "division by zero"),
        (("--set", "stroke=" + "(" * 900), "brackets one inside the other"),
        (("--set", "stroke=1"), "there is no parameter 'stroke'; the model has none"),
        (("--times", "0:8"), "give START:END:INTERVAL"),
        (("--times", "0:8:x"), "there is no parameter 'x'"),
        (("--times", "8:0:0.1"), "the end must not be before the start"),
        (("--times", "0:1:1e-12"), "more than ten million points"),
        (("--freedom", "pivotting"), "did you mean 'pivoting'"),
    ],
)
def test_wrong_words_are_told_in_one_line(words, told, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, "run", SAMPLE, "-o", tmp_path / "new", *words)
    assert outcome.code == 1
    assert told in outcome.err
    assert outcome.err.count("\n") == 1
    assert outcome.out == ""
    assert not (tmp_path / "new").exists()


def test_times_are_expressions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, "run", SAMPLE, "-o", tmp_path, "--times", "0:2*pi:pi/9", "--no-page")
    assert outcome.code == 0, outcome.err
    np.testing.assert_allclose(lw.open(tmp_path / "slider_crank.nc").time, np.linspace(0, 2 * np.pi, 19), atol=1e-12)


BENT = """MODEL bent
PARAMETER bend = 25 deg;
PARAMETER long = 2;
BODY g (ground);
BODY a (mass = 1);
REVOLUTE JOINT j (triad = g, triad = a);
DRIVER d (j.angle = bend);
TRIAD tip (associated body = a, origin = (long, 0, 0));
ENDMODEL
"""


def test_a_parameter_is_set_with_its_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bent.mks").write_text(BENT)
    words = ("run", tmp_path / "bent.mks", "-o", tmp_path, "--times", "0:1:1", "--no-page")
    assert linkwright(capsys, *words, "--set", "bend=30 deg", "--set", "long=1/4").code == 0
    assert lw.open(tmp_path / "bent.nc").position("tip")[0] == pytest.approx(
        [0.25 * np.cos(np.pi / 6), 0.125, 0.0], abs=1e-12
    )
    outcome = linkwright(capsys, *words, "--set", "bend=25")
    assert (outcome.code, outcome.out) == (1, "")
    assert "bend is an angle: write 25 deg or 0.436332 rad" in outcome.err
    assert "there are bend, long" in linkwright(capsys, *words, "--set", "mass=1").err


def test_a_motion_that_stops_is_kept_as_far_as_it_went(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = rewritten(tmp_path, "8.00 + 3*sin(TIME)", "8 + 2*TIME")
    outcome = linkwright(capsys, "run", model, "-o", tmp_path)
    assert outcome.code == 1
    assert "driver 'd1' asks for what is out of reach" in outcome.err
    assert "change the driver's law" in outcome.err
    sol = lw.open(tmp_path / "changed.nc")
    assert sol.status.reason == "out of reach"
    assert sol.status.time == pytest.approx(4.0, abs=1e-4)
    assert len(sol) == 40


def test_a_mechanism_that_cannot_be_assembled_names_the_driver_and_what_it_can_reach(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = rewritten(tmp_path, "8.00 + 3*sin(TIME)", "28")
    outcome = linkwright(capsys, "run", model, "-o", tmp_path / "new")
    assert outcome.code == 1
    assert "cannot be assembled at t = 0" in outcome.err
    assert "driver 'd1' asks for 28, which is out of reach; the nearest is 16" in outcome.err
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_made_is_named_before_anything_is_computed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").touch()
    outcome = linkwright(capsys, "run", SAMPLE, "-o", tmp_path / "taken" / "deeper")
    assert outcome.code == 1
    assert "choose another with --output" in outcome.err
    assert not outcome.out


def test_a_folder_that_is_a_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").touch()
    outcome = linkwright(capsys, "run", SAMPLE, "-o", tmp_path / "taken", "--times", "0:0.2:0.1")
    assert "is a file; name a folder" in outcome.err
    assert outcome.out == ""


def test_a_robot_has_nothing_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, "run", SAMPLE.with_name("arm.urdf"))
    assert outcome.code == 1
    assert "no time range; use --times, as in --times 0:8:0.1" in outcome.err
    assert outcome.out == ""


def test_check_names_the_redundant_equations_of_a_planar_four_bar(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = linkwright(capsys, "check", SAMPLE.with_name("four_bar.mks"))
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("3 equations are redundant") == 1  # the report of mobility says it
    assert "of revolute joint 'b' are constrained twice, a spherical joint frees them" in outcome.out
    assert "the choice is not unique" in outcome.out
    assert "h axes" not in outcome.out


def test_check_tells_the_freedom_of_the_sample(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, "check", SAMPLE)
    assert outcome.code == 0, outcome.err
    assert "2 degrees of freedom, 1 driven, 1 undriven" in outcome.out
    assert "1 undriven degree of freedom: pend2" in outcome.out
