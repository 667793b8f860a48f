"""Controllers, identification and H∞ design; a name's module is imported when the name is first used."""

from __future__ import annotations

from importlib import import_module
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


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'linkwright.control' has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_PUBLIC)
