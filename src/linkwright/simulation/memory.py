"""What a Python function keeps between its calls: seen where it changes, and put back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

_DEPTH = 6  # how far from the function it is looked for
_MOST = 10_000  # containers that are looked at, and numbers of one array
_NOTHING = object()


class Memory:
    """The names, attributes and containers that a function reaches, with what is in them now.

    What is opaque (objects of this package, of compiled classes, with slots) is not looked into.
    """

    def __init__(self, function: Any) -> None:
        self._contents: dict[int, tuple[Any, dict[Any, Any]]] = {}
        self._walk(function, 0)

    def changed(self) -> str | None:
        """What has become another since then; None if nothing has."""
        return next((what for _, _, what in self._changes()), None)

    def restore(self) -> None:
        """Put back what was there."""
        for holder, before, _ in list(self._changes()):
            if isinstance(holder, CellType):
                holder.cell_contents = before["a name from outside"]
            elif isinstance(holder, list):
                holder[:] = before.values()
            elif isinstance(holder, set):
                holder.clear()
                holder.update(before)
            elif isinstance(holder, np.ndarray):
                holder[...] = before["numbers"]
            elif isinstance(holder, _Names):
                holder.names.update(before)
            else:
                names = holder if isinstance(holder, dict) else holder.__dict__
                names.clear()
                names.update(before)

    def _changes(self) -> Iterator[tuple[Any, dict[Any, Any], str]]:
        for holder, before in self._contents.values():
            now = _inside(holder)
            for key in (*before, *(k for k in now if k not in before)):
                one, other = before.get(key, _NOTHING), now.get(key, _NOTHING)
                alike = one.tobytes() == other.tobytes() if isinstance(holder, np.ndarray) else one is other
                if not alike:
                    yield holder, before, repr(key) if isinstance(key, str) else f"a {type(holder).__name__}"
                    break

    def _walk(self, thing: Any, depth: int) -> None:
        if depth > _DEPTH or len(self._contents) > _MOST or id(thing) in self._contents:
            return
        if isinstance(thing, MethodType | partial):
            for part in _parts(thing):
                self._walk(part, depth)
            return
        if isinstance(thing, FunctionType):
            self._walk_function(thing, depth)
            return
        if not _looked_into(thing):
            return
        inside = _inside(thing)
        if not isinstance(thing, tuple):
            self._contents[id(thing)] = thing, inside
        if not isinstance(thing, np.ndarray):
            for value in inside.values():
                self._walk(value, depth + 1)

    def _walk_function(self, function: FunctionType, depth: int) -> None:
        names = _Names(function)
        if (function.__module__ or "").split(".")[0] in ("linkwright", "numpy") or id(function) in self._contents:
            return
        self._contents[id(function)] = names, _inside(names)
        for thing in (*(function.__closure__ or ()), *(function.__defaults__ or ()), *_inside(names).values()):
            self._walk(thing, depth + 1)
        for thing in (function.__kwdefaults__ or {}, function.__dict__):
            self._walk(thing, depth + 1)


class _Names:
    """The global names that a function speaks of."""

    def __init__(self, function: FunctionType) -> None:
        self.names = function.__globals__
        self.used = set(_names(function.__code__))


def _names(code: Any) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if hasattr(inner, "co_names"):
            yield from _names(inner)


def _parts(thing: MethodType | partial[Any]) -> tuple[Any, ...]:
    if isinstance(thing, MethodType):
        return thing.__func__, thing.__self__
    return thing.func, *thing.args, thing.keywords


def _looked_into(thing: Any) -> bool:
    if isinstance(thing, np.ndarray):
        return thing.size <= _MOST
    if isinstance(thing, CellType | list | dict | set | tuple):
        return True
    if isinstance(thing, type | ModuleType) or (type(thing).__module__ or "").split(".")[0] == "linkwright":
        return False
    return isinstance(getattr(thing, "__dict__", None), dict)


def _inside(thing: Any) -> dict[Any, Any]:
    if isinstance(thing, np.ndarray):
        return {"numbers": thing.copy()}
    if isinstance(thing, _Names):
        return {name: thing.names[name] for name in thing.used if name in thing.names}
    if isinstance(thing, CellType):
        try:
            return {"a name from outside": thing.cell_contents}
        except ValueError:  # empty
            return {}
    if isinstance(thing, list | tuple):
        return dict(enumerate(thing))
    if isinstance(thing, set):
        return dict.fromkeys(thing)
    return dict(thing) if isinstance(thing, dict) else dict(thing.__dict__)
