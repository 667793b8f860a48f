"""When checkpoints are written: every few seconds, seldom enough to cost little, and at the end."""

from __future__ import annotations

import errno
from dataclasses import replace
from time import monotonic
from typing import Any

from linkwright.errors import LinkwrightError
from linkwright.results.status import Status
from linkwright.simulation import checkpoint
from linkwright.simulation.checkpoint import Standing

EVERY = 3.0  # seconds between two checkpoints
SHARE = 20.0  # and at least so many times what writing the last one took


class Keeper:
    """Keeps the latest whole standing of a run, and writes it to its file."""

    def __init__(self, path: str, question: dict[str, Any]) -> None:
        self.path, self.question = path, question
        self._standing: Standing | None = None
        self._next = 0.0
        self._written = False

    def read(self, nq: int, nv: int) -> Standing:
        return checkpoint.read(self.path, self.question, nq, nv)

    def note(self, standing: Standing) -> None:
        """How the run stands now; what is written later is always a whole standing."""
        self._standing, self._written = standing, False

    def write(self) -> None:
        if self._standing is None or self._written:
            return
        started = monotonic()
        checkpoint.write(self.path, self.question, self._standing)
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
