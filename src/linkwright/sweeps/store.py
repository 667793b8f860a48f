"""A study's folder: what it is, and the chunks that are finished, each in a file that is whole or not there.

`manifest.json` says of which study it is, `values.npy` has its cases, `chunks/000012.npz` a finished chunk with digests
of its own. When all are there, `study.nc` takes the place of the chunks of a small study. Files are untrusted: sizes
are looked at before anything is read, and nothing in them is run.
"""

from __future__ import annotations

import json
import math
import os
import re
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.base.files import cannot_write, kind, open_regular, write_bytes
from linkwright.errors import FormatError, LinkwrightError, ModelError
from linkwright.results.solution_files import DAMAGE, archive_bytes, arrays_digest, plain_array
from linkwright.sweeps.folder_locks import BEGIN, LOCK, FolderLocks, is_part_lock
from linkwright.sweeps.plan import Plan
from linkwright.sweeps.stored_outputs import StoredOutputs, is_small
from linkwright.sweeps.study_manifest import (
    FORMAT,
    MANIFEST,
    VALUES,
    VERSION,
    differences,
    is_manifest,
    read_manifest,
    study_digest,
    write_manifest,
)
from linkwright.sweeps.task import MISSING, Batch, Task, gathered

CHUNKS, DATASET = "chunks", "study.nc"
_CHUNK_NAME = re.compile(r"(\d{6,9})\.npz")
#: What is half written; with the number of the chunk, of a chunk.
_PART_NAME = re.compile(r"\.(?:manifest\.json|values\.npy|study\.nc|(\d{6,9})\.npz)\.[0-9a-f]{8}\.part")
_AGAIN = "resume the study to compute it again"


