"""Numbers that may be expressions of parameters: taken apart into values and bindings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.errors import ModelError
from linkwright.model.expression import Expression, simplified

Array = Any  # of floats, or of floats and expressions


def is_bound(entries: Any) -> bool:
    """Whether any of the numbers is an expression."""
    array = np.asarray(entries)
    return array.dtype == object and any(isinstance(x, Expression) for x in array.reshape(-1))


def as_numbers(value: Any, shape: tuple[int, ...], what: str) -> Array:
    """Numbers and expressions as an array of this shape; `what` names them in errors."""
    try:
        array = np.asarray(value)
        bad = array.dtype == object and not all(_is_number(x) for x in array.reshape(-1))
    except ValueError:  # rows of different lengths
        array, bad = np.empty(0), True
    if bad or array.dtype.kind not in "fiuO":
        raise ModelError(f"{what} is {value!r}; give numbers or expressions of parameters", element=what)
    if array.shape != shape:
        wanted = "one number" if shape == () else f"{'×'.join(map(str, shape))} numbers"
        shown = "one" if array.shape == () else "×".join(map(str, array.shape))
        raise ModelError(f"{what} needs {wanted}, {shown} given", element=what)
    return array if array.dtype == object else array.astype(np.float64)


def plain_numbers(value: Any, shape: tuple[int, ...], what: str) -> Floats:
    """As `as_numbers`, where bindings have no place."""
    array = as_numbers(value, shape, what)
    if is_bound(array):
        raise ModelError(f"{what} cannot depend on a parameter; give plain numbers", element=what)
    return np.asarray(array, dtype=np.float64)


def _is_number(x: Any) -> bool:
    return isinstance(x, (Expression, int, float, np.integer, np.floating)) and not isinstance(x, bool)


def split_bindings(
    name: str, array: Array, parameters: Mapping[str, float]
) -> tuple[Floats, dict[tuple[str, int], Expression]]:
    """The values of an array and, under its name, the expressions that they come from."""
    if array.dtype != object:
        return np.asarray(array, dtype=np.float64), {}
    flat = array.reshape(-1)
    values, bindings = np.empty(len(flat)), {}
    for k, entry in enumerate(flat):
        if isinstance(entry, Expression):
            entry = simplified(entry)
            if entry.names():
                bindings[name, k] = entry
            entry = entry.evaluate(parameters)
        values[k] = float(entry)
    return values.reshape(array.shape), bindings
