"""`linkwright convert`: from one language of models to another; and how wrong model files are told."""

import os
from pathlib import Path

import pytest
from command import ARM, linkwright, one_line

from linkwright.formats.model_files import read

SAMPLE = ARM.with_name("slider_crank.mks")


def test_a_urdf_becomes_a_model_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, "convert", ARM, tmp_path / "arm.mks")
    assert outcome.code == 0, outcome.err
    assert list(read(tmp_path / "arm.mks").joint_names) == list(read(ARM).joint_names)


def test_there_and_back_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    linkwright(capsys, "convert", ARM, tmp_path / "arm.mks")
    outcome = linkwright(capsys, "convert", tmp_path / "arm.mks", tmp_path / "arm.urdf")
    assert outcome.code == 0, outcome.err
    assert list(read(tmp_path / "arm.urdf").body_names) == list(read(ARM).body_names)


def test_a_parameter_is_set_on_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m.mks"
    model.write_text("MODEL m PARAMETER p = 2; BODY g (ground); BODY a (mass = p); ENDMODEL")
    outcome = linkwright(capsys, "convert", model, tmp_path / "n.mks", "--set", "p=5")
    assert outcome.out.endswith("n.mks: m, 1 body, 1 joint\n")
    assert "PARAMETER p = 5;" in (tmp_path / "n.mks").read_text()


def test_what_urdf_cannot_hold_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = one_line(linkwright(capsys, "convert", SAMPLE, tmp_path / "x.urdf"))
    assert "URDF cannot hold the loop closed by joint 'sph2'" in told
    assert ".mks can, and MJCF (.xml) most of it" in told
    assert os.listdir(tmp_path) == []


def test_a_rod_is_not_sent_to_a_format_that_has_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m.mks"
    text = "MODEL m BODY g (ground); BODY a (mass = 1, origin = (1, 0, 0)); ROD r (triad = g, triad = a, length = 1);"
    model.write_text(f"{text} ENDMODEL")
    told = one_line(linkwright(capsys, "convert", model, tmp_path / "x.urdf"))
    assert "URDF cannot hold rod 'r'" in told
    assert "MJCF" not in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["x.stl"], "models are written as .mks, .urdf, .xml"),
        (["x.xacro"], ".xacro files are read, not written"),
        (["none/x.mks"], "there is no folder"),
        (["x.mks", "--folder", "."], "the option --folder is not one of this format's"),
        (["x.mks", "--argument", "p"], "as in --argument prefix=left"),
        (["x.mks", "--set", "p"], "as in --set length=0.3"),
        (["x.mks", "--set", "p=1"], "there is no parameter 'p'"),
    ],
)
def test_wrong_words_are_told_in_a_line(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told in one_line(linkwright(capsys, "convert", SAMPLE, tmp_path / words[0], *words[1:]))


def test_what_becomes_softer_in_mujoco_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m.sdf"
    body = "<inertial><mass>1</mass></inertial>"
    links = "".join(f"<link name='{n}'>{body}</link>" for n in "ab")
    joints = "".join(
        f"<joint name='{p}{c}' type='revolute'><parent>{p}</parent><child>{c}</child></joint>"
        for p, c in (("world", "a"), ("world", "b"), ("a", "b"))
    )
    model.write_text(f"<sdf version='1.7'><model name='m'>{links}{joints}</model></sdf>")
    outcome = linkwright(capsys, "convert", model, tmp_path / "m.xml")
    assert outcome.code == 0, outcome.err
    assert "soft equality constraints" in outcome.err
    assert outcome.out.endswith("m.xml: m, 2 bodies, 3 joints\n")
    assert list(read(tmp_path / "m.xml").body_names) == ["a", "b"]


def test_a_model_is_not_written_over_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m.mks"
    model.write_text("MODEL m BODY g (ground); BODY a (mass = 1); ENDMODEL")
    assert "is the model itself" in one_line(linkwright(capsys, "convert", model, model))


def test_a_robot_of_one_body_is_converted_only_with_a_floating_base(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, target = tmp_path / "m.urdf", tmp_path / "m.xml"
    inertial = "<inertial><mass value='1'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/></inertial>"
    model.write_text(f"<robot name='r'><link name='hull'>{inertial}</link></robot>")
    assert "--base floating" in one_line(linkwright(capsys, "convert", model, target))
    assert not target.exists()
    assert linkwright(capsys, "convert", model, target, "--base", "floating").code == 0
    assert list(read(target).body_names) == ["hull"]


def test_a_xacro_file_wants_trust(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m.xacro"
    model.write_text("<robot/>")
    assert "--trust" in one_line(linkwright(capsys, "convert", model, tmp_path / "m.mks"))


def test_every_problem_of_a_model_file_is_printed_with_its_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "m.mks"
    model.write_text("MODEL m\nBODY g (grund);\nBODY a (mas = 1);\nENDMODEL\n")
    outcome = linkwright(capsys, "check", model)
    assert outcome.code == 1
    assert "Traceback" not in outcome.err
    lines = outcome.err.splitlines()
    assert lines[0].startswith(f"{model}:2:9: ")
    assert lines[1:3] == ["    BODY g (grund);", "            ^~~~~"]
    assert lines[3].startswith(f"{model}:3:9: ")
    assert lines[-1] == f"error: {model} cannot be read: 2 problems"
