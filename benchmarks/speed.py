"""Every call at full speed: one table, a row for each sort of work, with the bound that it is held to.

    python benchmarks/speed.py [--only TEXT ...] [--write [SECTION]]

The rows are in the files `speed_*.py`, each with a list `ROWS`. Every row is measured in a process of its own, on one
core unless it says otherwise. `--write` puts the table into benchmarks/RESULTS.md, and
`--only GPU "16 cores" --write speed-device` the rows that need a larger machine into their own.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict
from datetime import date
from importlib import import_module
from pathlib import Path

import numpy as np

from speed_table import Measurement, Row, seconds_of, shown_time
from table import cpu, replace_section

HERE = Path(__file__).resolve().parent


def rows() -> dict[str, tuple[str, Row]]:
    """All rows by their work, with the name of the file that they are in."""
    files = sorted(file.stem for file in HERE.glob("speed_*.py") if file.stem != "speed_table")
    return {row.work: (name, row) for name in files for row in import_module(name).ROWS}


def measured(work: str, row: Row) -> Measurement | str:
    """The measurement of a row in a process of its own, or why there is none."""
    threads = {"OMP_NUM_THREADS": str(row.cores), "LINKWRIGHT_THREADS": str(row.cores)}
    command = [sys.executable, __file__, "--one", work]
    done = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True, check=False)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["failed without a message"])[-1]
    return Measurement(**json.loads(done.stdout.splitlines()[-1]))


def yardstick() -> str:
    """How fast this machine is now, by a peer's call: bounds in seconds and in points per second are no ratios."""
    try:
        import pinocchio as pin

        from robots import Twin, find
    except ImportError:
        return ""
    twin = Twin(find("ur5_robot.urdf"), "fixed")
    q, v, tau = (x[0].copy() for x in twin.states(1))
    seconds = seconds_of(lambda: pin.aba(twin.model, twin.data, q, v, tau))
    return f" Pinocchio's forward dynamics of the UR5 from Python takes {shown_time(seconds)} here."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="+", default=[""], help="rows whose name has one of these texts")
    parser.add_argument("--write", nargs="?", const="speed", help="put the table into this section of RESULTS.md")
    options = parser.parse_args()
    table = rows()
    if options.one:
        print(json.dumps(asdict(table[options.one][1].measure())))
        return
    lines = ["| work | ours | peer | measured | bound |", "| --- | --- | --- | --- | --- |"]
    limits: list[str] = []
    missing: list[str] = []
    for work, (_, row) in table.items():
        if not any(text in work for text in options.only):
            continue
        result = measured(work, row)
        bound = f"{'≥' if row.at_least else '≤'} {row.bound:.3g} {row.unit}"
        if isinstance(result, str):
            print(f"{work}: not measured: {result}", flush=True)
            missing.append(work)
            continue
        met = row.met(result.value)
        value = f"{result.value:.3g}" if met else f"**{result.value:.3g}**"
        lines.append(f"| {work} | {result.ours} | {result.peer} | {value} | {bound} |")
        print(lines[-1], flush=True)
        if not met and result.limits:
            limits.append(f"- *{work}*: {result.limits}")
            print(limits[-1], flush=True)
    if options.write:
        versions = f"{date.today()}, {cpu()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        head = f"{versions}, NumPy {np.__version__}; one core unless the row says otherwise."
        head += f" Bold: the bound is missed.{yardstick()}"
        why = ["", "What limits:", "", *limits] if limits else []
        why += ["", f"Not measured on this machine: {'; '.join(missing)}."] if missing else []
        replace_section(options.write, "\n".join([head, "", *lines, *why]))


if __name__ == "__main__":
    main()
