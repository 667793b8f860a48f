"""A study's folder: what it is, and the chunks that are finished, each in a file that is whole or not there.

`manifest.json` says of which study it is, `values.npy` has its cases, `chunks/000012.npz` a finished chunk with a
digest of its own. When all are there, `study.nc` takes their place. Files are untrusted: sizes are looked at before
anything is read, and nothing in them is run.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from linkwright import __version__
from linkwright.base.arrays import Floats, array_of
from linkwright.base.files import cannot_write, kind, open_lock, open_regular, write_bytes
from linkwright.errors import FormatError, LinkwrightError, LinkwrightWarning, ModelError
from linkwright.results.solution_files import DAMAGE, archive_bytes, arrays_digest, plain_array
from linkwright.sweeps.plan import Plan, is_recipe
from linkwright.sweeps.task import Batch, Task, digest_of

FORMAT, VERSION = "linkwright study", 1
MANIFEST, VALUES = "manifest.json", "values.npy"
_LARGEST_TEXT = 64 * 2**20
_ANEW = "overwrite=True begins the study anew"
#: What a study is made of, in the words of messages.
_WORDS = {
    "model": "the model",
    "names": "the swept parameters",
    "outputs": "the outputs",
    "analysis": "the kind of analysis",
    "times": "the times",
    "settings": "the settings",
    "parameters": "the other parameters",
    "cases": "the number of cases",
    "crossed": "how grid and draws are put together",
    "sampling": "the sampling",
    "seed": "the seed",
}


def study_digest(task: Task, plan: Plan) -> str:
    """The same for the same question and the same cases."""
    return digest_of([task.digest, plan.digest])


def header_of(task: Task, plan: Plan) -> dict[str, Any]:
    """A study's task and plan as plain data, with the format and the version of Linkwright."""
    recipe = {"recipe": dict(plan.recipe), "names": list(plan.names), "chunk": plan.chunk}
    head = {"format": FORMAT, "version": VERSION, "linkwright": __version__}
    return {**head, "task": task.plain(), "plan": recipe}


def write_manifest(folder: Path, task: Task, plan: Plan) -> None:
    """Write what a study is; the manifest last, since a folder with one is a study's."""
    values = io.BytesIO()
    np.save(values, plan.values, allow_pickle=False)
    write_bytes(folder / VALUES, values.getbuffer(), links=False)
    manifest = header_of(task, plan) | {"study": study_digest(task, plan)}
    manifest["plan"]["digest"] = plan.digest
    write_bytes(folder / MANIFEST, json.dumps(manifest, indent=1, allow_nan=False).encode("ascii"), links=False)


def is_manifest(file: Path) -> bool:
    """Whether a file is a study's manifest, or what is left of one; others have files of this name too."""
    try:
        with open_regular(file, links=False) as stream:
            begin = stream.read(64 * 1024)
    except OSError:
        return False
    return not begin or FORMAT.encode() in begin


def read_manifest(folder: Path) -> tuple[Task, Plan, str]:
    """The task, the plan and the digest of a study's folder."""
    file = folder / MANIFEST
    try:
        with open_regular(file, links=False) as stream:
            content = stream.read(_LARGEST_TEXT + 1)
        if len(content) > _LARGEST_TEXT:
            raise FormatError("is too large for a study's manifest; choose another folder", file=str(file))
        manifest = json.loads(content.decode("ascii"))
        if manifest["format"] != FORMAT or manifest["version"] != VERSION:
            raise FormatError(f"is not of the format {FORMAT!r}, version {VERSION}; {_ANEW}", file=str(file))
        file = folder / VALUES
        values = _values(file)
        file = folder / MANIFEST
        task = Task.of(manifest["task"])
        plan = plan_of(manifest["plan"], values)
        if plan.digest != manifest["plan"]["digest"] or plan.names != task.names:
            raise FormatError(f"does not fit the values beside it; {_ANEW}", file=str(file))
        study = str(manifest["study"])
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}; is this a study's folder?", file=str(file)) from error
    except FormatError as error:
        if error.file is not None:
            raise
        raise FormatError(f"{error}; {_ANEW}", file=str(file)) from error
    except LinkwrightError as error:  # of a task with values that no study has
        raise FormatError(f"is no study's ({error}); {_ANEW}", file=str(file)) from error
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise FormatError(f"does not have the entries of a study's manifest; {_ANEW}", file=str(file)) from error
    except DAMAGE as error:
        reason = str(error).partition(";")[0]  # without the advice to programmers after it
        raise FormatError(f"is damaged ({reason}); {_ANEW}", file=str(file)) from error
    return task, plan, study


