"""`lw.sweep`: from a mechanism and parameters that vary to a `Study`, chunk by chunk through a pool of workers."""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, perf_counter
from types import TracebackType
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike

from linkwright import __version__
from linkwright.base.arguments import takes_settings
from linkwright.base.files import kind, move_aside
from linkwright.errors import LinkwrightError, ModelError, SlowCaseWarning
from linkwright.kernels.variant import cores
from linkwright.mechanism import Mechanism
from linkwright.outputs.output_language import AnalysisSettings
from linkwright.sweeps import case_engine as work
from linkwright.sweeps.cluster import Cluster, no_place
from linkwright.sweeps.plan import Execution, Plan, Sampling, StudyFolder, make_plan
from linkwright.sweeps.store import DATASET, Store, study_digest
from linkwright.sweeps.study import Study, gathered, load, save
from linkwright.sweeps.task import Batch, Task, joined, make_task
from linkwright.sweeps.workers import Compute, Cores, Here, Pool

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
    """What is done of a study, and what is left to do.

    `compute` is a function that worker processes can import.
    """

    task: Task
    plan: Plan
    store: Store | None = None
    execution: Execution = Execution()  # noqa: RUF009  (it cannot be changed)
    compute: Compute = work.compute
    batches: dict[int, Batch] = field(init=False)

    def __post_init__(self) -> None:
        self.text = json.dumps(self.task.plain())
        self.batches = {} if self.store is None else self.store.stored()
        self.loaded = self.done
        self._parts: dict[int, dict[int, Batch]] = {}
        self._seconds: dict[int, float] = {}
        self._slow = SlowCases(self.execution.time_limit)

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
        return f"; {self.done} of {len(self.plan)} cases are in {self.store.folder}: resume=True goes on from there"

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
        self.batches[piece.chunk] = batch
        self._report()

    def _write(self, store: Store, chunk: int, batch: Batch, by: str) -> None:
        try:
            store.write(chunk, batch, by, self._seconds.pop(chunk))
        except LinkwrightError as error:
            raise LinkwrightError(f"{error}{self._advice()}") from error

    def _report(self) -> None:
        if self.execution.progress is not None:
            self.execution.progress(self.done, len(self.plan))


_SOON = 3.0  # seconds of work left that are not worth starting processes for
_MOST_NUMBERS = 2**28  # of all outputs that a study keeps without having been asked for any


@takes_settings(sampling=Sampling, analysis=AnalysisSettings, store=StudyFolder, execution=Execution)
def sweep(
    mech: Mechanism | str | os.PathLike[str],
    parameters: Mapping[str, Any],
    outputs: Any = None,
    *,
    on: Any = "local",
    sampling: Sampling | None = None,
    analysis: str | AnalysisSettings | None = None,
    times: ArrayLike | None = None,
    store: str | os.PathLike[str] | StudyFolder | None = None,
    execution: Execution | None = None,
) -> Study:
    """Run many cases of a mechanism, or of a model file, and keep outputs of each.

    Main arguments:

    - `mech`: a `Mechanism`, or the path of a model file.
    - `parameters`: names with lists of values, which form a grid, or with distributions such as `lw.normal(1, 0.1)`,
      which are drawn.
    - `outputs`: texts, as "block.x" for a series in time or "stroke = max(block.x) - min(block.x)" for one number a
      case; functions of a case's `Solution`; or both with names, {"top": "max(block.x)"}. By default the positions of
      bodies.
    - `on`: "local" (the default) for this machine, "gpu" for its GPU (kinematic studies with one number for each
      case), the address of a Dask scheduler as "tcp://host:8786", or a Dask client or cluster.
    - `sampling`: an `lw.Sampling`, for parameters with distributions.
    - `analysis`: "kinematic", "dynamic", "static" or "inverse dynamic", or an `lw.AnalysisSettings`; by default that
      of the model's SYSTEM.
    - `times`: (T,), growing (s), the same for all cases; by default those of the model's SYSTEM.

    Other arguments:

    - `store`: a folder in which finished cases are kept as they come, or an `lw.StudyFolder`, which can be resumed;
      none by default.
    - `execution`: an `lw.Execution`: processes, limits of time, progress; by default `lw.Execution()`.

    Returns a `Study`. A case that fails is a row with a reason; so is one that crashes its process. Raises ModelError
    and NameNotFound for invalid arguments, and LinkwrightError where a scheduler or a folder fails.

    >>> mech = lw.from_dh([{"a": "length", "mass": 1.0}], gravity=(0, -9.81, 0))  # falls from the horizontal
    >>> options = {"analysis": "dynamic", "times": [0.0, 0.1, 0.2]}
    >>> lw.sweep(mech, {"length": [0.5, 1.0]}, "fall = final(joint1.angle)", **options)["fall"].round(3)
    array([-0.39 , -0.196])
    """
    sampling, execution, folder = sampling or Sampling(), execution or Execution(), StudyFolder.of(store)
    for name in sampling.fixed:
        if name in parameters:
            raise ModelError(f"parameter {name!r} varies and is fixed too; name it in one of parameters and fixed")
    plan = make_plan(parameters, sampling, execution.chunk or _chunk_of(on))
    task = make_task(mech, plan.names, outputs, analysis=analysis, times=times, parameters=sampling.fixed)
    _check(task, plan, outputs, on, execution)
    engine = _engine(task, on)  # raises what is wrong with the task, once
    # A scheduler that does not answer, or has the wrong workers, is an error before anything is written.
    finished = folder is not None and kind(Path(folder.path) / DATASET)
    cluster = None if _is_local(on) or _is_gpu(on) or finished else Cluster(on)
    study_store: Store | None = None
    try:
        if folder is None:
            return _run(Runner(task, plan, None, execution), engine, cluster or on)
        how = {"resume": folder.resume, "overwrite": folder.overwrite, "chunked": execution.chunk is not None}
        study_store = Store.begin(folder.path, task, plan, **how)
        study = _finished(study_store)
        if study is None:
            study = _run(Runner(task, study_store.plan, study_store, execution), engine, cluster or on)
            _save(study, study_store)
        study_store.drop_chunks()
        return study
    finally:
        if cluster is not None:
            cluster.close()
        if study_store is not None:
            study_store.release()


