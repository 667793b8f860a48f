"""How a back-end writes operations: a table with an entry for each primitive of the tape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from linkwright.errors import KernelError
from linkwright.tape import operations as O

T = TypeVar("T")


def spellings(backend: str, entries: Mapping[int, T]) -> tuple[T, ...]:
    """The entries in the order of `OPERATIONS`; an operation without one is an error that names it.

    Tables are made when their module is imported, so that a new operation cannot be forgotten in a back-end.
    """
    missing = [operation.name for op, operation in enumerate(O.OPERATIONS) if op not in entries]
    if missing:
        raise KernelError(f"the back-end {backend} has no way to write {', '.join(missing)}")
    return tuple(entries[op] for op in range(len(O.OPERATIONS)))
