"""The primitive operations of the tape: one table with their names, values and partial derivatives; piecewise
cubics; how a back-end spells them.

Every other room (recorder, derivatives, kernels, exporters) reads this table; none keeps a second list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from linkwright.base.locks import cached_property
from linkwright.errors import KernelError


@dataclass(frozen=True)
class Table:
    """A piecewise cubic: Σ c[k]·(x − breaks[i])^k, k = 0..3, on [breaks[i], breaks[i+1]); the end pieces go on outside.

    - `breaks`: n + 1 numbers that increase.
    - `coefficients`: n times c[0], …, c[3].

    Call it with a number, an array or recorded scalars.

    >>> table = lw.Table.spline([0.0, 1.0, 2.0], [0.0, 1.0, 0.0])
    >>> float(table(1.0)), float(table.derivative()(1.0)), len(table.points())
    (1.0, 0.0, 3)
    """

    breaks: tuple[float, ...]
    coefficients: tuple[tuple[float, float, float, float], ...]

    @classmethod
    def spline(cls, x: Sequence[float], y: Sequence[float]) -> Table:
        """The natural cubic spline through points; a straight line through two points.

        `x` (n,) increases, `y` (n,) are the values there. Raises ValueError for fewer than two points, for numbers that
        are not finite and for x that do not increase.
        """
        xs, ys = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        if xs.ndim != 1 or xs.shape != ys.shape or len(xs) < 2:
            raise ValueError("a table needs at least two points, as many x as y")
        if not (np.all(np.isfinite(xs)) and np.all(np.isfinite(ys))):
            raise ValueError("a table's points must be finite")
        h = np.diff(xs)
        if np.any(h <= 0):
            raise ValueError("a table's x must increase")
        slope = np.diff(ys) / h
        n = len(xs)
        second = np.zeros(n)
        if n > 2:
            second[1:-1] = _tridiagonal(2 * (h[:-1] + h[1:]), h[1:-1], 6 * np.diff(slope))
        c1 = slope - h * (2 * second[:-1] + second[1:]) / 6
        pieces = np.stack([ys[:-1], c1, second[:-1] / 2, np.diff(second) / (6 * h)], axis=1)
        return cls(tuple(xs.tolist()), tuple(map(tuple, pieces.tolist())))

    def points(self) -> list[tuple[float, float]]:
        """The points (x, y) at the breaks: the natural spline through them is this table, if it is one at all.

        The last y is not kept anywhere: of the numbers that rounding leaves in doubt, one that gives this table again.
        """
        xs, ys = list(self.breaks), [c[0] for c in self.coefficients]
        y = low = high = float(self(xs[-1]))
        near = [y]
        for _ in range(4):
            low, high = float(np.nextafter(low, -np.inf)), float(np.nextafter(high, np.inf))
            near += [low, high]
        exact = (last for last in near if Table.spline(xs, [*ys, last]) == self)
        return [*zip(xs, ys, strict=False), (xs[-1], next(exact, y))]

    @cached_property
    def is_zero(self) -> bool:
        """Whether the value is 0 everywhere."""
        return not np.any(self.coefficients)

    @cached_property
    def _slope(self) -> Table:
        pieces = tuple((c[1], 2 * c[2], 3 * c[3], 0.0) for c in self.coefficients)
        return Table(self.breaks, pieces)

    def derivative(self) -> Table:
        """The table of the slope."""
        return self._slope

    def __call__(self, x: Any) -> Any:
        """The value at x: a number, an array, or recorded scalars."""
        if hasattr(x, "table") or (isinstance(x, np.ndarray) and x.dtype == object):
            return np.frompyfunc(lambda s: s.table(self) if hasattr(s, "table") else self(s), 1, 1)(x)
        x = np.asarray(x, dtype=float)
        c = np.asarray(self.coefficients)
        i = np.clip(np.searchsorted(self.breaks, x, side="right") - 1, 0, len(c) - 1)
        d = x - np.asarray(self.breaks)[i]
        return ((c[i, 3] * d + c[i, 2]) * d + c[i, 1]) * d + c[i, 0]


def _tridiagonal(middle: Any, beside: Any, right: Any) -> Any:
    """The solution of a symmetric, diagonally dominant tridiagonal system, by elimination."""
    d, y, e = middle.tolist(), right.tolist(), beside.tolist()
    for k in range(1, len(d)):
        factor = e[k - 1] / d[k - 1]
        d[k] -= factor * e[k - 1]
        y[k] -= factor * y[k - 1]
    y[-1] /= d[-1]
    for k in range(len(d) - 2, -1, -1):
        y[k] = (y[k] - e[k] * y[k + 1]) / d[k]
    return np.array(y)


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


Slopes = Callable[[tuple[Any, ...], Any], tuple[Any, ...]]


def _flat(x: tuple[Any, ...], y: Any) -> tuple[float, ...]:
    """The slopes of an operation that is locally constant."""
    return (0.0,) * len(x)


@dataclass(frozen=True)
class Operation:
    """One primitive y = op(x): its name, number of operands and value over NumPy arrays; ∂y/∂x of recorded scalars.

    At the corner of abs the slope is 0. Of where, min and max only one operand counts at a time: derivatives choose
    between the operands' (`choice`) and ask for no slopes, because 0 times the slope of the operand that does not count
    may be 0·∞.
    """

    name: str
    arity: int
    value: Callable[..., Any]
    slopes: Slopes = _flat
    commutes: bool = False


def _where(condition: Any, a: Any, b: Any) -> Any:
    return np.where(np.asarray(condition) != 0, a, b)


def _truth(comparison: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: np.asarray(comparison(a, b), dtype=np.float64)


def _no_table(x: Any) -> Any:
    raise TypeError("a table is evaluated with its data, by its block")


def _quotient_slopes(x: tuple[Any, ...], y: Any) -> tuple[Any, ...]:
    r = 1.0 / x[1]
    return r, -(y * r)


def _angle_slopes(x: tuple[Any, ...], y: Any) -> tuple[Any, ...]:
    r = 1.0 / (x[0] * x[0] + x[1] * x[1])
    return x[1] * r, -(x[0] * r)


def _power_slopes(x: tuple[Any, ...], y: Any) -> tuple[Any, ...]:
    base, exponent = x
    slope = exponent * base ** (exponent - 1.0)
    if exponent.value is not None:
        return slope, 0.0
    # x**0 is 1 at every x, also at 0, where the rule says 0·∞. A base of 0 or less has powers at whole
    # exponents only: they are no function of the exponent to differentiate, and have slope 0 in it.
    slope = exponent.equals(0.0).where(0.0, slope)
    return slope, base.less_equal(0.0).where(0.0, y * base.log())


OPERATIONS: tuple[Operation, ...] = (
    Operation("neg", 1, np.negative, lambda x, y: (-1.0,)),
    Operation("add", 2, np.add, lambda x, y: (1.0, 1.0), commutes=True),
    Operation("sub", 2, np.subtract, lambda x, y: (1.0, -1.0)),
    Operation("mul", 2, np.multiply, lambda x, y: (x[1], x[0]), commutes=True),
    Operation("div", 2, np.divide, _quotient_slopes),
    Operation("sqrt", 1, np.sqrt, lambda x, y: (0.5 / y,)),
    Operation("sin", 1, np.sin, lambda x, y: (x[0].cos(),)),
    Operation("cos", 1, np.cos, lambda x, y: (-(x[0].sin()),)),
    Operation("tan", 1, np.tan, lambda x, y: (1.0 + y * y,)),
    Operation("atan2", 2, np.arctan2, _angle_slopes),
    Operation("exp", 1, np.exp, lambda x, y: (y,)),
    Operation("log", 1, np.log, lambda x, y: (1.0 / x[0],)),
    Operation("pow", 2, np.power, _power_slopes),
    Operation("abs", 1, np.abs, lambda x, y: (x[0].sign(),)),
    Operation("sign", 1, np.sign),
    Operation("min", 2, np.minimum, commutes=True),
    Operation("max", 2, np.maximum, commutes=True),
    Operation("where", 3, _where),
    Operation("floor", 1, np.floor),
    Operation("table", 1, _no_table, lambda x, y: (x[0].table(y.table_data().derivative()),)),
    Operation("lt", 2, _truth(np.less)),
    Operation("le", 2, _truth(np.less_equal)),
    Operation("eq", 2, _truth(np.equal), commutes=True),
)


Row = tuple[int, int, int, int]  # an operation of a block: its number, and those of up to three operands


ARITIES = tuple(operation.arity for operation in OPERATIONS)


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


T = TypeVar("T")

_COMMON = {SQRT: "sqrt", SIN: "sin", COS: "cos", TAN: "tan", ATAN2: "atan2", EXP: "exp", LOG: "log"}
_COMMON |= {SIGN: "sign", FLOOR: "floor"}
#: The functions of SymPy and CasADi that compute an operation of the tape, by their names there.
SYMPY_NAMES = _COMMON | {ABS: "Abs", MIN: "Min", MAX: "Max"}
CASADI_NAMES = _COMMON | {ABS: "fabs", MIN: "fmin", MAX: "fmax"}
CASADI_NAMES |= {LT: "lt", LE: "le", EQ: "eq", WHERE: "if_else"}


def spellings(backend: str, entries: Mapping[int, T]) -> tuple[T, ...]:
    """The entries in the order of `OPERATIONS`; an operation without one is an error that names it.

    Tables are made when their module is imported, so that a new operation cannot be forgotten in a back-end.
    """
    missing = [operation.name for op, operation in enumerate(OPERATIONS) if op not in entries]
    if missing:
        raise KernelError(f"the back-end {backend} has no way to write {', '.join(missing)}")
    return tuple(entries[op] for op in range(len(OPERATIONS)))
