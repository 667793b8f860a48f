"""Files: written whole or not at all, and read only where they are regular files.

A file is written beside its place, brought to the disk, and moved there in one step. Whatever ends the writing (a full
disk, an exception, a killed process), the target holds either its former content or the new one, complete.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from linkwright.base.arguments import path_text
from linkwright.errors import LinkwrightError

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


_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_ADVICE = {
    errno.ENOSPC: "free some space or choose another place",
    errno.EDQUOT: "free some space or choose another place",
    errno.EFBIG: "it is larger than files may be here; choose another place",
    errno.ENOENT: "choose a folder that exists",
    errno.ENOTDIR: "choose a folder that exists",
    errno.EACCES: "choose a folder that you may write to",
    errno.EPERM: "choose a folder that you may write to",
    errno.EROFS: "choose a folder that can be written",
}


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse a place that holds anything but a regular file, or a link to one, that may be written.

    The new file would replace what is there, whatever it is: a pipe, a device, or a file that somebody protected.
    """
    path_text("a file", path)
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return  # nothing is there, or writing will raise the reason
    if not stat.S_ISREG(mode):
        advice = "; give the name of a file in it"
        if not stat.S_ISDIR(mode):
            advice = ", which a file would replace; give the name of a file"
        raise LinkwrightError(f"{os.fspath(path)} is {word(mode)}{advice}")
    if not mode & _WRITABLE or not os.access(path, os.W_OK):
        raise LinkwrightError(f"cannot write {os.fspath(path)}: it is read-only; allow writing, or give another name")


def check_place(path: Path) -> None:
    """Refuse a place where no file can be: to be asked before long work whose outcome goes there."""
    if not path.parent.is_dir():
        raise LinkwrightError(f"{path}: there is no folder {path.parent}; make it first")
    check_target(path)


@contextmanager
def atomic_file(
    path: str | os.PathLike[str], *, durable: bool = True, private: bool = False, links: bool = True
) -> Iterator[BinaryIO]:
    """A new binary file that takes the place of `path` when the block ends without an error.

    Where `path` is a symbolic link, the new file takes the place of what it leads to; without `links`, that of the link
    itself: for files whose names the package chooses.
    An `OSError` in the block or at its end becomes a `LinkwrightError` that names `path` and says what to do.
    `durable=False` leaves it to the system when the bytes reach the disk: for what can be made again, such as a cache.
    A `private` file can be read and written by its owner alone.
    """
    check_target(path)
    target = Path(os.path.realpath(path) if links else path)
    temporary = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
    created = False
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        handle = os.open(temporary, flags, 0o600 if private else 0o666)
        created = True
        with os.fdopen(handle, "w+b") as file:
            if not private:
                _keep_mode(file, target)
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(temporary, target)
        if durable:
            _sync_folder(target.parent)
    except BaseException as error:
        if created:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise cannot_write(path, error) from error
        raise


@contextmanager
def atomic_text(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """The same for text in UTF-8; the ends of lines are written as they are."""
    with atomic_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        try:
            yield text
        finally:
            text.detach()


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """A new folder beside `folder` that becomes it when the block ends without an error.

    Where `folder` exists, the new files take their places in it and all others stay. What fails in the block leaves
    nothing behind; an `OSError` becomes a `LinkwrightError` that names `folder` and says what to do.
    """
    staging = folder.with_name(f".{folder.name}.{os.urandom(4).hex()}.part")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging.mkdir()
        yield staging
        if not folder.exists():
            os.rename(staging, folder)
            return
        for file in sorted(p for p in staging.rglob("*") if p.is_file()):
            target = folder / file.relative_to(staging)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(file, target)
    except OSError as error:
        raise cannot_write(folder, error) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def move_aside(path: Path, ending: str) -> None:
    """Give a file that is in the way its name with this ending, in the place of an older one."""
    try:
        os.replace(path, path.with_name(f"{path.name}{ending}"))
    except OSError as error:
        raise cannot_write(path, error) from error


def write_bytes(path: str | os.PathLike[str], content: bytes | memoryview, *, links: bool = True) -> None:
    """Write a file whole or not at all; `links` as of `atomic_file`."""
    with atomic_file(path, links=links) as file:
        file.write(content)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8, whole or not at all."""
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as error:
        reason = f"it would hold {text[error.start]!r}, which is no character; rename what has it"
        raise LinkwrightError(f"cannot write {os.fspath(path)}: {reason}") from None
    write_bytes(path, content)


def cannot_write(path: str | os.PathLike[str], error: OSError) -> LinkwrightError:
    """The error to raise where the system refused to write a file or folder; it names no temporary file."""
    reason = error.strerror or str(error)
    advice = _ADVICE.get(error.errno or 0, "choose another place")
    return LinkwrightError(f"cannot write {os.fspath(path)}: {reason}; {advice}")


def _keep_mode(file: BinaryIO, target: Path) -> None:
    """A file that replaces another is for the same users."""
    if hasattr(os, "fchmod"):
        with suppress(OSError):
            os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # where folders cannot be opened, their entries need no care
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
