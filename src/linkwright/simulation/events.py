"""Events: zero crossings of functions of the state, found between the steps by dense output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.errors import LinkwrightError, ModelError
from linkwright.kernels.back_ends import compiled
from linkwright.simulation.compiled_engines import Engine
from linkwright.simulation.python_laws import Law, Sizes, law
from linkwright.simulation.samples import Rows
from linkwright.simulation.step_parts import Parts
from linkwright.simulation.step_programs import in_batch

_PIECES = 16  # into which the part of a step with a crossing is cut, again and again
_ROUNDS = 14  # 16¹⁴ is more than the digits of a number
#: The parts of a step at which an event is looked at: close to its ends they show the slope there.
_PARTS = np.array([0.0, 1 / 512, *(k / 8 for k in range(1, 8)), 511 / 512, 1.0])
_NEAR = 0.25  # of what changes between three values: a least value nearer to zero than this is looked at closely
_TURNS = 6  # rounds in which a least value is sought
_TOUCH = 1e-6  # of an event's largest value around: a least value nearer to zero may touch it
_MANY, _FINEST = 3, 1024  # crossings within one step from which a closer look is taken, in up to so many parts
_FEW = 37  # parts of the first closer look: no multiple of the eight before, which may be whole periods of an event
_ROOM = 2**20  # numbers of the states between steps that are looked at together


@dataclass(frozen=True)
class Event:
    """A zero crossing of a function of the state, for `lw.simulate(..., events=...)`.

    function: function(t, q, v) of the time (s), the coordinates (nq,) and the rates (nv,), in NumPy syntax; it gives
    one number. It is compiled; one that cannot be recorded is called from Python at every step.

    terminal: whether the event ends the run; False by default.

    direction: 1 for crossings upward, -1 for those downward, 0 (the default) for both.

    name: its name in `sol.events`; by default that of the function, or "event 1" and so on. The second event of a name
    "hit" is "hit (2)".

    The function is looked at after every step and at some parts of it, by its sign and its slope, so that two crossings
    within one step are detected. `sol.status.notes` says where it came so near to zero, or crossed it so often within
    one step, that what happened is not resolved. A value that is not finite ends the run with the status "event has no
    value". `sol.events` lists the events that were met, each with name, time, q and v.

    Raises ModelError for a function that cannot be called, or another direction.

    >>> import numpy as np, linkwright as lw
    >>> low = lw.Event(lambda t, q, v: q[0] - np.pi, terminal=True, name="low")
    >>> lw.simulate(lw.chain(1), t_end=5.0, q0=[2.0], events=low).status.reason
    'event'
    """

    function: Callable[[Any, Any, Any], Any]
    terminal: bool = False
    direction: int = 0
    name: str = ""

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ModelError(f"an event is a function of t, q and v, not {self.function!r}")
        if self.direction not in (-1, 0, 1):
            text = f"the direction of an event is 1 (upward), -1 (downward) or 0 (both), not {self.direction!r}"
            raise ModelError(text)


class EventFailed(LinkwrightError):
    """An event whose value is no finite number at a time."""

    def __init__(self, name: str, t: float, value: float) -> None:
        gives = "NaN" if np.isnan(value) else str(value)
        super().__init__(f"at t = {t:.9g} s event {name!r} has no value: its function gives {gives}")
        self.name, self.time = name, t


@dataclass(frozen=True)
class Met:
    """An event in a step: the watch, the step, the point there."""

    watch: Watch
    step: int
    point: Rows

    @property
    def time(self) -> float:
        return float(self.point.t[0])


class Watch:
    """An event that is looked for."""

    def __init__(
        self, event: Event, name: str, t: float, q: Floats, v: Floats, sizes: Sizes, *, may_record: bool
    ) -> None:
        self.event, self.name = event, name
        with np.errstate(all="ignore"):  # a value that is not finite is refused by name
            self.law: Law = law(f"event {self.name!r}", event.function, t, q, v, (), may=may_record, sizes=sizes)
            first = float(self.law(t, q.copy(), v.copy()))
        if np.isinf(first):
            text = f"event {name!r} has no finite value at the initial state: its function gives {first}"
            raise ModelError(f"{text}; give it a finite value at every state", element=name)

    def values(self, rows: Rows) -> Floats:
        """The function at every row."""
        if self.law.program is not None:
            return in_batch(compiled(self.law.program), rows.t, rows.q, rows.v)[0]
        points = zip(rows.t.tolist(), rows.q, rows.v, strict=True)
        return np.array([float(self.law(t, q.copy(), v.copy())) for t, q, v in points])

    def met(self, engine: Engine, rows: Rows) -> tuple[list[Met], list[str]]:
        """Where it happened in these steps, in their order, and what was not resolved."""
        ends = self.values(rows)
        self._check(rows.t, ends)
        steps, slopes = self._suspect(engine, rows)
        if not len(steps):
            return [], []
        theta = np.broadcast_to(_PARTS, (len(steps), len(_PARTS)))
        values = self._within(engine, rows, steps, theta)
        brackets: list[tuple[int, float, float]] = []
        notes: list[str] = []
        for k, step in enumerate(steps.tolist()):
            x, g, note = self._often(engine, rows, step, values[k], float(slopes[k]))
            notes += note
            crossings, touch = self._brackets(engine, rows, step, x, g)
            brackets += [(step, low, high) for low, high in crossings]
            if touch is not None and touch[1] <= _TOUCH * np.abs(ends).max():
                notes.append(
                    f"event {self.name!r} comes as near to zero as {touch[1]:.2g} at t = {touch[0]:.6g} s: "
                    "whether it touches or crosses it there is not resolved"
                )
        if not brackets:
            return [], notes
        where, low, high = (np.array(x) for x in zip(*brackets, strict=True))
        points, before = self._located(engine, rows, where, low, high)
        wanted = (self.event.direction == 0) | (self.event.direction == -before)
        return [Met(self, int(where[k]), points[k : k + 1]) for k in np.flatnonzero(wanted)], notes

    def _check(self, t: Floats, values: Floats) -> None:
        """An error that names the event and the time if it has no value somewhere."""
        none = np.flatnonzero(~np.isfinite(values))
        if len(none):
            raise EventFailed(self.name, float(t[none[0]]), float(values[none[0]]))

    def _suspect(self, engine: Engine, rows: Rows) -> tuple[NDArray[np.int64], Floats]:
        """The steps in which it changes its sign, or turns round near to zero, by cubics through the points.

        And how fast it changes around each, over the step.
        """
        width = len(_PARTS) * (rows.q.shape[1] + rows.v.shape[1])
        most = max(1, _ROOM // width)
        steps, slopes = [np.zeros(0, np.int64)], [np.zeros(0)]
        for first in range(0, len(rows) - 1, most):
            some = rows[first : first + most + 1]
            g = self.values(_between_ends(engine, some)).reshape(len(some) - 1, len(_PARTS))
            slope = _slopes(g, some.t[1:] - some.t[:-1])
            which = np.flatnonzero(_suspicious(g) | _hides(g, slope / 8))
            steps.append(first + which)
            slopes.append(slope[which])
        return np.concatenate(steps), np.concatenate(slopes)

    def _within(self, engine: Engine, rows: Rows, steps: NDArray[np.int64], theta: Floats) -> Floats:
        """Its values at parts (n, k) of steps (n,), by dense output; at their ends, those of the points."""
        inner = theta[:, 1:-1]
        points = engine.between(rows, np.repeat(steps, inner.shape[1]), inner.reshape(-1))
        values = self.values(points)
        self._check(points.t, values)
        ends = [np.where(theta[:, k] == end, self.values(rows[steps + end]), np.nan) for k, end in ((0, 0), (-1, 1))]
        for k, part in zip((0, 1), (theta[:, 0], theta[:, -1]), strict=True):
            other = np.flatnonzero(np.isnan(ends[k]))
            if len(other):
                ends[k][other] = self.values(engine.between(rows, steps[other], part[other]))
        return np.concatenate([ends[0][:, None], values.reshape(inner.shape), ends[1][:, None]], axis=1)

    def _often(
        self, engine: Engine, rows: Rows, step: int, g: Floats, slope: float
    ) -> tuple[Floats, Floats, list[str]]:
        """Parts of a step and its values there, so close that no more crossings come; else a note of it."""
        count, theta, parts = int(_crossed(g).sum()), _PARTS, _FEW
        if count < _MANY and not _hides(g[None, :], slope / 8)[0]:
            return theta, g, []
        while parts <= _FINEST:
            theta = np.linspace(0.0, 1.0, parts + 1)
            g = self._within(engine, rows, np.array([step]), theta[None, :])[0]
            before, count = count, int(_crossed(g).sum())
            if count == before and not _hides(g[None, :], slope / parts)[0]:
                return theta, g, []
            parts *= 2
        when = f"within one step after t = {rows.t[step]:.6g} s"
        text = f"event {self.name!r} crosses zero {count} times {when}, and there may be more"
        if not count:
            text = f"event {self.name!r} changes too fast {when} to tell whether it crosses zero"
        return theta, g, [f"{text}; give a shorter lw.Stepping(max_step=...)"]

    def _brackets(
        self, engine: Engine, rows: Rows, step: int, theta: Floats, g: Floats
    ) -> tuple[list[tuple[float, float]], tuple[float, float] | None]:
        """Parts of a step between which it crosses zero once; and where, and how nearly, it may touch it."""
        touch: tuple[float, float] | None = None
        for _ in range(_TURNS):
            crossed = np.flatnonzero(_crossed(g))
            low = _least(g)
            if low is None:
                break
            # A closer look around where it turns round; where that shows two crossings, they stand apart.
            finer = np.linspace(theta[low - 1], theta[low + 1], _PIECES + 1)
            values = self._within(engine, rows, np.array([step]), finer[None, :])[0]
            theta = np.concatenate([theta[: low - 1], finer, theta[low + 2 :]])
            g = np.concatenate([g[: low - 1], values, g[low + 2 :]])
            at = low - 1 + int(np.argmin(np.abs(values)))
            t = float(rows.t[step] + theta[at] * (rows.t[step + 1] - rows.t[step]))
            touch = t, float(abs(g[at]))
            if len(np.flatnonzero(_crossed(g))) > len(crossed):
                touch = None
                break
        crossed = np.flatnonzero(_crossed(g))
        return [(float(theta[k]), float(theta[k + 1])) for k in crossed], touch

    def _located(
        self, engine: Engine, rows: Rows, steps: NDArray[np.int64], low: Floats, high: Floats
    ) -> tuple[Rows, Floats]:
        """The first points that are not on the side where these parts of steps begin, and that side's sign."""
        side = np.sign(self._within(engine, rows, steps, np.stack([low, 0.5 * (low + high), high], axis=1))[:, 0])
        parts = np.arange(1, _PIECES) / _PIECES
        length = rows.t[steps + 1] - rows.t[steps]
        for _ in range(_ROUNDS):
            wide = (high - low) * length > np.spacing(np.abs(rows.t[steps + 1]))
            if not wide.any():
                break
            inner = low[:, None] + (high - low)[:, None] * parts
            points = engine.between(rows, np.repeat(steps, len(parts)), inner.reshape(-1))
            values = self.values(points)
            self._check(points.t, values)
            beyond = values.reshape(inner.shape) * side[:, None] <= 0.0
            first = np.where(beyond.any(axis=1), np.argmax(beyond, axis=1), len(parts))
            ends = np.concatenate([low[:, None], inner, high[:, None]], axis=1)
            at = np.arange(len(steps))
            # Each ends by its own width: its bits do not depend on what else is looked for.
            low, high = np.where(wide, ends[at, first], low), np.where(wide, ends[at, first + 1], high)
        return engine.between(rows, steps, high), side


