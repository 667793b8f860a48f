"""`lw.sweep`: from a mechanism and parameters that vary to a `Study`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from linkwright.base.checks import path_text
from linkwright.base.files import cannot_write
from linkwright.base.regular import kind
from linkwright.errors import LinkwrightError, ModelError
from linkwright.sweeps import work
from linkwright.sweeps.cluster import Cluster
from linkwright.sweeps.dataset import gathered, load, save
from linkwright.sweeps.manifest import study_digest
from linkwright.sweeps.plan import Plan, make_plan
from linkwright.sweeps.pools import Cores, Here, cores
from linkwright.sweeps.runner import Progress, Runner
from linkwright.sweeps.store import DATASET, Store
from linkwright.sweeps.study import Study
from linkwright.sweeps.task import Task, make_task

if TYPE_CHECKING:
    from linkwright.model import Mechanism

_SOON = 3.0  # seconds of work left that are not worth starting processes for
_MOST_NUMBERS = 2**28  # of all outputs that a study keeps without having been asked for any


def sweep(
    model: Mechanism | str | os.PathLike[str],
    parameters: Mapping[str, Any],
    outputs: Any = None,
    *,
    on: Any = "local",
    cases: int | None = None,
    draws: int | None = None,
    sampling: str | None = None,
    seed: int | None = None,
    analysis: str | None = None,
    times: ArrayLike | None = None,
    fixed: Mapping[str, float] | None = None,
    store: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    chunk: int | None = None,
    workers: int | None = None,
    time_limit: float | None = None,
    **settings: Any,
) -> Study:
    """Run many cases of a mechanism, or of a model file, and keep what is asked for of each.

    `parameters` have lists of values, which form a grid, or distributions such as `lw.normal(1, 0.1)`, which are
    drawn by `sampling`: "latin" (unless said), "sobol" or "random", with a `seed` (0 unless given). `draws` is how many
    draws there are at every point of the grid; `cases` how many cases in all, the points of the grid taking turns.
    `fixed` gives other parameters one value.

    `outputs` are texts: "block.x" is a series, "stroke = max(block.x) - min(block.x)" one number a case; or functions
    of a case's `Solution`. Unless given, the positions of bodies are kept. `analysis`, `times` and further settings
    are as `lw.analyse` has them; times are the same for all cases.

    `on` is "local", for this machine's cores (`workers` processes), the address of a Dask scheduler as
    "tcp://host:8786", or a Dask client or cluster. A case that fails is a row with a reason; so is one that crashes its
    process, and one that takes more than `time_limit` seconds of CPU time (None: as long as it needs). With `store`, a
    folder, finished chunks are kept as they come, and `resume=True` goes on from there. `progress` is called with the
    cases done and all cases.
    """
    for name in fixed or ():
        if name in parameters:
            raise ModelError(f"parameter {name!r} varies and is fixed too; name it in one of parameters and fixed")
    if store is not None:
        store = path_text("the folder of a study", store)
    plan = make_plan(parameters, cases=cases, draws=draws, sampling=sampling, seed=seed, chunk=chunk)
    task = make_task(model, plan.names, outputs, analysis=analysis, times=times, parameters=fixed, settings=settings)
    if overwrite and store is None:
        raise ModelError("overwrite=True needs the folder that the study is in; give store=...")
    if workers is not None and not _is_local(on):
        raise ModelError("workers are processes of this machine, on='local'; a scheduler has its own: leave them out")
    _check(task, plan, outputs, on, workers, store, resume, time_limit)
    engine = work.make_engine(task)  # what is wrong with the task is told here, once
    # A scheduler that does not answer, or has the wrong workers, is found out before anything is written.
    cluster = None if _is_local(on) or (store is not None and kind(Path(store) / DATASET)) else Cluster(on)
    folder: Store | None = None
    try:
        if store is None:
            return _run(Runner(task, plan, None, progress, limit=time_limit), engine, cluster or on, workers)
        folder = Store.begin(store, task, plan, resume=resume, overwrite=overwrite, chunked=chunk is not None)
        study = _finished(folder)
        if study is None:
            study = _run(Runner(task, folder.plan, folder, progress, limit=time_limit), engine, cluster or on, workers)
            _save(study, folder)
        folder.drop_chunks()
        return study
    finally:
        if cluster is not None:
            cluster.close()
        if folder is not None:
            folder.release()


def _save(study: Study, folder: Store) -> None:
    try:
        save(study.task, study.plan, study._batch, folder.folder / DATASET)
    except LinkwrightError as error:
        advice = f"all {len(study)} cases are in {folder.folder}: resume=True goes on from there"
        raise LinkwrightError(f"{error}; {advice}") from error


def _is_local(on: Any) -> bool:
    return isinstance(on, str) and on == "local"


def _check(
    task: Task, plan: Plan, outputs: Any, on: Any, workers: Any, store: Any, resume: bool, time_limit: Any
) -> None:
    if resume and store is None:
        raise ModelError("resume=True needs the folder that the study is in; give store=...")
    if isinstance(on, str) and on != "local" and "://" not in on:
        text = f"on={on!r} is no place to run a study; use 'local', a scheduler's address such as"
        raise ModelError(f"{text} 'tcp://127.0.0.1:8786', or a Dask client or cluster")
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise ModelError(f"workers is {workers!r}; give a whole number of processes, at least 1")
    if time_limit is not None:
        number = isinstance(time_limit, int | float) and not isinstance(time_limit, bool)
        if not number or not 0.0 < time_limit < math.inf:
            raise ModelError(f"time_limit is {time_limit!r}; give seconds of CPU time for a case, more than 0")
        if task.functions:
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


def _finished(kept: Store) -> Study | None:
    """The study, if its folder has all of it; a damaged dataset is put aside, and computed again."""
    file = kept.folder / DATASET
    if not kind(file):
        return None
    try:
        task, plan, batch = load(file, links=False)
        if study_digest(task, plan) == study_digest(Task.of(kept.task.plain()), kept.plan):
            return Study(kept.task, plan, batch, loaded=len(plan))
    except LinkwrightError:
        pass
    try:
        os.replace(file, file.with_name(f"{DATASET}.damaged"))
    except OSError as error:
        raise cannot_write(file, error) from error
    return None


def _run(runner: Runner, engine: Any, on: Any, workers: int | None) -> Study:
    task, plan, store = runner.task, runner.plan, runner.store
    started = perf_counter()
    left = runner.left
    local = _is_local(on)
    # A case that could end this process does so once: a study that goes on leaves its cases to others.
    risky = runner.limit is not None or (store is not None and store.continued)
    if local and (task.functions or (workers is None and not risky)):
        left = _first_ones(runner, engine, alone=bool(task.functions))
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

    The first chunk finds compiled code, or has it compiled for all; the second tells how long chunks take.
    """
    there, runner.compute = runner.compute, lambda _, values: work.answer(engine, values)
    alone = alone or cores() == 1
    for count, index in enumerate(left := runner.left):
        started = perf_counter()
        runner.work(Here(), [index])
        rest = (perf_counter() - started) * (len(left) - count - 1)
        if not alone and count and rest > _SOON:
            runner.compute = there
            return left[count + 1 :]
    return []


def folder_of(model: str | os.PathLike[str]) -> Path:
    """Where the command line keeps the study of a model, unless told."""
    return Path("out") / f"{Path(model).name.split('.')[0]}_sweep"
