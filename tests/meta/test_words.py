"""Words of the field, in names and in what people read: the two lists of CONTRIBUTING.md, "Words"."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from checkout import PACKAGE

#: A variable names the thing, never the act that made it.
ACTS = {"found", "made", "given", "kept", "told", "own", "rest"}
#: Names that say nothing; how many stores of them there are may only fall.
EMPTY = {"result", "value", "data", "item", "res", "tmp", "out"}
MOST_ACTS, MOST_EMPTY = 100, 517
#: Words of a private dialect, in texts that people read.
PRIVATE = re.compile(
    r"\babreast\b|\bsettling\b|\bsettles?\b|\bsettled\b|go together|misses by|freedom left|counted on\b|\btold\b"
    r"|\bh axis\b|simply works|\bgrounded\b|\bopened mechanism|\brecipes?\b|\bMaker\b"
)
TREES = {file: ast.parse(file.read_text(encoding="utf-8")) for file in sorted(PACKAGE.rglob("*.py"))}


def stores(names: set[str]) -> Counter[str]:
    """How often variables and arguments of these names are assigned, by name."""
    count: Counter[str] = Counter()
    for tree in TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in names:
                count[node.id] += 1
            elif isinstance(node, ast.arg) and node.arg in names:
                count[node.arg] += 1
    return count


def texts() -> Iterator[tuple[str, str]]:
    """Every string of the package, messages and docstrings among them, with its place."""
    for file, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{file.relative_to(PACKAGE)}:{node.lineno}", node.value


def test_variables_name_things_and_not_acts() -> None:
    count = stores(ACTS)
    assert count.total() < MOST_ACTS, count


def test_no_more_names_that_say_nothing() -> None:
    count = stores(EMPTY)
    assert count.total() <= MOST_EMPTY, count


def test_texts_use_the_words_of_the_field() -> None:
    private = [f"{place}: {match.group()}" for place, text in texts() for match in PRIVATE.finditer(text)]
    assert not private, "\n".join(private)
