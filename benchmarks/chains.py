"""One forward dynamics of a revolute chain of 10 to a million links, by every method, beside the peers.

    python benchmarks/chains.py [--quick] [--write] [--drake PYTHON] [--rounds 3]

Every row is measured in a process of its own, so that a crash or too much memory costs that row alone. A subject
stops where its next call would take more than a few seconds, or where it fails; the table says why. --write puts the
tables into benchmarks/RESULTS.md and the picture into docs/images/chains.png; without, the picture is out/chains.png.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import linkwright as lw
from chain_work import PEERS
from linkwright.dynamics.functions import FORWARD_METHODS
from table import cpu, replace_section

HERE = Path(__file__).resolve().parent
LINKS = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
BEST, PARALLEL = FORWARD_METHODS[0], "assembly"
THREADS = 2
LONGEST_CALL = 4.0  # seconds; a method of higher order stops before


@dataclass
class Subject:
    """A method or a peer: how it is run, and what was found, by number of links."""

    name: str
    words: tuple[str, str]
    python: str = sys.executable
    threads: int = 1
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    end: str = ""  # why it went no further
    opening: dict[str, Any] = field(default_factory=dict)  # the largest chain in a fresh process, nothing cached

    @property
    def ours(self) -> bool:
        return self.words[0] == "Linkwright"

    @property
    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Links and seconds a call."""
        return np.array(list(self.rows)), np.array([row["call"] for row in self.rows.values()])

    def next_call(self, n: int) -> float:
        """About how long a call will take with n links: by the last two rows, and at least in proportion."""
        links, seconds = self.points
        if not len(links):
            return 0.0
        power = 1.0
        if len(links) > 1:
            power = max(1.0, np.log(seconds[-1] / seconds[-2]) / np.log(links[-1] / links[-2]))
        return float(seconds[-1] * (n / links[-1]) ** power)

    def exponent(self) -> tuple[float, int] | None:
        """The power of N by least squares, and the row it is fitted from; None with fewer than three rows.

        Fitted are the rows in the upper half of the range on a logarithmic scale, and at least the last three.
        """
        links, seconds = self.points
        if len(links) < 3:
            return None
        start = min(int(np.searchsorted(links, np.sqrt(links[0] * links[-1]))), len(links) - 3)
        power = np.polyfit(np.log(links[start:]), np.log(seconds[start:]), 1)[0]
        return float(power), int(links[start])


@dataclass(frozen=True)
class Limits:
    """What a process may take: seconds of timing, seconds in all, bytes."""

    timing: float
    wall: float
    memory: int


# -- measuring --------------------------------------------------------------------------------------------------
def measured(subject: Subject, n: int, limits: Limits, cache: str, answer: str = "") -> dict[str, Any]:
    """One row in a process of its own; {"error": why} where there is none."""
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**os.environ, **single, "PYTHONPATH": path, "LINKWRIGHT_CACHE": cache}
    environment["LINKWRIGHT_THREADS"] = str(subject.threads)
    command = [subject.python, "-c", "import chain_work; chain_work.entry()", *subject.words, str(n)]
    command += [str(limits.timing), answer]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        try:
            process = subprocess.Popen(command, env=environment, stdout=out, stderr=err)
        except OSError as error:
            return {"error": f"{subject.python} cannot be run: {error.strerror}"}
        stopped = watched(process, limits)
        out.seek(0), err.seek(0)
        if stopped:
            return {"error": stopped}
        for line in reversed(out.read().splitlines()):
            if line.startswith("{"):
                return json.loads(line)
        if process.returncode < 0:
            return {"error": f"ended by {signal.Signals(-process.returncode).name}"}
        return {"error": (err.read().strip().splitlines() or [f"ended with status {process.returncode}"])[-1][:200]}


def watched(process: subprocess.Popen[str], limits: Limits) -> str:
    """Wait for a process; stop it when it takes too long or too much, and say so."""
    start = time.monotonic()
    while process.poll() is None:
        reason = ""
        if time.monotonic() - start > limits.wall:
            reason = f"no answer in {limits.wall:.0f} s (it then held {held(process.pid) / 1e9:.1f} GB)"
        elif held(process.pid) > limits.memory:
            reason = f"needs more than {limits.memory / 1e9:.0f} GB"
        if reason:
            process.kill()
            process.wait()
            return reason
        time.sleep(0.02)
    return ""


def held(pid: int) -> int:
    """Bytes of memory that a process holds, 0 where that is not told."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def memory_limit() -> int:
    """Half of the memory that is free now, 8 GB where that is not told."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 512
    except OSError:
        pass
    return 8 * 10**9


def difference(answer: Path, reference: Path) -> float | None:
    """The largest difference of two accelerations, relative to the largest acceleration."""
    if not answer.exists() or not reference.exists():
        return None
    a, b = np.load(answer), np.load(reference)
    return float(np.abs(a - b).max() / np.abs(b).max())


