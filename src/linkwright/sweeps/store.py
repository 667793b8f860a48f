"""A study's folder: what it is, and the chunks that are finished, each in a file that is whole or not there.

`manifest.json` says of which study it is, `values.npy` has its cases, `chunks/000012.npz` a finished chunk with a
digest of its own. When all are there, `study.nc` takes their place. Files are untrusted: sizes are looked at before
anything is read, and nothing in them is run.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.files import atomic_file
from linkwright.errors import FormatError, LinkwrightError, ModelError
from linkwright.results.archives import DAMAGE, plain_array
from linkwright.sweeps.batch import Batch
from linkwright.sweeps.plan import Plan
from linkwright.sweeps.task import Task, digest_of

Floats = NDArray[np.float64]
FORMAT, VERSION = "linkwright study", 1
MANIFEST, VALUES, CHUNKS, DATASET, LOCK = "manifest.json", "values.npy", "chunks", "study.nc", ".lock"
_LARGEST_TEXT = 64 * 2**20
_CHUNK_NAME = re.compile(r"(\d{6,9})\.npz")
_PART_NAME = re.compile(r"\.(manifest\.json|values\.npy|study\.nc|\d{6,9}\.npz)\.[0-9a-f]{8}\.part")
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


class Store:
    """A folder that a study is kept in while it runs, and afterwards."""

    def __init__(self, folder: Path, task: Task, plan: Plan) -> None:
        self.folder, self.task, self.plan = folder, task, plan
        self.study = study_digest(task, plan)
        self._held: IO[bytes] | None = None

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
        _make(place)
        _refuse_others(place, resume)
        made = cls(place, task, plan)
        made._hold()
        try:
            _refuse_others(place, resume)  # it may have become another's meanwhile
            known = (place / MANIFEST).exists()
            _make(place / CHUNKS)
            made._drop_parts()
            if known and resume:
                made._take_over(chunked)
            elif known and not overwrite:
                text = f"{place} holds a study already; resume=True goes on with it, overwrite=True begins anew"
                raise ModelError(f"{text}, or choose another folder")
            else:
                made._clear()
                made._write_manifest()
        except BaseException:
            made.release()
            raise
        return made

    def _hold(self) -> None:
        """Keep other drivers out; the system lets go of it when this process ends, however it ends."""
        try:
            import fcntl
        except ImportError:  # no such locks here: two drivers at once would compute chunks twice, and lose nothing
            return
        self._held = open(self.folder / LOCK, "wb")  # noqa: SIM115  (held until release)
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._held.close()
            text = f"another process works on the study in {self.folder}; wait for it, or choose another folder"
            raise LinkwrightError(text) from None

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
        for folder in (self.folder, self.folder / CHUNKS):
            for name in os.listdir(folder):
                if _PART_NAME.fullmatch(name):
                    (folder / name).unlink(missing_ok=True)

    def _drop_files(self, *names: re.Pattern[str]) -> None:
        """Remove chunks, and nothing that somebody else put beside them."""
        folder = self.folder / CHUNKS
        with suppress(OSError):
            for name in os.listdir(folder):
                if any(pattern.fullmatch(name) for pattern in names):
                    (folder / name).unlink(missing_ok=True)

    def _write_manifest(self) -> None:
        from linkwright import __version__

        with atomic_file(self.folder / VALUES) as file:
            np.save(file, self.plan.values, allow_pickle=False)
        plan = {"recipe": dict(self.plan.recipe), "names": list(self.plan.names), "chunk": self.plan.chunk}
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "linkwright": __version__,
            "study": self.study,
            "task": self.task.plain(),
            "plan": plan | {"digest": self.plan.digest},
        }
        with atomic_file(self.folder / MANIFEST) as file:
            file.write(json.dumps(manifest, indent=1, allow_nan=False).encode("ascii"))

    def _take_over(self, chunked: bool) -> None:
        task, plan, study = read_manifest(self.folder)
        differs = differences(task, plan, self.task, self.plan)
        if not differs and study != study_digest(self.task, plan):
            differs = ["the functions"]  # of them a file has no more than a digest
        if chunked and plan.chunk != self.plan.chunk:
            differs.append("the chunk size")
        if differs:
            verb = "differs" if len(differs) == 1 and not differs[0].endswith("s") else "differ"
            text = f"{self.folder} holds another study: {', '.join(differs)} {verb}; give the same as then to go on"
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
            "digest": _digest(arrays),
        }
        content: dict[str, Any] = {"header": np.frombuffer(json.dumps(header).encode("ascii"), np.uint8)}
        content |= {f"a{k}": x for k, x in enumerate(arrays)}
        with atomic_file(self._chunk(index)) as file:
            np.savez(file, **content)

    def read(self, index: int) -> Batch | None:
        """A finished chunk; none if it is not there, not of this study, or damaged, and has to be computed."""
        try:
            with zipfile.ZipFile(self._chunk(index)) as archive:
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
        if header["digest"] != _digest(arrays) or any(x.ndim < 1 or len(x) != n for x in arrays):
            return None
        given = header["reasons"]
        reasons = [str(given.get(str(k), "")) for k in range(n)]
        known = self.task.all_outputs or header["names"]
        return Batch({name: x for name, x in zip(header["names"], arrays, strict=True) if name in known}, reasons)

    def stored(self) -> dict[int, Batch]:
        """All chunks that are there and good."""
        found: dict[int, Batch] = {}
        with suppress(OSError):
            for name in sorted(os.listdir(self.folder / CHUNKS)):
                match = _CHUNK_NAME.fullmatch(name)
                if match and int(match[1]) < self.plan.chunks:
                    batch = self.read(int(match[1]))
                    if batch is not None:
                        found[int(match[1])] = batch
        return found

    def drop_chunks(self) -> None:
        """Remove the chunks, once the dataset has all of them."""
        self._drop_files(_CHUNK_NAME, _PART_NAME)
        with suppress(OSError):
            (self.folder / CHUNKS).rmdir()


def study_digest(task: Task, plan: Plan) -> str:
    """The same for the same question and the same cases."""
    return digest_of([task.digest, plan.digest])


def read_manifest(folder: Path) -> tuple[Task, Plan, str]:
    """The task, the plan and the digest of a study's folder."""
    file = folder / MANIFEST
    try:
        if file.stat().st_size > _LARGEST_TEXT:
            raise FormatError("is too large for a study's manifest; begin the study anew", file=str(file))
        manifest = json.loads(file.read_text(encoding="ascii"))
        if manifest["format"] != FORMAT or manifest["version"] != VERSION:
            raise FormatError(f"is not of the format {FORMAT!r}, version {VERSION}; begin anew", file=str(file))
        values = _values(folder / VALUES)
        task = Task.of(manifest["task"])
        plan = plan_of(manifest["plan"], values)
        if plan.digest != manifest["plan"]["digest"] or plan.names != task.names:
            raise FormatError("does not fit the values beside it; begin the study anew", file=str(file))
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}; is this a study's folder?", file=str(file)) from error
    except LinkwrightError:
        raise
    except DAMAGE as error:
        raise FormatError(f"is damaged ({error}); begin the study anew", file=str(file)) from error
    return task, plan, str(manifest["study"])


