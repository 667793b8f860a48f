"""Control of mechanisms: controllers, sampled loops, identification and design, as `lw.control`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from linkwright.base.arguments import public_names

_MODULES = public_names(__file__)
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """Import the module of a public name when the name is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module 'linkwright.control' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
