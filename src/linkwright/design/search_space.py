"""The space of an optimisation: parameters with bounds and scales, limits of outputs; and the optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.base.arguments import check_names
from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.design.problem import as_mapping
from linkwright.errors import ModelError
from linkwright.mechanism import Mechanism
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
