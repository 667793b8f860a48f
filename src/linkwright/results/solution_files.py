"""Solutions in NetCDF files, with the model in them; files are untrusted, and every defect is reported.

A file is one that any NetCDF reader opens: the variables of `Solution.data`, and `header`, the bytes of a JSON text
with the model as `.mks` text, status, counters and versions. What is read back are plain arrays of numbers alone:
texts as NetCDF keeps them go through the heap of the HDF5 library, which a damaged file can send round in circles.
"""

from __future__ import annotations

import builtins
import dataclasses
import hashlib
import io
import json
import math
import os
import stat
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from linkwright import __version__
from linkwright.base.arguments import path_text
from linkwright.base.arrays import array_of
from linkwright.base.files import check_target, write_bytes
from linkwright.errors import FormatError, LinkwrightError, LinkwrightWarning
from linkwright.model.body_motion import QUANTITIES
from linkwright.model.description import Description, sealed
from linkwright.model.topology import span
from linkwright.model.tree import Coordinates, Tree
from linkwright.results.labelled_arrays import Variable, motion_arrays
from linkwright.results.solution import Occurrence, Solution, States
from linkwright.results.status import Counters, Series, Status

SIZE = 96  # bytes, of the longest
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_NOWHERE = 2**64 - 1


def fault(head: bytes) -> str:
    """What is wrong with the first SIZE bytes of a file that a NetCDF writer could have made; empty if nothing is.

    A block of driver information, and an extension of the superblock, are read whole, of any size that they claim;
    files of numbers have neither.
    """
    if not head.startswith(_SIGNATURE) or len(head) < SIZE:
        return "is no NetCDF 4 file"
    version = head[8]
    if version in (0, 1):
        sizes, start = (head[13], head[14]), 24 + 4 * version
        base, _, _, extra = struct.unpack_from("<4Q", head, start)
    elif version in (2, 3):
        sizes = head[9], head[10]
        base, extra = struct.unpack_from("<2Q", head, 12)
    else:
        return f"is no NetCDF 4 file that is read here (its superblock has version {version})"
    return "" if sizes == (8, 8) and (base, extra) == (0, _NOWHERE) else "is damaged in its first bytes"


#: What reading a damaged archive, or a text in it, may raise.
DAMAGE = (
    zipfile.BadZipFile,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    RecursionError,
    MemoryError,
    OverflowError,
)


def plain_array(archive: zipfile.ZipFile, name: str, size: int) -> NDArray[Any] | None:
    """The array of a name in an archive of so many bytes; none where it is packed, so that it might be any size."""
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type != zipfile.ZIP_STORED or info.file_size > size:
        return None
    return array_of(archive.read(info))


