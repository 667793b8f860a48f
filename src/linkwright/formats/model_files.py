"""What all readers share: no more of a file than a model can need, options that they know, numbers to compute with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from linkwright.base.files import open_regular
from linkwright.errors import FormatError, ModelError, NameNotFound

MAX_BYTES = 64 * 2**20


@contextmanager
def finite_arithmetic(file: str) -> Iterator[None]:
    """Refuse a model whose numbers overflow as they are computed with: 1e308 is a number, and its square is none."""
    try:
        with np.errstate(over="raise"):
            yield
    except FloatingPointError as error:
        text = f"has numbers too large to compute with ({error}); a model in SI units never has"
        raise FormatError(text, file=file) from error


def check_options(file: str, reader: Callable[..., Any], **options: Any) -> None:
    """Refuse values of options that a reader's annotations, which are `Literal`s, do not have."""
    hints = get_type_hints(reader)
    for option, value in options.items():
        parts = [hints[option], *get_args(hints[option])]  # a Literal, or a union of one and None
        allowed = [word for part in parts if get_origin(part) is Literal for word in get_args(part)]
        if value not in allowed and not (value is None and type(None) in parts):
            raise FormatError(f"the option {option}={value!r} must be {' or '.join(map(repr, allowed))}", file=file)


@contextmanager
def errors_in(file: str, line: int | None = None, element: str | None = None) -> Iterator[None]:
    """Errors of a mechanism that cannot be as errors of the file, which is what the user knows.

    They name the line and the element, or by default the element that the mechanism's error names.
    """
    try:
        yield
    except FormatError:
        raise
    except (ModelError, NameNotFound) as error:
        name = element or getattr(error, "element", None)
        raise FormatError(str(error), file=file, line=line, element=name) from error


def read_bytes(path: str | Path, most: int) -> bytes:
    """What is in a file of at most so many bytes."""
    try:
        with open_regular(path) as stream:
            data = stream.read(most + 1)
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}", file=str(path)) from error
    if len(data) > most:
        raise FormatError(f"is larger than {most >> 20} MB; a model file is never that large", file=str(path))
    return data
