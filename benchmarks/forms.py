"""Straight code or loops: where closed mechanisms change from one to the other.

    python benchmarks/forms.py [LINKS ...]

For ladders of four-bars: microseconds of a call and seconds to its first result, laid out and as loops over free
bodies. `UNROLL` in `dynamics/requests.py`, the links up to which calls are laid out, is held against this table.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

import linkwright as lw
from speed_table import interleaved

FUNCTIONS = {
    "forward_dynamics": ("q", "v", "tau"),
    "constraint_forces": ("q", "v", "tau"),
    "position_correction": ("q",),
    "velocity_projection": ("q", "v"),
}


def ladder(stages: int) -> lw.Mechanism:
    """Bars on pivots in a row, each joined to the next by a coupler: 2 · stages + 1 links, `stages` loops."""
    with lw.Builder(f"ladder_{stages}") as b:
        bars = []
        for k in range(stages + 1):
            bars.append(b.body(f"bar{k}", mass=1.0, com=(0.0, 0.5, 0.0), inertia=(0.1, 0.1, 0.1)))
            b.place(bars[k], (k * 1.0, 0, 0))
            b.joint("revolute", b.triad(b.ground, (k * 1.0, 0, 0)), b.triad(bars[k]), f"pivot{k}")
        for k in range(stages):
            height = 1.0 - 0.3 * (k % 2)
            coupler = b.body(f"coupler{k}", mass=0.5, com=(0.5, 0.0, 0.0), inertia=(0.05, 0.05, 0.05))
            b.place(coupler, (k * 1.0, height, 0))
            b.joint("revolute", b.triad(bars[k], (0, height, 0)), b.triad(coupler), f"near{k}")
            b.joint("revolute", b.triad(coupler, (1.0, 0, 0)), b.triad(bars[k + 1], (0, height, 0)), f"far{k}")
    return b.build()


def measure(stages: int, function: str) -> tuple[list[float], list[float]]:
    """Seconds of a call, and to the first result, laid out and as loops."""
    mech = ladder(stages)
    arrays = {"q": mech.neutral(), "v": np.zeros(mech.nv), "tau": np.linspace(-1.0, 1.0, mech.nv)}
    given = [arrays[name] for name in FUNCTIONS[function]]
    calls, first = [], []
    for form in ("unrolled", "rolled"):
        begin = time.perf_counter()
        program = mech.program(function, form=form)
        program(*given)
        first.append(time.perf_counter() - begin)
        calls.append(lambda program=program: program(*given))
    return interleaved(calls, times=5), first


def main() -> None:
    warnings.simplefilter("ignore")
    lw.set_threads(1)
    print("| links | function | laid out, µs | loops, µs | laid out, first, s | loops, first, s |")
    print("| --- | --- | --- | --- | --- | --- |")
    for links in map(int, sys.argv[1:] or ("15", "23", "31", "39", "47", "63")):
        for function in FUNCTIONS:
            seconds, first = measure(links // 2, function)
            cells = [*(f"{s * 1e6:.1f}" for s in seconds), *(f"{s:.2f}" for s in first)]
            print(f"| {links} | {function} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
