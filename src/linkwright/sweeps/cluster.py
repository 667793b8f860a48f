"""The workers of a Dask scheduler as a place for a study's chunks: asked what they have, watched while they work."""

from __future__ import annotations

import logging
import pkgutil
import threading
import weakref
from concurrent.futures import CancelledError, Future
from time import monotonic
from typing import Any

from linkwright import __version__
from linkwright.base.arguments import first_few
from linkwright.base.arrays import Floats
from linkwright.errors import LinkwrightError, ModelError
from linkwright.sweeps.workers import Compute, Pool, Processes, path_of

_LOOK = 1.0  # seconds between looks at who works for a scheduler
_SILENCE = 60.0  # seconds without workers, or without an answer, after which a study gives up
_IDLE = 30.0  # seconds after which a worker ends a process without work
_ANSWER = 30.0  # seconds for workers to say what they have
#: Who writes pages of tracebacks when a connection is lost; what is lost is in the error that a study ends with.
_LOGGERS = (
    *("distributed", "distributed.client", "distributed.core", "distributed.comm", "distributed.comm.tcp"),
    *("distributed.batched", "distributed.utils", "tornado", "tornado.application", "asyncio"),
)


class Cluster(Pool):
    """The workers of a scheduler, which is given as its address, as a Dask client, or as a Dask cluster."""

    def __init__(self, on: Any, patience: str = "10s") -> None:
        try:
            import distributed  # weight: distributed
        except ImportError:
            text = 'a study on a cluster needs Dask: pip install "linkwright[cluster]"'
            raise LinkwrightError(text) from None
        self._killed: type[BaseException] = distributed.KilledWorker
        self._futures: weakref.WeakSet[Any] = weakref.WeakSet()
        self._threads: dict[str, int] = {}
        self._asked: set[str] = set()
        self._wrong = ""
        self._ended = threading.Event()
        self._quiet = _Quiet()
        self._owns_client = not isinstance(on, distributed.Client)
        self._client: Any = on
        try:
            if getattr(on, "asynchronous", False):
                kind = "cluster" if self._owns_client else "client"
                raise ModelError(f"on=... is an asynchronous Dask {kind}; give one made without asynchronous=True")
            if self._owns_client:
                self._client = _connected(distributed, on, patience)
            self._begin()
        except BaseException:
            self.close()
            raise
        threading.Thread(target=self._watch, daemon=True).start()

    def _begin(self) -> None:
        if not self._alive():
            raise ModelError("on=... is a Dask client that is closed; give one that is connected, or an address")
        self.address = str(self._client.scheduler.address)
        self._seen = self._heard = monotonic()  # when there were workers, and when the scheduler answered
        self._look()
        if self._wrong:
            raise LinkwrightError(self._wrong)

    @property
    def window(self) -> int:  # type: ignore[override]
        """Two chunks for every thread that there is now: workers may come and go."""
        return max(2, 2 * sum(self._threads.values()))

    @property
    def busy(self) -> int:  # type: ignore[override]
        """A chunk for every thread."""
        return sum(self._threads.values())

    def _alive(self) -> bool:
        return getattr(self._client, "status", "") == "running"

    # -- who works there ------------------------------------------------------------------------------------
    def _watch(self) -> None:
        """In a thread of its own: a scheduler that does not answer stops nothing but this."""
        while not self._ended.wait(_LOOK):
            self._look()

    def _look(self) -> None:
        try:
            self._threads = dict(self._client.nthreads())
        except Exception:  # the connection is lost, or being lost: `complaint` says so if it stays so
            return
        self._heard = monotonic()
        if self._threads:
            self._seen = self._heard
        fresh = sorted(set(self._threads) - self._asked)
        if fresh:
            self._asked |= set(fresh)
            self._wrong = self._wrong or self._fault(self._versions(fresh))

    def _versions(self, workers: list[str]) -> dict[str, Any]:
        """Which Linkwright each worker has, or the exception that it met; without those that say nothing in time."""
        answers: dict[str, Any] = {}

        def ask() -> None:
            try:  # by a function of Python's own, which workers without Linkwright have too
                answers.update(
                    self._client.run(pkgutil.resolve_name, "linkwright:__version__", workers=workers, on_error="return")
                )
            except Exception:  # they are gone
                return

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(_ANSWER)
        return {worker: answer for worker, answer in answers.items() if not isinstance(answer, OSError)}

    def _fault(self, answers: dict[str, Any]) -> str:
        """What is wrong with the workers' Linkwright; empty if nothing is."""
        lacking = [worker for worker, answer in answers.items() if isinstance(answer, Exception)]
        if lacking:
            error = answers[lacking[0]]
            missing = isinstance(error, ModuleNotFoundError) and error.name == "linkwright"
            what = "have no Linkwright" if missing else f"cannot import Linkwright ({type(error).__name__}: {error})"
            text = f"{len(lacking)} of {len(answers)} workers at {self.address} {what}: {first_few(lacking, 3)}"
            return f"{text}; install Linkwright {__version__} where 'dask worker' runs"
        others = {worker: answer for worker, answer in answers.items() if answer != __version__}
        if others:
            versions = ", ".join(sorted(set(map(str, others.values()))))
            text = f"{len(others)} of {len(answers)} workers at {self.address} have Linkwright {versions}"
            named = first_few(list(others), 3)
            return f"{text}, and this is {__version__}: {named}; install the same version everywhere"
        return ""

    # -- chunks ---------------------------------------------------------------------------------------------
    def submit(self, function: Compute, text: str, values: Floats, limit: float | None = None) -> Future[Any]:
        """Not through Dask's own executor: it leaves results with the workers, to be computed again if one dies."""
        taken: Future[Any] = Future()

        def finished(future: Any) -> None:
            try:
                answer = future.result()
                future.release()
                taken.set_result(answer)
            except BaseException as error:
                taken.set_exception(error)

        future = self._client.submit(on_worker, path_of(function), text, values, limit, pure=False)
        future.add_done_callback(finished)
        self._futures.add(future)
        return taken

    def died(self, error: BaseException) -> bool:
        return isinstance(error, self._killed)

    def complaint(self) -> str:
        if self._wrong:
            return self._wrong
        if not self._alive():
            return f"the Dask scheduler at {self.address} is gone"
        if monotonic() - self._heard > _SILENCE:
            return f"the Dask scheduler at {self.address} has not answered for {_SILENCE:.0f} s"
        if monotonic() - self._seen > _SILENCE:
            return f"the Dask scheduler at {self.address} has had no workers for {_SILENCE:.0f} s"
        return ""

    def explained(self, error: BaseException) -> str:
        if isinstance(error, ImportError):
            return f"the workers at {self.address} lack a package ({error}); install Linkwright there, the same version"
        if isinstance(error, CancelledError):
            return f"the Dask scheduler at {self.address} has cancelled chunks, or is gone"
        return f"a worker at {self.address} failed: {type(error).__name__}: {error}"

    def close(self, *, now: bool = False) -> None:
        if self._ended.is_set():
            return
        self._ended.set()
        if now and self._alive():
            self._client.cancel(list(self._futures), asynchronous=False)
        if self._owns_client and hasattr(self._client, "submit"):
            self._client.close(timeout=5)
        self._quiet.end()


