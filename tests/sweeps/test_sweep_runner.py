"""Chunks through pools: what is finished is kept, a worker's death costs unfinished chunks, deadly cases are rows."""

import importlib
import itertools
import os
import signal
import threading
import time
from concurrent.futures import Future
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from chores import (
    CRASHING,
    DEADLY,
    ENDING,
    WAITING,
    logged,
    plan,
    square,
    square_or_die,
    square_when_allowed,
    task,
)

import linkwright as lw
from linkwright.errors import LinkwrightError
from linkwright.sweeps.chunk_runner import KILLED, Runner
from linkwright.sweeps.store import Store
from linkwright.sweeps.task import Batch, gathered
from linkwright.sweeps.workers import CRASHES, DEATHS, Cores, Here, Pool

MODELS = Path(__file__).parents[2] / "examples" / "models"
sweep_module = importlib.import_module("linkwright.sweeps.sweep")


def result(runner: Runner, folder: Path) -> Batch:
    return gathered(task(folder), runner.plan, dict(runner.batches))


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


def waiting(folder: Path) -> list[int]:
    """The processes that are in the middle of a case until "go" is in the folder."""
    return [pid for first, pid in logged(folder) if first >= WAITING]


def test_a_worker_killed_in_the_middle_costs_only_unfinished_chunks(tmp_path: Path) -> None:
    runner = Runner(task(tmp_path), plan(24, 1), compute=square_when_allowed)
    finished_before: list[int] = []

    def kill() -> None:
        while runner.done < 4 or not waiting(tmp_path):
            time.sleep(0.01)
        finished_before.extend(runner.batches)
        os.kill(waiting(tmp_path)[-1], signal.SIGKILL)
        (tmp_path / "go").touch()

    killer = threading.Thread(target=kill)
    killer.start()
    pool = Cores(2)
    runner.work(pool, runner.left)
    killer.join()
    pool.close()
    found = result(runner, tmp_path)
    assert np.array_equal(found.arrays["y"], np.arange(24.0) ** 2)
    assert not any(found.reasons)
    begun = [int(first) for first, _ in logged(tmp_path)]
    assert len(finished_before) >= 4
    assert all(begun.count(k) == 1 for k in finished_before)
    assert len(begun) > 24


def test_a_case_that_ends_its_process_is_a_row_with_a_reason(tmp_path: Path) -> None:
    runner = Runner(task(tmp_path), plan(40, 8), compute=square_or_die)
    pool = Cores(2)
    runner.work(pool, runner.left)
    pool.close()
    batch = result(runner, tmp_path)
    reasons = {
        DEADLY: f"its worker process died each of {DEATHS} times: it was killed, as systems do where memory is short",
        CRASHING: f"its worker process died each of {CRASHES} times: it crashed: SIGSEGV",
        ENDING: f"its worker process died each of {CRASHES} times: it ended with exit code 3",
    }
    assert {k: reason for k, reason in enumerate(batch.reasons) if reason} == reasons
    good = ~np.isin(np.arange(40.0), list(reasons))
    assert np.array_equal(batch.arrays["y"][good], np.arange(40.0)[good] ** 2)


class Mortal(Pool):
    """A pool in this process whose workers die of the deadly value, as a scheduler says it."""

    window = 3

    def __init__(self) -> None:
        self.verdicts: list[int] = []
        self.between = 0

    def submit(self, function, text, values, limit=None):  # type: ignore[no-untyped-def]
        future: Future[object] = Future()
        if DEADLY in values:
            self.verdicts.append(len(values))
            future.set_exception(ChildProcessError("gone"))
        else:
            self.between += bool(self.verdicts)
            future.set_result(function(text, values))
        return future

    def died(self, error: BaseException) -> bool:
        return isinstance(error, ChildProcessError)


def test_a_case_that_takes_whole_workers_with_it_is_found_by_halves_while_others_go_on(tmp_path: Path) -> None:
    pool = Mortal()
    runner = Runner(task(tmp_path), plan(160, 16), compute=square)
    runner.work(pool, runner.left)
    batch = result(runner, tmp_path)
    assert {k: reason for k, reason in enumerate(batch.reasons) if reason} == {int(DEADLY): KILLED}
    assert np.isnan(batch.arrays["y"][int(DEADLY)])
    assert np.isfinite(batch.arrays["y"]).sum() == 159
    assert pool.verdicts == [16, 8, 4, 2, 1, 1]
    assert pool.between >= 9  # the other chunks were not held back


def test_an_error_that_is_no_cases_own_keeps_what_is_finished(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    given, cases = task(tmp_path), plan(10, 2)
    store = Store.begin(folder, given, cases)

    def fails_later(text: str, values: np.ndarray) -> dict[str, object]:
        if values[0, 0] >= 6:
            raise ImportError("no module named linkwright")
        return square(text, values)

    class There(Here):
        def submit(self, function, text, values, limit=None):  # type: ignore[no-untyped-def]
            future: Future[object] = Future()
            try:
                future.set_result(function(text, values))
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


@pytest.mark.parametrize("busy", [True, False])
def test_worker_processes_are_started_for_work_and_not_because_the_machine_is_busy(monkeypatch, busy: bool) -> None:
    """Every look at the clock on the wall is a minute later; that at the CPU time too, where the process is at work."""

    class Started(Exception):
        pass

    def start(*_: object) -> None:
        raise Started

    minutes = itertools.count(0.0, 60.0)
    monkeypatch.setattr(f"{sweep_module.__name__}.cores", lambda: 2)
    monkeypatch.setattr(f"{sweep_module.__name__}.Cores", start)
    monkeypatch.setattr(f"{sweep_module.__name__}.perf_counter", lambda: next(minutes))
    if not busy:
        monkeypatch.setattr(f"{sweep_module.__name__}.process_time", lambda: next(minutes))
    cranks, times, few = {"crank": np.linspace(0.8, 1.1, 8)}, np.linspace(0.0, 0.1, 3), lw.Execution(chunk=2)
    with nullcontext() if busy else pytest.raises(Started):
        study = lw.sweep(MODELS / "four_bar.mks", cranks, "top = max(pen.y)", times=times, execution=few)
        assert not len(study.failed.case)
