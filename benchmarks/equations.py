"""Closed forms beside SymPy: time, memory and size of M, h and g for arms of N links with every parameter a symbol.

    python benchmarks/equations.py [--write] [--limit 300] [--quick] [--parts peers arms] [--side-by-side]

Every cell is a process of its own, one core, stopped after `--limit` seconds; a way that fails for N links is not
tried for more. Each result is compared with the numeric recursions at random points. On a machine with many cores the
ways (and the arms) may run side by side, each on its own.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import tomllib
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import linkwright as lw
from equations_peers import GRAVITY, WAYS, Ours, body, difference, planar, spatial
from table import cpu, replace_section

MODELS = Path(__file__).parents[1] / "examples" / "models"
MEMORY = 10 * 2**30  # bytes that a process may ask for: more would push the machine into its swap
FORMS = ("recursive", "expanded", "collected", "grouped")
LONGEST = {"recursive": 10**9, "expanded": 100_000, "collected": 20_000, "grouped": 100_000}  # terms still printed
MOST = 12  # links that are tried
CHECKING = 200.0  # seconds that counting and comparing may take after the limit


# -- arms -----------------------------------------------------------------------------------------------------------
def puma() -> Any:
    """PUMA 560 with its lengths in numbers and a symbol for every inertial parameter."""
    rows = tomllib.loads((MODELS / "puma560.dh.toml").read_text(encoding="utf-8"))["link"]
    kept = [{key: row[key] for key in ("a", "alpha", "d")} for row in rows]
    literal = [{**row, **body(k), "armature": f"J{k}"} for k, row in enumerate(kept, 1)]
    return lw.from_dh(literal, "modified", gravity=GRAVITY)


def in_space(n: int) -> Callable[[], Any]:
    return lambda: lw.from_dh(spatial(n), "modified", gravity=GRAVITY)


def in_a_plane(n: int) -> Callable[[], Any]:
    return lambda: lw.from_dh(planar(n), "modified", gravity=(0.0, "-g", 0.0))


ARMS: dict[str, Callable[[], Any]] = {
    "PUMA 560": puma,
    "Panda": lambda: lw.load(MODELS / "panda.dh.toml"),
    "8R in space": lambda: lw.load(MODELS / "arm_8r.dh.toml"),
    "9R in space": in_space(9),
    "10R in space": in_space(10),
    "10R in a plane": in_a_plane(10),
    "20R in a plane": in_a_plane(20),
    "30R in a plane": in_a_plane(30),
}


# -- one process ----------------------------------------------------------------------------------------------------
def tell(**what: Any) -> None:
    """A line of JSON, at once: what comes later may take too long."""
    print(json.dumps(what), flush=True)


def peak() -> float:
    """The largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one_way(way: str, links: int) -> None:
    mech = in_space(links)()
    if way == "Linkwright":
        import flint  # noqa: F401 (imports are no part of the work)
    else:
        import sympy.physics.mechanics  # noqa: F401
    start = time.perf_counter()
    found = WAYS[way](spatial(links))
    tell(seconds=time.perf_counter() - start, peak=peak())
    tell(**found.operations())
    tell(difference=difference(found, mech))


def one_arm(name: str) -> None:
    import flint  # noqa: F401

    mech = ARMS[name]()
    start = time.perf_counter()
    ours = Ours(mech)
    tell(seconds=time.perf_counter() - start, peak=peak(), terms=ours.terms(), symbols=len(mech.parameters))
    tell(difference=difference(ours.found(), mech))
    for form in FORMS:
        if sum(ours.terms().values()) > LONGEST[form]:
            continue
        start = time.perf_counter()
        size = len(ours.equations.c(form))
        tell(**{form: [time.perf_counter() - start, size]})


def separate(limit: float, *arguments: str) -> dict[str, Any]:
    """What a process of its own told; `failed` says why there are no seconds."""
    with tempfile.TemporaryDirectory() as folder:
        log, errors = Path(folder, "out"), Path(folder, "err")
        with log.open("w") as out, errors.open("w") as err:
            process = subprocess.Popen([sys.executable, __file__, *arguments], stdout=out, stderr=err)
        start = time.monotonic()
        while process.poll() is None:
            time.sleep(0.05)
            gone = time.monotonic() - start
            # Starting Python and importing takes some seconds, which are no part of the limit.
            if gone > limit + CHECKING or (gone > limit + 5.0 and not log.stat().st_size):
                process.kill()
                process.wait()
        told: dict[str, Any] = {}
        for line in log.read_text().splitlines():
            told |= json.loads(line)
        last = (errors.read_text().strip().splitlines() or ["no reason given"])[-1]
    if told.get("seconds", limit + 1.0) > limit:
        gone = time.monotonic() - start
        if process.returncode == 0 or gone > limit:
            why = f"> {limit:.0f} s"
        elif "MemoryError" in last or process.returncode in (-6, -11):
            why = f"> {MEMORY >> 30} GB after {gone:.0f} s"
        else:
            why = f"failed: {last}"
        told = {"failed": why}
    print(" ".join(arguments), told, file=sys.stderr, flush=True)
    return told


