"""`linkwright equations`: formulas on the screen, files of every kind, and sentences for bad input."""

from pathlib import Path

import pytest
from command import ARM, linkwright, one_line

import linkwright.symbolic.derivation.progress as derivation

MODELS = ARM.parent
THREE = MODELS / "three_link.dh.toml"
Capture = pytest.CaptureFixture[str]


def test_a_small_arm_is_shown_on_the_screen(capsys: Capture) -> None:
    outcome = linkwright(capsys, "equations", THREE, "--coordinates", "theta")
    assert outcome.code == 0
    assert outcome.err == ""
    assert "\n  M23 = lg3^2*m3 + l2*lg3*m3*cos(theta3)\n" in outcome.out
    assert "\n  g2 = g*(l2*m3 + lg2*m2)*cos(theta2) + g*lg3*m3*cos(theta2 + theta3)\n" in outcome.out
    assert "M21" not in outcome.out
    assert "as code: 28 additions, 97 multiplications, 10 functions" in outcome.out


def test_a_long_one_has_its_sizes_told_and_what_to_do(capsys: Capture) -> None:
    outcome = linkwright(capsys, "equations", MODELS / "puma560.dh.toml", "--form", "expanded", "--literal", "inertial")
    assert outcome.code == 0
    assert "too long for the screen: write them by --latex" in outcome.out
    assert "--form recursive" in outcome.out


def test_files_are_written_and_named(tmp_path: Path, capsys: Capture) -> None:
    names = {"--latex": "a.tex", "--html": "a.html", "--markdown": "a.md", "--python": "a.py", "--c": "a.c"}
    words = [word for option, name in names.items() for word in (option, tmp_path / name)]
    outcome = linkwright(capsys, "equations", THREE, *words)
    assert outcome.code == 0
    for name in names.values():
        assert f"{tmp_path / name}: written" in outcome.out
    assert r"\documentclass" in (tmp_path / "a.tex").read_text()
    assert "<math" in (tmp_path / "a.html").read_text()


def test_the_recursive_form_is_steps(tmp_path: Path, capsys: Capture) -> None:
    outcome = linkwright(capsys, "equations", THREE, "--form", "recursive", "--c", tmp_path / "a.c")
    assert outcome.code == 0
    assert "recursive inverse dynamics, with intermediate variables" in outcome.out
    assert "inverse_dynamics" in (tmp_path / "a.c").read_text()


def test_the_recursive_form_is_plain_text_on_the_screen(capsys: Capture) -> None:
    outcome = linkwright(capsys, "equations", THREE, "--form", "recursive")
    assert outcome.code == 0
    assert "\n  c2 = cos(q2)\n" in outcome.out
    assert "\n  F1 = " in outcome.out
    assert "\\" not in outcome.out
    assert "$" not in outcome.out


def test_base_parameters_are_listed_with_what_they_are_made_of(capsys: Capture) -> None:
    outcome = linkwright(capsys, "equations", THREE, "--base-parameters")
    assert "15 base parameters of 30 inertial ones" in outcome.out
    assert "\n  mx2R = mx2 + l2*m3\n" in outcome.out


def test_values_may_be_set_and_parameters_become_numbers(capsys: Capture) -> None:
    outcome = linkwright(capsys, "equations", THREE, "--set", "g=10", "--number", "g")
    assert "g3 = 10*lg3*m3*cos(q2 + q3)" in outcome.out


def test_a_refused_document_leaves_no_other_file(tmp_path: Path, capsys: Capture, monkeypatch) -> None:
    import linkwright.symbolic.printing as printing
    from linkwright.errors import LinkwrightError

    def refuse(sheet: object) -> str:
        raise LinkwrightError("too long")

    monkeypatch.setitem(printing.PRINTERS, "latex", refuse)
    outcome = linkwright(capsys, "equations", THREE, "--html", tmp_path / "a.html", "--latex", tmp_path / "a.tex")
    assert one_line(outcome) == "too long"
    assert list(tmp_path.iterdir()) == []


def test_two_options_with_one_file_are_refused(tmp_path: Path, capsys: Capture) -> None:
    outcome = linkwright(capsys, "equations", THREE, "--latex", tmp_path / "a", "--html", tmp_path / "a")
    assert "two options name this file" in one_line(outcome)


def test_a_folder_that_is_not_there_is_told_before_the_work(tmp_path: Path, capsys: Capture, monkeypatch) -> None:
    def derive(*_: object, **__: object) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr("linkwright.cli.equations_verb.load", derive)
    outcome = linkwright(capsys, "equations", THREE, "--html", tmp_path / "new" / "a.html")
    assert outcome.code == 1
    assert "there is no folder" in one_line(outcome)
    assert "make it first" in one_line(outcome)


def test_an_interruption_writes_what_is_done_and_says_what_is_missing(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(derivation.Dynamics, "h", lambda self, i: interrupted(self))
    monkeypatch.setattr("linkwright.cli.equations_verb._print_estimate", lambda *_: None)
    outcome = linkwright(capsys, "equations", THREE, "--markdown", tmp_path / "a.md")
    assert outcome.code == 130
    assert "h1, h2, h3 are missing" in outcome.err
    assert outcome.err.count("error:") == 1
    assert "Mass matrix" in (tmp_path / "a.md").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([MODELS / "four_bar.mks"], "has closed loops"),
        ([THREE, "--form", "colected"], "did you mean 'collected'"),
        ([THREE, "--literal", "masses"], "--literal masses: choose from named, inertial, all, mass, com"),
        ([THREE, "--number", "m9"], "no parameter named 'm9'"),
        ([THREE, "--set", "m9=1"], "no parameter named 'm9'"),
        ([THREE, "--set", "m1=x"], "m1"),
        ([THREE, "--coordinates", "m"], "has the name of a coordinate"),
        (["nowhere.urdf"], "nowhere.urdf"),
        ([THREE, "--latex", "no/such/folder/a.tex"], "no/such/folder"),
    ],
)
def test_bad_input_is_one_line(capsys: Capture, words: list[object], told: str) -> None:
    outcome = linkwright(capsys, "equations", *words)
    assert outcome.code == 1
    assert told in one_line(outcome)


def test_the_table_of_sizes_counts_terms_as_the_page_does(tmp_path: Path, capsys: Capture) -> None:
    page = tmp_path / "arm.html"
    outcome = linkwright(capsys, "equations", THREE, "--html", page)
    rows = [line.split() for line in outcome.out.splitlines()]
    terms = {words[0]: words[2] for words in rows if words and words[0] in ("M", "h", "g", "friction")}
    assert terms == {"M": "15", "h": "17", "g": "4", "friction": "3"}
    assert "15 terms · as code" in page.read_text(encoding="utf-8")


def test_a_value_has_the_unit_of_its_parameter(capsys: Capture, tmp_path: Path) -> None:
    model = tmp_path / "arm.mks"
    model.write_text(
        "MODEL m\nSYSTEM (DYNAMIC ANALYSIS, length unit = mm);\nPARAMETER half = 250 mm;\nBODY g (ground);\n"
        "BODY a (mass = 2, com = (half, 0, 0));\nHINGE h (body = g, body = a, at = (0, 0));\nENDMODEL\n"
    )
    words = ("equations", model, "--number", "all", "--set")
    assert "M11 = 0.18\n" in linkwright(capsys, *words, "half=300 mm").out
    assert "half is in mm: write 300 mm" in one_line(linkwright(capsys, *words, "half=300"))
