"""When programs are recorded and compiled: who measures the time of a computation can leave that out.

A listener is called with True when preparation begins and with False when it ends, once for nested parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from linkwright.base.locks import Lock

_lock = Lock(reentrant=False)
_depth = 0
_listener: Callable[[bool], None] | None = None


def listen(listener: Callable[[bool], None] | None) -> None:
    """Have a function called at the beginning and the end of preparation; None for no function."""
    global _listener
    _listener = listener


@contextmanager
def preparing() -> Iterator[None]:
    """Code that runs once for a program, however often the program is then used."""
    _count(1)
    try:
        yield
    finally:
        _count(-1)


def _count(step: int) -> None:
    global _depth
    with _lock:
        _depth += step
        edge = _depth == (1 if step > 0 else 0)
        if edge and _listener is not None:
            _listener(step > 0)
