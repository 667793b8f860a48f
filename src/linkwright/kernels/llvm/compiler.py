"""LLVM text to machine code in this process, kept on disk by content, CPU and versions in a folder that only its
owner can write.

Entries are in `FOLDER`, a folder of their own within the cache folder. An entry is one file: a magic line, the
SHA-256 of its name and the rest, the rest. Anything odd about the folder or an entry costs a recompilation or a
warning, never a wrong answer. Nothing but an entry is ever replaced or removed, whatever stands beside it.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import os
import re
import stat
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import time
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arguments import outside
from linkwright.base.arrays import packed, unpacked
from linkwright.base.files import atomic_file
from linkwright.base.locks import Lock
from linkwright.errors import KernelError, LinkwrightError, LinkwrightWarning

T = TypeVar("T")

FOLDER = "kernels"
_ENDING = ".lwk"
_ENTRY = re.compile(rf"[0-9A-Za-z_-]{{1,100}}{re.escape(_ENDING)}")
_PART = re.compile(rf"\.{_ENTRY.pattern}\.[0-9a-f]{{8}}\.part")
_ABANDONED = 3600.0  # seconds after which a part of an entry is what a killed process left
_MAGIC = b"linkwright-cache-2\n"
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_ENTRY_LIMIT = 256 * 2**20
_TOTAL_LIMIT = 2 * 2**30
_unseen: dict[Path, int] = {}  # bytes written by this process since it last added up a folder


def directory() -> Path | None:
    """Where entries are, or None if there is no place to be had.

    It is within the user's cache folder, or within that which `LINKWRIGHT_CACHE` names; "" is none.
    """
    named = os.environ.get("LINKWRIGHT_CACHE")
    if named == "":
        return None
    if named is None:
        import platformdirs  # weight: platformdirs

        named = platformdirs.user_cache_dir("linkwright")
    return _checked(named)


@cache
def _checked(name: str) -> Path | None:
    parent = Path(name)
    path = parent / FOLDER
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _safe(parent):
            return None
        path.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return None  # read-only home: no cache, no noise
    return path if _safe(path, follow=False) else None


def _safe(path: Path, *, follow: bool = True) -> bool:
    """Whether only this user can write the folder: object code from it will be run."""
    try:
        status = path.stat(follow_symlinks=follow)
    except OSError:
        return False
    if not stat.S_ISDIR(status.st_mode):
        return False
    if not _others_write(status):
        return True
    if status.st_uid != os.getuid():
        reason, advice = "belongs to another user", "set LINKWRIGHT_CACHE to a folder of your own"
    else:
        reason, advice = "can be written by others", f"run: chmod go-w {path}"
    warnings.warn(
        f"the cache folder {path} {reason} and is not used; {advice}", LinkwrightWarning, stacklevel=outside()
    )
    return False


def _others_write(status: os.stat_result) -> bool:
    """Whether another user than this one can write what the status is of."""
    if os.name != "posix":
        return False
    return status.st_uid != os.getuid() or bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


@cache
def stamp() -> str:
    """What besides its content an entry depends on: versions of libraries, and this package's own files."""
    try:
        from llvmlite import __version__ as llvmlite  # weight: llvmlite
    except ImportError:
        llvmlite = "none"
    parts = [f"llvmlite {llvmlite}", f"numpy {np.__version__}"]
    root = os.fspath(Path(__file__).resolve().parents[2])  # of the whole package: what is recorded depends on all of it
    files = sorted(
        f"{folder}{os.sep}{name}" for folder, _, names in os.walk(root) for name in names if name[-3:] == ".py"
    )
    # Files that were not touched need not be read again: no content changes without a time, of the file or its entry.
    status = [(file, x.st_size, x.st_mtime_ns, x.st_ctime_ns, x.st_ino) for file in files for x in (os.stat(file),)]
    known = hashlib.sha256(repr((parts, status)).encode()).hexdigest()

    def of_content() -> bytes:
        whole = hashlib.sha256("\n".join(parts).encode())
        for file in files:
            with open(file, "rb", buffering=0) as stream:
                content = stream.readall()
            whole.update(f"{file[len(root) :]} {len(content)}\n".encode() + content)
        return whole.hexdigest().encode()

    return stored(f"stamp-{known}", of_content, bytes, bytes).decode()


