"""Two checkouts of Linkwright beside each other: the rows of robots.py, mechanisms.py and simulation.py that are ours.

    python benchmarks/versions.py OLD_CHECKOUT [--new CHECKOUT] [--rounds 15] [--only TEXT] [--write] [--json FILE]

Each checkout has a process of its own, warm and with a cache of its own, and the old one has a second one: its times
against the first one's say how far equal code is apart here. The three are asked in turns, and only one is at work at
a time. Calls and inputs are those of this file for both versions, so it uses public names of the package alone. Every
round has processes of its own, since where code and data come to lie in one decides up to a third of a microsecond.

A row is worse if its median ratio new / old is above 1.03 and above the spread of old against old: the factor within
which half of its rounds are. `--write` puts the tables into benchmarks/RESULTS.md.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

from table import cpu, replace_section

HERE = Path(__file__).resolve().parent
MODELS = HERE.parent / "examples" / "models"
ALLOWED = 1.03
SIDES = ("old", "new", "old again")
SELDOM = 5  # a row that takes seconds is measured in every so many rounds alone
#: How rows of four-bars are integrated; steps that are not chosen by tolerances are the same in both versions.
FOUR_BARS = {1: ("rk4", 0.02), 2: ("rk4", 0.02), 5: ("rk4", 0.02), 10: ("rk4", 0.02), 20: ("rk4", 0.02)}
FOUR_BARS |= {40: ("rk4", 0.02), 100: ("rk4", 0.02)}
ADAPTIVE = {2: ("rk45", 1e-6), 20: ("dop853", 1e-6), 40: ("rk45", 1e-6)}
LADDERS = {1: 2000, 10: 2000, 100: 200}  # four-bars → time points

#: Seconds of one call.
Measurement = Callable[[], float]


@dataclass(frozen=True)
class Row:
    """A measurement by name; `make` prepares it, in a process that has imported one of the versions."""

    name: str
    make: Callable[[], Measurement]
    times: int = 3  # measurements in a round, of which the shortest counts; one is of a process of its own
    seldom: bool = False
    all_cores: bool = False
    warm: bool = False  # whether it belongs to the table of warm times


# -- in a worker ------------------------------------------------------------------------------------------------
def benchmark(name: str) -> Any:
    """A benchmark file as a module; `robots` is the name of a module of the tests too."""
    key = f"benchmark_{name}"
    if key not in sys.modules:
        spec = spec_from_file_location(key, HERE / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[key] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[key])
    return sys.modules[key]


def cpu_seconds(call: Callable[[], Any], n: int = 1) -> float:
    """Seconds of this process's work that one of n calls takes."""
    begin = time.process_time()
    for _ in range(n):
        call()
    return (time.process_time() - begin) / n


def robot_rows() -> Iterator[Row]:
    robots = benchmark("robots")

    @cache
    def all_calls(robot: Any) -> dict[str, tuple[Callable[[], Any], int]]:
        mech = robots.mechanism(robot)
        rng = np.random.default_rng(0)
        q = mech.integrate(np.tile(mech.neutral(), (10_000, 1)), rng.standard_normal((10_000, mech.nv)))
        v, tau = rng.standard_normal((2, 10_000, mech.nv))
        calls: dict[str, tuple[Callable[[], Any], int]] = robots.our_calls(mech, q, v, tau)
        return calls

    def calls(robot: Any, work: str) -> Measurement:
        return partial(cpu_seconds, *all_calls(robot)[work])

    def first(robot: Any, *steps: str, cached: bool = False) -> Measurement:
        def seconds() -> float:
            with tempfile.TemporaryDirectory() as empty:
                folder = os.environ["LINKWRIGHT_CACHE"] if cached else empty
                times = robots.first_result(robot, folder, derivatives="derivatives" in steps)
                return float(sum(times[step][1] for step in steps))

        return seconds

    for robot in robots.ROBOTS:
        for work in robots.BOUNDS:
            if not work.endswith(", s"):
                yield Row(f"{robot.name}: {work}", partial(calls, robot, work), times=5)
        # Which modules are imported by `import linkwright` and which by `load` differs.
        name, steps = f"{robot.name}: import, load and first result", ("import", "load")
        yield Row(f"{name}, nothing cached", partial(first, robot, *steps), 1, seldom=True)
        yield Row(f"{name}, cached", partial(first, robot, *steps, cached=True), 1)
        yield Row(f"{robot.name}: derivatives compiled in", partial(first, robot, "derivatives"), 1, seldom=True)


