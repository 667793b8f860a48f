"""Every file in mks_bad is wrong, and the text beside it is what the reader says of it."""

import pickle
from pathlib import Path

import pytest

from linkwright.errors import FormatError, MksError
from linkwright.formats.mks.mks_reader import MAX_BYTES, parse_mks, read_mks

FILES = sorted((Path(__file__).parent / "mks_bad").glob("*.mks"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_a_wrong_file_is_told_with_place_and_advice(file: Path) -> None:
    with pytest.raises(MksError) as caught:
        parse_mks(file.read_text(encoding="utf-8"), file.name)
    assert str(caught.value) + "\n" == file.with_suffix(".txt").read_text(encoding="utf-8")


def test_there_are_many_wrong_files() -> None:
    assert len(FILES) >= 80


def test_no_message_names_a_terminal_of_the_grammar() -> None:
    for file in FILES:
        told = [line for line in file.with_suffix(".txt").read_text().splitlines() if ".mks:" in line]
        assert not any(word in line for line in told for word in ("RPAR", "COMMA", "WORD", "VECTOR", "$END", "__"))


def test_the_problems_are_also_data() -> None:
    with pytest.raises(MksError) as caught:
        parse_mks("MODEL m\nBODY g (ground);\nBODY a (mas = 1);\nENDMODEL", "m.mks")
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == (3, 9)
    assert problem.message == "body 'a' has no attribute 'mas'; did you mean 'mass'?"
    assert problem.excerpt.splitlines() == ["    BODY a (mas = 1);", "            ^~~"]
    assert (caught.value.file, caught.value.line) == ("m.mks", 3)


def test_text_that_is_not_utf_8_is_told_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "latin.mks"
    file.write_bytes("MODEL m\nBODY café (ground);\nENDMODEL".encode("latin-1"))
    with pytest.raises(MksError, match=r"latin\.mks:2:9: the byte 0xe9 is not UTF-8"):
        read_mks(file)


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "large.mks"
    file.write_bytes(b"x y (" * (MAX_BYTES // 4))
    with pytest.raises(FormatError, match="larger than 4 MB"):
        read_mks(file)
    with pytest.raises(FormatError, match="larger than 4 MB"):
        parse_mks("x y (" * (MAX_BYTES // 4))


@pytest.mark.parametrize(
    "part",
    [
        "-" * 10**6 + "1",
        "(" * 10**6,
        "1" + "+1" * 10**6,
        "1" + "^1" * 10**6,
        "a " * 10**6,
        "1" * 10**6,
        "x" * 10**6,
        '"' * 10**6,
        "(" + "1," * 10**6,
    ],
    ids=["signs", "brackets", "sum", "powers", "words", "digits", "name", "quotes", "entries"],
)
def test_nonsense_of_a_megabyte_is_an_error_like_any_other(part: str) -> None:
    with pytest.raises(MksError):
        parse_mks(f"MODEL m\nBODY g (ground);\nBODY a (mass = {part});\nENDMODEL")


def test_only_so_many_problems_are_told() -> None:
    with pytest.raises(MksError) as caught:
        parse_mks("MODEL m\n" + "BDY a (mass = 1);\n" * 1000 + "ENDMODEL")
    assert len(caught.value.problems) == 50


def test_an_error_crosses_from_one_process_to_another() -> None:
    with pytest.raises(MksError) as caught:
        parse_mks("MODEL m", "m.mks")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.problems, again.line) == (str(caught.value), caught.value.problems, 1)
