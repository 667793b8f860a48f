"""What is kept of a run: every step, or the states at given times between the steps."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.simulation.engines import Engine
from linkwright.simulation.samples import Growing, Rows


class Output(Protocol):
    """Takes the points of a run as they come."""

    def take(self, engine: Engine, rows: Rows) -> None:
        """Further points; the first is where they began."""

    def last(self, row: Rows) -> None:
        """The point at which the run ends before its time."""

    def restore(self, rows: Rows) -> None:
        """Go on after these rows."""

    @property
    def rows(self) -> Rows:
        """What is kept so far."""


class _Grows:
    """What is kept grows as it comes."""

    def __init__(self, start: Rows, *room: int) -> None:
        self._rows = Growing(start.q.shape[1], start.v.shape[1], *room)

    def last(self, row: Rows) -> None:
        if not len(self._rows) or row.t[0] > self.rows.t[-1]:
            self._rows.append(row)

    def restore(self, rows: Rows) -> None:
        self._rows.clear()
        self._rows.append(rows)

    @property
    def rows(self) -> Rows:
        return self._rows.rows


class EveryStep(_Grows):
    """All points."""

    def __init__(self, start: Rows) -> None:
        super().__init__(start)
        self._rows.append(start)

    def take(self, engine: Engine, rows: Rows) -> None:
        self._rows.append(rows[1:])


class Table:
    """All points of an engine that keeps them itself."""

    def __init__(self, table: Rows, count: int = 1) -> None:
        self._table, self._count = table, count

    def take(self, engine: Engine, rows: Rows) -> None:
        self._count += len(rows) - 1

    def last(self, row: Rows) -> None:
        if row.t[0] > self._table.t[self._count - 1]:
            self._table.put(slice(self._count, self._count + 1), row)
            self._count += 1

    def restore(self, rows: Rows) -> None:
        self._count = len(rows)

    @property
    def rows(self) -> Rows:
        return self._table[: self._count]


class AtTimes(_Grows):
    """The states at given times, from dense output."""

    def __init__(self, times: Floats, start: Rows) -> None:
        super().__init__(start, max(len(times), 1))
        self._times = times
        if len(times) and times[0] <= start.t[0]:
            self._rows.append(start)

    def take(self, engine: Engine, rows: Rows) -> None:
        done = len(self._rows)
        wanted = self._times[done : np.searchsorted(self._times, rows.t[-1], side="right")]
        if not len(wanted):
            return
        step = np.clip(np.searchsorted(rows.t, wanted, side="right") - 1, 0, len(rows) - 1)
        exact = rows.t[step] == wanted
        states = Rows.empty(len(wanted), rows.q.shape[1], rows.v.shape[1])
        states.put(exact, rows[step[exact]])
        inner = np.flatnonzero(~exact)
        if len(inner):
            at = step[inner]
            theta = (wanted[inner] - rows.t[at]) / (rows.t[at + 1] - rows.t[at])
            states.put(inner, engine.between(rows, at, theta))
            states.t[inner] = wanted[inner]
        self._rows.append(states)

    def until(self, engine: Engine, rows: Rows, end: float) -> None:
        """The times within the last of these steps, up to where an event ended the run."""
        done = len(self._rows)
        wanted = self._times[done : np.searchsorted(self._times, end, side="left")]
        if len(wanted):
            step = np.full(len(wanted), len(rows) - 2)
            states = engine.between(rows, step, (wanted - rows.t[-2]) / (rows.t[-1] - rows.t[-2]))
            self._rows.append(Rows(wanted.copy(), states.q, states.v, states.a))
