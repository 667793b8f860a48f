"""Where exports are written: whole or not at all, and never over what they did not write."""

import os
from pathlib import Path

import pytest
from export_tools import MODELS

import linkwright as lw
from linkwright.cli.app import run
from linkwright.exports.export_folder import write_folder

ARM = MODELS / "arm.urdf"


def test_a_folder_of_an_earlier_export_is_written_anew(tmp_path: Path) -> None:
    first = lw.export(ARM, tmp_path / "out", "gravity_forces")
    (tmp_path / "out" / "gravity_forces.c").write_text("old")
    again = lw.export(ARM, tmp_path / "out", "gravity_forces")
    assert (tmp_path / "out" / "gravity_forces.c").read_text() == again.files["gravity_forces.c"]
    assert sorted(os.listdir(tmp_path / "out")) == sorted(first.files)


def test_a_folder_with_other_files_is_refused_unless_told(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(lw.errors.LinkwrightError, match=r"holds thesis\.tex.*overwrite=True"):
        lw.export(ARM, tmp_path, "gravity_forces")
    assert os.listdir(tmp_path) == ["thesis.tex"]
    lw.export(ARM, tmp_path, "gravity_forces", overwrite=True)
    assert (tmp_path / "thesis.tex").read_text() == "mine"
    assert (tmp_path / "gravity_forces.c").exists()


def test_a_failure_in_the_middle_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Path.write_text

    def full(self: Path, *rest: object, **more: object) -> int:
        if self.name == "b":
            raise OSError(28, "No space left on device")
        return written(self, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(lw.errors.LinkwrightError, match=r"cannot write .*out: No space"):
        write_folder(tmp_path / "out", {"a": "1", "b": "2"})
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--to", "jaxx", "-o", "out"], "did you mean 'jax'"),
        (["--function", "mass_matrx", "-o", "out"], "did you mean 'mass_matrix'"),
        (["--to", "jax", "--precision", "float32", "-o", "out"], "is for C and CUDA"),
        (["--to", "jax", "--arduino", "-o", "out"], "an Arduino library is C"),
        (["-o", "model.h"], "a file that ends in .c, or to a folder"),
        (["-o", "no/out"], "there is no folder no"),
        (["-o", "taken"], "is a file"),
        (["-o", "full"], "--overwrite"),
        (["--name", "2fast", "-o", "out"], "try 'x2fast'"),
        (["--function", "force_values", "-o", "out"], "has no numbers to give"),
    ],
)
def test_bad_words_of_the_command_line_get_one_line_and_leave_nothing(
    words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "other").write_text("")
    monkeypatch.chdir(tmp_path)
    assert run(["export", str(ARM), *words]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert told in err
    assert sorted(os.listdir(tmp_path)) == ["full", "taken"]


def test_the_command_line_tells_what_it_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "out"
    assert run(["export", str(ARM), "--function", "inverse_dynamics", "--to", "sympy", "-o", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "inverse_dynamics: q[6], v[6], a[6] -> tau[6]" in out
    assert "README.md, inverse_dynamics.py; tested to" in out


def test_a_readme_of_somebody_else_is_not_written_over(tmp_path):
    (tmp_path / "README.md").write_text("my notes")
    with pytest.raises(lw.errors.LinkwrightError, match=r"holds README\.md, which no export wrote.*overwrite=True"):
        lw.export(ARM, tmp_path, "gravity_forces")
    assert (tmp_path / "README.md").read_text() == "my notes"
