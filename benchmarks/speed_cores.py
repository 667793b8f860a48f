"""The rows of `speed.py` on several cores: how many times as fast as on one core, by the clock.

A row for more cores than the machine has is not measured. Other work on the machine makes these numbers smaller.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import linkwright as lw
from speed_table import Measurement, Row

MODELS = Path(__file__).resolve().parent.parent / "examples" / "models"
ROUNDS = 5
LIMITS = "memory, which all cores share, and what is done once for all of them"
#: Arithmetic in registers, which nothing but the cores themselves can slow down.
ARITHMETIC = "x = 0.5\nfor _ in range(10_000_000): x = x * 1.0000001"


def _seconds(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _batch() -> tuple[Callable[[int], None], float, str]:
    """Forward dynamics of 10⁶ states of the Panda, into an array that is there."""
    mech = lw.load(MODELS / "panda.dh.toml")
    q, v, tau = np.random.default_rng(0).standard_normal((3, 1_000_000, mech.nv))
    out = np.empty_like(v)

    def work(cores: int) -> None:
        lw.set_threads(cores)
        mech.forward_dynamics(q, v, tau, out=out)

    return work, len(q), "states/s"


def _rollouts() -> tuple[Callable[[int], None], float, str]:
    """10⁴ motions of the Panda by 100 steps of rk4; the last states are kept."""
    mech = lw.load(MODELS / "panda.dh.toml")
    q, v = 0.1 * np.random.default_rng(0).standard_normal((2, 10_000, mech.nv))

    def work(cores: int) -> None:
        lw.set_threads(cores)
        lw.rollout(mech, q, v, 1e-3, 100, samples=lw.Samples(every=100))

    return work, 100.0 * len(q), "steps/s"


def _studies() -> tuple[Callable[[int], None], float, str]:
    """10⁵ four-bars of 181 points, one number per case, with the start of processes."""
    times = np.linspace(0.0, 2.0 * np.pi, 181)
    lengths = {"crank": np.linspace(0.8, 1.1, 316), "coupler": np.linspace(2.8, 3.2, 316)}

    def work(cores: int) -> None:
        execution = lw.Execution(workers=cores)
        lw.sweep(MODELS / "four_bar.mks", lengths, ["reach = max(pen.x)"], times=times, execution=execution)

    return work, 316.0 * 316.0 * len(times), "points/s"


def measured(kind: Callable[[], tuple[Callable[[int], None], float, str]], cores: int) -> Measurement:
    """One core and several in turns; the shortest of each counts."""
    if (available := len(os.sched_getaffinity(0))) < cores:
        raise SystemExit(f"this machine has {available} cores")
    work, count, unit = kind()
    work(1), work(cores)
    rounds = [[_seconds(lambda n=n: work(n)) for n in (1, cores)] for _ in range(ROUNDS)]  # type: ignore[misc]
    one, several = (min(column) for column in zip(*rounds, strict=True))
    own = (
        f"{LIMITS}; this machine does {processors(cores):.1f} times as much plain arithmetic on {cores} cores as on one"
    )
    return Measurement(one / several, f"{count / several:.2g} {unit}", f"one core: {count / one:.2g} {unit}", own)


def processors(cores: int) -> float:
    """How many times as much plain arithmetic so many processes do as one: cores may share what computes."""

    def seconds(count: int) -> float:
        running = []
        begin = time.perf_counter()
        for _ in range(count):
            running.append(subprocess.Popen([sys.executable, "-S", "-c", ARITHMETIC]))
        for process in running:
            process.wait()
        return time.perf_counter() - begin

    return cores * min(seconds(1) for _ in range(3)) / min(seconds(cores) for _ in range(3))


ROWS = [
    Row(f"{name}, {cores} cores", 0.8 * cores, "× one core", partial(measured, kind, cores), at_least=True, cores=cores)
    for cores in (2, 16)
    for name, kind in (
        ("10⁶ forward dynamics, 7-joint arm", _batch),
        ("10⁴ rollouts, 7-joint arm", _rollouts),
        ("study of 10⁵ four-bars", _studies),
    )
]
