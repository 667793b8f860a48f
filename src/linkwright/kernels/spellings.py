"""How a back-end writes operations: a table with an entry for each primitive of the tape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from linkwright.errors import KernelError
from linkwright.tape import operations as O

T = TypeVar("T")

_COMMON = {O.SQRT: "sqrt", O.SIN: "sin", O.COS: "cos", O.TAN: "tan", O.ATAN2: "atan2", O.EXP: "exp", O.LOG: "log"}
_COMMON |= {O.SIGN: "sign", O.FLOOR: "floor"}
#: The functions of SymPy and CasADi that compute an operation of the tape, by their names there.
SYMPY_NAMES = _COMMON | {O.ABS: "Abs", O.MIN: "Min", O.MAX: "Max"}
CASADI_NAMES = _COMMON | {O.ABS: "fabs", O.MIN: "fmin", O.MAX: "fmax"}
CASADI_NAMES |= {O.LT: "lt", O.LE: "le", O.EQ: "eq", O.WHERE: "if_else"}


def spellings(backend: str, entries: Mapping[int, T]) -> tuple[T, ...]:
    """The entries in the order of `OPERATIONS`; an operation without one is an error that names it.

    Tables are made when their module is imported, so that a new operation cannot be forgotten in a back-end.
    """
    missing = [operation.name for op, operation in enumerate(O.OPERATIONS) if op not in entries]
    if missing:
        raise KernelError(f"the back-end {backend} has no way to write {', '.join(missing)}")
    return tuple(entries[op] for op in range(len(O.OPERATIONS)))
