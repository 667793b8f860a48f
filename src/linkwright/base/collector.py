"""Python's garbage collector held back while many objects are made that all stay."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

from linkwright.base.locks import Lock

_lock = Lock()
_depth = 0  # blocks, of all threads, in which it is held back
_was_enabled = False


@contextmanager
def without_collection() -> Iterator[None]:
    """A block that makes large structures without cycles: looking through them again and again frees nothing.

    Garbage collection is off for the whole process meanwhile; it would double the time of 10⁵ SymPy products. Blocks
    may be nested and run in several threads; a collector that was off before stays off.
    """
    global _depth, _was_enabled
    with _lock:
        if _depth == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth = max(_depth - 1, 0)  # a child that was forked inside the block has begun anew
            if _depth == 0 and _was_enabled:
                gc.enable()


def _collect_again() -> None:
    """In a forked child, which has none of the threads that held it back."""
    global _depth
    if _depth and _was_enabled:
        gc.enable()
    _depth = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_collect_again)
