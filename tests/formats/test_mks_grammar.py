"""The grammar is the language; what is read past it, for speed, agrees with it."""

from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lark import Lark

from linkwright.formats.mks.parser import HEADS, parse, parsed_by_grammar
from linkwright.formats.mks.scanner import scan
from linkwright.formats.mks.syntax import Block, Problems

SAMPLE = Path(__file__).resolve().parents[2] / "examples/models/slider_crank.mks"
STATEMENTS = [
    "BODY g (ground);",
    "body b(center of gravity=(0,3,0),pqr=[(0,3,0),(0,3,1),(0,4,0)]);",
    "BODY b ( mass = 1.5e-3 , inertia = (1,2,3, .5, -.5, +0.) ) ;",
    'TRIAD "my triad" (associated body = crank, origin = (-1, 0, 2e3));',
    "Revolute  Joint j (triad = a, triad = b, lower = 1, velocity limit = 2, cut);",
    "GEAR gg (joint = a, joint = b, ratio = 2);",
    'SHAPE s (triad = t, sphere = 2, colour = red, mesh = "x.stl");',
    "BODY b (mass = -1, com = ( -1 , 2,3 ));",
    "BODY link[3] (mass = 1);",
    "HINGE pin[12] (body = link[0], body = link[12], at = (1, 2));",
    'SCREW JOINT j (triad = (associated body = "a b", axes = [(1,0,0),(0,1,0),(0,0,1)]), triad = (h = (1,0,0)), cut);',
]


@pytest.mark.parametrize("text", STATEMENTS)
def test_the_scanner_makes_what_the_grammar_makes(text: str) -> None:
    padded = f"   {text}"
    scanned = scan(padded, 3, len(padded))
    assert scanned is not None
    assert scanned == parsed_by_grammar(padded, 3, len(padded))


@pytest.mark.parametrize(
    "text",
    [
        "BODY b (mass = 1 + 2);",
        "BODY b (mass = --1);",
        "BODY b (mass = 3 kg);",
        "REVOLUTE JOINT j (triad = (associated body = (a = b), origin = (0,0,0)), triad = b);",
        "REVOLUTE JOINT j (triad = (associated body = a, ground), triad = b);",
        "DRIVER d (a.x = 2);",
        "BODY b (mass = 1),;",
        "BODY b ();",
        "BODY link[i] (mass = 1);",
        "BODY link[007] (mass = 1);",
        "BODY link [1] (mass = 1);",
        "HINGE j (body = link[1], body = link[i+1], at = (1, 2));",
    ],
)
def test_the_scanner_leaves_the_rest_to_the_parser(text: str) -> None:
    assert scan(text, 0, len(text)) is None


PIECES = st.sampled_from(
    [
        "BODY",
        "TRIAD",
        "a",
        '"b c"',
        "(",
        ")",
        ",",
        "=",
        ";",
        "1",
        "-2.5",
        "(0,1,2)",
        "[",
        "]",
        "mass",
        "of",
        "ground",
        " ",
        "mass = 1",
        "a = (b = 1",
        "a = (b c = (1,2)),",
    ]
)


@settings(deadline=None)
@given(st.lists(PIECES, max_size=20))
def test_whatever_the_scanner_takes_the_grammar_takes_alike(pieces: list[str]) -> None:
    text = f"BODY a ({' '.join(pieces)});"
    scanned = scan(text, 0, len(text))
    if scanned is not None:
        assert scanned == parsed_by_grammar(text, 0, len(text))


def test_the_grammar_reads_a_whole_model() -> None:
    grammar = files("linkwright.formats.mks").joinpath("grammar.lark").read_text(encoding="utf-8")
    tree = Lark(grammar, parser="lalr", start="model").parse(SAMPLE.read_text(encoding="utf-8"))
    problems = Problems(SAMPLE.read_text(encoding="utf-8"), "sample")
    parsed = parse(problems)
    assert not problems
    assert len(parsed.statements) == len(tree.children) - 2  # MODEL name, ENDMODEL


def test_the_grammar_reads_a_model_with_repetitions() -> None:
    grammar = files("linkwright.formats.mks").joinpath("grammar.lark").read_text(encoding="utf-8")
    text = (SAMPLE.parents[2] / "tests/fuzz/corpus/mks/repeat.mks").read_text(encoding="utf-8")
    tree = Lark(grammar, parser="lalr", start="model").parse(text)
    parsed = parse(Problems(text, "sample"))
    assert len(parsed.statements) == len(tree.children) - 2
    blocks = [s for s in parsed.statements if isinstance(s, Block)]
    assert [len(block.pieces) for block in blocks] == [4, 4, 2, 1]


def test_the_page_names_every_statement() -> None:
    page = (SAMPLE.parents[2] / "docs/mks.md").read_text(encoding="utf-8")
    for head in HEADS:
        assert head.removesuffix(" JOINT").upper() in page.upper(), head