def key(*parts: str) -> str:
    """The name of an entry."""
    return hashlib.sha256("\0".join((stamp(), *parts)).encode()).hexdigest()


def read(name: str) -> bytes | None:
    """The content of an entry, or None if there is none or it is damaged."""
    folder = directory()
    if folder is None:
        return None
    try:
        # What is looked at is what is read: a link or another's file in its place is refused.
        with os.fdopen(os.open(folder / f"{name}{_ENDING}", _READ), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > _ENTRY_LIMIT or _others_write(status):
                return None
            raw = file.read()
    except OSError:
        return None
    head = len(_MAGIC) + 32
    content = raw[head:]
    return content if raw[:head] == _MAGIC + _digest(name, content) else None


def _digest(name: str, content: bytes) -> bytes:
    """Of an entry's name too: a file under another's name is damaged."""
    return hashlib.sha256(name.encode() + b"\0" + content).digest()


def write(name: str, content: bytes) -> None:
    """Keep an entry; whole or not at all, and silently not if the folder cannot be written."""
    folder = directory()
    if folder is None or len(content) > _ENTRY_LIMIT:
        return
    target = folder / f"{name}{_ENDING}"
    try:
        if target.is_symlink() or (target.exists() and not target.is_file()):
            return  # no entry of ours
        with atomic_file(target, durable=False, private=True, links=False) as file:
            file.write(_MAGIC + _digest(name, content) + content)
        _unseen[folder] = _unseen.get(folder, _TOTAL_LIMIT) + len(content)
        if _unseen[folder] > _TOTAL_LIMIT // 64:  # adding up asks for every file's size: not after each write
            _unseen[folder] = 0
            _trim(folder)
    except (OSError, LinkwrightError):
        return


def _trim(folder: Path) -> None:
    """Drop the oldest entries once they take too much space, and what killed processes left of others."""
    entries: list[tuple[float, int, str]] = []
    with os.scandir(folder) as listing:
        for entry in listing:
            if not entry.is_file(follow_symlinks=False):
                continue
            status = entry.stat(follow_symlinks=False)
            if _ENTRY.fullmatch(entry.name):
                entries.append((status.st_mtime, status.st_size, entry.path))
            elif _PART.fullmatch(entry.name) and time() - status.st_mtime > _ABANDONED:
                _drop(entry.path)
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= _TOTAL_LIMIT:
            return
        _drop(path)
        total -= size


def _drop(path: str) -> None:
    """Remove a file that is an entry by its content too: one with the magic line, or the beginning of it."""
    with suppress(OSError):
        with os.fdopen(os.open(path, _READ), "rb") as file:
            head = file.read(len(_MAGIC))
        if _MAGIC.startswith(head):
            os.unlink(path)


def stored(name: str, make: Callable[[], T], loads: Callable[[bytes], T], dumps: Callable[[T], bytes]) -> T:
    """What an entry holds; where there is none, or it is damaged, made now and kept."""
    content = read(name)
    if content is not None:
        try:
            return loads(content)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError, AssertionError, NameError):
            pass  # a damaged entry
    thing = make()
    write(name, dumps(thing))
    return thing


def stored_arrays(content: str, request: str, compute: Callable[[], list[NDArray[Any]]]) -> list[NDArray[Any]]:
    """Arrays that follow from some content, by what is asked: from the cache on disk, or computed now."""
    return stored(key(content, request), compute, unpacked, packed)


_lock = Lock(fork_waits=True)  # around every call of LLVM, which has locks of its own
atexit.register(_lock.acquire)  # a daemon thread that compiles while LLVM is being torn down would crash the process
_LIBM = ("sin", "cos", "tan", "exp", "log", "atan2", "pow", "fma", "floor")


