"""Cases in worker processes: a case that crashes, runs out of memory or takes too long is a row with a reason.

The cases that were under way when a process died are computed anew in parts, in a new process, down to the one that
did it. Nothing else waits for that: other processes have other cases.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.locks import Lock
from linkwright.sweeps.batch import Batch, joined
from linkwright.sweeps.process import Death, WorkerProcess

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
