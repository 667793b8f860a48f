"""How an analysis or a simulation ended, the work that it took, and the series that it gives beside motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arguments import counted
from linkwright.errors import ModelError, visible
from linkwright.model.description import sealed
from linkwright.model.units import Units, in_words
from linkwright.model.units import unit as known_unit


@dataclass(frozen=True)
class Status:
    """How a run ended: true when it finished; otherwise why, where, and what to try.

    - `ok`: whether it finished.
    - `message`: the sentence for people; "" by default.
    - `reason`: a short word for programs: "finished" (the default); of an analysis "dead centre", "lock-up",
      "out of reach", "jump", "no value", "self-locking"; of a simulation "event", "no value", "step underflow",
      "constraint cannot be met", "interrupted", "law failed", "disk full", "checkpoint failed", "out of memory".
    - `time` (s): the last time reached; None by default.
    - `element`: the driver or joint that it is about; None by default.
    - `residual`: the constraint residual there; 0 by default.
    - `notes`: what else was seen on the way (singular positions passed); none by default.
    - `advice`: what to change; "" by default.

    >>> import linkwright as lw
    >>> print(lw.Status(False, reason="dead centre", time=0.5, element="crank", advice="start at another angle"))
    stopped at t = 0.5 s: dead centre at 'crank'. Start at another angle.
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
    """The work that a run took: whole numbers, 0 by default, that nothing checks.

    - `newton_iterations`, `tape_evaluations`, `linear_solves`: of all points and steps.
    - `substeps`: between the points of a kinematic analysis. `points`: the time points.
    - `steps`, `rejected`: steps of a simulation that were taken, and those that were tried again with a shorter length.

    >>> import linkwright as lw
    >>> print(lw.simulate(lw.chain(1), 0.1, q0=[0.5], method="rk4", dt=0.01).counters)
    11 points, 10 steps, 41 function evaluations
    """

    newton_iterations: int = 0
    tape_evaluations: int = 0
    linear_solves: int = 0
    substeps: int = 0
    points: int = 0
    steps: int = 0
    rejected: int = 0

    def __str__(self) -> str:
        points, rounds = counted(self.points, "point"), counted(self.newton_iterations, "Newton iteration")
        if not self.steps:
            evaluations = counted(self.tape_evaluations, "function evaluation")
            solves, substeps = counted(self.linear_solves, "linear solve"), counted(self.substeps, "substep")
            return f"{points}, {rounds}, {evaluations}, {solves}, {substeps}"
        again = f", {self.rejected:,} rejected" if self.rejected else ""
        iterations = f", {rounds}" if self.newton_iterations else ""
        evaluations = counted(self.tape_evaluations, "function evaluation")
        return f"{points}, {counted(self.steps, 'step')}{again}, {evaluations}{iterations}"


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else text + "."


@dataclass(frozen=True, eq=False)
class Series:
    """Values (T,) and their unit, which is one of SI unless a user's own series has another.

    >>> import linkwright as lw
    >>> sol = lw.analyse(lw.chain(1), times=[0.0, 0.1], analysis="dynamic")
    >>> sol.series["joint1.my"].unit, sol.series["joint1.my"].to("N mm").unit
    ('N m', 'N mm')
    """

    values: NDArray[np.float64]
    unit: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", sealed(np.array(self.values, dtype=np.float64)))

    def __len__(self) -> int:
        return len(self.values)

    def to(self, unit: str) -> Series:
        """The same in another `unit` such as "kN" or "N mm". Raises ModelError for one of another dimension."""
        try:
            source = known_unit(self.unit)
        except ModelError:
            raise ModelError(f"the unit {self.unit!r} of a series is none that is known; give the series one") from None
        target = known_unit(unit)
        if target.dimension != source.dimension:
            text = f"a series of {in_words(source.dimension)} has no values in {unit!r}, {in_words(target.dimension)}"
            raise ModelError(f"{text}; give a unit as {self.unit!r}")
        return Series(target.converted_from(source, self.values), unit)

    def shown(self, units: Units) -> Series:
        """The same in the units of a model."""
        shown = units.shown(self.unit)
        return self if shown.text == self.unit else Series(shown.of(self.values), shown.text)


def loads(series: Mapping[str, Series]) -> list[tuple[str, list[tuple[str, str, Any]]]]:
    """Series put together by what they are of: for each its name and sheets of heading, unit and (T,) or (3, T).

    The components `hinge.fx`, `hinge.fy`, `hinge.fz` are one sheet, Force, and those of the moment another; those of a
    point, `touch.x`, `.y`, `.z`, are one as well. Forces come first, parameters of curves last.
    """
    sheets: dict[str, list[tuple[str, str, Any]]] = {}
    for name, one in series.items():
        stem, _, part = name.rpartition(".")
        if part in ("fx", "mx") and all(f"{stem}.{part[0]}{x}" in series for x in "yz"):
            vector = np.stack([series[f"{stem}.{part[0]}{x}"].values for x in "xyz"])
            sheets.setdefault(stem, []).append(("Force" if part == "fx" else "Moment", one.unit, vector))
        elif part == "x" and all(f"{stem}.{x}" in series for x in "yz"):
            point = np.stack([series[f"{stem}.{x}"].values for x in "xyz"])
            sheets.setdefault(stem, []).append(("Point", one.unit, point))
        elif part not in ("fx", "fy", "fz", "mx", "my", "mz", "y", "z"):
            heading = part.capitalize().replace("_", " ")
            sheets.setdefault(stem or name, []).append((heading, one.unit, one.values))
    order = ("Force", "Moment", "Friction", "Pressure angle", "Point")
    for entries in sheets.values():
        entries.sort(key=lambda sheet: order.index(sheet[0]) if sheet[0] in order else len(order))
    return list(sheets.items())
