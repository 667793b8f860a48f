"""Linkwright beside Pinocchio on four robots, its Python calls and its C++ library: one run, one core, medians, ratios.

    python benchmarks/robots.py [--write]      prints the tables; --write puts them into RESULTS.md and the README

Both sides are timed in turns, round by round, so that a noisy machine is noisy to both; a ratio is the median of
the rounds' ratios. The load rows run in fresh processes, with an empty cache and with a filled one. All times are
processor time.
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
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pinocchio_cpp
from table import cpu, replace_section

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import linkwright as lw
from robots import Twin, find

Floats = NDArray[np.float64]
README = Path(__file__).parents[1] / "README.md"


@dataclass(frozen=True)
class Robot:
    name: str
    file: str
    base: str
    locked: tuple[str, ...] = ()


ROBOTS = (
    Robot("Panda (7)", "panda.urdf", "fixed", ("panda_finger_joint1", "panda_finger_joint2")),
    Robot("UR5 (6)", "ur5_robot.urdf", "fixed"),
    Robot("G1 (35)", "g1_29dof_rev_1_0.urdf", "floating"),
    Robot("Talos (38)", "talos_reduced.urdf", "floating"),
)

#: work → the bounds on the ratio (or the seconds) for the two small and the two large robots.
BOUNDS = {
    "forward dynamics, one state, out=": (0.2, 0.3),
    "inverse dynamics, one state": (0.3, 0.4),
    "mass matrix, one state": (0.35, 0.5),
    "forward dynamics, batch of 10⁴": (0.025, 0.05),
    "forward-dynamics derivatives, one state": (0.4, 0.7),
    "derivatives compiled in, s": (10.0, 10.0),
    "load to first result, nothing cached, s": (0.8, 3.0),
    "load to first result, cached, s": (0.1, 0.25),
}


#: What makes so many calls.
Calls = Callable[[int], None]


def from_python(call: Callable[[], Any]) -> Calls:
    """Calls in a loop of Python."""

    def several(n: int) -> None:
        for _ in range(n):
            call()

    return several


def rounds(ours: Calls, theirs: Calls, n: int, times: int = 31) -> tuple[float, float, float]:
    """Median seconds of a call of each, and the median ratio, timed in turns.

    They are seconds of this process's work: on a busy machine the clock shows more for whom takes longer, since others
    come in between.
    """
    ours(1), theirs(1)
    a, b = [], []
    for _ in range(times):
        for calls, column in ((ours, a), (theirs, b)):
            calls(1)  # the other side has just left its own data in the caches
            start = time.process_time()
            calls(n)
            column.append((time.process_time() - start) / n)
    ratios = [x / y for x, y in zip(a, b, strict=True)]
    return float(np.median(a)), float(np.median(b)), float(np.median(ratios))


def twin(robot: Robot) -> Twin:
    import pinocchio as pin

    made = Twin(find(robot.file), robot.base)
    if robot.locked:
        numbers = [made.model.getJointId(name) for name in robot.locked]
        made.model = pin.buildReducedModel(made.model, numbers, pin.neutral(made.model))
        made.data = made.model.createData()
        made.mech = made.mech.lock(dict.fromkeys(robot.locked, 0.0))
        made.number()
    return made


def mechanism(robot: Robot) -> Any:
    """The robot as Linkwright reads it, its fingers held."""
    mech = lw.load(find(robot.file), base=robot.base, mimic="independent")
    return mech.lock(dict.fromkeys(robot.locked, 0.0)) if robot.locked else mech


def our_calls(mech: Any, q: Floats, v: Floats, tau: Floats) -> dict[str, tuple[Callable[[], Any], int]]:
    """What is timed of ours, by the work, and how many calls a round has; states are (10_000, ...)."""
    q1, v1, tau1 = q[0].copy(), v[0].copy(), tau[0].copy()
    out, outs = np.empty(mech.nv), np.empty((len(q), mech.nv))
    # The first call of a method leaves a short way to it on the mechanism.
    mech.forward_dynamics(q1, v1, tau1), mech.inverse_dynamics(q1, v1, tau1), mech.mass_matrix(q1)
    mech.forward_dynamics_derivatives(q1, v1, tau1)
    forward, inverse, mass = mech.forward_dynamics, mech.inverse_dynamics, mech.mass_matrix
    derivatives = mech.forward_dynamics_derivatives
    n = 2000 if mech.nv < 10 else 500
    return {
        "forward dynamics, one state, out=": (lambda: forward(q1, v1, tau1, out=out), n),
        "inverse dynamics, one state": (lambda: inverse(q1, v1, tau1), n),
        "mass matrix, one state": (lambda: mass(q1), n),
        "forward dynamics, batch of 10⁴": (lambda: forward(q, v, tau, out=outs), 1),
        "forward-dynamics derivatives, one state": (lambda: derivatives(q1, v1, tau1), max(n // 5, 50)),
    }


def measure(robot: Robot) -> dict[str, tuple[float, float, float]]:
    import pinocchio as pin

    t = twin(robot)
    model, data = t.model, t.data
    q, v, tau = t.states(10_000)
    pq, pv, pt = t.pin_q(q[0]), t.pin_v(v[0]), t.pin_v(tau[0])
    states = [(t.pin_q(q[k]), t.pin_v(v[k]), t.pin_v(tau[k])) for k in range(len(q))]

    def loop() -> None:
        for a, b, c in states:
            pin.aba(model, data, a, b, c)

    theirs: dict[str, Callable[[], Any]] = {
        "forward dynamics, one state, out=": lambda: pin.aba(model, data, pq, pv, pt),
        "inverse dynamics, one state": lambda: pin.rnea(model, data, pq, pv, pt),
        "mass matrix, one state": lambda: pin.crba(model, data, pq),
        "forward dynamics, batch of 10⁴": loop,
        "forward-dynamics derivatives, one state": lambda: pin.computeABADerivatives(model, data, pq, pv, pt),
    }
    calls = our_calls(t.mech, q, v, tau)
    table = {
        work: rounds(from_python(ours), from_python(theirs[work]), n, 9 if n == 1 else 31)
        for work, (ours, n) in calls.items()
    }
    if pinocchio_cpp.missing():
        return table
    peer = pinocchio_cpp.Robot(find(robot.file), robot.base, robot.locked, (pq, pv, pt))
    peer.check(model, data)
    for work in pinocchio_cpp.WORKS:
        ours, n = calls[work]
        table[work + BESIDE_CPP] = rounds(from_python(ours), partial(peer.run, work), n)
    peer.close()
    return table


#: What the names of rows end with whose peer is Pinocchio's C++ library.
BESIDE_CPP = ", beside C++"

#: The steps of a fresh process, in order; it prints the seconds of each, on the clock and of work.
STEPS = ("import", "load", "derivatives")
FIRST = """
import sys, time, warnings
import numpy as np
path, base, derivatives, *locked = sys.argv[1:]
clocks = lambda: (time.perf_counter(), time.process_time())
times = [clocks()]
import linkwright as lw
times.append(clocks())
warnings.simplefilter("ignore")
mech = lw.load(path, base=base)
if locked:
    mech = mech.lock(dict.fromkeys(locked, 0.0))
