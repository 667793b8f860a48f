"""Linkwright: multibody dynamics for Python. Describe a mechanism once; get its dynamics at native speed."""

from __future__ import annotations

import ast as _ast
from importlib import import_module as _import_module
from pathlib import Path as _Path
from typing import Any as _Any

__version__ = "0.1.0"


def _public_names() -> dict[str, str]:
    """The module of every public name, from the imports in `__init__.pyi`."""
    stub = _ast.parse(_Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, _ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


_MODULES = _public_names()
# `from linkwright import *` must not replace the built-in `open`.
__all__ = sorted({*_MODULES, "__version__"} - {"open"})


def __getattr__(name: str) -> _Any:
    """Import the module of a public name when the name is first used: `import linkwright` stays light."""
    if name not in _MODULES:
        raise AttributeError(f"module 'linkwright' has no attribute {name!r}")
    home = _MODULES[name]
    value = _import_module(f"{home}.{name}") if home == __name__ else getattr(_import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_MODULES, "__version__"})
