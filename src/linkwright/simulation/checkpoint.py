"""Checkpoints: the state of a run in a file from which it can be resumed, and when such files are written.

A file is a plain archive of numbers (.npz); a JSON text in it says for which model and settings. Files are untrusted:
sizes are looked at before anything is read, and nothing in them is run.
"""

from __future__ import annotations

import errno
import json
import os
import zipfile
from collections.abc import Collection
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.files import check_target, open_regular, write_bytes
from linkwright.errors import FormatError, LinkwrightError, ModelError
from linkwright.results.solution import Occurrence
from linkwright.results.solution_files import DAMAGE, archive_bytes, fits_shape, plain_array
from linkwright.results.status import Status
from linkwright.simulation.compiled_engines import EngineState, Work
from linkwright.simulation.initialise import Settings
from linkwright.simulation.samples import FixedSteps, Rows
from linkwright.simulation.step_control import ACCEPTED, CONTROL, ENDED, GROUPS, REJECTED, UNDERFLOW

FORMAT, VERSION = "linkwright checkpoint", 3
_NAMES = ("t", "q", "v", "a")
_HEADER = 2**24


@dataclass(frozen=True)
class Standing:
    """How a run stands: what is kept, what the engine needs to go on, what happened, and the work so far.

    `stopped` by a terminal event, the last one; `finished` if there is nothing to go on with.
    """

    rows: Rows
    engine: EngineState
    events: tuple[Occurrence, ...]
    work: Work
    stopped: bool = False
    finished: bool = False


def write_checkpoint(path: str, run_description: dict[str, Any], standing: Standing) -> None:
    """Write a checkpoint, whole or not at all."""
    engine = standing.engine
    header = {
        "format": FORMAT,
        "version": VERSION,
        "question": run_description,
        "numbers": {} if engine.done is None else {"done": engine.done},
        "work": {name: int(x) for name, x in vars(standing.work).items()},
        "events": [event.name for event in standing.events],
        "stopped": standing.stopped,
        "finished": standing.finished,
    }
    arrays = dict(zip(_NAMES, standing.rows.all, strict=True))
    arrays |= {f"last_{n}": x for n, x in zip(_NAMES, engine.last.all, strict=True)}
    if engine.control is not None:
        arrays["control"] = engine.control
    nq, nv = engine.last.q.shape[1], engine.last.v.shape[1]
    arrays["event_t"] = np.array([event.time for event in standing.events])
    arrays["event_q"] = np.array([event.q for event in standing.events]).reshape(-1, nq)
    arrays["event_v"] = np.array([event.v for event in standing.events]).reshape(-1, nv)
    write_bytes(path, archive_bytes(header, arrays))


def check_place(path: str) -> None:
    """Refuse to put a checkpoint in place of anything but a checkpoint; an empty file is nothing to lose."""
    check_target(path)
    try:
        with open_regular(path) as file:
            head = file.read(512)  # the header is the first in the archive, and its format the first in it
    except OSError:
        return  # nothing is there; or writing will raise the reason why it cannot be
    if head and not (head.startswith(b"PK") and f'"{FORMAT}"'.encode() in head):
        raise FormatError("is no checkpoint, and would be replaced by one; give checkpoint= another name", file=path)