x = np.zeros(mech.nv)
mech.forward_dynamics(mech.neutral(), x, x)
times.append(clocks())
if derivatives == "yes":
    mech.forward_dynamics_derivatives(mech.neutral(), x, x)
times.append(clocks())
for (a, b), (c, d) in zip(times, times[1:]):
    print(c - a, d - b)
"""


def first_result(robot: Robot, cache: str, *, derivatives: bool = False) -> dict[str, tuple[float, float]]:
    """Seconds (on the clock, of work) to import, to load and have a first result, and to have first derivatives.

    In a new process with this cache.
    """
    environment = {**os.environ, "LINKWRIGHT_CACHE": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    given = [str(find(robot.file)), robot.base, "yes" if derivatives else "no", *robot.locked[:1]]
    command = [sys.executable, "-c", FIRST, *given]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    times = [line.split() for line in done.stdout.splitlines()]
    return {step: (float(wall), float(work)) for step, (wall, work) in zip(STEPS, times, strict=True)}


def loading(robot: Robot, times: int = 5) -> dict[str, tuple[float, float, float]]:
    """Seconds from `load` to the first forward dynamics in a new process, without and with a cache; of compiling."""
    empty, filled = [], []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            for seconds in (empty, filled):
                seconds.append(first_result(robot, folder)["load"][1])
    with tempfile.TemporaryDirectory() as folder:
        compiled = first_result(robot, folder, derivatives=True)["derivatives"][1]
    return {
        "derivatives compiled in, s": (compiled,) * 3,
        "load to first result, nothing cached, s": (float(np.median(empty)),) * 3,
        "load to first result, cached, s": (float(np.median(filled)),) * 3,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/RESULTS.md")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lw.set_threads(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    results = {robot.name: {**measure(robot), **loading(robot)} for robot in ROBOTS}
    text = render(results)
    print(text)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    if options.write:
        replace_section("robots", text)
        replace_section("speed table", in_brief(results), README)
    return 0


def versions() -> str:
    import pinocchio as pin

    return (
        f"{date.today()}, {cpu()}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"Pinocchio {pin.__version__}, Linkwright {lw.__version__}"
    )


Results = dict[str, dict[str, tuple[float, float, float]]]


def render(results: Results) -> str:
    """The table of RESULTS.md."""
    lines = [
        f"{versions()}; one core, processor time. Ratios to Pinocchio's Python call, or to its C++ library called in "
        "C++ (in brackets: our time, called from Python, and theirs); bold where the bound is not met.",
        "",
        "| work | " + " | ".join(results) + " |",
        "| --- |" + " --- |" * len(results),
    ]
    for work, bounds in BOUNDS.items():
        cells = []
        for name, rows in results.items():
            bound = bounds[0 if name in (ROBOTS[0].name, ROBOTS[1].name) else 1]
            ratio = rows[work][2]
            text = f"{ratio:.2f} s" if work.endswith(", s") else pair(rows[work])
            mark = "**" if ratio > bound else ""
            cells.append(f"{mark}{text}{mark} ≤ {bound:g}")
        lines.append(f"| {work.removesuffix(', s')} | " + " | ".join(cells) + " |")
    for work in (name + BESIDE_CPP for name in pinocchio_cpp.WORKS):
        cells = [pair(rows[work]) if work in rows else "not measured" for rows in results.values()]
        lines.append(f"| {work} | " + " | ".join(cells) + " |")
    if reason := pinocchio_cpp.missing():
        lines += ["", f"Pinocchio's C++ library is not measured: {reason}."]
    return "\n".join(lines)


def pair(row: tuple[float, float, float]) -> str:
    ours, theirs, ratio = row
    return f"{ratio:.3f} ({show(ours)} / {show(theirs)})"


def in_brief(results: Results) -> str:
    """The table of the README: bold where we are faster."""
    lines = ["| work | " + " | ".join(results) + " |", "| --- |" + " --- |" * len(results)]
    for work in (*BOUNDS, *(name + BESIDE_CPP for name in pinocchio_cpp.WORKS)):
        cells = []
        for rows in results.values():
            if work not in rows:
                continue
            ours, _, ratio = rows[work]
            mark = "**" if ratio < 1.0 else ""
            cells.append(f"{ratio:.2f} s" if work.endswith(", s") else f"{mark}{ratio:.3f}{mark} ({show(ours)})")
        if cells:
            lines.append(f"| {work.removesuffix(', s')} | " + " | ".join(cells) + " |")
    text = (
        f"In brackets: our time a call. {versions()}. [All numbers, and what limits them](benchmarks/RESULTS.md); "
        "`make bench` measures on your machine. Every robot of `example-robot-data`, fixed and floating, [agrees with "
        "Pinocchio](docs/agreement.md) to 1e-10 (derivatives 1e-8)."
    )
    return "\n".join([*lines, "", text])


def show(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"


if __name__ == "__main__":
    sys.exit(main())
