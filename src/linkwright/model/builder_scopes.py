"""Parts of a Builder: blocks in which names get that of the part before them, `leg[2].foot`, as in `.mks` by USE."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from inspect import Parameter, Signature, isfunction, signature
from typing import Any

from linkwright.errors import ModelError

#: Methods whose `name` names nothing new of the part: parameters are those of the whole mechanism.
_OTHER_NAMES = ("parameter", "component", "part")
#: Arguments that are words and never names.
_WORDS = ("kind", "color", "file", "coordinate")
_TABLES = ("_bodies", "_frames", "_joints", "_point_constraints", "_drivers", "_forces", "_curves")


class PartNames:
    """Adds `part` to a Builder. While a part is open, the public methods of the Builder translate names."""

    _part = ""
    _translated = False  # inside a method whose names are those of the whole already

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """A block in which each new name gets `name` and a dot before it: `leg[2]` makes `foot` to `leg[2].foot`.

        - `name`: of this one part, such as `leg[2]`; blocks may be nested, and opened again.

        In the block, names of the part are found by their short form first, then those of the whole mechanism.
        Parameters are of the whole mechanism, and things without a name get none of the part. The names are those that
        USE makes in `.mks`. Raises `ModelError` for an empty name.

        >>> b = lw.Builder("walker")
        >>> for k in (1, 2):
        ...     with b.part(f"leg[{k}]"):
        ...         foot = b.body("foot", 1.0, inertia=(0.1, 0.1, 0.1))
        ...         hip = b.joint("revolute", "ground", "foot", "hip")
        >>> foot.name, hip.name
        ('leg[2].foot', 'leg[2].hip')
        """
        if not isinstance(name, str) or not name.strip():
            raise ModelError(f"a part needs a name such as 'leg[2]', not {name!r}")
        outer = self._part
        methods = [key for key in dir(type(self)) if key[0] != "_" and isfunction(getattr(type(self), key))]
        if not outer:
            for key in methods:
                if key not in _OTHER_NAMES or key == "component":
                    self.__dict__[key] = self._translating(getattr(type(self), key))
        self._part = f"{outer}.{name}" if outer else name
        try:
            yield
        finally:
            self._part = outer
            if not outer:
                for key in methods:
                    self.__dict__.pop(key, None)

    def _translating(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method that takes the names of the open part."""
        names = _signature(method)

        @wraps(method)
        def call(*arguments: Any, **options: Any) -> Any:
            if self._translated:
                return method(self, *arguments, **options)
            try:
                bound = names.bind(self, *arguments, **options)
            except TypeError:
                return method(self, *arguments, **options)  # which says what is wrong
            for key, argument in bound.arguments.items():
                if names.parameters[key].kind is Parameter.VAR_KEYWORD:
                    bound.arguments[key] = {k: self._in_part(method, k, x) for k, x in argument.items()}
                elif names.parameters[key].kind is Parameter.VAR_POSITIONAL:
                    bound.arguments[key] = tuple(self._in_part(method, key, x) for x in argument)
                else:
                    bound.arguments[key] = self._in_part(method, key, argument)
            self._translated = True
            try:
                return method(*bound.args, **bound.kwargs)
            finally:
                self._translated = False

        return call

    def _in_part(self, method: Callable[..., Any], key: str, argument: Any) -> Any:
        """An argument: a new name gets the part's before it, a known name of the part is written in full."""
        if not isinstance(argument, str) or not argument or key in _WORDS:
            return argument
        whole = f"{self._part}.{argument}"
        if key == "name":
            return argument if method.__name__ in _OTHER_NAMES else whole
        outer = self._part
        while outer:
            if any(f"{outer}.{argument}" in getattr(self, table, ()) for table in _TABLES):
                return f"{outer}.{argument}"
            outer = outer.rpartition(".")[0]
        return argument


@lru_cache(maxsize=256)
def _signature(method: Callable[..., Any]) -> Signature:
    return signature(method)