def plan_of(given: Any, values: Floats) -> Plan:
    """A plan from plain data and its values."""
    recipe, chunk, names = given["recipe"], given["chunk"], given["names"]
    fits = (
        isinstance(recipe, dict)
        and isinstance(recipe.get("parameters"), dict)
        and type(chunk) is int
        and chunk > 0
        and isinstance(names, list)
        and all(isinstance(name, str) for name in names)
        and values.ndim == 2
        and values.shape[1] == len(names)
        and bool(np.isfinite(values).all())
    )
    if not fits:
        raise FormatError("has no plan of a study; begin the study anew")
    values.flags.writeable = False
    return Plan(tuple(names), values, recipe, chunk)


def differences(task: Task, plan: Plan, other: Task, asked: Plan) -> list[str]:
    """What of a stored study is not as asked, in words."""
    found = _differing(task.plain(), other.plain())
    found += _differing(
        {k: x for k, x in plan.recipe.items() if k != "parameters"},
        {k: x for k, x in asked.recipe.items() if k != "parameters"},
    )
    mine, yours = plan.recipe["parameters"], asked.recipe["parameters"]
    return found + [f"the values of {name!r}" for name in yours if name in mine and mine[name] != yours[name]]


def _differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    return [word for key, word in _WORDS.items() if key in b and a.get(key) != b[key]]


# -- files ----------------------------------------------------------------------------------------------------
def _values(path: Path) -> Floats:
    with open(path, "rb") as file:
        content = file.read(os.fstat(file.fileno()).st_size)
    found = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    if found.dtype != np.float64:
        raise FormatError(f"has values of type {found.dtype}; begin the study anew", file=str(path))
    return np.ascontiguousarray(found)


def _array(archive: zipfile.ZipFile, name: str, size: int, dtype: Any) -> NDArray[Any]:
    found = plain_array(archive, name, size)
    if found is None or found.dtype != np.dtype(dtype):
        raise ValueError(f"{name} is packed, or not of type {np.dtype(dtype)}")
    return found


def _digest(arrays: list[Floats]) -> str:
    made = hashlib.sha256()
    for x in arrays:
        made.update(repr(x.shape).encode() + np.ascontiguousarray(x).tobytes())
    return made.hexdigest()


def _refuse_others(folder: Path, resume: bool) -> None:
    """An error for a folder that holds files and no study: nothing is put there, and nothing removed."""
    if (folder / MANIFEST).exists():
        if resume or _is_ours(folder / MANIFEST):  # what is wrong with it is told where it is read
            return
        what = f"a {MANIFEST} that is no study's"
    else:
        # A driver that was killed as it began leaves these.
        begun = {CHUNKS, LOCK, VALUES} if (folder / LOCK).exists() else {LOCK}
        others = [name for name in os.listdir(folder) if name not in begun and not _PART_NAME.fullmatch(name)]
        if not others and not (CHUNKS in begun and (folder / CHUNKS).is_dir() and os.listdir(folder / CHUNKS)):
            return
        what = "other files and no study"
    raise ModelError(f"{folder} holds {what}; choose an empty folder or a new one")


def _is_ours(manifest: Path) -> bool:
    """Whether a manifest is a study's, or what is left of one; others have files of this name too."""
    try:
        with open(manifest, "rb") as file:
            begin = file.read(64 * 1024)
    except OSError:
        return False
    return not begin or FORMAT.encode() in begin


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise LinkwrightError(f"{folder}: there is a file of this name; name a folder for the study") from None
    except OSError as error:
        raise LinkwrightError(f"{folder}: cannot be made ({error.strerror}); choose another folder") from None
