"""What `lw.tolerances` refuses: each fault by its name, with what to do instead."""

from typing import Any

import pytest
from design_models import ROOT, SWINGING, loaded

import linkwright as lw

FOUR_BAR = ROOT / "examples" / "models" / "four_bar.mks"
OUTPUT = "swing = range(d.angle)"
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "a parameter that is not there": (
        {"tolerances": {"cranc": 0.1}},
        r"no parameter named 'cranc'; did you mean 'crank'",
    ),
    "a negative tolerance": (
        {"tolerances": {"crank": -0.1}},
        r"'crank' is -0\.1; give 0\.1 for ±0\.1, or \(lower, upper",
    ),
    "no size": ({"tolerances": {"crank": 0.0}}, r"tolerance of 'crank' is zero; leave 'crank' out"),
    "not a number": ({"tolerances": {"crank": float("nan")}}, r"tolerance of 'crank' must be a finite number, not nan"),
    "limits in the wrong order": (
        {"tolerances": {"crank": (0.1, -0.1)}},
        r"goes from 0\.1 to -0\.1; the first must be",
    ),
    "three limits": ({"tolerances": {"crank": (0.1, 0.2, 0.3)}}, r"'crank' is \(0\.1, 0\.2, 0\.3\); give 0\.05"),
    "a text that is no number": ({"tolerances": {"crank": "a bit"}}, r"the tolerance of 'crank' is 'a bit'"),
    "no tolerance": ({"tolerances": {}}, r"no tolerance was given; give some by parameter"),
    "a list of tolerances": ({"tolerances": [0.1]}, r"tolerances are \[0\.1\]; give them by parameter, as in"),
    "a joint that is not there": ({"clearances": {"bb": 0.1}}, r"no joint named 'bb'; did you mean 'b'"),
    "a joint without a size": ({"clearances": {"b": 0.0}}, r"clearance of joint 'b' is 0; give a radius greater than"),
    "a clearance in per cent": ({"clearances": {"b": "1 %"}}, r"is '1 %', which is no dimension with a value"),
    "a clearance that is an angle": (
        {"clearances": {"b": "0.1 deg"}},
        r"is '0.1 deg': expected a length.*and '0.1 deg' is an angle",
    ),
    "a series": ({"outputs": "pen.x"}, r"'pen.x' varies in time; reduce it to one number, as in max\(pen\.x\)"),
    "an output that is a function": ({"outputs": lambda s: s.max(s["pen.x"])}, r"is a function; write it as a text"),
    "an output without derivative": (
        {"outputs": "argmax(pen.x)"},
        r"no derivative.*use max.*derivatives='differences'",
    ),
    "a force of a kinematic analysis": ({"outputs": "max(motor.torque)"}, r"motor.torque is a force"),
    "a distribution that is not there": (
        {"distributions": "gauss"},
        r"no distribution named 'gauss'; there are: normal, uniform",
    ),
    "a uniform one with a number": ({"distributions": "uniform(2)"}, r"belongs to normal alone"),
    "a distribution of nothing": (
        {"distributions": {"rocker": "uniform"}},
        r"no dimension with a tolerance named 'rocker'; there are: crank",
    ),
    "a distribution that is no text": ({"distributions": {"crank": 3}}, r"is 3; give 'normal', 'normal\(2\)'"),
    "too large alone": (
        {"tolerances": {"coupler": (-0.5, 2.0)}},
        r"tolerance of coupler is too large: of \+2 the mechanism takes \+1\.69\d* \(.*take a smaller tolerance",
    ),
    "too large together": (
        {"tolerances": {"coupler": 0.9, "apart": 0.9}},
        r"too large together: the mechanism takes 83\.\d % of the way to a vertex, coupler -0\.7\d*, apart \+0\.7",
    ),
    "settings as keywords": ({"draws": 5}, r"takes no argument 'draws'; give settings=lw\.ToleranceSettings\(draws"),
    "no times": ({"times": [1.0, 0.5]}, r"times are one row of finite numbers that grow"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_what_to_do(fault: str) -> None:
    changes, message = FAULTS[fault]
    plain: dict[str, Any] = {"outputs": OUTPUT, "times": [0.0, 2.0, 4.0]}
    if "clearances" not in changes:
        plain["tolerances"] = {"crank": 0.01}
    with pytest.raises(lw.errors.LinkwrightError, match=message):
        lw.tolerances(FOUR_BAR, **{**plain, **changes})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vertices": 2**21}, r"vertices is 2,097,152; 1,048,576 is the most"),
        ({"draws": -1}, r"draws must be a whole number from 0 on, not -1"),
        ({"draws": 1.5}, r"draws must be a whole number, not 1\.5"),
        ({"order": 3}, r"order is 1 or 2, not 3"),
        ({"derivatives": "guess"}, r"no kind of derivatives named 'guess'"),
        ({"order": 2, "derivatives": "differences"}, r"order=2 takes exact derivatives"),
        ({"sampling": "dice"}, r"no sampling named 'dice'"),
    ],
)
def test_settings_that_cannot_be_used_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(lw.errors.LinkwrightError, match=message):
        lw.ToleranceSettings(**settings)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"has a radius or a tilt"),
        ({"radius": -1.0}, r"the radius of a clearance is -1; give a number that is not negative"),
        ({"radius": 1.0, "spread": "ball"}, r"no spread of a clearance named 'ball'"),
    ],
)
def test_clearances_that_cannot_be_used_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(lw.errors.LinkwrightError, match=message):
        lw.Clearance(**arguments)


