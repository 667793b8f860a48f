"""`linkwright run` on models that move by forces, or rest, or tell what their drivers must do."""

from pathlib import Path

import numpy as np
import pytest
from command import linkwright

import linkwright as lw
from linkwright.simulation.compiled_engines import Adaptive

MODEL = """MODEL pendulum
SYSTEM (DYNAMIC ANALYSIS, ending time = 1, print interval = 0.1);
BODY g (ground);
BODY bob (mass = 2, com = (0.5, 0, 0), inertia = (0.01, 0.1, 0.1));
BODY light;
TRIAD pivot (associated body = g, h = (0, -1, 0), f = (0, 0, -1));
REVOLUTE JOINT hinge (triad = pivot, triad = bob);
FIXED JOINT weld (triad = bob, triad = light);
SPRING coil (joint = hinge, stiffness = 5, rest = 30 deg, damping = 1);
INITIAL (hinge.angle = 0.4, hinge.rate = -1);
ENDMODEL
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "pendulum.mks"
    path.write_text(MODEL, encoding="utf-8")
    return path


def test_a_simulation_prints_its_forces_and_leaves_results_alone(model, tmp_path, capsys) -> None:
    outcome = linkwright(capsys, "run", model, "-o", tmp_path / "out", "--plot")
    assert outcome.code == 0, outcome.err
    assert "steps" in outcome.out
    assert "coil.torque" in outcome.out
    assert "hinge |force|" in outcome.out
    written = sorted(f.name for f in (tmp_path / "out").iterdir())
    assert written == ["pendulum.html", "pendulum.nc", "pendulum.png", "pendulum_forces.png"]
    sol = lw.open(tmp_path / "out" / "pendulum.nc")
    assert sol.joint("hinge")[0, 0] == pytest.approx(0.4)
    assert "coil.torque" in sol.series


def test_tables_are_in_the_units_of_the_model(tmp_path, capsys) -> None:
    spoken = "length unit = mm, mass unit = g, time unit = ms, angle unit = degree, "
    text = MODEL.replace("ending time = 1, print interval = 0.1", spoken + "ending time = 1000, print interval = 100")
    text = text.replace("mass = 2, com = (0.5, 0, 0)", "mass = 2000, com = (500, 0, 0)").replace(
        "0.01, 0.1", "1e7, 1e8"
    )
    text = text.replace("1e8, 0.1", "1e8, 1e8").replace("stiffness = 5", "stiffness = 5000")
    text = text.replace("damping = 1)", "damping = 1e6)").replace("-1)", "-0.05)").replace("0.4", "20")
    path = tmp_path / "pendulum.mks"
    path.write_text(
        text.replace("BODY g", "PARAMETER half = 250 mm;\nGRAVITY (0, 0, -0.00981);\nBODY g"), encoding="utf-8"
    )
    outcome = linkwright(capsys, "run", path, "-o", tmp_path / "out", "--csv")
    assert outcome.code == 0, outcome.err
    head = next(line for line in outcome.out.splitlines() if line.startswith("body "))
    assert head.split()[:4] == ["body", "x", "min", "mm"]
    row = next(line for line in outcome.out.splitlines() if line.startswith("bob "))
    assert "deg/ms" in row
    sol = lw.open(tmp_path / "out" / "pendulum.nc")
    coil = next(line.split() for line in outcome.out.splitlines() if line.startswith("coil.torque"))
    assert coil[2:4] == ["N", "mm"]
    assert float(coil[1]) == pytest.approx(1e3 * sol.series["coil.torque"].values.min(), rel=1e-3)
    out = linkwright(capsys, "check", path).out
    assert "mass g " in out
    assert "moving mass: 2000 g, gravity: (0, 0, -0.00981) mm/ms²" in out
    assert "parameters: half = 250 mm" in out
    assert "initial conditions: hinge.angle = 20 deg, hinge.rate = -0.05 deg/ms" in out
    assert "dynamic analysis by rk45, t = 0 … 1000 ms" in out


def test_an_interrupted_run_says_how_to_go_on_and_does(model, tmp_path, capsys, monkeypatch) -> None:
    words = ("run", model, "-o", tmp_path / "out", "--no-page")

    def stop(*given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("linkwright.cli.run_verb.Bar.__call__", stop)
        outcome = linkwright(capsys, *words)
    assert outcome.code == 1
    kept = tmp_path / "out" / "pendulum.checkpoint"
    assert f"{kept}: where it stands; the same command with --resume goes on" in outcome.out
    assert linkwright(capsys, *words, "--resume").code == 0
    assert not kept.exists()


def test_method_step_and_tolerance_are_taken(model, tmp_path, capsys) -> None:
    words = ("run", model, "-o", tmp_path / "out", "--no-page")
    assert "100 steps" in linkwright(capsys, *words, "--method", "rk4", "--step", "0.01").out
    assert linkwright(capsys, *words, "--rtol", "1e-4").code == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--method", "euler"), "no method named 'euler'"),
        (("--method", "rk4"), "--method rk4 takes steps of one length; add --step"),
        (("--step", "0"), "--step 0: give a number greater than zero"),
        (("--rtol", "-1"), "--rtol -1: give a number greater than zero"),
        (("--analysis", "dynamical"), "no analysis named 'dynamical'; did you mean 'dynamic'"),
        (("--analysis", "static", "--rtol", "1e-3"), "--rtol is for simulations, and this is static analysis"),
        (("--resume",), "there is no such file to resume from"),
        (("--analysis", "inverse-dynamic"), "'pendulum' has no drivers"),
    ],
)
def test_wrong_words_are_told_and_leave_nothing(model, tmp_path, capsys, words, told) -> None:
    outcome = linkwright(capsys, "run", model, "-o", tmp_path / "out", *words)
    assert outcome.code != 0
    assert told in outcome.err
    assert not (tmp_path / "out").exists()


def test_who_forgets_to_resume_is_told_the_option(model, tmp_path, capsys, monkeypatch) -> None:
    advance, calls = Adaptive.advance, []

    def interrupted(self):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return advance(self)

    monkeypatch.setattr(Adaptive, "advance", interrupted)
    words = ("run", model, "-o", tmp_path / "out", "--no-page", "--rtol", "1e-12")
    assert "interrupted" in linkwright(capsys, *words).err
    monkeypatch.undo()
    assert "with --resume, or remove the file" in linkwright(capsys, *words).err
    assert linkwright(capsys, *words, "--resume").code == 0


def test_static_analysis_says_where_it_rests(model, tmp_path, capsys) -> None:
    outcome = linkwright(capsys, "run", model, "-o", tmp_path / "out", "--analysis", "static")
    assert outcome.code == 0, outcome.err
    sol = lw.open(tmp_path / "out" / "pendulum.nc")
    angle = sol.joint("hinge")[0, 0]
    assert 5 * (angle - np.radians(30)) + 2 * 9.81 * 0.5 * np.sin(angle) == pytest.approx(0.0, abs=1e-8)


def test_a_run_that_ends_early_keeps_what_it_has_and_fails(tmp_path, capsys) -> None:
    path = tmp_path / "burst.mks"
    path.write_text(MODEL.replace("SPRING coil", "TORQUE burst (joint = hinge, law = 1/(0.5 - TIME)^3);\nSPRING coil"))
    outcome = linkwright(capsys, "run", path, "-o", tmp_path / "out", "--no-page")
    assert outcome.code == 1
    assert "error: at t = 0." in outcome.err
    assert "loosen --rtol" in outcome.err
    assert lw.open(tmp_path / "out" / "burst.nc").time[-1] < 0.51


def test_check_tells_forces_beginning_and_missing_masses(model, capsys) -> None:
    out = linkwright(capsys, "check", model).out
    assert "forces: coil on hinge" in out
    assert "initial conditions: hinge.angle = 0.4 rad, hinge.rate = -1 rad/s" in out
    assert "without a mass, which dynamics may ask for: 'light'" in out
    assert "dynamic analysis by rk45, t = 0 … 1 s" in out