def read_checkpoint(path: str, run_description: dict[str, Any], nq: int, nv: int) -> Standing:
    """A checkpoint of the same run; of another run, the error says what differs."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            with zipfile.ZipFile(file) as archive:
                return _Stored(path, archive, size).standing(run_description, nq, nv)
    except OSError as error:
        reason = error.strerror or str(error)
        raise FormatError(f"cannot be read: {reason}; leave resume out to start anew", file=path) from error
    except DAMAGE as error:
        if isinstance(error, LinkwrightError):
            raise
        raise FormatError(
            f"is no checkpoint, or damaged ({error}); leave resume out to start anew", file=path
        ) from error


def fault(standing: Standing, s: Settings, names: Collection[str]) -> str | None:
    """What of a standing cannot be that of a run with these settings and events; None if all can."""
    rows, t = standing.rows, float(standing.engine.last.t[0])
    times = np.append(rows.t, [event.time for event in standing.events])
    if not s.start <= t <= s.end or np.any(times < s.start) or np.any(times > s.end):
        return "has times outside of the run"
    if any(event.name not in names for event in standing.events) or (standing.stopped and not standing.events):
        return "has other events"
    count = len(rows) - standing.stopped  # the point of the event that ended it comes last
    if s.times is None:
        fits = count > 0 and rows.t[0] == s.start and (standing.stopped or rows.t[-1] == t)
    else:
        fits = count <= len(s.times) and np.array_equal(rows.t[:count], s.times[:count])
        fits = fits and (standing.stopped or count == np.searchsorted(s.times, t, side="right"))
    if not fits:
        return "has points at other times"
    return _fault_of_engine(standing.engine, s, t, standing.stopped)


def _fault_of_engine(engine: EngineState, s: Settings, t: float, stopped: bool) -> str | None:
    if s.dt is not None:
        steps = FixedSteps(s.start, s.end, s.dt)
        if engine.done is None or engine.done > steps.count:
            return f"has made more than its {steps.count} steps, or does not tell"
        there = s.end if engine.done == steps.count else steps.step(engine.done)[0]
        return None if stopped or abs(there - t) <= 1e-6 * s.dt else "has made another number of steps"
    if engine.control is None or not np.isfinite(engine.control[-len(GROUPS) :]).all():
        return "has no step to go on with"
    when, h, old, code = engine.control[:4]
    good = when == t and 0.0 < h < np.inf and 0.0 < old < np.inf and code in (REJECTED, ACCEPTED, ENDED, UNDERFLOW)
    return None if good else "has no step to go on with"


class _Stored:
    def __init__(self, path: str, archive: zipfile.ZipFile, size: int) -> None:
        self.path, self.archive, self.size = path, archive, size

    def wrong(self, what: str, advice: str = "leave resume out to start anew") -> FormatError:
        return FormatError(f"{what}; {advice}", file=self.path)

    def array(self, name: str, shape: tuple[int | None, ...], dtype: Any = np.float64) -> NDArray[Any]:
        """An array of this shape, where None is any number; it is stored plainly, so no larger than the file."""
        array = plain_array(self.archive, name, self.size)
        if array is None:
            raise self.wrong(f"keeps {name!r} packed or cut short")
        if not fits_shape(array.shape, shape) or array.dtype != np.dtype(dtype):
            raise self.wrong(f"has {name!r} of shape {array.shape} and type {array.dtype}")
        return array

    def header(self) -> dict[str, Any]:
        if self.archive.getinfo("header.npy").file_size > _HEADER:
            raise self.wrong("has a header that is too large")
        header = json.loads(self.array("header", (None,), np.uint8).tobytes().decode("ascii"))
        if not isinstance(header, dict) or header.get("format") != FORMAT or type(header.get("version")) is not int:
            raise self.wrong(f"is not of the format {FORMAT!r}, version {VERSION}")
        if header["version"] != VERSION:
            age = "an older" if header["version"] < VERSION else "a newer"
            text = f"has the format version {header['version']} of {age} Linkwright, and this one reads {VERSION}"
            raise self.wrong(text, "resume with the Linkwright that wrote it, or leave resume out to start anew")
        return header

    def standing(self, run_description: dict[str, Any], nq: int, nv: int) -> Standing:
        header = self.header()
        asked = header.get("question")
        if not isinstance(asked, dict):
            raise self.wrong("does not say what it is of")
        for name, value in run_description.items():
            if asked.get(name) != value:
                does = "differ" if name == "events" else "differs"
                raise ModelError(
                    f"{self.path} is of another run: its {name} {does}; give the same as then, or leave resume out"
                )
        t = self.array("t", (None,))
        n = len(t)
        rows = Rows(t, self.array("q", (n, nq)), self.array("v", (n, nv)), self.array("a", (n, nv)))
        sizes: tuple[tuple[int, ...], ...] = ((1,), (1, nq), (1, nv), (1, nv))
        last = Rows(*(self.array(f"last_{name}", shape) for name, shape in zip(_NAMES, sizes, strict=True)))
        for name, value in header["numbers"].items():
            if name != "done" or type(value) is not int or not 0 <= value < 2**53:
                raise self.wrong(f"has another {name!r} than a number of steps")
        control = self.array("control", (len(CONTROL),)) if "control.npy" in self.archive.namelist() else None
        engine = EngineState(last, header["numbers"].get("done"), control)
        if not last.finite[0] or not rows.finite.all() or np.any(np.diff(rows.t) <= 0.0):
            raise self.wrong("has times or states that are no numbers")
        work = header["work"]
        known = set(vars(Work()))
        if (
            not isinstance(work, dict)
            or set(work) != known
            or not all(type(x) is int and 0 <= x < 2**53 for x in work.values())
        ):
            raise self.wrong("does not say what work it took")
        ends = header["stopped"], header["finished"]
        if not all(isinstance(x, bool) for x in ends):
            raise self.wrong("does not say whether it came to its end")
        return Standing(rows, engine, self._events(header["events"], nq, nv), Work(**work), *ends)

    def _events(self, names: Any, nq: int, nv: int) -> tuple[Occurrence, ...]:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise self.wrong("has events without names")
        n = len(names)
        t, q, v = self.array("event_t", (n,)), self.array("event_q", (n, nq)), self.array("event_v", (n, nv))
        if not all(np.isfinite(x).all() for x in (t, q, v)) or np.any(np.diff(t) < 0.0):
            raise self.wrong("has events that are no numbers, or not in their order")
        return tuple(Occurrence(name, float(t[k]), q[k], v[k]) for k, name in enumerate(names))


EVERY = 3.0  # seconds between two checkpoints
_CAN_GO_ON = ("interrupted", "out of memory", "disk full", "checkpoint failed")
SHARE = 20.0  # and at least so many times what writing the last one took


class Keeper:
    """Keeps the latest whole standing of a run, and writes it to its file."""

    def __init__(self, path: str, run_description: dict[str, Any]) -> None:
        self.path, self.run_description = path, run_description
        self._standing: Standing | None = None
        self._next = 0.0
        self._written = False

    def read(self, nq: int, nv: int) -> Standing:
        return read_checkpoint(self.path, self.run_description, nq, nv)

    def make_room(self, nq: int, nv: int) -> list[str]:
        """Lose nothing that is at the place: a run that can go on is not begun anew, one of another kind is kept aside.

        Notes of what was done.
        """
        if not os.path.lexists(self.path) or os.path.isdir(self.path):
            return []
        try:
            standing = self.read(nq, nv)
        except LinkwrightError:  # of another run, or no checkpoint at all
            number, aside = 1, f"{self.path}.old"
            while os.path.lexists(aside):
                number += 1
                aside = f"{self.path}.old{number}"
            try:
                os.rename(self.path, aside)
            except OSError as error:
                text = f"{self.path} is of another run or version, and cannot be kept aside: {error.strerror}"
                raise LinkwrightError(f"{text}; choose another place for the checkpoint") from error
            return [f"{self.path} was of another run or version; it is kept as {aside}"]
        t = float(standing.engine.last.t[0])
        if not standing.finished and t > self.run_description["t_start"]:
            text = f"{self.path} has this run already, as far as t = {t:.6g} s"
            advice = "continue with lw.Saving(checkpoint=..., resume=True), or remove the file to start anew"
            raise ModelError(f"{text}; {advice}")
        return []

    def note(self, standing: Standing) -> None:
        """How the run stands now; what is written later is always a whole standing."""
        self._standing, self._written = standing, False

    def write(self) -> None:
        if self._standing is None or self._written:
            return
        started = monotonic()
        write_checkpoint(self.path, self.run_description, self._standing)
        self._written = True
        took = monotonic() - started
        self._next = started + took + max(EVERY, SHARE * took)

    def now_and_then(self) -> Status | None:
        """Write if it is time to; the status with which the run ends, if that cannot be done."""
        if monotonic() < self._next:
            return None
        try:
            self.write()
        except LinkwrightError as error:
            return _failed(error)
        return None

    def last(self, status: Status) -> Status:
        """Write how the run ended."""
        if self._standing is not None and status.reason not in _CAN_GO_ON:
            self.note(replace(self._standing, finished=True))
        try:
            self.write()
        except LinkwrightError as error:
            failed = _failed(error)
            return replace(status, notes=(*status.notes, failed.message)) if not status.ok else failed
        return status


def _failed(error: LinkwrightError) -> Status:
    cause = error.__cause__
    full = isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)
    advice = "make room there, or choose another place for the checkpoint; what was computed is in this solution"
    return Status(False, f"the checkpoint: {error}", "disk full" if full else "checkpoint failed", advice=advice)
