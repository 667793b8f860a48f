"""What a process of a study does: an engine kept for each task, chunks of cases through it, plain data in and out."""

from __future__ import annotations

import json
import os
import socket
from collections import OrderedDict
from time import perf_counter
from typing import Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.locks import Lock
from linkwright.errors import LinkwrightError
from linkwright.sweeps.batch import Batch, joined, sentence
from linkwright.sweeps.task import Task
from linkwright.tape.running import preparing

_KEPT = 4
_engines: OrderedDict[str, Any] = OrderedDict()
_lock = Lock()  # a worker of a cluster may have several threads
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_engines.clear)  # another thread of the parent may have been using them


def make_engine(task: Task) -> Any:
    """The engine for a task; it tells what is wrong with the task."""
    from linkwright.sweeps.engine import Engine

    return Engine(task)


def compute(text: str, values: Floats) -> dict[str, Any]:
    """Cases of a task that comes as JSON text: arrays, reasons, and who did it in what time."""
    with _lock:
        engine = _engines.get(text)
        if engine is None:
            _alone()
            with preparing():
                engine = _engines[text] = make_engine(Task.of(json.loads(text)))
            while len(_engines) > _KEPT:
                _engines.popitem(last=False)
        _engines.move_to_end(text)
        return answer(engine, values)


def answer(engine: Any, values: Floats) -> dict[str, Any]:
    """What an engine makes of some cases, as plain data."""
    from linkwright import __version__

    started = perf_counter()
    batch = run_cases(engine, np.asarray(values, float))
    return {
        "arrays": {name: np.ascontiguousarray(x, dtype=np.float64) for name, x in batch.arrays.items()},
        "reasons": list(batch.reasons),
        "version": __version__,
        "by": f"{socket.gethostname()}:{os.getpid()}",
        "seconds": perf_counter() - started,
    }


def run_cases(engine: Any, values: Floats) -> Batch:
    """The batch of these cases; where an engine fails on all of them together, those it fails on alone are rows."""
    try:
        batch: Batch = engine.run(values)
        return batch
    except MemoryError as error:
        reason = f"there was not enough memory for it ({error})".replace(" ()", "")
    except LinkwrightError as error:
        reason = sentence(error)
    except Exception as error:  # of one case, whatever it is, it must not take the others with it
        reason = f"{type(error).__name__}: {sentence(error)}"
    if len(values) == 1:
        return Batch({}, [reason or "failed"])
    half = len(values) // 2
    return joined([run_cases(engine, values[:half]), run_cases(engine, values[half:])])


def _alone() -> None:
    """Processes share the cores already: kernels take no further threads here."""
    from linkwright.kernels.variant import set_threads

    set_threads(1)
