"""Reductions over time, value after value, over any scalar: for a series that is never there as a whole.

`output_functions.REDUCTIONS` reduce series that are arrays. A march that is one kernel has no series: it carries these
numbers from point to point instead. Both give the same, to the last bits of a sum; a test compares them. A reduction
that needs the whole series has no row here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.outputs.output_functions import Reduced, reductions
from linkwright.outputs.output_language import Output
from linkwright.tape.block import maximum, minimum, where

Carried = tuple[Any, ...]


@dataclass(frozen=True)
class Running:
    """One number of all time points, as numbers that are carried from point to point.

    - `size`: how many are carried.
    - `start`: of the first value and its time.
    - `go_on`: of those carried, the next value and its time.
    - `end`: of those carried (size, n) and the number of points, the reduction (n,).
    """

    size: int
    start: Callable[[Any, Any], Carried]
    go_on: Callable[[Carried, Any, Any], Carried]
    end: Callable[[Floats, int], Floats]


def _extreme(better: Callable[[Any, Any], Any]) -> Running:
    def go_on(carried: Carried, x: Any, t: Any) -> Carried:
        chosen = better(x, carried[0])
        return where(chosen, x, carried[0]), where(chosen, t, carried[1])

    return Running(2, lambda x, t: (x, t), go_on, lambda carried, count: np.asarray(carried[1]))


def _single(go_on: Callable[[Any, Any], Any], end: Callable[[Floats, int], Floats]) -> Running:
    return Running(1, lambda x, t: (x,), lambda carried, x, t: (go_on(carried[0], x),), end)


def _trapezoids(carried: Carried, x: Any, t: Any) -> Carried:
    total, last, when = carried
    return total + 0.5 * (x + last) * (t - when), x, t


def _first(carried: Floats, count: int) -> Floats:
    return np.asarray(carried[0])


RUNNING: dict[str, Running] = {
    "max": _single(maximum, _first),
    "min": _single(minimum, _first),
    "mean": _single(lambda total, x: total + x, lambda carried, count: carried[0] / count),
    "rms": Running(
        1,
        lambda x, t: (x * x,),
        lambda carried, x, t: (carried[0] + x * x,),
        lambda carried, count: np.sqrt(carried[0] / count),
    ),
    "final": _single(lambda before, x: x, _first),
    "initial": _single(lambda before, x: before, _first),
    "range": Running(
        2,
        lambda x, t: (x, x),
        lambda carried, x, t: (maximum(carried[0], x), minimum(carried[1], x)),
        lambda carried, count: carried[0] - carried[1],
    ),
    "argmax": _extreme(lambda x, best: x > best),
    "argmin": _extreme(lambda x, best: x < best),
    "integral": Running(3, lambda x, t: (0.0 * x, x, t), _trapezoids, _first),
}


def running_parts(outputs: tuple[Output, ...]) -> list[Reduced] | None:
    """The reductions of outputs, each once; None where an output is a series, reduces what is reduced already, or needs
    the whole series.
    """
    parts = list(dict.fromkeys(part for output in outputs for part in reductions(output.expression)))
    if any(output.series for output in outputs):
        return None
    if any(reductions(part.inner) or part.kind not in RUNNING for part in parts):
        return None
    return parts
