"""Locks and lazily computed values that a forked process can use, whatever other threads did when it was forked.

A child process has only the thread that forked. A lock that another thread held stays locked in the child for ever, and
what it guards may be half changed. So a child gets new locks, and a fork waits for the locks whose guarded state would
be unusable half changed. Python's own locks of modules that are being imported cannot be renewed: a fork waits for the
imports that this package began in other threads.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

if sys.version_info >= (3, 12) or TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:
        """functools.cached_property as since Python 3.12: without the lock that all instances of a class share."""

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self.function, self.name = function, function.__name__
            self.__doc__ = function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            values = instance.__dict__
            if self.name not in values:
                values.setdefault(self.name, self.function(instance))
            return values[self.name]


class Lock:
    """A lock that is free in a forked child.

    With `fork_waits`, a fork waits until no other thread holds it: for state that is unusable while it changes. Who
    holds such a lock must not wait for another one. Without `reentrant`, its holder cannot take it a second time.
    """

    def __init__(self, *, fork_waits: bool = False, reentrant: bool = True) -> None:
        self.fork_waits = fork_waits
        self._new: Callable[[], Any] = threading.RLock if reentrant else threading.Lock
        self._lock = self._new()
        _locks.add(weakref.ref(self, _locks.discard))

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock; whether it was taken."""
        return bool(self._lock.acquire(blocking))

    def release(self) -> None:
        """Give the lock back."""
        self._lock.release()

    def renew(self) -> None:
        """Be free, whoever holds it: for a child, in which nobody does."""
        self._lock = self._new()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


# Not a WeakSet: threads that make locks would change it under the iteration of one that forks.
_locks: set[weakref.ref[Lock]] = set()
_forking = Lock()  # of two threads that fork, the second waits
_waiting: list[Lock] = []  # held by the thread that forks
_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"
_LONGEST_IMPORT = 60.0  # s, after which a fork goes on whatever is being imported


def _all_locks() -> list[Lock]:
    references = _locks.copy()  # at once, whatever other threads do
    return [lock for reference in references if (lock := reference()) is not None]


def _before_fork() -> None:
    _forking.acquire()
    until = time.monotonic() + _LONGEST_IMPORT
    while True:
        for lock in _all_locks():
            if lock.fork_waits:
                lock.acquire()
                _waiting.append(lock)
        if not _others_import() or time.monotonic() > until:
            return
        _release_waiting()  # what is imported may need them
        time.sleep(0.001)


def _others_import() -> bool:
    """Whether other threads are importing for this package; never so for a thread that imports something itself."""
    frames: dict[int, FrameType] = sys._current_frames()
    mine = frames.pop(threading.get_ident(), None)
    return not _imports(mine, "") and any(_imports(frame, _PACKAGE) for frame in frames.values())


def _imports(frame: FrameType | None, beginner: str) -> bool:
    """Whether a stack has an import in it that was begun by a file whose path starts so."""
    inside = False
    while frame is not None:
        file = frame.f_code.co_filename
        if inside and file.startswith(beginner):
            return True
        inside = inside or file == _IMPORT_SYSTEM
        frame = frame.f_back
    return False


def _release_waiting() -> None:
    while _waiting:
        _waiting.pop().release()


def _after_in_parent() -> None:
    _release_waiting()
    _forking.release()


def _after_in_child() -> None:
    _waiting.clear()
    for lock in _all_locks():
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
