"""Points of a run: times with their q, v and a, one row each."""

from __future__ import annotations

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
        """All rows of these, one after another."""
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
    """Rows that more can be put behind."""

    def __init__(self, nq: int, nv: int, room: int = 64) -> None:
        self._rows, self._count = Rows.empty(room, nq, nv), 0

    def __len__(self) -> int:
        return self._count

    def clear(self) -> None:
        self._count = 0

    def append(self, more: Rows) -> None:
        need = self._count + len(more)
        if need > len(self._rows):
            nq, nv = self._rows.q.shape[1], self._rows.v.shape[1]
            larger = Rows.empty(max(need, 2 * len(self._rows)), nq, nv)
            larger.put(slice(0, self._count), self._rows[: self._count])
            self._rows = larger
        self._rows.put(slice(self._count, need), more)
        self._count = need

    @property
    def rows(self) -> Rows:
        return self._rows[: self._count]
