"""Whether numbers will fit into memory, asked before they are made: a request beyond it is an error that says so."""

from __future__ import annotations

import math
import os
from functools import cache

import numpy as np
from numpy.typing import NDArray

from linkwright.errors import MemoryLimitError

GIBIBYTE = 2**30


@cache
def available() -> int:
    """The bytes that a process can have at most: what is installed, or less where the process is limited."""
    limits = []
    if hasattr(os, "sysconf") and {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= set(os.sysconf_names):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    try:
        import resource

        soft = resource.getrlimit(resource.RLIMIT_AS)[0]
        if soft != resource.RLIM_INFINITY:
            limits.append(soft)
    except ImportError:  # no POSIX
        pass
    return min((x for x in limits if x > 0), default=2**47)


def check_memory(what: str, numbers: int, advice: str) -> None:
    """Refuse so many numbers (8 bytes each) if they cannot be held; `what` takes them, `advice` says what to do."""
    if 8 * numbers > available():
        raise too_large(what, 8 * numbers, advice)


def too_large(what: str, needed: int, advice: str) -> MemoryLimitError:
    """The error for something that needs so many bytes."""
    room = available()
    text = f"{what} takes {_size(needed)} of memory, and there are {_size(room)}; {advice}"
    return MemoryLimitError(text, needed=needed, available=room)


def empty(what: str, shape: tuple[int, ...], advice: str) -> NDArray[np.float64]:
    """An array whose numbers are not set yet; one that cannot be had is a MemoryLimitError."""
    count = math.prod(shape)
    check_memory(what, count, advice)
    try:
        return np.empty(shape)
    except MemoryError:
        raise too_large(what, 8 * count, advice) from None


def _size(count: int) -> str:
    return f"{count / GIBIBYTE:.3g} GiB"
