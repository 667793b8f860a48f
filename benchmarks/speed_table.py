"""What the rows of `speed.py` are made of: a row, its measurement, and how to time calls on a busy machine."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Measurement:
    """What a row measured: `value` is compared with the row's `bound`; the texts are for the table."""

    value: float  # a ratio, seconds, or points a second, as the row's bound says
    ours: str
    peer: str = "–"
    limits: str = ""  # where the bound is not met: what limits it, from the profile


@dataclass(frozen=True)
class Row:
    """One line of the table: work, the bound that it is held to, and how it is measured, in a process of its own."""

    work: str
    bound: float
    unit: str  # of the bound, as in "× Pinocchio", "µs", "points/s"
    measure: Callable[[], Measurement]
    at_least: bool = False  # whether larger is better
    cores: int = 1

    def met(self, value: float) -> bool:
        """Whether a value keeps the bound."""
        return value >= self.bound if self.at_least else value <= self.bound


def seconds_of(call: Callable[[], Any], *, least: float = 0.02, times: int = 7) -> float:
    """Seconds of one call: the median of `times` measurements, each of so many calls that it takes `least` seconds."""
    return interleaved([call], least=least, times=times)[0]


def interleaved(calls: Sequence[Callable[[], Any]], *, least: float = 0.02, times: int = 7) -> list[float]:
    """Seconds of one call of each, measured in turns, so that a busy machine slows all of them alike.

    They are seconds of this process's work, on all its threads: other processes' do not count.
    """
    counts = []
    for call in calls:
        call()
        n, spent = 1, 0.0
        while (spent := _spent(call, n)) < least and n < 10**7:
            n = max(2 * n, int(1.2 * n * least / max(spent, 1e-9)))
        counts.append(n)
    rounds = [[_spent(call, n) / n for call, n in zip(calls, counts, strict=True)] for _ in range(times)]
    return [median(column) for column in zip(*rounds, strict=True)]


def _spent(call: Callable[[], Any], n: int) -> float:
    begin = time.process_time()
    for _ in range(n):
        call()
    return time.process_time() - begin


def python_functions(call: Callable[[], Any]) -> int:
    """How many Python functions run inside a call."""
    count = 0

    def profile(frame: Any, event: str, _: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count - 1  # the call's own


def shown_time(seconds: float) -> str:
    """Seconds with the unit that suits them."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1.0:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
