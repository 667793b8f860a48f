"""`linkwright check`: what it prints of good models, and of odd ones."""

from pathlib import Path

import pytest
from command import ARM, JOINT, LINK, SWING, linkwright, urdf


def test_the_table_has_a_row_for_every_body_and_its_joint(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, "check", ARM)
    assert outcome.code == 0
    assert outcome.err == ""
    rows = [line.split() for line in outcome.out.splitlines()]
    assert ["forearm", "2.3", "elbow", "revolute", "upper_arm", "2", "2", "-2.8", "…", "2.8", "rad"] in rows
    assert "6 bodies, 6 coordinates, 6 rates" in outcome.out
    assert "6 degrees of freedom" in outcome.out
    assert "further frames: base, tool, ground" in outcome.out


def test_a_floating_base_has_seven_coordinates_and_six_rates(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, "check", ARM, "--base", "floating")
    assert "13 coordinates, 12 rates" in outcome.out
    assert ["base", "4", "root_joint", "free", "ground", "0–6", "0–5"] in [x.split() for x in outcome.out.splitlines()]


def test_fixed_joints_are_kept_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, "check", ARM, "--fixed", "keep")
    assert "tool_mount" in outcome.out


def test_a_follower_names_its_leader(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "gripper.urdf"
    follower = JOINT.format("right", "continuous", "base", "b").replace("</joint>", '<mimic joint="left"/></joint>')
    links = [LINK.format(name) for name in ("base", "a", "b")]
    model.write_text(urdf(*links, JOINT.format("left", "continuous", "base", "a"), follower))
    assert "follows left" in linkwright(capsys, "check", model).out
    assert "follows" not in linkwright(capsys, "check", model, "--mimic", "independent").out


def test_a_table_in_toml_is_read_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "one.dh.toml"
    model.write_text('convention = "modified"\n[[link]]\na = 0.0\nmass = "m"\ncom = [1.0, 0.0, 0.0]\n')
    outcome = linkwright(capsys, "check", model)
    assert outcome.code == 0
    assert "parameters: m = 1" in outcome.out


def test_names_in_brackets_are_printed_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "odd.urdf"
    model.write_text(SWING.replace('"bob"', '"[bold]bob[/bold]"'))
    assert "[bold]bob[/bold]" in linkwright(capsys, "check", model).out


def test_a_joint_that_moves_no_inertia_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "light.urdf"
    # A mass on the axis of its joint, without extent.
    model.write_text(SWING.replace('ixx="1" iyy="1" izz="1"', 'ixx="0" iyy="0" izz="0"'))
    outcome = linkwright(capsys, "check", model)
    assert outcome.code == 0
    assert outcome.err.startswith("warning: ")
    assert "joint 'pivot'" in outcome.err
    assert "lock it" in outcome.err


def test_missing_inertials_are_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "massless.urdf"
    model.write_text(urdf('<link name="a"/>', '<link name="b"/>', JOINT.format("j", "continuous", "a", "b")))
    outcome = linkwright(capsys, "check", model)
    assert outcome.err.count("warning: ") == 1
    assert "'b'" in outcome.err


def test_a_model_in_which_nothing_moves_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "stone.urdf"
    model.write_text(urdf(LINK.format("stone")))
    outcome = linkwright(capsys, "check", model)
    assert outcome.code == 0
    assert "nothing moves" in outcome.err


def test_a_model_with_a_loop_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, "check", ARM.with_name("slider_crank.mks"))
    assert outcome.code == 0, outcome.err
    assert "loops closed by: sph2" in outcome.out


CONTRADICTION = """MODEL swing
SYSTEM (DYNAMIC ANALYSIS, ending time = 1, print interval = 0.1);
BODY g (ground);
BODY rod (mass = 1, com = (1, 0, 0), inertia = (0.1, 0.1, 0.1));
TRIAD tip (associated body = rod, origin = (1, 0, 0));
REVOLUTE JOINT hinge (triad = g, triad = rod);
INITIAL (tip.x = 3);
ENDMODEL
"""


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (CONTRADICTION, "initial value of 'tip.x' cannot be met: joint 'hinge' does not allow 3"),
        (CONTRADICTION.replace("DYNAMIC", "KINEMATIC"), "the nearest state that exists has tip.x = 1"),
        (CONTRADICTION.replace("tip.x = 3", "tip.x = 1").replace("mass = 1", "mass = 0"), "has a mass"),
        (CONTRADICTION.replace("tip.x = 3", "tip.x = 1").replace("DYNAMIC", "INVERSE DYNAMIC"), "has no drivers"),
    ],
    ids=["dynamic", "kinematic", "massless", "undriven"],
)
def test_what_run_refuses_check_refuses_with_the_same_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str, reason: str
) -> None:
    file = tmp_path / "swing.mks"
    file.write_text(model)
    checked, ran = (linkwright(capsys, verb, file) for verb in ("check", "run"))
    assert (checked.code != 0, ran.code != 0) == (True, True)
    assert reason in " ".join(checked.err.split())
    assert reason in " ".join(ran.err.split())


def test_what_a_model_hardly_means_or_sets_in_vain_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "hinge.mks"
    model.write_text(
        "MODEL hinge\nSYSTEM (DYNAMIC ANALYSIS, ending time = 1, print interval = 0.1, lu tolerance = 1e-6);\n"
        "BODY g (ground);\nBODY a (mass = 1, inertia = (1, 1, 1));\nREVOLUTE JOINT j (triad = g, triad = a);\n"
        "DRIVER d (j.angle = 180*TIME);\nENDMODEL\n"
    )
    outcome = linkwright(capsys, "check", model)
    assert outcome.code == 0
    for note in ("across the plane", "write 180 deg*TIME", "more than half a turn", "lu tolerance is for kinematic"):
        assert note in outcome.out
