"""Motion laws of cams: how a follower goes from one height to another, over any scalar.

Each goes from y0 at x0 to y1 at x1 and is level outside; s = (x − x0)/(x1 − x0), held between 0 and 1, and
y = y0 + (y1 − y0) f(s) with f(0) = 0, f(1) = 1 and f(1 − s) = 1 − f(s). f' is 0 at both ends, f'' is too but for the
harmonic law, and f''' for the 4-5-6-7 polynomial (Norton, Cam Design and Manufacturing Handbook).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from linkwright.tape.block import floor, maximum, minimum, where


def quotient(x: Any, y: Any) -> Any:
    """x / y; by a number that is zero, as floating-point arithmetic has it: infinite or NaN."""
    try:
        return x / y
    except ZeroDivisionError:  # of Python's floats, and of numbers in a recording
        return x * math.inf


def _harmonic(s: Any) -> Any:
    return 0.5 * (1.0 - np.cos(math.pi * s))


def _cycloidal(s: Any) -> Any:
    return s - np.sin(2.0 * math.pi * s) / (2.0 * math.pi)


def _polynomial345(s: Any) -> Any:
    return s * s * s * (10.0 + s * (-15.0 + 6.0 * s))


def _polynomial4567(s: Any) -> Any:
    return s * s * s * s * (35.0 + s * (-84.0 + s * (70.0 - 20.0 * s)))


def _modified_sine(s: Any) -> Any:
    """f'' is a sine of period 1/2 in the first and last eighth, and of period 3/2 between."""
    quick, slow = np.sin(4.0 * math.pi * s), np.sin((4.0 * math.pi / 3.0) * s + math.pi / 3.0)
    early, middle, late = -0.25 * quick, 2.0 - 2.25 * slow, 4.0 - 0.25 * quick
    part = where(s < 0.125, early, where(s < 0.875, middle, late))
    return (math.pi * s + part) / (4.0 + math.pi)


def _modified_trapezoid(s: Any) -> Any:
    """f'' grows as a sine over an eighth, stays for a quarter, falls over an eighth; then the same below zero."""
    c, w = 8.0 * math.pi / (2.0 + math.pi), 4.0 * math.pi
    slopes = c / w, c / w + c / 4.0  # f' at 1/8 and 3/8
    heights = c / w * (0.125 - 1.0 / w), c / w * (0.125 - 1.0 / w) + slopes[0] / 4.0 + c / 32.0
    near = minimum(s, 1.0 - s)
    a, b = near - 0.125, near - 0.375
    grows = (c / w) * (near - np.sin(w * near) / w)
    stays = heights[0] + a * (slopes[0] + (0.5 * c) * a)
    falls = heights[1] + slopes[1] * b + (c / w**2) * (1.0 - np.cos(w * b))
    half = where(near < 0.125, grows, where(near < 0.375, stays, falls))
    return where(s < 0.5, half, 1.0 - half)


def _between(f: Callable[[Any], Any]) -> Callable[..., Any]:
    def law(x: Any, x0: Any, y0: Any, x1: Any, y1: Any) -> Any:
        return y0 + (y1 - y0) * f(minimum(maximum(quotient(x - x0, x1 - x0), 0.0), 1.0))

    return law


#: The laws by name, functions of (x, x0, y0, x1, y1).
MOTION_LAWS: dict[str, Callable[..., Any]] = {
    "harmonic": _between(_harmonic),
    "cycloidal": _between(_cycloidal),
    "rise345": _between(_polynomial345),
    "rise4567": _between(_polynomial4567),
    "modified_sine": _between(_modified_sine),
    "modified_trapezoid": _between(_modified_trapezoid),
}


def mod(x: Any, y: Any) -> Any:
    """x less the whole multiples of y that are in it: between 0 and y."""
    return x - y * floor(quotient(x, y))