def sweep(subjects: list[Subject], links: tuple[int, ...], limits: Limits, rounds: int, folder: Path) -> None:
    """All rows: for every length all subjects in turn, `rounds` times, so that noise in time is noise to all."""
    cache = str(folder / "cache")
    for n in links:
        found: dict[str, list[dict[str, Any]]] = {subject.name: [] for subject in subjects}
        for k in range(rounds):
            for subject in subjects:
                if subject.end:
                    continue
                if (soon := subject.next_call(n)) > LONGEST_CALL:
                    subject.end = f"one call at {n:,} would take about {soon:.0f} s"
                    continue
                answer = folder / f"{subject.name}-{n}.npy"
                row = measured(subject, n, limits, cache, "" if k else str(answer))
                if "error" in row:
                    subject.end = f"{n:,} links: {row['error']}" if subject.rows else row["error"]
                    print(f"{n:>9,} {subject.name:<22} {row['error']}", flush=True)
                    continue
                found[subject.name].append(row)
        for subject in subjects:
            if not (rows := found[subject.name]):
                continue
            best = {key: float(np.median([row[key] for row in rows])) for key in ("call", "load", "first")}
            best |= {"memory": max(row["memory"] for row in rows), "version": rows[0]["version"]}
            best["difference"] = difference(folder / f"{subject.name}-{n}.npy", folder / f"{BEST}-{n}.npy")
            subject.rows[n] = best
            print(f"{n:>9,} {subject.name:<22} {best['call'] * 1e6:12.1f} µs {best['call'] / n * 1e9:9.0f} ns a link",
                  flush=True)  # fmt: skip


def openings(subjects: list[Subject], n: int, limits: Limits) -> None:
    """The longest chain in a fresh process with an empty cache, for each of our methods that gets so far."""
    for subject in subjects:
        if subject.ours and n in subject.rows:
            with tempfile.TemporaryDirectory() as cache:
                subject.opening = measured(subject, n, limits, cache)


# -- what it says -------------------------------------------------------------------------------------------------
def crossing(subjects: list[Subject]) -> list[str]:
    """The assembly against the best of the other methods at every length, in words, for each number of threads."""
    serial = [s for s in subjects if s.ours and s.words[1] != PARALLEL]
    lines = []
    for subject in subjects:
        if subject.words[1] != PARALLEL or not subject.rows:
            continue
        ratio = {n: row["call"] / min(s.rows[n]["call"] for s in serial if n in s.rows)
                 for n, row in subject.rows.items() if any(n in s.rows for s in serial)}  # fmt: skip
        faster = [n for n in ratio if all(r < 1 for m, r in ratio.items() if m >= n)]
        on = f"Assembly on {subject.threads} thread{'s' * (subject.threads > 1)}"
        least = min(ratio, key=ratio.__getitem__)
        if faster:
            lines.append(
                f"{on} is faster than the best serial method from {faster[0]:,} links on "
                f"({ratio[max(ratio)]:.2f} of its time at {max(ratio):,})."
            )
        else:
            lines.append(
                f"{on} does not overtake the best serial method: at its best, with {least:,} links, it takes "
                f"{ratio[least]:.2f} times as long, at {max(ratio):,} links {ratio[max(ratio)]:.2f} times."
            )
    return lines or ["Assembly was not measured."]


def microseconds(seconds: float) -> str:
    value = seconds * 1e6
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:,.0f}"


def table(heads: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(cells) + " |" for cells in (heads, ["---"] * len(heads), *rows)]


def render(subjects: list[Subject], links: tuple[int, ...], rounds: int, load: str, limits: Limits) -> str:
    versions = [f"{s.words[0]} {next(iter(s.rows.values()))['version']}" for s in subjects if not s.ours and s.rows]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    lines = [
        f"{date.today()}, {cpu()}, {os.cpu_count()} cores, {memory:.0f} GB, load average {load} at the start; "
        f"Python {platform.python_version()}, NumPy {np.__version__}, "
        f"{', '.join([f'Linkwright {lw.__version__}', *versions])}. Each cell from {rounds} process"
        f"{'es' * (rounds > 1)} of its own; one thread, but where said otherwise.",
        "",
        "µs a call (ns a link):",
        "",
    ]
    cells = [
        [f"{n:,}"] + [f"{microseconds(s.rows[n]['call'])} ({s.rows[n]['call'] / n * 1e9:,.0f})" if n in s.rows else "–"
                      for s in subjects]
        for n in links
    ]  # fmt: skip
    lines += [*table(["links", *(s.name for s in subjects)], cells), ""]
    top = links[-1]
    lines += table(
        ["", "fitted power of N (from)", "memory a link", f"load, first call at {top:,}, nothing cached",
         f"largest difference from {BEST}", "goes no further because"],
        [summary(s, links) for s in subjects],
    )  # fmt: skip
    lines += [
        "",
        "The power is fitted by least squares to the upper half of a column on the logarithmic scale, at least to its "
        "last three rows. Memory is what "
        "the process grew by at most, divided by the links, at the column's last row; a small chain's is mostly "
        f"libraries and compiled code. A row may take {limits.memory / 1e9:.0f} GB and {limits.wall:.0f} s, building "
        "included.",
        *crossing(subjects),
    ]
    return "\n".join(lines)


