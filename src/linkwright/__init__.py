"""Linkwright: multibody dynamics for Python. Describe a mechanism once; get its dynamics at native speed."""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any as _Any

from linkwright.base.arguments import public_names as _public_names
from linkwright.tape.program_forms import Backends as _Backends
from linkwright.tape.program_forms import provide_backends as _provide_backends

__version__ = "0.1.0"


_MODULES = _public_names(__file__)
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


def _backends() -> _Backends:
    """The back-ends of programs, imported when a program first asks for one."""
    from linkwright.kernels import back_ends  # weight: the back-ends, which few calls need

    return back_ends


_provide_backends(_backends)