@dataclass(frozen=True)
class Head:
    """What a chunk's file says of itself: its outputs with the shapes and digests of their arrays, and its reasons."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    digests: tuple[str, ...]
    reasons: list[str]


class Store:
    """A folder that a study is kept in while it runs, and afterwards."""

    def __init__(self, folder: Path, task: Task, plan: Plan, part: tuple[int, int] | None = None) -> None:
        self.folder, self.task, self.plan, self.part = folder, task, plan, part
        self.study = study_digest(task, plan)
        #: Whether the study was begun by another driver, which ended before all was done.
        self.continued = False
        self._locks = FolderLocks(folder, part)

    @property
    def share(self) -> range:
        """The chunks that this driver computes: every so manieth, since neighbours take much the same work."""
        number, parts = self.part or (1, 1)
        return range(number - 1, self.plan.chunks, parts)

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
        part: tuple[int, int] | None = None,
    ) -> Store:
        """The folder of a new study, or of one that goes on; `chunked` if the size of chunks was asked for.

        A study that goes on keeps the values that it was begun with, and the size of its chunks. A part of a study
        begins it or goes on with it, whichever comes first.
        """
        place = Path(folder)
        store = cls(place, task, plan, part)
        resume = resume or part is not None
        try:
            _make(place)
            _refuse_others(place, resume)
            store._locks.hold()
            _refuse_others(place, resume)  # it may have become another's meanwhile
            known = bool(kind(place / MANIFEST))
            store.continued = known and resume
            _make(place / CHUNKS)
            store._drop_half_written()
            if known and resume:
                store._take_over(chunked)
            elif known and not overwrite:
                text = f"{place} holds a study already; resume=True goes on with it, overwrite=True begins anew"
                raise ModelError(f"{text}, or choose another folder")
            else:
                store._clear()
                write_manifest(place, task, plan)
            store._locks.begun()
        except BaseException as error:
            store.release()
            if isinstance(error, OSError):
                raise cannot_write(place, error) from error
            raise
        return store

    def release(self) -> None:
        """Let other drivers in."""
        self._locks.release()

    def _clear(self) -> None:
        # The manifest goes last: without it, what is left would be nobody's.
        self._drop_files(_CHUNK_NAME)
        for name in (DATASET, VALUES, MANIFEST):
            (self.folder / name).unlink(missing_ok=True)

    def _drop_half_written(self) -> None:
        """Remove what a driver that was killed had half written; other parts may be writing theirs."""
        for folder, names in (
            (self.folder, os.listdir(self.folder)),
            (self.folder / CHUNKS, _chunk_names(self.folder)),
        ):
            for name in names:
                match = _PART_NAME.fullmatch(name)
                if match and (match[1] is None or int(match[1]) in self.share or self.part is None):
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
            anew = ", or overwrite=True" if self.part is None else ""
            raise ModelError(f"{text}, or choose another folder{anew}")
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
            "shapes": [list(x.shape) for x in arrays],
            "digests": [arrays_digest(x) for x in arrays],
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

    def _header(self, archive: zipfile.ZipFile, index: int) -> tuple[dict[str, Any], list[str], int] | None:
        """The header of a chunk of this study, the reasons of its cases, and the size of the file."""
        size = os.fstat(archive.fp.fileno()).st_size if archive.fp is not None else 0
        header = json.loads(_array(archive, "header", size, np.uint8).tobytes().decode("ascii"))
        if header["format"] != FORMAT or header["study"] != self.study or header["index"] != index:
            return None
        by_number = header["reasons"]
        return header, [str(by_number.get(str(k), "")) for k in range(self._cases(index))], size

    def _cases(self, index: int) -> int:
        part = self.plan.part(index)
        return int(part.stop - part.start)

    def _batch(self, archive: zipfile.ZipFile, index: int) -> Batch | None:
        content = self._header(archive, index)
        if content is None:
            return None
        header, reasons, size = content
        names = header["names"]
        arrays = [_array(archive, f"a{k}", size, np.float64) for k in range(len(names))]
        if any(x.ndim < 1 or len(x) != len(reasons) for x in arrays):
            return None
        if "digest" in header:  # of all arrays together, as Linkwright 0.1.0 has it
            good = header["digest"] == arrays_digest(*arrays)
        else:
            good = header["digests"] == [arrays_digest(x) for x in arrays]
        known = self.task.all_outputs or names
        chosen = {name: x for name, x in zip(names, arrays, strict=True) if name in known}
        return Batch(chosen, reasons) if good else None

    def _head(self, index: int) -> Head | None:
        """What a chunk's file says of itself; none as of `read`. Its arrays are not read, and may yet be damaged."""
        try:
            with open_regular(self._chunk(index), links=False) as file, zipfile.ZipFile(file) as archive:
                content = self._header(archive, index)
                if content is None:
                    return None
                header, reasons, size = content
                if "digest" in header:
                    return _head_of(self._batch(archive, index))
                names = tuple(str(name) for name in header["names"])
                shapes = tuple(tuple(int(x) for x in shape) for shape in header["shapes"])
                digests = tuple(str(x) for x in header["digests"])
                entries = [archive.getinfo(f"a{k}.npy").file_size for k in range(len(names))]
                for shape, entry, _ in zip(shapes, entries, digests, strict=True):
                    if shape[:1] != (len(reasons),) or min(shape) < 0 or not 8 * math.prod(shape) < entry <= size:
                        return None
                return Head(names, shapes, digests, reasons)
        except (OSError, *DAMAGE):
            return None

    def _output(self, index: int, head: Head, name: str) -> Floats:
        """An output of a finished chunk; what is wrong with it is a `FormatError`."""
        file = self._chunk(index)
        at = head.names.index(name)
        try:
            with open_regular(file, links=False) as stream, zipfile.ZipFile(stream) as archive:
                size = os.fstat(stream.fileno()).st_size
                array: Floats = _array(archive, f"a{at}", size, np.float64)
        except OSError as error:
            raise FormatError(f"cannot be read: {error.strerror or error}; {_AGAIN}", file=str(file)) from error
        except DAMAGE as error:
            reason = str(error).partition(";")[0]
            raise FormatError(f"is damaged ({reason}); {_AGAIN}", file=str(file)) from error
        if array.shape != head.shapes[at]:
            text = f"has numbers of {name!r} of shape {array.shape} where {head.shapes[at]} is needed"
            raise FormatError(f"{text}; {_AGAIN}", file=str(file))
        if arrays_digest(array) != head.digests[at]:
            raise FormatError(f"is damaged: its numbers of {name!r} have another digest; {_AGAIN}", file=str(file))
        return array

    def finished(self) -> set[int]:
        """The chunks of this driver's share that are there and good."""
        return {index for index in self._present() if index in self.share and self.read(index) is not None}

    def stored(self) -> dict[int, Batch]:
        """All chunks that are there and good."""
        batches = ((index, self.read(index)) for index in self._present())
        return {index: batch for index, batch in batches if batch is not None}

    def _present(self) -> list[int]:
        """The chunks that there are files of."""
        with suppress(OSError):
            numbers = (_CHUNK_NAME.fullmatch(name) for name in _chunk_names(self.folder))
            return sorted({int(match[1]) for match in numbers if match and int(match[1]) < self.plan.chunks})
        return []

    def outputs(self) -> Batch | StoredOutputs:
        """The outputs of all cases: in memory where they are small, else to be read when they are asked for.

        Cases of chunks that are not there are failures with a reason.
        """
        heads = {index: head for index in self._present() if (head := self._head(index)) is not None}
        shapes = dict.fromkeys(self.task.all_outputs, ())  # type: dict[str, tuple[int, ...]]
        for head in heads.values():
            for name, shape in zip(head.names, head.shapes, strict=True):
                if name in shapes or not self.task.all_outputs:
                    shapes[name] = max(shapes.get(name, ()), shape[1:], key=len)
        if is_small(8 * len(self.plan) * sum(map(math.prod, shapes.values()))):
            return gathered(self.task, self.plan, self.stored())
        heads = {index: head for index, head in heads.items() if _is_usable(head, shapes)}
        reasons: list[str] = []
        for index in range(self.plan.chunks):
            reasons += heads[index].reasons if index in heads else [MISSING] * self._cases(index)

        def read(name: str, index: int) -> Floats:
            head = heads.get(index)
            if head is None or name not in head.names:
                return np.full((self._cases(index), *shapes[name]), np.nan)
            array = self._output(index, head, name)
            return array if array.shape[1:] == shapes[name] else np.full((len(array), *shapes[name]), np.nan)

        return StoredOutputs(shapes, reasons, self.plan.chunk, read)

    def missing_parts(self, outputs: Batch | StoredOutputs) -> list[tuple[int, int]]:
        """Which parts of a study that is computed in parts lack chunks of its outputs, as `StudyFolder.part` has
        them; a chunk that is damaged is lacking."""
        parts = self._locks.parts
        if not parts:
            return []
        firsts = (self.plan.part(index).start for index in range(self.plan.chunks))
        lacking = {index % parts + 1 for index, k in enumerate(firsts) if outputs.reasons[k] == MISSING}
        return [(number, parts) for number in sorted(lacking)]

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


