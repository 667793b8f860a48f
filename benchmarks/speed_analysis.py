"""The rows of `speed.py` on kinematic analysis and parameter studies.

The peer of a planar motion is pylinkage with Numba, in an environment of its own whose Python is named by
LINKWRIGHT_PYLINKAGE; without it the row has no peer.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import linkwright as lw
from linkwright.constraints.kinematics import Kinematics
from linkwright.kernels.variant import set_threads
from linkwright.sweeps.case_engine import Engine
from linkwright.sweeps.task import make_task
from speed_table import Measurement, Row, interleaved, seconds_of, shown_time

HERE = Path(__file__).resolve().parent
MODELS = HERE.parent / "examples" / "models"
POINTS = 20_000


def _motion(name: str, end: float) -> Callable[[], float]:
    """Points a second of one motion, with position, velocity and acceleration of every body."""
    mech, times = lw.load(MODELS / f"{name}.mks"), np.linspace(0.0, end, POINTS)

    def motion() -> None:
        solution = lw.analyse(mech, times=times)
        for body in mech.description.body_names:
            solution.position(body), solution.velocity(body), solution.acceleration(body)

    return lambda: POINTS / seconds_of(motion, least=0.05)


def planar_motion() -> Measurement:
    """One motion of the planar four-bar."""
    set_threads(1)
    ours = _motion("four_bar", 2.0 * np.pi)()
    python, peer = os.environ.get("LINKWRIGHT_PYLINKAGE"), "–"
    if python:
        command = [python, str(HERE / "pylinkage_four_bar.py"), str(POINTS)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peer = f"pylinkage (Numba): {POINTS / float(done.stdout):.2g} points/s"
    return Measurement(ours, f"{ours:.2g} points/s", peer, "the copies of positions that a caller is given")


def spatial_motion() -> Measurement:
    """One motion of the slider-crank in space, whose rod may spin."""
    set_threads(1)
    ours = _motion("slider_crank", 8.0)()
    why = "the operations of a step: rates of least norm are found for all coordinates at once, and differentiated"
    return Measurement(ours, f"{ours:.2g} points/s", limits=why)


def _four_bars(points: int, cases: int) -> tuple[Engine, np.ndarray]:
    times = np.linspace(0.0, 2.0 * np.pi, points)
    task = make_task(MODELS / "four_bar.mks", ("crank", "coupler"), ["reach = max(pen.x)"], times=times)
    values = np.random.default_rng(0).uniform([0.8, 2.8], [1.1, 3.2], (cases, 2))
    return Engine(task), values


def planar_study() -> Measurement:
    """10⁴ four-bars of 721 points."""
    set_threads(1)
    texts, rate = [], 0.0
    for points in (181, 721):
        engine, values = _four_bars(points, 10_000)
        assert not any(engine.run(values).reasons)
        rate = points * len(values) / seconds_of(lambda e=engine, x=values: e.run(x), least=0.05, times=5)
        texts.append(f"{rate:.2g} points/s at {points} points a case")
    why = "the operations of the steps; then the assembly of each case, with the poses of bodies as unknowns"
    return Measurement(rate, "; ".join(texts), limits=why)


def first_results() -> Measurement:
    """`lw.sweep` of 10⁴ four-bars from the call to the study."""
    begin, used = time.perf_counter(), time.process_time()
    lw.sweep(
        MODELS / "four_bar.mks",
        {"crank": np.linspace(0.8, 1.1, 100), "coupler": np.linspace(2.8, 3.2, 100)},
        outputs={"reach": "max(pen.x)"},
    )
    seconds, used = time.perf_counter() - begin, time.process_time() - used
    why = "imports, longer where Python may not keep compiled modules; all chunks are computed in one process"
    return Measurement(seconds, f"{shown_time(seconds)}, {shown_time(used)} of this process's work", limits=why)


def few_times() -> Measurement:
    """A case of the slider-crank at 9 and 17 points, as a part of its time at 41."""
    set_threads(1)
    values = np.random.default_rng(1).uniform([5.0, 9.5, 2.0], [7.0, 11.0, 3.0], (1000, 3))
    calls = []
    for points in (41, 17, 9):
        names = ("crank_length", "rod_length", "stroke")
        times = np.linspace(0.0, 8.0, points)
        engine = Engine(make_task(MODELS / "slider_crank_parameters.mks", names, ["range(block.x)"], times=times))
        calls.append(lambda e=engine: e.run(values))
    seconds = interleaved(calls, least=0.05, times=5)
    ours = ", ".join(f"{shown_time(x / len(values))} at {n}" for x, n in zip(seconds, (41, 17, 9), strict=True))
    why = "steps that are tried before it is known how many parts they need"
    return Measurement(max(seconds[1:]) / seconds[0], ours, limits=why)


def _hub(count: int) -> str:
    """Four-bars on one crank, as a model."""
    lines = [
        "MODEL hub",
        "BODY base (ground);",
        "BODY crank (origin = (0, 0, 0), f = (1, 0.5, 0));",
        "TRIAD left (associated body = base, origin = (0, 0, 0));",
        "REVOLUTE JOINT a (triad = left, triad = crank);",
        "DRIVER motor (a.angle = 30 deg + TIME);",
        "TRIAD tip (associated body = crank, origin = (1, 0, 0));",
    ]
    for k, (apart, coupler) in enumerate(np.random.default_rng(0).uniform(3.0, 3.2, (count, 2)).tolist()):
        lines += [
            f"BODY c{k} (origin = (1, 0.5, 0), f = (1, 0.7, 0));",
            f"BODY r{k} (origin = ({apart}, 0, 0), f = (0, 1, 0));",
            f"TRIAD right{k} (associated body = base, origin = ({apart}, 0, 0));",
            f"TRIAD end{k} (associated body = c{k}, origin = ({coupler}, 0, 0));",
            f"TRIAD top{k} (associated body = r{k}, origin = (2.5, 0, 0));",
            f"REVOLUTE JOINT b{k} (triad = tip, triad = c{k});",
            f"REVOLUTE JOINT e{k} (triad = end{k}, triad = top{k});",
            f"REVOLUTE JOINT d{k} (triad = right{k}, triad = r{k});",
        ]
    return "\n".join([*lines, "ENDMODEL"])


def _seconds_of_points(count: int) -> float:
    """Seconds of a point of so many four-bars on one crank."""
    file = Path(os.environ.get("TMPDIR", "/tmp")) / f"hub-{os.getpid()}.mks"
    file.write_text(_hub(count))
    try:
        d = lw.load(file).description
    finally:
        file.unlink()

    def motion(points: int) -> Callable[[], object]:
        return lambda: Kinematics(d).motion(np.linspace(0.0, 0.005 * (points - 1), points))

    few, many = interleaved([motion(11), motion(91)], least=0.05, times=5)
    return (many - few) / 80.0


def many_joints() -> Measurement:
    """Seconds of a point of 200 four-bars on one crank."""
    set_threads(1)
    less, more = _seconds_of_points(50), _seconds_of_points(200)
    power = np.log(more / less) / np.log(4.0)
    ours = f"{shown_time(more)} a point, power {power:.2f}"
    why = "the elimination; the crank in pieces has small pivots, so that branches are compared at each point"
    return Measurement(more * 1e3, ours, limits=why)


ROWS = [
    Row("planar four-bar, lw.analyse of 2·10⁴ points", 5e6, "points/s", planar_motion, at_least=True),
    Row("slider-crank in space, lw.analyse of 2·10⁴ points", 1e6, "points/s", spatial_motion, at_least=True),
    Row("study of 10⁴ planar four-bars, one number a case", 2e7, "points/s", planar_study, at_least=True),
    Row("lw.sweep of 10⁴ four-bars, whole study", 2.0, "s", first_results, cores=2),
    Row("study with fewer times (17, 9), a case", 1.0, "× a case with 41 times", few_times),
    Row("200 four-bars on one crank, a point", 2.0, "ms", many_joints),
]
