"""Imports point one way, from room to room as docs/architecture.md draws them."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from checkout import PACKAGE

#: What each room may import, besides itself, `errors` and `base`. A new room gets its line here.
MAY = {
    "errors": set(),
    "base": set(),
    "spatial": {"tape"},
    "tape": set(),
    "kernels": {"tape"},
    "mechanism": {"kernels", "spatial", "tape"},
    "formats": {"mechanism", "spatial"},
    "recursions": {"constraints", "mechanism", "spatial", "tape"},
    "constraints": {"kernels", "mechanism", "spatial", "tape"},
    "analysis": {"model", "sources", "constraints", "closed", "simulation", "acting", "results", "mechanism"},
    "acting": {"model", "closed", "programs", "dynamics", "results", "mechanism", "spatial"},
    "dynamics": set(),
    "programs": {"dynamics", "kernels", "mechanism", "spatial", "tape"},
    "closed_recipes": {"mechanism", "programs", "dynamics", "recursions", "spatial", "tape"},
    "closed_derivatives": {"closed_recipes", "recursions", "spatial", "tape"},
    "recipes": {
        "closed_recipes",
        "closed_derivatives",
        "programs",
        "dynamics",
        "recursions",
        "constraints",
        "mechanism",
        "spatial",
        "tape",
    },
    "views": set(),
    "described": {"programs", "dynamics", "constraints", "mechanism", "views"},
    "closed": {"constraints", "mechanism", "results", "spatial"},
    "model": {"described", "programs", "dynamics", "kernels", "mechanism", "tape", "views"},
    "building": {"model", "mechanism"},
    "sources": {"model", "building", "formats", "mechanism", "tape"},
    "results": {"mechanism", "spatial", "tape"},
    "simulation": {"model", "closed", "sources", "programs", "dynamics", "results", "kernels", "mechanism", "tape"},
    "control": {
        "model",
        "programs",
        "dynamics",
        "simulation",
        "kernels",
        "mechanism",
        "results",
        "spatial",
        "tape",
        "sources",
    },
    "symbolic": {"model", "programs", "dynamics", "sources", "formats", "mechanism", "spatial", "tape", "kernels"},
    "exports": {"model", "programs", "dynamics", "sources", "simulation", "formats", "kernels", "tape"},
    "viewer": {"results", "mechanism", "spatial"},
    "display": {"results", "viewer", "views", "mechanism"},
    "studies": {
        *(
            "building",
            "control",
            "kernels",
            "mechanism",
            "model",
            "programs",
            "dynamics",
            "results",
            "simulation",
            "sources",
        ),
        *("spatial", "tape"),
    },
    "outputs": {"constraints", "formats", "kernels", "mechanism", "results", "spatial", "tape"},
    "design": {
        *(
            "analysis",
            "closed",
            "closed_recipes",
            "constraints",
            "formats",
            "kernels",
            "mechanism",
            "model",
            "programs",
            "dynamics",
        ),
        *("outputs", "recipes", "recursions", "results", "simulation", "sources", "spatial", "tape"),
    },
    "sweeps": {
        *(
            "model",
            "sources",
            "analysis",
            "acting",
            "constraints",
            "closed",
            "simulation",
            "programs",
            "dynamics",
        ),
        *("outputs", "results", "formats", "kernels", "mechanism", "spatial", "tape"),
    },
    "cli": {
        *(
            "model",
            "programs",
            "dynamics",
            "constraints",
            "mechanism",
            "results",
            "viewer",
            "views",
            "formats",
            "symbolic",
        ),
        *("studies", "exports", "sweeps", "outputs", "analysis", "closed"),
    },
}
#: Doors that open only when a method is called: what a program can be turned into is the kernels' work, and an
#: answer that is compiled already needs no recursion.
LAZY = {
    ("tape/program.py", "kernels"),
    ("dynamics/programs.py", "recipes"),
    ("dynamics/closed/closed_recorders.py", "recipes"),
    ("dynamics/closed/closed_recorders.py", "recipes"),
    ("dynamics/programs.py", "constraints"),
    ("dynamics/programs.py", "recursions"),
    ("mechanism.py", "closed"),
    *(
        (f"closed/{name}.py", "model")
        for name in (
            *("conditions", "consistent", "freedom", "inverse", "linear", "reactions", "rounding", "starting"),
            "statics",
        )
    ),
    ("results/solution.py", "model"),
    ("results/solution.py", "viewer"),
    ("results/storage.py", "formats"),
    *(
        (f"{name}.py", "display")  # what notebooks ask a thing for
        for name in (
            *("described", "views", "results/solution", "simulation/rollout", "closed/linear", "closed/statics"),
            "sweeps/study",
        )
    ),
    ("formats/mjcf/inertias.py", "viewer"),
}

FILES = sorted(PACKAGE.rglob("*.py"))


def room(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def imports(file: Path) -> list[tuple[str, bool]]:
    """Every module that a file imports, and whether only a function does it when called, or only a type checker."""
    return list(_imports(file))


def _imports(file: Path) -> Iterator[tuple[str, bool]]:
    tree = parsed(file)
    inner = {
        id(node)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(outer, ast.If) and isinstance(outer.test, ast.Name) and outer.test.id == "TYPE_CHECKING")
        for node in ast.walk(outer)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in inner) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide where they point"
            assert node.module is not None
            # `from linkwright.model import builder` may name a module or a room.
            yield from ((f"{node.module}.{alias.name}", id(node) in inner) for alias in node.names)


@pytest.mark.parametrize(
    "file", [f for f in FILES if f.name != "__init__.py" or f.parent != PACKAGE], ids=lambda f: f.name
)
def test_a_file_imports_only_what_its_room_may(file: Path) -> None:
    here = room(file)
    assert here in MAY, f"{here} is a new room: say in {Path(__file__).name} what it may import"
    wrong = []
    for module, lazy in imports(file):
        parts = module.split(".")
        if parts[0] != "linkwright" or len(parts) < 2:
            continue
        there = parts[1]
        if not (PACKAGE / there).is_dir() and not (PACKAGE / f"{there}.py").exists():
            continue  # a public name of the package, such as `from linkwright import record`
        allowed = {here, "errors", "base"} | MAY[here]
        door = lazy and (file.relative_to(PACKAGE).as_posix(), there) in LAZY
        if there not in allowed and not door:
            wrong.append(module)
    assert not wrong, f"{here} may import {sorted(MAY[here])}, not {wrong}"


def test_only_the_outside_uses_the_public_names() -> None:
    # Inside, names come from where they live: `import linkwright` there would be a circle.
    users = {room(f) for f in FILES if any(m.split(".")[0] == "linkwright" and "." not in m for m, _ in imports(f))}
    assert users <= {"cli"}


def test_only_the_kernels_emit_code() -> None:
    users = {room(f) for f in FILES if any(m.split(".")[0] in ("llvmlite", "cupy") for m, _ in imports(f))}
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
