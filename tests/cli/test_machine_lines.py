"""What `linkwright run --forces` says of the forces of a machine, and what it refuses."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from command import Outcome, linkwright, one_line

import linkwright as lw
from linkwright.formats.mks.mks_reader import parse_mks

UNITS = {"m": "", "mm": "length unit = mm, mass unit = g, time unit = ms, "}
#: A lever and a disc, 20 mm and 100 mm in a gravity of 9.81 m/s², each turned by a driver of its own.
MODEL = """MODEL two
SYSTEM (INVERSE DYNAMIC ANALYSIS, {units}ending time = 1 s, print interval = 0.1 s);
GRAVITY (0, -9.81 m/s^2);
BODY base (ground);
BODY lever (mass = 100 g, com = (20 mm, 0), inertia = (1 g*m^2, 1 g*m^2, 1 g*m^2));
BODY disc (origin = (100 mm, 0), mass = 50 g, inertia = (1 g*m^2, 1 g*m^2, 1 g*m^2));
HINGE a (body = base, body = lever, at = (0, 0)); HINGE b (body = base, body = disc, at = (100 mm, 0));
TRIAD tip (associated body = lever, origin = (5 mm, 0, 0));
TRIAD foot (associated body = base, origin = (0, -50 mm, 0));
DRIVER one (a.angle = 360 deg/s*TIME); DRIVER two (b.angle = 1 rad/s*TIME);
ENDMODEL
"""
FREE = "\n".join(line for line in MODEL.replace("INVERSE ", "").splitlines() if "DRIVER" not in line)
LIGHT = re.sub(r",? ?(mass|com|inertia) = (\([^)]*\)|\d+ g),?", "", MODEL)


def run(capsys: pytest.CaptureFixture[str], folder: Path, text: str, *words: object) -> Outcome:
    (folder / "two.mks").write_text(text.format(units=""))
    return linkwright(capsys, "run", folder / "two.mks", "--no-page", "--output", folder / "out", *words)


def columns(path: Path) -> dict[str, list[float]]:
    head, *rows = csv.reader(path.read_text().splitlines())
    return {name: [float(row[k]) for row in rows] for k, name in enumerate(head)}


@pytest.mark.parametrize("length", UNITS)
def test_the_report_and_its_table_are_in_the_units_of_the_model(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, length: str
) -> None:
    """A lever at ω: m r ω² on ground, m g r for its motor, ΔE = 2 m g r for its flywheel."""
    text = MODEL.replace("{units}", UNITS[length])
    words = ("--forces", "--crank", "a", "--about", "foot", "--fluctuation", 0.05, "--csv")
    outcome = run(capsys, tmp_path, text, *words)
    assert outcome.code == 0, outcome.err
    speed, arm = 2 * np.pi, 0.1 * 9.81 * 0.02
    force, inertia, energy = 0.1 * 0.02 * speed**2, 2 * arm / (0.05 * speed**2), 2 * arm
    factor, torque, work = {"m": (1.0, "N m", "J"), "mm": (1e3, "N mm", "N mm")}[length]
    heft, heavy = {"m": (1.0, "kg m²"), "mm": (1e9, "g mm²")}[length]
    for line in (
        "moments about foot\n\non ground ",
        f"driver's torque ({torque})",
        f"whole moment ({torque})",
        f"flywheel: {heft * inertia:.4g} {heavy} for a fluctuation of 0.05 at 60 rpm",
        f"{factor * energy:.4g} {work} between the slowest point at 90° and the fastest at 270°",
        f"'one' holds up to {factor * arm:.4g} {torque} at rest",
    ):
        assert line in outcome.out, outcome.out
    table = columns(tmp_path / "out" / "two_machine.csv")
    time = np.array(table["time [s]"])
    assert np.allclose(table["shaking_force.x [N]"], force * np.cos(speed * time), rtol=0, atol=1e-12)
    assert np.allclose(table[f"one.drive [{torque}]"], factor * arm * np.cos(speed * time), rtol=0, atol=1e-9)
    moment = factor * 0.05 * -force * np.cos(speed * time)  # about a point 50 mm below
    assert np.allclose(table[f"shaking_moment.z [{torque}]"], moment, rtol=0, atol=1e-9)


def test_every_number_in_millimetres_is_that_in_metres_times_the_factor(tmp_path: Path) -> None:
    texts = {length: MODEL.format(units=units) for length, units in UNITS.items()}
    one, two = (lw.machine_forces(lw.Mechanism(parse_mks(x)), crank="a", fluctuation=0.05) for x in texts.values())
    for forces, name in ((one, "m"), (two, "mm")):
        forces.save(tmp_path / f"{name}.csv")
    factors = {"N": 1.0, "N m": 1e3, "J": 1e3, "m": 1e3, "s": 1.0, "rad": 1.0}
    metres, millimetres = columns(tmp_path / "m.csv"), columns(tmp_path / "mm.csv")
    assert len(metres) == len(millimetres) > 30
    for (name, x), (other, y) in zip(metres.items(), millimetres.items(), strict=True):
        unit = name[name.index("[") + 1 : -1]
        assert other.endswith({"N m": "[N mm]", "J": "[N mm]", "m": "[mm]"}.get(unit, f"[{unit}]"))
        assert np.allclose(y, factors[unit] * np.array(x), rtol=1e-15, atol=0), name
    labels = [ax.get_ylabel() for ax in two.plot().axes]
    assert labels[0] == "driver's torque (N mm)"
    assert labels[3] == "shaking moment about base (N mm)"
    assert repr(two).endswith(f"shaking force up to {0.1 * 0.02 * (2 * np.pi) ** 2:.4g} N>")
    assert str(two.counterweight("a")).startswith("counterweight on 'lever': 2000 g mm along (-1, ")


def test_run_writes_the_figure_of_the_forces(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(capsys, tmp_path, MODEL, "--forces", "--plot").code == 0
    assert (tmp_path / "out" / "two_machine.png").stat().st_size > 10_000
    assert not (tmp_path / "out" / "two_machine.csv").exists()


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        (MODEL, ["--forces", "--fluctuation", "0.1"], "several joints of 'two' are driven: a, b; name the motor's, as"),
        (MODEL, ["--forces", "--fluctuation", "0"], "--fluctuation is 0.0; give the coefficient"),
        (MODEL, ["--forces", "--crank", "c"], "no driven joint or driver named 'c'; there are: one, a, two, b"),
        (MODEL, ["--forces", "--about", "tip"], "'tip' is on 'lever', which moves"),
        (MODEL, ["--forces", "--about", "fot"], "no body or frame named 'fot'; did you mean 'foot'?"),
        (MODEL, ["--crank", "a"], "--crank belongs to a report of forces; add --forces"),
        (MODEL, ["--fluctuation", "0.1"], "--fluctuation belongs to a report of forces; add --forces"),
        (FREE, ["--forces", "--fluctuation", "0.1"], "there is no flywheel: no joint of 'two' is driven; add a DRIVER"),
        (LIGHT, ["--forces"], "no body of 'two' has a mass"),
    ],
)
def test_what_a_report_cannot_be_about_is_one_line_before_anything_is_computed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, words: list[str], message: str
) -> None:
    outcome = run(capsys, tmp_path, text, *words)
    assert outcome.code == 1
    assert message in one_line(outcome)
    assert not (tmp_path / "out").exists()


def test_turns_that_are_not_whole_are_an_error_beside_the_other_results(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    outcome = run(capsys, tmp_path, MODEL, "--forces", "--crank", "b", "--fluctuation", "0.1")
    assert outcome.code == 1
    assert outcome.err.count("\n") == 1
    assert "'b' makes 0.159155 turns; end at 6.28318531 s" in outcome.err
    assert (tmp_path / "out" / "two.nc").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [(MODEL, "name the motor's, as in --crank 'a'"), (FREE, "no joint of 'two' is driven; add a DRIVER of the crank")],
)
def test_a_machine_without_one_motor_has_its_other_forces_and_the_reason(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, reason: str
) -> None:
    outcome = run(capsys, tmp_path, text, "--forces")
    assert outcome.code == 0, outcome.err
    assert "shaking force (N)" in outcome.out
    assert "driver's torque" not in outcome.out
    assert reason in outcome.out


def test_a_kinematic_model_has_the_forces_of_its_motion(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    outcome = run(capsys, tmp_path, MODEL.replace("INVERSE DYNAMIC", "KINEMATIC"), "--forces", "--crank", "a")
    assert outcome.code == 0, outcome.err
    assert "driver's torque (N m)" in outcome.out
