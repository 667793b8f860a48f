"""`linkwright tolerances`: what it prints, writes and refuses."""

import json
from pathlib import Path

import pytest
from command import linkwright, one_line

import linkwright as lw

MODEL = Path(__file__).resolve().parents[2] / "examples" / "models" / "four_bar.mks"
PLAIN = ("tolerances", MODEL, "--times", "0:6:0.5", "--output", "swing = range(d.angle)")


def test_tolerances_from_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("t.json", "t.csv", "t.png")]
    sizes = ("--tolerance", "crank=0.01", "--tolerance", "coupler=0.5 %", "--tolerance", "rocker=-0.01:0.02")
    loose = ("--clearance", "b=0.01", "--rim", "--distribution", "crank=uniform", "--draws", 300, "--seed", 4)
    outcome = linkwright(capsys, *PLAIN, *sizes, *loose, *(word for file in files for word in ("--out", file)))
    assert outcome.code == 0, outcome.err
    for words in (
        "swing = range(d.angle): ",
        "coupler               3       ±0.015  normal(3)",
        "clearance of b                  0.01  rim",
        "-0.01 +0.02",
        "worst case, all 16 vertices",
        "Monte Carlo, 99.73 % of 300",
        "% from the linear one",
        f"{files[2]}: the figure",
    ):
        assert words in outcome.out, outcome.out
    saved = json.loads(files[0].read_text())["outputs"][0]
    report = lw.tolerances(
        MODEL,
        "swing = range(d.angle)",
        {"crank": 0.01, "coupler": 0.015, "rocker": (-0.01, 0.02)},
        clearances={"b": lw.Clearance(0.01, spread="rim")},
        distributions={"crank": "uniform"},
        times=[0.5 * k for k in range(13)],
        settings=lw.ToleranceSettings(draws=300, seed=4),
    )
    assert saved["rss"] == pytest.approx(report.rss, rel=1e-12)
    assert report.monte_carlo is not None
    assert saved["monte_carlo"]["std"] == pytest.approx(report.monte_carlo.std, rel=1e-12)
    assert len(files[1].read_text().splitlines()) == 5
    assert files[2].read_bytes().startswith(b"\x89PNG")


def test_second_derivatives_differences_and_values_of_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    words = (*PLAIN, "--tolerance", "crank=0.01", "--draws", 0)
    assert "second derivatives move the mean" in linkwright(capsys, *words, "--second").out
    assert "argmax(pen.x): " in linkwright(capsys, *words, "--output", "argmax(pen.x)", "--differences").out
    assert "\ncrank          0.9      ±0.01 " in linkwright(capsys, *words, "--set", "crank=0.9").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--output", "max(pen.x)"), "nothing varies: add --tolerance crank=0.05"),
        (("--tolerance", "crank=0.1"), "nothing was asked for: add --output"),
        (("--output", "max(pen.x)", "--tolerance", "crank"), "--tolerance crank: give NAME=VALUE"),
        (("--output", "max(pen.x)", "--tolerance", "cranc=1"), "no parameter named 'cranc'; did you mean 'crank'?"),
        (("--output", "max(pen.x)", "--tolerance", "crank=-1"), "the tolerance of 'crank' is -1"),
        (("--output", "max(pen.x)", "--tolerance", "crank=1", "--out", "t.txt"), "--out t.txt: tolerances are written"),
        (("--output", "max(pen.x)", "--tolerance", "crank=1", "--rim"), "--rim is of clearances"),
        (("--output", "pen.x", "--tolerance", "crank=1"), "varies in time; reduce it to one number"),
        (("--output", "argmax(pen.x)", "--tolerance", "crank=1"), "has no derivative"),
        (("--output", "max(pen.x)", "--tolerance", "crank=1", "--draws", "0", "--distribution", "gauss"), "'gauss'"),
    ],
)
def test_a_fault_is_one_line(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str) -> None:
    outcome = linkwright(capsys, "tolerances", MODEL, *words)
    assert outcome.code == 1
    assert message in one_line(outcome)


def test_advice_names_options_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, "tolerances", MODEL, "--output", "argmax(pen.x)", "--tolerance", "crank=0.1")
    assert "--differences computes both ends of each tolerance instead" in one_line(outcome)


MILLIMETRES = """MODEL m
SYSTEM (KINEMATIC ANALYSIS, ending time = 1000, print interval = 500, length unit = mm, time unit = ms);
PARAMETER crank = 40 mm; PARAMETER rod = 90 mm;
BODY base (ground); BODY arm; BODY link; BODY block;
HINGE a (body = base, body = arm, at = (0, 0)); HINGE b (body = arm, body = link, at = (crank, 0));
HINGE c (body = link, body = block, at = (crank + rod, 0));
SLIDER d (body = base, body = block, axis = (1, 0));
DRIVER motor (a.angle = 360 deg*TIME/(1 s));
ENDMODEL
"""


def test_sizes_and_times_without_a_unit_are_in_those_of_the_model(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    model = tmp_path / "m.mks"
    model.write_text(MILLIMETRES)
    words = ("tolerances", model, "--output", "end = final(d.shift)", "--draws", 0, "--clearance")
    files = [tmp_path / f"{k}.json" for k in range(3)]
    for file, size, times in zip(
        files, ("b=0.02", "b=0.02 mm", "b=2e-5 m"), ("0:250:125", "0:0.25 s:125 ms", "0 s:250:0.125 s"), strict=True
    ):
        outcome = linkwright(capsys, *words, size, "--times", times, "--out", file)
        assert outcome.code == 0, outcome.err
        assert "clearance of b             0.02 mm  disc" in outcome.out, outcome.out
    numbers = [json.loads(file.read_text())["outputs"][0]["rss"] for file in files]
    assert numbers[0] == numbers[1] == numbers[2] > 0.0
    outcome = linkwright(capsys, *words, "b=0.02", "--times", "0:5 mm:1")
    assert "expected a time (as 5 ms), and '5 mm' is a length" in one_line(outcome)


def test_the_deviation_that_a_mechanism_takes_has_its_unit(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model = tmp_path / "m.mks"
    model.write_text(MILLIMETRES)
    words = ("tolerances", model, "--output", "end = min(d.shift)", "--times", "0:750:250", "--tolerance")
    assert "of -80 mm the mechanism takes -50 mm (" in one_line(linkwright(capsys, *words, "rod=-80 mm:10 mm"))
    both = linkwright(capsys, *words, "rod=40 mm", "--tolerance", "crank=40 mm", "--draws", "0")
    assert "rod -25 mm, crank +25 mm (" in one_line(both)