def _head_of(batch: Batch | None) -> Head | None:
    """Of a chunk that was read already."""
    if batch is None:
        return None
    arrays = batch.arrays.values()
    return Head(tuple(batch.arrays), tuple(x.shape for x in arrays), tuple(map(arrays_digest, arrays)), batch.reasons)


def _is_usable(head: Head, shapes: dict[str, tuple[int, ...]]) -> bool:
    """Whether the outputs of a chunk with good cases are of the shapes that others have."""
    fits = all(shape[1:] == shapes.get(name, shape[1:]) for name, shape in zip(head.names, head.shapes, strict=True))
    return fits or all(head.reasons)


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
    _refuse_links(folder, LOCK, BEGIN, MANIFEST, VALUES, DATASET, CHUNKS)
    chunks = _chunk_names(folder)
    _refuse_links(folder / CHUNKS, *(name for name in chunks if _CHUNK_NAME.fullmatch(name)))
    if kind(folder / MANIFEST):
        if resume or is_manifest(folder / MANIFEST):  # reading it reports what is wrong with it
            return
        what = f"a {MANIFEST} that is no study's"
    else:
        # A driver that was killed as it began leaves these.
        begun = {CHUNKS, LOCK, BEGIN, VALUES} if kind(folder / LOCK) else {LOCK}
        others = [name for name in os.listdir(folder) if name not in begun and not _is_passing(name)]
        if not others and not (CHUNKS in begun and chunks):
            return
        what = "other files and no study"
    raise ModelError(f"{folder} holds {what}; choose an empty folder or a new one")


def _is_passing(name: str) -> bool:
    """Whether a name is of what is half written, or of the lock of a part."""
    return bool(_PART_NAME.fullmatch(name)) or is_part_lock(name)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise LinkwrightError(f"{folder}: there is a file of this name; name a folder for the study") from None
    except OSError as error:
        raise LinkwrightError(f"{folder}: cannot be made ({error.strerror}); choose another folder") from None