def plan_of(plain: Any, values: Floats) -> Plan:
    """A plan from plain data and its values."""
    recipe, chunk, names = plain["recipe"], plain["chunk"], plain["names"]
    fits = (
        is_recipe(recipe)
        and type(chunk) is int
        and chunk > 0
        and isinstance(names, list)
        and all(isinstance(name, str) for name in names)
        and values.ndim == 2
        and values.shape[1] == len(names)
        and bool(np.isfinite(values).all())
    )
    if not fits:
        raise FormatError("has no plan of a study")
    values.flags.writeable = False
    return Plan(tuple(names), values, recipe, chunk)


def differences(task: Task, plan: Plan, other: Task, asked: Plan) -> list[str]:
    """What of a stored study is not as asked, in words."""
    words = _differing(task.plain(), other.plain())
    words += _differing(
        {k: x for k, x in plan.recipe.items() if k != "parameters"},
        {k: x for k, x in asked.recipe.items() if k != "parameters"},
    )
    mine, yours = plan.recipe["parameters"], asked.recipe["parameters"]
    return words + [f"the values of {name!r}" for name in yours if name in mine and mine[name] != yours[name]]


def _differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    return [word for key, word in _WORDS.items() if key in b and a.get(key) != b[key]]


def _values(path: Path) -> Floats:
    with open_regular(path, links=False) as file:
        content = file.read(os.fstat(file.fileno()).st_size)
    values = array_of(content)
    if values.dtype != np.float64:
        raise FormatError(f"has values of type {values.dtype}; {_ANEW}", file=str(path))
    return values


CHUNKS, DATASET, LOCK = "chunks", "study.nc", ".lock"
_CHUNK_NAME = re.compile(r"(\d{6,9})\.npz")
_PART_NAME = re.compile(r"\.(manifest\.json|values\.npy|study\.nc|\d{6,9}\.npz)\.[0-9a-f]{8}\.part")


