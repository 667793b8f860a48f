"""Limits of joints, as robot files have them."""

from __future__ import annotations

import math
from warnings import warn

from linkwright.errors import LinkwrightWarning


def ranged(name: str, lower: float, upper: float, file: str) -> tuple[float, float]:
    """Lower and upper limit; with the lower above the upper there is none, as Bullet and ODE have it: a warning."""
    if lower <= upper:
        return lower, upper
    warn(
        f"{file}: joint {name!r} has the lower limit {lower:g} above its upper limit {upper:g}, which is taken as no "
        "limit; swap them if they are meant",
        LinkwrightWarning,
        stacklevel=6,
    )
    return -math.inf, math.inf
