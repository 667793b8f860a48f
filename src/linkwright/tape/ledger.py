"""Who writes and reads which number when: checks that reverse accumulation may look at a program from its end.

The reverse sweep finds a buffer as the program left it. That is what a statement read if no one wrote there later;
and an adjoint belongs to one value if the number had one value. So every number must be written once before it
is read: either set, or cleared, and then perhaps added to.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from linkwright.base.arrays import Bools, Longs
from linkwright.errors import RecordingError
from linkwright.tape.activity import Marks
from linkwright.tape.dataflow import Access, Kind, periods, starts
from linkwright.tape.program import Program
from linkwright.tape.statements import Operand

_LATE = np.iinfo(np.int64).max


@dataclass
class Ledger:
    """Accesses to the buffers of a program, each with its moment."""

    program: Program
    active: Marks
    accesses: dict[int, list[Access]] = field(default_factory=dict)

    def enter(self, kind: Kind, operand: Operand, items: Longs, time: Longs) -> None:
        at = starts(self.program.columns, operand, items)
        access = Access(kind, operand.buffer, at, operand.size, time)
        self.accesses.setdefault(operand.buffer, []).append(access)

    def check(self) -> None:
        """Raise a RecordingError at the first number that is written again after it counted."""
        for buffer, period in enumerate(periods(self.program)):
            accesses = self.accesses.get(buffer, [])
            if any(a.kind in ("clear", "set", "add") for a in accesses):
                self._check(buffer, max(period, 1), accesses)

    def _check(self, buffer: int, period: int, accesses: list[Access]) -> None:
        # Place by place: memory for one number a row, not for all numbers of all rows.
        size = self.program.buffers[buffer].size
        marks = self.active.marks[buffer]
        by_place: dict[int, list[tuple[Access, Longs]]] = {}
        for access in accesses:
            if len(access.starts):
                offsets = np.arange(access.size)
                place = (access.starts[0] + offsets) % period
                for p in np.unique(place).tolist():
                    by_place.setdefault(p, []).append((access, offsets[place == p]))
        for place, here in by_place.items():
            active = marks[place : place + 1] if period > 1 else marks
            rows = size // period + 1
            times = {k: np.full(rows, _LATE if k in ("read", "look") else -1) for k in ("clear", "set", "read", "look")}
            first_add, last_add, sets = np.full(rows, _LATE), np.full(rows, -1), np.zeros(rows, dtype=np.int64)
            for access, offsets in here:
                row = ((access.starts[:, None] + offsets) // period).ravel()
                time = np.repeat(access.times, len(offsets))
                if access.kind == "add":
                    np.minimum.at(first_add, row, time)
                    np.maximum.at(last_add, row, time)
                elif access.kind in ("read", "look"):
                    np.minimum.at(times[access.kind], row, time)
                else:
                    np.maximum.at(times[access.kind], row, time)
                    if access.kind == "set":
                        np.add.at(sets, row, 1)
            first_set = np.where(times["set"] < 0, _LATE, times["set"])
            read = np.minimum(times["read"], times["look"])
            wrong = times["look"] <= np.maximum(np.maximum(last_add, times["set"]), times["clear"])
            again = (sets > 1) | (times["set"] >= np.minimum(first_add, read))
            again |= times["clear"] >= np.minimum(np.minimum(first_add, first_set), read)
            wrong |= again & _by_row(active, rows)
            if wrong.any():
                number = int(np.flatnonzero(wrong)[0]) * period + place
                self._refuse(buffer, number)

    def _refuse(self, buffer: int, number: int) -> None:
        name = self.program.buffers[buffer].name
        raise RecordingError(
            f"program {self.program.name}: number {number} of buffer {name!r} is written again after it was set, "
            "added to or read; reverse accumulation needs each number written once before it is read "
            "(set, or cleared and then added to): use another temporary buffer, or forward accumulation"
        )


def _by_row(active: Bools, rows: int) -> Bools:
    """Marks of one place (one mark for all rows, or one a row)."""
    if len(active) == 1:
        return np.full(rows, bool(active[0]))
    return np.append(active, np.zeros(max(rows - len(active), 0), dtype=bool))[:rows]
