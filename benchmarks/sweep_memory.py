"""A study larger than memory: cases × 1,001 times × 3 outputs through processes of a bounded size, then read back.

    python benchmarks/sweep_memory.py [--cases 1000000] [--limit 2.0] [--workers 2] [--folder FOLDER]

Every process, this one included, may have at most so many GB of address space. The peak of the resident memory of the
driver, of its workers and of the reader is printed, with the time of each. The folder is removed at the end.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import linkwright as lw

FOUR_BAR = Path(__file__).resolve().parents[1] / "examples" / "models" / "four_bar.mks"
OUTPUTS, POINTS = ["pen.x", "pen.y", "pen.vx"], 1001


def peak(pid: int | str = "self") -> float:
    """The largest resident memory that a process has had, in GB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return float(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1e6


class Workers:
    """The peaks of the processes that this one starts, looked at every quarter of a second."""

    def __init__(self) -> None:
        self.peaks: dict[int, float] = {}
        self._ended = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self._ended.wait(0.25):
            for task in Path("/proc/self/task").iterdir():
                try:
                    for pid in map(int, (task / "children").read_text().split()):
                        self.peaks[pid] = max(self.peaks.get(pid, 0.0), peak(pid))
                except (OSError, StopIteration):
                    continue

    def end(self) -> float:
        """The largest of them."""
        self._ended.set()
        return max(self.peaks.values(), default=0.0)


def compute(cases: int, workers: int, folder: Path) -> None:
    """The study, into the folder."""
    side = round(cases**0.5)
    lengths = {"crank": np.linspace(0.8, 1.1, side), "coupler": np.linspace(2.8, 3.2, -(-cases // side))}
    times = np.linspace(0.0, 2.0 * np.pi, POINTS)
    watched, since = Workers(), time.perf_counter()
    study = lw.sweep(FOUR_BAR, lengths, OUTPUTS, times=times, store=folder, execution=lw.Execution(workers=workers))
    seconds = time.perf_counter() - since
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e9
    rate = len(study) * POINTS / seconds / 1e6
    print(f"{len(study):,} cases, {size:.1f} GB in {study.plan.chunks:,} chunks of {study.plan.chunk}: {seconds:.0f} s")
    print(f"  {rate:.1f} million points per second; {int(study.ok.sum()):,} good cases")
    print(f"  peak of resident memory: driver {peak():.2f} GB, each of {workers} workers {watched.end():.2f} GB")


def read(folder: Path) -> None:
    """What a person asks of a study: one case, and an extreme over all."""
    import xarray.backends  # noqa: F401  (the import is not measured)

    since = time.perf_counter()
    study = lw.Study.open(folder)
    opened = time.perf_counter() - since
    since = time.perf_counter()
    curve = study.data["pen.x"].isel(case=len(study) // 2).values
    one = time.perf_counter() - since
    since = time.perf_counter()
    largest = max(float(rows.max()) for _, rows in study.blocks("pen.y"))
    every = time.perf_counter() - since
    assert np.isfinite(curve).all()
    assert np.isfinite(largest)
    print(f"opened in {opened:.2f} s; one case in {1e3 * one:.0f} ms; one output of all cases in {every:.0f} s")
    print(f"  peak of resident memory: reader {peak():.2f} GB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--limit", type=float, default=2.0, help="GB of address space of each process")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--step", choices=("compute", "read"), help="what one of the processes does")
    options = parser.parse_args()
    if options.step is not None:
        limit = int(options.limit * 1e9)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        if options.step == "compute":
            compute(options.cases, options.workers, options.folder)
        else:
            read(options.folder)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for step in ("compute", "read"):
            words = ["--cases", str(options.cases), "--limit", str(options.limit), "--workers", str(options.workers)]
            command = [sys.executable, __file__, *words, "--folder", f"{folder}/study", "--step", step]
            subprocess.run(command, check=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})


if __name__ == "__main__":
    main()
