"""Points of a run: times with their q, v and a, and the times of fixed steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats


@dataclass(eq=False)
class Rows:
    """t (n,), q (n, nq), v (n, nv), a (n, nv)."""

    t: Floats
    q: Floats
    v: Floats
    a: Floats

    @classmethod
    def empty(cls, n: int, nq: int, nv: int) -> Rows:
        # One piece of memory: what several give back at once goes to the system, and its pages have to be fetched anew.
        room, v, a = np.empty(n * (1 + nq + 2 * nv)), n * (1 + nq), n * (1 + nq + nv)
        return cls(room[:n], room[n:v].reshape(n, nq), room[v:a].reshape(n, nv), room[a:].reshape(n, nv))

    @classmethod
    def point(cls, t: float, q: Floats, v: Floats, a: Floats) -> Rows:
        """One row."""
        return cls(np.array([t]), q[None, :], v[None, :], a[None, :])

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """All rows of these, one after another; of one, itself."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate(x) for x in zip(*(part.all for part in parts), strict=True)))

    @property
    def all(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self.t, self.q, self.v, self.a

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, which: Any) -> Rows:
        return Rows(*(x[which] for x in self.all))

    def put(self, at: Any, other: Rows) -> None:
        for target, source in zip(self.all, other.all, strict=True):
            target[at] = source

    def copy(self) -> Rows:
        return Rows(*(x.copy() for x in self.all))

    @property
    def finite(self) -> NDArray[np.bool_]:
        """Whether all numbers of a row are."""
        good = np.isfinite(self.t)
        for x in (self.q, self.v, self.a):
            good &= np.isfinite(x).all(axis=1)
        return good


class Growing:
    """Rows that more can be put behind: the first `count` of a table, which is replaced where it is full."""

    def __init__(self, table: Rows, count: int = 0) -> None:
        self._rows, self._count = table, count

    @classmethod
    def like(cls, row: Rows, room: int = 64) -> Growing:
        """None yet, of such rows."""
        return cls(Rows.empty(room, row.q.shape[1], row.v.shape[1]))

    def __len__(self) -> int:
        return self._count

    def clear(self) -> None:
        self._count = 0

    def extend(self, number: int) -> None:
        """Count further rows that stand in the table already."""
        self._count += number

    def room(self, number: int) -> Rows:
        """Where the next rows will stand: they count once `extend` says so."""
        need = self._count + number
        if need > len(self._rows):
            larger = Growing.like(self._rows, max(need, 2 * len(self._rows)))._rows
            larger.put(slice(0, self._count), self.rows)
            self._rows = larger
        return self._rows[self._count : need]

    def append(self, more: Rows) -> None:
        self.room(len(more)).put(slice(None), more)
        self._count += len(more)

    @property
    def rows(self) -> Rows:
        return self._rows[: self._count]


@dataclass(frozen=True)
class FixedSteps:
    """Steps of dt; a last step of less than a billionth of dt is not counted."""

    begin: float
    end: float
    dt: float

    @property
    def count(self) -> int:
        return max(1, math.ceil((self.end - self.begin) / self.dt * (1.0 - 1e-14) - 1e-9))

    def fill(self, first: int, t: Floats, h: Floats) -> None:
        """Put the times of points first, first + 1, … into t (n + 1,), and the lengths of the steps between into h."""
        n = len(h)
        t[:] = np.arange(first, first + n + 1, dtype=np.float64)
        t *= self.dt
        t += self.begin
        h[:] = self.dt
        if first + n >= self.count:
            t[n] = self.end
            last = self.end - t[n - 1]
            if abs(last - self.dt) > 1e-9 * self.dt * max(1.0, self.count * 1e-6):
                h[n - 1] = last

    def step(self, k: int) -> tuple[float, float, float]:
        """The time at which step k begins, its length, and the time at its end."""
        t, h = np.empty(2), np.empty(1)
        self.fill(k, t, h)
        return float(t[0]), float(h[0]), float(t[1])
