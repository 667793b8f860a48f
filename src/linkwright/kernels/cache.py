"""Object code on disk, by content, CPU and versions, in a directory that only its owner can write.

An entry is one file: a magic line, the SHA-256 of the rest, the rest. Anything odd about the directory or an
entry costs a recompilation or a warning, never a wrong answer.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import warnings
from functools import cache
from pathlib import Path

from linkwright.errors import LinkwrightWarning

_MAGIC = b"linkwright-cache-1\n"
_ENTRY_LIMIT = 256 * 2**20
_TOTAL_LIMIT = 2 * 2**30


def directory() -> Path | None:
    """The cache directory, or None if there is none to be had (`LINKWRIGHT_CACHE` names another, "" none)."""
    named = os.environ.get("LINKWRIGHT_CACHE")
    if named == "":
        return None
    if named is None:
        import platformdirs

        named = platformdirs.user_cache_dir("linkwright")
    return _checked(named)


@cache
def _checked(name: str) -> Path | None:
    path = Path(name)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None  # read-only home: no cache, no noise
    return path if _safe(path) else None


def _safe(path: Path) -> bool:
    """Whether only this user can write the directory: object code from it will be run."""
    if os.name != "posix":
        return True
    try:
        status = path.stat()
    except OSError:
        return False
    if status.st_uid != os.getuid():
        warnings.warn(
            f"the cache directory {path} belongs to another user and is not used; "
            "set LINKWRIGHT_CACHE to a directory of your own",
            LinkwrightWarning,
            stacklevel=4,
        )
        return False
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        warnings.warn(
            f"the cache directory {path} can be written by others and is not used; run: chmod go-w {path}",
            LinkwrightWarning,
            stacklevel=4,
        )
        return False
    return True


@cache
def stamp() -> str:
    """What besides its content an entry depends on: versions, and the state of this package's own files."""
    from importlib.metadata import PackageNotFoundError, version

    parts = []
    for package in ("linkwright", "llvmlite", "numpy"):
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            parts.append(f"{package} from source")
    root = Path(__file__).resolve().parent.parent
    for file in sorted(root.rglob("*.py")):
        status = file.stat()
        parts.append(f"{file.relative_to(root)} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def key(*parts: str) -> str:
    """The name of an entry."""
    return hashlib.sha256("\0".join((stamp(), *parts)).encode()).hexdigest()


def read(name: str) -> bytes | None:
    """The content of an entry, or None if there is none or it is damaged."""
    folder = directory()
    if folder is None:
        return None
    path = folder / name
    try:
        if path.stat().st_size > _ENTRY_LIMIT or not _own_file(path):
            return None
        raw = path.read_bytes()
    except OSError:
        return None
    head = len(_MAGIC) + 32
    if not raw.startswith(_MAGIC) or len(raw) < head:
        return None
    content = raw[head:]
    if hashlib.sha256(content).digest() != raw[len(_MAGIC) : head]:
        return None
    return content


def _own_file(path: Path) -> bool:
    if os.name != "posix":
        return True
    status = path.lstat()
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_uid == os.getuid()
        and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def write(name: str, content: bytes) -> None:
    """Keep an entry; whole or not at all, and silently not if the directory cannot be written."""
    folder = directory()
    if folder is None or len(content) > _ENTRY_LIMIT:
        return
    try:
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(content).digest() + content)
            os.replace(temporary, folder / name)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        _trim(folder)
    except OSError:
        return


def _trim(folder: Path) -> None:
    """Drop the oldest entries once the directory has grown too large."""
    entries = [(e.stat().st_mtime, e.stat().st_size, e.path) for e in os.scandir(folder) if e.is_file()]
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= _TOTAL_LIMIT:
            return
        Path(path).unlink(missing_ok=True)
        total -= size
