"""Large scratch memory of kernels: kept from call to call, lent to any kernel of like size, bounded, given back.

A new large piece costs more than the work on it: the system clears its pages one by one as they are touched. An idle
piece is kept as long as the kernel that used it last lives, and as long as all idle ones, the last used first, fit
into `KEPT`. Nothing is locked: each step is one operation on a list, so that another thread, a signal handler or a
finaliser may come in between.
"""

from __future__ import annotations

import weakref
from typing import Any

from linkwright.base.checks import check_memory, empty

LARGE = 2**17  # numbers from which scratch is lent from here
KEPT = 2**28  # numbers in all idle pieces together
_ADVICE = "take a method that needs less, such as articulated-body, or a smaller mechanism"
_LOOSE = 2  # a piece serves calls that need at least this part of it


class Scratch:
    """Room for `size` numbers on a cache line's edge."""

    __slots__ = ("_memory", "address", "size", "user")

    def __init__(self, size: int, user: str = "a kernel") -> None:
        self.size = size
        self._memory = empty(_call(user), (size + 8,), _ADVICE)
        self.address = (self._memory.ctypes.data + 63) & ~63
        self.user: weakref.ref[Any] | None = None


def check(size: int, user: str) -> None:
    """Refuse a kernel whose scratch cannot be held: to be asked before it is compiled, which may take as much."""
    check_memory(_call(user), size + 8, _ADVICE)


def _call(user: str) -> str:
    return f"one call of {user}"


_idle: list[Scratch] = []  # the one used last stands last


def take(size: int, user: str = "a kernel") -> Scratch:
    """The smallest idle piece that fits, or a new one; for the caller alone until it is given back.

    The name of the user stands in the message where there is not enough memory.
    """
    for piece in sorted(_idle, key=lambda p: p.size):
        if size <= piece.size <= _LOOSE * size and _drop(piece):
            return piece
    return Scratch(size, user)


def give(piece: Scratch, user: object) -> None:
    """Keep a piece for the next call, while its user lives and there is room."""
    piece.user = weakref.ref(user, lambda _: _drop(piece))
    _idle.append(piece)
    total = 0
    for idle in _idle[::-1]:
        total += idle.size
        if total > KEPT:
            _drop(idle)


def _drop(piece: Scratch) -> bool:
    """Take a piece out of the idle ones; whether it was there still."""
    try:
        _idle.remove(piece)
    except ValueError:
        return False
    piece.user = None  # which refers to the piece in turn
    return True
