"""A study's folder: what it is, and the chunks that are finished, each in a file that is whole or not there.

`manifest.json` says of which study it is, `values.npy` has its cases, `chunks/000012.npz` a finished chunk with a
digest of its own. When all are there, `study.nc` takes their place. Files are untrusted: sizes are looked at before
anything is read, and nothing in them is run.
"""

from __future__ import annotations

import errno
import json
import os
import re
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from linkwright.base.files import cannot_write, kind, open_lock, open_regular, write_bytes
from linkwright.errors import LinkwrightError, LinkwrightWarning, ModelError
from linkwright.results.solution_files import DAMAGE, archive_bytes, digest_of, plain_array
from linkwright.sweeps.manifest import (
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
from linkwright.sweeps.plan import Plan
from linkwright.sweeps.task import Batch, Task

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
            "digest": digest_of(*arrays),
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
        if header["digest"] != digest_of(*arrays) or any(x.ndim < 1 or len(x) != n for x in arrays):
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
