"""Studies through a Dask scheduler: identical numbers, bad cases as rows, workers asked for their version, deaths."""

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chores import DEADLY, log_and_hang, logged, plan, square, square_or_die_in_turn, square_or_hang, task
from small import written

import linkwright as lw
from linkwright.errors import LinkwrightError
from linkwright.sweeps.chunk_runner import Runner
from linkwright.sweeps.cluster import Cluster
from linkwright.sweeps.task import gathered

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.compiled  # workers compile as users do, and the numbers are compared to the last bit
#: Cases that go to the end, that stop on the way, and that do not go together.
VARIED = {"length": [1.4, 2.0, 0.5], "rate": lw.normal(0.5, 0.05)}
KEPT = ["top = max(tip.y)", "tip.x"]
#: In place of Linkwright, in a worker's process: what it might have instead.
OTHERS = {
    "nothing": (
        "import sys; sys.kept = sys.modules['linkwright']; sys.modules['linkwright'] = None",
        "have no Linkwright",
    ),
    "an older version": (
        "import sys, types; sys.kept = sys.modules['linkwright']; sys.modules['linkwright'] = "
        "types.SimpleNamespace(__version__='0.0.9')",
        rf"have Linkwright 0\.0\.9, and this is {lw.__version__}",
    ),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options, silence_logs=50) as made:
        yield made


@pytest.fixture(scope="module")
def client(cluster: Any) -> Iterator[Any]:
    with distributed.Client(cluster, set_as_default=False) as made:
        made.run(exec, "import linkwright")
        yield made


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> lw.Study:
    return lw.sweep(
        written(tmp_path_factory.mktemp("here")),
        VARIED,
        KEPT,
        on="local",
        sampling=lw.Sampling(draws=4),
        execution=lw.Execution(chunk=3),
    )


@pytest.mark.parametrize("on", ["address", "client", "cluster"])
def test_a_scheduler_with_two_workers_gives_identical_numbers(
    cluster: Any, client: Any, here: lw.Study, tmp_path: Path, on: str
) -> None:
    place = {"address": cluster.scheduler_address, "client": client, "cluster": cluster}[on]
    there = lw.sweep(
        written(tmp_path), VARIED, KEPT, on=place, sampling=lw.Sampling(draws=4), execution=lw.Execution(chunk=3)
    )
    assert here.ok.sum() == 5
    assert len(set(here.reasons)) > 3
    assert there.reasons == here.reasons
    for name in ("top", "tip.x"):
        assert np.array_equal(there[name], here[name], equal_nan=True)
    assert client.status == "running"  # what is the user's stays open


def test_a_case_that_crashes_is_looked_for_while_the_others_go_on(cluster: Any, client: Any, tmp_path: Path) -> None:
    before = client.run(os.getpid)
    chunk = int(DEADLY) // 4

    def finished(done: int, _: int) -> None:
        if done:
            (tmp_path / "go").touch()

    runner = Runner(
        task(tmp_path), plan(28, 4), execution=lw.Execution(progress=finished), compute=square_or_die_in_turn
    )
    pool = Cluster(client)
    runner.work(pool, [chunk, *(k for k in runner.left if k != chunk)])
    pool.close()
    batch = gathered(task(tmp_path), runner.plan, dict(runner.batches))
    assert [k for k, reason in enumerate(batch.reasons) if reason] == [int(DEADLY)]
    assert "worker process died each of 3 times" in batch.reasons[int(DEADLY)]
    # Begun first. Which others wait behind it is the scheduler's choice; what its other worker has goes on.
    assert next(iter(runner.batches)) != chunk
    assert client.run(os.getpid) == before  # no worker of the cluster was lost by it


def test_a_case_that_never_ends_is_a_row_with_a_reason(cluster: Any, client: Any, tmp_path: Path) -> None:
    runner = Runner(task(tmp_path), plan(16, 2), compute=square_or_hang, execution=lw.Execution(time_limit=0.2))
    pool = Cluster(client)
    runner.work(pool, runner.left)
    pool.close()
    batch = gathered(task(tmp_path), runner.plan, dict(runner.batches))
    assert [k for k, reason in enumerate(batch.reasons) if reason] == [int(DEADLY)]
    assert batch.reasons[int(DEADLY)].startswith("it took more than the limit of 0.2 s of CPU time a case")
    assert np.isfinite(batch.arrays["y"]).sum() == 15


