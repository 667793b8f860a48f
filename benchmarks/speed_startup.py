"""How long until there is something to see: a command in a new process, a robot's first result, equations in SymPy."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from importlib.metadata import files
from pathlib import Path
from statistics import median

from speed_table import Measurement, Row, shown_time

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "examples" / "models"
TIMES = 7
FIRST = """
import sys, time
start = time.perf_counter()
import linkwright as lw
imported = time.perf_counter()
import warnings
warnings.simplefilter("ignore")
mech = lw.load(sys.argv[1])
mech.forward_dynamics(mech.neutral(), [0.2] * mech.nv, [0.3] * mech.nv)
print(time.perf_counter() - start, time.perf_counter() - imported)
"""
ROBOTS = {"arm.urdf": "arm.urdf", "UR5": "ur5_robot.urdf", "Panda": "panda.urdf"}


def in_the_wheel(name: str) -> Path:
    """A robot's file in the wheel `example-robot-data`."""
    return next(Path(str(file.locate())) for file in files("example-robot-data") or () if file.name == name)


def process(cache: str, *words: str, folder: str | None = None) -> str:
    """What a new Python process prints; its modules are compiled to bytecode, as where they are installed."""
    environment = {**os.environ, "LINKWRIGHT_CACHE": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, *words]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True).stdout


def run_of_the_sample() -> Measurement:
    """`linkwright run` of the slider-crank to its page, in processes after the first."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        words = ("-m", "linkwright", "run", str(MODELS / "slider_crank.mks"), "-o", folder)
        for _ in range(1 + TIMES):
            start = time.perf_counter()
            process(f"{folder}/cache", *words)
            seconds.append(time.perf_counter() - start)
    value = median(seconds[1:])
    limits = "imports: NumPy, typer with pydantic, rich, h5py and llvmlite are about a third of it"
    return Measurement(value, shown_time(value), limits=limits)


def first_result(robot: str) -> Measurement:
    """Import, load and a first forward dynamics in new processes, each with an empty cache.

    benchmarks/versions.py has the same with a full cache, beside another version.
    """
    path = str(MODELS / "arm.urdf" if robot == "arm.urdf" else in_the_wheel(ROBOTS[robot]))
    whole, later = [], []
    with tempfile.TemporaryDirectory() as folder:
        for k in range(1 + TIMES):
            numbers = process(f"{folder}/{k}", "-c", FIRST, path).split()
            whole.append(float(numbers[0]))
            later.append(float(numbers[1]))
    value = median(whole[1:])
    ours = f"{shown_time(value)}; {shown_time(median(later[1:]))} after the import"
    limits = (
        "imports (NumPy, llvmlite, our own with a hundred dataclasses), about half; LLVM's code generation, a third"
    )
    return Measurement(value, ours, limits=limits)


def closed_form(links: int) -> Measurement:
    """M, h and g of a literal arm in space as SymPy's matrices; imports are no part of it."""
    import flint  # noqa: F401
    import sympy  # noqa: F401

    import linkwright as lw
    from equations import in_space

    seconds = []
    for _ in range(3):
        mech = in_space(links)()
        start = time.process_time()
        eq = lw.equations(mech)
        assert all(part.shape[0] == links for part in (eq.M, eq.h, eq.g))
        seconds.append(time.process_time() - start)
    return Measurement(median(seconds), shown_time(median(seconds)))


ROWS = [
    Row("`linkwright run` of the slider-crank to its page, second process", 0.7, "s", run_of_the_sample, cores=2),
    *(
        Row(f"{robot}: import, load and first forward dynamics, nothing cached", 0.2, "s", partial(first_result, robot))
        for robot in ROBOTS
    ),
    Row("literal 6R arm: M, h and g as SymPy objects", 0.5, "s", partial(closed_form, 6)),
    Row("literal 7R arm: M, h and g as SymPy objects", 2.0, "s", partial(closed_form, 7)),
]