def _between_ends(engine: Engine, rows: Rows) -> Rows:
    """States at `_PARTS` of every step, by cubics through its ends: near enough to see where to look."""
    h = (rows.t[1:] - rows.t[:-1])[:, None, None]
    x = _PARTS[:, None]
    kernels = engine.kernels
    rate = rows.v if kernels.nq == kernels.nv else in_batch(kernels.of(Parts.rate), rows.q, rows.v)[0]

    def cubic(y: Floats, slope: Floats) -> Floats:
        y0, y1, s0, s1 = (part[:, None, :] for part in (y[:-1], y[1:], slope[:-1], slope[1:]))
        forth, back = x * x * (3.0 - 2.0 * x), x * (1.0 - x)
        # At x = 0 and 1 these are the ends to the bit.
        inner = y0 + forth * (y1 - y0) + h * back * ((1.0 - x) * s0 - x * s1)
        return np.asarray(np.where(x == 1.0, y1, inner).reshape(-1, y.shape[1]))

    t = (rows.t[:-1, None] + _PARTS * (rows.t[1:] - rows.t[:-1])[:, None]).reshape(-1)
    q, v = cubic(rows.q, rate), cubic(rows.v, rows.a)
    return Rows(t, q, v, np.zeros_like(v))


def _crossed(g: Floats) -> NDArray[np.bool_]:
    """(..., n − 1): whether it crosses zero, or comes to it, between values; from zero itself nothing does."""
    before, after = g[..., :-1], g[..., 1:]
    return np.asarray(((before < 0.0) & (after >= 0.0)) | ((before > 0.0) & (after <= 0.0)))