def test_cases_that_nobody_waits_for_any_more_are_not_computed_on(client: Any, tmp_path: Path) -> None:
    pool = Cluster(client)
    pool.submit(log_and_hang, json.dumps(task(tmp_path).plain()), np.zeros((1, 1)))
    until = time.monotonic() + 60
    while not logged(tmp_path) and time.monotonic() < until:
        time.sleep(0.05)
    ((_, pid),) = logged(tmp_path)
    pool.close(now=True)
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive(pid)


@pytest.mark.parametrize("instead", OTHERS)
def test_workers_without_this_linkwright_are_recognised_before_anything_is_computed(
    cluster: Any, client: Any, tmp_path: Path, instead: str
) -> None:
    code, words = OTHERS[instead]
    wrong = sorted(client.nthreads())[0]
    client.run(exec, code, workers=[wrong])
    try:
        with pytest.raises(LinkwrightError, match=rf"^1 of 2 workers at tcp://.* {words}: {wrong}; install") as raised:
            lw.sweep(written(tmp_path), {"length": [2.0]}, KEPT, on=cluster, store=tmp_path / "study")
    finally:
        client.run(exec, "import sys; sys.modules['linkwright'] = sys.kept", workers=[wrong])
    assert raised.value.__cause__ is None
    assert not (tmp_path / "study").exists()


def test_a_worker_killed_by_its_pid_costs_only_its_unfinished_chunks(cluster: Any, client: Any, tmp_path: Path) -> None:
    runner = Runner(task(tmp_path, pause=0.2), plan(12, 1), compute=square)
    finished: list[int] = []
    victim = sorted(client.run(os.getpid).values())[0]

    def kill() -> None:
        while runner.done < 4:
            time.sleep(0.01)
        finished.extend(runner.batches)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    pool = Cluster(cluster.scheduler_address)
    runner.work(pool, runner.left)
    killer.join()
    pool.close()
    found = gathered(task(tmp_path), runner.plan, dict(runner.batches))
    assert np.array_equal(found.arrays["y"], np.arange(12.0) ** 2)
    assert not any(found.reasons)
    begun = [int(first) for first, _ in logged(tmp_path)]
    assert len(finished) >= 4
    assert all(begun.count(k) == 1 for k in finished)


def test_dask_logs_again_after_a_study(cluster: Any) -> None:
    levels = [logging.getLogger(name).level for name in ("distributed", "distributed.client", "tornado")]
    Cluster(cluster).close()
    with pytest.raises(LinkwrightError):
        Cluster("tcp://127.0.0.1:1", patience="0.1s")
    assert [logging.getLogger(name).level for name in ("distributed", "distributed.client", "tornado")] == levels


def test_a_scheduler_that_does_not_answer_is_told_with_its_address(tmp_path: Path) -> None:
    with pytest.raises(
        LinkwrightError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1 .*dask scheduler"
    ) as e:
        Cluster("tcp://127.0.0.1:1", patience="0.3s")
    assert e.value.__cause__ is None  # Dask's own traceback would be longer than the sentence


def test_a_closed_client_and_other_things_are_refused(cluster: Any, tmp_path: Path) -> None:
    closed = distributed.Client(cluster, set_as_default=False)
    closed.close()
    for on, words in ((closed, "a Dask client that is closed"), (3, "on=3 is no place to run a study")):
        with pytest.raises(LinkwrightError, match=words):
            lw.sweep(written(tmp_path), {"length": [2.0]}, KEPT, on=on, store=tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_functions_do_not_travel(tmp_path: Path) -> None:
    with pytest.raises(LinkwrightError, match="'top' is a function, which stays in this process"):
        lw.sweep(written(tmp_path), {"length": [2.0]}, {"top": lambda sol: sol.energy().max()}, on="tcp://x:1")
