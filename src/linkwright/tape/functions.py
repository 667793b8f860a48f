"""Element-wise functions that NumPy cannot dispatch on recorded scalars: choices, comparisons of arrays, tables.

Two scalars are compared by <, two arrays by `less`: for arrays of objects NumPy turns the answers into truths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linkwright.tape.scalar import Scalar, is_recorded
from linkwright.tape.table import Table


class Symbol:
    """A scalar that is written down and not computed; the functions here ask it for `written(name, values)`."""

    def written(self, name: str, values: tuple[Any, ...]) -> Any:
        raise NotImplementedError(name)


def _elementwise(
    recorded: Callable[..., Any], plain: Callable[..., Any], name: str, arguments: int, doc: str
) -> Callable[..., Any]:
    over_objects = np.frompyfunc(recorded, arguments, 1)

    def function(*values: Any) -> Any:
        if is_recorded(*values) or any(isinstance(v, Symbol) for v in values):
            return over_objects(*values)
        return plain(*values)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc}, element by element, over floats or recorded scalars."
    return function


def _recorder_of(*values: Any) -> Any:
    return next((v.recorder for v in values if isinstance(v, Scalar)), None)


def _method(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    def apply(*values: Any) -> Any:
        recorder = _recorder_of(*values)
        if recorder is None:
            symbol = next((v for v in values if isinstance(v, Symbol)), None)
            return plain(*values) if symbol is None else symbol.written(name, values)
        first, *others = (recorder.lift(v) for v in values)
        return getattr(first, name)(*others)

    return apply


def _plain_where(condition: Any, yes: Any, no: Any) -> Any:
    return np.where(np.asarray(condition, dtype=bool), yes, no)


where = _elementwise(_method("where", _plain_where), _plain_where, "where", 3, "yes where the condition holds, else no")
minimum = _elementwise(_method("minimum", np.minimum), np.minimum, "minimum", 2, "The smaller of a and b")
maximum = _elementwise(_method("maximum", np.maximum), np.maximum, "maximum", 2, "The larger of a and b")
sign = _elementwise(_method("sign", np.sign), np.sign, "sign", 1, "−1, 0 or 1")
arctan2 = _elementwise(_method("arctan2", np.arctan2), np.arctan2, "arctan2", 2, "The angle of the point (x, y)")
floor = _elementwise(_method("floor", np.floor), np.floor, "floor", 1, "The largest whole number not above x")
absolute = _elementwise(_method("fabs", np.abs), np.abs, "absolute", 1, "|x|")
less = _elementwise(_method("less", np.less), np.less, "less", 2, "Whether a < b")
less_equal = _elementwise(_method("less_equal", np.less_equal), np.less_equal, "less_equal", 2, "Whether a ≤ b")
equal = _elementwise(_method("equals", np.equal), np.equal, "equal", 2, "Whether a = b")


def greater(a: Any, b: Any) -> Any:
    """1 where a > b, else 0."""
    return less(b, a)


def greater_equal(a: Any, b: Any) -> Any:
    """1 where a ≥ b, else 0."""
    return less_equal(b, a)


def table(x: Any, spline: Table) -> Any:
    """The piecewise cubic `spline` at x, over floats or recorded scalars."""
    return spline(x)
