"""Straight code or loops: where mechanisms change from one to the other.

    python benchmarks/forms.py [--trees] [LINKS ...]

For ladders of four-bars: microseconds of a call and seconds to its first result, laid out and as loops over free
bodies; with `--trees` for chains and for random trees of all joint kinds, as loops over links. `UNROLL` in
`dynamics/requests.py` and `unrolls` in `dynamics/functions.py`, the links up to which calls are laid out, are held
against these tables.
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
TREE_FUNCTIONS = {
    "forward_dynamics": ("q", "v", "tau"),
    "inverse_dynamics": ("q", "v", "tau"),
    "gravity_forces": ("q",),
    "mass_matrix": ("q",),
    "kinetic_energy": ("q", "v"),
    "potential_energy": ("q",),
    "center_of_mass": ("q",),
    "momentum": ("q", "v"),
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


def measure(mech: lw.Mechanism, function: str, names: tuple[str, ...]) -> tuple[list[float], list[float]]:
    """Seconds of a call, and to the first result, laid out and as loops."""
    arrays = {"q": mech.neutral(), "v": np.zeros(mech.nv), "tau": np.linspace(-1.0, 1.0, mech.nv)}
    state = [arrays[name] for name in names]
    calls, first = [], []
    for form in ("unrolled", "rolled"):
        begin = time.perf_counter()
        program = mech.program(function, form=form)
        program(*state)
        first.append(time.perf_counter() - begin)
        calls.append(lambda program=program: program(*state))
    return interleaved(calls, times=5), first


def main() -> None:
    warnings.simplefilter("ignore")
    lw.set_threads(1)
    trees = "--trees" in sys.argv
    sizes = [int(x) for x in sys.argv[1:] if x != "--trees"] or [15, 23, 31, 39, 47, 63]
    make = {"chain": lw.chain, "tree": lambda n: lw.random_tree(n, seed=1)} if trees else {"ladder": _ladder_of}
    print("| mechanism | links | function | laid out, µs | loops, µs | laid out, first, s | loops, first, s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for kind, generate in make.items():
        for links in sizes:
            for function, names in (TREE_FUNCTIONS if trees else FUNCTIONS).items():
                seconds, first = measure(generate(links), function, names)
                cells = [*(f"{s * 1e6:.1f}" for s in seconds), *(f"{s:.2f}" for s in first)]
                print(f"| {kind} | {links} | {function} | " + " | ".join(cells) + " |", flush=True)


def _ladder_of(links: int) -> lw.Mechanism:
    return ladder(links // 2)


if __name__ == "__main__":
    main()
