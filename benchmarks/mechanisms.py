"""Kinematic analysis: points a second beside Exudyn and SciPy, ladders of up to 1,000 four-bars, the command line.

    python benchmarks/mechanisms.py [--write] [--quick] [--profile] [--rounds N] [--json FILE]

Prints the tables; --write puts them into benchmarks/RESULTS.md. Every side is timed in turns, round by round, in
seconds of one core's work, and a cell is the median of the rounds. What comes out is compared with closed forms, and
a difference that is too large ends the run. Ladders run in processes of their own, with an empty cache.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from datetime import date
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import linkwright as lw
from mechanism_peers import MODEL, WORKS, Work, by_exudyn, by_scipy, checked_point, errors, fastest_settings
from table import cpu, replace_section

COMMAND = (sys.executable, "-m", "linkwright")
STAGES = (1, 3, 10, 30, 100, 300, 1000)
REQUIRED_RATE, REQUIRED_POWER, REQUIRED_SHELL = 2e4, 1.1, 3.0
#: The largest errors of place that are taken: ours, and that of a peer whose equations are solved to its own tolerance.
OURS, THEIRS = 1e-9, 1e-6
Cell = tuple[float, tuple[float, ...]]
#: Of the eight settings tried for Exudyn's rows the fastest, and how far a side's rounds were apart: filled as it runs.
SETTINGS: dict[str, str] = {}
SPREAD: list[float] = []


# -- points a second ----------------------------------------------------------------------------------------------
def by_linkwright(work: Work, mech: Any, points: int) -> Cell:
    """All of `lw.analyse`: assembly, every body's place, velocity and acceleration, the solution."""
    t = np.linspace(0.0, work.end, points)
    begin = time.process_time()
    solution = lw.analyse(mech, times=t)
    took = time.process_time() - begin
    if len(solution.time) != points:
        raise SystemExit(f"{work.name}: {solution.status}")
    return points / took, errors(work, t, checked_point(work, solution))


def sides(work: Work, quick: bool) -> dict[str, Callable[[], Cell]]:
    """What is measured of a mechanism, by name; the number of points is part of it."""
    mech = work.make()
    lw.analyse(mech, times=np.linspace(0.0, 0.1, 10))
    few = 100 if quick else 1000
    found: dict[str, Callable[[], Cell]] = {
        "Linkwright, 10⁴ points": lambda: by_linkwright(work, mech, 10_000),
        "Linkwright, 10⁵ points": lambda: by_linkwright(work, mech, 100_000),
    }
    if find_spec("exudyn"):
        for how, name in (("spatial", "the same joints in space"), ("planar", "in the plane")):
            if how == "planar" or work.name == "slider-crank":
                best = fastest_settings(work, how, 1 if quick else 3)
                SETTINGS[f"{work.name} {name}"] = str(best)
                found[f"Exudyn, {name}, 10⁴"] = lambda how=how, best=best: by_exudyn(  # type: ignore[misc]
                    work, 10_000, how, best
                )
        found["Exudyn, in the plane, static: places alone, 10⁴"] = lambda: by_exudyn(work, 10_000, "static")
    t = np.linspace(0.0, work.end, 10_000)[:few]
    name = f"SciPy root, {few:,} of the 10⁴ points"
    found[f"{name}, our Jacobian"] = lambda: by_scipy(work, t, jacobian=True)
    found[f"{name}, by differences"] = lambda: by_scipy(work, t, jacobian=False)
    return found


def rates(rounds: int, quick: bool) -> dict[str, dict[str, Cell]]:
    """Median points a second and the errors, by mechanism and side."""
    found: dict[str, dict[str, Cell]] = {}
    for work in WORKS:
        every = sides(work, quick)
        speeds: dict[str, list[float]] = {name: [] for name in every}
        off: dict[str, tuple[float, ...]] = {}
        for _ in range(rounds):
            for name, run in every.items():
                speed, off[name] = run()
                speeds[name].append(speed)
        for name, found_errors in off.items():
            bound = OURS if name.startswith("Linkwright") else THEIRS
            if not found_errors[0] < bound:
                raise SystemExit(f"{work.name}, {name}: off by {found_errors[0]:.2g} from the closed form")
        SPREAD.extend(max(s) / min(s) for s in speeds.values())
        found[work.name] = {name: (float(np.median(speeds[name])), off[name]) for name in every}
    return found


