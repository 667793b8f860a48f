"""Files read, no more than a model can need, and written, whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from linkwright.errors import FormatError, LinkwrightError
from linkwright.targets import check_target

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


def check_place(path: Path) -> None:
    """Refuse a place where no file can be: to be asked before long work whose outcome goes there."""
    if path.is_dir():
        raise LinkwrightError(f"{path}: is a directory; give a file")
    if not path.parent.is_dir():
        raise LinkwrightError(f"{path}: there is no directory {path.parent}; make it first")
    check_target(path)


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all: beside its place, then moved there."""
    check_place(path)
    folder = path.parent
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{path.name}-")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        # mkstemp makes files for the owner alone; a source file has the rights that any new file would have.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except OSError as error:  # it would name the file beside, which nobody knows
        _forget(temporary)
        raise LinkwrightError(f"{path}: cannot be written: {error.strerror}") from error
    except BaseException:
        _forget(temporary)
        raise


def _forget(temporary: str) -> None:
    if temporary:
        Path(temporary).unlink(missing_ok=True)
