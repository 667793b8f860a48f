"""Settings objects: keyword arguments of a function beyond its main ones, grouped by what they are about."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from linkwright.errors import ArgumentError, NameNotFound

P = ParamSpec("P")
T = TypeVar("T")


def takes_settings(**classes: type[Any]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Mark a function, or an `__init__`, whose keywords of these names are settings objects of these classes.

    A field of such an object that is given as a keyword of the function itself is an ArgumentError that names the
    object. Unknown keywords and objects of another type are ArgumentErrors too. A class with a method `of` makes
    settings of values of other types, and refuses those that it cannot use.
    """

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        owner = function.__qualname__.removesuffix(".__init__")
        arguments_of = inspect.signature(function).parameters
        homes: dict[str, str] = {}
        for keyword, kind in classes.items():
            for field in fields(kind):
                if field.name not in arguments_of:
                    homes.setdefault(field.name, f"{keyword}={_shown(kind)}({field.name}=...)")

        @wraps(function)
        def checked(*arguments: P.args, **keywords: P.kwargs) -> T:
            for name, value in keywords.items():
                if name in homes:
                    raise ArgumentError(f"{owner} takes no argument {name!r}; give {homes[name]}", argument=name)
                if name not in arguments_of:
                    unknown = NameNotFound("argument", name, [*arguments_of, *homes])
                    raise ArgumentError(f"{owner}: {unknown.message}", argument=name)
                kind = None if name in arguments_of and value is arguments_of[name].default else classes.get(name)
                if kind is not None and not (hasattr(kind, "of") or isinstance(value, kind)):
                    raise ArgumentError(f"{name} must be {_shown(kind)}(...), not {value!r}", argument=name)
            return function(*arguments, **keywords)

        return checked

    return decorated


def _shown(kind: type[Any]) -> str:
    """A public class as a user writes it."""
    room = "lw.control" if kind.__module__.startswith("linkwright.control.") else "lw"
    return f"{room}.{kind.__name__}"
