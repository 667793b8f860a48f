"""Parameter studies: cases side by side against a loop over `lw.analyse`, in one run, in seconds of one core's work.

    python benchmarks/sweep.py [--cases 10000] [--sampled 60]

The slider-crank with three parameters at 81 time points, and a simulated chain of five rods. Some cases are checked
against the loop, to 1e-9.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import linkwright as lw
from linkwright.kernels.variant import set_threads
from linkwright.sweeps.case_engine import Engine
from linkwright.sweeps.task import make_task

MODELS = Path(__file__).resolve().parents[1] / "examples" / "models"


def slider_crank(cases: int, sampled: int) -> None:
    """10⁴ cases of three parameters, 81 points each."""
    names = ("crank_length", "rod_length", "stroke")
    outputs = ["travel = range(block.x)", "fastest = max(block.vx)", "swing = range(rev1.angle)"]
    task = make_task(MODELS / "slider_crank_parameters.mks", names, outputs)
    values = np.random.default_rng(1).uniform([5.0, 9.5, 2.0], [7.0, 11.0, 3.0], (cases, 3))
    engine = Engine(task)
    engine.run(values[:8])  # compiles
    since = time.process_time()
    found = engine.run(values)
    each = (time.process_time() - since) / cases
    good = sum(not reason for reason in found.reasons)
    took = f"{each * cases:.2f} s, {each * 1e6:.0f} µs each"
    print(f"slider-crank: {cases} cases of {len(task.times)} points, {good} of them good: {took}")
    mech = lw.load(MODELS / "slider_crank_parameters.mks")
    rows = np.linspace(0, cases - 1, sampled).astype(int)
    lw.analyse(mech)
    since, worst = time.process_time(), 0.0
    solutions = [lw.analyse(mech, parameters=dict(zip(names, values[k], strict=True))) for k in rows]
    loop = (time.process_time() - since) / sampled
    for k, solution in zip(rows, solutions, strict=True):
        x, v, angle = solution.position("block")[:, 0], solution.velocity("block")[:, 0], solution.joint("rev1")[:, 0]
        wanted = (np.ptp(x), v.max(), np.ptp(angle))
        worst = max(worst, *(abs(found.arrays[name][k] - y) for name, y in zip(found.arrays, wanted, strict=True)))
    assert worst < 1e-9, worst
    print(f"  a loop over lw.analyse: {loop * 1e3:.1f} ms each, {loop / each:.0f} times as long; apart by {worst:.1e}")


def chain(cases: int) -> None:
    """Five rods that swing for two seconds, by dop853 with tolerances of 1e-10."""
    names = ("length", "m")
    task = make_task(MODELS / "pendulum.mks", names, ["low = min(rod5.z)"], times=np.linspace(0.0, 2.0, 41))
    values = np.random.default_rng(2).uniform([0.3, 0.4], [0.5, 0.6], (cases, 2))
    engine = Engine(task)
    engine.run(values[:8])
    since = time.process_time()
    found = engine.run(values)
    each = (time.process_time() - since) / cases
    mech = lw.load(MODELS / "pendulum.mks")
    settings = {"times": task.times, "analysis": "dynamic"}
    lw.analyse(mech, **settings)
    since = time.process_time()
    solution = lw.analyse(mech, **settings)
    warm = time.process_time() - since
    since = time.process_time()
    solution = lw.analyse(mech, parameters=dict(zip(names, values[0], strict=True)), **settings)
    loop = time.process_time() - since
    difference = abs(solution.position("rod5")[:, 2].min() - found.arrays["low"][0])
    assert difference < 1e-9, difference
    print(f"five rods, 2 s of dop853 at 1e-10: {each * 1e3:.2f} ms each of {cases}")
    print(f"  lw.analyse: {warm * 1e3:.1f} ms compiled, {loop:.2f} s for new parameters; difference {difference:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--sampled", type=int, default=60)
    given = parser.parse_args()
    set_threads(1)
    slider_crank(given.cases, given.sampled)
    chain(max(8, given.cases // 20))


if __name__ == "__main__":
    main()
