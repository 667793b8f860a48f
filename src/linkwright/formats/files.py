"""Files read, no more than a model can need, and numbers that can be computed with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from linkwright.base.regular import open_regular
from linkwright.errors import FormatError

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
