"""Arguments of calls: numbers, shapes, sizes and settings objects, checked before anything is computed with them,
and the words of messages; each error names the argument.
"""

from __future__ import annotations

import inspect
import math
import operator
import os
import sys
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import fields
from functools import cache, wraps
from itertools import count
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from linkwright.errors import ArgumentError, DtypeError, MemoryLimitError, ModelError, NameNotFound, ShapeError


def first_few(names: Sequence[str], most: int) -> str:
    """Names in a sentence: the first few of them, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def shortened(text: str, most: int = 80) -> str:
    """A text in quotes in a message: what is longer than so many letters ends in an ellipsis."""
    return repr(text if len(text) <= most else f"{text[:most]}…")


def numbered_name(stem: str, taken: Container[str], first: int = 1) -> str:
    """The first of stem1, stem2, … that is not taken; counting begins at `first`."""
    return next(name for k in count(first) if (name := f"{stem}{k}") not in taken)


def free_name(stem: str, taken: Container[str], between: str = "") -> str:
    """The stem, or where it is taken the first of stem2, stem3, … that is not, with `between` before the number."""
    return stem if stem not in taken else numbered_name(stem + between, taken, 2)


def counted(number: int, thing: str, things: str = "") -> str:
    """A number with its noun, whose plural ends in s unless it is given."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def public_names(package: str) -> dict[str, str]:
    """The module of every public name, from the stub beside a package's `__init__.py`.

    A line of the stub has one name, `from module import name as name`: splitting it is all that is needed, and
    `import linkwright` loads no parser.
    """
    stub = Path(package).with_suffix(".pyi").read_text(encoding="utf-8")
    imports = [line.split() for line in stub.splitlines() if line.startswith("from ")]
    return {name: module for _, module, _, name, *_ in imports}


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
                    if not unknown.close:  # what it lists are its own arguments: those of settings objects are not
                        unknown = NameNotFound("argument", name, [*arguments_of])
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


GIBIBYTE = 2**30


