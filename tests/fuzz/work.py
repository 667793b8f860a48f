"""One process that tries inputs: memory limited, every input's time and outcome noted.

What ends the process itself, or never ends, is for the driver to see: the number of the input at hand stands in memory
that both share.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import resource
import signal
import struct
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from fuzz.targets import Target, members

SLOW = 5.0  # s of processor time, that no input may take
MEMORY = 3 * 2**30  # bytes of address space beyond what the process has when it starts
GROWTH = 2**29  # bytes of resident memory, that the process may not grow by
_STATE = struct.Struct("qq")  # number of the input, and 1 while it is tried


class Shared:
    """Which input is being tried; seen by the driver while the worker runs, and after it has died."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _STATE.size)

    def put(self, number: int, trying: bool) -> None:
        _STATE.pack_into(self._memory, 0, number, trying)

    def get(self) -> tuple[int, bool]:
        number, trying = _STATE.unpack_from(self._memory, 0)
        return number, bool(trying)


def verdict(target: Target, data: bytes, folder: Path) -> tuple[str, str]:
    """What came of an input: "read", or the class of our error; and for a finding "!" and its traceback."""
    from linkwright.errors import LinkwrightError

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            target.run(data, folder)
    except LinkwrightError as error:
        outcome = type(error).__name__
        try:
            str(error).encode("utf-8")
        except UnicodeEncodeError:
            return "!UnicodeEncodeError", f"the message of {outcome} cannot be printed: {error!r}"
    except BaseException as error:  # whatever it is, it is a finding; Ctrl-C comes to the driver
        return f"!{type(error).__name__}", "".join(traceback.format_exception(error, limit=-12))
    else:
        outcome = "read"
    for warning in caught:
        if issubclass(warning.category, RuntimeWarning | SyntaxWarning):
            text = f"{warning.filename}:{warning.lineno}: {warning.message}"
            return f"!{warning.category.__name__}", text
    return outcome, ""


def most_resident() -> int:
    """The most bytes of memory that this process has had at a time."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def limit_memory() -> None:
    """No more address space than what is there and MEMORY."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))


def work(target: Target, seed: int, first: int, count: int, seconds: float, shared: Shared, report: int) -> None:
    """Try inputs from `first` on, `count` or until the time is over, and at least one; findings and a summary go to
    `report`.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.disable()  # the driver tells how a worker ended
    outcomes: Counter[str] = Counter()
    worst, worst_input, number = 0.0, first, first
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as place:
        folder = Path(place)
        target.prepare(folder)
        start_memory = peak = most_resident()
        limit_memory()
        end, started = time.monotonic() + seconds, time.process_time()
        for number in range(first, first + count):
            if number > first and time.monotonic() > end:
                break
            shared.put(number, False)
            try:
                data = target.input(seed, number)
            except MemoryError:
                _send(report, {"number": number - 1, "outcome": "!memory", "text": "inputs before hold address space"})
                break
            shared.put(number, True)
            begin = time.process_time()
            outcome, text = verdict(target, data, folder)
            spent = time.process_time() - begin
            shared.put(number, False)
            if spent > worst:
                worst, worst_input = spent, number
            if spent > SLOW and not outcome.startswith("!"):
                outcome, text = "!slow", f"{spent:.1f} s of processor time"
            before, peak = peak, most_resident()
            if peak - start_memory > GROWTH and before - start_memory <= GROWTH and not outcome.startswith("!"):
                outcome, text = "!memory", f"resident memory grew to {peak >> 20} MB from {start_memory >> 20} MB"
            outcomes[outcome] += 1
            if outcome.startswith("!"):
                _send(report, {"number": number, "outcome": outcome, "text": text})
        else:
            number = first + count
    _send(
        report,
        {
            "next": number,
            "outcomes": dict(outcomes),
            "worst": worst,
            "worst_input": worst_input,
            "memory": peak,
            "processor": time.process_time() - started,
        },
    )


def warm_up(target: Target) -> None:
    """Have the corpus, the modules and the tables of grammars in memory: no input is blamed for them."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        target.prepare(Path(folder))
        outcome, text = verdict(target, members(target)[0], Path(folder))
    if outcome.startswith("!"):
        raise RuntimeError(f"the first member of the corpus of {target.name}: {outcome} {text}")


def _send(report: int, what: dict[str, Any]) -> None:
    os.write(report, json.dumps(what).encode() + b"\n")
