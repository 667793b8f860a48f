"""`lw.sweep`: from a mechanism and parameters that vary to a `Study`, chunk by chunk through a pool of workers."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from numpy.typing import ArrayLike

from linkwright.base.arguments import available, takes_settings, too_large
from linkwright.base.files import kind, move_aside
from linkwright.errors import LinkwrightError, ModelError
from linkwright.kernels.variant import cores
from linkwright.mechanism import Mechanism
from linkwright.outputs.output_language import AnalysisSettings
from linkwright.sweeps import case_engine as work
from linkwright.sweeps.chunk_runner import Runner
from linkwright.sweeps.cluster import Cluster, no_place
from linkwright.sweeps.plan import Execution, Plan, Sampling, StudyFolder, default_chunk, make_plan
from linkwright.sweeps.store import DATASET, Store
from linkwright.sweeps.stored_outputs import StoredOutputs
from linkwright.sweeps.study import Study
from linkwright.sweeps.study_files import load
from linkwright.sweeps.study_manifest import study_digest
from linkwright.sweeps.task import MISSING, Batch, Task, gathered, make_task
from linkwright.sweeps.workers import Cores, Here

_SOON = 3.0  # seconds of work left that are not worth starting processes for
_SHARE = 3  # of memory, the part that the outputs of a study without a folder may take: one in so many
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

    - `store`: a folder in which finished cases are kept as they come, and no longer in memory; or an `lw.StudyFolder`,
      which can be resumed, or computed in parts. None by default: then outputs may take a third of the memory.
    - `execution`: an `lw.Execution`: processes, limits of time, progress; by default `lw.Execution()`.

    Returns a `Study`. A case that fails is a row with a reason; so is one that crashes its process. Raises ModelError
    and NameNotFound for invalid arguments, MemoryLimitError for outputs that need a folder, and LinkwrightError where a
    scheduler or a folder fails.

    >>> mech = lw.from_dh([{"a": "length", "mass": 1.0}], gravity=(0, -9.81, 0))  # falls from the horizontal
    >>> options = {"analysis": "dynamic", "times": [0.0, 0.1, 0.2]}
    >>> lw.sweep(mech, {"length": [0.5, 1.0]}, "fall = final(joint1.angle)", **options)["fall"].round(3)
    array([-0.39 , -0.196])
    """
    sampling, execution, folder = sampling or Sampling(), execution or Execution(), StudyFolder.of(store)
    for name in sampling.fixed:
        if name in parameters:
            raise ModelError(f"parameter {name!r} varies and is fixed too; name it in one of parameters and fixed")
    chunk = execution.chunk or _chunk_of(on)
    plan = make_plan(parameters, sampling, chunk)
    task = make_task(mech, plan.names, outputs, analysis=analysis, times=times, parameters=sampling.fixed)
    _check(task, plan, outputs, on, execution)
    engine = _engine(task, on)  # raises what is wrong with the task, once
    numbers = sum(map(math.prod, engine.shapes.values()))
    if chunk is None:
        points = len(task.times) if task.analysis == "kinematic" else None
        plan = plan.divided(default_chunk(len(plan), numbers, points))
    if folder is None:
        _refuse_what_needs_a_folder(len(plan), numbers)
    # A scheduler that does not answer, or has the wrong workers, is an error before anything is written.
    finished = folder is not None and kind(Path(folder.path) / DATASET)
    cluster = None if _is_local(on) or _is_gpu(on) or finished else Cluster(on)
    study_store: Store | None = None
    try:
        if folder is None:
            return _run(Runner(task, plan, None, execution), engine, cluster or on)
        study_store = Store.begin(
            folder.path,
            task,
            plan,
            resume=folder.resume,
            overwrite=folder.overwrite,
            chunked=execution.chunk is not None,
            part=folder.part,
        )
        study = _finished(study_store)
        if study is None:
            study = _run(Runner(task, study_store.plan, study_store, execution), engine, cluster or on)
            if folder.part is not None or not study.in_memory:
                return study
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
        study.save(folder.folder / DATASET)
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


def _refuse_what_needs_a_folder(cases: int, numbers: int) -> None:
    """An error for outputs that would fill the memory: `numbers` of each case."""
    if 8 * cases * numbers > available() // _SHARE:
        advice = f"without a folder a study keeps at most 1/{_SHARE} of it; name one, as in store='study', and what is "
        raise too_large(f"a study of {cases:,} cases", 8 * cases * numbers, f"{advice}computed goes there")


def _finished(store: Store) -> Study | None:
    """The study, if its folder has all of it; a damaged dataset is put aside, and computed again."""
    file = store.folder / DATASET
    if not kind(file):
        return None
    try:
        task, plan, outputs = load(file, links=False)
        if study_digest(task, plan) == study_digest(Task.of(store.task.plain()), store.plan):
            return Study(store.task, plan, outputs, loaded=len(plan))
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
    missing: list[tuple[int, int]] = []
    if store is None:
        outputs: Batch | StoredOutputs = gathered(task, plan, runner.batches)
    else:
        outputs = store.outputs()
        missing = store.missing_parts(outputs)
        _check_stored(runner, store, outputs)
    return Study(task, plan, outputs, loaded=runner.loaded, seconds=perf_counter() - started, missing_parts=missing)


def _check_stored(runner: Runner, store: Store, outputs: Batch | StoredOutputs) -> None:
    """An error where chunks that were written are not there any more: others have removed or changed them."""
    for index in sorted(runner.finished):
        if outputs.reasons[runner.plan.part(index).start] == MISSING:
            text = f"cannot read back {store.folder}: chunk {index} was written and is not there, or damaged"
            raise LinkwrightError(f"{text}; resume=True computes it again")


def _first_ones(runner: Runner, engine: Any, *, alone: bool) -> list[int]:
    """Compute chunks in this process until it is known that others are worth starting; the chunks that are left.

    The first chunk finds compiled code, or has it compiled for all; the second shows how long chunks take.
    """
    there, runner.compute = runner.compute, lambda _, values: work.answer(engine, values)
    alone = alone or cores() == 1
    for count, index in enumerate(left := runner.left):
        started, used = perf_counter(), process_time()
        runner.work(Here(), [index])
        # The less of both: a busy machine lengthens the one, several threads the other.
        remaining = min(perf_counter() - started, process_time() - used) * (len(left) - count - 1)
        if not alone and count and remaining > _SOON:
            runner.compute = there
            return left[count + 1 :]
    return []


def folder_of(model: str | os.PathLike[str]) -> Path:
    """Where the command line keeps the study of a model by default."""
    return Path("out") / f"{Path(model).name.split('.')[0]}_sweep"
