"""The public names of a package: written once, in its stub, which editors and mypy read too."""

from __future__ import annotations

import ast
from pathlib import Path


def public_names(package: str) -> dict[str, str]:
    """The module of every public name, from the imports in the stub beside a package's `__init__.py`."""
    stub = ast.parse(Path(package).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}
