"""The parser of one statement, made of the grammar, and its tables kept on disk as plain data."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from lark import Lark
from lark import __version__ as lark_version
from lark.grammar import Rule
from lark.lexer import TerminalDef

from linkwright.formats.mks.syntax import Maker
from linkwright.kernels.llvm.compiler import key, stored


def statement_parser(maker: Maker) -> Any:
    """The parser of statements; making it of its tables on disk takes a tenth of the time that the grammar takes."""
    grammar = files("linkwright.formats.mks").joinpath("grammar.lark").read_text(encoding="utf-8")

    def of_grammar() -> Any:
        starts = ["statement", "block_head"]
        return Lark(grammar, parser="lalr", start=starts, maybe_placeholders=False, transformer=maker)

    def of_tables(content: bytes) -> Any:
        # As lark's stand-alone parsers do; where a release of lark has no such function, the grammar is read.
        tables = json.loads(content, object_hook=_with_numbers)
        return Lark._load_from_dict(tables["data"], tables["memo"], transformer=maker)  # type: ignore[no-untyped-call]

    return stored(key("statement parser", lark_version, grammar), of_grammar, of_tables, _plain)


def _plain(parser: Any) -> bytes:
    """The tables of a parser: lists, numbers and words alone."""
    tables, shared = parser.memo_serialize([TerminalDef, Rule])
    tables["options"] = {name: option for name, option in tables["options"].items() if name != "transformer"}
    return json.dumps({"data": tables, "memo": shared}).encode()


def _with_numbers(table: dict[str, Any]) -> dict[Any, Any]:
    """A table whose keys are numbers again, which JSON has written as words."""
    return {int(name) if name.isdecimal() else name: entry for name, entry in table.items()}