def archive_bytes(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> memoryview:
    """An archive of arrays (.npz) that are stored plainly, behind `header`, the bytes of a JSON text."""
    archive = io.BytesIO()
    text = np.frombuffer(json.dumps(header).encode("ascii"), np.uint8)
    np.savez(archive, header=text, **arrays)  # type: ignore[arg-type]
    return archive.getbuffer()


def arrays_digest(*arrays: NDArray[Any]) -> str:
    """A hash of these numbers."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def fits_shape(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    """Whether a shape is the wanted one, where None is any number."""
    return len(shape) == len(wanted) and all(b in (None, a) for a, b in zip(shape, wanted, strict=True))


FORMAT, VERSION = "linkwright solution", 1
_AGAIN = "write it again with Solution.save"
_LARGEST_COUNT = 2**63 - 1


def save(solution: Solution, path: str | os.PathLike[str]) -> None:
    """Write a solution, whole or not at all."""
    from linkwright.formats.mks.mks_writer import write_mks  # weight: lark

    model: str = write_mks(solution.description)
    unread = _why_unread(model)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "linkwright": __version__,
        "bodies": list(solution.description.body_names),
        "status": _plain(dataclasses.asdict(solution.status)),
        "counters": dataclasses.asdict(solution.counters),
        "series": [[name, x.unit] for name, x in solution.series.items()],
        "model": model,
        "events": [event.name for event in solution.events],
    }
    content = np.frombuffer(json.dumps(header, allow_nan=False).encode("ascii"), np.uint8)
    what = {"long_name": "model, status and counters: bytes of a JSON text"}
    more: dict[str, Variable] = {"header": (("byte",), content, what)}
    if solution.events:
        happened = solution.events
        more["event_time"] = (("event",), np.array([e.time for e in happened]), {"units": "s"})
        more["event_q"] = (("event", "coordinate"), np.array([e.q for e in happened]), {})
        more["event_v"] = (("event", "rate"), np.array([e.v for e in happened]), {})
    labelled = motion_arrays(solution).with_variables(more, source=f"Linkwright {__version__}")
    check_target(path)
    write_bytes(path, labelled.netcdf())
    if unread:
        # The numbers are worth more than the model: other readers of NetCDF have them.
        text = f"{path} is written, but {unread}; read its numbers with xarray.open_dataset"
        warn(text, LinkwrightWarning, stacklevel=3)


def _why_unread(model: str) -> str:
    """Why `open` will not take the text of a model; empty if it will."""
    from linkwright.formats.mks.mks_reader import MAX_BYTES, parse_mks  # weight: lark

    if len(model) > MAX_BYTES:
        return "its model is too large for lw.open"
    try:
        parse_mks(model)
    except LinkwrightError as error:
        return f"lw.open will not read its model ({error})"
    return ""


def open(path: str | os.PathLike[str]) -> Solution:
    """The solution in a NetCDF file that `Solution.save` wrote, with its model.

    path: the file. Raises FormatError for a file that is no such solution, or damaged.

    >>> import tempfile, linkwright as lw
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lw.simulate(lw.chain(1), t_end=0.1, q0=[0.5]).save(f"{folder}/swing.nc")
    ...     lw.open(f"{folder}/swing.nc").description.nb
    1
    """
    import h5py  # weight: h5py

    file = path_text("a solution", path)
    try:
        facts = os.stat(file)
        if not stat.S_ISREG(facts.st_mode):
            raise FormatError("is no file; give one that Solution.save wrote", file=file)
        with builtins.open(file, "rb") as stream:
            wrong = fault(stream.read(SIZE))
        if wrong:
            raise FormatError(f"{wrong}; give one that Solution.save wrote", file=file)
        group = h5py.File(file, "r", locking=False)  # files are replaced whole, never changed
    except OSError as error:
        raise FormatError(_why_not(file, error), file=file) from error
    with group:
        try:
            return _read(Stored(group, file, facts.st_size))
        except LinkwrightError:
            raise
        except (OSError, RuntimeError, ValueError, TypeError, KeyError, MemoryError) as error:
            # What the HDF5 library says of damage inside a file that it could open.
            raise FormatError(f"is damaged ({error}); {_AGAIN}", file=file) from error


def _why_not(file: str, error: OSError) -> str:
    if "truncated" in str(error):
        return f"is cut short; copy it anew, or {_AGAIN}"
    if isinstance(error, FileNotFoundError):
        return "there is no such file; give one that Solution.save or `linkwright run` wrote"
    if error.strerror:
        return f"cannot be read: {error.strerror}"
    return f"is no NetCDF 4 file; give one that Solution.save wrote ({error})"


class Stored:
    """An open file whose parts are looked at before they are read."""

    def __init__(self, group: Any, file: str, size: int, again: str = _AGAIN) -> None:
        self.group, self.file, self.size, self.again = group, file, size, again

    def wrong(self, message: str) -> FormatError:
        """The error that this is wrong with the file."""
        return FormatError(f"{message}; {self.again}", file=self.file)

    def _dataset(self, name: str, kind: str) -> Any:
        import h5py  # weight: h5py

        # Links to other files, and data kept in other files, could be anybody's.
        link = self.group.get(name, getlink=True)
        if link is None:
            raise self.wrong(f"has no variable {name!r}")
        if not isinstance(link, h5py.HardLink):
            raise self.wrong(f"has a link in place of the variable {name!r}")
        variable = self.group[name]
        if not isinstance(variable, h5py.Dataset):
            raise self.wrong(f"has a group in place of the variable {name!r}")
        if variable.external or variable.is_virtual:
            raise self.wrong(f"keeps the variable {name!r} in another file")
        if variable.dtype.kind != kind:
            raise self.wrong(f"has a variable {name!r} of type {variable.dtype}")
        if variable.shape is None:
            raise self.wrong(f"has a variable {name!r} without a shape")
        # Stored plainly, numbers are never more than the file: a small file cannot ask for much memory.
        if variable.size and (variable.chunks is not None or variable.size * variable.dtype.itemsize > self.size):
            raise self.wrong(f"keeps the variable {name!r}, of shape {variable.shape}, packed or cut short")
        return variable

    def numbers(self, name: str, shape: tuple[int | None, ...], dtype: Any = np.float64) -> NDArray[Any]:
        """A variable of this shape, where None is any number."""
        wanted = np.dtype(dtype)
        variable = self._dataset(name, wanted.kind)
        if not fits_shape(variable.shape, shape):
            asked = tuple("any" if b is None else b for b in shape)
            raise self.wrong(f"has a variable {name!r} of shape {variable.shape} where {asked} is needed")
        if variable.dtype.itemsize != wanted.itemsize:
            raise self.wrong(f"has a variable {name!r} of type {variable.dtype} where {wanted} is needed")
        return np.asarray(variable[...] if variable.size else np.zeros(variable.shape), dtype=wanted)

    def floats(self, name: str) -> Any:
        """A variable of floats of any shape, as the file has it: not read yet."""
        variable = self._dataset(name, "f")
        if variable.dtype.itemsize != 8:
            raise self.wrong(f"has a variable {name!r} of type {variable.dtype} where float64 is needed")
        return variable

    def any_numbers(self, name: str) -> NDArray[Any]:
        """A variable of floats, of any shape."""
        return self.numbers(name, (None,) * len(self.floats(name).shape))

    def header(self, format: str = FORMAT, newest: int = VERSION, what: str = "a solution") -> dict[str, Any]:
        """The header, as far as it is one of ours."""
        if self.group.get("header", getlink=True) is None:
            raise self.wrong(f"has no variable 'header': it is not {what}, or it is damaged")
        content = self.numbers("header", (None,), np.uint8).tobytes()
        try:
            header = json.loads(content.decode("ascii"))
        except (ValueError, RecursionError) as error:
            raise self.wrong(f"has a header that is no JSON ({error})") from error
        if isinstance(header, dict) and header.get("format") == "linkwright study" != format:
            raise FormatError("is a study; lw.Study.open reads it", file=self.file)
        if not isinstance(header, dict) or header.get("format") != format:
            raise self.wrong(f"has a header that is not of the format {format!r}")
        version = header.get("version")
        if type(version) is not int or version < 1:
            raise self.wrong(f"has the format version {version!r}, which is none")
        if version > newest:
            text = f"has the format version {version}, written by Linkwright {header.get('linkwright')}"
            raise FormatError(f"{text}; update Linkwright to read it", file=self.file)
        return header


def _read(stored: Stored) -> Solution:
    header = stored.header()
    status, counters = _status(stored, header.get("status")), _counters(stored, header.get("counters"))
    description = _model(stored, header.get("model"))
    if header.get("bodies") != list(description.body_names):
        raise stored.wrong("names other bodies than its own model does")
    time = stored.numbers("time", (None,))
    if not np.isfinite(time).all():
        raise stored.wrong("has times that are no numbers")
    points, bodies = len(time), description.nb
    arrays = {q: stored.numbers(q, (points, bodies, size)) for q, (size, _, _) in QUANTITIES.items()}
    iterations = stored.numbers("iterations", (points,), np.int64)
    states, events = _states(stored, description, points), _events(stored, description, header.get("events", []))
    solution = Solution.of(
        description,
        time,
        **arrays,
        status=status,
        counters=counters,
        iterations=iterations,
        states=states,
        events=events,
    )
    return solution.with_series(_series(stored, header.get("series", []), points))


def _sizes(description: Description) -> tuple[int, int]:
    x: Coordinates = Tree(description, span(description)).coordinates
    return x.nq, x.nv


def _states(stored: Stored, description: Description, points: int) -> States | None:
    """The coordinates of the spanning tree, where a simulation left them."""
    if stored.group.get("q", getlink=True) is None:
        return None
    nq, nv = _sizes(description)
    sizes = {"q": nq, "v": nv, "a": nv}
    return States(*(sealed(stored.numbers(name, (points, n))) for name, n in sizes.items()))


def _events(stored: Stored, description: Description, names: Any) -> list[Occurrence]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise stored.wrong("has events without names")
    if not names:
        return []
    nq, nv = _sizes(description)
    time = stored.numbers("event_time", (len(names),))
    q, v = stored.numbers("event_q", (len(names), nq)), stored.numbers("event_v", (len(names), nv))
    return [Occurrence(name, float(time[k]), q[k], v[k]) for k, name in enumerate(names)]


def _series(stored: Stored, names: Any, points: int) -> dict[str, Series]:
    """The series by their names; `names` are pairs of a name and a unit."""
    fits = isinstance(names, list) and all(
        isinstance(x, list) and len(x) == 2 and all(isinstance(y, str) for y in x) for x in names
    )
    if not fits or len({x[0] for x in names}) < len(names):
        raise stored.wrong("has names of series that are not what they should be")
    if not names:
        return {}
    table = stored.numbers("series", (points, len(names)))
    return {name: Series(table[:, k], unit) for k, (name, unit) in enumerate(names)}


def _model(stored: Stored, text: Any) -> Description:
    from linkwright.formats.mks.mks_reader import parse_mks  # weight: lark

    if not isinstance(text, str):
        raise stored.wrong("has no model in its header")
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


def _fields(stored: Stored, name: str, values: Any, of: type[Status] | type[Counters]) -> dict[str, Any]:
    if not isinstance(values, dict) or not set(values) <= {f.name for f in dataclasses.fields(of)}:
        raise stored.wrong(f"has {name} that are not what they should be")
    return values


#: The types of a status' fields in a file; numbers that JSON does not have are words.
_STATUS = {
    "ok": bool,
    "message": str,
    "reason": str,
    "advice": str,
    "element": str | None,
    "time": float | int | None,
    "residual": float | int,
    "notes": list,
}


def _status(stored: Stored, plain: Any) -> Status:
    absent = {"message": "", "reason": "", "advice": "", "element": None, "time": None}
    values = {**absent, **_fields(stored, "words on its status", plain, Status)}
    for name in ("time", "residual"):
        if values.get(name) in ("inf", "-inf", "nan"):
            values[name] = float(values[name])
    fits = set(values) == set(_STATUS) and all(isinstance(values[name], kind) for name, kind in _STATUS.items())
    if not fits or not all(isinstance(note, str) for note in values["notes"]):
        raise stored.wrong("has words on its status that are not what they should be")
    time = None if values["time"] is None else float(values["time"])
    return Status(**{**values, "time": time, "residual": float(values["residual"]), "notes": tuple(values["notes"])})


def _counters(stored: Stored, plain: Any) -> Counters:
    values = _fields(stored, "counters", plain, Counters)
    for name, value in values.items():
        if type(value) is not int or not 0 <= value <= _LARGEST_COUNT:
            raise stored.wrong(f"counts {name!r} as {value!r}")
    return Counters(**values)
