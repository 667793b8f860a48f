"""Words of the field: a variable names the thing, never the act that made it."""

from __future__ import annotations

import ast
import re
from collections import Counter

from checkout import PACKAGE, ROOT

ACTS = {"found", "made", "given", "kept", "told", "own", "rest"}
MOST_ACTS = 100
#: Names that say nothing. How often they are assigned may only fall.
EMPTY = {"result", "value", "data", "item", "res", "tmp", "out"}
MOST_EMPTY = 460
#: Words of a private dialect, where the field has its own.
PRIVATE = re.compile(
    r"\babreast\b|\bsettling\b|\bsettled\b|does not go together|misses by|freedom left|counted on\b|\bh axis\b"
    r"|simply works|\bgrounded\b|\bclosings\b|\bties\b|\btold\b(?! apart)|\bMakers?\b|\btriads\b",
    re.IGNORECASE,
)
#: The key of a page's data, which its script reads.
KEYS = {"triads"}
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


def test_variables_name_things_and_not_acts() -> None:
    count = stores(ACTS)
    assert count.total() < MOST_ACTS, count


def test_no_more_names_that_say_nothing() -> None:
    count = stores(EMPTY)
    assert count.total() <= MOST_EMPTY, count


def test_texts_of_the_package_use_the_words_of_the_field() -> None:
    private = [
        f"{file.relative_to(PACKAGE)}:{node.lineno}: {match.group()}"
        for file, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in KEYS
        for match in PRIVATE.finditer(node.value)
    ]
    assert not private, "\n".join(private)


def test_pages_use_the_words_of_the_field() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    private = [
        f"{page.relative_to(ROOT)}:{number}: {match.group()}"
        for page in pages
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
        for match in PRIVATE.finditer(line)
    ]
    assert not private, "\n".join(private)
