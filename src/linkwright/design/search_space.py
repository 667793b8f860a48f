"""The space of an optimisation, its evaluations and the optimum: parameters with bounds and scales, limits of outputs;
objective, limits and their slopes in scaled parameters, each place once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.base.arguments import check_names
from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.design.recorded_functions import Undefined
from linkwright.design.sensitivity import Problem, as_mapping
from linkwright.errors import LinkwrightError, ModelError
from linkwright.mechanism import Mechanism
from linkwright.outputs.derivatives import Answer
from linkwright.outputs.output_language import named
from linkwright.results.status import Status

if TYPE_CHECKING:
    from os import PathLike


@dataclass(frozen=True, eq=False)
class Space:
    """p = start + scale·z, between lower and upper."""

    names: tuple[str, ...]
    start: Floats
    lower: Floats
    upper: Floats
    scale: Floats

    def values(self, z: Floats) -> Floats:
        """The parameters at z; rounding does not take them over their bounds."""
        return np.asarray(np.clip(self.start + self.scale * np.asarray(z, float), self.lower, self.upper))

    def place(self, values: Floats) -> Floats:
        """z of these values."""
        return np.asarray((values - self.start) / self.scale)

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """The bounds of z."""
        return self.place(self.lower), self.place(self.upper)

    def drawn(self, count: int, seed: int) -> list[Floats]:
        """z of `count` starts: the model's own, and others spread over the bounds."""
        starts = [np.zeros(len(self.names))]
        if count == 1:
            return starts
        for name, low, high in zip(self.names, self.lower, self.upper, strict=True):
            if not np.isfinite(low) or not np.isfinite(high):
                text = f"several starts need bounds on both sides, and {name!r} has none on one"
                raise ModelError(f"{text}; give {{{name!r}: (lower, upper)}}", element=name)
        from scipy.stats import qmc  # type: ignore[import-untyped]  # weight: scipy

        spread = qmc.LatinHypercube(len(self.names), seed=np.random.default_rng(seed)).random(count - 1)
        return starts + [self.place(self.lower + x * (self.upper - self.lower)) for x in spread]


def space_of(known: Mapping[str, float], parameters: Any) -> Space:
    """Parameters as they are given: names, {"crank": (0.5, 2)}, or with a start {"crank": (0.5, 1.2, 2)}."""
    bounds = as_mapping(parameters)
    if not bounds:
        raise ModelError(f"no parameter was named to be changed; there are {', '.join(list(known)[:8]) or 'none'}")
    rows = []
    for name, bound in bounds.items():
        check_names("parameter", [name], known)
        low, start, high = _row(name, bound, known[name])
        if not low < high:
            text = f"the bounds of parameter {name!r} are {low:g} and {high:g}; the first must be less than the second"
            raise ModelError(text, element=name)
        whole = np.isfinite(low) and np.isfinite(high)
        start = float(np.clip(start, low, high))
        rows.append((start, low, high, high - low if whole else abs(start) or 1.0))
    start_, lower, upper, scale = np.array(rows, dtype=float).T
    return Space(tuple(bounds), start_, lower, upper, scale)


def _row(name: str, bound: Any, now: float) -> tuple[float, float, float]:
    if bound is None:
        return -np.inf, now, np.inf
    try:
        numbers = [x if x is None else float(x) for x in bound]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) == 3:
        low, start, high = numbers
    elif len(numbers) == 2:
        (low, high), start = numbers, now
    else:
        text = f"parameter {name!r} is given {bound!r}; give (lower, upper) or (lower, start, upper), None where open"
        raise ModelError(text, element=name)
    low, high = (-np.inf if low is None else low), (np.inf if high is None else high)
    start = now if start is None else start
    if np.isnan([low, start, high]).any() or not np.isfinite(start):
        raise ModelError(f"the bounds of parameter {name!r} are {bound!r}; give numbers", element=name)
    return low, start, high


