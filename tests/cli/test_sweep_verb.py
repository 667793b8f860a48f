"""`linkwright sweep`: what it prints, writes and refuses."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import linkwright, one_line

import linkwright as lw
from linkwright.sweeps.store import CHUNKS

MODEL = Path(__file__).resolve().parents[2] / "examples" / "models" / "four_bar.mks"
ARM = """MODEL arm
SYSTEM (KINEMATIC ANALYSIS, starting time = 0, ending time = 20, print interval = 0.01);
PARAMETER rate = 1;
BODY base (ground);
BODY arm (origin = (0, 0, 0));
REVOLUTE JOINT a (triad = base, triad = arm);
DRIVER d (a.angle = rate*TIME);
ENDMODEL
"""
PLAIN = ("--times", "0:1:0.1", "--output-value", "reach=max(pen.x)-min(pen.x)", "--output-value", "pen.y")


def test_a_study_from_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "s"
    words = ("sweep", MODEL, "--set", "coupler=2.8:3.2:0.2", "--set", "rocker=2.4,9", *PLAIN, "--output", folder)
    found = linkwright(capsys, *words, "--best", "reach", "--largest", "--csv", "--animate", 0)
    assert found.code == 0, found.err
    assert "6 cases: coupler: 3 values 2.8 … 3.2; rocker: 2 values 2.4 … 9" in found.out
    assert "cases of min, max" in found.out
    assert "3 of 6 cases failed:\n  3 × the mechanism cannot be assembled" in found.out
    study = lw.Study.open(folder)
    assert study.data["coupler"].values.tolist() == pytest.approx([2.8, 2.8, 3.0, 3.0, 3.2, 3.2], abs=1e-12)
    best = int(study.best("reach", 1, largest=True)["case"][0])
    assert f"\n   {best}  {study['reach'][best]:.6g}" in found.out
    assert (folder / "study.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "case_0.html").stat().st_size > 100_000
    assert len((folder / "study.csv").read_text().splitlines()) == 7

    again = linkwright(capsys, *words)
    assert "holds a study already; --resume goes on with it, --overwrite begins anew" in again.err
    assert linkwright(capsys, *words, "--resume").out.splitlines()[1].endswith("6 were there already")
    other = linkwright(capsys, *words, "--resume", "--output-value", "pen.x")
    assert "holds another study, which differs in the outputs" in other.err


def test_a_study_in_parts_from_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "s"
    words = ("sweep", MODEL, "--set", "coupler=2.8:3.2:0.1", *PLAIN, "--chunk", 1, "--output", folder)
    for part, state in (
        ("2/3", "not finished: parts 1, 3 of 3"),
        ("3/3", "not finished: part 1 of 3"),
        ("1/3", "all 3 parts are there; lw.Study.open("),
    ):
        found = linkwright(capsys, *words, "--part", part)
        assert found.code == 0, found.err
        assert f"part {part[0]} of 3 is in {folder}\n{state}" in found.out
    assert "2 cases in" in found.out  # of five, part 1 has the first and the fourth
    assert not (folder / "study.png").exists()
    whole = linkwright(capsys, *words, "--resume")
    assert (whole.code, whole.err) == (0, "")
    assert "5 were there already" in whole.out
    assert (folder / "study.png").exists()
    assert lw.Study.open(folder).ok.all()


def test_draws_from_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "s"
    words = ("--sample", "coupler~normal(3, 0.05)", "--cases", 7, "--seed", 2, "--sampling", "sobol", "--no-plot")
    found = linkwright(capsys, "sweep", MODEL, *words, *PLAIN, "--out", folder)
    assert found.code == 0, found.err
    known = lw.sweep(
        MODEL, {"coupler": lw.normal(3, 0.05)}, "1*pen.y", sampling=lw.Sampling("sobol", cases=7, seed=2), times=[0.0]
    )
    assert lw.Study.open(folder)["coupler"].tolist() == known["coupler"].tolist()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "nothing varies: add --set"),
        (("--set", "coupler"), "--set coupler: give NAME=START:END:STEP"),
        (("--set", "coupler=1:2"), "give NAME=START:END:STEP"),
        (("--set", "coupler=2:1:0.1"), "steps of 0.1 do not lead from 2 to 1"),
        (("--set", "coupler=0:1:1e-9"), "take longer steps"),
        (("--set", "coupler=1,two"), "two"),
        (("--set", "coupla=1,2"), "did you mean 'coupler'"),
        (("--set", "coupler=1", "--set", "coupler=2"), "coupler is given twice"),
        (("--sample", "coupler=normal(1,2)"), "give NAME~LAW"),
        (("--sample", "coupler~norml(1,2)"), "did you mean 'normal'"),
        (("--sample", "coupler~normal(1)"), "normal takes normal(mean, deviation"),
        (("--sample", "coupler~uniform(2,1)"), "low is not below high"),
        (("--set", "coupler=3", "--on", "mars"), "is no place to run a study"),
        (
            ("--set", "coupler=3", "--time-limit", "0"),
            "--time-limit, in seconds of CPU time for a case, must be a number greater than zero, not 0",
        ),
        (("--set", "coupler=3", "--output-value", "max(pan.x)"), "did you mean 'pen'"),
        (("--set", "coupler=3", "--best", "reech", *PLAIN), "did you mean 'reach'"),
        (("--set", "coupler=3", "--best", "pen"), "--best pen: needs an output of one number per case"),
        (("--set", "coupler=3", "--animate", "1"), "--animate 1: the cases of this study are 0 … 0"),
        (("--set", "coupler=3", "--part", "0/16"), "--part 0/16: parts are counted from 1 to the number of all; write"),
        (("--set", "coupler=3", "--part", "17/16"), "write --part 1/16 … --part 16/16"),
        (("--set", "coupler=3", "--part", "0/0"), "write --part 1/16 … --part 16/16"),
        (("--set", "coupler=3", "--part", "x"), "--part x: write the part and how many there are, as in --part 3/16"),
        (("--set", "coupler=3", "--part", "1/99999"), "--part 1/99999: a study has at most 10,000 parts; write"),
        (("--set", "coupler=3", "--part", "1/2", "--overwrite"), "--part 1/2: --overwrite removes what other parts"),
        (("--set", "coupler=3", "--part", "1/2", "--csv"), "--part 1/2: --csv is of the whole study; give it with"),
    ],
)
def test_wrong_words_are_told_in_one_line_and_nothing_is_left(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    found = linkwright(capsys, "sweep", MODEL, *words, "--out", tmp_path / "s")
    found.out = ""
    assert told in one_line(found)
    assert found.code == 1
    assert not (tmp_path / "s").exists()


def test_an_output_in_the_place_of_the_folder_is_explained(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    outcome = linkwright(capsys, "sweep", MODEL, "--set", "coupler=3", "--output", tmp_path / "top=max(pen.y)")
    assert outcome.code == 1
    assert "this is the study's folder; define an output with --output-value 'top=max(pen.y)'" in outcome.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("--set", "crank=30 mm,40"), "'30 mm' and '40' have units of two kinds, or one has none; give every value"),
        (("--set", "crank=30 mm:50:10 mm"), "'30 mm' and '50' have units of two kinds"),
        (("--set", "crank=0,40"), "crank is a length: write 40 mm"),
        (("--set", "crank=30 deg,40 deg"), "crank is a length, and this is an angle"),
        (("--set", "n=30 mm,40 mm"), "a value of n is '30 mm', of a plain number of the model; leave the unit out"),
        (("--sample", "crank~normal(40 mm,1)"), "'40 mm' and '1' have units of two kinds"),
        (("--sample", "crank~uniform(0,40)"), "crank is a length: write 40 mm"),
    ],
)
def test_every_value_of_a_study_has_the_unit_of_its_parameter(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: tuple[str, ...], fault: str
) -> None:
    model = tmp_path / "arm.mks"
    units = ARM.replace("0.01)", "0.01, length unit = mm)").replace("rate = 1;", "rate = 1; PARAMETER n = 3;")
    arm = "PARAMETER crank = 40 mm; TRIAD t (associated body = arm, origin = (crank, 0)); TRIAD u (body = arm, "
    model.write_text(units.replace("ENDMODEL", f"{arm}origin = (n, 0));\nENDMODEL"))
    outcome = linkwright(capsys, "sweep", model, *words, "--out", tmp_path / "s")
    outcome.out = ""
    assert fault in one_line(outcome)
    assert outcome.code == 1
    assert not (tmp_path / "s").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of POSIX")
def test_an_interrupted_command_says_how_to_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    model = tmp_path / "arm.mks"
    model.write_text(ARM)
    words = ["sweep", str(model), "--set", "rate=1:2:0.0005", "--output-value", "max(arm.wz)", "--chunk", "8"]
    words += ["--out", str(folder), "--no-plot"]
    command = [sys.executable, "-m", "linkwright", *words]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while len(list((folder / CHUNKS).glob("0*.npz"))) < 3 and run.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    os.kill(run.pid, signal.SIGINT)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 130
    assert err.count("error: ") == 1
    assert "interrupted: " in err
    assert "of 2,001 cases are in" in err
    assert "--resume goes on from there" in err
    assert "Traceback" not in err
    assert lw.Study.open(folder).ok.sum() >= 24


def test_an_order_without_a_list_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = linkwright(capsys, "sweep", MODEL, "--set", "coupler=2.8,3", *PLAIN, "--out", tmp_path / "s", "--largest")
    assert found.code != 0
    assert "name the output by --best" in one_line(found)


def test_a_first_case_that_cannot_be_read_fails_alone(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model = tmp_path / "arm.mks"
    text = ARM.replace("PARAMETER rate = 1;", "PARAMETER rate = 1;\nPARAMETER root = sqrt(rate);")
    model.write_text(text.replace("rate*TIME", "root*TIME"))
    words = ("--set", "rate=-1,1,4", "--times", "0:1:0.5", "--output-value", "turn=final(a.angle)", "--no-plot")
    outcome = linkwright(capsys, "sweep", model, *words, "--out", tmp_path / "s")
    assert outcome.code == 0, outcome.err
    assert "1 of 3 cases failed:" in outcome.out
    assert lw.Study.open(tmp_path / "s")["turn"][1:].tolist() == pytest.approx([1.0, 2.0])
