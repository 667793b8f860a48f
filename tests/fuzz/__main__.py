"""`python -m fuzz --seconds 60 --seed 1`, with `tests` and `src` on the path; `make fuzz` does it."""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

FAILURES = Path(__file__).parent / "failures"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; the exit code is 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="fuzz", description="Odd inputs for everything that reads.")
    parser.add_argument("--seconds", type=float, help="how long (default 60, where no count is given)")
    parser.add_argument("--count", type=int, help="how many inputs a target, times its share")
    parser.add_argument("--seed", type=int, help="of all inputs (default: a new one, which is printed)")
    parser.add_argument("--only", nargs="*", metavar="TARGET", help="these targets alone")
    parser.add_argument("--failures", type=Path, default=FAILURES, help="where inputs go that are findings")
    parser.add_argument("--again", nargs=2, metavar=("TARGET", "FILE"), help="try one input, and say what comes of it")
    asked = parser.parse_args(arguments)
    # One thread a process, and a cache of its own: before anything is imported that looks at these.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    with tempfile.TemporaryDirectory(prefix="linkwright-fuzz-cache-") as cache:
        os.environ["LINKWRIGHT_CACHE"] = cache
        if asked.again:
            return again(*asked.again)
        return run(asked)


def again(name: str, file: str) -> int:
    """One input from a file, in this process, without limits."""
    from fuzz.targets import BY_NAME
    from fuzz.work import verdict

    target = BY_NAME[name]
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        target.prepare(Path(folder))
        begin = time.process_time()
        outcome, text = verdict(target, Path(file).read_bytes(), Path(folder))
        print(f"{outcome} in {time.process_time() - begin:.3f} s\n{text}")
    return int(outcome.startswith("!"))


def run(asked: argparse.Namespace) -> int:
    from fuzz.driver import fuzz
    from fuzz.targets import BY_NAME, TARGETS

    unknown = [name for name in asked.only or () if name not in BY_NAME]
    if unknown:
        print(f"there is no target {', '.join(unknown)}; there are {', '.join(BY_NAME)}", file=sys.stderr)
        return 2
    targets = [BY_NAME[name] for name in asked.only] if asked.only else list(TARGETS)
    seed = secrets.randbelow(10**9) if asked.seed is None else asked.seed
    seconds = 60.0 if asked.seconds is None and asked.count is None else asked.seconds
    budget = f"{asked.count} inputs a share" if seconds is None else f"{seconds:g} s"
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ended early, it says what was tried
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(f"{len(targets)} targets, {budget}, seed {seed}", flush=True)
    tallies = fuzz(targets, seed, seconds=seconds, count=asked.count, failures=asked.failures, tell=_say)
    print(f"{'target':16} {'inputs':>9} {'ms each':>9} {'worst s':>8} {'MB':>6}  outcomes")
    for name, tally in tallies.items():
        each = 1e3 * tally.processor / max(1, tally.tried)
        outcomes = ", ".join(f"{word} {n}" for word, n in tally.outcomes.most_common(8))
        print(f"{name:16} {tally.tried:9,} {each:9.2f} {tally.worst:8.2f} {tally.memory >> 20:6}  {outcomes}")
    found = sum(len(tally.findings) for tally in tallies.values())
    print(f"{sum(tally.tried for tally in tallies.values()):,} inputs, {found} findings, seed {seed}")
    return int(found > 0)


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
