"""The public names are all there, and each says what it is for."""

import builtins
import inspect
import pydoc
import re
import types
from pathlib import Path

import pytest

import linkwright as lw

CLASSES = (lw.Mechanism, lw.Builder, lw.Program, lw.Solution)
CLASSES_OF_HELP = [name for name in lw.__all__ if inspect.isclass(getattr(lw, name))]


def public(thing: object) -> list[str]:
    return [name for name in dir(thing) if not name.startswith("_")]


@pytest.mark.parametrize("name", sorted(set(lw.__all__) - {"__version__", "TIME"}))
def test_every_public_name_has_a_docstring(name: str) -> None:
    value = getattr(lw, name)
    text = inspect.getdoc(value)
    assert text, f"lw.{name} has no docstring"
    sentences = text.partition(">>>")[0].rstrip()  # without the example at its end
    assert sentences[-1] in ".)`:", f"the docstring of lw.{name} is not a sentence: {text!r}"


@pytest.mark.parametrize("owner", CLASSES, ids=lambda c: c.__name__)
def test_every_public_method_has_a_docstring(owner: type) -> None:
    bare = [name for name in public(owner) if not inspect.getdoc(inspect.getattr_static(owner, name))]
    fields = set(getattr(owner, "__dataclass_fields__", ()))
    assert not [name for name in bare if name not in fields]


def test_every_name_of_the_list_is_there_and_dir_shows_no_other() -> None:
    assert all(getattr(lw, name) is not None for name in dir(lw))
    assert dir(lw) == sorted({*lw.__all__, "open"})


def test_texts_name_public_names_alone() -> None:
    root = Path(__file__).parents[2]
    places = [root / "README.md", *(x for y in ("src", "docs", "examples") for x in (root / y).rglob("*.*"))]
    texts = [(x, x.read_text(encoding="utf-8")) for x in places if x.suffix in (".py", ".pyi", ".md")]
    named = {(match[1], x.name) for x, text in texts for match in re.finditer(r"\blw\.([A-Za-z]\w*)", text)}
    assert len(named) > 300
    assert not [name for name in sorted(named) if name[0] not in dir(lw)]


def test_importing_all_names_leaves_pythons_own_alone() -> None:
    names: dict[str, object] = {}
    exec("from linkwright import *", names)
    assert names["load"] is lw.load
    assert not set(names) & set(vars(builtins)) - {"__builtins__"}
    assert lw.open is not open


def test_help_shows_public_names_and_no_other() -> None:
    """But for the list of files in a package, which Python adds by itself."""
    text = pydoc.plain(pydoc.render_doc(lw))
    parts = {part.split("\n", 1)[0]: part for part in re.split(r"\n(?=[A-Z][A-Z ]+\n)", text)}
    assert set(parts) - {"Python Library Documentation: package linkwright"} == {
        "NAME",
        "PACKAGE CONTENTS",
        "CLASSES",
        "FUNCTIONS",
        "DATA",
        "VERSION",
        "FILE",
    }
    shown = {
        "CLASSES": re.findall(r"^    class (\w+)", parts["CLASSES"], re.MULTILINE),
        "FUNCTIONS": re.findall(r"^    (\w+)\(", parts["FUNCTIONS"], re.MULTILINE),
        "DATA": re.findall(r"^    (\w+) =", parts["DATA"], re.MULTILINE),
    }
    assert sorted(shown["CLASSES"]) == sorted(CLASSES_OF_HELP)
    assert shown["DATA"] == ["TIME"]
    modules = {name for name in lw.__all__ if inspect.ismodule(getattr(lw, name))}
    assert sorted(shown["FUNCTIONS"]) == sorted(set(lw.__all__) - modules - {*CLASSES_OF_HELP, "TIME", "__version__"})


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        lw.simulat  # noqa: B018  (reading it is the test)


def test_every_error_is_a_linkwright_error_and_says_what_it_carries() -> None:
    found = [x for x in vars(lw.errors).values() if inspect.isclass(x) and x.__module__ == lw.errors.__name__]
    for error in found:
        if not issubclass(error, BaseException):
            continue  # what an error carries
        assert issubclass(error, (lw.errors.LinkwrightError, lw.errors.LinkwrightWarning))
        assert error.__doc__


def test_the_methods_of_the_contract_have_their_names_and_arguments() -> None:
    contract = {
        "forward_dynamics": ["q", "v", "tau", "t", "wrenches", "method", "out"],
        "inverse_dynamics": ["q", "v", "a", "t", "wrenches"],
        "mass_matrix": ["q"],
        "bias_forces": ["q", "v"],
        "gravity_forces": ["q"],
        "reactions": ["q", "v", "tau"],
        "forward_dynamics_derivatives": ["q", "v", "tau"],
        "inverse_dynamics_derivatives": ["q", "v", "a"],
        "pose": ["q", "frame"],
        "jacobian": ["q", "frame", "reference"],
        "twist": ["q", "v", "frame"],
        "kinetic_energy": ["q", "v"],
        "potential_energy": ["q"],
        "center_of_mass": ["q"],
        "momentum": ["q", "v"],
        "integrate": ["q", "dv"],
        "difference": ["q0", "q1"],
        "lock": ["joints"],
        "program": ["function", "method", "free"],
    }
    for name, wanted in contract.items():
        method = getattr(lw.Mechanism, name)
        assert isinstance(method, types.FunctionType)
        given = [p for p in inspect.signature(method).parameters if p != "self"]
        assert [p for p in given if p in wanted] == wanted, name
