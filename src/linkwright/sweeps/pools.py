"""Where the chunks of a study are computed: in this process, or in worker processes on this machine's cores.

`sweeps.cluster` has the third, the workers of a Dask scheduler. All take a function with plain data and give a future.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from linkwright.base.arrays import Floats
from linkwright.sweeps.isolation import Processes

#: What computes cases: from a task's text and values to plain data, as `sweeps.work.compute` does.
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


def cores() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
