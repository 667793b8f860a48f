"""No regular expression of the package takes quadratic time: files are untrusted, and 40 kB of blanks took 8 s once.

Every expression is read out of the sources with the ways it is used in, and attacked: what it begins with, then one of
its own letters (or two in turn) many times over, then a letter that it does not know.
"""

from __future__ import annotations

import ast
import importlib
import re
import re._constants as code
import re._parser as parser
import time
from collections.abc import Iterator
from itertools import permutations

import pytest
from checkout import PACKAGE

WAYS = ("search", "match", "fullmatch", "findall", "finditer", "split", "sub")
SHORT, LONG, REPEATS = 4_000, 16_000, 3  # letters, and how often a time is taken
#: s of processor time from which a short attack is looked at closely: linear ones take 0.1 ms, quadratic ones 20 ms.
#: And how much longer an attack takes that is four times as long: 4 times if it is linear, 16 times if it is quadratic.
DOUBTFUL, GROWTH = 0.004, 8.0
#: Those that never see a file's text, or only a bounded piece of it.
BOUNDED = {
    "formats/mks/parser.py": r"([^\W\d]\w*(?:\s+[^\W\d]\w*)*)\s*\Z",  # of 200 letters
    "studies/manipulator/machine_figures.py": rb"(\d+\.\d{2})\d+",  # of our own figures
    "kernels/c/spelling.py": r"\b([abx])\[([^\]]+)\]",  # of our own templates
}


def expressions() -> Iterator[tuple[str, re.Pattern, str]]:
    """Where each one is, what it is, and how it is used."""
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if "re." not in source:
            continue
        tree = ast.parse(source)
        place = path.relative_to(PACKAGE).as_posix()
        named = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and _is_call(node.value, "compile"):
                named.add(ast.unparse(node.targets[0]))
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in WAYS:
                continue
            owner, way = node.func.value, node.func.attr
            if isinstance(owner, ast.Name) and owner.id == "re" and isinstance(node.args[0], ast.Constant):
                flags = node.args[2:] if way not in ("sub", "split") else []
                flags += [word.value for word in node.keywords if word.arg == "flags"]
                yield f"{place}:{node.lineno}", re.compile(node.args[0].value, _flags(flags)), way
            elif _is_call(owner, "compile") and isinstance(owner.args[0], ast.Constant):
                yield f"{place}:{node.lineno}", re.compile(owner.args[0].value, _flags(owner.args[1:])), way
            elif isinstance(owner, ast.Name) and owner.id in named:
                module = importlib.import_module("linkwright." + place[:-3].replace("/", ".").removesuffix(".__init__"))
                yield f"{place}:{node.lineno}", getattr(module, owner.id), way


def terminals() -> Iterator[tuple[str, re.Pattern, str]]:
    """Those of the grammar of `.mks`, of which the lexer tries one where the last one ended."""
    from lark import Lark

    grammar = PACKAGE / "formats/mks/grammar.lark"
    for one in Lark(grammar.read_text(encoding="utf-8"), parser="lalr", start=["statement"]).terminals:
        yield f"formats/mks/grammar.lark:{one.name}", re.compile(one.pattern.to_regexp()), "match"


def _is_call(node: ast.AST, name: str) -> bool:
    function = getattr(node, "func", None)
    return isinstance(function, ast.Attribute) and function.attr == name and ast.unparse(function.value) == "re"


def _flags(nodes: list[ast.expr]) -> int:
    return sum(int(eval(ast.unparse(node), {"re": re})) for node in nodes)


# -- attacks ------------------------------------------------------------------------------------------------------
_LETTERS = {
    code.CATEGORY_SPACE: " \n",
    code.CATEGORY_DIGIT: "0",
    code.CATEGORY_WORD: "a",
    code.CATEGORY_NOT_SPACE: "a",
    code.CATEGORY_NOT_DIGIT: "a",
    code.CATEGORY_NOT_WORD: "-",
}


