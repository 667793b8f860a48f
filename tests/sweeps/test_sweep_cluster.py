"""The same study through a Dask scheduler: identical numbers, a worker killed by its pid, no workers, no scheduler."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chores import logged, plan, square, task
from small import written

import linkwright as lw
from linkwright.errors import LinkwrightError
from linkwright.sweeps.cluster import Cluster
from linkwright.sweeps.dataset import gathered
from linkwright.sweeps.runner import Runner

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.compiled  # workers compile as users do, and the numbers are compared to the last bit
#: Cases that go to the end, that stop on the way, and that do not go together.
VARIED = {"length": [1.4, 2.0, 0.5], "rate": lw.normal(0.5, 0.05)}
KEPT = ["top = max(tip.y)", "tip.x"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options, silence_logs=50) as made:
        yield made


def test_a_scheduler_with_two_workers_gives_identical_numbers(cluster: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"draws": 4, "chunk": 3}
    model = written(tmp_path)
    here = lw.sweep(model, VARIED, KEPT, on="local", **options)
    there = lw.sweep(model, VARIED, KEPT, on=cluster.scheduler_address, **options)
    assert here.ok.sum() == 5
    assert len(set(here.reasons)) > 3
    assert there.reasons == here.reasons
    for name in ("top", "tip.x"):
        assert np.array_equal(there[name], here[name], equal_nan=True)


def test_a_worker_killed_by_its_pid_costs_only_its_unfinished_chunks(cluster: Any, tmp_path: Path) -> None:
    runner = Runner(task(tmp_path, pause=0.2), plan(12, 1), compute=square)
    finished: list[int] = []

    def kill() -> None:
        while runner.done < 4:
            time.sleep(0.01)
        finished.extend(runner.batches)
        time.sleep(0.1)
        os.kill(logged(tmp_path)[-1][1], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    pool = Cluster(cluster.scheduler_address)
    runner.work(pool, runner.left)
    killer.join()
    pool.close()
    found = gathered(task(tmp_path), runner.plan, runner.batches)
    assert np.array_equal(found.arrays["y"], np.arange(12.0) ** 2)
    assert not any(found.reasons)
    begun = [int(first) for first, _ in logged(tmp_path)]
    assert len(finished) >= 4
    assert all(begun.count(k) == 1 for k in finished)


def test_a_scheduler_that_does_not_answer_is_told_with_its_address() -> None:
    with pytest.raises(LinkwrightError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1 .*dask scheduler"):
        Cluster("tcp://127.0.0.1:1", patience="0.3s")


def test_functions_do_not_travel(tmp_path: Path) -> None:
    with pytest.raises(LinkwrightError, match="'top' is a function, which stays in this process"):
        lw.sweep(written(tmp_path), {"length": [2.0]}, {"top": lambda sol: sol.energy().max()}, on="tcp://x:1")
