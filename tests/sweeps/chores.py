"""What workers do in tests: cases whose answers are known, that are logged, slow, or deadly where asked."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from linkwright.sweeps.plan import Plan, make_plan
from linkwright.sweeps.task import Task

DEADLY = 13.0


def task(folder: Path, pause: float = 0.0) -> Task:
    """A task whose workers square a parameter, and log every chunk in a folder."""
    return Task("", ("x",), (("y", "x^2"),), "kinematic", (0.0,), {"rtol": pause}, {}, str(folder))


def plan(cases: int, chunk: int) -> Plan:
    return make_plan({"x": np.arange(cases, dtype=float)}, chunk=chunk)


def square(text: str, values: Any) -> dict[str, Any]:
    """The square of every value; one log line a call, with the first value and the process."""
    given = json.loads(text)
    with open(Path(given["folder"]) / "log", "a") as log:
        log.write(f"{values[0, 0]:g} {os.getpid()}\n")
    time.sleep(given["settings"]["rtol"])
    return {"arrays": {"y": values[:, 0] ** 2}, "reasons": [""] * len(values), "seconds": 0.0}


def square_or_die(text: str, values: Any) -> dict[str, Any]:
    """The same, but a process that meets the deadly value dies at once."""
    if DEADLY in values:
        os.kill(os.getpid(), signal.SIGKILL)
    return square(text, values)


def logged(folder: Path) -> list[tuple[float, int]]:
    """(first value, process) of every chunk that was begun."""
    file = folder / "log"
    lines = file.read_text().splitlines() if file.exists() else []
    return [(float(line.split()[0]), int(line.split()[1])) for line in lines]
