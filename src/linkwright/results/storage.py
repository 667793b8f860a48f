"""Solutions in NetCDF files, with the model in them; files are untrusted, and every defect is told.

A file is one that any NetCDF reader opens: the variables of `Solution.data`, and as attributes the model as `.mks`
text, status and counters as JSON, and versions.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.errors import FormatError, LinkwrightError
from linkwright.mechanism.description import Description
from linkwright.results.files import whole
from linkwright.results.solution import QUANTITIES, Solution
from linkwright.results.status import Counters, Status

FORMAT, VERSION = "linkwright solution", 1
_AGAIN = "write it again with Solution.save"
_LARGEST_COUNT = 2**63 - 1


def save(solution: Solution, path: str | os.PathLike[str]) -> None:
    """Write a solution, whole or not at all."""
    from linkwright import __version__
    from linkwright.formats.mks.printer import write_mks  # type: ignore[import-not-found,unused-ignore]

    attributes = {
        "format": FORMAT,
        "format_version": VERSION,
        "linkwright_version": __version__,
        "status": json.dumps(_plain(dataclasses.asdict(solution.status)), allow_nan=False),
        "counters": json.dumps(dataclasses.asdict(solution.counters)),
        "model": write_mks(solution.description),
    }
    data = solution.data.assign_attrs(attributes)
    with whole(path) as temporary:
        data.to_netcdf(temporary, engine="h5netcdf", format="NETCDF4", encoding={v: {"_FillValue": None} for v in data})


def open(path: str | os.PathLike[str]) -> Solution:
    """The solution in a file that `Solution.save` wrote, with its model."""
    import h5py

    file = os.fspath(path)
    try:
        size = os.stat(file).st_size
        opened = h5py.File(file, "r")
    except OSError as error:
        raise FormatError(_why_not(file, error), file=file) from error
    with opened:
        try:
            return _read(_Stored(opened, file, size))
        except LinkwrightError:
            raise
        except (OSError, RuntimeError, ValueError, TypeError, KeyError, MemoryError) as error:
            # What the HDF5 library says of damage inside a file that it could open.
            raise FormatError(f"is damaged ({error}); {_AGAIN}", file=file) from error


def _why_not(file: str, error: OSError) -> str:
    if error.errno is not None and not os.path.isfile(file):
        return "is a folder; give a file" if os.path.isdir(file) else f"cannot be read: {os.strerror(error.errno)}"
    if "truncated" in str(error):
        return f"is cut short; copy it anew, or {_AGAIN}"
    if error.strerror:
        return f"cannot be read: {error.strerror}"
    return f"is no NetCDF 4 file; give one that Solution.save wrote ({error})"


class _Stored:
    """An open file whose parts are looked at before they are read."""

    def __init__(self, group: Any, file: str, size: int) -> None:
        self.group, self.file, self.size = group, file, size

    def wrong(self, message: str) -> FormatError:
        return FormatError(f"{message}; {_AGAIN}", file=self.file)

    def attribute(self, name: str) -> Any:
        if name not in self.group.attrs:
            raise self.wrong(f"has no attribute {name!r}: it is not a solution, or it is damaged")
        return self.group.attrs[name]

    def text(self, name: str) -> str:
        value = self.attribute(name)
        if not isinstance(value, str):
            raise self.wrong(f"has an attribute {name!r} that is no text")
        return value

    def _dataset(self, name: str, kind: str) -> Any:
        import h5py

        if name not in self.group:
            raise self.wrong(f"has no variable {name!r}")
        # Links to other files, and data kept in other files, could be anybody's.
        if not isinstance(self.group.get(name, getlink=True), h5py.HardLink):
            raise self.wrong(f"has a link in place of the variable {name!r}")
        found = self.group[name]
        if not isinstance(found, h5py.Dataset):
            raise self.wrong(f"has a group in place of the variable {name!r}")
        if found.external or found.is_virtual:
            raise self.wrong(f"keeps the variable {name!r} in another file")
        if found.dtype.kind != kind:
            raise self.wrong(f"has a variable {name!r} of type {found.dtype}")
        if found.shape is None:
            raise self.wrong(f"has a variable {name!r} without a shape")
        # Stored plainly, numbers are never more than the file: a small file cannot ask for much memory.
        if found.size and (found.chunks is not None or found.size * found.dtype.itemsize > self.size):
            raise self.wrong(f"keeps the variable {name!r}, of shape {found.shape}, packed or cut short")
        return found

    def numbers(self, name: str, shape: tuple[int | None, ...], dtype: Any = np.float64) -> NDArray[Any]:
        """A variable of this shape, where None is any number."""
        wanted = np.dtype(dtype)
        found = self._dataset(name, wanted.kind)
        fits = len(found.shape) == len(shape) and all(b in (None, a) for a, b in zip(found.shape, shape, strict=True))
        if not fits:
            asked = tuple("any" if b is None else b for b in shape)
            raise self.wrong(f"has a variable {name!r} of shape {found.shape} where {asked} is needed")
        if found.dtype.itemsize != wanted.itemsize:
            raise self.wrong(f"has a variable {name!r} of type {found.dtype} where {wanted} is needed")
        return np.asarray(found[...] if found.size else np.zeros(found.shape), dtype=wanted)

    def names(self, name: str) -> list[str]:
        import h5py

        found = self._dataset(name, "O")
        if len(found.shape) != 1 or h5py.check_string_dtype(found.dtype) is None:
            raise self.wrong(f"has a variable {name!r} that is no list of names")
        return [str(x) for x in found.asstr()[...]] if found.size else []


def _read(stored: _Stored) -> Solution:
    if stored.text("format") != FORMAT:
        raise stored.wrong(f"has the format {stored.text('format')!r}, not {FORMAT!r}")
    found = np.asarray(stored.attribute("format_version"))  # NetCDF keeps a number as a list of one
    if found.size != 1 or found.dtype.kind not in "iu" or found.item() < 1:
        raise stored.wrong(f"has the format version {found}, which is none")
    version = found.item()
    if version > VERSION:
        written = f"written by Linkwright {stored.text('linkwright_version')}"
        raise FormatError(f"has format version {version} ({written}); update Linkwright to read it", file=stored.file)
    status, counters = _status(stored), _counters(stored)
    description = _model(stored)
    names = stored.names("body")
    if names != list(description.body_names):
        raise stored.wrong("names other bodies than its own model does")
    time = stored.numbers("time", (None,))
    if not np.isfinite(time).all():
        raise stored.wrong("has times that are no numbers")
    points = len(time)
    arrays = {q: stored.numbers(q, (points, len(names), size)) for q, (size, _, _) in QUANTITIES.items()}
    iterations = stored.numbers("iterations", (points,), np.int64)
    return Solution.of(description, time, **arrays, status=status, counters=counters, iterations=iterations)


def _model(stored: _Stored) -> Description:
    from linkwright.formats.mks.reader import parse_mks  # type: ignore[import-not-found,unused-ignore]

    text = stored.text("model")
    try:
        description: Description = parse_mks(text)
    except LinkwrightError as error:
        raise stored.wrong(f"has a model that cannot be read ({error})") from error
    # Meshes are looked for beside the file.
    return replace(description, folder=os.path.dirname(os.path.abspath(stored.file)))


# -- status and counters as JSON --------------------------------------------------------------------------
def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Numbers that JSON does not have, as words that float() reads."""
    return {k: repr(float(x)) if isinstance(x, float) and not math.isfinite(x) else x for k, x in values.items()}


