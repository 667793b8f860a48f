"""Studies as labelled arrays and as NetCDF files.

A file has the variables of `Study.data` as plain numbers, and `header`, the bytes of a JSON text with the model, the
plan and the reasons of failed cases. Files are untrusted, and read as those of solutions are; the outputs of a large
one are looked at when it is opened, and read when they are asked for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from linkwright.base.arguments import path_text
from linkwright.base.arrays import Floats
from linkwright.base.files import atomic_file, check_target, open_regular, write_bytes
from linkwright.errors import FormatError, LinkwrightError
from linkwright.results.labelled_arrays import LabelledArrays, Variable, texts
from linkwright.results.solution_files import SIZE, Stored, fault
from linkwright.sweeps.plan import Plan
from linkwright.sweeps.stored_outputs import StoredOutputs, is_small
from linkwright.sweeps.study_manifest import FORMAT, VERSION, header_of, plan_of
from linkwright.sweeps.task import Batch, Task

_AGAIN = "write it again with Study.save"
_BLOCK = 2**23  # bytes that are read of a large file at a time


def case_arrays(task: Task, plan: Plan, outputs: Batch | StoredOutputs) -> LabelledArrays:
    """Dimension case, with the parameters as its labels; series have the dimension time besides."""
    expressions, cases = dict(task.outputs), ("case",)
    variables: dict[str, Variable] = {}
    for name, x in outputs.arrays.items():
        variables[name] = (_dimensions(name, x.shape, len(task.times)), x, {"long_name": expressions.get(name, name)})
    variables["ok"] = (cases, np.array([not reason for reason in outputs.reasons], bool), {})
    variables["reason"] = (cases, texts(outputs.reasons), {})
    labels: dict[str, Variable] = {
        "case": (cases, np.arange(len(plan)), {}),
        "time": (("time",), np.array(task.times), {"units": "s"}),
    }
    labels |= {name: (cases, plan.values[:, k], {}) for k, name in enumerate(plan.names)}
    return LabelledArrays(variables, labels, {"model": _model_name(task)})


def _dimensions(name: str, shape: tuple[int, ...], points: int) -> tuple[str, ...]:
    if len(shape) == 2 and shape[1] == points:
        return ("case", "time")
    return ("case", *(f"{name}_{k}" for k in range(1, len(shape))))


def _model_name(task: Task) -> str:
    words = task.model.split("MODEL", 1)[-1].split(None, 1)
    return words[0].strip(';"') if words else ""


def save(task: Task, plan: Plan, outputs: Batch | StoredOutputs, path: str | os.PathLike[str]) -> None:
    """Write a study, whole or not at all."""
    known = sorted({reason for reason in outputs.reasons if reason})
    number = {reason: k + 1 for k, reason in enumerate(known)} | {"": 0}
    header = header_of(task, plan) | {"outputs": list(outputs.arrays), "reasons": known}
    header["task"]["folder"] = ""
    content = np.frombuffer(json.dumps(header, allow_nan=False).encode("ascii"), np.uint8)
    whole = case_arrays(task, plan, outputs)
    variables = {_name_in_file(name): whole.variables[name] for name in outputs.arrays}
    ok = np.array([not reason for reason in outputs.reasons], np.int8)
    why = np.array([number[reason] for reason in outputs.reasons], np.int32)
    variables["ok"] = (("case",), ok, {})
    variables["why"] = (("case",), why, {"long_name": "number of the reason of failure, from 1"})
    variables["header"] = (("byte",), content, {"long_name": "model, plan and reasons: bytes of a JSON text"})
    source = {"source": f"Linkwright {header['linkwright']}"}
    labelled = LabelledArrays(variables, whole.labels, {**whole.attributes, **source})
    check_target(path)
    if isinstance(outputs, Batch):
        write_bytes(path, labelled.netcdf(), links=False)
        return
    with atomic_file(path, links=False) as file:
        labelled.write(file)


def _name_in_file(name: str) -> str:
    """An output's variable: a slash, which would be a group of the file, is written as the sign of division."""
    return name.replace("/", "\N{DIVISION SLASH}")


def load(path: str | os.PathLike[str], *, links: bool = True) -> tuple[Task, Plan, Batch | StoredOutputs]:
    """What `save` wrote; without `links`, the file itself may not be a link to another."""
    file = path_text("a study", path)
    with _opened(file, links) as (stored, identity):
        return _read(stored, identity, links)


@contextmanager
def _opened(file: str, links: bool) -> Iterator[tuple[Stored, tuple[int, ...]]]:
    """An open file, and what distinguishes it from another in its place; any damage is a `FormatError`."""
    import h5py  # weight: h5py

    try:
        stream = open_regular(file, links=links)
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}; give a file that Study.save wrote", file=file) from error
    with stream:
        wrong = fault(stream.read(SIZE))
        if wrong:
            raise FormatError(f"{wrong}; give a file that Study.save wrote", file=file)
        facts = os.fstat(stream.fileno())
        try:
            with h5py.File(stream, "r") as archive:
                identity = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns)
                yield Stored(archive, file, facts.st_size, _AGAIN), identity
        except LinkwrightError as error:
            if isinstance(error, FormatError) and error.file is not None:
                raise
            raise FormatError(f"{error}; {_AGAIN}", file=file) from error
        except OSError as error:
            text = f"cannot be read: it is no NetCDF 4 file ({error}); give a file that Study.save wrote"
            raise FormatError(text, file=file) from error
        except (RuntimeError, ValueError, TypeError, LookupError, AttributeError, MemoryError) as error:
            raise FormatError(f"is damaged ({error}); {_AGAIN}", file=file) from error


def _read(stored: Stored, identity: tuple[int, ...], links: bool) -> tuple[Task, Plan, Batch | StoredOutputs]:
    header = stored.header(FORMAT, VERSION, "a study")
    task = Task.of(header["task"])
    task = Task.of({**task.plain(), "folder": str(Path(stored.file).resolve().parent)})
    names = header["plan"]["names"]
    columns = [stored.numbers(name, (None,)) for name in names]
    n = len(columns[0]) if columns else 0
    if any(len(x) != n for x in columns):
        raise stored.wrong("has parameters of different lengths")
    plan = plan_of(header["plan"], np.stack(columns, axis=1))
    known = ["", *header["reasons"]]
    why = stored.numbers("why", (n,), np.int32)
    if not all(isinstance(reason, str) for reason in known) or np.any(why < 0) or np.any(why >= len(known)):
        raise stored.wrong("has reasons that are not what they should be")
    reasons = [known[k] for k in why]
    outputs = [str(name) for name in header["outputs"]]
    shapes = {name: stored.floats(_name_in_file(name)).shape for name in outputs}
    for name, shape in shapes.items():
        if not shape or shape[0] != n:
            raise stored.wrong(f"has a variable {name!r} of shape {shape} for {n} cases")
    if is_small(stored.size):
        arrays = {name: stored.any_numbers(_name_in_file(name)) for name in outputs}
        return task, plan, Batch(arrays, reasons)
    widest = max((int(np.prod(shape[1:])) for shape in shapes.values()), default=1)
    size = max(1, _BLOCK // (8 * max(widest, 1)))

    def read(name: str, index: int) -> Floats:
        with _opened(stored.file, links) as (again, other):
            if other != identity:
                text = "is another file than the one that was opened; open the study again"
                raise FormatError(text, file=stored.file)
            variable = again.floats(_name_in_file(name))
            return np.asarray(variable[index * size : (index + 1) * size], dtype=np.float64)

    return task, plan, StoredOutputs({name: shape[1:] for name, shape in shapes.items()}, reasons, size, read)
