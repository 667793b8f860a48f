"""What pyproject.toml declares as the lowest versions can be made an environment of."""

import sys
import tomllib
from pathlib import Path

from checkout import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from lowest import HELD_BACK, LEFT_OUT, lowest

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names(requirements: list[str]) -> set[str]:
    return {requirement.split(">")[0] for requirement in requirements}


def test_every_dependency_of_users_is_in_the_lowest_environment() -> None:
    extras = PROJECT["optional-dependencies"]
    users = names(PROJECT["dependencies"]).union(*(names(extras[x]) for x in ("plot", "control", "xacro", "cluster")))
    assert users <= set(lowest())
    assert not users & set(LEFT_OUT)


def test_a_package_has_one_lowest_version() -> None:
    declared = [*PROJECT["dependencies"], *(x for extra in PROJECT["optional-dependencies"].values() for x in extra)]
    by_name: dict[str, set[str]] = {}
    for requirement in declared:
        by_name.setdefault(requirement.split(">")[0], set()).add(requirement)
    assert not {name: found for name, found in by_name.items() if len(found) > 1}


def test_no_package_that_is_declared_is_held_back() -> None:
    extras = PROJECT["optional-dependencies"]
    assert not set(HELD_BACK) & names(PROJECT["dependencies"]).union(*(names(x) for x in extras.values()))


def test_the_makefile_tests_with_them() -> None:
    text = Path(ROOT / "Makefile").read_text(encoding="utf-8")
    assert "tests/lowest.py" in text
    assert "test-lowest:" in text
