"""The absolute tolerances of a run: parts of what its coordinates have reached, so that they are of any unit.

An entry of q or v that is a shift (or its rate) has one tolerance, an entry that is a turn another. Each is rtol times
what the entries of its kind have reached so far: at most the mechanism's length, or 1 rad (each a second, for rates);
at least `SMALL` of the motion that the initial state shows, and never rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.model.joint_kinds import KIND_LIST
from linkwright.model.tree import Tree

Flags = NDArray[np.bool_]

#: What has a tolerance of its own.
GROUPS = ("shift", "turn", "shift rate", "turn rate")
#: As parts of a group's unit: the least that is looked at, where nothing moves at first and where something does.
UNKNOWN, SMALL = 1e-5, 1e-3
#: Coordinates of an initial state, and where its rates and accelerations would lead over the whole run, that are more
#: than rounding, as parts of their units.
MOVED, PUSHED = 1e-13, 1e-9
#: The part of a run over which rates and accelerations of the initial state are taken to show how far it goes.
EARLY = 0.1
#: What rounding may leave of an entry, and of coordinates that are projected to where loops are closed.
ROUNDING, PROJECTED = 1e-17, 1e-12


@dataclass(frozen=True, eq=False)
class Entries:
    """Which entries of q or v are shifts, and what the others count as turns."""

    shifts: Flags  # (n,)
    turns: Floats  # (n,): the factor by which an entry becomes an angle; 0 for shifts and for e0

    def reached(self, y: Floats) -> Floats:
        """(..., 2): the largest shift and the largest turn of y (..., n)."""
        size = np.abs(y)
        parts = (np.where(self.shifts, size, 0.0), self.turns * size)
        return np.stack([np.max(x, axis=-1, initial=0.0) for x in parts], axis=-1)


def entries_of(tree: Tree) -> tuple[Entries, Entries]:
    """Those of q and of v."""
    q, v = tree.shifts
    turns = np.where(q, 0.0, 1.0)
    x = tree.coordinates
    for number, kind in enumerate(KIND_LIST):
        if not kind.paired:  # of Euler parameters, e1..e3 are about half the angle
            e0 = x.q_at[(tree.kind_numbers == number) & ~x.follows] + kind.nq - 4
            turns[e0[:, None] + np.arange(4)] = 0.0, 2.0, 2.0, 2.0
    return Entries(q, turns), Entries(v, np.where(v, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Tolerances:
    """rtol, and between what each group's absolute tolerance may lie: (..., 4), of one run or of many."""

    rtol: float
    least: Floats
    most: Floats
    entries: tuple[Entries, Entries]
    start: Floats  # (..., 4): what the initial state has reached

    def reached(self, q: Floats, v: Floats) -> Floats:
        """(..., 4): the largest entry of each group."""
        return np.concatenate([part.reached(y) for part, y in zip(self.entries, (q, v), strict=True)], axis=-1)

    def absolute(self, reached: Floats) -> Floats:
        """(..., nq + nv): the absolute tolerance of every entry of q and v, as `control.absolute_tolerances`."""
        groups = np.clip(self.rtol * reached, self.least, self.most)
        q, v = (part.shifts for part in self.entries)
        first, second = (groups[..., k : k + 2] for k in (0, 2))
        parts = [np.where(flags, x[..., :1], x[..., 1:]) for flags, x in ((q, first), (v, second))]
        return np.concatenate(parts, axis=-1)


def tolerances(
    tree: Tree,
    closed: bool,
    length: Any,
    duration: float,
    rtol: float,
    atol: float | None,
    first: tuple[Floats, Floats, Floats],
) -> Tolerances:
    """Those of runs of so many seconds from q, v and a (..., n) of a mechanism of this length (...).

    `atol`, if given, is that of all.
    """
    entries = entries_of(tree)
    q, v, a = first
    start = np.concatenate([entries[0].reached(q), entries[1].reached(v)], axis=-1)
    if atol is not None:
        same = np.full(start.shape, atol)
        return Tolerances(rtol, same, same, entries, start)
    length = np.asarray(length, dtype=np.float64)
    unit = np.stack([length, np.ones_like(length)] * 2, axis=-1)
    place, rate = start[..., :2] / unit[..., :2], start[..., 2:] / unit[..., 2:]
    push = entries[1].reached(a) / unit[..., 2:]
    early = EARLY * duration
    known = np.maximum(np.where(place > MOVED, place, 0.0), np.where(rate * duration > MOVED, rate * early, 0.0))
    known = np.maximum(known, np.where(push * duration**2 > PUSHED, SMALL * push * early**2, 0.0))
    low = np.where(known > 0.0, np.minimum(SMALL * known, UNKNOWN), UNKNOWN)
    floor = min(PROJECTED, rtol) if closed else ROUNDING
    slow = np.maximum(rtol * low, ROUNDING) / early
    least = np.concatenate([np.maximum(rtol * low, floor), slow], axis=-1)
    return Tolerances(rtol, unit * np.minimum(least, rtol), unit * rtol, entries, start)
