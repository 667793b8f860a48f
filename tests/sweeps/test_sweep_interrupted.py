"""A driver that is killed or interrupted loses nothing that is finished, and another goes on from there."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from chores import logged, plan, square, task

from linkwright.errors import LinkwrightError
from linkwright.sweeps.chunk_runner import Runner
from linkwright.sweeps.store import CHUNKS, Store
from linkwright.sweeps.task import gathered
from linkwright.sweeps.workers import Here

DRIVER = """
import sys
from pathlib import Path
from chores import plan, square_then_wait, task
from linkwright.sweeps.workers import Cores
from linkwright.sweeps.chunk_runner import Runner
from linkwright.sweeps.store import Store
folder = Path(sys.argv[1])
given, cases = task(folder), plan(40, 2)
runner = Runner(given, cases, Store.begin(folder / "study", given, cases), compute=square_then_wait)
pool = Cores(2)
try:
    runner.work(pool, runner.left)
except KeyboardInterrupt:
    pool.close(now=True)
    sys.exit(130)
"""


def stored(folder: Path) -> dict[int, int]:
    """The finished chunks and when they were written."""
    return {int(f.stem): f.stat().st_mtime_ns for f in (folder / "study" / CHUNKS).glob("[0-9]*.npz")}


def driver_stopped(folder: Path, by: signal.Signals) -> int:
    """Start a study in another process, stop it when some chunks are finished; its exit code."""
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    run = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(folder)], env={**os.environ, "PYTHONPATH": paths}, stderr=subprocess.PIPE
    )
    until = time.monotonic() + 300
    while len(stored(folder)) < 5 and run.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    run.send_signal(by)
    _, told = run.communicate(timeout=300)
    assert b"Traceback" not in told
    return run.returncode


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split(")")[-1].split()[0] == "Z"


def assert_gone(workers: set[int]) -> None:
    until = time.monotonic() + 120
    while not all(map(gone, workers)) and time.monotonic() < until:
        time.sleep(0.05)
    assert workers
    assert all(map(gone, workers))


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of POSIX")
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_driver_is_resumed_and_nothing_finished_is_computed_again(tmp_path: Path, by: signal.Signals) -> None:
    code = driver_stopped(tmp_path, by)
    assert code == (-9 if by == signal.SIGKILL else 130)
    assert_gone({pid for _, pid in logged(tmp_path)})  # a killed driver cannot end its workers: they do it themselves
    before, begun = stored(tmp_path), len(logged(tmp_path))
    assert 5 <= len(before) <= 10  # the cases after them wait for ever

    given, cases = task(tmp_path), plan(40, 2)
    store = Store.begin(tmp_path / "study", given, cases, resume=True)
    runner = Runner(task(tmp_path), cases, store, compute=square)
    assert runner.finished == set(before)
    runner.work(Here(), runner.left)
    store.release()

    found = gathered(given, cases, store.stored())
    assert np.array_equal(found.arrays["y"], np.arange(40.0) ** 2)
    after = stored(tmp_path)
    assert {k: after[k] for k in before} == before
    computed_after = {int(first) // 2 for first, _ in logged(tmp_path)[begun:]}
    assert computed_after == set(range(20)) - set(before)


@pytest.mark.skipif(sys.platform == "win32", reason="locks are of POSIX")
def test_two_drivers_do_not_share_a_folder(tmp_path: Path) -> None:
    given, cases = task(tmp_path), plan(4, 2)
    first = Store.begin(tmp_path / "study", given, cases)
    with pytest.raises(LinkwrightError, match="another process works on the study"):
        Store.begin(tmp_path / "study", given, cases, resume=True)
    first.release()
    Store.begin(tmp_path / "study", given, cases, resume=True).release()