def limits_of(constraints: Any) -> dict[str, tuple[Any, float, float]]:
    """Constraints as they are given, {"max(d.angle)": (0.2, 0.9)}: name → output, lower, upper; None where open."""
    if not isinstance(constraints, Mapping):
        if isinstance(constraints, Sequence) and not constraints:
            return {}
        raise ModelError(f"constraints are outputs with limits, as {{'max(d.angle)': (0.2, 0.9)}}, not {constraints!r}")
    limits: dict[str, tuple[Any, float, float]] = {}
    for output, limit in constraints.items():
        ((name, wanted),) = named(output).items()
        if isinstance(limit, (int, float)):
            limit = (limit, limit)
        try:
            low, high = (None if x is None else float(x) for x in limit)
        except (TypeError, ValueError):
            text = f"the limits of {name!r} are {limit!r}; give (lower, upper), None where open, or one number"
            raise ModelError(text, element=name) from None
        low, high = (-np.inf if low is None else low), (np.inf if high is None else high)
        if not low <= high:
            raise ModelError(
                f"the limits of {name!r} are {low:g} and {high:g}; the first must not be greater", element=name
            )
        if np.isinf(low) and np.isinf(high):
            raise ModelError(f"{name!r} has no limit on either side; leave it out, or give one", element=name)
        limits[name] = wanted, low, high
    return limits


@dataclass(frozen=True)
class Visit:
    """One evaluation: the objective, how far limits were overstepped (as parts of their sizes), and where; a place
    where the mechanism cannot be evaluated has its reason."""

    value: float
    overstepped: float
    parameters: dict[str, float]
    reason: str = ""


@dataclass(eq=False)
class Optimum:
    """The best that was found, within all limits where that could be."""

    objective: str
    parameters: dict[str, float]
    value: float
    before: float
    constraints: dict[str, tuple[float, float]]  # the least and largest value of each
    status: Status
    history: list[Visit]
    evaluations: int
    gradients: int
    failures: int
    seconds: float
    model: Mechanism = field(repr=False)
    space: Any = field(repr=False)
    limits: dict[str, tuple[float, float]] = field(repr=False)
    maximise: bool = False

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism with the best parameters."""
        return self.model.with_parameters(**self.parameters)

    def report(self) -> str:
        """A text: how it ended, what was reached, and each parameter before and after."""
        word = "maximised" if self.maximise else "minimised"
        lines = [
            str(self.status),
            f"{self.objective} ({word}): {self.before:.6g} -> {self.value:.6g}",
            f"{self.evaluations} evaluations, {self.gradients} with exact derivatives"
            + (f", {self.failures} where the mechanism cannot be" if self.failures else "")
            + f", {self.seconds:.2f} s",
        ]
        wide = max(len(n) for n in self.parameters)
        for k, (name, value) in enumerate(self.parameters.items()):
            low, high = self.space.lower[k], self.space.upper[k]
            at = " (at its lower bound)" if value == low else " (at its upper bound)" if value == high else ""
            lines.append(f"  {name.ljust(wide)}  {self.space.start[k]:.6g} -> {value:.6g}{at}")
        for name, (least, most) in self.constraints.items():
            low, high = self.limits[name]
            span = f"{least:.6g}" if least == most else f"{least:.6g} … {most:.6g}"
            lines.append(f"  {name}: {span}, within {low:g} … {high:g}")
        return "\n".join(lines)

    def plot(self, path: str | PathLike[str] | None = None) -> Any:
        """A figure of the objective and of the parameters over the evaluations."""
        from linkwright.results.figures import ShownFigure, save_figure  # weight: matplotlib

        good = [(k, x) for k, x in enumerate(self.history) if not x.reason]
        figure = ShownFigure(figsize=(7, 6), layout="constrained", facecolor="white")
        axes = figure.subplots(2, 1, sharex=True)
        at = [k for k, _ in good]
        axes[0].plot(at, [x.value for _, x in good], ".-")
        axes[0].set_ylabel(self.objective)
        for k, name in enumerate(self.parameters):
            scaled = [(x.parameters[name] - self.space.start[k]) / self.space.scale[k] for _, x in good]
            axes[1].plot(at, scaled, ".-", label=name)
        axes[1].set(xlabel="evaluation", ylabel="change, as a part of the range")
        axes[1].legend()
        save_figure(figure, path, dpi=120)
        return figure

    def __repr__(self) -> str:
        best = ", ".join(f"{n} = {x:.6g}" for n, x in self.parameters.items())
        return f"<Optimum of {self.objective}: {self.before:.6g} -> {self.value:.6g} at {best}; {self.status}>"


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

    Outputs have values (r,) and slopes (r, k): one row, or one per time point.
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
