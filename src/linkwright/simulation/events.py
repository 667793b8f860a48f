"""Events: zero crossings of functions of the state, found between the steps by dense output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.errors import ModelError
from linkwright.kernels import compiled
from linkwright.simulation.engines import Engine
from linkwright.simulation.kernels import in_batch
from linkwright.simulation.laws import Law, law
from linkwright.simulation.rows import Rows

Floats = NDArray[np.float64]
_PIECES = 16  # into which the step with a crossing is cut, again and again
_ROUNDS = 14  # 16¹⁴ is more than the digits of a number


@dataclass(frozen=True)
class Event:
    """A zero crossing of function(t, q, v): upward with direction > 0, downward with direction < 0, else both.

    The function is in NumPy syntax and is compiled; one that cannot be recorded is called from Python at every step.
    It is looked at after every step: two crossings within one step are not seen. A terminal event ends the run where it
    happens. `sol.events` lists what was met, by name; the second event of a name "hit" is "hit (2)".
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

    def __init__(self, event: Event, name: str, t: float, q: Floats, v: Floats, *, may_record: bool) -> None:
        self.event, self.name = event, name
        self.law: Law = law(f"event {self.name!r}", event.function, t, q, v, (), may=may_record)

    def values(self, rows: Rows) -> Floats:
        """The function at every row."""
        if self.law.program is not None:
            return in_batch(compiled(self.law.program), rows.t, rows.q, rows.v)[0]
        points = zip(rows.t.tolist(), rows.q, rows.v, strict=True)
        return np.array([float(self.law(t, q.copy(), v.copy())) for t, q, v in points])

    def crossed(self, before: Floats, after: Floats) -> NDArray[np.bool_]:
        """Whether it happened between two values; from zero itself nothing does."""
        up, down = (before < 0.0) & (after >= 0.0), (before > 0.0) & (after <= 0.0)
        if self.event.direction > 0:
            return up
        return down if self.event.direction < 0 else up | down

    def met(self, engine: Engine, rows: Rows) -> list[Met]:
        """Where it happened in these steps."""
        g = self.values(rows)
        steps = np.flatnonzero(self.crossed(g[:-1], g[1:]))
        if not len(steps):
            return []
        found = self._located(engine, rows, steps, np.sign(g[steps]))
        return [Met(self, int(step), found[k : k + 1]) for k, step in enumerate(steps)]

    def _located(self, engine: Engine, rows: Rows, steps: NDArray[np.int64], side: Floats) -> Rows:
        """The first points of these steps that are not on the side where the steps begin."""
        low, high = np.zeros(len(steps)), np.ones(len(steps))
        parts = np.arange(1, _PIECES) / _PIECES
        length = rows.t[steps + 1] - rows.t[steps]
        for _ in range(_ROUNDS):
            if np.all((high - low) * length <= np.spacing(np.abs(rows.t[steps + 1]))):
                break
            inner = low[:, None] + (high - low)[:, None] * parts
            points = engine.between(rows, np.repeat(steps, len(parts)), inner.reshape(-1))
            beyond = self.values(points).reshape(inner.shape) * side[:, None] <= 0.0
            first = np.where(beyond.any(axis=1), np.argmax(beyond, axis=1), len(parts))
            ends = np.concatenate([low[:, None], inner, high[:, None]], axis=1)
            at = np.arange(len(steps))
            low, high = ends[at, first], ends[at, first + 1]
        return engine.between(rows, steps, high)


def watches(events: Sequence[Event], t: float, q: Floats, v: Floats, *, may_record: bool = True) -> list[Watch]:
    """Each event as it is looked for; what has a name that another has is numbered."""
    found: dict[str, Watch] = {}
    for k, event in enumerate(events):
        own = getattr(event.function, "__name__", "")
        name = first = event.name or (own if own and own != "<lambda>" else f"event {k + 1}")
        number = 1
        while name in found:
            number += 1
            name = f"{first} ({number})"
        found[name] = Watch(event, name, t, q, v, may_record=may_record)
    return list(found.values())


def met(watched: Sequence[Watch], engine: Engine, rows: Rows) -> tuple[list[Met], Met | None]:
    """What happened in these steps in the order of time, up to and with the first terminal event."""
    every = sorted((m for watch in watched for m in watch.met(engine, rows)), key=lambda m: m.time)
    for k, one in enumerate(every):
        if one.watch.event.terminal:
            return every[: k + 1], one
    return every, None
