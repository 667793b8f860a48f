"""What a model may have and its author has hardly meant is noted, and nothing else."""

import re

import numpy as np
import pytest

import linkwright as lw
from linkwright.constraints.model_warnings import remarks
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.mechanism import Mechanism

TEXT = """MODEL hinge
{system}
BODY g (ground);
BODY a (mass = 1, inertia = (1, 1, 1), com = (1, 0, 0));
TRIAD foot (associated body = g, h = {axis});
TRIAD hub (associated body = a, h = {axis});
REVOLUTE JOINT j (triad = foot, triad = hub{joint});
{more}
ENDMODEL
"""


def model(more: str = "", *, system: str = "", joint: str = "", axis: str = "(0, 0, 1)"):
    return parse_mks(TEXT.format(more=more, system=system, joint=joint, axis=axis))


# -- gravity ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["dynamic", "static", "inverse dynamic"])
@pytest.mark.parametrize(
    ("gravity", "axis", "instead"),
    [
        ("", "(0, 0, 1)", r"\(0, -9\.81, 0\)"),
        ("GRAVITY (0, 0, 3);", "(0, 0, -1)", r"\(0, -3, 0\)"),
        ("GRAVITY (0, -9.81, 0);", "(0, 1, 0)", r"\(0, 0, -9\.81\)"),
    ],
)
def test_gravity_across_the_plane_of_motion_is_noted_with_the_plane(kind, gravity, axis, instead) -> None:
    (note,) = remarks(model(gravity, axis=axis), kind)
    assert "across the plane" in note
    assert re.search(f"write GRAVITY {instead}", note)


@pytest.mark.parametrize("gravity", ["GRAVITY (0, -9.81, 0);", "GRAVITY (0, -0.1, 9.81);", "GRAVITY (0, 0, 0);"])
def test_gravity_that_moves_something_or_is_none_is_not_noted(gravity) -> None:
    assert remarks(model(gravity), "dynamic") == []


def test_gravity_does_not_matter_to_kinematic_analysis() -> None:
    assert remarks(model(), "kinematic") == []


def test_a_mechanism_in_space_has_no_plane() -> None:
    assert remarks(lw.chain(3).description, "dynamic") == []


# -- degrees ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("law", "shown"),
    [
        ("180*TIME", r"180\*TIME .* 28\.6 turns per second; write 180 deg\*TIME"),
        ("TIME*90 + 0.1", r"90\*TIME"),
        ("-360*TIME/2", r"-180\*TIME"),
        ("90 + 2*TIME", "90 rad is 14.3 turns; write 90 deg"),
        ("45*sin(TIME)", "45 rad is 7.16 turns"),
        ("w*TIME", r"180\*TIME"),
    ],
)
def test_numbers_like_degrees_in_the_law_of_an_angle_in_radians_are_noted(law, shown) -> None:
    (note,) = remarks(model(f"PARAMETER w = 180;\nDRIVER d (j.angle = {law});"), "kinematic")
    assert note.startswith("driver 'd' has ")
    assert re.search(shown, note)


@pytest.mark.parametrize(
    "law", ["180 deg*TIME", "2*TIME", "10*TIME", "0.3*sin(180*TIME)", "90*pi/180*TIME", "100*TIME", "2*pi*5*TIME"]
)
def test_laws_that_are_meant_in_radians_are_not_noted(law) -> None:
    assert remarks(model(f"DRIVER d (j.angle = {law});"), "kinematic") == []


def test_laws_in_a_model_of_degrees_are_not_noted() -> None:
    d = model("DRIVER d (j.angle = 180*TIME);", system="SYSTEM (KINEMATIC ANALYSIS, angle unit = degree);")
    assert remarks(d, "kinematic") == []


def test_laws_of_lengths_are_not_noted() -> None:
    d = model("DRIVER d (a.x = 180*TIME);")
    assert remarks(d, "kinematic") == []


def test_initial_angles_and_limits_like_degrees_are_noted() -> None:
    d = model("GRAVITY (0, 1, 0);\nINITIAL (j.angle = 90);", joint=", lower = -180, upper = 180")
    first, second = remarks(d, "dynamic")
    assert first.startswith("'j.angle' begins at 90 rad")  # a sentence of it leaves the name as it is
    assert "joint 'j' has limits of -180 … 180 rad" in second


# -- print points -------------------------------------------------------------------------------------------------
def test_a_driver_that_turns_more_than_half_a_turn_between_print_points_is_noted() -> None:
    (note,) = remarks(model("DRIVER d (j.angle = 20*TIME^2);"), "kinematic", np.linspace(0.0, 2.0, 21))
    # 20 (t + 0.1)² − 20 t² = π at t = 0.7354: the first pair of points beyond it.
    assert "driver 'd' turns by 0.541 turns between the print points t = 0.8 and 0.9 s" in note
    assert "more than half a turn" in note


def test_half_a_turn_is_not_noted() -> None:
    assert remarks(model("DRIVER d (j.angle = pi*TIME);"), "kinematic", np.arange(4.0)) == []


# -- where they are shown -------------------------------------------------------------------------------------------
def test_an_analysis_has_them_among_its_notes() -> None:
    system = "SYSTEM (KINEMATIC ANALYSIS, ending time = 1, print interval = 0.1);"
    d = model("DRIVER d (j.angle = 180*TIME);", system=system)
    notes = " ".join(lw.analyse(Mechanism(d)).status.notes)
    assert "write 180 deg*TIME" in notes
    assert "more than half a turn" in notes


# -- numbers of joints that nothing looks at ------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "numbers", "note"),
    [
        ("FIXED", "damping = 3", "joint 'j' is fixed, and does not need what it has of damping"),
        ("FIXED", "armature = 3, friction = 1", "friction and armature"),
        ("CYLINDRICAL", "lower = -1, upper = 1", "joint 'j' is cylindrical: limits are for joints of one coordinate"),
    ],
)
def test_numbers_that_do_nothing_on_their_joint_are_noted(kind, numbers, note) -> None:
    text = TEXT.format(more="", system="", joint=f", {numbers}", axis="(0, 0, 1)").replace("REVOLUTE", kind)
    (found,) = remarks(parse_mks(text), "kinematic")
    assert note in found


def test_numbers_that_act_on_their_joint_are_not_noted() -> None:
    d = model(joint=", damping = 3, friction = 1, armature = 2, lower = -1, upper = 1")
    assert remarks(d, "kinematic") == []
