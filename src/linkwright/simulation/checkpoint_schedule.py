"""When checkpoints are written: every few seconds, seldom enough to cost little, and at the end."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from time import monotonic
from typing import Any

from linkwright.errors import LinkwrightError, ModelError
from linkwright.results.status import Status
from linkwright.simulation import checkpoint
from linkwright.simulation.checkpoint import Standing

EVERY = 3.0  # seconds between two checkpoints
_CAN_GO_ON = ("interrupted", "out of memory", "disk full", "checkpoint failed")
SHARE = 20.0  # and at least so many times what writing the last one took


class Keeper:
    """Keeps the latest whole standing of a run, and writes it to its file."""

    def __init__(self, path: str, question: dict[str, Any]) -> None:
        self.path, self.question = path, question
        self._standing: Standing | None = None
        self._next = 0.0
        self._written = False

    def read(self, nq: int, nv: int) -> Standing:
        return checkpoint.read_checkpoint(self.path, self.question, nq, nv)

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
        if not standing.finished and t > self.question["t_start"]:
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
        checkpoint.write_checkpoint(self.path, self.question, self._standing)
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
