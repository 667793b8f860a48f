"""Imports point one way, from room to room as docs/architecture.md draws them: also inside functions.

Imports for the type checker alone are not counted.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from checkout import PACKAGE, ROOT

#: The rooms and the two files beside them: each may import those before it. A new room gets its place here.
ORDER = (
    *("errors", "base", "tape", "kernels", "spatial", "model", "formats", "constraints", "viewer", "dynamics"),
    *("mechanism", "results", "simulation", "analysis", "symbolic", "exports", "control", "outputs", "sweeps"),
    *("design", "studies", "cli", "__main__"),
)
TOP = {"__init__.py", "__main__.py", "__init__.pyi", "mechanism.py", "errors.py", "py.typed"}
LINES = 450
#: What a study may use besides public names.
STUDIES = {"linkwright", "linkwright.control", "linkwright.errors", "linkwright.results.figures"}

FILES = sorted(PACKAGE.rglob("*.py"))


class Import(NamedTuple):
    """One import that is carried out: where it stands, what it imports, and whether a function does it when called."""

    file: Path
    line: int
    module: str
    late: bool


def room(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def imports(file: Path) -> list[Import]:
    """Every import of a file but those for the type checker alone."""
    return list(_imports(file, parsed(file), late=False))


def _imports(file: Path, node: ast.AST, *, late: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from (Import(file, child.lineno, alias.name, late) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{file}: relative imports hide where they point"
            assert child.module is not None
            # `from linkwright.model import builder` names a module, `from linkwright import control` a room.
            inside = (f"{child.module}.{alias.name}" for alias in child.names)
            modules = {name if is_module(name) else child.module for name in inside}
            yield from (Import(file, child.lineno, name, late) for name in sorted(modules))
        yield from _imports(file, child, late=late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))


def is_module(name: str) -> bool:
    path = PACKAGE.parent.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


@pytest.mark.parametrize(
    "file", [f for f in FILES if f != PACKAGE / "__init__.py"], ids=lambda f: f.relative_to(PACKAGE).as_posix()
)
def test_a_file_imports_only_what_its_room_may(file: Path) -> None:
    here = room(file)
    assert here in ORDER, f"{here} is a new room: give it its place in {Path(__file__).name}"
    allowed = ORDER[: ORDER.index(here) + 1]
    wrong = [
        f"line {found.line}: {found.module}"
        for found in imports(file)
        if found.module.startswith("linkwright.") and found.module.split(".")[1] not in allowed
    ]
    assert not wrong, f"{here} may import {', '.join(allowed)}, not {wrong}"


def test_the_top_of_the_package_has_the_files_of_the_design_alone() -> None:
    assert {file.name for file in PACKAGE.iterdir() if file.is_file()} == TOP


def test_no_file_is_long() -> None:
    lengths = {
        file.relative_to(PACKAGE).as_posix(): len(file.read_text(encoding="utf-8").splitlines()) for file in FILES
    }
    assert not {name: length for name, length in lengths.items() if length > LINES}


def test_the_page_on_the_architecture_names_every_room() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()}
    assert not {name for name in rooms if not re.search(rf"^  {name}/", page, re.MULTILINE)}


def test_only_the_outside_uses_the_public_names() -> None:
    # Inside, names come from where they live: `import linkwright` there would be a circle.
    users = {room(f) for f in FILES if any(x.module == "linkwright" for x in imports(f))}
    assert users <= {"cli", "studies", "results", "sweeps"}  # the last two for the version alone


def test_a_study_uses_public_names_alone() -> None:
    wrong = [
        f"{file.relative_to(PACKAGE)}:{found.line} {found.module}"
        for file in FILES
        if room(file) == "studies"
        for found in imports(file)
        if found.module.startswith("linkwright")
        and found.module not in STUDIES
        and not found.module.startswith(("linkwright.studies", "linkwright.base."))
    ]
    assert not wrong, wrong


def test_only_the_kernels_emit_code() -> None:
    users = {room(f) for f in FILES if any(x.module.split(".")[0] in ("llvmlite", "cupy") for x in imports(f))}
    assert users <= {"kernels"}


def test_nothing_evaluates_text_as_code() -> None:
    for file in FILES:
        calls = [
            node.func.id
            for node in ast.walk(parsed(file))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        ]
        assert not {"eval", "exec"} & set(calls), file


def test_every_module_starts_with_a_sentence() -> None:
    for file in FILES:
        tree = parsed(file)
        if tree.body:
            assert ast.get_docstring(tree), f"{file.relative_to(PACKAGE)} does not say what it is for"


def test_files_that_the_page_on_the_architecture_names_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    sources = {"/" + file.relative_to(ROOT).as_posix() for file in FILES}
    named = set(re.findall(r"`([\w/]+\.py)`", page))
    absent = {name for name in named if not any(path.endswith("/" + name) for path in sources)}
    # Files outside the source are named by their whole path: a test may have the name of a file that was.
    assert not {name for name in absent if not name.startswith(("tests/", "benchmarks/")) or not (ROOT / name).exists()}


def test_an_import_inside_a_function_names_the_weight_that_it_saves() -> None:
    # `# weight: ...` on the first of imports that stand together, or on the line above them.
    silent = []
    for file in FILES:
        lines = file.read_text(encoding="utf-8").splitlines()
        last = named = 0
        for found in sorted(
            (x for x in imports(file) if x.late and x.module.startswith("linkwright")), key=lambda x: x.line
        ):
            near = lines[max(0, found.line - 2) : found.line]
            named = found.line if any("# weight" in line for line in near) else named if last == found.line - 1 else 0
            last = found.line
            if not named:
                silent.append(f"{file.relative_to(PACKAGE)}:{found.line} {found.module}")
    assert not silent, "\n".join(silent)


def test_the_name_of_a_file_says_which() -> None:
    names = Counter(file.name for file in FILES if file.name != "__init__.py")
    assert not {name: count for name, count in names.items() if count > 1}