@cache
def available() -> int:
    """The bytes that a process can have at most: what is installed, or less where the process is limited."""
    limits = []
    if hasattr(os, "sysconf") and {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= set(os.sysconf_names):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    try:
        import resource

        soft = resource.getrlimit(resource.RLIMIT_AS)[0]
        if soft != resource.RLIM_INFINITY:
            limits.append(soft)
    except ImportError:  # no POSIX
        pass
    return min((x for x in limits if x > 0), default=2**47)


def check_memory(what: str, numbers: int, advice: str) -> None:
    """Refuse so many numbers (8 bytes each) if they cannot be held; `what` takes them, `advice` says what to do."""
    if 8 * numbers > available():
        raise too_large(what, 8 * numbers, advice)


def too_large(what: str, needed: int, advice: str) -> MemoryLimitError:
    """The error for something that needs so many bytes."""
    room = available()
    text = f"{what} takes {_size(needed)} of memory, and there are {_size(room)}; {advice}"
    return MemoryLimitError(text, needed=needed, available=room)


def empty(what: str, shape: tuple[int, ...], advice: str) -> NDArray[np.float64]:
    """An array whose numbers are not set yet; one that cannot be had is a MemoryLimitError."""
    count = math.prod(shape)
    check_memory(what, count, advice)
    try:
        return np.empty(shape)
    except MemoryError:
        raise too_large(what, 8 * count, advice) from None


def _size(count: int) -> str:
    return f"{count / GIBIBYTE:.3g} GiB"


def outside() -> int:
    """How far up the stack a caller outside this package is: the `stacklevel` of a warning."""
    level, frame = 1, sys._getframe(1)
    ours = ("linkwright.", "functools")  # a cached property calls through the latter
    while frame.f_back is not None and str(frame.f_globals.get("__name__") or "").startswith(ours):
        level, frame = level + 1, frame.f_back
    return level


_FLOAT64 = np.dtype(np.float64)
MOST_POINTS = 10**8  # in time, of one result


def real_array(name: str, value: Any) -> NDArray[np.float64]:
    """A value as an exact ndarray of float64: itself, a view of it, or converted.

    Whole and smaller floating numbers are converted. Anything else is a `DtypeError`: objects, texts, None, complex
    numbers, Booleans, dates, floats that would lose digits, masked arrays. Rows of unequal length are a `ShapeError`.
    """
    refuse_masked(name, value)
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ShapeError(f"{name} cannot be made an array: {error}") from None
    except Exception as error:  # of other libraries, whose arrays may not be NumPy's now; StopIteration would end a map
        raise DtypeError(f"{name} cannot be made an array: {error}", given=type(value).__name__) from None
    if array.dtype is _FLOAT64:
        return array
    if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
        raise DtypeError(f"{name} has dtype {array.dtype}; needed is float64", given=array.dtype, wanted="float64")
    return array.astype(np.float64)


def finite_array(name: str, value: Any, shape: tuple[int, ...], *, batch: bool = False) -> NDArray[np.float64]:
    """Finite numbers of this shape as an array of float64; with `batch`, after any leading axes.

    Raises `ShapeError` for another shape, `ModelError` for numbers that are not finite, and what `real_array` does.
    """
    array = real_array(name, value)
    if array.shape[-len(shape) :] != shape or (array.ndim != len(shape) and not batch):
        wanted = f"(..., {', '.join(map(str, shape))})" if batch else f"{shape}"
        raise ShapeError(f"{name} has shape {array.shape}; give {wanted}", given=array.shape, wanted=shape)
    if not np.isfinite(array).all():
        raise ModelError(f"{name} has entries that are not finite numbers")
    return array


def exact_array(name: str, value: Any) -> NDArray[Any] | None:
    """The memory of an array as an exact ndarray, whose shape is that of its memory; None for what is no array.

    What a subclass says of its own shape, flags or memory is not asked for.
    """
    if type(value) is np.ndarray:
        return value
    if not isinstance(value, np.ndarray):
        return None
    refuse_masked(name, value)
    return np.ndarray.view(value, np.ndarray)


def refuse_masked(name: str, value: Any) -> None:
    """Refuse a masked array: its mask would be forgotten."""
    if type(value) is np.ndarray:
        return
    # Without this module, or while another thread still imports it, nobody has a masked array.
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    if masked is not None and isinstance(value, masked):
        advice = f"needed is float64 without a mask: give {name.rpartition(' ')[2]}.filled(value)"
        raise DtypeError(f"{name} is a masked array of {value.dtype}; {advice}", given="masked", wanted="float64")


def whole_number(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """A whole number within limits; a float or a Boolean is none, whatever its value."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool | np.bool_):
        raise ModelError(f"{name} must be a whole number, not {shown(value)}")
    if number < least:
        raise ModelError(f"{name} must be a whole number from {least} on, not {number}")
    if most is not None and number > most:
        raise ModelError(f"{name} is {number:,}; {most:,} is the most")
    return number


def finite_number(name: str, value: Any) -> float:
    """A finite number as a float; texts that spell one are none, and neither are Booleans."""
    try:
        number = None if isinstance(value, bool | np.bool_ | str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None:
        raise ModelError(f"{name} must be a number, not {shown(value)}")
    if not math.isfinite(number):
        raise ModelError(f"{name} must be a finite number, not {number}")
    return number


def positive_number(name: str, value: Any) -> float:
    """A finite number greater than zero."""
    number = finite_number(name, value)
    if number <= 0.0:
        raise ModelError(f"{name} must be a number greater than zero, not {number:g}")
    return number


def check_names(kind: str, names: Iterable[Any], known: Collection[str]) -> None:
    """Refuse names that are not among the known ones, as a `NameNotFound` of this kind of thing."""
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise NameNotFound(kind, str(name), list(known))


def path_text(what: str, path: Any) -> str:
    """The path of a file or folder as text; `what` names it in the message for anything else."""
    try:
        text = os.fspath(path)
    except TypeError:
        text = None
    if not isinstance(text, str) or not text:
        hint = "; call its build() first" if hasattr(path, "build") else ""
        raise ModelError(f"{what} is given by its path, a text or a pathlib.Path, not by {shown(path)}{hint}")
    if "\0" in text:
        raise ModelError(f"{what} {text!r} has a NUL character in its path; no file can be named so")
    return text


def shown(value: Any) -> str:
    """A value in a message: as Python writes it, or by its type where it cannot be written."""
    try:
        return repr(value)
    except Exception:  # whatever the value's own __repr__ raises
        return f"one of type {type(value).__name__}"


def check_points(start: float, end: float, interval: float) -> None:
    """Refuse an interval that asks for more points than are kept."""
    if (end - start) / interval > MOST_POINTS:
        text = f"interval = {interval:g} asks for {(end - start) / interval:.3g} points"
        raise ModelError(f"{text}, more than the {MOST_POINTS:.3g} that are kept; take a longer one")
