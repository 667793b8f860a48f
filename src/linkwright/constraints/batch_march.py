"""Cases of a batch that go from time to time, each by good steps: halves of a step where the whole is none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Bools, Floats

#: How often a step of a case is halved before the case is left behind, and the most parts of an interval.
DEPTH, PARTS = 6, 64


def parted(begin: float, end: float, parts: int) -> list[float]:
    """The ends of the equal parts of an interval."""
    return [*np.linspace(begin, end, parts + 1)[1:-1].tolist(), end]


class BatchMarch(ABC):
    """The cases that go along, by their `rows`, with their states `there` at the time t.

    How an interval is parted is each case's own, so that its numbers do not depend on the others.
    """

    each: ClassVar[tuple[str, ...]] = ()  # arrays with a row for every case
    memory: ClassVar[tuple[str, ...]] = ()  # and those that steps change

    def __init__(self, n: int, t: float) -> None:
        self.rows, self.t = np.arange(n), t
        self.there: dict[str, Floats] = {}
        self.parts = np.ones(n, np.int64)  # of an interval, that each case steps over one by one

    @abstractmethod
    def tried(self, t: float) -> Bools:
        """Take all cases to a time by one step, in new arrays; whose step was good."""

    @abstractmethod
    def chose(self, chosen: Bools) -> None:
        """Keep to some of the cases in what the march holds besides."""

    def step(self, t: float) -> None:
        """Go on to a time with the cases that come there by good steps."""
        self._by_parts(lambda group, parts: group._through(t, parts))

    def _by_parts(self, advance: Callable[[Self, int], None]) -> None:
        """Advance the cases in groups that have as many parts in an interval."""
        if not len(self.rows):
            return
        if (self.parts == self.parts[0]).all():
            advance(self, int(self.parts[0]))
            return
        sorts = np.unique(self.parts).tolist()
        groups = [self._some(self.parts == parts) for parts in sorts]
        for group, parts in zip(groups, sorts, strict=True):
            advance(group, parts)
        self.t, here = groups[0].t, np.zeros(len(self.rows), bool)
        for name in (*self.memory, "parts"):
            setattr(self, name, getattr(self, name).copy())
        self.there = {name: x.copy() for name, x in self.there.items()}
        for group in groups:
            here[self._take(group)] = True
        self.go_on(here)

    def go_on(self, good: Bools) -> None:
        """Leave the other cases behind."""
        if good.all():
            return
        self.there = {name: x[good] for name, x in self.there.items()}
        for name in (*self.each, *self.memory, "rows", "parts"):
            setattr(self, name, getattr(self, name)[good])
        self.chose(good)

    def _through(self, t: float, parts: int) -> None:
        """Go on to a time in equal parts; cases that need shorter steps have twice as many from then on."""
        for there in parted(self.t, t, parts):
            halved = self._step(there, 0)
            if len(halved):
                self.parts = np.where(np.isin(self.rows, halved), min(2 * parts, PARTS), self.parts)

    def _step(self, t: float, depth: int) -> NDArray[np.int64]:
        """Go on to a time; the rows that did so by halves of the step."""
        halved = np.zeros(0, np.int64)
        if not len(self.rows):
            return halved
        before = copy(self)
        good = self.tried(t)
        if not good.all() and depth < DEPTH:
            others = before._some(~good)
            for there in (0.5 * (before.t + t), t):
                others._step(there, depth + 1)
            good[self._take(others)] = True
            halved = others.rows
        self.go_on(good)
        return halved

    def _some(self, chosen: Bools) -> Self:
        """Some of the cases, where they are now."""
        some = copy(self)
        some.go_on(chosen)
        return some

    def _take(self, others: BatchMarch) -> NDArray[np.int64]:
        """Put the states of cases that others brought on into their places; these places."""
        places = np.flatnonzero(np.isin(self.rows, others.rows))
        for name, x in others.there.items():
            self.there[name][places] = x
        for name in (*self.memory, "parts"):
            getattr(self, name)[places] = getattr(others, name)
        self.chose(np.ones(len(self.rows), bool))
        return places
