"""How often Cramér–Rao regions hold the truth, beside another package's Box–Jenkins fits on the same records.

    python benchmarks/identification.py [--draws 100] [--processes 2] [--parts coverage peer] [--write]

Two known systems, three signal-to-noise ratios, open and closed loop; every case has noise of its own, from fixed
seeds. A count of hits out of the draws is binomial where the regions are right: counts outside the 99 % interval
are bold. The peer is SIPPY (`pip install sippy-unipi`); it is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the matrices are small: threads only get in each other's way
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from table import cpu, replace_section

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
import linkwright as lw
from known_systems import System, accepted, coverage, record, resonance, textbook

SYSTEMS = {s.name: s for s in (resonance(), textbook())}
CASES = [(name, loop, snr) for name in SYSTEMS for loop in ("open", "closed") for snr in (37, 23, 9)]
NAIVE = ("oe", "arx")
ONE = lw.control.IdentifySettings(starts=1)


def run(case: tuple[str, str, int, int]) -> tuple[Any, float]:
    name, loop, snr, draws = case
    start = time.perf_counter()
    found = coverage(SYSTEMS[name], snr, loop, draws)
    return found, (time.perf_counter() - start) / draws


def coverage_table(draws: int, processes: int) -> tuple[list[str], float]:
    low, high = accepted(draws)
    names = lw.control.Model([1.0, 1.0], *[np.array([1.0, 0.1, 0.1])] * 3).names
    lines = [
        f"Hits of {draws} draws in 95 % regions; [{low}, {high}] holds 99 % of such counts, others are bold.",
        "",
        f"| system, loop, signal to noise | {' | '.join(names)} | all 8 | "
        "response at 13 frequencies: least, mean, most | worst error of the response, median |",
        "| --- |" + " --- |" * (len(names) + 3),
    ]

    def shown(count: int) -> str:
        return str(count) if low <= count <= high else f"**{count}**"

    with ProcessPoolExecutor(processes) as pool:
        results = list(pool.map(run, [(*case, draws) for case in CASES]))
    total = np.zeros(len(names) + 2)
    outside = 0
    for (name, loop, snr), (found, _) in zip(CASES, results, strict=True):
        counts = [found[x] for x in [*names, "all"]]
        band = found["band"]
        outside += sum(not low <= x <= high for x in [*counts, *band])
        total += [*counts, band.mean()]
        cells = [shown(x) for x in counts]
        cells.append(f"{shown(int(band.min()))}, {band.mean():.1f}, {shown(int(band.max()))}")
        lines.append(f"| {name}, {loop}, {snr} dB | {' | '.join(cells)} | {100 * found['error']:.2g} % |")
    share = " | ".join(f"{100 * x / draws / len(CASES):.1f} %" for x in total)
    lines.append(f"| all {draws * len(CASES):,} draws | {share} | |")
    all_counts = len(CASES) * (len(names) + 1 + 13)
    lines += ["", f"{outside} of {all_counts} counts lie outside; by chance about {0.01 * all_counts:.1f} would."]
    return lines, float(np.mean([seconds for _, seconds in results]))


def bias_table(draws: int = 20) -> list[str]:
    """The mean of the estimates in closed loop: what is left of the error when noise is averaged out."""
    lines = ["| closed loop, mean of 20 fits, worst frequency | 23 dB | 9 dB | 0 dB |", "| --- | --- | --- | --- |"]
    for system in SYSTEMS.values():
        w = system.frequencies()
        truth = system.model.frequency_response(w)
        for model in ("box-jenkins", *NAIVE):
            cells = []
            for snr in (23, 9, 0):
                fits = [
                    lw.control.identify(record(system, snr, "closed", k), model, system.orders, holdout=0, settings=ONE)
                    for k in range(draws)
                ]
                mean = np.mean([m.frequency_response(w) for m in fits], axis=0)
                cells.append(f"{100 * np.abs(mean / truth - 1).max():.2g} %")
            lines.append(f"| {system.name}, {model} | {' | '.join(cells)} |")
    return lines


def peer_fit(system: System, data: Any) -> Any:
    """The response that SIPPY's Box–Jenkins fit has at the system's frequencies."""
    import sippy_unipi as sippy

    o = system.orders
    # It counts the delay beyond the first sample.
    found = sippy.system_identification(
        data.y, data.u, "BJ", BJ_orders=[o.nb, o.nc, o.nd, o.nf, o.nk - 1], tsample=data.dt, max_iterations=300
    )
    return np.asarray(found.G(np.exp(1j * system.frequencies() * data.dt))).reshape(-1)


def peer_table(fits: int) -> list[str]:
    lines = [f"| error of the response, worst frequency, median of {fits} | Linkwright | time | SIPPY | time |"]
    lines += ["| --- | --- | --- | --- | --- |"]
    for name, loop, snr in CASES:
        if snr != 23:
            continue  # the peer takes half a minute a fit
        system = SYSTEMS[name]
        truth = system.model.frequency_response(system.frequencies())
        rows: dict[str, list[tuple[float, float]]] = {"ours": [], "theirs": []}
        for seed in range(fits):
            data = record(system, snr, loop, seed)
            for who in rows:
                start = time.perf_counter()
                if who == "ours":
                    found = lw.control.identify(data, orders=system.orders, holdout=0)
                    response = found.frequency_response(system.frequencies())
                else:
                    try:
                        response = peer_fit(system, data)
                    except Exception as error:  # what a peer raises is part of the comparison
                        print(f"SIPPY on {name}, {loop}, {snr} dB: {type(error).__name__}: {error}", file=sys.stderr)
                        response = np.full(len(truth), np.nan)
                seconds = time.perf_counter() - start
                rows[who].append((float(np.abs(response / truth - 1).max()), seconds))
        cells = []
        for who in rows:
            error, seconds = np.median(rows[who], axis=0)
            cells += [f"{100 * error:.2g} %" if np.isfinite(error) else "fails", f"{seconds:.2f} s"]
        lines.append(f"| {name}, {loop}, {snr} dB | {' | '.join(cells)} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--processes", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--parts", nargs="+", choices=("coverage", "peer"), default=("coverage", "peer"))
    parser.add_argument("--peer-fits", type=int, default=3, help="fits a case; the peer takes half a minute for one")
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    arguments = parser.parse_args()
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {metadata.version('scipy')}"
    versions = f"{date.today()}, {cpu()}, {versions}, Linkwright {lw.__version__}"
    texts = {}
    if "coverage" in arguments.parts:
        start = time.perf_counter()
        table, seconds = coverage_table(arguments.draws, arguments.processes)
        took = time.perf_counter() - start
        head = (
            f"{versions}. Records of 4,095 samples; {1000 * seconds:.0f} ms a draw, record and fit from two starts; "
            f"all draws in {took:.0f} s on {arguments.processes} processes, load average {os.getloadavg()[0]:.1f}."
        )
        texts["identification"] = "\n".join([head, "", *table, "", *bias_table()])
    if "peer" in arguments.parts:
        try:
            versions += f", SIPPY {metadata.version('sippy-unipi')}, at most 300 iterations."
            texts["identification-peer"] = "\n".join([versions, "", *peer_table(arguments.peer_fits)])
        except metadata.PackageNotFoundError:
            print("SIPPY is not installed: no peer", file=sys.stderr)
    for name, text in texts.items():
        print(text, end="\n\n")
        if arguments.write:
            replace_section(name, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
