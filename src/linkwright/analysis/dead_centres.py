"""Dead centres of a planar mechanism: where a coordinate stands still while the mechanism moves, by root finding on the
motion; and the extremes of what is measured on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from linkwright.analysis.linkage_motion import Coordinate, LinkageMotion
from linkwright.analysis.scalar_search import peak, root
from linkwright.base.arrays import Floats

#: A rate below this part of the largest is none.
STILL = 1e-9
#: By so much a maximum between samples must be larger than at the samples.
BETTER = 1e-12


@dataclass(frozen=True)
class DeadCentre:
    """A position in which a coordinate stands still though the mechanism moves.

    - `kind`: "limit" of an output; "toggle" of the input, where no force at the input moves the mechanism.
    - `coordinate`: which one stands still.
    - `time` (s); `input` and `output` (rad or m): the input and the coordinate there.
    - `end`: "maximum" or "minimum" of the coordinate.
    """

    kind: Literal["limit", "toggle"]
    coordinate: str
    time: float
    input: float
    output: float
    end: Literal["maximum", "minimum"]


def stands_still(motion: LinkageMotion, x: Coordinate, rates: Floats) -> bool:
    """Whether a coordinate with these rates (T,) stands still over the whole motion, to rounding."""
    largest = np.max(np.abs(rates[np.isfinite(rates)]), initial=0.0)
    return bool(largest <= STILL * (1.0 if x.angular else motion.equations.size) / motion.equations.size)


def dead_centres(motion: LinkageMotion, x: Coordinate) -> list[DeadCentre]:
    """Where the rate of a coordinate changes its sign, and where it is zero at either end of the samples."""
    rates = motion.rate(x, motion.samples.q, motion.motion)
    finite = np.flatnonzero(np.isfinite(rates))
    if stands_still(motion, x, rates):
        return []
    largest = np.max(np.abs(rates[finite]))
    moving = [int(k) for k in finite if abs(rates[k]) > STILL * largest]
    rising = [(rates[k] > 0.0) == motion.forwards(k, b) for k, b in pairwise([*moving, len(rates) - 1])]
    centres = [
        _centre(motion, x, _root(motion, x, a, b), rising=up)
        for (a, b), up in zip(pairwise(moving), rising, strict=False)
        if rates[a] * rates[b] < 0.0
    ]
    last = len(rates) - 1
    if moving[0] > 0 and np.isfinite(rates[0]):
        centres.insert(0, _centre(motion, x, 0.0, rising=not rising[0]))
    if last > moving[-1] and np.isfinite(rates[last]):
        centres.append(_centre(motion, x, float(last), rising=rising[-1]))
    return centres


def _root(motion: LinkageMotion, x: Coordinate, low: int, high: int) -> float:
    """Where a rate vanishes between two samples."""

    def rate(s: float) -> float:
        q, twists = motion.between(s, low)
        return float(motion.rate(x, q, twists)[0])

    return root(rate, low, high)


def _centre(motion: LinkageMotion, x: Coordinate, s: float, *, rising: bool) -> DeadCentre:
    source = motion.input
    q, _ = motion.between(s, min(int(s), motion.samples_count - 1))
    output, driving = (float(motion.value(y, q, motion.at(motion.series(y), s))[0]) for y in (x, source))
    kind: Literal["limit", "toggle"] = "toggle" if x == source else "limit"
    return DeadCentre(kind, x.name, motion.time_at(s, q), driving, output, "maximum" if rising else "minimum")


def extreme(motion: LinkageMotion, values: Floats, of_state: Callable[[Floats], float]) -> tuple[float, float] | None:
    """The largest of `values` (n,), on the way between the samples too, and where it is (a number of samples).

    `of_state` gives the value at a state (1, nb, 7). None if there is no value.
    """
    if not np.isfinite(values).any():
        return None
    best = int(np.nanargmax(values))
    low, high = max(best - 1, 0), min(best + 1, len(values) - 1)
    where, most = float(best), float(values[best])
    if low < high and np.isfinite(values[[low, high]]).all():
        s = peak(lambda s: of_state(motion.state_at(s)), low, high)
        larger = of_state(motion.state_at(s))
        if larger > most + BETTER:
            where, most = s, larger
    return most, where
