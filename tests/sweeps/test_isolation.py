"""Cases in worker processes of their own: too slow, standing still, killed from outside, and what is not charged."""

import itertools
import json
import os
import platform
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chores import DEADLY, plan, square_or_hang, square_or_wait, task

import linkwright as lw
from linkwright.errors import LinkwrightError, SlowCaseWarning
from linkwright.sweeps import chunk_runner as slow
from linkwright.sweeps import worker_process as process
from linkwright.sweeps.chunk_runner import Runner
from linkwright.sweeps.task import gathered
from linkwright.sweeps.worker_process import COLD, Closed, Death, WorkerProcess, receive, send
from linkwright.sweeps.workers import Cores, Here, isolated

posix = pytest.mark.skipif(sys.platform == "win32", reason="CPU timers and signals are of POSIX")
GUARD = 300  # seconds after which something is taken to hang
#: A mass on a spring; a stiff spring makes an explicit method take steps without end.
SPRING = """MODEL spring
SYSTEM (DYNAMIC ANALYSIS, starting time = 0, ending time = 1, print interval = 0.5, method = rk45);
PARAMETER stiffness = 10;
BODY base (ground);
BODY mass (origin = (0, 0, 0), mass = 1, inertia = (1, 1, 1));
TRANSLATIONAL JOINT slide (triad = base, triad = mass);
SPRING s (joint = slide, stiffness = stiffness, rest = 1);
ENDMODEL
"""


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    made = WorkerProcess()
    yield made
    made.close()


def computed(worker: WorkerProcess, function: str, cases: int, limit: float | None = None) -> dict[str, Any]:
    return isolated(worker, f"chores:{function}", "{}", np.arange(cases, dtype=float)[:, None], limit)


@posix
def test_a_case_that_never_ends_is_a_row_with_a_reason_and_the_rest_is_computed(tmp_path: Path) -> None:
    runner = Runner(task(tmp_path), plan(16, 2), compute=square_or_hang, execution=lw.Execution(time_limit=0.2))
    pool = Cores(2)
    runner.work(pool, runner.left)
    pool.close()
    batch = gathered(task(tmp_path), runner.plan, dict(runner.batches))
    assert {k for k, reason in enumerate(batch.reasons) if reason} == {int(DEADLY)}
    assert "more than the limit of 0.2 s of CPU time" in batch.reasons[int(DEADLY)]
    good = np.arange(16.0) != DEADLY
    assert np.array_equal(batch.arrays["y"][good], np.arange(16.0)[good] ** 2)


@posix
def test_a_case_that_stands_still_is_ended_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner(task(tmp_path), plan(15, 1), compute=square_or_wait, execution=lw.Execution(time_limit=0.05))
    pool = Cores(1)
    with monkeypatch.context() as patch:
        patch.setattr(process, "_LEAST_STILL", 3.0)
        runner.work(pool, [int(DEADLY)])
    runner.work(pool, [14])  # with the package's own patience: a busy machine may take a while to do nothing wrong
    pool.close()
    assert runner.batches[int(DEADLY)].reasons[0].startswith("it stood still beyond the limit of 0.05 s a case")
    assert runner.batches[14].reasons == [""]


def test_recording_and_compiling_are_not_charged_to_a_case(worker: WorkerProcess) -> None:
    assert computed(worker, "prepare_for_long", 1, limit=0.2)["reasons"] == [""]
    assert worker.cost("{}") < 0.5 * COLD


