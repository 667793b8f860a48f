"""Chunks through pools: what is finished is kept, a worker's death costs unfinished chunks, deadly cases are rows."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from chores import DEADLY, logged, plan, square, square_or_die, task

from linkwright.errors import LinkwrightError
from linkwright.sweeps.batch import Batch
from linkwright.sweeps.cluster import Cores, Here, Pool
from linkwright.sweeps.dataset import gathered
from linkwright.sweeps.runner import KILLED, Runner
from linkwright.sweeps.store import Store


def result(runner: Runner, folder: Path) -> Batch:
    return gathered(task(folder), runner.plan, runner.batches)


@pytest.mark.slow
def test_processes_and_this_process_give_the_same(tmp_path: Path) -> None:
    here = Runner(task(tmp_path), plan(20, 6), compute=square)
    here.work(Here(), here.left)
    there = Runner(task(tmp_path), plan(20, 6), compute=square)
    pool = Cores(2)
    there.work(pool, there.left)
    pool.close()
    assert np.array_equal(result(here, tmp_path).arrays["y"], np.arange(20.0) ** 2)
    assert np.array_equal(result(here, tmp_path).arrays["y"], result(there, tmp_path).arrays["y"])
    assert os.getpid() not in {pid for _, pid in logged(tmp_path)[4:]}


def test_a_worker_killed_in_the_middle_costs_only_unfinished_chunks(tmp_path: Path) -> None:
    runner = Runner(task(tmp_path, pause=0.15), plan(12, 1), compute=square)
    finished_before: list[int] = []

    def kill() -> None:
        while runner.done < 4:
            time.sleep(0.01)
        finished_before.extend(runner.batches)
        os.kill(logged(tmp_path)[-1][1], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    pool = Cores(2)
    runner.work(pool, runner.left)
    killer.join()
    pool.close()
    found = result(runner, tmp_path)
    assert np.array_equal(found.arrays["y"], np.arange(12.0) ** 2)
    assert not any(found.reasons)
    begun = [int(first) for first, _ in logged(tmp_path)]
    assert len(finished_before) >= 4
    assert all(begun.count(k) == 1 for k in finished_before)
    assert len(begun) > 12


@pytest.mark.slow
def test_a_case_that_kills_its_workers_is_a_row_with_a_reason(tmp_path: Path) -> None:
    runner = Runner(task(tmp_path), plan(24, 8), compute=square_or_die)
    pool = Cores(2)
    runner.work(pool, runner.left)
    pool.close()
    found = result(runner, tmp_path)
    good = np.arange(24.0) != DEADLY
    assert np.array_equal(found.arrays["y"][good], np.arange(24.0)[good] ** 2)
    assert [k for k, reason in enumerate(found.reasons) if reason] == [int(DEADLY)]
    assert found.reasons[int(DEADLY)] == KILLED


class Mortal(Pool):
    """A pool in this process whose workers die of the deadly value, without any process to start."""

    together = True
    window = 3

    def __init__(self) -> None:
        self.restarts = 0

    def submit(self, function, *arguments):  # type: ignore[no-untyped-def]
        from concurrent.futures import Future

        future: Future[object] = Future()
        if DEADLY in arguments[1]:
            future.set_exception(ChildProcessError("gone"))
        else:
            future.set_result(function(*arguments))
        return future

    def died(self, error: BaseException) -> bool:
        return isinstance(error, ChildProcessError)

    def restart(self) -> None:
        self.restarts += 1


@pytest.mark.parametrize("together", [True, False])
def test_a_deadly_case_is_found_by_halves(tmp_path: Path, together: bool) -> None:
    pool = Mortal()
    pool.together = together
    runner = Runner(task(tmp_path), plan(32, 16), compute=square)
    runner.work(pool, runner.left)
    found = result(runner, tmp_path)
    assert [k for k, reason in enumerate(found.reasons) if reason] == [int(DEADLY)]
    assert np.isnan(found.arrays["y"][int(DEADLY)])
    assert np.isfinite(found.arrays["y"]).sum() == 31
    assert pool.restarts == (3 + 4 if together else 0)  # three times the chunk, then 8, 4, 2 and 1 cases


def test_an_error_that_is_no_cases_own_keeps_what_is_finished(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    given, cases = task(tmp_path), plan(10, 2)
    store = Store.begin(folder, given, cases)

    def fails_later(text: str, values: np.ndarray) -> dict[str, object]:
        if values[0, 0] >= 6:
            raise ImportError("no module named linkwright")
        return square(text, values)

    class There(Here):
        def submit(self, function, *arguments):  # type: ignore[no-untyped-def]
            from concurrent.futures import Future

            future: Future[object] = Future()
            try:
                future.set_result(function(*arguments))
            except Exception as error:
                future.set_exception(error)
            return future

    runner = Runner(given, cases, store, compute=fails_later)
    with pytest.raises(LinkwrightError, match=r"a worker failed: ImportError.*6 of 10 cases .*resume=True"):
        runner.work(There(), runner.left)
    store.release()
    again = Runner(given, cases, Store.begin(folder, given, cases, resume=True), compute=square)
    assert again.loaded == 6
    assert again.left == [3, 4]


def test_a_worker_of_another_version_is_refused(tmp_path: Path) -> None:
    def other(text: str, values: np.ndarray) -> dict[str, object]:
        return {**square(text, values), "version": "0.0.1"}

    runner = Runner(task(tmp_path), plan(2, 2), compute=other)
    with pytest.raises(LinkwrightError, match=r"a worker has Linkwright 0\.0\.1"):
        runner.work(Here(), runner.left)
