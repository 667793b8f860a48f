"""The lowest versions that pyproject.toml declares, as requirements for pip: `make test-lowest` tests with them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
#: What is not installed with the others, and why. Tests that need it skip.
LEFT_OUT = {
    "pin": "no wheel of Pinocchio is built for the lowest NumPy",
    "lxml-stubs": "for the type checker alone",
    "mypy": "lint has no lowest version",
    "ruff": "lint has no lowest version",
}
#: What comes with the others and is newer than they know, and why it is held back.
HELD_BACK = {
    "pyparsing": ("<3.3", "it deprecates what Matplotlib 3.8 calls, and examples run with deprecations as errors"),
}
_DECLARED = re.compile(r"([\w.-]+)>=([\d.]+)(?:,<[\d.]+)?")


def lowest() -> dict[str, str]:
    """The lowest declared version of each package that users and tests need."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    versions: dict[str, str] = {}
    for requirement in (*project["dependencies"], *project["optional-dependencies"]["test"]):
        declared = _DECLARED.fullmatch(requirement)
        if declared is None:
            raise SystemExit(f"{requirement!r} declares no lowest version; write it as name>=version")
        if declared[1] not in LEFT_OUT:
            versions[declared[1]] = declared[2]
    return versions


if __name__ == "__main__":
    print("\n".join(f"{name}=={version}" for name, version in lowest().items()))
    print("\n".join(f"{name}{bound}" for name, (bound, _) in HELD_BACK.items()))
