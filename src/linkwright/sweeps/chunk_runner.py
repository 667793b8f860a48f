"""`Runner`: the chunks of a study through a pool of workers; each is written to the study's folder and dropped, or kept
in memory where there is no folder.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from types import TracebackType
from typing import Any
from warnings import warn

import numpy as np

from linkwright import __version__
from linkwright.errors import LinkwrightError, SlowCaseWarning
from linkwright.sweeps import case_engine as work
from linkwright.sweeps.plan import Execution, Plan
from linkwright.sweeps.store import Store
from linkwright.sweeps.task import Batch, Task, joined
from linkwright.sweeps.workers import Compute, Pool

SLOW = 60.0  # seconds after which cases are called slow, if they also take …
_SLOWER = 10.0  # … so many times as long as the slowest before them
_AGAIN = 4.0  # times as long, until they are called slow again


class SlowCases:
    """Watches the cases that are computed: at most `busy` parts at a time, in the order in which they were given."""

    def __init__(self, limit: float | None) -> None:
        self.busy = 1
        self._limit = limit
        self._begun: dict[tuple[int, int], float] = {}
        self._next: dict[tuple[int, int], float] = {}
        self._slowest = 0.0
        self._ended: threading.Event | None = None

    def begin(self, start: int, stop: int) -> None:
        """The cases start … stop are given to a worker."""
        self._begun[start, stop] = monotonic()

    def end(self, start: int, stop: int) -> None:
        """They are finished, or given up."""
        seconds = monotonic() - self._begun.pop((start, stop), monotonic())
        self._slowest = max(self._slowest, seconds)

    def __enter__(self) -> SlowCases:
        self._ended = threading.Event()
        threading.Thread(target=self._watch, args=(self._ended,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._ended is not None:
            self._ended.set()

    def _watch(self, ended: threading.Event) -> None:
        while not ended.wait(min(5.0, SLOW / 4.0)):
            self._look()

    def _look(self) -> None:
        now = monotonic()
        for part, begun in list(self._begun.items())[: self.busy]:
            seconds = now - begun
            if seconds > max(SLOW, _SLOWER * self._slowest, self._next.get(part, 0.0)):
                self._next[part] = _AGAIN * seconds
                warn(self._sentence(*part, seconds), SlowCaseWarning, stacklevel=1)

    def _sentence(self, start: int, stop: int, seconds: float) -> str:
        cases = f"case {start} is" if stop - start == 1 else f"cases {start} to {stop - 1} are"
        advice = "a case that never ends becomes a failed row with time_limit=..."
        if self._limit is not None:
            advice = f"a case has {self._limit:g} s of CPU time"
        return f"{cases} not finished after {seconds:.0f} s; {advice}"


VERDICTS = 2  # of a scheduler that a case's workers died, before the case is given up
KILLED = "its workers died again and again: it took them with it, or there was not enough memory"
_PATIENCE = 5.0  # seconds between looks at a pool from which nothing comes


@dataclass(eq=False)
class _Piece:
    """Cases of one chunk that are computed together: all of them, until they kill workers."""

    chunk: int
    start: int
    stop: int
    deaths: int = 0


@dataclass
class Runner:
    """What is done of a study, and what is left to do; of a part of it, where the store has a part.

    `compute` is a function that worker processes can import. `finished` are chunks; `batches` has what they hold where
    there is no store.
    """

    task: Task
    plan: Plan
    store: Store | None = None
    execution: Execution = Execution()  # noqa: RUF009  (it cannot be changed)
    compute: Compute = work.compute
    batches: dict[int, Batch] = field(init=False, default_factory=dict)
    finished: set[int] = field(init=False)

    def __post_init__(self) -> None:
        self.text = json.dumps(self.task.plain())
        self.share = range(self.plan.chunks) if self.store is None else self.store.share
        self.finished = set() if self.store is None else self.store.finished()
        self.cases = self._count(self.share)
        self.done = self.loaded = self._count(self.finished)
        self._parts: dict[int, dict[int, Batch]] = {}
        self._seconds: dict[int, float] = {}
        self._slow = SlowCases(self.execution.time_limit)

    def _count(self, chunks: Iterable[int]) -> int:
        """How many cases chunks have."""
        parts = (self.plan.part(k) for k in chunks)
        return sum(part.stop - part.start for part in parts)

    @property
    def left(self) -> list[int]:
        """The chunks that are not done."""
        return [k for k in self.share if k not in self.finished]

    def work(self, pool: Pool, chunks: Iterable[int]) -> None:
        """Have these chunks computed. What is finished is kept, also where this ends early."""
        parts = [(k, self.plan.part(k)) for k in chunks]
        ready = deque(_Piece(k, part.start, part.stop) for k, part in parts)
        running: dict[Future[Any], _Piece] = {}
        self._report()
        try:
            with self._slow as slow:
                while ready or running:
                    window, slow.busy = pool.window, pool.busy
                    while ready and len(running) < window:
                        self._submit(pool, ready.popleft(), running)
                    finished, _ = wait(running, timeout=_PATIENCE, return_when=FIRST_COMPLETED)
                    if not finished:
                        self._check(pool)
                    for future in finished:
                        self._take(pool, future, running.pop(future), ready)
        except BaseException:
            self._harvest(running)
            raise

    # -- a round --------------------------------------------------------------------------------------------
    def _submit(self, pool: Pool, piece: _Piece, running: dict[Future[Any], _Piece]) -> None:
        values = np.array(self.plan.values[piece.start : piece.stop])
        self._slow.begin(piece.start, piece.stop)
        running[pool.submit(self.compute, self.text, values, self.execution.time_limit)] = piece

    def _take(self, pool: Pool, future: Future[Any], piece: _Piece, ready: deque[_Piece]) -> None:
        self._slow.end(piece.start, piece.stop)
        answer = self._answer(pool, future)
        if answer is None:
            self._divide(piece, ready)
        else:
            self._keep(piece, answer)

    def _answer(self, pool: Pool, future: Future[Any]) -> dict[str, Any] | None:
        """What a future has; None if the workers died on it."""
        try:
            answer: dict[str, Any] = future.result()
        except (Exception, CancelledError) as error:
            if pool.died(error):
                return None
            if isinstance(error, LinkwrightError):
                raise LinkwrightError(f"{error}{self._advice()}") from None
            # Without the other's traceback: it is of the pool's inside, and longer than what there is to say.
            raise LinkwrightError(f"{pool.complaint() or pool.explained(error)}{self._advice()}") from None
        return answer

    def _divide(self, piece: _Piece, ready: deque[_Piece]) -> None:
        """After a verdict of a scheduler, that workers died of it: in halves, down to the case that does it."""
        if piece.stop - piece.start > 1:
            half = (piece.start + piece.stop) // 2
            ready.extend((_Piece(piece.chunk, piece.start, half), _Piece(piece.chunk, half, piece.stop)))
        elif piece.deaths + 1 < VERDICTS:
            # It may only have been beside the one that did it.
            ready.append(_Piece(piece.chunk, piece.start, piece.stop, piece.deaths + 1))
        else:
            self._keep(piece, {"arrays": {}, "reasons": [KILLED]})

    def _check(self, pool: Pool) -> None:
        complaint = pool.complaint()
        if complaint:
            raise LinkwrightError(f"{complaint}{self._advice()}")

    def _advice(self) -> str:
        if self.store is None:
            return "; with store=... what is finished would be kept"
        return f"; {self.done} of {self.cases} cases are in {self.store.folder}: resume=True goes on from there"

    def _harvest(self, running: dict[Future[Any], _Piece]) -> None:
        """Keep what had finished when something else went wrong, as far as it can be kept."""
        with suppress(LinkwrightError):
            for future, piece in running.items():
                if future.done() and not future.cancelled() and future.exception() is None:
                    self._keep(piece, future.result())

    # -- what is done ---------------------------------------------------------------------------------------
    def _keep(self, piece: _Piece, answer: dict[str, Any]) -> None:
        if answer.get("version", __version__) != __version__:
            text = f"a worker has Linkwright {answer['version']}, and this is {__version__}; install the same"
            raise LinkwrightError(f"{text} version everywhere{self._advice()}")
        parts = self._parts.setdefault(piece.chunk, {})
        parts[piece.start] = Batch(dict(answer["arrays"]), list(answer["reasons"]))
        self._seconds[piece.chunk] = self._seconds.get(piece.chunk, 0.0) + float(answer.get("seconds", 0.0))
        whole = self.plan.part(piece.chunk)
        if sum(len(part) for part in parts.values()) < whole.stop - whole.start:
            return
        del self._parts[piece.chunk]
        batch = joined([parts[start] for start in sorted(parts)])
        if self.store is not None:
            self._write(self.store, piece.chunk, batch, str(answer.get("by", "")))
        else:
            self.batches[piece.chunk] = batch
        self.finished.add(piece.chunk)
        self.done += len(batch)
        self._report()

    def _write(self, store: Store, chunk: int, batch: Batch, by: str) -> None:
        try:
            store.write(chunk, batch, by, self._seconds.pop(chunk))
        except LinkwrightError as error:
            raise LinkwrightError(f"{error}{self._advice()}") from error

    def _report(self) -> None:
        if self.execution.progress is not None:
            self.execution.progress(self.done, self.cases)
