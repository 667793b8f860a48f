"""Regular files and plain directories, opened for reading: never a pipe that blocks, and no link where none may be."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO, cast

_KINDS = (
    (stat.S_ISLNK, "a link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISREG, "a file"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def kind(path: str | os.PathLike[str]) -> str:
    """What stands at a path, itself and not what it links to: "a file", "a folder", "a link", …; empty if nothing."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return word(mode)


def open_regular(path: str | os.PathLike[str], *, links: bool = True) -> BinaryIO:
    """Open a regular file to read; anything else is an `OSError` whose words say what it is.

    Without `links`, the last part of the path may not be a symbolic link. Nothing is opened that could block.
    """
    _refuse(os.stat(path).st_mode if links else os.lstat(path).st_mode)
    return _opened(path, os.O_RDONLY | _flags(*() if links else ("O_NOFOLLOW",)), "rb")


def open_lock(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file to hold a lock on, made if it is not there; its content is left as it is."""
    if kind(path):
        _refuse(os.lstat(path).st_mode)
    return _opened(path, os.O_RDWR | os.O_CREAT | _flags("O_NOFOLLOW"), "r+b")


def _opened(path: str | os.PathLike[str], flags: int, mode: str) -> BinaryIO:
    handle = os.open(path, flags | _flags("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"), 0o666)
    try:
        _refuse(os.fstat(handle).st_mode)  # it may have become another since it was looked at
        return cast(BinaryIO, os.fdopen(handle, mode))
    except BaseException:
        os.close(handle)
        raise


def _refuse(mode: int) -> None:
    if not stat.S_ISREG(mode):
        number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(number, f"it is {word(mode)}, and no regular file")


def word(mode: int) -> str:
    """What a file of this mode is: "a file", "a folder", "a pipe", …"""
    return next((word for test, word in _KINDS if test(mode)), "a device")


def _flags(*names: str) -> int:
    """The flags of these names, as far as the system has them."""
    flags = 0
    for name in names:
        flags |= getattr(os, name, 0)
    return flags