def _turning(g: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """(..., n − 2): where |g| is least of three values of one sign, and by how much it changes there."""
    size, sign = np.abs(g), np.sign(g)
    one = (sign[..., :-2] == sign[..., 1:-1]) & (sign[..., 1:-1] == sign[..., 2:]) & (sign[..., 1:-1] != 0.0)
    left, middle, right = size[..., :-2], size[..., 1:-1], size[..., 2:]
    return one & (middle <= left) & (middle <= right), np.maximum(left, right) - middle


def _suspicious(g: Floats) -> NDArray[np.bool_]:
    """(n,): which rows (n, parts) of values change their sign, turn round near to zero, or are no numbers."""
    least, change = _turning(g)
    x0, x1, x2 = _PARTS[:-2], _PARTS[1:-1], _PARTS[2:]
    size = np.abs(g)
    left, right = (size[:, 1:-1] - size[:, :-2]) / (x1 - x0), (size[:, 2:] - size[:, 1:-1]) / (x2 - x1)
    bend = (right - left) / (x2 - x0)
    slope = left + bend * (x1 - x0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        bottom = size[:, 1:-1] - np.where(bend > 0.0, slope**2 / (4.0 * bend), 0.0)
    near = least & (bottom <= _NEAR * change)
    return np.asarray(_crossed(g).any(axis=1) | near.any(axis=1) | ~np.isfinite(g).all(axis=1))


def _slopes(g: Floats, lengths: Floats) -> Floats:
    """(n,): how fast it changes at most, over each step, at the ends of the step and of the two on either side."""
    rise = np.maximum(np.abs(g[:, 1] - g[:, 0]), np.abs(g[:, -1] - g[:, -2]))
    rates = np.pad(rise / (_PARTS[1] * lengths), 2, mode="edge")
    return np.asarray(lengths * np.max([rates[k : k + len(g)] for k in range(5)], axis=0))


def _hides(g: Floats, rise: Floats | float) -> NDArray[np.bool_]:
    """(n,): whether between two values a part apart, where it may change by `rise`, it may go to zero and come back.

    So it is where it changes by more than all values that were looked at, and by more than they are away from zero.
    """
    return np.asarray((rise > np.ptp(g, axis=1)) & (rise > np.abs(g).min(axis=1)))


def _least(g: Floats) -> int | None:
    """Where |g| turns round nearest to zero without crossing it; None if it does so nowhere."""
    least, change = _turning(g)
    # Where values are as large as they were, or it is seen from one side only, a closer look finds nothing.
    at = np.flatnonzero(least & (change > 0.0))
    return None if not len(at) else 1 + int(at[np.argmin(np.abs(g)[1:-1][at])])


def watches(
    events: Sequence[Event], t: float, q: Floats, v: Floats, sizes: Sizes, *, may_record: bool = True
) -> list[Watch]:
    """Each event as it is looked for; what has a name that another has is numbered."""
    watches_by_name: dict[str, Watch] = {}
    for k, event in enumerate(events):
        function_name = getattr(event.function, "__name__", "")
        name = first = event.name or (
            function_name if function_name and function_name != "<lambda>" else f"event {k + 1}"
        )
        number = 1
        while name in watches_by_name:
            number += 1
            name = f"{first} ({number})"
        watches_by_name[name] = Watch(event, name, t, q, v, sizes, may_record=may_record)
    return list(watches_by_name.values())


def met(watched: Sequence[Watch], engine: Engine, rows: Rows) -> tuple[list[Met], Met | None, list[str]]:
    """What happened in these steps in the order of time, up to and with the first terminal event; and notes of it."""
    with np.errstate(all="ignore"):  # values that are not finite are looked at
        answers = [watch.met(engine, rows) for watch in watched]
    every = sorted((m for crossings, _ in answers for m in crossings), key=lambda m: m.time)
    notes = [note for _, more in answers for note in more]
    for k, one in enumerate(every):
        if one.watch.event.terminal:
            return every[: k + 1], one, notes
    return every, None, notes
