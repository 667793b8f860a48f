"""Published benchmark problems of multibody dynamics: accuracy reached, what is asked, and CPU time.

    python benchmarks/iftomm.py [--write] [--rounds N]

The problems are those of group A of the IFToMM library of computational benchmark problems, as stated in
`tests/published`. Each is simulated with the largest tolerance of a ladder that keeps what is asked; its CPU time is
the best of the rounds of the whole call of `lw.simulate`, compiled before. Errors are against closed forms and
equations written by hand.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import linkwright as lw
from published import problems, solutions
from table import cpu, replace_section

Floats = NDArray[np.float64]
TOLERANCES = (1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)


@dataclass(frozen=True)
class Task:
    """A problem, its solution by hand, and the largest error of a coordinate and of energy (J) that are taken."""

    problem: problems.Problem
    solution: Callable[[Floats], dict[str, Floats]]
    error: float
    energy: float | None = None


def tasks() -> list[Task]:
    rows = [
        Task(problems.four_bars(n), lambda t, n=n: solutions.four_bars(n, t), 1e-3, 1e-2)  # type: ignore[misc]
        for n in (1, 2, 10, 40)
    ]
    return [
        Task(problems.pendulum(), solutions.pendulum, 1e-4, 5e-5),
        *rows,
        Task(problems.squeezer(), solutions.squeezer, 1e-4),
        Task(problems.bricard(), solutions.bricard, 1e-4, 1e-3),
        Task(problems.governor(), solutions.governor, 1e-5),
    ]


@dataclass(frozen=True)
class Result:
    seconds: float
    steps: int
    error: float
    drift: float


def simulate(task: Task, mech: Any, rtol: float, method: str = "rk45") -> Result:
    q, v = task.problem.state(mech)
    begin = time.process_time()
    sol = lw.simulate(mech, t_end=task.problem.end, q0=q, v0=v, rtol=rtol, method=method)
    took = time.process_time() - begin
    if sol.time[-1] != task.problem.end:
        raise SystemExit(f"{task.problem.name}: {sol.status}")
    wanted = task.solution(np.asarray(sol.time))
    error = max(np.abs(sol.q[:, mech.joints[name].q_slice][:, 0] - x).max() for name, x in wanted.items())
    energy = mech.kinetic_energy(sol.q, sol.v) + mech.potential_energy(sol.q)
    return Result(took, len(sol.time) - 1, float(error), float(np.abs(energy - energy[0]).max()))


def line(task: Task, rounds: int) -> str:
    mech = task.problem.make()
    for rtol in TOLERANCES:
        simulate(task, mech, rtol)
        result = simulate(task, mech, rtol)
        if result.error <= task.error and (task.energy is None or result.drift <= task.energy):
            break
    else:
        raise SystemExit(f"{task.problem.name}: error {result.error:.2g}, energy {result.drift:.2g} J at {rtol:g}")
    best = min([result.seconds, *(simulate(task, mech, rtol).seconds for _ in range(rounds))])
    asked = f"{task.error:.0e}" + ("" if task.energy is None else f", {task.energy:.0e} J")
    got = f"{result.error:.0e}" + ("" if task.energy is None else f", {result.drift:.0e} J")
    cells = [task.problem.name, f"{task.problem.end:g} s", asked, got, f"rk45, {rtol:.0e}", f"{result.steps:,}"]
    return "| " + " | ".join([*cells, f"{best * 1e3:.2f} ms"]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    lines = [
        f"{cpu()}, {os.cpu_count()} cores; Python {platform.python_version()}; {date.today()}.",
        "",
        "| problem | simulated | asked: coordinates (rad, m), energy | reached | by | steps | CPU time |",
        "| --- |" + " --- |" * 6,
    ]
    lines += [line(task, options.rounds) for task in tasks()]
    text = "\n".join(lines)
    print(text)
    if options.write:
        replace_section("iftomm", text)


if __name__ == "__main__":
    main()
