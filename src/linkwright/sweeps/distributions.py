"""Distributions that parameters of a study are drawn from: plain data, and the value at a probability.

`lw.normal(1.0, 0.1)` draws nothing; a plan asks it for its values at probabilities that a design has spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwright.base.arguments import check_names
from linkwright.base.arrays import Floats
from linkwright.errors import ModelError

_LEAST = 2.0**-53  # probabilities of 0 and 1 are as close to these as doubles tell


@dataclass(frozen=True)
class Distribution:
    """How a parameter varies; made by `lw.normal`, `lw.uniform` and their sisters.

    `at` gives the values under which given parts of all values lie.
    """

    name: str
    numbers: tuple[Any, ...]
    at: Callable[[Floats], Floats] = field(repr=False, compare=False)

    def plain(self) -> list[Any]:
        """Name and numbers, as JSON has them."""
        return [self.name, *(list(x) if isinstance(x, tuple) else x for x in self.numbers)]

    def __str__(self) -> str:
        shown = [x for x in self.numbers if x is not None]
        flat = [y for x in shown for y in (x if isinstance(x, tuple) else (x,))]
        return f"{self.name}({', '.join(f'{x:g}' for x in flat)})"

    def unless(self, *faults: tuple[bool, str]) -> Distribution:
        """Itself, or an error if one of these faults of its numbers is there."""
        for wrong, why in faults:
            if wrong:
                raise ModelError(f"{self}: {why}; give {self.name}({DISTRIBUTIONS[self.name][1]})")
        return self


def normal(mean: float, deviation: float, low: float | None = None, high: float | None = None) -> Distribution:
    """Normally distributed values, for a parameter of `lw.sweep`.

    `mean` and `deviation` (> 0, the standard deviation) are in the parameter's unit. Outside `low` and `high`, None by
    default, the distribution is cut off. Raises ModelError for numbers that make no distribution.

    >>> parameters = {"mass": lw.normal(1.0, 0.1, low=0.5)}  # for lw.sweep(model, parameters, ...)
    >>> print(parameters["mass"])
    normal(1, 0.1, 0.5)
    """
    mean, deviation = _numbers("normal", mean, deviation)
    low, high = (None if x is None else _numbers("normal", x)[0] for x in (low, high))
    least, most = (-math.inf if low is None else low), (math.inf if high is None else high)

    def at(probability: Floats) -> Floats:
        from scipy.special import ndtr, ndtri  # type: ignore[import-untyped]  # weight: scipy

        first, last = (float(ndtr((x - mean) / deviation)) for x in (least, most))
        if last - first < 1e-12:
            text = f"{law}: its limits cut off all but a part of 1e-12 of it; move the mean between them"
            raise ModelError(text)
        part = np.clip(first + (last - first) * probability, _LEAST, 1.0 - _LEAST)
        return np.clip(mean + deviation * np.asarray(ndtri(part)), least, most)

    law = Distribution("normal", (mean, deviation, low, high), at)
    law.unless((not deviation > 0.0, "the deviation is not positive"), (not least < most, "low is not below high"))
    at(np.array([0.5]))
    return law


def lognormal(median: float, sigma: float) -> Distribution:
    """Positive values whose logarithms are normally distributed, for a parameter of `lw.sweep`.

    `median` (> 0) is in the parameter's unit; `sigma` (> 0) is the standard deviation of the logarithm. Raises
    ModelError for numbers that make no distribution.

    >>> parameters = {"stiffness": lw.lognormal(1e4, 0.2)}  # for lw.sweep(model, parameters, ...)
    >>> print(parameters["stiffness"])
    lognormal(10000, 0.2)
    """
    median, sigma = _numbers("lognormal", median, sigma)

    def at(probability: Floats) -> Floats:
        from scipy.special import ndtri  # weight: scipy

        return np.asarray(median * np.exp(sigma * ndtri(np.clip(probability, _LEAST, 1.0 - _LEAST))))

    faults = (not median > 0.0, "the median is not positive"), (not sigma > 0.0, "sigma is not positive")
    return Distribution("lognormal", (median, sigma), at).unless(*faults)


def uniform(low: float, high: float) -> Distribution:
    """Values between `low` and `high`, all equally likely, for a parameter of `lw.sweep`.

    Both are in the parameter's unit. Raises ModelError unless low < high.

    >>> parameters = {"angle": lw.uniform(0.0, 0.5)}  # for lw.sweep(model, parameters, ...)
    >>> print(parameters["angle"])
    uniform(0, 0.5)
    """
    low, high = _numbers("uniform", low, high)
    law = Distribution("uniform", (low, high), lambda probability: low + (high - low) * probability)
    return law.unless((not low < high, "low is not below high"))


def loguniform(low: float, high: float) -> Distribution:
    """Values between `low` and `high`, every order of magnitude equally likely, for a parameter of `lw.sweep`.

    Both are in the parameter's unit. Raises ModelError unless 0 < low < high.

    >>> parameters = {"damping": lw.loguniform(1.0, 1e3)}  # for lw.sweep(model, parameters, ...)
    >>> print(parameters["damping"])
    loguniform(1, 1000)
    """
    low, high = _numbers("loguniform", low, high)
    law = Distribution("loguniform", (low, high), lambda probability: np.asarray(low * (high / low) ** probability))
    return law.unless((not 0.0 < low < high, "low is not between zero and high"))


def triangular(low: float, mode: float, high: float) -> Distribution:
    """Values between `low` and `high`, `mode` the likeliest, for a parameter of `lw.sweep`.

    All are in the parameter's unit. Raises ModelError unless low ≤ mode ≤ high and low < high.

    >>> parameters = {"length": lw.triangular(0.9, 1.0, 1.2)}  # for lw.sweep(model, parameters, ...)
    >>> print(parameters["length"])
    triangular(0.9, 1, 1.2)
    """
    low, mode, high = _numbers("triangular", low, mode, high)

    def at(probability: Floats) -> Floats:
        wide, up, down = high - low, mode - low, high - mode
        rising = low + np.sqrt(probability * wide * up)
        falling = high - np.sqrt((1.0 - probability) * wide * down)
        return np.where(probability * wide < up, rising, falling)

    fault = (not (low <= mode <= high and low < high), "they are not in ascending order")
    return Distribution("triangular", (low, mode, high), at).unless(fault)


def choice(values: Sequence[float]) -> Distribution:
    """One of some values, each equally likely, for a parameter of `lw.sweep`.

    `values` (n,) are in the parameter's unit. A plain list is a grid instead: every value in turn. Raises ModelError
    without values.

    >>> parameters = {"teeth": lw.choice([20, 24, 30])}  # for lw.sweep(model, parameters, ...)
    >>> print(parameters["teeth"])
    choice(20, 24, 30)
    """
    choices = _numbers("choice", *values)
    if not choices:
        raise ModelError("choice() has nothing to choose from; give some values")

    def at(probability: Floats) -> Floats:
        n = len(choices)
        return np.asarray(np.asarray(choices)[np.minimum((probability * n).astype(int), n - 1)])

    return Distribution("choice", (choices,), at)


DISTRIBUTIONS: dict[str, tuple[Callable[..., Distribution], str]] = {
    "normal": (normal, "mean, deviation[, low, high]"),
    "lognormal": (lognormal, "median, sigma"),
    "uniform": (uniform, "low, high"),
    "loguniform": (loguniform, "low, high"),
    "triangular": (triangular, "low, mode, high"),
    "choice": (lambda *values: choice(values), "value, value, ..."),
}


def distribution(name: str, numbers: Sequence[float]) -> Distribution:
    """A distribution by its name and numbers in their order."""
    check_names("distribution", [name], DISTRIBUTIONS)
    make, takes = DISTRIBUTIONS[name]
    try:
        return make(*numbers)
    except TypeError:
        raise ModelError(f"{name} takes {name}({takes}), not {len(numbers)} numbers") from None


def _numbers(name: str, *values: Any) -> tuple[float, ...]:
    numbers = []
    for x in values:
        try:
            number = float(x)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise ModelError(f"{name}: {x!r} is no finite number; give {name}({DISTRIBUTIONS[name][1]})")
        numbers.append(number)
    return tuple(numbers)
