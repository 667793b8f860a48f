"""Where the chunks of a study are computed: in this process, or in worker processes on this machine's cores.

The cases that were under way when a process died are computed anew in parts, in a new process, down to the one that
did it. Nothing else waits for that: other processes have other cases.

`sweeps.cluster` has the third, the workers of a Dask scheduler. All take a function with plain data and give a future.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.locks import Lock
from linkwright.sweeps.task import Batch, joined
from linkwright.sweeps.worker_process import Death, WorkerProcess

CRASHES, DEATHS = 2, 3  # of worker processes on a case before it is given up: of its own doing, or by somebody's
_PARTS = 8  # that cases are divided into when their process has died
_LOOK = 1.0  # seconds between looks whether cases are still wanted


class Processes:
    """Worker processes of this process that have nothing to do now."""

    def __init__(self, idle: float | None = None) -> None:
        self._idle: list[WorkerProcess] = []
        self._all: list[WorkerProcess] = []
        self._lock = Lock(reentrant=False)
        self._patience, self._timer = idle, threading.Timer(0.0, lambda: None)
        self._closed = False

    def compute(
        self,
        function: str,
        text: str,
        values: Floats,
        limit: float | None,
        wanted: Callable[[], bool] | None = None,
    ) -> dict[str, Any]:
        """Cases of a task, as `isolated` does them, in a process that is free; it is ended when they are not wanted."""
        with self._lock:
            self._timer.cancel()
            process = self._idle.pop() if self._idle else WorkerProcess()
            self._all = [*(p for p in self._all if p is not process), process]
            if self._closed:
                process.close()
        finished = threading.Event()
        if wanted is not None:
            threading.Thread(target=_end_unwanted, args=(process, wanted, finished), daemon=True).start()
        try:
            return isolated(process, function, text, values, limit)
        finally:
            finished.set()
            with self._lock:
                if process.closed:
                    self._all.remove(process)
                else:
                    self._idle.append(process)
                if self._patience is not None and not self._closed:
                    self._timer.cancel()
                    self._timer = threading.Timer(self._patience, self.end_idle)
                    self._timer.daemon = True
                    self._timer.start()

    def end_idle(self) -> None:
        """End the processes that have nothing to do."""
        with self._lock:
            ended, self._idle = self._idle, []
            self._all = [process for process in self._all if process not in ended]
        for process in ended:
            process.close()

    def close(self) -> None:
        """End all processes, whatever they do."""
        with self._lock:
            self._closed = True
            processes = list(self._all)
        for process in processes:
            process.close()


def _end_unwanted(process: WorkerProcess, wanted: Callable[[], bool], finished: threading.Event) -> None:
    while not finished.wait(_LOOK):
        if not wanted():
            process.close()
            return


def isolated(process: WorkerProcess, function: str, text: str, values: Floats, limit: float | None) -> dict[str, Any]:
    """What a function makes of a task's cases in a worker process; `limit` is in seconds of CPU time a case.

    Cases that are computed together have the limit of one: beyond it they are computed anew in parts, and only a case
    that is beyond it alone has failed. So they are no more at a time than are likely to take half of it.
    """
    waiting = deque(
        (start, stop, 0) for start, stop in _divided(0, len(values), _at_once(process.cost(text), limit, len(values)))
    )
    parts: dict[int, Batch] = {}
    answer: dict[str, Any] = {}
    seconds = 0.0
    while waiting:
        start, stop, deaths = waiting.popleft()
        try:
            answer = process.compute(function, text, values[start:stop], limit)
        except Death as death:
            if stop - start > 1:
                size = -(-(stop - start) // _PARTS)
                waiting.extendleft((a, b, 1) for a, b in reversed(_divided(start, stop, size)))
            elif death.beyond or deaths + 1 >= (CRASHES if death.crash else DEATHS):
                parts[start] = Batch({}, [_reason(death, deaths + 1)])
            else:
                waiting.appendleft((start, stop, deaths + 1))
            continue
        parts[start] = Batch(answer["arrays"], answer["reasons"])
        seconds += float(answer.get("seconds", 0.0))
    batch = joined([parts[start] for start in sorted(parts)])
    return {**answer, "arrays": batch.arrays, "reasons": batch.reasons, "seconds": seconds}


def _at_once(cost: float, limit: float | None, n: int) -> int:
    if limit is None or not cost:
        return n
    return int(np.clip(limit / (2.0 * cost), 1, n))


def _divided(start: int, stop: int, size: int) -> list[tuple[int, int]]:
    return [(k, min(k + size, stop)) for k in range(start, stop, size)]


def _reason(death: Death, deaths: int) -> str:
    if death.beyond:
        return f"{death.reason}; raise time_limit if it needs longer"
    return f"its worker process died each of {deaths} times: {death.reason}"


#: What computes cases: from a task's text and values to plain data, as `sweeps.case_engine.compute` does.
Compute = Callable[[str, Floats], dict[str, Any]]


class Pool:
    """Takes chunks: at most `window` at a time."""

    window = 1
    busy = 1  # chunks that are computed at once; others wait

    def submit(self, function: Compute, text: str, values: Floats, limit: float | None = None) -> Future[Any]:
        """A future of what the function makes of these cases; `limit` is in seconds of CPU time a case."""
        raise NotImplementedError

    def died(self, error: BaseException) -> bool:
        """Whether an error means that workers died, with all that they had."""
        return False

    def complaint(self) -> str:
        """What keeps this from going on; empty if nothing does."""
        return ""

    def explained(self, error: BaseException) -> str:
        """An error that is not a case's, in words."""
        return f"a worker failed: {type(error).__name__}: {error}"

    def close(self, *, now: bool = False) -> None:
        """Let go of what was taken; `now` with chunks under way."""


class Here(Pool):
    """This process, one chunk after the other."""

    def submit(self, function: Compute, text: str, values: Floats, limit: float | None = None) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(text, values))
        return future


class Cores(Pool):
    """Worker processes of this machine, each watched by a thread of this one."""

    def __init__(self, workers: int) -> None:
        self.workers = self.busy = workers
        self.window = workers + 1
        self._processes = Processes()
        self._threads = ThreadPoolExecutor(workers, "linkwright study")

    def submit(self, function: Compute, text: str, values: Floats, limit: float | None = None) -> Future[Any]:
        return self._threads.submit(self._processes.compute, path_of(function), text, values, limit)

    def close(self, *, now: bool = False) -> None:
        self._threads.shutdown(wait=not now, cancel_futures=True)
        self._processes.close()


def path_of(function: Compute) -> str:
    """Where another process finds a function."""
    return f"{function.__module__}:{function.__qualname__}"