def letters(tree: object) -> Iterator[str]:
    """Letters that an expression, or a part of one, takes."""
    for kind, value in tree:
        if kind is code.LITERAL:
            yield chr(value)
        elif kind in (code.NOT_LITERAL, code.ANY):
            yield "~"
        elif kind is code.RANGE:
            yield chr(value[0])
        elif kind is code.CATEGORY:
            yield from _LETTERS[value]
        elif kind is code.IN:
            if value[0][0] is code.NEGATE:
                yield from [letter for letter in "a~0 \n" if not any(_takes(part, letter) for part in value[1:])][:2]
            else:
                yield from letters(value)
        else:
            for part in _inner(kind, value):
                yield from letters(part)


def _takes(part: tuple, letter: str) -> bool:
    kind, value = part
    if kind is code.CATEGORY:
        return letter in _LETTERS[value] or (value is code.CATEGORY_NOT_WORD and letter in "~ \n")
    return value[0] <= ord(letter) <= value[1] if kind is code.RANGE else value == ord(letter)


def _inner(kind: object, value: object) -> list:
    if kind in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT):
        return [value[2]]
    if kind is code.SUBPATTERN:
        return [value[3]]
    if kind is code.BRANCH:
        return value[1]
    return [value[1]] if kind in (code.ASSERT, code.ASSERT_NOT) else []


def example(tree: object) -> str:
    """A short text that an expression takes; lookaround is left out."""
    out = ""
    for kind, value in tree:
        if kind in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT):
            out += example(value[2]) * max(1, value[0])
        elif kind is code.SUBPATTERN:
            out += example(value[3])
        elif kind is code.BRANCH:
            out += example(value[1][0])
        else:
            out += next(letters([(kind, value)]), "")
    return out


def attacks(pattern: re.Pattern, size: int) -> Iterator[str | bytes]:
    tree = list(parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE))
    singles = sorted(dict.fromkeys(letters(tree)), key=str.isalnum)[:16]  # blanks and signs first
    pumps = [*singles, *("".join(pair) for pair in permutations(singles[:4], 2))]
    for k in range(min(len(tree), 8)):
        begin = example(tree[:k])
        for pump in pumps:
            for end in ("", "\0"):
                text = begin + pump * (size // len(pump)) + end
                yield text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text


def seconds(pattern: re.Pattern, way: str, text: str | bytes) -> float:
    begin = time.process_time()
    if way == "sub":
        pattern.sub(text[:0], text)
    elif way == "finditer":
        for _ in pattern.finditer(text):
            pass
    else:
        getattr(pattern, way)(text)
    return time.process_time() - begin


def growth(pattern: re.Pattern, way: str) -> float:
    """How much longer the worst attack takes when it is four times as long, by the least of several times each."""
    worst = 0.0
    for short, long in zip(attacks(pattern, SHORT), attacks(pattern, LONG), strict=True):
        if seconds(pattern, way, short) > DOUBTFUL:
            one, four = (min(seconds(pattern, way, text) for _ in range(REPEATS)) for text in (short, long))
            if one > DOUBTFUL:  # else it was another process that took the time
                worst = max(worst, four / one)
            if worst > GROWTH:
                break
    return worst


FOUND = [one for one in (*expressions(), *terminals()) if one[1].pattern != BOUNDED.get(one[0].rpartition(":")[0])]


@pytest.mark.parametrize(("place", "pattern", "way"), FOUND, ids=[f"{place}-{way}" for place, _, way in FOUND])
def test_a_regular_expression_takes_linear_time(place, pattern, way):
    assert growth(pattern, way) < GROWTH, pattern.pattern


def test_expressions_are_found():
    assert len(FOUND) > 40


@pytest.mark.parametrize(
    ("text", "way"),
    [
        (rb"(?im)^\s*vertex\s+(\S+)\s+(\S+)\s+(\S+)", "findall"),
        (r"\s*([^\W\d][\w.\- ]*?)\s*=(?!=)(.*)", "match"),
        (r"(distance(?:_rate|_acceleration)?)\((.+),(.+)\)", "fullmatch"),
    ],
)
def test_quadratic_ones_are_told(text, way):
    assert growth(re.compile(text), way) >= GROWTH
