"""How programs are executed here: as machine code or in NumPy, in how many lanes, on how many threads."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from linkwright.base.checks import whole_number
from linkwright.errors import KernelError


@cache
def native() -> bool:
    """Whether programs run as machine code; without LLVM, or as LINKWRIGHT_BACKEND says, they run in NumPy."""
    wanted = os.environ.get("LINKWRIGHT_BACKEND", "llvm")
    if wanted not in ("llvm", "numpy"):
        raise KernelError(f"LINKWRIGHT_BACKEND is {wanted!r}; it can be 'llvm' or 'numpy'")
    if wanted == "numpy":
        return False
    try:
        import llvmlite.binding  # noqa: F401  (its presence is the answer)
    except ImportError:
        return False
    return True


def lanes() -> int:
    """How many states machine code computes at a time; 1 without machine code."""
    if not native():
        return 1
    from linkwright.kernels.llvm import compiler  # for weight: LLVM

    return compiler.lanes()


_threads: int | None = None


def threads() -> int:
    """How many threads large batches use at most: as `set_threads` or LINKWRIGHT_THREADS say, else one a core."""
    if _threads is not None:
        return _threads
    named = os.environ.get("LINKWRIGHT_THREADS", "")
    if named.isdecimal() and int(named) > 0:
        return int(named)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_threads(n: int | None) -> None:
    """Use at most n threads (a whole number from 1 on) for large batches; None goes back to the default of `threads`.

    Example:
        >>> lw.set_threads(2)
        >>> lw.threads()
        2

    Raises `ModelError` for anything else.
    """
    global _threads
    _threads = None if n is None else whole_number("the number of threads", n, 1)


def pool_size() -> int:
    """How many threads the pool has at most: with the caller's own, one a core."""
    return max(1, (os.cpu_count() or 1) - 1)


@cache
def pool() -> ThreadPoolExecutor:
    """The threads that large batches and teams share."""
    return ThreadPoolExecutor(max_workers=pool_size(), thread_name_prefix="linkwright")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.cache_clear)  # a child has none of its parent's threads