def _save(study: Study, folder: Store) -> None:
    try:
        save(study.task, study.plan, study._batch, folder.folder / DATASET)
    except LinkwrightError as error:
        advice = f"all {len(study)} cases are in {folder.folder}: resume=True goes on from there"
        raise LinkwrightError(f"{error}; {advice}") from error


def _is_local(on: Any) -> bool:
    return isinstance(on, str) and on == "local"


def _is_gpu(on: Any) -> bool:
    return isinstance(on, str) and on == "gpu"


def _chunk_of(on: Any) -> int | None:
    """How many cases a chunk has where that is not asked for; None for what suits processes."""
    if not _is_gpu(on):
        return None
    from linkwright.sweeps.device_cases import CHUNK  # weight: CUDA

    return CHUNK


def _engine(task: Task, on: Any) -> work.Engine:
    if not _is_gpu(on):
        return work.Engine(task)
    from linkwright.sweeps.device_cases import DeviceEngine  # weight: CUDA

    return DeviceEngine(task)


def _check(task: Task, plan: Plan, outputs: Any, on: Any, execution: Execution) -> None:
    if execution.workers is not None and not _is_local(on):
        raise ModelError("workers are processes of this machine, on='local'; a scheduler has its own: leave them out")
    if isinstance(on, str) and on not in ("local", "gpu") and "://" not in on:
        raise no_place(on)
    if _is_gpu(on) and execution.time_limit is not None:
        raise ModelError("time_limit is for processes, and on='gpu' computes in this one; leave it out")
    if execution.time_limit is not None and task.functions:
        name = next(iter(task.functions))
        text = f"the output {name!r} is a function, which stays in this process and cannot be ended there"
        raise ModelError(f"{text}; leave time_limit out, or write it as a text")
    if task.functions and not _is_local(on):
        name = next(iter(task.functions))
        text = f"the output {name!r} is a function, which stays in this process; use on='local', or write it as a text"
        raise ModelError(text)
    numbers = len(plan) * len(task.outputs) * len(task.times)
    if outputs is None and numbers > _MOST_NUMBERS:
        text = f"the positions of all bodies in {len(plan):,} cases are {numbers:,} numbers; say what to keep, as in"
        raise ModelError(f"{text} outputs=['stroke = max(block.x) - min(block.x)']")


def _finished(store: Store) -> Study | None:
    """The study, if its folder has all of it; a damaged dataset is put aside, and computed again."""
    file = store.folder / DATASET
    if not kind(file):
        return None
    try:
        task, plan, batch = load(file, links=False)
        if study_digest(task, plan) == study_digest(Task.of(store.task.plain()), store.plan):
            return Study(store.task, plan, batch, loaded=len(plan))
    except LinkwrightError:
        pass
    move_aside(file, ".damaged")
    return None


def _run(runner: Runner, engine: Any, on: Any) -> Study:
    task, plan, store = runner.task, runner.plan, runner.store
    workers = runner.execution.workers
    started = perf_counter()
    left = runner.left
    local, alone = _is_local(on), bool(task.functions) or _is_gpu(on)
    # A case that could end this process does so once: a study that goes on leaves its cases to others.
    risky = runner.execution.time_limit is not None or (store is not None and store.continued)
    if alone or (local and workers is None and not risky):
        left = _first_ones(runner, engine, alone=alone)
    if left:
        pool = Cores(min(workers or cores(), len(left))) if local else on if isinstance(on, Cluster) else Cluster(on)
        try:
            runner.work(pool, left)
        except BaseException:
            pool.close(now=True)
            raise
        pool.close()
    batch = gathered(task, plan, runner.batches)
    return Study(task, plan, batch, loaded=runner.loaded, seconds=perf_counter() - started)


def _first_ones(runner: Runner, engine: Any, *, alone: bool) -> list[int]:
    """Compute chunks in this process until it is known that others are worth starting; the chunks that are left.

    The first chunk finds compiled code, or has it compiled for all; the second shows how long chunks take.
    """
    there, runner.compute = runner.compute, lambda _, values: work.answer(engine, values)
    alone = alone or cores() == 1
    for count, index in enumerate(left := runner.left):
        started = perf_counter()
        runner.work(Here(), [index])
        remaining = (perf_counter() - started) * (len(left) - count - 1)
        if not alone and count and remaining > _SOON:
            runner.compute = there
            return left[count + 1 :]
    return []


def folder_of(model: str | os.PathLike[str]) -> Path:
    """Where the command line keeps the study of a model by default."""
    return Path("out") / f"{Path(model).name.split('.')[0]}_sweep"
