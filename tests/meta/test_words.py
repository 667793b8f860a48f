"""Words of the field: a variable names the thing, never the act that made it."""

from __future__ import annotations

import ast
from collections import Counter

from checkout import PACKAGE

ACTS = {"found", "made", "given", "kept", "told", "own", "rest"}
MOST_ACTS = 100
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