def mechanism_rows() -> Iterator[Row]:
    mechanisms = benchmark("mechanisms")
    import linkwright as lw
    from constraints.ladders import START, fan, ladder

    def points(work: Any, count: int) -> Measurement:
        mech = work.make()
        return lambda: count / mechanisms.by_linkwright(work, mech, count)[0]

    def analysis(make: Callable[[int, Any], Any], size: int, count: int) -> Measurement:
        mech, t = make(size, START + 0.4 * np.sin(lw.TIME)), 0.01 * np.arange(count)
        return partial(cpu_seconds, lambda: lw.analyse(mech, times=t))

    for work in mechanisms.WORKS:
        for count in (10_000, 100_000):
            yield Row(f"{work.name}: {count:,} points", partial(points, work, count), 2)
    for size, count in LADDERS.items():
        yield Row(f"ladder of {size} four-bars: {count:,} points", partial(analysis, ladder, size, count))
        yield Row(f"ladder of {size} four-bars: 2 points", partial(analysis, ladder, size, 2))
    yield Row("fan of 50 four-bars: 12 points", partial(analysis, fan, 50, 12))


def simulation_rows() -> Iterator[Row]:
    simulation = benchmark("simulation")

    def fall(make: Callable[[], Any]) -> Measurement:
        falling = make()
        return lambda: float(simulation.by_linkwright(falling, 10_000)[0])

    def four_bars(n: int, way: Any) -> Measurement:
        problem = simulation.problems.four_bars(n)
        mech = problem.make()
        state = problem.state(mech)
        return lambda: float(simulation.row_by_linkwright(mech, state, n, way).seconds)

    def rollout() -> Measurement:
        arm = simulation.panda()
        q, v = simulation.rollout_states(arm, 10_000)
        return lambda: float(simulation.rollout_by_linkwright(arm, q, v, 100)[0])

    for make in simulation.FALLS:
        yield Row(f"{make.__name__.replace('_', ' ')}: 10⁴ RK4 steps of a fall", partial(fall, make))
    for n, (method, dt) in FOUR_BARS.items():
        way = simulation.Way(method, dt=dt)
        yield Row(f"row of {n} four-bars: {way}", partial(four_bars, n, way))
    for n, (method, rtol) in ADAPTIVE.items():
        way = simulation.Way(method, rtol=rtol)
        yield Row(f"row of {n} four-bars: {way}", partial(four_bars, n, way))
    yield Row("Panda: rollout of 10⁴ states, 100 RK4 steps, all cores", rollout, all_cores=True)


def warm_rows() -> Iterator[Row]:
    """What a second call, and a second process, takes beyond its numbers."""
    mechanisms = benchmark("mechanisms")
    import linkwright as lw

    def simulation() -> Measurement:
        mech = lw.load(MODELS / "double_four_bar.mks")
        return partial(cpu_seconds, lambda: lw.simulate(mech, 1e-3))

    def analysis() -> Measurement:
        mech = lw.load(mechanisms.MODEL)
        return partial(cpu_seconds, lambda: lw.analyse(mech))

    def value() -> Measurement:
        mech, rng = lw.load(MODELS / "double_four_bar.mks"), np.random.default_rng()  # no process has had its values
        lw.simulate(mech.with_parameters(m=rng.uniform(0.9, 1.1)), 1e-3)  # the first of them
        return partial(cpu_seconds, lambda: lw.simulate(mech.with_parameters(m=rng.uniform(0.9, 1.1)), 1e-3))

    yield Row("`lw.simulate` of double_four_bar.mks beyond its steps, second call", simulation, warm=True)
    yield Row("the same with a second new value of a parameter", value, 1, seldom=True, warm=True)
    yield Row("`lw.analyse` of the slider-crank, second call on one object", analysis, warm=True)
    run = mechanisms.run_in_a_process
    yield Row("`linkwright run` of the slider-crank, second process", lambda: run, 1, warm=True)


def all_rows() -> dict[str, Row]:
    rows = (*robot_rows(), *mechanism_rows(), *simulation_rows(), *warm_rows())
    return {row.name: row for row in rows}


def worker(checkout: Path) -> None:
    """Answer names of rows with seconds, one line each, until the input ends."""
    answers, sys.stdout = sys.stdout, sys.stderr
    warnings.simplefilter("ignore")
    import linkwright as lw

    if not Path(lw.__file__).is_relative_to(checkout):
        raise SystemExit(f"this process imported {lw.__file__}, which is not in {checkout}")
    rows = all_rows()
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_setaffinity") else set()
    for line in sys.stdin:
        row = rows[line.rstrip("\n")]
        lw.set_threads(None if row.all_cores else 1)
        if cores:
            os.sched_setaffinity(0, cores if row.all_cores else {max(cores)})
        measurement = row.make()
        if row.times > 1:
            measurement()  # what is not warm yet
        print(min(measurement() for _ in range(row.times)), file=answers, flush=True)


