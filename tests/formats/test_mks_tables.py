"""The parser's tables on disk: they make the parser that the grammar makes, and a second process reads no grammar."""

from pathlib import Path
from typing import Any

import lark
import pytest

from linkwright.formats.mks import parser_tables
from linkwright.formats.mks.parser_tables import statement_parser
from linkwright.formats.mks.syntax import Maker
from linkwright.kernels.llvm import compiler

STATEMENTS = [
    "BODY b1 (mass = 2*m, inertia = (1, 2, -3e-2), initial = (position = (x+1, 0, 0)));",
    'SCREW JOINT "j 1" (triad1 = a.b, triad2 = c, pitch = 3 mm);',
    "PARAMETER r = sin(pi/4)^2;",
    "DRIVER d (joint = j1, law = where(TIME < 1, 0, TIME - 1));",
]
FAULTS = ["BODY (mass = 1);", "BODY b (mass = = 1);", "BODY b mass = 1;", "PARAMETER r = 3 *;", "BODY b (mass = 1", "$"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    compiler.stamp()  # its entry is elsewhere
    monkeypatch.setenv("LINKWRIGHT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / compiler.FOLDER


def outcome(parser: Any, text: str) -> Any:
    try:
        return repr(parser.parse(text, start="statement"))
    except lark.UnexpectedInput as error:
        place = (type(error), error.pos_in_stream, sorted(getattr(error, "expected", None) or error.allowed))
        return (*place, sorted(getattr(error, "accepts", None) or ()))


def test_the_parser_of_the_tables_reads_as_that_of_the_grammar(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_grammar = statement_parser(Maker())
    assert len(list(folder.iterdir())) == 1
    monkeypatch.setattr(parser_tables, "Lark", _Loaded)
    by_tables = statement_parser(Maker())
    outcomes = [outcome(by_grammar, text) for text in [*STATEMENTS, *FAULTS]]
    assert [outcome(by_tables, text) for text in [*STATEMENTS, *FAULTS]] == outcomes
    assert sum(isinstance(x, str) for x in outcomes) >= 2
    assert sum(not isinstance(x, str) for x in outcomes) >= 4


class _Loaded(lark.Lark):
    """A parser that is not made of a grammar."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise AssertionError("the grammar was read again")


def test_a_release_of_lark_without_tables_reads_the_grammar(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statement_parser(Maker())
    monkeypatch.delattr(lark.Lark, "_load_from_dict")
    assert isinstance(outcome(statement_parser(Maker()), STATEMENTS[2]), str)


def test_damaged_tables_are_made_anew(folder: Path) -> None:
    statement_parser(Maker())
    (entry,) = folder.iterdir()
    entry.write_bytes(entry.read_bytes()[:-100])
    assert compiler.read(entry.stem) is None
    statement_parser(Maker())
    assert compiler.read(entry.stem) is not None