def _json(stored: _Stored, name: str, known: set[str]) -> dict[str, Any]:
    try:
        values = json.loads(stored.text(name))
    except (ValueError, RecursionError) as error:
        raise stored.wrong(f"has an attribute {name!r} that is no JSON ({error})") from error
    if not isinstance(values, dict) or not set(values) <= known:
        raise stored.wrong(f"has an attribute {name!r} that is not what it should be")
    return values


def _status(stored: _Stored) -> Status:
    values = _json(stored, "status", {f.name for f in dataclasses.fields(Status)})

    def number(x: Any) -> float | None:
        return float(x) if isinstance(x, float | int) or x in ("inf", "-inf", "nan") else None

    texts = [values.get(k, "") for k in ("message", "reason", "advice")]
    element, notes, time, residual = (values.get(k) for k in ("element", "notes", "time", "residual"))
    fits = (
        isinstance(values.get("ok"), bool)
        and all(isinstance(x, str) for x in texts)
        and (element is None or isinstance(element, str))
        and isinstance(notes, list)
        and all(isinstance(x, str) for x in notes)
        and (time is None or number(time) is not None)
        and number(residual) is not None
    )
    if not fits or notes is None:
        raise stored.wrong("has a status that is not what it should be")
    message, reason, advice = texts
    seen = number(residual)
    return Status(
        ok=values["ok"],
        message=message,
        reason=reason,
        time=number(time),
        element=element,
        residual=math.nan if seen is None else seen,
        notes=tuple(notes),
        advice=advice,
    )


def _counters(stored: _Stored) -> Counters:
    values = _json(stored, "counters", {f.name for f in dataclasses.fields(Counters)})
    for name, value in values.items():
        if type(value) is not int or not 0 <= value <= _LARGEST_COUNT:
            raise stored.wrong(f"counts {name!r} as {value!r}")
    return Counters(**values)