class Store:
    """A folder that a study is kept in while it runs, and afterwards."""

    def __init__(self, folder: Path, task: Task, plan: Plan) -> None:
        self.folder, self.task, self.plan = folder, task, plan
        self.study = study_digest(task, plan)
        #: Whether the study was begun by another driver, which ended before all was done.
        self.continued = False
        self._held: BinaryIO | None = None

    # -- a study begins, or goes on -----------------------------------------------------------------------
    @classmethod
    def begin(
        cls,
        folder: str | os.PathLike[str],
        task: Task,
        plan: Plan,
        *,
        resume: bool = False,
        overwrite: bool = False,
        chunked: bool = False,
    ) -> Store:
        """The folder of a new study, or of one that goes on; `chunked` if the size of chunks was asked for.

        A study that goes on keeps the values that it was begun with, and the size of its chunks.
        """
        place = Path(folder)
        store = cls(place, task, plan)
        try:
            _make(place)
            _refuse_others(place, resume)
            store._hold()
            _refuse_others(place, resume)  # it may have become another's meanwhile
            known = bool(kind(place / MANIFEST))
            store.continued = known and resume
            _make(place / CHUNKS)
            store._drop_parts()
            if known and resume:
                store._take_over(chunked)
            elif known and not overwrite:
                text = f"{place} holds a study already; resume=True goes on with it, overwrite=True begins anew"
                raise ModelError(f"{text}, or choose another folder")
            else:
                store._clear()
                write_manifest(place, task, plan)
        except BaseException as error:
            store.release()
            if isinstance(error, OSError):
                raise cannot_write(place, error) from error
            raise
        return store

    def _hold(self) -> None:
        """Keep other drivers out; the system lets go of it when this process ends, however it ends."""
        try:
            import fcntl
        except ImportError:  # no such locks here: two drivers at once would compute chunks twice, and lose nothing
            return
        try:
            self._held = open_lock(self.folder / LOCK)
        except OSError as error:
            raise cannot_write(self.folder / LOCK, error) from error
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                self.release()
                text = f"another process works on the study in {self.folder}; wait for it, or choose another folder"
                raise LinkwrightError(text) from None
            text = f"{self.folder} cannot be locked ({error.strerror}); see that no other process works on this study"
            warn(text, LinkwrightWarning, stacklevel=4)

    def release(self) -> None:
        """Let other drivers in."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def _clear(self) -> None:
        # The manifest goes last: without it, what is left would be nobody's.
        self._drop_files(_CHUNK_NAME)
        for name in (DATASET, VALUES, MANIFEST):
            (self.folder / name).unlink(missing_ok=True)

    def _drop_parts(self) -> None:
        """Remove what a driver that was killed had half written."""
        for folder, names in (
            (self.folder, os.listdir(self.folder)),
            (self.folder / CHUNKS, _chunk_names(self.folder)),
        ):
            for name in names:
                if _PART_NAME.fullmatch(name):
                    (folder / name).unlink(missing_ok=True)

    def _drop_files(self, *names: re.Pattern[str]) -> None:
        """Remove chunks, and nothing that somebody else put beside them."""
        folder = self.folder / CHUNKS
        with suppress(OSError):
            for name in _chunk_names(self.folder):
                if any(pattern.fullmatch(name) for pattern in names):
                    (folder / name).unlink(missing_ok=True)

    def _take_over(self, chunked: bool) -> None:
        task, plan, study = read_manifest(self.folder)
        differs = differences(task, plan, self.task, self.plan)
        if not differs and study != study_digest(self.task, plan):
            differs = ["the functions"]  # of them a file has no more than a digest
        if chunked and plan.chunk != self.plan.chunk:
            differs.append("the chunk size")
        if differs:
            text = f"{self.folder} holds another study, which differs in {', '.join(differs)}; give the same to go on"
            raise ModelError(f"{text}, or choose another folder, or overwrite=True")
        self.plan = plan
        self.study = study_digest(self.task, plan)

    # -- chunks -------------------------------------------------------------------------------------------
    def _chunk(self, index: int) -> Path:
        return self.folder / CHUNKS / f"{index:06d}.npz"

    def write(self, index: int, batch: Batch, by: str = "", seconds: float = 0.0) -> None:
        """Keep a finished chunk."""
        names = list(batch.arrays)
        arrays = [np.ascontiguousarray(batch.arrays[name], dtype=np.float64) for name in names]
        header = {
            "format": FORMAT,
            "version": VERSION,
            "study": self.study,
            "index": index,
            "names": names,
            "reasons": {str(k): reason for k, reason in enumerate(batch.reasons) if reason},
            "by": by,
            "seconds": seconds,
            "digest": arrays_digest(*arrays),
        }
        _refuse_links(self.folder, CHUNKS)
        content = archive_bytes(header, {f"a{k}": x for k, x in enumerate(arrays)})
        write_bytes(self._chunk(index), content, links=False)

    def read(self, index: int) -> Batch | None:
        """A finished chunk; none if it is not there, not of this study, or damaged, and has to be computed."""
        try:
            with open_regular(self._chunk(index), links=False) as file, zipfile.ZipFile(file) as archive:
                return self._batch(archive, index)
        except (OSError, *DAMAGE):
            return None

    def _batch(self, archive: zipfile.ZipFile, index: int) -> Batch | None:
        size = os.fstat(archive.fp.fileno()).st_size if archive.fp is not None else 0
        header = json.loads(_array(archive, "header", size, np.uint8).tobytes().decode("ascii"))
        part = self.plan.part(index)
        n = part.stop - part.start
        if header["format"] != FORMAT or header["study"] != self.study or header["index"] != index:
            return None
        arrays = [_array(archive, f"a{k}", size, np.float64) for k in range(len(header["names"]))]
        if header["digest"] != arrays_digest(*arrays) or any(x.ndim < 1 or len(x) != n for x in arrays):
            return None
        by_number = header["reasons"]
        reasons = [str(by_number.get(str(k), "")) for k in range(n)]
        known = self.task.all_outputs or header["names"]
        return Batch({name: x for name, x in zip(header["names"], arrays, strict=True) if name in known}, reasons)

    def stored(self) -> dict[int, Batch]:
        """All chunks that are there and good."""
        chunks: dict[int, Batch] = {}
        with suppress(OSError):
            for name in sorted(_chunk_names(self.folder)):
                match = _CHUNK_NAME.fullmatch(name)
                if match and int(match[1]) < self.plan.chunks:
                    batch = self.read(int(match[1]))
                    if batch is not None:
                        chunks[int(match[1])] = batch
        return chunks

    def drop_chunks(self) -> None:
        """Remove the chunks, once the dataset has all of them."""
        self._drop_files(_CHUNK_NAME, _PART_NAME)
        with suppress(OSError):
            (self.folder / CHUNKS).rmdir()


# -- files ----------------------------------------------------------------------------------------------------
def _array(archive: zipfile.ZipFile, name: str, size: int, dtype: Any) -> NDArray[Any]:
    array = plain_array(archive, name, size)
    if array is None or array.dtype != np.dtype(dtype):
        raise ValueError(f"{name} is packed, or not of type {np.dtype(dtype)}")
    return array


def _chunk_names(folder: Path) -> list[str]:
    """What is in the folder of chunks; nothing where that is a link."""
    return os.listdir(folder / CHUNKS) if kind(folder / CHUNKS) == "a folder" else []


def _refuse_links(folder: Path, *names: str) -> None:
    """An error for a name of a study's that is a link, a pipe or the like: it would lead elsewhere, or block."""
    for name in names:
        sort, wanted = kind(folder / name), "a folder" if name == CHUNKS else "a file"
        if sort not in ("", wanted):
            text = f"{folder / name} is {sort}, and a study keeps {wanted} of its own there; remove it"
            raise ModelError(f"{text}, or choose another folder")


def _refuse_others(folder: Path, resume: bool) -> None:
    """An error for a folder that holds files and no study: nothing is put there, and nothing removed."""
    _refuse_links(folder, LOCK, MANIFEST, VALUES, DATASET, CHUNKS)
    chunks = _chunk_names(folder)
    _refuse_links(folder / CHUNKS, *(name for name in chunks if _CHUNK_NAME.fullmatch(name)))
    if kind(folder / MANIFEST):
        if resume or is_manifest(folder / MANIFEST):  # reading it reports what is wrong with it
            return
        what = f"a {MANIFEST} that is no study's"
    else:
        # A driver that was killed as it began leaves these.
        begun = {CHUNKS, LOCK, VALUES} if kind(folder / LOCK) else {LOCK}
        others = [name for name in os.listdir(folder) if name not in begun and not _PART_NAME.fullmatch(name)]
        if not others and not (CHUNKS in begun and chunks):
            return
        what = "other files and no study"
    raise ModelError(f"{folder} holds {what}; choose an empty folder or a new one")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise LinkwrightError(f"{folder}: there is a file of this name; name a folder for the study") from None
    except OSError as error:
        raise LinkwrightError(f"{folder}: cannot be made ({error.strerror}); choose another folder") from None
