"""No eight lines of code stand in two files of the package.

What pylint's `duplicate-code` finds (imports, signatures, docstrings and comments apart), by hashes of eight lines: in
a second instead of minutes.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from checkout import PACKAGE

LINES = 8


def code_lines(text: str) -> Iterator[tuple[int, str]]:
    """(number, text) of the lines that say something of their own."""
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            left_out.update(range(node.lineno, node.end_lineno + 1))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            left_out.update(range(node.lineno, node.body[0].lineno))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            left_out.update(range(node.lineno, node.end_lineno + 1))
    for number, line in enumerate(text.splitlines(), 1):
        content = line.strip()
        if number not in left_out and not content.startswith("#") and any(c.isalnum() for c in content):
            yield number, content


def repeated(files: dict[str, str]) -> list[str]:
    """Where runs of `LINES` lines are the same, one message for each pair of places."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, text in files.items():
        lines = list(code_lines(text))
        for k in range(len(lines) - LINES + 1):
            places[tuple(content for _, content in lines[k : k + LINES])].append((name, lines[k][0]))
    shared = [there for there in places.values() if len({name for name, _ in there}) > 1]
    return [" and ".join(f"{name}:{line}" for name, line in there) for there in shared]


def package() -> dict[str, str]:
    return {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


def test_no_eight_lines_stand_in_two_files() -> None:
    assert not repeated(package())


def test_a_copied_function_under_another_name_is_found() -> None:
    body = "\n".join(f"    x{k} = {k} + y" for k in range(LINES))
    texts = {"one.py": f"def first(y):\n{body}\n", "two.py": f'def second(y, z):\n    """Text."""\n{body}\n'}
    assert repeated(texts) == ["one.py:2 and two.py:3"]
    assert not repeated({"one.py": texts["one.py"], "two.py": texts["two.py"].replace("x3", "z3")})


def test_the_package_is_looked_at() -> None:
    assert len(package()) > 300
    assert Path(PACKAGE, "errors.py").name in package()
