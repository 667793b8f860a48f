"""How an analysis or a simulation ended, and the work that it took: plain values, without any array library."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from linkwright.text import visible


@dataclass(frozen=True)
class Status:
    """How a run ended: true when it finished; otherwise why, where, and what to try.

    `reason` is a short word for programs: "finished"; of an analysis "dead centre", "lock-up", "out of reach", "jump",
    "no value"; of a simulation "event", "no value", "step underflow", "constraint cannot be met", "interrupted",
    "law failed", "disk full", "checkpoint failed", "out of memory";
    `message` the sentence for people, `time` the last time reached, `element` the driver or joint that it is about,
    `residual` the constraint residual there, `notes` what else was seen on the way (singular positions passed),
    `advice` what to change.
    """

    ok: bool
    message: str = ""
    reason: str = "finished"
    time: float | None = None
    element: str | None = None
    residual: float = 0.0
    notes: tuple[str, ...] = ()
    advice: str = ""

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        if self.message:
            text = self.message
        elif self.ok:
            text = "finished"
        else:
            element = f" at {self.element!r}" if self.element else ""
            when = f" at t = {self.time:g} s" if self.time is not None else ""
            text = f"stopped{when}: {self.reason}{element}"
        more = [part[:1].upper() + part[1:] for part in (*self.notes, self.advice)]
        return visible(" ".join(_sentence(part) for part in (text, *more) if part))


@dataclass(frozen=True)
class Counters:
    """The work that a run took."""

    newton_iterations: int = 0
    tape_evaluations: int = 0
    linear_solves: int = 0
    substeps: int = 0
    points: int = 0
    steps: int = 0
    rejected: int = 0

    def __str__(self) -> str:
        names = [field.name for field in dataclasses.fields(self) if field.name not in ("points", "steps", "rejected")]
        text = ", ".join(_counted(getattr(self, name), name.replace("_", " ")) for name in ["points", *names])
        if not self.steps:
            return text
        again = f", {self.rejected:,} rejected" if self.rejected else ""
        rounds = f", {_counted(self.newton_iterations, 'newton iterations')}" if self.newton_iterations else ""
        points, calls = _counted(self.points, "points"), _counted(self.tape_evaluations, "evaluations")
        return f"{points}, {_counted(self.steps, 'steps')}{again}, {calls}{rounds}"


def _counted(number: int, things: str) -> str:
    return f"{number:,} {things.removesuffix('s') if number == 1 else things}"


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else text + "."
