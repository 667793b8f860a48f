"""The chunks of a study through a pool of workers: kept as they finish, tried again when a worker dies."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.errors import LinkwrightError
from linkwright.sweeps import work
from linkwright.sweeps.batch import Batch, joined
from linkwright.sweeps.cluster import Pool
from linkwright.sweeps.plan import Plan
from linkwright.sweeps.store import Store
from linkwright.sweeps.task import Task

#: Called with how many cases are done, and how many there are.
Progress = Callable[[int, int], None]
DEATHS = 3  # of workers on the same cases, before these are looked at one by one
KILLED = f"its worker process died each of {DEATHS} times: it crashed, or there was not enough memory"
_PATIENCE = 5.0  # seconds between looks at a pool that says nothing


@dataclass(eq=False)
class _Piece:
    """Cases of one chunk that are computed together: all of them, until they kill workers."""

    chunk: int
    start: int
    stop: int
    deaths: int = 0


class Runner:
    """What is done of a study, and what is left to do."""

    def __init__(
        self,
        task: Task,
        plan: Plan,
        store: Store | None = None,
        progress: Progress | None = None,
        compute: Callable[..., dict[str, Any]] = work.compute,
    ) -> None:
        self.plan, self.store, self.progress, self.compute = plan, store, progress, compute
        self.text = json.dumps(task.plain())
        self.batches: dict[int, Batch] = {} if store is None else store.stored()
        self.loaded = self.done
        self._parts: dict[int, dict[int, Batch]] = {}
        self._seconds: dict[int, float] = {}

    @property
    def done(self) -> int:
        """How many cases are done."""
        parts = [self.plan.part(k) for k in self.batches]
        return sum(part.stop - part.start for part in parts)

    @property
    def left(self) -> list[int]:
        """The chunks that are not done."""
        return [k for k in range(self.plan.chunks) if k not in self.batches]

    def work(self, pool: Pool, chunks: Iterable[int]) -> None:
        """Have these chunks computed. What is finished is kept, also where this ends early."""
        parts = [(k, self.plan.part(k)) for k in chunks]
        ready = deque(_Piece(k, part.start, part.stop) for k, part in parts)
        alone: deque[_Piece] = deque()  # suspected of killing workers: computed with nothing beside them
        running: dict[Future[Any], _Piece] = {}
        self._tell()
        try:
            while ready or alone or running:
                self._fill(pool, ready, alone, running)
                finished, _ = wait(running, timeout=_PATIENCE, return_when=FIRST_COMPLETED)
                if not finished:
                    self._check(pool)
                single = len(running) == 1
                dead = [piece for future in finished if (piece := self._collect(pool, future, running)) is not None]
                if dead and pool.together:
                    dead += self._lost(pool, running)
                    pool.restart()
                for piece in dead:
                    self._bury(pool, piece, ready, alone, certain=single and len(dead) == 1)
        except BaseException:
            self._harvest(running)
            raise

    # -- a round --------------------------------------------------------------------------------------------
    def _fill(
        self, pool: Pool, ready: deque[_Piece], alone: deque[_Piece], running: dict[Future[Any], _Piece]
    ) -> None:
        if alone:
            if not running:
                self._submit(pool, alone.popleft(), running)
            return
        while ready and len(running) < pool.window:
            self._submit(pool, ready.popleft(), running)

    def _submit(self, pool: Pool, piece: _Piece, running: dict[Future[Any], _Piece]) -> None:
        values = np.array(self.plan.values[piece.start : piece.stop])
        running[pool.submit(self.compute, self.text, values)] = piece

    def _collect(self, pool: Pool, future: Future[Any], running: dict[Future[Any], _Piece]) -> _Piece | None:
        """Keep what a future has; the piece whose worker died on it."""
        piece = running.pop(future)
        try:
            found = future.result()
        except (Exception, CancelledError) as error:
            if pool.died(error):
                return piece
            if isinstance(error, LinkwrightError):
                raise
            raise LinkwrightError(f"{pool.explained(error)}{self._advice()}") from error
        self._keep(piece, found)
        return None

    def _lost(self, pool: Pool, running: dict[Future[Any], _Piece]) -> list[_Piece]:
        """What else a death has taken with it, of all that was under way."""
        lost = []
        for future in list(running):
            if future.done() and not future.cancelled() and future.exception() is None:
                self._keep(running.pop(future), future.result())
            else:
                lost.append(running.pop(future))
        return lost

    def _bury(
        self, pool: Pool, piece: _Piece, ready: deque[_Piece], alone: deque[_Piece], *, certain: bool
    ) -> None:
        """After a death: again, then alone, then in halves, down to the case that does it."""
        # A scheduler has tried several workers before it says so, and does not know which chunk of theirs it was.
        piece.deaths = piece.deaths + 1 if pool.together else max(piece.deaths + 1, DEATHS - 1)
        if piece.deaths < DEATHS - 1:
            ready.appendleft(piece)
        elif piece.deaths < DEATHS or not certain:
            alone.append(piece)
        elif piece.stop - piece.start == 1:
            self._keep(piece, {"arrays": {}, "reasons": [KILLED]})
        else:
            half = (piece.start + piece.stop) // 2
            alone.append(_Piece(piece.chunk, piece.start, half, DEATHS - 1))
            alone.append(_Piece(piece.chunk, half, piece.stop, DEATHS - 1))

    def _check(self, pool: Pool) -> None:
        complaint = pool.complaint()
        if complaint:
            raise LinkwrightError(f"{complaint}{self._advice()}")

    def _advice(self) -> str:
        if self.store is None:
            return "; with store=... what is finished would be kept"
        return f"; {self.done} of {len(self.plan)} cases are in {self.store.folder}: resume=True goes on from there"

    def _harvest(self, running: dict[Future[Any], _Piece]) -> None:
        """Keep what had finished when something else went wrong."""
        for future, piece in running.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                self._keep(piece, future.result())

    # -- what is done ---------------------------------------------------------------------------------------
    def _keep(self, piece: _Piece, found: dict[str, Any]) -> None:
        from linkwright import __version__

        if found.get("version", __version__) != __version__:
            text = f"a worker has Linkwright {found['version']}, and this is {__version__}; install the same everywhere"
            raise LinkwrightError(text)
        parts = self._parts.setdefault(piece.chunk, {})
        parts[piece.start] = Batch(dict(found["arrays"]), list(found["reasons"]))
        self._seconds[piece.chunk] = self._seconds.get(piece.chunk, 0.0) + float(found.get("seconds", 0.0))
        whole = self.plan.part(piece.chunk)
        if sum(len(part) for part in parts.values()) < whole.stop - whole.start:
            return
        del self._parts[piece.chunk]
        batch = joined([parts[start] for start in sorted(parts)])
        if self.store is not None:
            self.store.write(piece.chunk, batch, str(found.get("by", "")), self._seconds.pop(piece.chunk))
        self.batches[piece.chunk] = batch
        self._tell()

    def _tell(self) -> None:
        if self.progress is not None:
            self.progress(self.done, len(self.plan))
