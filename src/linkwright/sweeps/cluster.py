"""Where the chunks of a study are computed: in this process, on this machine's cores, or by a Dask scheduler.

All three are executors: they take a function with plain data and give a future. Which workers are gone, and what of
that is told how, differs; `Pool` says it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import types
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from linkwright.errors import LinkwrightError


class Pool:
    """Takes chunks: at most `window` at a time."""

    #: Whether one worker's death takes all chunks with it that are under way.
    together = False
    window = 1

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """A future of the function's value."""
        raise NotImplementedError

    def died(self, error: BaseException) -> bool:
        """Whether an error means that a worker is gone."""
        return False

    def restart(self) -> None:
        """Go on after a worker's death."""

    def complaint(self) -> str:
        """What keeps this from going on, if it has been so for long; else nothing."""
        return ""

    def explained(self, error: BaseException) -> str:
        """An error that is not a case's, in words."""
        return f"a worker failed: {type(error).__name__}: {error}"

    def close(self, *, now: bool = False) -> None:
        """Let go of what was taken; `now` with chunks under way."""


class Here(Pool):
    """This process, one chunk after the other."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*arguments))
        return future


class _Quiet(SpawnProcess):
    """A new process that does not import the user's script: a study needs nothing of it, and it may have no guard."""

    @staticmethod
    def _Popen(process: Any) -> Any:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            return SpawnProcess._Popen(process)
        finally:
            sys.modules["__main__"] = main


class _Context(SpawnContext):
    Process = _Quiet


def _begin() -> None:
    """In a new process: interrupts are the driver's to handle, and a process whose driver is gone goes too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Cores(Pool):
    """Processes of this machine."""

    together = True

    def __init__(self, workers: int) -> None:
        self.workers, self.window = workers, workers + 1
        self._start()

    def _start(self) -> None:
        self._executor = ProcessPoolExecutor(self.workers, mp_context=_Context(), initializer=_begin)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        try:
            return self._executor.submit(function, *arguments)
        except BrokenProcessPool as error:  # found out between two chunks
            future: Future[Any] = Future()
            future.set_exception(error)
            return future

    def died(self, error: BaseException) -> bool:
        return isinstance(error, BrokenProcessPool)

    def restart(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._start()

    def close(self, *, now: bool = False) -> None:
        processes = list((getattr(self._executor, "_processes", None) or {}).values())
        self._executor.shutdown(wait=not now, cancel_futures=True)
        for process in processes if now else ():
            process.terminate()


class Cluster(Pool):
    """The workers of a Dask scheduler."""

    def __init__(self, on: Any, patience: str = "10s") -> None:
        try:
            import distributed
        except ImportError:
            text = "a study on a cluster needs Dask: pip install linkwright[cluster]"
            raise LinkwrightError(text) from None
        self._killed: type[BaseException] = distributed.KilledWorker
        self._futures: weakref.WeakSet[Any] = weakref.WeakSet()
        self._idle = 0
        self._own = isinstance(on, str)
        self.address = on if isinstance(on, str) else on.scheduler.address
        try:
            connect: Any = distributed.Client
            self._client: Any = connect(on, timeout=patience, set_as_default=False) if self._own else on
        except (OSError, ValueError, TypeError) as error:
            text = f"no Dask scheduler answers at {on} ({' '.join(str(error).split())}); start one with"
            raise LinkwrightError(f"{text} 'dask scheduler', or use on='local'") from error

    @property
    def window(self) -> int:  # type: ignore[override]
        """Two chunks for every thread that there is now: workers may come and go."""
        return max(2, 2 * sum(self._client.nthreads().values())) if self._alive() else 2

    def _alive(self) -> bool:
        return bool(self._client.status == "running")

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Not through Dask's own executor: it leaves results with the workers, to be computed again if one dies."""
        taken: Future[Any] = Future()

        def finished(future: Any) -> None:
            try:
                found = future.result()
                future.release()
                taken.set_result(found)
            except BaseException as error:
                taken.set_exception(error)

        future = self._client.submit(function, *arguments, pure=False)
        future.add_done_callback(finished)
        self._futures.add(future)
        return taken

    def died(self, error: BaseException) -> bool:
        return isinstance(error, self._killed)

    def complaint(self) -> str:
        if not self._alive():
            return f"the Dask scheduler at {self.address} is gone"
        self._idle = 0 if self._client.nthreads() else self._idle + 1
        return f"the Dask scheduler at {self.address} has had no workers for a while" if self._idle > 12 else ""

    def explained(self, error: BaseException) -> str:
        if isinstance(error, ImportError):
            return f"the workers at {self.address} lack a package ({error}); install Linkwright there, the same version"
        if isinstance(error, CancelledError):
            return f"the Dask scheduler at {self.address} has cancelled chunks, or is gone"
        return f"a worker at {self.address} failed: {type(error).__name__}: {error}"

    def close(self, *, now: bool = False) -> None:
        if now and self._alive():
            self._client.cancel(list(self._futures))
        if self._own:
            self._client.close()


def cores() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
