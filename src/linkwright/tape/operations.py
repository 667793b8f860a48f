"""The primitive operations of the tape: one table with their names, values and partial derivatives.

Every other room (recorder, derivatives, kernels, exporters) reads this table; none keeps a second list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

(
    NEG,
    ADD,
    SUB,
    MUL,
    DIV,
    SQRT,
    SIN,
    COS,
    TAN,
    ATAN2,
    EXP,
    LOG,
    POW,
    ABS,
    SIGN,
    MIN,
    MAX,
    WHERE,
    FLOOR,
    TABLE,
    LT,
    LE,
    EQ,
) = range(23)


@dataclass(frozen=True)
class Operation:
    """One primitive: its name, number of operands and value over NumPy arrays."""

    name: str
    arity: int
    value: Callable[..., Any]
    commutes: bool = False


def _where(condition: Any, a: Any, b: Any) -> Any:
    return np.where(np.asarray(condition) != 0, a, b)


def _truth(comparison: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: np.asarray(comparison(a, b), dtype=np.float64)


def _no_table(x: Any) -> Any:
    raise TypeError("a table is evaluated with its data, by its block")


OPERATIONS: tuple[Operation, ...] = (
    Operation("neg", 1, np.negative),
    Operation("add", 2, np.add, True),
    Operation("sub", 2, np.subtract),
    Operation("mul", 2, np.multiply, True),
    Operation("div", 2, np.divide),
    Operation("sqrt", 1, np.sqrt),
    Operation("sin", 1, np.sin),
    Operation("cos", 1, np.cos),
    Operation("tan", 1, np.tan),
    Operation("atan2", 2, np.arctan2),
    Operation("exp", 1, np.exp),
    Operation("log", 1, np.log),
    Operation("pow", 2, np.power),
    Operation("abs", 1, np.abs),
    Operation("sign", 1, np.sign),
    Operation("min", 2, np.minimum, True),
    Operation("max", 2, np.maximum, True),
    Operation("where", 3, _where),
    Operation("floor", 1, np.floor),
    Operation("table", 1, _no_table),
    Operation("lt", 2, _truth(np.less)),
    Operation("le", 2, _truth(np.less_equal)),
    Operation("eq", 2, _truth(np.equal), True),
)


Row = tuple[int, int, int, int]  # an operation of a block: its number, and those of up to three operands


def operands_of(row: Row) -> tuple[int, ...]:
    """The values that an operation of a block reads."""
    return row[1 : 1 + OPERATIONS[row[0]].arity]


def partials(op: int, x: tuple[Any, ...], y: Any) -> tuple[Any, ...]:
    """∂y/∂x of one operation y = op(x), in recorded scalars (0.0 where the operation is locally constant).

    At the corners of min and max the value of one side is given, at that of abs 0. Of where, min and max only
    one operand counts at a time: derivatives choose between the operands' (`choice`) and do not come here,
    because 0 times the slope of the operand that does not count may be 0·∞.
    """
    if op == NEG:
        return (-1.0,)
    if op == ADD:
        return (1.0, 1.0)
    if op == SUB:
        return (1.0, -1.0)
    if op == MUL:
        return (x[1], x[0])
    if op == DIV:
        r = 1.0 / x[1]
        return (r, -(y * r))
    if op == SQRT:
        return (0.5 / y,)
    if op == SIN:
        return (x[0].cos(),)
    if op == COS:
        return (-(x[0].sin()),)
    if op == TAN:
        return (1.0 + y * y,)
    if op == ATAN2:
        r = 1.0 / (x[0] * x[0] + x[1] * x[1])
        return (x[1] * r, -(x[0] * r))
    if op == EXP:
        return (y,)
    if op == LOG:
        return (1.0 / x[0],)
    if op == POW:
        base, exponent = x
        slope = exponent * base ** (exponent - 1.0)
        if exponent.value is not None:
            return (slope, 0.0)
        # x**0 is 1 at every x, also at 0, where the rule says 0·∞. A base of 0 or less has powers at whole
        # exponents only: they are no function of the exponent to differentiate, and have slope 0 in it.
        slope = exponent.equals(0.0).where(0.0, slope)
        return (slope, base.less_equal(0.0).where(0.0, y * base.log()))
    if op == ABS:
        return (x[0].sign(),)
    if op == TABLE:
        return (x[0].table(y.table_data().derivative()),)
    return (0.0,) * OPERATIONS[op].arity


def choice(op: int, x: tuple[Any, ...]) -> tuple[Any, int, int] | None:
    """For where, min and max: (condition, operand taken where it holds, operand taken elsewhere); else None."""
    if op == WHERE:
        return x[0], 1, 2
    if op == MIN:
        return x[0].less(x[1]), 0, 1
    if op == MAX:
        return x[1].less(x[0]), 0, 1
    return None


def differentiable(op: int, a: int, b: int, c: int) -> tuple[int, ...]:
    """Which of an operation's operands, as a block numbers them, its value changes with smoothly."""
    if op in _STEPS:
        return ()
    if op == WHERE:
        return (b, c)
    return (a,) if OPERATIONS[op].arity == 1 else (a, b)


_STEPS = frozenset((SIGN, FLOOR, LT, LE, EQ))
