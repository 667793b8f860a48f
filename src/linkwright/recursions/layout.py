"""Where the numbers that a rolled recursion keeps for its links stand in memory.

A field is a number or some of every link: `written` by passes, read by passes as the link's `own` or by its children
(`up`), or `summed` from the children. Plainly, every link has one row for all of them, and every number has one
place of its own: what reverse accumulation needs. Packed, as a kernel wants it that only asks for the answer, a row
holds what one pass leaves to another, places are used again, and what goes from link to link within one pass
stands in a slot that lives as long as the children need it: two slots are enough for a chain.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Home = Literal["rows", "carried", "sums"]


@dataclass
class Field:
    """The passes in which a field is used; `size` is the largest of any link."""

    size: int = 0
    written: set[int] = field(default_factory=set)
    own: set[int] = field(default_factory=set)
    up: set[int] = field(default_factory=set)
    summed: set[int] = field(default_factory=set)

    @property
    def read(self) -> bool:
        return bool(self.own or self.up)

    def needed(self, number: int) -> bool:
        """Whether anything reads what pass `number` writes."""
        return any(p > number for p in self.own) or any(p >= number for p in self.up)

    def home(self) -> Home:
        """The packed form's buffer."""
        if len(self.summed) == 1 and self.own == self.summed and not self.up:
            return "sums"
        if len(self.written) == 1 and self.up == self.written and not self.own:
            return "carried"
        return "rows"


@dataclass(frozen=True)
class Layout:
    """The buffer of each field that is read, its place in an entry of it, and the entries' lengths."""

    home: dict[str, Home]
    place: dict[str, int]
    stride: dict[Home, int]


def layout(fields: Mapping[str, Field], *, packed: bool) -> Layout:
    """Place the fields, in the order in which they came up."""
    home: dict[str, Home] = {n: f.home() if packed else "rows" for n, f in fields.items() if f.read}
    place: dict[str, int] = {}
    stride: dict[Home, int] = {}
    for name, where in home.items():
        mine = fields[name]
        others = [(place[n], fields[n]) for n in place if home[n] == where]
        taken = [(at, at + f.size) for at, f in others if not (packed and _apart(mine, f))]
        place[name] = _gap(taken, mine.size)
        stride[where] = max(stride.get(where, 1), place[name] + mine.size)
    return Layout(home, place, stride)


def _apart(a: Field, b: Field) -> bool:
    """Whether one is read for the last time before the other is written, or by the step that writes it."""
    return _before(a, b) or _before(b, a)


def _before(a: Field, b: Field) -> bool:
    return bool(b.written) and not (a.up or a.summed or b.summed) and max(a.own) <= min(b.written)


def _gap(taken: Collection[tuple[int, int]], size: int) -> int:
    """The first place with room for `size` numbers."""
    at = 0
    for start, end in sorted(taken):
        if at + size <= start:
            break
        at = max(at, end)
    return at


def slots(parent: Ints) -> tuple[Ints, int]:
    """A slot for every link from its own turn to its last child's, and how many there are; slot 0 is ground's.

    No two links have one slot at the same time, in whichever direction the links are gone through: they take the
    slots in turn, and as they come breadth-first, there are about as many as links on a level.
    """
    every = np.arange(len(parent), dtype=np.int32)
    reach = int((every - parent)[parent >= 0].max(initial=0)) + 1
    return every % reach + 1, reach + 1