class _Quiet:
    """Dask's loggers at their quietest, and as they were afterwards."""

    def __init__(self) -> None:
        self._levels = {name: logging.getLogger(name).level for name in _LOGGERS}
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)

    def end(self) -> None:
        """Let them speak again."""
        for name, level in self._levels.items():
            logging.getLogger(name).setLevel(level)


def no_place(on: Any) -> ModelError:
    """The error for anything but a machine, a scheduler, a client or a cluster."""
    text = f"on={on!r} is no place to run a study; use 'local', 'gpu', a scheduler's address such as"
    return ModelError(f"{text} 'tcp://127.0.0.1:8786', or a Dask client or cluster")


def _connected(distributed: Any, on: Any, patience: str) -> Any:
    """A client of a scheduler's address or of a cluster."""
    if not isinstance(on, str) and not hasattr(on, "scheduler_address"):
        raise no_place(on)
    try:
        return distributed.Client(on, timeout=patience, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        name = on if isinstance(on, str) else type(on).__name__
        text = f"no Dask scheduler answers at {name} ({' '.join(str(error).split())}); start one with"
        raise LinkwrightError(f"{text} 'dask scheduler', or use on='local'") from None


# -- on a worker -----------------------------------------------------------------------------------------------
_processes = Processes(_IDLE)


def on_worker(function: str, text: str, values: Floats, limit: float | None) -> dict[str, Any]:
    """Cases of a task in a process beside the worker, which is kept for the chunks that follow.

    A worker cannot stop what it computes when nobody wants it any more, as after the driver was killed; this does.
    """
    from distributed import get_worker  # weight: distributed

    worker: Any = get_worker()
    key = worker.get_current_task()

    def wanted() -> bool:
        state = worker.state.tasks.get(key)
        return state is not None and state.state != "cancelled"

    return _processes.compute(function, text, values, limit, wanted)