def test_a_spherical_joint_has_no_clearance() -> None:
    model = ROOT / "examples" / "models" / "slider_crank_parameters.mks"
    with pytest.raises(lw.errors.ModelError, match=r"joint 'sph1' is spherical, and clearances are of revolute, prism"):
        lw.tolerances(model, "max(block.x)", clearances={"sph1": 1e-3})


def test_a_tilt_of_a_plane_four_bars_pin_opens_redundant_constraints_in_every_direction() -> None:
    with pytest.raises(lw.errors.ModelError, match=r"tilt of joint 'b' opens constraints that are redundant, in every"):
        lw.tolerances(FOUR_BAR, OUTPUT, clearances={"b": lw.Clearance(tilt=0.01)})


def test_dimensions_that_change_nothing_at_all_are_refused_together(tmp_path: Any) -> None:
    mech = loaded(SWINGING.replace("PARAMETER heavy", "PARAMETER idle = 1;\nPARAMETER heavy"), tmp_path)
    with pytest.raises(lw.errors.ModelError, match=r"idle: no motion or output depends on any of these"):
        lw.tolerances(mech, "final(a.angle)", {"idle": 0.1})


def test_draws_without_a_value_are_counted_with_their_reason() -> None:
    """Within ±3σ the four-bar is one; of a normal distribution that is cut nowhere a few draws lie outside."""
    report = lw.tolerances(
        FOUR_BAR,
        OUTPUT,
        {"coupler": 1.3},
        times=[0.0, 2.0, 4.0],
        distributions="normal(1)",
        settings=lw.ToleranceSettings(draws=60),
    )
    drawn = report.monte_carlo
    assert drawn is not None
    assert 0 < drawn.failed < 30
    assert len(drawn.samples) == 60 - drawn.failed
    assert any("of 60 draws have no value: the mechanism cannot be assembled" in x for x in report["swing"].notes)


@pytest.mark.parametrize(
    ("written", "size", "message"),
    [
        ("40 mm", "0.1 mm", None),
        ("40 mm", "0:0.1 mm", None),
        ("40 mm", "0.1", r"'r' is '0\.1', and r is in mm: write 0\.1 mm"),
        ("40 mm", "-0.1:0.2", r"is '-0\.1', and r is in mm: write -0\.1 mm"),
        ("40 mm", "0.1 deg", r"expected a length.*and '0\.1 deg' is an angle"),
        ("40", "0.1", None),
        ("40", "0.1 mm", r"r is a number without a unit in the model; write the number alone"),
        ("40", "0.1 deg", r"r is a number without a unit in the model; write the number alone"),
    ],
)
def test_texts_have_the_unit_of_the_dimension(written: str, size: str, message: str | None, tmp_path: Any) -> None:
    text = f"""MODEL m
SYSTEM (KINEMATIC ANALYSIS, ending time = 1, print interval = 0.5, length unit = mm, angle unit = degree);
PARAMETER r = {written};
BODY base (ground); BODY arm; MARKER tip (associated body = arm, origin = (r, 0));
HINGE a (body = base, body = arm, at = (0, 0)); DRIVER motor (a.angle = TIME);
ENDMODEL"""
    mech = loaded(text, tmp_path)
    settings = lw.ToleranceSettings(draws=0)
    if message is not None:
        with pytest.raises(lw.errors.LinkwrightError, match=message):
            lw.tolerances(mech, "max(tip.x)", {"r": size}, settings=settings)
        return
    contribution = lw.tolerances(mech, "max(tip.x)", {"r": size}, settings=settings)["max(tip.x)"].contributions["r"]
    assert abs(contribution.high - 1e-4) < 1e-15


@pytest.mark.parametrize("clearance", [1e-5, "0.01", "0.01 mm", "1e-5 m", lw.Clearance("0.01"), lw.Clearance(1e-5)])
def test_numbers_of_clearances_are_in_si_and_texts_without_a_unit_in_that_of_the_model(
    clearance: Any, tmp_path: Any
) -> None:
    text = """MODEL m
SYSTEM (KINEMATIC ANALYSIS, ending time = 1, print interval = 0.5, length unit = mm, angle unit = degree);
BODY base (ground); BODY arm; MARKER tip (associated body = arm, origin = (40, 0));
HINGE a (body = base, body = arm, at = (0, 0)); DRIVER motor (a.angle = TIME);
ENDMODEL"""
    report = lw.tolerances(
        loaded(text, tmp_path), "max(tip.x)", clearances={"a": clearance}, settings=lw.ToleranceSettings(draws=0)
    )
    assert report["max(tip.x)"].contributions["clearance of a"].half == pytest.approx(1e-5, rel=1e-12)


@pytest.mark.parametrize(("model", "unit"), [("four_bar", "rad"), ("windscreen_wiper", "deg")])
def test_the_axes_of_the_figure_have_the_unit_of_the_output(model: str, unit: str) -> None:
    joint = {"four_bar": "d", "windscreen_wiper": "wiper"}[model]
    report = lw.tolerances(
        ROOT / "examples" / "models" / f"{model}.mks",
        f"swing = range({joint}.angle)",
        {"crank": "0.1 %"},
        times=[0.0, 0.2, 0.4, 0.6],
        settings=lw.ToleranceSettings(draws=4),
    )
    labels = [ax.get_xlabel() for ax in report.plot().axes]
    assert labels == [f"contribution to swing (± {unit})", f"swing ({unit})", "added up (%)"]
