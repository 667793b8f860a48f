"""Studies as xarray datasets, and as NetCDF files with everything in them that it takes to go on from there.

A file has the variables of `Study.data` as plain numbers, and `header`, the bytes of a JSON text with the model, the
plan and the reasons of failed cases. Files are untrusted, and read as those of solutions are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.checks import path_text
from linkwright.base.files import check_target, open_regular, write_bytes
from linkwright.errors import FormatError, LinkwrightError
from linkwright.results.storage import SIZE, Stored, fault, netcdf_bytes
from linkwright.sweeps.batch import MISSING, Batch, joined
from linkwright.sweeps.manifest import FORMAT, VERSION, header_of, plan_of
from linkwright.sweeps.plan import Plan
from linkwright.sweeps.task import Task

if TYPE_CHECKING:
    import xarray

_AGAIN = "write it again with Study.save"


def gathered(task: Task, plan: Plan, batches: Mapping[int, Batch]) -> Batch:
    """All cases in their order; those of chunks that are not there are failures with a reason."""
    parts = []
    for index in range(plan.chunks):
        part = plan.part(index)
        parts.append(batches.get(index) or Batch({}, [MISSING] * (part.stop - part.start)))
    batch = joined(parts)
    arrays = {name: np.full(len(plan), np.nan) for name in task.all_outputs}
    return Batch({**arrays, **batch.arrays}, batch.reasons)


def dataset(task: Task, plan: Plan, batch: Batch) -> xarray.Dataset:
    """Dimension case, with the parameters as its coordinates; series have the dimension time besides."""
    import xarray

    variables: dict[str, Any] = {}
    expressions = dict(task.outputs)
    for name, x in batch.arrays.items():
        what = {"long_name": expressions.get(name, name)}
        variables[name] = (_dimensions(name, x, len(task.times)), x, what)
    reasons = np.array(batch.reasons, dtype=object)
    variables["ok"] = ("case", np.array([not reason for reason in batch.reasons], bool))
    variables["reason"] = ("case", reasons)
    coordinates: dict[str, Any] = {"case": np.arange(len(plan)), "time": ("time", np.array(task.times), {"units": "s"})}
    coordinates |= {name: ("case", plan.values[:, k]) for k, name in enumerate(plan.names)}
    return xarray.Dataset(variables, coordinates, {"model": _model_name(task)})


def _dimensions(name: str, x: Floats, points: int) -> tuple[str, ...]:
    if x.ndim == 2 and x.shape[1] == points:
        return ("case", "time")
    return ("case", *(f"{name}_{k}" for k in range(1, x.ndim)))


def _model_name(task: Task) -> str:
    words = task.model.split("MODEL", 1)[-1].split(None, 1)
    return words[0].strip(';"') if words else ""


def save(task: Task, plan: Plan, batch: Batch, path: str | os.PathLike[str]) -> None:
    """Write a study, whole or not at all."""
    known = sorted({reason for reason in batch.reasons if reason})
    number = {reason: k + 1 for k, reason in enumerate(known)} | {"": 0}
    header = header_of(task, plan) | {"outputs": list(batch.arrays), "reasons": known}
    header["task"]["folder"] = ""
    content = np.frombuffer(json.dumps(header, allow_nan=False).encode("ascii"), np.uint8)
    data = dataset(task, plan, batch).drop_vars("reason")
    why = np.array([number[reason] for reason in batch.reasons], np.int32)
    data = data.assign(
        ok=("case", data["ok"].values.astype(np.int8)),
        why=("case", why, {"long_name": "number of the reason of failure, from 1"}),
        header=("byte", content, {"long_name": "model, plan and reasons: bytes of a JSON text"}),
    ).assign_attrs(source=f"Linkwright {header['linkwright']}")
    data = data.rename({name: _name_in_file(name) for name in batch.arrays})
    check_target(path)
    write_bytes(path, netcdf_bytes(data), links=False)


def _name_in_file(name: str) -> str:
    """An output's variable: a slash, which would be a group of the file, is written as the sign of division."""
    return name.replace("/", "\N{DIVISION SLASH}")


def load(path: str | os.PathLike[str], *, links: bool = True) -> tuple[Task, Plan, Batch]:
    """What `save` wrote; without `links`, the file itself may not be a link to another."""
    import h5py

    file = path_text("a study", path)
    try:
        stream = open_regular(file, links=links)
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}; give a file that Study.save wrote", file=file) from error
    with stream:
        wrong = fault(stream.read(SIZE))
        if wrong:
            raise FormatError(f"{wrong}; give a file that Study.save wrote", file=file)
        try:
            with h5py.File(stream, "r") as archive:
                return _read(Stored(archive, file, os.fstat(stream.fileno()).st_size, _AGAIN))
        except LinkwrightError as error:
            if isinstance(error, FormatError) and error.file is not None:
                raise
            raise FormatError(f"{error}; {_AGAIN}", file=file) from error
        except OSError as error:
            text = f"cannot be read: it is no NetCDF 4 file ({error}); give a file that Study.save wrote"
            raise FormatError(text, file=file) from error
        except (RuntimeError, ValueError, TypeError, LookupError, AttributeError, MemoryError) as error:
            raise FormatError(f"is damaged ({error}); {_AGAIN}", file=file) from error


def _read(stored: Stored) -> tuple[Task, Plan, Batch]:
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
    arrays = {str(name): stored.any_numbers(_name_in_file(str(name))) for name in header["outputs"]}
    for name, x in arrays.items():
        if x.ndim < 1 or len(x) != n:
            raise stored.wrong(f"has a variable {name!r} of shape {x.shape} for {n} cases")
    return task, plan, Batch(arrays, [known[k] for k in why])
