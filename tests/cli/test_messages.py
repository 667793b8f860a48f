"""What a user's mistake looks like: one line on stderr, an exit code, no traceback."""

import subprocess
import sys
from pathlib import Path

import pytest
from command import ARM, SWING, linkwright, one_line

import linkwright as lw


def test_no_words_print_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys)
    for verb in ("check", "export", "demo", "bench"):
        assert outcome.out.count(f" {verb} ") >= 1
    assert outcome.out.count("Usage:") == 1
    assert "Traceback" not in outcome.err


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, "--version")
    assert (outcome.code, outcome.out) == (0, f"linkwright {lw.__version__}\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["chek"], "no such command 'chek'"),
        (["chekc"], "no such command 'chekc'; did you mean 'check'? See linkwright --help"),
        (["check"], "missing argument"),
        (["check", "--flying"], "no such option: --flying"),
        (["check", "a.urdf", "b.urdf"], "b.urdf"),
        (["export", "a.urdf", "-o"], "requires an argument"),
    ],
)
def test_wrong_words_are_exit_code_2(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, *words)
    assert outcome.code == 2
    message = one_line(outcome)
    assert told in message
    assert "--help" in message


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("robot.urdf", "not XML", "not well-formed XML"),
        ("robot.urdf", "", "the file is empty"),
        ("robot.xml", "", "the file is empty"),
        ("robot.sdf", " \n", "the file is empty"),
        ("robot.urdf", "<sdf/>", "not <robot>"),
        ("robot.urdf", '<robot name="x"/>', "no <link>"),
        ("robot.urdf", SWING.replace('mass value="1"', 'mass value="-1"'), "negative mass"),
        ("robot.urdf", SWING.replace('child link="bob"', 'child link="rob"'), "'rob'"),
        ("arm.dh.toml", "convention = ", "is not TOML"),
        ("arm.dh.toml", "[[link]]\na = 1.0\n", "does not say its convention"),
        ("arm.sdf", '<sdf version="1.9"/>', "has 0 <model> and <world>"),
        ("arm.step", "", "'.step' are not read"),
        ("arm", "", "a file without an ending is not read as a model; the ending says the format: .mks"),
        ("arm.nc", "", "holds results, not a model; `linkwright view` shows them"),
    ],
)
def test_a_model_that_cannot_be_read_is_exit_code_1(
    name: str, text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / name
    file.write_text(text)
    outcome = linkwright(capsys, "check", file)
    assert outcome.code == 1
    message = one_line(outcome)
    assert message.startswith(str(file))
    assert told in message


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no such file" in one_line(linkwright(capsys, "check", tmp_path / "robot.urdf"))
    assert "is a folder" in one_line(linkwright(capsys, "check", tmp_path))


def test_a_table_in_another_encoding_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "arm.dh.toml"
    file.write_bytes('name = "Gelenkarm für zwei"\n'.encode("latin-1"))
    assert "the byte 0xfc at position 19 is not UTF-8; save" in one_line(linkwright(capsys, "check", file))


def test_a_wrong_option_of_the_reader_says_the_right_ones(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, "check", ARM, "--base", "flying")
    assert outcome.code == 1
    assert "must be 'fixed' or 'floating'" in one_line(outcome)


def test_an_option_that_a_format_lacks_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "arm.dh.toml"
    file.write_text('convention = "modified"\n[[link]]\nmass = 1.0\n')
    assert "'base'" in one_line(linkwright(capsys, "check", file, "--base", "floating"))
    assert "the option --set is not one of this format's" in one_line(linkwright(capsys, "check", file, "--set", "x=1"))


def test_set_of_a_format_without_parameters_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    message = one_line(linkwright(capsys, "check", ARM, "--set", "x=1"))
    assert message.endswith("a file of this format has no parameters; leave --set out")


def test_a_paragraph_of_help_is_one_line_where_there_is_room(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    lines = [line.strip() for line in linkwright(capsys, "sweep", "--help").out.splitlines()]
    assert [line.endswith("if none is good.") for line in lines if line.startswith("The folder holds")] == [True]


def test_the_module_runs_as_the_command_does_and_a_closed_pipe_is_quiet() -> None:
    command = f'"{sys.executable}" -m linkwright check "{ARM}" | head -n 1'
    source = Path(lw.__file__).parents[1]
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, cwd=source)
    assert result.stdout == "six-joint arm\n"
    assert result.stderr == ""
