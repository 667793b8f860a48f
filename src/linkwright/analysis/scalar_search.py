"""A root and a peak of a function of one number: in an interval, without derivatives and without SciPy, which takes
longer to import than a linkage to analyse.
"""

from __future__ import annotations

import math
from collections.abc import Callable

Function = Callable[[float], float]
#: Rounds of a search at most.
ROUNDS = 100
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


def root(function: Function, low: float, high: float) -> float:
    """Where a continuous function that has different signs at both ends vanishes, to rounding.

    The Illinois method (Dowell and Jarratt, 1971), with a bisection where it did not halve the interval in three steps.

    >>> abs(root(lambda x: x**3 - 2.0, 0.0, 2.0) ** 3 - 2.0) < 1e-15
    True
    """
    a, b = float(low), float(high)
    fa, fb = function(a), function(b)
    width = abs(b - a)
    for k in range(ROUNDS):
        if fa == 0.0 or fb == 0.0 or abs(b - a) <= 2e-16 * max(abs(a), abs(b)):
            break
        x = b - fb * (b - a) / (fb - fa)
        if k % 3 == 2:
            x, width = (0.5 * (a + b), width) if abs(b - a) > 0.5 * width else (x, abs(b - a))
        if not min(a, b) < x < max(a, b):
            x = 0.5 * (a + b)
            if x in (a, b):
                break
        fx = function(x)
        if (fx > 0.0) == (fb > 0.0):
            fa *= 0.5  # the end that stays twice counts half
        else:
            a, fa = b, fb
        b, fb = x, fx
    return a if fa == 0.0 or (fb != 0.0 and abs(fa) < abs(fb)) else b


def peak(function: Function, low: float, high: float) -> float:
    """Where a function with one maximum in an interval has it, to the root of rounding: golden sections.

    >>> round(peak(lambda x: -((x - 0.3) ** 2), 0.0, 1.0), 7)
    0.3
    """
    a, b = float(low), float(high)
    x, y = b - _GOLDEN * (b - a), a + _GOLDEN * (b - a)
    fx, fy = function(x), function(y)
    while abs(b - a) > 1e-9 * max(1.0, abs(a), abs(b)):
        if fx >= fy:
            b, y, fy = y, x, fx
            x = b - _GOLDEN * (b - a)
            fx = function(x)
        else:
            a, x, fx = x, y, fy
            y = a + _GOLDEN * (b - a)
            fy = function(y)
    return 0.5 * (a + b)
