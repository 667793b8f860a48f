"""Runs workers over targets, watches them, and puts together what was found."""

from __future__ import annotations

import gc
import json
import os
import selectors
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.targets import Target
from fuzz.work import SLOW, Shared, warm_up, work

WAIT = 12 * SLOW  # s of wall time after which a worker that waits for something is ended
SLICE = 4.0  # s for which a target is tried before the next has its turn, or less: all have one
KINDS = 40  # findings of a target that are kept; more are counted


@dataclass
class Finding:
    """An input that broke a promise."""

    target: str
    number: int
    outcome: str
    text: str
    file: Path | None = None


@dataclass
class Tally:
    """What came of the inputs of a target."""

    tried: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    worst: float = 0.0
    worst_input: int = 0
    memory: int = 0
    processor: float = 0.0  # s
    findings: list[Finding] = field(default_factory=list)


def fuzz(
    targets: Sequence[Target],
    seed: int,
    *,
    seconds: float | None = None,
    count: int | None = None,
    failures: Path | None = None,
    tell: Callable[[str], None] = print,
) -> dict[str, Tally]:
    """Try every target, in turns until the time is over, or `count` inputs each times its share."""
    tallies = {target.name: Tally() for target in targets}
    wanted = {t.name: None if count is None else max(1, round(count * t.share)) for t in targets}
    end = None if seconds is None else time.monotonic() + seconds
    for target in targets:
        warm_up(target)  # before anything is forked, once
    gc.collect()
    gc.freeze()  # what is there stays, and is not copied when a worker's collector looks at it
    active = list(targets)
    try:
        _rounds(active, tallies, wanted, seed, end, failures, tell)
    except KeyboardInterrupt:
        tell("ended early")
    finally:
        gc.unfreeze()
    return tallies


def _rounds(
    active: list[Target],
    tallies: dict[str, Tally],
    wanted: dict[str, int | None],
    seed: int,
    end: float | None,
    failures: Path | None,
    tell: Callable[[str], None],
) -> None:
    """Turns of all targets, until there is nothing left to try or no time."""
    shares = sum(target.share for target in active)
    each = SLICE if end is None else min(SLICE, (end - time.monotonic()) / shares)
    while active:
        if any(tally.tried for tally in tallies.values()) and end is not None:
            tell(f"{sum(tally.tried for tally in tallies.values()):,} inputs, {end - time.monotonic():.0f} s left")
        for target in list(active):
            tally, most = tallies[target.name], wanted[target.name]
            left = 10**9 if most is None else most - tally.tried
            turn = each * target.share if end is None else min(each * target.share, end - time.monotonic())
            if left <= 0 or (turn <= 0 and tally.tried):
                active.remove(target)
                continue
            before = len(tally.findings)
            _turn(target, seed, left, 3600.0 if end is None else turn, tally)
            for finding in tally.findings[before:]:
                _keep(finding, target, seed, failures, tell)


def _turn(target: Target, seed: int, count: int, seconds: float, tally: Tally) -> None:
    """One worker over one stretch of inputs."""
    shared = Shared()
    reading, writing = os.pipe()
    first = tally.tried
    shared.put(first, False)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            work(target, seed, first, count, seconds, shared, writing)
            code = 0
        except BaseException as error:  # the fault of the fuzzer itself
            os.write(writing, json.dumps({"broken": repr(error)}).encode() + b"\n")
        finally:
            os._exit(code)
    os.close(writing)
    try:
        hung, told = _watch(child, reading, shared)
    except BaseException:  # Ctrl-C: what this worker has tried is not counted
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(child, 0)
    number, trying = shared.get()
    done = None
    for line in told.decode().splitlines():
        what = json.loads(line)
        if "broken" in what:
            raise RuntimeError(f"{target.name}: the fuzzer itself failed: {what['broken']}")
        if "outcome" in what:
            tally.findings.append(Finding(target.name, what["number"], what["outcome"], what["text"]))
        else:
            done = what
    if done is not None:
        tally.tried = done["next"]
        tally.outcomes.update(done["outcomes"])
        if done["worst"] > tally.worst:
            tally.worst, tally.worst_input = done["worst"], done["worst_input"]
        tally.memory = max(tally.memory, done["memory"])
        tally.processor += done["processor"]
        return
    # It ended in the middle of an input.
    if hung:
        outcome, text = "!hang", f"it took more than {SLOW:g} s of processor time, or {WAIT:g} s of waiting"
    else:
        code = os.waitstatus_to_exitcode(status)
        name = signal.Signals(-code).name if code < 0 else f"exit {code}"
        outcome, text = "!crash", f"the process ended by {name}"
    if not trying:
        raise RuntimeError(f"{target.name}: the worker ended ({text}) between inputs, at {number}")
    tally.tried = number + 1
    tally.outcomes[outcome] += 1
    tally.outcomes["(not summed up)"] += number - first
    tally.findings.append(Finding(target.name, number, outcome, text))


def _watch(child: int, reading: int, shared: Shared) -> tuple[bool, bytes]:
    """Collect what a worker reports until it ends; end it where one input takes too long."""
    told = bytearray()
    at, trying = shared.get()
    since, spent = time.monotonic(), _processor(child)
    with selectors.DefaultSelector() as selector:
        selector.register(reading, selectors.EVENT_READ)
        while True:
            if selector.select(0.25):
                piece = os.read(reading, 65536)
                if not piece:
                    os.close(reading)
                    return False, bytes(told)
                told += piece
                continue
            now = shared.get()
            if now != (at, trying):
                (at, trying), since, spent = now, time.monotonic(), _processor(child)
            elif trying and (_processor(child) - spent > 2 * SLOW or time.monotonic() - since > WAIT):
                os.kill(child, signal.SIGKILL)
                os.close(reading)
                return True, bytes(told)


def _processor(process: int) -> float:
    """Processor time of a process, s."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _keep(finding: Finding, target: Target, seed: int, failures: Path | None, tell: Callable[[str], None]) -> None:
    """Write the input to the folder of failures, and say how it is tried again."""
    last = finding.text.strip().splitlines()[-1] if finding.text.strip() else ""
    tell(f"{finding.target} input {finding.number} (seed {seed}): {finding.outcome[1:]}: {last[:200]}")
    if failures is None:
        return
    folder = failures / target.name
    folder.mkdir(parents=True, exist_ok=True)
    if len(list(folder.iterdir())) >= 2 * KINDS:
        return
    finding.file = folder / f"{seed}-{finding.number}"
    finding.file.write_bytes(target.input(seed, finding.number))
    why = finding.file.with_name(f"{finding.file.name}.why")
    why.write_text(f"{finding.outcome}\n{finding.text}\n", encoding="utf-8", errors="replace")
    tell(f"    again: python -m fuzz --again {target.name} {finding.file}")
