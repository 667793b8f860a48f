"""The public names of a package: written once, in its stub, which editors and mypy read too."""

from __future__ import annotations

from pathlib import Path


def public_names(package: str) -> dict[str, str]:
    """The module of every public name, from the stub beside a package's `__init__.py`.

    A line of the stub has one name, `from module import name as name`: splitting it is all that is needed, and
    `import linkwright` loads no parser.
    """
    stub = Path(package).with_suffix(".pyi").read_text(encoding="utf-8")
    imports = [line.split() for line in stub.splitlines() if line.startswith("from ")]
    return {name: module for _, module, _, name, *_ in imports}
