"""Evaluations of an optimisation: objective, limits and their slopes in scaled parameters, each place once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.design.problem import Problem
from linkwright.design.recorded_functions import Undefined
from linkwright.design.search_space import Space, Visit
from linkwright.errors import LinkwrightError
from linkwright.outputs.derivatives import Answer


class NoSlope(LinkwrightError):
    """A place that has a value and no derivative, so that a solver does not know where to go from it."""


#: An objective that the mechanism cannot have: so many times as large as anything seen.
WALL = 10.0


@dataclass(frozen=True, eq=False)
class Goal:
    """What is made small: an output (by its name), or the differences of series from targets (T, r)."""

    name: str
    sign: float = 1.0
    targets: dict[str, Floats] | None = None


@dataclass(frozen=True, eq=False)
class Limit:
    """Limits of one output."""

    name: str
    lower: float
    upper: float

    @property
    def size(self) -> float:
        """What it is measured by."""
        finite = [abs(x) for x in (self.lower, self.upper) if np.isfinite(x)]
        span = self.upper - self.lower
        return float(span) if np.isfinite(span) and span > 0 else max(finite) if any(finite) else 1.0


@dataclass(eq=False)
class Point:
    """One place: objective, differences from targets, outputs; slopes are in z, where they were asked for.

    Outputs have values (r,) and slopes (r, k): one row, or one a time point.
    """

    z: Floats
    values: Floats
    outputs: dict[str, Answer] = field(default_factory=dict)
    value: float = np.inf
    gradient: Floats | None = None
    residuals: Floats | None = None
    slopes: Floats | None = None
    overstepped: float = np.inf
    reason: str = ""
    has_value: bool = False  # also where there is a reason: of its slopes


class Evaluations:
    """Looks at places, remembers the last ones, and keeps the best."""

    def __init__(
        self,
        problem: Problem,
        space: Space,
        goal: Goal,
        limits: list[Limit],
        progress: Callable[[int, float], None] | None,
        within: float,
    ) -> None:
        """`within`: what may be overstepped of a limit's size and still count as within it."""
        self.problem, self.space, self.goal, self.limits = problem, space, goal, limits
        self.progress, self.within = progress, within
        self.history: list[Visit] = []
        self.count = self.gradients = self.failures = 0
        self.best: Point | None = None
        self._last: dict[bytes, Point] = {}
        self._largest = 0.0
        self._good: Point | None = None

    def at(self, z: Floats, *, slopes: bool) -> Point:
        """The point at z."""
        z = np.array(z, dtype=np.float64)
        key = z.tobytes()
        point = self._last.get(key)
        if point is None or (slopes and point.gradient is None and not point.reason):
            known = point
            point = self._looked(z, 1 if slopes else 0, new=known is None)
            point.has_value = known is not None or not point.reason
            while len(self._last) > 8:
                del self._last[next(iter(self._last))]
            self._last[key] = point
        return point

    def _looked(self, z: Floats, order: int, *, new: bool) -> Point:
        values = self.space.values(z)
        self.gradients += order
        try:
            point = self._point(z, values, self.problem.answers(values, order)[1])
            if not np.isfinite(point.value):
                raise Undefined(f"{self.goal.name} is not finite")
        except Undefined as error:
            point = Point(z, values, reason=str(error))
        except LinkwrightError as error:
            if self._good is None:
                raise
            point = Point(z, values, reason=str(error))
        if new:
            self._note(point)
        return point

    def _note(self, point: Point) -> None:
        self.count += 1
        self.failures += bool(point.reason)
        named = dict(zip(self.space.names, point.values.tolist(), strict=True))
        shown = self.goal.sign * point.value if not point.reason else float("nan")
        self.history.append(Visit(shown, point.overstepped, named, point.reason))
        if not point.reason:
            self._good = point
            self._largest = max(self._largest, abs(point.value))
            if self.best is None or self._better(point, self.best):
                self.best = point
        if self.progress is not None:
            self.progress(self.count, self.goal.sign * self.best.value if self.best else float("nan"))

    def _better(self, point: Point, than: Point) -> bool:
        inside, other = point.overstepped <= self.within, than.overstepped <= self.within
        if inside != other:
            return inside
        return point.value < than.value if inside else point.overstepped < than.overstepped

    def _point(self, z: Floats, values: Floats, answers: dict[str, Answer]) -> Point:
        goal = self.goal
        point = Point(z, values, {name: self._in_z(answer) for name, answer in answers.items()})
        if goal.targets is None:
            objective = point.outputs[goal.name]
            point.value = goal.sign * float(objective.value[0])
            point.gradient = None if objective.first is None else goal.sign * objective.first[0]
        else:
            series = [point.outputs[name] for name in goal.targets]
            targets = goal.targets.values()
            point.residuals = np.concatenate([x.value - target for x, target in zip(series, targets, strict=True)])
            point.value = 0.5 * float(point.residuals @ point.residuals)
            slopes = [x.first for x in series if x.first is not None]
            if slopes:
                point.slopes = np.concatenate(slopes)
                point.gradient = point.residuals @ point.slopes
        point.overstepped = max([0.0, *(overstepped(x, point.outputs[x.name].value) for x in self.limits)])
        return point

    def _in_z(self, answer: Answer) -> Answer:
        slopes = None if answer.first is None else np.atleast_2d(answer.first) * self.space.scale
        return Answer(np.atleast_1d(answer.value), slopes)

    # -- what solvers ask --------------------------------------------------------------------------------------
    def value(self, z: Floats) -> float:
        """The objective; where the mechanism cannot be, a wall that rises away from the last good place."""
        point = self.at(z, slopes=False)
        return point.value if not point.reason else self._wall(z)[0]

    def gradient(self, z: Floats) -> Floats:
        """The slope of the objective, or of the wall."""
        point = self._sloped(z)
        if point.gradient is None or point.reason:
            return self._wall(z)[1]
        return point.gradient

    def _sloped(self, z: Floats) -> Point:
        """The point with its slopes; where the mechanism cannot be the wall has some, at a corner there are none."""
        point = self.at(z, slopes=True)
        if point.reason and point.has_value:
            raise NoSlope(point.reason)
        return point

    def _wall(self, z: Floats) -> tuple[float, Floats]:
        good = self._good
        assert good is not None
        away = np.asarray(z) - good.z
        height = WALL * (self._largest or 1.0)
        return good.value + height * (1.0 + float(away @ away)), 2.0 * height * away

    def residuals(self, z: Floats) -> Floats:
        """Differences from targets; not finite where the mechanism cannot be."""
        point = self.at(z, slopes=False)
        if point.residuals is None:
            assert self._good is not None
            assert self._good.residuals is not None
            return np.full(len(self._good.residuals), np.inf)
        return point.residuals

    def residual_slopes(self, z: Floats) -> Floats:
        """Their slopes."""
        slopes = self._sloped(z).slopes
        assert slopes is not None
        return slopes

    def rows_of(self, name: str, z: Floats, *, slopes: bool) -> Floats:
        """A limited output, or its slopes; where the mechanism cannot be, those of the last good place."""
        point = self._sloped(z) if slopes else self.at(z, slopes=False)
        if point.reason:
            assert self._good is not None
            point = self._sloped(self._good.z) if slopes else self.at(self._good.z, slopes=False)
        output = point.outputs[name]
        return np.asarray(output.first if slopes else output.value)


def overstepped(limit: Limit, x: Floats) -> float:
    """By how much limits are overstepped, as a part of their size."""
    over = np.maximum(limit.lower - x, x - limit.upper).max(initial=0.0)
    return float(over) / limit.size
