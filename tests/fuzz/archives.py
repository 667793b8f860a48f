"""Corpora of Linkwright's own files, made by the code that is tried, so that they are always of its version."""

from __future__ import annotations

import atexit
import hashlib
import io
import json
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzz.mutation import Mutator
from fuzz.structure import archive_bytes, array_bytes, unpacked

MODEL = """MODEL m PARAMETER L = 2; BODY g (ground); BODY a (mass = 1); BODY b (mass = 1);
REVOLUTE JOINT j (triad = g, triad = a); REVOLUTE JOINT k (triad = (associated body = a, origin = (L,0,0)), triad = b);
ENDMODEL"""
NQ = NV = 2
QUESTION = {"model": "m", "method": "rk45", "t_start": 0.0, "t_end": 2.0, "events": ["folded"]}
ENTRY = "e" * 64


@cache
def scratch() -> Path:
    """A folder for as long as this process lasts."""
    folder = tempfile.mkdtemp(prefix="linkwright-fuzz-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@cache
def _described() -> Any:
    from linkwright.formats.mks.mks_reader import parse_mks

    return parse_mks(MODEL)


# -- solutions ---------------------------------------------------------------------------------------------------
@cache
def solutions() -> Sequence[bytes]:
    """One of bodies alone, and one of coordinates with events and a series."""
    from linkwright.results.solution import Occurrence, Solution
    from linkwright.results.status import Counters, Series, Status

    time = np.linspace(0.0, 1.0, 3)
    three, four = np.zeros((3, 2, 3)), np.zeros((3, 2, 4))
    four[..., 0] = 1.0
    status = Status(ok=True, message="finished", notes=("a note",), time=1.0, residual=0.0)
    made = {"status": status, "counters": Counters(points=3)}
    plain = Solution.of(_described(), time, three, four, three, three, three, three, iterations=np.ones(3, int), **made)
    happened = [Occurrence("folded", 0.5, np.zeros(NQ), np.zeros(NV))]
    from linkwright.results.solution import States

    states = States(np.zeros((3, NQ)), np.zeros((3, NV)), np.zeros((3, NV)))
    moved = Solution.of(
        *(_described(), time, three, four, three, three, three, three),
        **{"iterations": np.ones(3, int), "states": states, "events": happened, **made},
    ).with_series({"s.force": Series(np.zeros(3), "N")})
    return [_saved(plain, "plain.nc"), _saved(moved, "moved.nc")]


def _saved(what: Any, name: str) -> bytes:
    path = scratch() / name
    what.save(path)
    return path.read_bytes()


# -- studies -----------------------------------------------------------------------------------------------------
def _study() -> tuple[Any, Any]:
    from linkwright.sweeps.plan import make_plan
    from linkwright.sweeps.task import Task

    outputs = (("reach", "max(b.x)"), ("b.y", "b.y"))
    task = Task(MODEL, ("L",), outputs, "kinematic", (0.0, 1.0), {"rtol": 1e-6}, {}, "")
    return task, make_plan({"L": [1.0, 2.0, 3.0, 4.0]}, chunk=2)


def _batch(n: int) -> Any:
    from linkwright.sweeps.task import Batch

    return Batch({"reach": np.arange(float(n)), "b.y": np.zeros((n, 2))}, ["", "out of reach"] * (n // 2))


@cache
def studies() -> Sequence[bytes]:
    """A study in one file."""
    from linkwright.sweeps.study import Study

    return [_saved(Study(*_study(), _batch(4)), "study.nc")]


@cache
def study_folder() -> Path:
    """The folder of a study that has one of its two chunks."""
    from linkwright.sweeps.store import Store

    folder = scratch() / "study"
    store = Store.begin(folder, *_study())
    store.write(0, _batch(2), "here", 0.1)
    store.release()
    return folder


def manifests() -> Sequence[bytes]:
    """Of the study in the folder."""
    return [(study_folder() / "manifest.json").read_bytes()]


def values() -> Sequence[bytes]:
    """Of the study in the folder."""
    return [(study_folder() / "values.npy").read_bytes()]


def chunks() -> Sequence[bytes]:
    """Of the study in the folder."""
    return [(study_folder() / "chunks/000000.npz").read_bytes()]


def signed(mutate: Mutator) -> Mutator:
    """Chunks with a digest that fits what is in them, every other time: else nothing behind it would be looked at."""

    def both(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
        made = mutate(rng, data, corpus)
        if rng.random() < 0.5:
            return made
        try:
            contents = dict(unpacked(made))
            arrays = {name: _loaded(contents[name]) for name in contents}
            header = json.loads(arrays["header.npy"].tobytes())
            digest = hashlib.sha256()
            for k in range(len(header["names"])):
                x = arrays[f"a{k}.npy"]
                digest.update(repr(x.shape).encode() + np.ascontiguousarray(x).tobytes())
            header["digest"] = digest.hexdigest()
            contents["header.npy"] = array_bytes(np.frombuffer(json.dumps(header).encode(), np.uint8))
            return archive_bytes(contents)
        except Exception:  # damaged beyond signing
            return made

    return both


def _loaded(data: bytes) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)


# -- checkpoints -------------------------------------------------------------------------------------------------
def settings() -> Any:
    """Of the run that the checkpoints are of."""
    from linkwright.simulation.initialise import Settings

    return Settings("rk45", 0.0, 2.0, None, 1e-8, 1e-10, 1.0, None)


@cache
def checkpoints() -> Sequence[bytes]:
    """In the middle of a run, and of one that an event ended."""
    from linkwright.results.solution import Occurrence
    from linkwright.simulation.checkpoint import Standing, write_checkpoint
    from linkwright.simulation.compiled_engines import EngineState, Work
    from linkwright.simulation.samples import Rows
    from linkwright.simulation.step_control import ACCEPTED, CONTROL

    t = np.array([0.0, 0.5, 1.0])
    rows = Rows(t, np.zeros((3, NQ)), np.zeros((3, NV)), np.zeros((3, NV)))
    control = np.zeros(len(CONTROL))
    control[:4] = 1.0, 0.1, 0.1, ACCEPTED
    engine = EngineState(rows[2:], control=control)
    happened = (Occurrence("folded", 1.0, np.zeros(NQ), np.zeros(NV)),)
    made = []
    for name, standing in (
        ("middle", Standing(rows, engine, (), Work(3, 1, 20, 0))),
        ("ended", Standing(rows, EngineState(rows[2:], 3), happened, Work(), True, True)),
    ):
        path = scratch() / f"{name}.lwc"
        write_checkpoint(str(path), QUESTION, standing)
        made.append(path.read_bytes())
    return made


# -- the cache and programs --------------------------------------------------------------------------------------
@cache
def entry_path() -> Path:
    """Where the cache puts the entry that is tried."""
    from linkwright.kernels.llvm.compiler import directory, write

    write(ENTRY, b"content")
    folder = directory()
    assert folder is not None
    return next(path for path in folder.rglob(f"*{ENTRY}*"))


def cache_entry(content: bytes) -> bytes:
    """The file of an entry with this content."""
    from linkwright.kernels.llvm.compiler import write

    write(ENTRY, content)
    return entry_path().read_bytes()


@cache
def entries() -> Sequence[bytes]:
    """Files of the cache."""
    return [cache_entry(content) for content in (b"", b"content", bytes(range(256)))]


@cache
def program() -> Any:
    """A program with a scan, a table and a solution of equations in it."""
    return _programs()[0]


def _programs() -> list[Any]:
    import linkwright as lw

    def plain(x: Any) -> Any:
        return np.array([np.sin(x[0]) * x[1], x[0] / x[1], np.sqrt(x[0] * x[0] + 1.0)])

    def solved(x: Any) -> Any:
        from linkwright.tape.block import where

        return where(x[0] < x[1], np.exp(x[0]), x[1] * 2.0)

    mech = lw.chain(3)
    return [lw.record(plain, (2,)), lw.record(solved, (2,)), mech.program("inverse_dynamics", form="rolled")]


@cache
def programs() -> Sequence[bytes]:
    """Saved programs: plain ones, and a loop over links."""
    made = []
    for k, one in enumerate(_programs()):
        path = scratch() / f"{k}.lwp"
        one.save(path)
        made.append(path.read_bytes())
    return made


@cache
def signatures() -> Sequence[bytes]:
    """What the cache holds of programs."""
    from linkwright.kernels.variant import Signature

    return [Signature.of(one, [1]).dumps() for one in _programs()]
