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