def test_a_process_that_uses_cpu_time_does_not_stand_still_however_long_it_takes(
    worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = itertools.count()
    monkeypatch.setattr(process, "_LEAST_STILL", 0.05)
    monkeypatch.setattr(process, "_cpu_ticks", lambda pid: next(asked) if pid == worker.pid else 0)
    assert computed(worker, "squares_slowly", 1, limit=1e-3)["reasons"] == [""]
    assert next(asked) > 2  # it was looked at, in a second


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system shows no CPU time of other processes")
def test_cpu_time_of_a_process_is_what_the_process_says() -> None:
    ticks = [process._cpu_ticks(os.getpid())]
    end = time.process_time() + 0.5
    while time.process_time() < end:
        pass
    ticks.append(process._cpu_ticks(os.getpid()))
    assert ticks[1] - ticks[0] >= 0.4 * os.sysconf("SC_CLK_TCK")
    assert process._cpu_ticks(0) == 0


def test_cases_are_computed_together_as_long_as_that_keeps_within_the_limit_of_one(worker: WorkerProcess) -> None:
    sizes = [computed(worker, "count_slowly", 8, limit=1.0)["arrays"]["size"].tolist() for _ in range(2)]
    assert set(sizes[0]) == {8.0}  # what a case takes is not known yet
    assert max(sizes[1]) <= 5.0  # 0.1 s a case: half of the limit


@posix
def test_a_process_that_somebody_else_kills_costs_no_case(worker: WorkerProcess) -> None:
    computed(worker, "squares", 2)

    def kill() -> None:
        time.sleep(0.3)
        os.kill(worker.pid or 0, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    result = computed(worker, "squares_slowly", 3)
    killer.join()
    assert result["reasons"] == [""] * 3
    assert np.array_equal(result["arrays"]["y"], [0.0, 1.0, 4.0])


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the thresholds are of the GNU C library")
@pytest.mark.parametrize("environment", [{}, {"MALLOC_TRIM_THRESHOLD_": "65536"}], ids=["plain", "as Dask's nanny"])
def test_arrays_of_a_batch_are_not_mapped_anew_for_the_next(
    worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    pages = 20 * 8_000_000 / os.sysconf("SC_PAGE_SIZE")
    assert computed(worker, "page_faults", 1)["arrays"]["faults"][0] < 0.01 * pages


def test_a_process_that_is_closed_is_not_started_again(worker: WorkerProcess) -> None:
    computed(worker, "squares", 2)
    worker.close()
    with pytest.raises(Closed):
        computed(worker, "squares", 2)


def test_what_a_library_prints_is_no_message(worker: WorkerProcess) -> None:
    assert computed(worker, "print_much", 2)["reasons"] == ["", ""]


def test_an_error_of_the_function_is_no_death(worker: WorkerProcess) -> None:
    with pytest.raises(LinkwrightError, match=r"^a worker failed: ZeroDivisionError: float division by zero$"):
        computed(worker, "divide", 2)
    with pytest.raises(LinkwrightError, match=r"^no such thing$"):
        computed(worker, "refuse", 2)


def test_a_process_that_does_not_start_is_an_error_and_no_fault_of_the_cases(
    worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_START", "raise SystemExit(7)")
    with pytest.raises(LinkwrightError, match=r"a worker process \(.*\) ended as it began, with exit code 7"):
        computed(worker, "squares", 2)


@posix
def test_a_process_that_is_killed_as_it_begins_is_started_again(
    worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    once = f"import os, pathlib\nmark = pathlib.Path({str(tmp_path / 'mark')!r})\n"
    once += "if not mark.exists():\n    mark.touch()\n    os.kill(os.getpid(), 9)\n"
    monkeypatch.setattr(process, "_START", once + process._START)
    assert computed(worker, "squares", 2)["reasons"] == ["", ""]
    assert (tmp_path / "mark").exists()


@posix
@pytest.mark.parametrize("function", ["", "squares", "divide"])
def test_a_process_whose_answer_nobody_reads_any_more_ends_without_a_word(function: str) -> None:
    paths = json.dumps([str(Path(__file__).parent), *sys.path])
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", process._START, paths], **pipes) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        assert run.stderr is not None
        if function:
            receive(run.stdout)  # it says that it is ready
        run.stdout.close()
        if function:
            send(run.stdin, {"function": f"chores:{function}", "limit": None, "text": "{}"}, [np.zeros((2, 1))])
        assert run.wait(GUARD) == 0  # though its requests are still open
        assert run.stderr.read() == b""


@posix
def test_deaths_say_what_happened(worker: WorkerProcess) -> None:
    for function, words in (("segfault", "it crashed: SIGSEGV"), ("give_up", "it ended with exit code 3")):
        with pytest.raises(Death, match=words):
            worker.compute(f"chores:{function}", "{}", np.zeros((1, 1)))


def test_slow_cases_are_named_while_they_are_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow, "SLOW", 0.1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")

        def until_named(_: str, values: Any) -> dict[str, Any]:
            until = time.monotonic() + GUARD
            while not caught and time.monotonic() < until:
                time.sleep(0.01)
            return {"arrays": {"y": values[:, 0]}, "reasons": [""] * len(values)}

        runner = Runner(task(tmp_path), plan(2, 2), compute=until_named)
        runner.work(Here(), runner.left)
    texts = [str(w.message) for w in caught if issubclass(w.category, SlowCaseWarning)]
    assert len(texts) == 1
    sentence = r"cases 0 to 1 are not finished after \d+ s; a case that never ends becomes a failed row"
    assert re.match(sentence, texts[0]), texts
    assert "time_limit=..." in texts[0]


@posix
@pytest.mark.compiled
def test_a_simulation_that_never_ends_is_a_failed_row_of_a_study(tmp_path: Path) -> None:
    model = tmp_path / "spring.mks"
    model.write_text(SPRING)
    study = lw.sweep(
        model, {"stiffness": [10.0, 1e16, 20.0]}, "final(mass.z)", execution=lw.Execution(time_limit=0.5, chunk=1)
    )
    assert study.ok.tolist() == [True, False, True]
    assert "more than the limit of 0.5 s of CPU time" in study.reasons[1]
    assert study["final(mass.z)"][0] == pytest.approx((1.0 - 9.81 / 10.0) * (1.0 - np.cos(np.sqrt(10.0))), abs=1e-6)


@pytest.mark.parametrize("limit", [0, -1.0, float("nan"), float("inf"), "5", True])
def test_a_limit_that_is_none_is_refused(tmp_path: Path, limit: Any) -> None:
    model = tmp_path / "spring.mks"
    model.write_text(SPRING)
    with pytest.raises(LinkwrightError, match=r"time_limit, in seconds of CPU time .* must be a (finite )?number"):
        lw.sweep(model, {"stiffness": [10.0]}, "final(mass.z)", execution=lw.Execution(time_limit=limit))


def test_a_limit_and_functions_exclude_each_other(tmp_path: Path) -> None:
    model = tmp_path / "spring.mks"
    model.write_text(SPRING)
    with pytest.raises(LinkwrightError, match="'top' is a function, which stays in this process and cannot be ended"):
        lw.sweep(model, {"stiffness": [10.0]}, {"top": lambda sol: 1.0}, execution=lw.Execution(time_limit=1.0))
