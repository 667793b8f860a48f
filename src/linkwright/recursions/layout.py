"""Where the numbers that a rolled recursion keeps for its links stand in memory.

A field is a number or some of every link: `written` by passes, read by passes as the link's `own` or by its children
(`up`), or `summed` from the children. Plainly, every link has one row for all of them, and every number has one
place of its own: what reverse accumulation needs. Packed, as a kernel wants it that only asks for the answer, a row
holds what one pass leaves to another and is as long as its link needs, places are used again, and what goes from link
to link within one pass stands in a slot that lives as long as the children need it: two are enough for a chain.
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
    """The passes in which a field is used, and how many numbers it is for each signature that has it."""

    sizes: dict[int, int] = field(default_factory=dict)
    written: set[int] = field(default_factory=set)
    own: set[int] = field(default_factory=set)
    up: set[int] = field(default_factory=set)
    summed: set[int] = field(default_factory=set)

    @property
    def size(self) -> int:
        """The most that it is."""
        return max(self.sizes.values(), default=0)

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
    """The buffer of each field that is read, its place in an entry of it, and the entries' lengths.

    `rows` are the places and lengths for each signature.
    """

    home: dict[str, Home]
    place: dict[str, int]
    stride: dict[Home, int]
    rows: list[tuple[dict[str, int], int]]


def layout(fields: Mapping[str, Field], signatures: int, *, packed: bool) -> Layout:
    """Place the fields, in the order in which they came up."""
    home: dict[str, Home] = {n: f.home() if packed else "rows" for n, f in fields.items() if f.read}
    place: dict[str, int] = {}
    stride: dict[Home, int] = {}
    for where in dict.fromkeys(home.values()):
        sizes = {n: fields[n].size for n in home if home[n] == where}
        places, stride[where] = _places(fields, sizes, packed=packed)
        place.update(places)
    in_rows = [n for n in home if home[n] == "rows"]
    rows = [({n: place[n] for n in in_rows}, stride.get("rows", 1))] * signatures
    if packed and not any(fields[n].up or fields[n].summed for n in in_rows):
        # Nobody else looks into a link's row.
        by_signature = [{n: fields[n].sizes[k] for n in in_rows if k in fields[n].sizes} for k in range(signatures)]
        rows = [_places(fields, sizes, packed=True) for sizes in by_signature]
    return Layout(home, place, stride, rows)


def _places(fields: Mapping[str, Field], sizes: Mapping[str, int], *, packed: bool) -> tuple[dict[str, int], int]:
    """A place for each of some fields, and the length of all."""
    place: dict[str, int] = {}
    for name, size in sizes.items():
        shared = [n for n in place if not (packed and _apart(fields[name], fields[n]))]
        place[name] = _gap([(place[n], place[n] + sizes[n]) for n in shared], size)
    return place, max((place[n] + sizes[n] for n in place), default=1)


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
