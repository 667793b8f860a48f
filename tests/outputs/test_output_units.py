"""Outputs in tables: in the units of the model, by the dimensions of the quantities in them."""

from __future__ import annotations

import numpy as np
import pytest

import linkwright as lw
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.outputs.output_language import output_of
from linkwright.outputs.output_units import output_shown, parameter_shown

MODEL = """
MODEL arm
SYSTEM (KINEMATIC ANALYSIS, starting time = 0, ending time = 1, print interval = 0.25{units});
PARAMETER crank = 40 mm;
PARAMETER ratio = 2;
BODY base (ground);
BODY bar (mass = 1, inertia = (1, 1, 1));
REVOLUTE JOINT hinge (triad = base, triad = bar);
TRIAD pen (associated body = bar, origin = (crank, 0, 0));
DRIVER motor (hinge.angle = {turn}*TIME);
ENDMODEL
"""
MM = MODEL.format(units=", length unit = mm, angle unit = degree", turn=90)
SI = MODEL.format(units="", turn=np.pi / 2)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("max(pen.x)", "mm"),
        ("max(pen.x) - min(pen.y)", "mm"),
        ("final(hinge.angle)", "deg"),
        ("rms(hinge.rate)", "deg/s"),
        ("max(pen.ax)", "mm/s^2"),
        ("argmax(pen.x)", ""),
        ("integral(pen.vx)", "mm"),
        ("max(sqrt(pen.x^2 + pen.y^2))", "mm"),
        ("max(pen.x)/crank", ""),
        ("ratio*crank", "mm"),
        ("max(sin(hinge.angle))", ""),
        ("max(atan2(pen.y, pen.x))", "deg"),
        ("crank*max(hinge.rate)", "mm/s"),
        ("max(motor.torque)", "N mm"),
        ("max(pen.x) + max(hinge.angle)", ""),
        ("max(pen.x)^0.3", ""),
        ("max(abs(pen.x)) - 5 mm", "mm"),
        ("max(if(pen.x > 0, pen.x, 0))", "mm"),
    ],
)
def test_an_output_is_shown_in_the_models_unit_of_its_dimension(text: str, unit: str) -> None:
    d = parse_mks(MM)
    shown = output_shown(d, output_of(d, "x", text).expression)
    assert shown.text == unit if unit else shown.target is None
    assert output_shown(parse_mks(SI), output_of(d, "x", text).expression).target is None


def test_a_parameter_is_shown_in_the_unit_that_it_was_written_in() -> None:
    d = parse_mks(SI)
    assert parameter_shown(d, "crank").text == "mm"
    assert parameter_shown(d, "crank").of(0.04) == 40.0
    assert parameter_shown(d, "ratio").of(2.0) == 2.0


def test_tables_of_studies_are_in_these_units_and_arrays_in_si() -> None:
    mech = lw.Mechanism(parse_mks(MM))
    study = lw.sweep(mech, {"crank": [0.03, 0.05]}, ["reach = max(pen.x)", "end = final(hinge.angle)"])
    np.testing.assert_allclose(study["reach"], [0.03, 0.05], rtol=1e-12)
    assert [row[:4] for row in study.summary()] == [
        ("crank (mm)", "30", "40", "50"),
        ("reach (mm)", "30", "40", "50"),
        ("end (deg)", "90", "90", "90"),
    ]
    plain = lw.sweep(lw.Mechanism(parse_mks(SI)), {"crank": [0.03, 0.05]}, "reach = max(pen.x)")
    assert plain.summary()[1][:2] == ("reach", "0.03")


def test_tables_of_tolerances_are_in_these_units() -> None:
    settings = lw.ToleranceSettings(draws=0)
    reports = [
        lw.tolerances(lw.Mechanism(parse_mks(text)), "reach = max(pen.x)", {"crank": "0.5 mm"}, settings=settings)
        for text in (SI, MM)
    ]
    si, mm = (report["reach"] for report in reports)
    assert mm.nominal == si.nominal
    assert mm.title == "reach = max(pen.x): 40 mm"
    assert mm.rows()[0][:3] == ("crank", "40 mm", "±0.5")
    assert mm.rows()[0][4:6] == ("1", "0.5")
    assert mm.methods()[0][1:] == ("39.5", "40.5", "0.5")
    assert si.title == "reach = max(pen.x): 0.04"
    assert si.rows()[0][4:6] == ("0.001", "0.0005")
