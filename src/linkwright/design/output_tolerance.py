"""The tolerance of one output: contributions of dimensions, worst case, root sum of squares and Monte Carlo, as numbers
and rows of tables; it computes no mechanism.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwright.base.arguments import first_few
from linkwright.base.arrays import Floats
from linkwright.base.locks import cached_property
from linkwright.base.text_tables import aligned
from linkwright.design.tolerance_inputs import Dimension
from linkwright.errors import on_one_line
from linkwright.model.units import PLAIN, Shown

#: Parts of all draws (per cent) whose values are listed: those at −3σ, −2σ, 0, 2σ and 3σ of a normal distribution.
PERCENTILES = (0.135, 2.275, 50.0, 97.725, 99.865)
HEAD = ("dimension", "nominal", "tolerance", "drawn", "derivative", "contribution ±", "%")
METHODS = ("method", "least", "greatest", "±")
NONE = 1e-9  # of the root sum of squares, what counts as no contribution
FAR = 3.0  # standard errors from which a difference is not by chance


@dataclass(frozen=True)
class Contribution:
    """What one dimension adds to the tolerance of an output.

    `derivative` is ∂output/∂dimension; of a clearance or tilt it is the length of the gradient, whose `direction` is an
    angle from the axis f to g of the joint's frame (rad; None of parameters). `low` and `high` are the changes of the
    output between the limits, `half` is half their difference, `deviation` the standard deviation that it makes, and
    `percent` the part of all squares of `half`.
    """

    dimension: Dimension
    derivative: float
    low: float
    high: float
    deviation: float
    percent: float
    direction: float | None = None

    @property
    def half(self) -> float:
        """Half the range of the output that this dimension makes."""
        return 0.5 * (self.high - self.low)


@dataclass(frozen=True)
class WorstCase:
    """The least and the greatest value of an output within the tolerances.

    `linear` are those by the derivatives. `low` and `high` are of the mechanism itself, at `vertices` of the box of
    tolerances: all of them if `complete`, else the two that are worst by the derivatives. `at_low` and `at_high` have
    the dimensions there, of clearances the vectors along their directions.
    """

    low: float
    high: float
    linear: tuple[float, float]
    vertices: int
    complete: bool
    at_low: Mapping[str, Any]
    at_high: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class MonteCarlo:
    """An output of drawn mechanisms: `samples` (n,) of those that are good, in the order of the draws.

    `failed` draws have no value, for `reasons` with their numbers.
    """

    samples: Floats
    draws: int
    seed: int
    reasons: tuple[tuple[str, int], ...] = ()

    @property
    def failed(self) -> int:
        """How many draws have no value."""
        return self.draws - len(self.samples)

    @cached_property
    def mean(self) -> float:
        """The mean of the samples."""
        return float(self.samples.mean())

    @cached_property
    def std(self) -> float:
        """The standard deviation of the samples."""
        return float(self.samples.std(ddof=1)) if len(self.samples) > 1 else 0.0

    @cached_property
    def percentiles(self) -> dict[float, float]:
        """The values below which these parts of the samples lie, by per cent."""
        values = np.percentile(self.samples, PERCENTILES)
        return dict(zip(PERCENTILES, values.tolist(), strict=True))

    @property
    def low(self) -> float:
        """The least sample."""
        return float(self.samples.min())

    @property
    def high(self) -> float:
        """The greatest sample."""
        return float(self.samples.max())

    @cached_property
    def errors(self) -> tuple[float, float]:
        """The standard errors of the mean and of the standard deviation, which are due to the number of draws."""
        n = max(len(self.samples), 2)
        spread = self.samples - self.mean
        square, fourth = float(np.mean(spread**2)), float(np.mean(spread**4))
        return self.std / n**0.5, max(fourth - square**2, 0.0) ** 0.5 / (2.0 * max(self.std, 1e-300) * n**0.5)


@dataclass(frozen=True, eq=False)
class OutputTolerance:
    """The tolerance of one output.

    - `nominal`: its value at the nominal dimensions; `middle`: that to first order in the middle of all tolerances.
    - `contributions`: by dimension, the largest first.
    - `worst_case`: a `WorstCase`.
    - `rss`: the root sum of squares of the contributions, about `middle`; `std`: the standard deviation to first order.
    - `monte_carlo`: a `MonteCarlo`, None without draws.
    - `shift`: how far second derivatives move the mean (None unless order=2), and `curved`: how much they can add to
      the worst case.
    - `notes`: sentences on what stands out.
    """

    name: str
    expression: str
    nominal: float
    contributions: Mapping[str, Contribution]
    worst_case: WorstCase
    monte_carlo: MonteCarlo | None = None
    shift: float | None = None
    curved: float | None = None
    shown: Shown = PLAIN  # how its numbers are shown in tables and figures; here they are in SI
    parameters: Mapping[str, Shown] = field(default_factory=dict)  # and those of its dimensions

    @property
    def middle(self) -> float:
        """The output to first order in the middle of all tolerances."""
        return self.nominal + sum(0.5 * (x.low + x.high) for x in self.contributions.values())

    @property
    def rss(self) -> float:
        """The root sum of squares of the contributions."""
        return float(np.sqrt(sum(x.half**2 for x in self.contributions.values())))

    @property
    def std(self) -> float:
        """The standard deviation to first order."""
        return float(np.sqrt(sum(x.deviation**2 for x in self.contributions.values())))

    @property
    def disagreement(self) -> tuple[float, float] | None:
        """How far Monte Carlo is from the linear answer, None without either.

        By which part its standard deviation is larger, and by how many linear standard deviations its mean is above
        `middle`.
        """
        drawn, std = self.monte_carlo, self.std
        if drawn is None or not std or len(drawn.samples) < 2:
            return None
        return drawn.std / std - 1.0, (drawn.mean - self.middle) / std

    @property
    def notes(self) -> list[str]:
        """Sentences on what stands out."""
        idle = [x.dimension.label for x in self.contributions.values() if x.half <= NONE * self.rss]
        which = (
            "decides nothing: its contribution is 0" if len(idle) == 1 else "decide nothing: their contributions are 0"
        )
        notes = [f"{first_few(idle, 12)} {which}"] if idle else []
        return [*notes, *self._bent(), *self._chance()]

    def _bent(self) -> Iterator[str]:
        """How far the mechanism itself is from the linear worst case."""
        worst, half = self.worst_case, 0.5 * (self.worst_case.linear[1] - self.worst_case.linear[0])
        if not half:
            return
        below, above = (100.0 * x / half for x in (worst.linear[0] - worst.low, worst.high - worst.linear[1]))
        if max(abs(below), abs(above)) > 1.0:
            yield (
                f"not linear within the tolerances: the vertices are {_beyond(below)} the linear worst case below and "
                f"{_beyond(above)} it above"
            )
        if self.curved is not None and self.shift is not None:
            shift, curved = self.shown.of(self.shift), self.shown.of(self.curved)
            yield (
                f"second derivatives move the mean by {shift:.3g} and add at most {curved:.3g} to the worst "
                f"case ({100.0 * self.curved / half:.2g} % of the linear one)"
            )

    def _chance(self) -> Iterator[str]:
        """How far Monte Carlo is from the linear standard deviation and mean."""
        drawn, std = self.monte_carlo, self.std
        if drawn is None:
            return
        if self.disagreement is not None:
            more, off = self.disagreement
            mean_error, std_error = (x / std for x in drawn.errors)
            chance = abs(more) <= FAR * std_error and abs(off) <= FAR * mean_error
            spread = _united(drawn.std, self.shown, ".6g")
            yield (
                f"Monte Carlo: standard deviation {spread}, {100.0 * more:+.2g} % from the linear one "
                f"(± {100.0 * std_error:.1g} % by chance); mean {off:+.2g} standard deviations from the linear one "
                f"(± {mean_error:.1g})" + (", no more than chance" if chance else ", more than chance")
            )
        for reason, count in drawn.reasons[:3]:
            yield f"{count:,} of {drawn.draws:,} draws have no value: {reason}"

    def rows(self) -> list[tuple[str, ...]]:
        """A row of texts for each dimension, under `HEAD`."""
        return [
            (
                x.dimension.label,
                _united(x.dimension.nominal, self._of(x), ".6g") if x.dimension.kind == "parameter" else "",
                x.dimension.shown_tolerance(self._of(x)),
                x.dimension.law,
                f"{self.shown.of(x.derivative) / self._of(x).of(1.0):.5g}"
                + ("" if x.direction is None else f" at {round(np.degrees(x.direction))}°"),
                f"{self.shown.of(x.half):.4g}",
                f"{x.percent:.1f}",
            )
            for x in self.contributions.values()
        ]

    def _of(self, x: Contribution) -> Shown:
        return self.parameters.get(x.dimension.label, PLAIN)

    def methods(self) -> list[tuple[str, ...]]:
        """A row of texts for each method, under `METHODS`."""
        worst = self.worst_case
        which = f"all {worst.vertices:,}" if worst.complete else f"{worst.vertices:,} of the"
        rows = [
            ("worst case, linear", *worst.linear),
            (f"worst case, {which} vertices", worst.low, worst.high),
            ("root sum of squares", self.middle - self.rss, self.middle + self.rss),
        ]
        if self.monte_carlo is not None and len(self.monte_carlo.samples):
            drawn = self.monte_carlo
            most = drawn.percentiles[PERCENTILES[0]], drawn.percentiles[PERCENTILES[-1]]
            rows.append((f"Monte Carlo, 99.73 % of {drawn.draws:,}", *most))
            rows.append(("Monte Carlo, all", drawn.low, drawn.high))
        ends = [(name, self.shown.of(low), self.shown.of(high)) for name, low, high in rows]
        return [(name, f"{low:.8g}", f"{high:.8g}", f"{0.5 * (high - low):.4g}") for name, low, high in ends]

    @property
    def title(self) -> str:
        """Name, expression and nominal value."""
        name = self.name if self.name == self.expression else f"{self.name} = {self.expression}"
        return f"{on_one_line(name)}: {_united(self.nominal, self.shown, '.8g')}"

    def report(self) -> str:
        """A text: the contributions, the methods beside each other, and notes."""
        lines = [self.title, "", *aligned((HEAD, *self.rows())), "", *aligned((METHODS, *self.methods()))]
        return "\n".join([*lines, *(["", *self.notes] if self.notes else [])])

    def plain(self, samples: bool = False) -> dict[str, Any]:
        """All numbers as JSON has them; with `samples`, those of Monte Carlo too."""
        drawn, worst = self.monte_carlo, self.worst_case
        return {
            "output": self.name,
            "expression": self.expression,
            "nominal": self.nominal,
            "middle": self.middle,
            "worst_case": {
                "low": worst.low,
                "high": worst.high,
                "linear": list(worst.linear),
                "vertices": worst.vertices,
                "complete": worst.complete,
                "at_low": dict(worst.at_low),
                "at_high": dict(worst.at_high),
            },
            "rss": self.rss,
            "std": self.std,
            "shift": self.shift,
            "curved": self.curved,
            "monte_carlo": None if drawn is None or not len(drawn.samples) else _plain_draws(drawn, samples),
            "contributions": [_plain_contribution(x) for x in self.contributions.values()],
            "notes": self.notes,
        }


def _united(number: float, shown: Shown, digits: str) -> str:
    """A number with its unit, if it is shown in one that is not SI's."""
    return f"{shown.of(number):{digits}}" + ("" if shown.target is None else f" {shown.text}")


def _beyond(percent: float) -> str:
    return f"{percent:.2g} % beyond" if percent >= 0.0 else f"{-percent:.2g} % within"


def _plain_contribution(x: Contribution) -> dict[str, Any]:
    d = x.dimension
    return {
        "dimension": d.name,
        "kind": d.kind,
        "nominal": d.nominal,
        "lower": d.lower,
        "upper": d.upper,
        "distribution": d.law,
        "derivative": x.derivative,
        "direction": x.direction,
        "low": x.low,
        "high": x.high,
        "contribution": x.half,
        "std": x.deviation,
        "percent": x.percent,
    }


def _plain_draws(drawn: MonteCarlo, samples: bool) -> dict[str, Any]:
    numbers = {
        "draws": drawn.draws,
        "seed": drawn.seed,
        "failed": drawn.failed,
        "mean": drawn.mean,
        "std": drawn.std,
        "min": drawn.low,
        "max": drawn.high,
        "percentiles": {f"{p:g}": x for p, x in drawn.percentiles.items()},
    }
    return {**numbers, "samples": drawn.samples.tolist()} if samples else numbers
