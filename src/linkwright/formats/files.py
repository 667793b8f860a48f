"""Files read, no more than a model can need."""

from __future__ import annotations

from pathlib import Path

from linkwright.errors import FormatError

MAX_BYTES = 64 * 2**20


def read_bytes(path: str | Path, most: int) -> bytes:
    """What is in a file of at most so many bytes."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(most + 1)
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}", file=str(path)) from error
    if len(data) > most:
        raise FormatError(f"is larger than {most >> 20} MB; a model file is never that large", file=str(path))
    return data
