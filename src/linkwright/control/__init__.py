"""Controllers, identification and H∞ design; a name's module is imported when the name is first used."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

# Where each public name lives.
_PUBLIC = {
    "Compensator": "linkwright.control.compensator",
    "Design": "linkwright.control.hinfinity",
    "System": "linkwright.control.systems",
    "delay": "linkwright.control.systems",
    "discretise": "linkwright.control.discrete",
    "error_weight": "linkwright.control.weights",
    "hankel_singular_values": "linkwright.control.reduction",
    "hinf": "linkwright.control.hinfinity",
    "hinf_norm": "linkwright.control.norms",
    "magnitude_from_above": "linkwright.control.weights",
    "margins": "linkwright.control.margins",
    "mixed_sensitivity": "linkwright.control.mixed_sensitivity",
    "performance_weight": "linkwright.control.weights",
    "reduce": "linkwright.control.reduction",
    "two_dof": "linkwright.control.two_dof",
}

__all__ = sorted(_PUBLIC)


class _Room(ModuleType):
    """Importing a module of the name of what it holds (`two_dof`) would put the module in its place: not here."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _PUBLIC and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Room


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'linkwright.control' has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_PUBLIC)
