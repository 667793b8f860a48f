"""`linkwright export`: program text, whole or not at all."""

import os
from pathlib import Path

import pytest
from command import ARM, linkwright, one_line


def test_without_a_file_the_text_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, "export", ARM, "--function", "mass_matrix")
    assert outcome.code == 0
    assert outcome.err == ""
    assert "void mass_matrix(const double *q, double *M" in outcome.out


def test_a_file_gets_the_same_text_and_a_line_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "arm.c"
    outcome = linkwright(capsys, "export", ARM, "-o", file)
    assert outcome.code == 0
    assert outcome.out.startswith(f"{file}: forward_dynamics: q[6], v[6], tau[6] -> a[6]")
    assert "void forward_dynamics(const double *q" in file.read_text()
    assert os.listdir(tmp_path) == ["arm.c"]


def test_cuda_text_has_a_kernel_in_the_precision_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, "export", ARM, "--to", "cuda", "--precision", "float32")
    assert "__global__" in outcome.out
    assert "float" in outcome.out
    assert "double" not in outcome.out.split("__global__")[1]


def test_a_frame_function_takes_its_frame_and_reference(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["export", ARM, "--function", "jacobian", "--frame", "tool"]
    body = linkwright(capsys, *words)
    assert body.out == linkwright(capsys, *words, "--reference", "body").out
    assert body.out != linkwright(capsys, *words, "--reference", "world").out


def test_a_free_parameter_becomes_an_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "one.dh.toml"
    model.write_text('convention = "modified"\n[[link]]\nmass = "m"\ncom = [1.0, 0.0, 0.0]\n')
    outcome = linkwright(capsys, "export", model, "--free", "m", "--name", "swing")
    assert "void swing(const double *q, const double *v, const double *tau, const double *p" in outcome.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--to", "rust"], "no language named 'rust'; there are: c, cuda"),
        (["--function", "foward_dynamics"], "did you mean 'forward_dynamics'"),
        (["--method", "crba"], "there are: articulated-body, "),
        (["--function", "pose"], "name it with --frame"),
        (["--function", "pose", "--frame", "tol"], "did you mean 'tool'"),
        (["--function", "twist", "--frame", "tool", "--reference", "lokal"], "no reference named 'lokal'"),
        (["--free", "length"], "no parameter named 'length'"),
        (["--precision", "half"], "'float64' or 'float32'"),
        (["--to", "cuda"], "cuda is written to a file that ends in .cu, or to a folder"),
        (["--arduino"], "an Arduino library is a folder"),
        (["--name", "my arm"], "try 'my_arm'"),
        (["--name", "casadi"], "try 'casadi_program'"),
        (["--dt", "0.1"], "forward_dynamics has none"),
        (["--function", "step"], "give it as --dt 0.001"),
        (["--function", "step", "--dt", "-1"], "dt, the length of a step in s, must be a number greater than zero"),
    ],
)
def test_a_wrong_word_gets_one_line_and_leaves_no_file(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = linkwright(capsys, "export", ARM, "-o", tmp_path / "x.c", *words)
    assert outcome.code == 1
    assert told in one_line(outcome)
    assert not os.listdir(tmp_path)


def test_a_place_that_cannot_be_written_gets_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = linkwright(capsys, "export", ARM, "-o", tmp_path / "no" / "x.c")
    assert "there is no folder" in one_line(outcome)
    (tmp_path / "x.c").mkdir()
    outcome = linkwright(capsys, "export", ARM, "-o", tmp_path / "x.c")
    assert "is a folder" in one_line(outcome)
