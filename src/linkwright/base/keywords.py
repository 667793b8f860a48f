"""Keywords that settings objects have taken over from functions: each is an error that names its object."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from linkwright.errors import ModelError, NameNotFound

P = ParamSpec("P")
R = TypeVar("R")


def moved_keywords(homes: Mapping[str, Sequence[str]]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Refuse keywords that a function does not take: `homes` has those of settings objects, as "sampling=lw.Sampling".

    Any other is an error with a suggestion.
    """
    by_keyword = {keyword: home for home, keywords in homes.items() for keyword in keywords}

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        known = list(inspect.signature(function).parameters)

        @functools.wraps(function)
        def checked(*arguments: P.args, **keywords: P.kwargs) -> R:
            for name in keywords:
                if name in by_keyword:
                    text = f"{function.__name__} takes {name} as a part of its settings"
                    raise ModelError(f"{text}; give {by_keyword[name]}({name}=...)")
                if name not in known:
                    raise NameNotFound("argument", name, [*known, *by_keyword])
            return function(*arguments, **keywords)

        return checked

    return decorated


def check_settings(name: str, value: Any, kind: type[Any]) -> None:
    """Refuse anything but a settings object of this kind."""
    if not isinstance(value, kind):
        raise ModelError(f"{name} is {value!r}; give {name}=lw.{kind.__name__}(...)")
