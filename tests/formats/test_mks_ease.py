"""What makes the language forgiving where it can be, and strict where a guess would be wrong."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from linkwright.errors import FormatError
from linkwright.formats.mks.colours import COLOURS
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.formats.mks.mks_writer import write_mks
from linkwright.formats.mks.values import constant

DEGREES = "SYSTEM (KINEMATIC ANALYSIS, angle unit = degree);\n"
HINGE = "BODY g (ground);\nBODY a (mass = 1);\nREVOLUTE JOINT j (triad = g, triad = a);\n"


def model(text: str, **options):
    return parse_mks(f"MODEL m\n{text}\nENDMODEL", **options)


def angle_at(text: str, time: float) -> float:
    """The angle in degrees at a time that a law makes in a model of degrees."""
    law = model(f"{DEGREES}{HINGE}DRIVER d (j.angle = {text});").drivers[0].law
    return math.degrees(law.evaluate({"TIME": time}))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("30 + 90*TIME", 210.0),
        ("30 deg + 90 deg*TIME", 210.0),
        ("30 deg + TIME*(pi/2 + 0)*1 rad", 210.0),
        ("if(TIME < 1, 0, 30 deg)", 30.0),
        ("step(TIME, 0, 0, 1, 90 deg)", 90.0),
        ("atan2(1, 1) + 1 deg", 46.0),
        ("table(TIME, (0, 0), (1, 15 deg), (2, 30 deg))", 30.0),
        ("table(TIME, (0, 0), (1, 15), (2, 30))", 30.0),
    ],
)
def test_terms_that_all_have_a_unit_or_none_are_read_as_meant(text: str, value: float) -> None:
    assert angle_at(text, 2.0) == pytest.approx(value, abs=1e-12)


def test_a_mixture_is_no_matter_where_angles_are_in_radians() -> None:
    law = model(f"{HINGE}DRIVER d (j.angle = 30 deg + TIME);").drivers[0].law
    assert law.evaluate({"TIME": 1.0}) == pytest.approx(math.pi / 6 + 1.0)


@pytest.mark.parametrize(
    ("text", "value", "angle"),
    [("25 deg", math.radians(25), True), ("1/3", 1 / 3, False), ("2*pi", math.tau, False), (" -4e-3 ", -0.004, False)],
)
def test_constants_outside_a_file_are_expressions_with_units(text: str, value: float, angle: bool) -> None:
    made = constant(text)
    assert made.number == pytest.approx(value, rel=1e-15)
    assert made.angle is angle


@pytest.mark.parametrize("text", ["", "a", "TIME", "1;2", "1 +", "(1, 2)", "1" * 2000, "25 degs of", "1 // 0)"])
def test_what_is_no_constant_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        constant(text)


def test_a_text_for_an_angle_has_a_unit_and_a_number_is_in_radians() -> None:
    bent = f"PARAMETER bend = 25 deg;\n{HINGE}DRIVER d (j.angle = bend);"
    assert model(bent, parameters={"bend": 0.5}).parameters["bend"] == 0.5
    assert model(bent, parameters={"bend": "0"}).parameters["bend"] == 0.0
    assert model(bent, parameters={"BEND": "30 deg"}).parameters["bend"] == pytest.approx(math.pi / 6)
    with pytest.raises(FormatError, match=r"bend is an angle: write 30 deg or 0\.523599 rad"):
        model(bent, parameters={"bend": "30"})


def test_a_plain_angle_in_degrees_may_be_given_with_its_unit() -> None:
    bent = f"{DEGREES}PARAMETER bend = 25;\n{HINGE}DRIVER d (j.angle = bend);"
    for value in (30.0, "30", "30 deg"):
        d = model(bent, parameters={"bend": value})
        assert d.drivers[0].law.evaluate(d.parameters) == pytest.approx(math.pi / 6)


def test_an_unknown_parameter_is_told_with_those_there_are() -> None:
    with pytest.raises(FormatError, match="there is no parameter 'x'; there are length, width"):
        model(f"PARAMETER length = 1; PARAMETER width = 2;\n{HINGE}", parameters={"x": 1.0})


@pytest.mark.parametrize("body", ["BODY b;", "BODY b ();", "body b ( ) ;"])
def test_a_body_may_have_nothing_given(body: str) -> None:
    d = model(f"BODY g (ground);\n{body}\nREVOLUTE JOINT j (triad = g, triad = b);")
    assert list(d.body_names) == ["b"]
    assert d.mass[0] == 0.0


def test_triads_without_a_name_are_named_after_what_holds_them_where_a_name_is_needed() -> None:
    d = model(
        f"{HINGE}TRIAD s_place (associated body = a);\n"
        "SHAPE s (triad = (associated body = a, origin = (1, 0, 0)), sphere = 0.1);\n"
        "TRACE t (triad = (associated body = a, origin = (2, 0, 0)));\n"
        "ROD r (triad = (associated body = g, origin = (3, 0, 0)), triad = (associated body = a), length = 3);\n"
        "POINT ON LINE p (line = (associated body = g, h = (1, 0, 0)), point = a);\n"
        "DRIVER d (distance((associated body = a, origin = (4, 0, 0)), g) = 4);"
    )
    frames = dict(zip(d.frames.names, np.array(d.frames.p, float)[:, 0], strict=True))
    expected = {"s_place": 0, "s_place2": 1, "t_place": 2, "r_place": 3, "r_place2": 0, "p_place": 0, "d_place": 4}
    assert frames == expected
    assert list(parse_mks(write_mks(d)).frames.names) == list(d.frames.names)


def test_the_page_lists_every_colour() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/mks.md").read_text(encoding="utf-8")
    assert f"names: {', '.join(COLOURS)}." in page


def test_the_colour_of_a_body_without_a_shape_is_kept_and_printed() -> None:
    d = model('BODY g (ground, colour = navy);\nBODY a (mass = 1, colour = "#12ab34");\nBODY b (mass = 1);')
    assert d.colors == (("g", "#000080"), ("a", "#12ab34"))
    assert parse_mks(write_mks(d)).colors == d.colors


# -- the published sample ---------------------------------------------------------------------------------------
SAMPLE = (Path(__file__).parents[2] / "examples" / "models" / "slider_crank.mks").read_text(encoding="utf-8")


def test_the_sample_reads_as_it_is_printed() -> None:
    """`translation joint`, and no semicolon before ENDMODEL."""
    printed = re.sub(r"(?i)translational joint", "translation joint", SAMPLE)
    printed = re.sub(r"(?i);(\s*(?:#[^\n]*)?\s*)endmodel", r"\1ENDMODEL", printed)
    assert "translation joint" in printed
    assert printed.count(";") < SAMPLE.count(";")
    assert parse_mks(printed).digest == parse_mks(SAMPLE).digest


@pytest.mark.parametrize(
    "end", ["\nENDMODEL", "\n  endmodel ;\n", " ENDMODEL", " # last\nENDMODEL", "\n/* ; */ENDMODEL"]
)
def test_the_last_statement_may_end_with_the_model(end: str) -> None:
    assert parse_mks(f"MODEL m\nBODY g (ground);\nBODY a (mass = 3){end}").mass.tolist() == [3.0]


def test_an_open_bracket_is_not_ended_by_the_model() -> None:
    with pytest.raises(FormatError, match="expected a comma or a closing parenthesis"):
        parse_mks("MODEL m\nBODY g (ground);\nBODY a (mass = 3\nENDMODEL")


# -- words of other programs ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "word", ["MOTOR", "motors", "SERVO", "ACTUATED", "DRIVE", "DRIVEN", "MOTION", "INPUT", "CRANK"]
)
def test_a_word_for_what_moves_a_joint_is_answered_by_driver_and_actuator(word: str) -> None:
    with pytest.raises(FormatError, match=f"'{word}' begins no statement; .*DRIVER .*motion.* ACTUATOR .*force"):
        model(f"{HINGE}{word} m (joint = j, law = 3);")


@pytest.mark.parametrize("label", ["motor", "driven", "crank", "torque = 3", "actuator = 3", "driver = TIME"])
def test_an_attribute_that_would_move_a_joint_is_answered_by_driver_and_actuator(label: str) -> None:
    with pytest.raises(FormatError, match=r"'j' has no attribute .*DRIVER .*motion.* ACTUATOR .*force"):
        model(HINGE.replace("triad = a);", f"triad = a, {label});"))


@pytest.mark.parametrize(
    ("word", "kind"),
    [("PIVOT", "REVOLUTE"), ("socket", "SPHERICAL"), ("GUIDE", "TRANSLATIONAL"), ("CARDAN", "UNIVERSAL")],
)
def test_a_joint_by_the_workshops_name_is_answered_by_its_kind(word: str, kind: str) -> None:
    with pytest.raises(FormatError, match=f"'{word}' begins no statement; write {kind} JOINT"):
        model(HINGE.replace("REVOLUTE", word))


@pytest.mark.parametrize(
    ("word", "answer"),
    [("GLUE", "FIXED JOINT"), ("CONTACT", "STOP"), ("cable", "ROD"), ("MASS", "attributes of a BODY")],
)
def test_a_word_that_is_no_statement_is_answered_by_what_the_language_has(word: str, answer: str) -> None:
    with pytest.raises(FormatError, match=f"'{word}' begins no statement; .*{answer}"):
        model(f"{HINGE}{word} m (joint = j);")


def test_a_word_that_is_only_misspelt_still_gets_the_nearest_one() -> None:
    with pytest.raises(FormatError, match="did you mean 'DRIVER'"):
        model(f"{HINGE}DRIWER d (j.angle = TIME);")


def test_a_marker_is_a_triad() -> None:
    adams = re.sub(r"(?i)\btriad\b", "marker", SAMPLE)
    assert "marker" in adams
    assert write_mks(parse_mks(adams)) == write_mks(parse_mks(SAMPLE))
    with pytest.raises(FormatError, match="'marker' is there a third time"):
        model(f"{HINGE}ROD r (marker = g, triad = a, marker = a, length = 1);")