# -- beside each other ------------------------------------------------------------------------------------------
class Worker:
    """A process with one version."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        paths = [str(checkout / "src"), str(HERE), str(HERE.parent / "tests")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "LINKWRIGHT_CACHE": str(folder)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # modules are compiled once, as where they are installed
        command = [sys.executable, str(HERE / "versions.py"), str(checkout), "--worker"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=environment, **pipes)  # type: ignore[call-overload]

    def seconds(self, row: Row) -> float:
        self.process.stdin.write(f"{row.name}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"a process ended in {row.name!r}: its message is above")
        return float(answer)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


@contextmanager
def workers(checkouts: dict[str, Path], caches: Path) -> Iterator[dict[str, Worker]]:
    """A process a side; each version has one cache, which stays."""
    started = {side: Worker(path, caches / side.split()[0]) for side, path in checkouts.items()}
    try:
        yield started
    finally:
        for one in started.values():
            one.close()


@dataclass(frozen=True)
class Result:
    """The seconds of a row's rounds by side."""

    row: Row
    seconds: dict[str, list[float]]

    def ratios(self, side: str) -> Any:
        return np.array(self.seconds[side]) / np.array(self.seconds["old"])

    @property
    def ratio(self) -> float:
        return float(np.median(self.ratios("new")))

    @property
    def spread(self) -> float:
        """The factor within which half of the rounds of old against old are."""
        low, high = np.quantile(self.ratios("old again"), [0.25, 0.75])
        return float(max(high, 1.0 / low))

    @property
    def worse(self) -> bool:
        return self.ratio > max(ALLOWED, self.spread)


def compared(checkouts: dict[str, Path], rows: list[Row], rounds: int) -> list[Result]:
    results = {row.name: Result(row, {side: [] for side in SIDES}) for row in rows}
    with tempfile.TemporaryDirectory() as caches:
        for k in range(-1, rounds):  # the first round fills the caches
            with workers(checkouts, Path(caches)) as started:
                for row in rows:
                    if row.seldom and k % SELDOM:
                        continue
                    for side in np.roll(SIDES, k):  # who comes first has no advantage
                        seconds = started[side].seconds(row)
                        if k >= 0:
                            results[row.name].seconds[side].append(seconds)
            progress = [f"{r.row.name}: {r.ratio:.3f}, spread {r.spread:.3f}" for r in results.values() if k >= 0]
            print(f"round {k + 1} of {rounds}", *progress, sep="\n", file=sys.stderr, flush=True)
    return list(results.values())


def shown(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.2f} µs"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1.0 else f"{seconds:.2f} s"


def render(results: list[Result], versions: dict[str, str], rounds: int) -> str:
    lines = [
        f"{date.today()}, {cpu()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the end; "
        f"Python {platform.python_version()}, NumPy {np.__version__}; old: {versions['old']}, new: {versions['new']}. "
        f"{rounds} rounds, of rows that take seconds {-(-rounds // SELDOM)}; processor time, but on the clock "
        "for `linkwright run` and where all cores work.",
        "",
    ]
    for warm, title in ((False, "row"), (True, "warm")):
        chosen = [result for result in results if result.row.warm == warm]
        if not chosen:
            continue
        lines += [f"| {title} | old | new | new / old | old / old: median, spread |", "| --- |" + " --- |" * 4]
        for result in chosen:
            old, new = (float(np.median(result.seconds[side])) for side in ("old", "new"))
            ratio = f"**{result.ratio:.3f}**" if result.worse else f"{result.ratio:.3f}"
            same = f"{float(np.median(result.ratios('old again'))):.3f}, {result.spread:.3f}"
            lines.append(f"| {result.row.name} | {shown(old)} | {shown(new)} | {ratio} | {same} |")
        lines.append("")
    worse = [result.row.name for result in results if result.worse]
    limit = f"max({ALLOWED}, the spread of old against old)"
    lines.append(f"Worse than {limit}: {'; '.join(worse)}." if worse else f"No row is worse than {limit}.")
    return "\n".join(lines)


def commit(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="a checkout of the version to compare with")
    parser.add_argument("--new", type=Path, default=HERE.parent, help="the other checkout; by default this one")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="the rows whose names have this in them")
    parser.add_argument("--write", action="store_true", help="put the tables into benchmarks/RESULTS.md")
    parser.add_argument("--json", type=Path, help="also write the seconds to this file")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.old.resolve())
        return 0
    old, new = options.old.resolve(), options.new.resolve()
    rows = [row for row in all_rows().values() if options.only in row.name]
    results = compared({"old": old, "new": new, "old again": old}, rows, options.rounds)
    text = render(results, {"old": commit(old), "new": commit(new)}, options.rounds)
    print(text)
    if options.json:
        options.json.write_text(json.dumps({r.row.name: r.seconds for r in results}, indent=1))
    if options.write:
        replace_section("versions", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
