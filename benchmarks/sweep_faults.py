"""Page faults and CPU time of a study's worker processes: under Dask's nanny against the local pool, in one run.

    python benchmarks/sweep_faults.py [--cases 40000]

Four-bars by one worker: one number of 181 time points each, three of 1,001, and three series of 1,001. Dask's nanny
sets MALLOC_TRIM_THRESHOLD_, with which the C library maps and unmaps every large array anew. The first chunk of each
process, which compiles, is not counted, nor is what travels.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.sweeps.case_engine import compute
from linkwright.sweeps.chunk_runner import Runner
from linkwright.sweeps.cluster import Cluster
from linkwright.sweeps.plan import Plan, make_plan
from linkwright.sweeps.task import Task, make_task
from linkwright.sweeps.workers import Cores, Pool

FOUR_BAR = Path(__file__).resolve().parents[1] / "examples" / "models" / "four_bar.mks"
STUDIES = {
    "one number of 181 points": (181, ["reach = max(pen.x)"]),
    "three numbers of 1,001 points": (1001, ["max(pen.x)", "range(pen.y)", "rms(pen.vx)"]),
    "three series of 1,001 points": (1001, ["pen.x", "pen.y", "pen.vx"]),
}
LOG = "LINKWRIGHT_FAULTS_LOG"
ROUNDS, CHUNK = 3, 512


def counted(text: str, values: Floats) -> dict[str, Any]:
    """The cases, and a line in the log: the process, its page faults and its CPU time in seconds for them."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    answer = compute(text, values)
    after = resource.getrusage(resource.RUSAGE_SELF)
    faults = after.ru_minflt - before.ru_minflt
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    with open(os.environ[LOG], "a") as log:
        log.write(f"{os.getpid()} {faults} {seconds}\n")
    answer["arrays"] = {
        name: x.reshape(len(values), -1)[:, 0].copy() for name, x in answer["arrays"].items()
    }  # what travels is not measured
    return answer


def measured(pool: Pool, runner: Runner, log: Path) -> tuple[float, float]:
    """Page faults, and CPU time in µs, of a case."""
    log.unlink(missing_ok=True)
    runner.work(pool, runner.left)
    pool.close()
    lines = [line.split() for line in log.read_text().splitlines()]
    seen: set[str] = set()
    faults, seconds, chunks = 0, 0.0, 0
    for pid, count, spent in lines:
        if pid in seen:
            faults, seconds, chunks = faults + int(count), seconds + float(spent), chunks + 1
        seen.add(pid)
    cases = chunks * runner.plan.chunk
    return faults / cases, 1e6 * seconds / cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=40_000)
    options = parser.parse_args()
    import distributed

    side = round(options.cases**0.5)
    lengths = {"crank": np.linspace(0.8, 1.1, side), "coupler": np.linspace(2.8, 3.2, side)}
    plan = make_plan(lengths, chunk=CHUNK)
    tasks = {
        name: make_task(FOUR_BAR, tuple(lengths), outputs, times=np.linspace(0.0, 2.0 * np.pi, points))
        for name, (points, outputs) in STUDIES.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        os.environ[LOG] = str(log)
        # The local pool first: a cluster leaves the nanny's variables in the environment of the process that makes it.
        local = {name: median(lambda: Cores(1), task, plan, log) for name, task in tasks.items()}
        with distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster:
            nanny = {name: median(lambda: Cluster(cluster), task, plan, log) for name, task in tasks.items()}
    for name in tasks:
        print(f"{name}:")
        for place, (faults, seconds) in (("local pool", local[name]), ("LocalCluster with nanny", nanny[name])):
            ratio = seconds / local[name][1]
            print(f"  {place}: {faults:.1f} page faults, {seconds:.1f} µs of CPU time a case, {ratio:.2f} × local")


def median(pool: Callable[[], Pool], task: Task, plan: Plan, log: Path) -> tuple[float, float]:
    """Page faults and CPU time in µs of a case, the medians of some rounds."""
    rounds = [measured(pool(), Runner(task, plan, compute=counted), log) for _ in range(ROUNDS)]
    faults, seconds = zip(*rounds, strict=True)
    return statistics.median(faults), statistics.median(seconds)


if __name__ == "__main__":
    import sweep_faults  # workers find its function under this name

    sweep_faults.main()
