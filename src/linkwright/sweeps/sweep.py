"""`lw.sweep`: from a mechanism and parameters that vary to a `Study`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from linkwright.base.arguments import takes_settings
from linkwright.base.files import kind, move_aside
from linkwright.errors import LinkwrightError, ModelError
from linkwright.outputs.analysis_request import AnalysisSettings
from linkwright.sweeps.chunk_runner import Runner
from linkwright.sweeps.cluster import Cluster, no_place
from linkwright.sweeps.engine import answer, make_engine
from linkwright.sweeps.manifest import study_digest
from linkwright.sweeps.plan import Execution, Plan, Sampling, StudyFolder, make_plan
from linkwright.sweeps.store import DATASET, Store
from linkwright.sweeps.study import Study, gathered, load, save
from linkwright.sweeps.task import Task, make_task
from linkwright.sweeps.workers import Cores, Here, cores

if TYPE_CHECKING:
    from linkwright.mechanism import Mechanism

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
    - `on`: "local" (the default) for this machine, the address of a Dask scheduler as "tcp://host:8786", or a Dask
      client or cluster.
    - `sampling`: an `lw.Sampling`, for parameters with distributions.
    - `analysis`: "kinematic", "dynamic", "static" or "inverse dynamic", or an `lw.AnalysisSettings`; by default that
      of the model's SYSTEM.
    - `times`: (T,), growing (s), the same for all cases; by default those of the model's SYSTEM.

    Other arguments:

    - `store`: a folder in which finished cases are kept as they come, or an `lw.StudyFolder`, which can be resumed.
    - `execution`: an `lw.Execution`: processes, limits of time, progress.

    Returns a `Study`. A case that fails is a row with a reason; so is one that crashes its process. Raises ModelError
    and NameNotFound for a question that cannot be asked, and LinkwrightError where a scheduler or a folder fails.

    `lw.sweep("crank.mks", {"length": [1.0, 1.1], "mass": lw.normal(2, 0.1)}, "stroke = range(block.x)")`
    """
    sampling, execution, folder = sampling or Sampling(), execution or Execution(), StudyFolder.of(store)
    for name in sampling.fixed:
        if name in parameters:
            raise ModelError(f"parameter {name!r} varies and is fixed too; name it in one of parameters and fixed")
    plan = make_plan(parameters, sampling, execution.chunk)
    task = make_task(mech, plan.names, outputs, analysis=analysis, times=times, parameters=sampling.fixed)
    _check(task, plan, outputs, on, execution)
    engine = make_engine(task)  # raises what is wrong with the task, once
    # A scheduler that does not answer, or has the wrong workers, is an error before anything is written.
    finished = folder is not None and kind(Path(folder.path) / DATASET)
    cluster = None if _is_local(on) or finished else Cluster(on)
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


def _check(task: Task, plan: Plan, outputs: Any, on: Any, execution: Execution) -> None:
    if execution.workers is not None and not _is_local(on):
        raise ModelError("workers are processes of this machine, on='local'; a scheduler has its own: leave them out")
    if isinstance(on, str) and on != "local" and "://" not in on:
        raise no_place(on)
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
    local = _is_local(on)
    # A case that could end this process does so once: a study that goes on leaves its cases to others.
    risky = runner.execution.time_limit is not None or (store is not None and store.continued)
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
    there, runner.compute = runner.compute, lambda _, values: answer(engine, values)
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