# -- tables ---------------------------------------------------------------------------------------------------------
def peers(limit: float, most: int, workers: int) -> list[dict[str, dict[str, Any]]]:
    """For N = 2 …, what each way told."""

    def as_far_as_it_gets(way: str, core: int) -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = []
        for n in range(2, most + 1):
            told.append(separate(limit, "--way", way, "--links", str(n), "--core", str(core)))
            if "failed" in told[-1]:
                break
        return told

    with ThreadPoolExecutor(workers) as pool:
        told = dict(zip(WAYS, pool.map(as_far_as_it_gets, WAYS, range(len(WAYS))), strict=True))
    longest = max(map(len, told.values()))
    return [{way: cells[k] for way, cells in told.items() if k < len(cells)} for k in range(longest)]


def render_peers(rows: list[dict[str, dict[str, Any]]]) -> list[str]:
    lines = [
        "Seconds and peak memory to M, h and g:",
        "",
        f"| links | {' | '.join(WAYS)} |",
        f"| --- |{' --- |' * len(WAYS)}",
    ]
    for n, row in enumerate(rows, 2):
        cells = [row.get(way) for way in WAYS]
        lines.append(f"| {n} | {' | '.join(_time(cell) for cell in cells)} |")
    lines += [
        "",
        "Operations in the result as it is (SymPy's `count_ops`); of Linkwright's in three forms:",
        "",
        f"| links | recursive | collected | expanded | {' | '.join(list(WAYS)[1:])} |",
        f"| --- | --- | --- |{' --- |' * len(WAYS)}",
    ]
    for n, row in enumerate(rows, 2):
        ours = row.get("Linkwright", {})
        counts = [ours.get(form) for form in ("recursive", "collected", "expanded")]
        counts += [row.get(way, {}).get("operations") for way in list(WAYS)[1:]]
        lines.append(f"| {n} | {' | '.join('' if x is None else f'{x:,}' for x in counts)} |")
    differences = [cell["difference"] for row in rows for cell in row.values() if "difference" in cell]
    told = f"{len(differences)} results were compared with the numeric recursions at three random points each"
    return [*lines, "", f"{told}; the largest difference is {max(differences):.0e} of the largest entry."]


def _time(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return ""
    return cell["failed"] if "failed" in cell else f"{cell['seconds']:.3g} s, {cell['peak']:,.0f} MB"


def render_arms(rows: dict[str, dict[str, Any]]) -> list[str]:
    lines = [
        f"| arm | symbols | M, h, g | peak memory | terms of M | of h | of g | difference | {' | '.join(FORMS)} |",
        f"| --- | --- | --- | --- | --- | --- | --- | --- |{' --- |' * len(FORMS)}",
    ]
    for name, cell in rows.items():
        if "failed" in cell:
            lines.append(f"| {name} | | {cell['failed']} |{' |' * (5 + len(FORMS))}")
            continue
        terms = [f"{cell['terms'][part]:,}" for part in ("M", "h", "g")]
        apart = f"{cell['difference']:.0e}" if "difference" in cell else "not compared"
        prints = [f"{cell[form][0]:.2g} s, {_size(cell[form][1])}" if form in cell else "" for form in FORMS]
        cells = [name, cell["symbols"], f"{cell['seconds']:.3g} s", f"{cell['peak']:,.0f} MB", *terms, apart, *prints]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def _size(letters: int) -> str:
    return f"{letters / 1e3:.3g} kB" if letters < 1e6 else f"{letters / 1e6:.3g} MB"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into benchmarks/RESULTS.md")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds that one derivation may take")
    parser.add_argument("--quick", action="store_true", help="a limit of 10 seconds and 5 links: a try-out")
    parser.add_argument("--parts", nargs="+", choices=("peers", "arms"), default=("peers", "arms"))
    parser.add_argument("--side-by-side", action="store_true", help="ways and arms at the same time, a core each")
    parser.add_argument("--core", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("--links", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--arm", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way or options.arm:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        sys.setrecursionlimit(100_000)
        warnings.simplefilter("ignore")
        if hasattr(os, "sched_setaffinity"):
            cores = sorted(os.sched_getaffinity(0), reverse=True)
            os.sched_setaffinity(0, {cores[options.core % len(cores)]})
        one_arm(options.arm) if options.arm else one_way(options.way, options.links)
        return 0
    limit, most = (10.0, 5) if options.quick else (options.limit, MOST)
    head = (
        f"{date.today()}, {cpu()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start; "
        f"Python {platform.python_version()}, SymPy {metadata.version('sympy')}, "
        f"python-flint {metadata.version('python-flint')}, Linkwright {lw.__version__}; a process and one core a cell, "
        f"at most {limit:.0f} s."
    )
    sections = {}
    if "peers" in options.parts:
        sections["equations"] = [head, "", *render_peers(peers(limit, most, len(WAYS) if options.side_by_side else 1))]
    if "arms" in options.parts:
        with ThreadPoolExecutor(len(ARMS) if options.side_by_side else 1) as pool:
            each = pool.map(lambda k: separate(limit, "--arm", list(ARMS)[k], "--core", str(k)), range(len(ARMS)))
            arms = dict(zip(ARMS, each, strict=True))
        sections["arms"] = [head, "", *render_arms(arms)]
    for name, lines in sections.items():
        print("\n".join(lines), end="\n\n")
        if options.write:
            replace_section(name, "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