#: The scheduler compares every access to memory with every other, up to so many; beyond, some are taken together.
#: LLVM's own limit of 1000 takes half of the time of compiling straight code, and the code is no faster for it.
#: LLVM keeps options for the whole process, for other users of llvmlite too, and ends a process that gives it an option
#: that it does not know: only versions that were tried get them.
_OPTIONS = ("-dag-maps-huge-region=200", "-dag-maps-reduction-size=100")
_TRIED = range(20, 23)  # LLVM's major versions


@cache
def _llvm() -> Any:
    with _lock:
        import llvmlite.binding as llvm  # weight: llvmlite

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        for option in _OPTIONS if llvm.llvm_version_info[0] in _TRIED else ():
            llvm.set_option("", option)
        add_symbols({name: address for name in _LIBM if (address := _libm(name))}, llvm)
        return llvm


def _libm(name: str) -> int | None:
    """The address of a function of the C library, looked for in this process first: finding a file takes long."""
    for library in (_process, _libm_file):
        function = getattr(library(), name, None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value
    return None


@cache
def _process() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):
        return None


@cache
def _libm_file() -> ctypes.CDLL | None:
    from ctypes.util import find_library  # weight: subprocess

    name = find_library("m")
    return ctypes.CDLL(name) if name else None


def add_symbols(addresses: dict[str, int], llvm: Any = None) -> None:
    """Let compiled code call functions of this process by name."""
    with _lock:
        llvm = llvm or _llvm()
        for name, address in addresses.items():
            llvm.add_symbol(name, address)


@cache
def cpu() -> tuple[str, str, str]:
    """What object code is for, as LLVM says it: the CPU's name and features, the system's triple."""
    with _lock:
        llvm = _llvm()
        return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), llvm.get_process_triple()


@cache
def lanes() -> int:
    """How many doubles a register of this CPU holds."""
    features = cpu()[1].split(",")
    if "+avx512f" in features:
        return 8
    if "+avx" in features:
        return 4
    return 2


def _machine(level: int) -> Any:
    """A target machine; an execution engine takes the one it is given for itself."""
    llvm = _llvm()
    name, features, _ = cpu()
    if lanes() == 8:
        features += ",-prefer-256-bit"
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=name, features=features, opt=level, reloc="pic", codemodel="jitdefault"
    )


#: The level of code generation for kernels that run often.
CARE = 2


def object_code(text: str, *, level: int = 2) -> bytes:
    """Compile LLVM text to an object file's bytes."""
    with _lock:
        return _emitted(text, level)  # its objects of LLVM are gone before the lock is free


def _emitted(text: str, level: int) -> bytes:
    module = _llvm().parse_assembly(f'target triple = "{cpu()[2]}"\n{text}')
    return _machine(level).emit_object(module)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Code:
    """A compiled function's address; its code stays loaded as long as the array `life` lives.

    An array is not seen by the garbage collector, and so neither is the code behind it: a finaliser that calls a
    kernel while the cycle around both is being cleared still finds the code.
    """

    address: int
    life: NDArray[np.uint64]
    team: int = 0  # of the function for one member of a team of threads, if there is one


_engines: dict[int, Any] = {}


def _unload(address: int) -> None:
    with _lock:
        _engines.pop(address, None)


def load(code: bytes, name: str) -> Code:
    """Link object code into this process; its function `name`."""
    with _lock:
        return _linked(code, name)


def _linked(code: bytes, name: str) -> Code:
    llvm = _llvm()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(2))
    file = llvm.ObjectFileRef.from_data(code)
    if not file:
        raise KernelError("what should be object code is none")
    try:
        engine.add_object_file(file)
        engine.finalize_object()
    except RuntimeError as error:
        raise KernelError(f"object code could not be loaded: {error}") from None
    address: int = engine.get_function_address(name)
    if not address:
        raise KernelError(f"object code has no function {name!r}")
    life = np.array(address, dtype=np.uint64)
    _engines[address] = engine
    weakref.finalize(life, _unload, address).atexit = False
    return Code(address, life, engine.get_function_address(f"{name}_team"))
