"""Control: controllers, identification from recorded data, H∞ design. Names are loaded when first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Where the public names of `lw.control` live.
_PUBLIC = {
    "Model": "linkwright.control.models",
    "Orders": "linkwright.control.prediction",
    "Record": "linkwright.control.records",
    "Spectrum": "linkwright.control.spectra",
    "bode": "linkwright.control.bode",
    "chirp": "linkwright.control.sequences",
    "empirical": "linkwright.control.spectra",
    "identify": "linkwright.control.identify",
    "m_sequence": "linkwright.control.sequences",
    "multiplicative_error": "linkwright.control.spectra",
    "multisine": "linkwright.control.sequences",
    "spectrum": "linkwright.control.spectra",
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
