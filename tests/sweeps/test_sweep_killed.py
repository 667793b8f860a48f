"""kill -9 in the middle of a study on a cluster: of a worker, of the scheduler, of the driver.

Nothing that was finished is lost or computed again, nothing hangs, and no process is left behind.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chores import logged, plan, square, task

from linkwright.sweeps.chunk_runner import Runner
from linkwright.sweeps.store import CHUNKS, Store
from linkwright.sweeps.task import gathered
from linkwright.sweeps.workers import Here
from rotation import SEED

pytest.importorskip("distributed")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are of POSIX")
CASES, CHUNK, PAUSE = 60, 2, 0.15
DRIVER = """
import sys
from pathlib import Path
from chores import plan, square_when_allowed, task
from linkwright.errors import LinkwrightError
from linkwright.sweeps.cluster import Cluster
from linkwright.sweeps.chunk_runner import Runner
from linkwright.sweeps.store import Store
folder = Path(sys.argv[1])
given, cases = task(folder, pause=float(sys.argv[3])), plan(int(sys.argv[4]), int(sys.argv[5]))
store = Store.begin(folder / "study", given, cases, resume=True)
runner = Runner(given, cases, store, compute=square_when_allowed)
pool = Cluster(sys.argv[2])
try:
    runner.work(pool, runner.left)
except LinkwrightError as error:
    pool.close(now=True)
    sys.exit(f"error: {error}")
pool.close()
"""


class Machines:
    """A scheduler, two workers and a driver, each a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = open(folder / "dask.log", "wb")  # noqa: SIM115  (closed by `end`)
        self.processes: list[subprocess.Popen[bytes]] = []
        paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
        self.environment = {**os.environ, "PYTHONPATH": paths}
        file = str(folder / "scheduler.json")
        local = ["--host", "127.0.0.1", "--no-dashboard"]
        self.scheduler = self.started(
            "-m", "distributed.cli.dask_scheduler", "--scheduler-file", file, *local, "--port", "0"
        )
        self.address = json.loads(self._written(Path(file)))["address"]
        worker = ("-m", "distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-nanny", *local)
        self.workers = [self.started(*worker), self.started(*worker)]

    def started(self, *arguments: str, stderr: Any = None) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            [sys.executable, *arguments], env=self.environment, stdout=self.log, stderr=stderr or self.log
        )
        self.processes.append(process)
        return process

    def driver(self) -> "subprocess.Popen[bytes]":
        numbers = (str(PAUSE), str(CASES), str(CHUNK))
        return self.started("-c", DRIVER, str(self.folder), self.address, *numbers, stderr=subprocess.PIPE)

    def _written(self, file: Path) -> str:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if file.exists() and file.read_text().rstrip().endswith("}"):
                return file.read_text()
            time.sleep(0.05)
        raise AssertionError((self.folder / "dask.log").read_text())

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
            if process.stderr is not None:
                process.stderr.close()
        self.log.close()


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    made = Machines(tmp_path)
    yield made
    made.end()


def stored(folder: Path) -> dict[int, int]:
    """The finished chunks and when they were written."""
    return {int(f.stem): f.stat().st_mtime_ns for f in (folder / "study" / CHUNKS).glob("[0-9]*.npz")}


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("victim", ["worker", "scheduler", "driver"])
def test_a_kill_at_any_moment_loses_nothing_that_is_finished(tmp_path: Path, machines: Machines, victim: str) -> None:
    rng = np.random.default_rng(SEED)
    driver = machines.driver()
    enough, until = int(rng.integers(1, 8)), time.monotonic() + 300
    while len(stored(tmp_path)) < enough and driver.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(rng.uniform(0.0, 2.0 * PAUSE))
    before = stored(tmp_path)
    begun = len(logged(tmp_path))
    process = {"worker": machines.workers[0], "scheduler": machines.scheduler, "driver": driver}[victim]
    os.kill(process.pid, signal.SIGKILL)
    (tmp_path / "go").touch()  # until here the study could not end, however late this process is
    _, said = driver.communicate(timeout=300)  # it does not hang
    assert b"Traceback" not in said, said.decode()
    assert len(before) >= enough
    if victim == "worker":
        assert (driver.returncode, said) == (0, b"")
    elif victim == "scheduler":
        sentence = f"error: the Dask scheduler at {machines.address} is gone; "
        assert said.decode().startswith(sentence), said.decode()
        assert said.decode().count("\n") == 1
        assert said.decode().rstrip().endswith("resume=True goes on from there")
        assert driver.returncode == 1
    else:
        assert driver.returncode == -signal.SIGKILL
    if victim == "driver":
        again = machines.driver()
        assert again.communicate(timeout=300)[1] == b""
        assert again.returncode == 0

    given, cases = task(tmp_path, pause=PAUSE), plan(CASES, CHUNK)
    store = Store.begin(tmp_path / "study", given, cases, resume=True)
    runner = Runner(task(tmp_path), cases, store, compute=square)
    assert set(before) <= runner.finished
    assert victim == "scheduler" or not runner.left
    runner.work(Here(), runner.left)
    store.release()
    batch = gathered(given, cases, store.stored())
    assert not any(batch.reasons)
    assert np.array_equal(batch.arrays["y"], np.arange(float(CASES)) ** 2)
    after = stored(tmp_path)
    assert {k: after[k] for k in before} == before
    assert not {int(first) // CHUNK for first, _ in logged(tmp_path)[begun:]} & set(before)
    machines.end()
    pids, until = {pid for _, pid in logged(tmp_path)} - {os.getpid()}, time.monotonic() + 60
    while any(map(alive, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    assert pids
    assert not any(map(alive, pids))  # the processes of killed workers end by themselves