def render_rates(found: dict[str, dict[str, Cell]]) -> list[str]:
    lines = [
        "| points a second (errors of place, velocity, acceleration) | " + " | ".join(found) + " |",
        "| --- |" + " --- |" * len(found),
    ]
    for side in next(iter(found.values())):
        cells = []
        for work in found:
            if side not in found[work]:
                cells.append("–")
                continue
            speed, off = found[work][side]
            told = ", ".join("–" if np.isnan(x) else f"{x:.0e}" for x in off)
            text = f"{speed:,.0f} ({told})"
            if side.startswith("Linkwright"):
                text = f"{text} ≥ 20,000" if speed >= REQUIRED_RATE else f"**{text}** ≥ 20,000"
            cells.append(text)
        lines.append(f"| {side} | " + " | ".join(cells) + " |")
    lines += ["", f"Rounds of one cell were apart by a factor of {np.median(SPREAD):.2f}, at most {max(SPREAD):.2f}."]
    if SETTINGS:
        told = "; ".join(f"{name}: {settings}" for name, settings in SETTINGS.items())
        lines.append(f"Exudyn's fastest settings of the eight tried: {told}.")
    return lines


# -- ladders ------------------------------------------------------------------------------------------------------
def one_ladder(stages: int) -> dict[str, float]:
    """A ladder in this process: times, memory, freedom, errors."""
    from constraints.ladders import START, ladder, odd_angle
    from linkwright.constraints.kinematics import Kinematics
    from linkwright.constraints.program_layout import Layout

    def memory() -> float:
        """The most that this process has held, in MB; unlike getrusage's, not what its parent held."""
        try:
            status = Path("/proc/self/status").read_text()
        except OSError:
            return float("nan")
        return float(status.split("VmHWM:")[1].split()[0]) / 1024.0

    def refuse(*_: Any) -> None:
        raise SystemExit(f"a dense matrix was made for {stages} stages")

    if stages >= 100:
        Layout.dense = refuse  # type: ignore[method-assign,assignment]
    law = START + 0.4 * np.sin(lw.TIME)
    begin = time.process_time()
    mech = ladder(stages, law)
    found = {"build": time.process_time() - begin}
    before, two = memory(), np.array([0.0, 0.01])
    for name in ("first", "again"):
        begin = time.process_time()
        lw.analyse(mech, times=two)
        found[name] = time.process_time() - begin
        found.setdefault("memory", memory() - before)
    kinematics = Kinematics(mech.description)
    start = kinematics.assemble(0.0, 1e-3)
    short, long = 2, int(np.clip(20_000 // stages, 40, 2000))
    seconds: list[float] = []
    motion: Any = None
    for _ in range(5):
        took = []
        for points in (short, long):
            begin = time.process_time()
            motion = kinematics.motion(0.01 * np.arange(points), assembled=start)
            took.append(time.process_time() - begin)
        seconds.append((took[1] - took[0]) / (long - short))
    found["point"] = float(np.median(seconds))
    found["iterations"] = float(motion.iterations[1:].mean())
    report = kinematics.freedom(start, 0.0)
    free = Kinematics(ladder(stages).description)
    report_free = free.freedom(free.assemble(0.0, 1e-3), 0.0)
    found["left"], found["left undriven"] = report.left, report_free.left
    found["redundant"], found["moving undriven"] = len(report.redundant), len(report_free.moving)
    # Accuracy is that of a whole swing forth and back.
    motion = kinematics.motion(np.linspace(0.0, 2.0 * np.pi, 101), assembled=start)
    t = motion.times
    if len(t) < 101:
        raise SystemExit(f"the ladder stopped: {motion.stop}")
    even = START + 0.4 * np.sin(t)
    names = mech.description.body_names
    e = motion.q[:, [names.find(f"bar{k}") for k in range(stages + 1)], 3:]
    wanted = np.where(np.arange(stages + 1) % 2, odd_angle(even)[:, None], even[:, None])
    off = 2.0 * np.arctan2(e[..., 3], e[..., 0]) - wanted
    found["error"] = float(np.abs(np.remainder(off + np.pi, 2.0 * np.pi) - np.pi).max())
    rest = np.zeros((kinematics.equations.nb, 6))
    phi = kinematics.programs.evaluate(motion.q[-1], start.angles, t[-1:], rest)[2]
    # The driver's own equation counts turns from the start; its error is among those of the angles.
    found["residual"] = float(np.abs(phi[: kinematics.equations.first[kinematics.equations.drivers[0]]]).max())
    return found


def one_fan(arms: int) -> dict[str, float]:
    """Many four-bars around one crank, in this process: seconds a time point, and of the first analysis."""
    from constraints.ladders import START, fan
    from linkwright.constraints.kinematics import Kinematics

    mech = fan(arms, START + 0.4 * np.sin(lw.TIME))
    begin = time.process_time()
    lw.analyse(mech, times=np.array([0.0, 0.01]))
    first = time.process_time() - begin
    kinematics = Kinematics(mech.description)
    start = kinematics.assemble(0.0, 1e-3)
    took = []
    for points in (2, 2, 12):  # the first one records the step
        begin = time.process_time()
        kinematics.motion(0.01 * np.arange(points), assembled=start)
        took.append(time.process_time() - begin)
    return {"first": first, "point": (took[2] - took[1]) / 10}


def separate(argument: str, n: int) -> dict[str, float]:
    """A measurement in a process of its own, with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LINKWRIGHT_CACHE": folder}
        command = [sys.executable, __file__, argument, str(n)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{argument} {n} failed:\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def render_fans(found: dict[int, dict[str, float]]) -> str:
    times = ", ".join(f"{n}: {r['point'] * 1e3:.1f} ms (first analysis {r['first']:.1f} s)" for n, r in found.items())
    return (
        f"So many four-bars around one crank, a time point: {times}; fitted power {power(found, 'point'):.2f}. All "
        "joints of one body depend on each other, and the method eliminates them as one dense block."
    )


def ladders(rounds: int, quick: bool) -> dict[int, dict[str, float]]:
    """The medians of several processes for each length."""
    runs: dict[int, list[dict[str, float]]] = {n: [] for n in STAGES if n <= (100 if quick else max(STAGES))}
    for _ in range(rounds):
        for n, row in runs.items():
            row.append(separate("--ladder", n))
    found = {n: {key: float(np.median([r[key] for r in row])) for key in row[0]} for n, row in runs.items()}
    for n, row in found.items():
        told = (row["left"], row["left undriven"], row["redundant"], row["moving undriven"])
        if told != (0, 1, 3 * n, 2 * n + 1):
            raise SystemExit(f"ladder of {n}: freedom {told} is wrong")
        if not row["error"] < OURS:
            raise SystemExit(f"ladder of {n}: off by {row['error']:.2g} rad from the closed form")
    return found


def power(found: dict[int, dict[str, float]], key: str) -> float:
    """The power of n, by least squares over the upper half of the rows, at least the last three."""
    rows = list(found)[-max(3, len(found) // 2 + 1) :]
    return float(np.polyfit(np.log(rows), np.log([found[n][key] for n in rows]), 1)[0])


def render_ladders(found: dict[int, dict[str, float]]) -> list[str]:
    lines = [
        "| four-bars | bodies, equations | a time point | a four-bar | Newton steps a point | first analysis, nothing "
        "cached | again | memory | largest error of an angle | largest equation at the end |",
        "| --- |" + " --- |" * 9,
    ]
    for n, r in found.items():
        cells = [
            f"{n:,}",
            f"{2 * n + 1:,}, {15 * n + 6:,}",
            f"{r['point'] * 1e3:.3f} ms",
            f"{r['point'] * 1e6 / n:.1f} µs",
            f"{r['iterations']:.2f}",
            f"{r['first']:.2f} s",
            f"{r['again']:.2f} s",
            f"{r['memory']:.0f} MB",
            f"{r['error']:.0e} rad",
            f"{r['residual']:.0e}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    p = power(found, "point")
    first = list(found)[-max(3, len(found) // 2 + 1)]
    told = f"{p:.2f} ≤ {REQUIRED_POWER}" if p <= REQUIRED_POWER else f"**{p:.2f}** ≤ {REQUIRED_POWER}"
    lines += [
        "",
        f"The time of a point grows with n to the power {told}, fitted from {first} four-bars on; that of a first "
        f"analysis to the power {power(found, 'first'):.2f}. Degrees of freedom are right in every row: none with the "
        f"driver, one without, 3n redundant equations, without a dense matrix from 100 on.",
    ]
    return lines


# -- the command line ---------------------------------------------------------------------------------------------
def shell(rounds: int) -> float | None:
    """Seconds of `linkwright run` on the sample to its finished page, or None where there is no such verb."""
    listed = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, check=False).stdout
    if " run " not in listed:
        return None
    took = [run_in_a_process() for _ in range(rounds + 1)]
    return float(np.median(took[1:]))  # the first one fills the cache


def run_in_a_process() -> float:
    """Seconds of one `linkwright run` on the sample."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        done = subprocess.run([*COMMAND, "run", str(MODEL)], cwd=folder, capture_output=True, text=True, check=False)
        took = time.perf_counter() - begin
        if done.returncode or not list(Path(folder).rglob("*.html")):
            raise SystemExit(f"linkwright run made no page:\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
    return took


def render_shell(seconds: float | None) -> str:
    if seconds is None:
        return "`linkwright run` is not there yet: not measured."
    told = f"{seconds:.2f} s" if seconds <= REQUIRED_SHELL else f"**{seconds:.2f} s**"
    return f"`linkwright run` on the slider-crank to its finished page, cache filled: {told} ≤ 3 s (wall clock)."


def profile() -> None:
    """Where the time of the sample with 10⁵ points goes."""
    import cProfile
    import pstats

    mech = lw.load(MODEL)
    lw.analyse(mech)
    watch = cProfile.Profile()
    watch.enable()
    lw.analyse(mech, times=np.linspace(0.0, 8.0, 100_000))
    watch.disable()
    pstats.Stats(watch).sort_stats("tottime").print_stats(15)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into benchmarks/RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="one round, ladders up to 100: a try-out")
    parser.add_argument("--profile", action="store_true", help="only show where the time of 10⁵ points goes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    parser.add_argument("--ladder", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--fan", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lw.set_threads(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if options.ladder or options.fan:
        print(json.dumps(one_ladder(options.ladder) if options.ladder else one_fan(options.fan)))
        return 0
    if options.profile:
        profile()
        return 0
    rounds = 1 if options.quick else options.rounds
    load = os.getloadavg()[0]
    speeds, rungs, page = rates(rounds, options.quick), ladders(min(rounds, 3), options.quick), shell(rounds)
    fans = {n: separate("--fan", n) for n in ((10, 20, 40) if options.quick else (50, 100, 200))}
    peer = f"Exudyn {metadata.version('exudyn')}" if find_spec("exudyn") else "Exudyn is not installed and left out"
    head = (
        f"{date.today()}, {cpu()}, {os.cpu_count()} cores, load average {load:.1f} at the start; "
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {metadata.version('scipy')}, {peer}, "
        f"Linkwright {lw.__version__}; one core, processor time, medians of {rounds} rounds "
        f"({min(rounds, 3)} processes a ladder)."
    )
    tables = [*render_rates(speeds), "", *render_ladders(rungs), "", render_fans(fans), "", render_shell(page)]
    text = "\n".join([head, "", *tables])
    print(text)
    if options.json:
        options.json.write_text(json.dumps({"rates": speeds, "ladders": rungs, "fans": fans, "shell": page}, indent=1))
    if options.write:
        replace_section("mechanisms", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