def summary(s: Subject, links: tuple[int, ...]) -> list[str]:
    """A subject's line of the second table."""
    cells = [s.name, "–", "–", "–", "–", s.end or "–"]
    if not s.rows:
        return cells
    last = max(s.rows)
    fit = s.exponent()
    cells[1] = f"{fit[0]:.2f} ({fit[1]:,})" if fit else "fewer than three rows"
    per_link = s.rows[last]["memory"] / last
    cells[2] = (f"{per_link / 1000:,.1f} kB" if per_link > 1000 else f"{per_link:.0f} B") + f" at {last:,}"
    if "error" in s.opening:
        cells[3] = s.opening["error"]
    elif s.opening:
        cells[3] = f"{s.opening['load']:.2f} s, {s.opening['first']:.2f} s"
    found = {n: row["difference"] for n, row in s.rows.items() if row["difference"] is not None}
    if found and s.name != BEST:
        worst = max(found, key=found.__getitem__)
        cells[4] = f"{found[worst]:.0e} at {worst:,}"
    return cells


def draw(subjects: list[Subject], file: Path) -> None:
    """Time against length, both on logarithmic scales, with the powers of N as guides."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(12, 6.4), layout="constrained")
    measured = [s for s in subjects if s.rows]
    names = dict.fromkeys(s.words for s in measured)  # one colour for the assembly on any number of threads
    colour = dict(zip(names, [*plt.get_cmap("Dark2").colors, *plt.get_cmap("Set1").colors], strict=False))
    for s in measured:
        links, seconds = s.points
        fit = s.exponent()
        label = s.name + (f"  (N to the {fit[0]:.2f})" if fit else "")
        line, marker = "--" if s.threads > 1 else "-" if s.ours else ":", "o" if s.ours else "s"
        axis.plot(links, seconds * 1e6, line, color=colour[s.words], marker=marker, markersize=4.5, label=label)
    floor = 0.5 * min(s.points[1].min() for s in measured) * 1e6  # the guides start below all
    ceiling = max(s.points[1].max() for s in measured) * 1e6
    first = min(s.points[0][0] for s in measured)
    last = max(s.points[0][-1] for s in measured)
    for power, name in ((1, "N"), (2, "N²"), (3, "N³")):
        end = min(last, first * (ceiling / floor) ** (1 / power))
        top = floor * (end / first) ** power
        axis.plot([first, end], [floor, top], color="#e5e7eb", linewidth=1, zorder=0)
        axis.annotate(name, (end, top), xytext=(4, 0), textcoords="offset points", color="#9ca3af", va="center")
    axis.set(xscale="log", yscale="log", xlabel="links N", ylabel="one forward dynamics (µs)",
             title="Forward dynamics of a chain: every method, and the peers as far as they get")  # fmt: skip
    axis.grid(which="major", alpha=0.25)
    figure.legend(frameon=False, loc="outside right center")  # the curves of higher order fill the upper left
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130)
    print(file)


def subjects_of(drake: str | None) -> list[Subject]:
    """Our methods, the default first, then the peers."""
    found = [Subject(method, ("Linkwright", method)) for method in FORWARD_METHODS]
    if PARALLEL in FORWARD_METHODS:
        found.append(Subject(f"{PARALLEL}, {THREADS} threads", ("Linkwright", PARALLEL), threads=THREADS))
        if (os.cpu_count() or 1) < THREADS:
            found[-1].end = f"this machine has fewer than {THREADS} cores"
    found += [Subject(name, (name, "-")) for name in PEERS]
    if drake:
        found[-1].python = drake
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put tables and picture into benchmarks/ and docs/")
    parser.add_argument("--quick", action="store_true", help="short chains and few repeats, to try it out")
    parser.add_argument("--drake", metavar="PYTHON", help="an interpreter that has Drake (default: this one)")
    parser.add_argument("--rounds", type=int, default=1, help="processes a cell, their median counts (default 1)")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    options = parser.parse_args()
    if options.quick and options.write:
        parser.error("--quick is for trying out: its numbers are not to be written down")
    links = (10, 30, 100, 300) if options.quick else LINKS
    limits = Limits(0.05 if options.quick else 1.0, 10.0 if options.quick else 120.0, memory_limit())
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    subjects = subjects_of(options.drake)
    with tempfile.TemporaryDirectory() as folder:
        sweep(subjects, links, limits, max(1, options.rounds), Path(folder))
    openings(subjects, links[-1], limits)
    text = render(subjects, links, max(1, options.rounds), load, limits)
    print(text)
    if options.json:
        numbers = {s.name: {"rows": s.rows, "end": s.end, "opening": s.opening} for s in subjects}
        options.json.write_text(json.dumps(numbers, indent=1))
    draw(subjects, HERE.parent / "docs" / "images" / "chains.png" if options.write else Path("out") / "chains.png")
    if options.write:
        replace_section("chains", f"{text}\n\n![Time against number of links](../docs/images/chains.png)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
