"""How long the next step is, and the absolute tolerances that it keeps.

An entry of q or v that is a shift (or its rate) has one tolerance, an entry that is a turn another. Each is rtol times
what the entries of its kind have reached so far: at most the mechanism's length, or 1 rad (each a second, for rates);
at least `SMALL` of the motion that the initial state shows, and never rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.model.joint_kinds import KIND_LIST
from linkwright.model.tree import Tree
from linkwright.simulation.integrators import Tableau
from linkwright.tape.block import less, less_equal, maximum, minimum, where

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

    @cached_property
    def _counted(self) -> tuple[Flags, Floats]:
        """(2, n): which entries are shifts and which are turns, and what each counts as one."""
        return np.stack([self.shifts, self.turns != 0.0]), np.stack([np.ones(len(self.turns)), self.turns])

    def reached(self, y: Floats) -> Floats:
        """(..., 2): the largest shift and the largest turn of y (..., n)."""
        flags, factors = self._counted
        return np.asarray((factors * np.abs(y)[..., None, :]).max(axis=-1, initial=0.0, where=flags))


def entries_of(tree: Tree) -> tuple[Entries, Entries]:
    """Those of q and of v."""
    entries = _entries.get(tree)
    if entries is None:
        entries = _entries[tree] = _entries_of(tree)
    return entries


_entries: WeakKeyDictionary[Tree, tuple[Entries, Entries]] = WeakKeyDictionary()


def _entries_of(tree: Tree) -> tuple[Entries, Entries]:
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
        """(..., nq + nv): the absolute tolerance of every entry of q and v, as `absolute_tolerances`."""
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


#: What goes from one attempt to the next: the time, the step to try, the error of the last accepted step, how the
#: attempt went, the residual of the constraints before the last round, the rounds, the error of this attempt, the
#: length of the usual step, and how far the coordinates and rates of each group have come.
CONTROL = ("t", "h", "old", "code", "phi", "rounds", "error", "usual", *GROUPS)
USUAL = CONTROL.index("usual")
_REACHED = CONTROL.index(GROUPS[0])
#: What is the same for a whole run; each group's absolute tolerance is between its least and its most.
SETTINGS = (
    *("end", "rtol", "longest", "shortest"),
    *(f"least {group}" for group in GROUPS),
    *(f"most {group}" for group in GROUPS),
)
_LEAST, _MOST = (SETTINGS.index(f"{word} {GROUPS[0]}") for word in ("least", "most"))

#: Newton's rounds of a projection, and the residual of the constraints (rad, or as a part of the mechanism's length) at
#: which the round that is being made is the last: it leaves about the square of that.
ROUNDS, CLOSED = 10, 1e-8
REJECTED, ACCEPTED, ENDED, UNDERFLOW, STALLED = 0.0, 1.0, 2.0, 3.0, 4.0
#: The steps of a closed mechanism stall where a rejection leaves less than this part of the usual step: it may be
#: beside a singular position. The usual step is the longest of late; each step leaves so much of it.
SHRUNK, LATELY = 0.03, 0.9
SAFETY, LEAST, MOST = 0.9, 0.2, 10.0
STRETCH = 1.01  # a step that would leave less than a hundredth of itself to the end goes there


def first_control(t: Any, h: Any, reached: Floats) -> Floats:
    """(..., numbers): the control of the first attempt of runs that have reached (..., 4)."""
    control = np.zeros((*reached.shape[:-1], len(CONTROL)))
    control[..., 0], control[..., 1], control[..., 2], control[..., 3] = t, h, 1.0, ACCEPTED
    control[..., _REACHED:] = reached
    return control


def run_settings(start: float, end: float, longest: float, tolerances: Tolerances) -> Floats:
    """(..., numbers): what is the same for a whole run; the shortest step is a few times the spacing of its times."""
    least, shortest = tolerances.least, 16.0 * float(np.spacing(max(abs(start), abs(end))))
    head = np.broadcast_to(np.array([end, tolerances.rtol, longest, shortest]), (*least.shape[:-1], 4))
    return np.concatenate([head, least, tolerances.most], axis=-1)


def reached(control: Any, new: Sequence[Any]) -> list[Any]:
    """How far each group has come with a new state, whose largest entries are these."""
    return [maximum(control[_REACHED + k], x) for k, x in enumerate(new)]


def absolute_tolerances(settings: Any, reached: Sequence[Any]) -> list[Any]:
    """The absolute tolerance of each group: as `Tolerances.absolute`, over recorded scalars."""
    rtol = settings[SETTINGS.index("rtol")]
    clipped = []
    for k, x in enumerate(reached):
        clipped.append(minimum(maximum(rtol * x, settings[_LEAST + k]), settings[_MOST + k]))
    return clipped


def before(control: Any, settings: Any) -> tuple[Any, Any, Any]:
    """The time, the step to try now, and the time at its end."""
    t, h = control[0], control[1]
    end, longest = settings[0], settings[SETTINGS.index("longest")]
    h = minimum(h, longest)
    last = less_equal(end, t + STRETCH * h)
    h = where(last, end - t, h)
    return t, h, where(last, end, t + h)


def after(
    tableau: Tableau,
    size: int,
    control: Any,
    settings: Any,
    h: Any,
    t_end: Any,
    projection: tuple[Any, Any, Any],
    sums: Sequence[Any],
    there: Sequence[Any],
) -> tuple[Any, Any]:
    """The control of the next attempt, and whether this one is taken.

    `projection` is the residual of the constraints, or None where there are none, the rounds, and the sum of squares of
    what was moved, or None where that is no error; `there` is how far each group has come with this step.

    The error is a root mean square over the entries of q and v, each by its tolerance; what projection moved is part of
    it. A step is taken with an error up to 1. The next is h·0.9·e^(β·¾ − 1/k)·e_old^β, between a fifth and ten times
    h, and not longer after a rejection.
    """
    t, old, code = control[0], control[2], control[3]
    end, shortest = settings[0], settings[SETTINGS.index("shortest")]
    phi, rounds, moved = projection
    error = _norm(h, size, sums)
    if moved is not None:  # near a singular position it may be far
        error = np.sqrt(error * error + moved / size)
    known = less_equal(error, 1e300)  # false for what is no number
    met = None if phi is None else less_equal(phi, CLOSED)
    taken = less_equal(error, 1.0) * (1.0 if met is None else met)
    exponent = 1.0 / (tableau.error_order + 1) - 0.75 * tableau.beta
    floor = maximum(error, 1e-10)
    factor = SAFETY * floor**-exponent
    if tableau.beta:
        factor = factor * old**tableau.beta
    most = where(less(code, 0.5), 1.0, MOST)  # after a rejection
    factor = where(known, minimum(maximum(factor, LEAST), where(taken, most, 1.0)), LEAST)
    if met is not None:
        factor = where(met, factor, LEAST)
    over = less_equal(end, t)
    stuck = less_equal(UNDERFLOW, code)
    short = less(h, shortest) * (1.0 - taken) * (1.0 - over)
    accepted = taken * (1.0 - over) * (1.0 - stuck)
    usual = control[USUAL]
    stalled: Any = REJECTED if phi is None else where(less(h * factor, SHRUNK * usual), STALLED, REJECTED)
    outcome = where(accepted, ACCEPTED, stalled)
    outcome = where(short, UNDERFLOW, outcome)
    outcome = where(over, ENDED, outcome)
    outcome = where(stuck, code, outcome)
    following = where(over, control[1], h * factor)
    next_control = [
        where(accepted, t_end, t),
        where(stuck, control[1], following),
        where(accepted, maximum(error, 1e-4), old),
        outcome,
        0.0 * h if phi is None else phi,
        rounds,
        error,
        where(accepted, maximum(h, LATELY * usual), usual),
        *(where(accepted, x, control[_REACHED + k]) for k, x in enumerate(there)),
    ]
    return np.array(next_control), accepted


def _norm(h: Any, size: int, sums: Sequence[Any]) -> Any:
    if len(sums) == 1:
        return h * np.sqrt(sums[0] / size)
    # Of DOP853: the error of fifth order, made smaller where that of third order is larger.
    fifth, third = sums
    both = fifth + 0.01 * third
    return where(less_equal(both, 0.0), 0.0, h * fifth / np.sqrt(where(less_equal(both, 0.0), 1.0, both) * size))
