"""What workers do in tests: cases whose answers are known, that are logged, slow, or deadly where asked."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from linkwright.errors import LinkwrightError
from linkwright.sweeps.plan import Plan, make_plan
from linkwright.sweeps.task import Task
from linkwright.sweeps.worker_process import COLD
from linkwright.tape.build import preparing

DEADLY, CRASHING, ENDING, WAITING = 13.0, 30.0, 31.0, 20.0


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
    """The same, but a process that meets a deadly value dies at once: killed, by a crash, or by an exit."""
    if DEADLY in values:
        os.kill(os.getpid(), signal.SIGKILL)
    if CRASHING in values:
        ctypes.memset(8, 0, 8)
    if ENDING in values:
        os._exit(3)
    return square(text, values)


def square_or_hang(text: str, values: Any) -> dict[str, Any]:
    """The same, but the deadly value takes for ever, busily."""
    while DEADLY in values:
        pass
    return square(text, values)


def log_and_hang(text: str, values: Any) -> dict[str, Any]:
    """Log, then never end."""
    square(text, values)
    while True:
        time.sleep(1.0)


def logged(folder: Path) -> list[tuple[float, int]]:
    """(first value, process) of every chunk that was begun."""
    file = folder / "log"
    lines = file.read_text().splitlines() if file.exists() else []
    return [(float(line.split()[0]), int(line.split()[1])) for line in lines]


def square_or_wait(text: str, values: Any) -> dict[str, Any]:
    """The same, but the deadly value waits for ever, without any work."""
    while DEADLY in values:
        time.sleep(3600)
    return square(text, values)


def square_then_wait(text: str, values: Any) -> dict[str, Any]:
    """The same, but values from WAITING on wait for ever: whoever stops the study finds it unfinished."""
    outcome = square(text, values)
    while values[0, 0] >= WAITING:
        time.sleep(3600)
    return outcome


def square_when_allowed(text: str, values: Any) -> dict[str, Any]:
    """The same, but values from WAITING on wait until the file "go" is in the folder."""
    outcome = square(text, values)
    while values[0, 0] >= WAITING and not (Path(json.loads(text)["folder"]) / "go").exists():
        time.sleep(0.05)
    return outcome


def square_or_die_in_turn(text: str, values: Any) -> dict[str, Any]:
    """The same as `square_or_die`, but each waits for the other.

    Chunks wait until the deadly value is looked for alone, which leaves the file "alone" in the folder. That one dies
    only when the file "go" is there.
    """
    folder = Path(json.loads(text)["folder"])
    if len(values) == 1 and DEADLY in values:
        (folder / "alone").touch()
        _until(folder / "go")
    elif len(values) > 1 and DEADLY not in values:
        _until(folder / "alone")
    return square_or_die(text, values)


def _until(file: Path) -> None:
    end = time.monotonic() + 300
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.01)


# -- without a task ---------------------------------------------------------------------------------------------
def squares(text: str, values: Any) -> dict[str, Any]:
    """The squares alone."""
    return {"arrays": {"y": values[:, 0] ** 2}, "reasons": [""] * len(values)}


def squares_slowly(text: str, values: Any) -> dict[str, Any]:
    """The squares, by and by."""
    time.sleep(1.0)
    return squares(text, values)


def _work(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def prepare_for_long(text: str, values: Any) -> dict[str, Any]:
    """The squares, after preparation that takes longer than a case may."""
    with preparing():
        _work(COLD + 1.0)
    return squares(text, values)


def count_slowly(text: str, values: Any) -> dict[str, Any]:
    """How many cases there are, which takes 0.1 s of CPU time for each."""
    _work(0.1 * len(values))
    return {"arrays": {"size": np.full(len(values), float(len(values)))}, "reasons": [""] * len(values)}


def print_much(text: str, values: Any) -> dict[str, Any]:
    """The squares, from a function that prints."""
    print("hello " * 1000, flush=True)
    os.write(1, b"hello")
    return squares(text, values)


def divide(text: str, values: Any) -> dict[str, Any]:
    raise ZeroDivisionError("float division by zero")


def refuse(text: str, values: Any) -> dict[str, Any]:
    raise LinkwrightError("no such thing")


def segfault(text: str, values: Any) -> dict[str, Any]:
    ctypes.memset(8, 0, 8)
    return {}


def give_up(text: str, values: Any) -> dict[str, Any]:
    os._exit(3)


def page_faults(text: str, values: Any) -> dict[str, Any]:
    """How many page faults twenty arrays of 8 MB take, one after the other, when there was one before."""
    import resource

    np.ones(1_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(1_000_000)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    return {"arrays": {"faults": np.full(len(values), float(faults))}, "reasons": [""] * len(values)}
