"""The docstring of every public name has an example that runs, and describes every argument.

A method counts as shown if its own docstring has an example, or if the example of its class calls it. An argument
counts as described if the docstring of the function, or that of its class, has its name in backticks or with a colon at
the head of a paragraph or a sentence (`q0, v0: ...`).
"""

import doctest
import importlib
import inspect
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import linkwright as lw
from linkwright.base.arguments import public_names
from linkwright.base.locks import cached_property

ROOMS = (lw, lw.control)
NOT_ARGUMENTS = {"self", "cls"}


class Entry(NamedTuple):
    """A public function, class or method: its name, itself, and the class that a method is of."""

    name: str
    function: Any
    owner: type | None


def is_exception(thing: object) -> bool:
    return inspect.isclass(thing) and issubclass(thing, BaseException)


def methods(owner: type) -> Iterator[tuple[str, Any]]:
    """The public methods of a class, those of its base classes in the package included."""
    for name in dir(owner):
        member = inspect.getattr_static(owner, name)
        function = getattr(member, "__func__", member)
        if name[0] == "_" or not isinstance(function, types.FunctionType):
            continue
        if function.__module__.startswith("linkwright."):
            yield name, function


def entries() -> Iterator[Entry]:
    for room in ROOMS:
        for name in public_names(room.__file__):
            thing = getattr(room, name)
            full = f"{room.__name__}.{name}".replace("linkwright", "lw", 1)
            if not callable(thing) or is_exception(thing):
                continue
            yield Entry(full, thing, None)
            if inspect.isclass(thing):
                yield from (Entry(f"{full}.{method}", function, thing) for method, function in methods(thing))


def modules() -> list[str]:
    """The modules of public names and of the base classes of public classes.

    Without those of `lw.control`, whose examples tests/control/test_control_names.py runs.
    """
    names = set(public_names(lw.__file__).values())
    for entry in entries():
        names.update(base.__module__ for base in getattr(entry.function, "__mro__", ()))
    return sorted(
        name for name in names - set(public_names(lw.control.__file__).values()) if name[:11] == "linkwright."
    )


def example(text: str) -> str:
    return "".join(part.source for part in doctest.DocTestParser().get_examples(text))


def docstring(entry: Entry) -> str:
    """The docstrings in which arguments may be described: of a class, those of its bases and of `__init__` too."""
    if inspect.isclass(entry.function):
        return class_docstrings(entry.function) + "\n\n" + (entry.function.__init__.__doc__ or "")
    text = inspect.getdoc(entry.function) or ""
    return text if entry.owner is None else text + "\n\n" + class_docstrings(entry.owner)


def class_docstrings(owner: type) -> str:
    """The docstrings of a class and of its base classes in the package."""
    bases = [base for base in owner.__mro__ if base.__module__.startswith("linkwright.")]
    return "\n\n".join(inspect.cleandoc(base.__doc__ or "") for base in bases)


def arguments(function: Any) -> list[str]:
    try:
        return [name for name in inspect.signature(function).parameters if name not in NOT_ARGUMENTS and name[0] != "_"]
    except (TypeError, ValueError):
        return []


def described(text: str) -> set[str]:
    """The names in backticks, and those with a colon at the head of a paragraph or a sentence."""
    spans = [span for span in re.findall(r"`([^`]+)`", text) if re.fullmatch(r"[\w*, ]+", span)]
    quoted = {name for span in spans for name in re.findall(r"\w+", span)}
    heads = re.findall(r"(?:^ *(?:- )?|[.;:] )(\w+(?:, \w+)*)(?: \([^)]*\))?:", text, re.MULTILINE)
    return quoted | {name for head in heads for name in head.split(", ")}


ENTRIES = list(entries())


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_public_name_has_an_example(entry: Entry) -> None:
    if entry.owner is None:
        assert example(inspect.getdoc(entry.function) or ""), f"the docstring of {entry.name} has no example"
        return
    calls = re.search(rf"\.{entry.name.rpartition('.')[2]}\(", example(class_docstrings(entry.owner)))
    assert calls or example(inspect.getdoc(entry.function) or ""), (
        f"neither {entry.name} nor its class has an example that calls it"
    )


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_argument_is_described(entry: Entry) -> None:
    missing = [name for name in arguments(entry.function) if name not in described(docstring(entry))]
    assert not missing, f"the docstring of {entry.name} does not describe {', '.join(missing)}"


@pytest.mark.parametrize("entry", [e for e in ENTRIES if inspect.isclass(e.function)], ids=lambda entry: entry.name)
def test_every_property_has_a_docstring(entry: Entry) -> None:
    members = {name: inspect.getattr_static(entry.function, name) for name in dir(entry.function) if name[0] != "_"}
    properties = [name for name, member in members.items() if isinstance(member, property | cached_property)]
    assert not [name for name in properties if not inspect.getdoc(members[name])]


def test_doctest_finds_every_example() -> None:
    """Also those of decorated functions and of functions that a function makes."""
    places = {entry.name: inspect.unwrap(entry.function).__module__ for entry in ENTRIES}
    sources: dict[str, set[str]] = {}
    for module in set(places.values()):
        tests = doctest.DocTestFinder().find(importlib.import_module(module))
        sources[module] = {part.source for test in tests for part in test.examples}
    for entry in ENTRIES:
        parts = doctest.DocTestParser().get_examples(inspect.getdoc(entry.function) or "")
        assert {part.source for part in parts} <= sources[places[entry.name]], entry.name


@pytest.mark.parametrize("module", modules())
def test_examples_run_and_leave_no_file(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert not doctest.testmod(importlib.import_module(module), extraglobs={"lw": lw, "np": np}).failed
    assert not list(tmp_path.iterdir())
