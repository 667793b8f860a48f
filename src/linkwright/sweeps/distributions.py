"""Distributions that parameters of a study are drawn from: plain data, and the value at a probability.

`lw.normal(1.0, 0.1)` draws nothing; a plan asks it for its values at probabilities that a design has spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from linkwright.base.types import Floats
from linkwright.errors import ModelError, NameNotFound

_LEAST = 2.0**-53  # probabilities of 0 and 1 are as close to these as doubles tell


class Distribution:
    """How a parameter varies; made by `lw.normal`, `lw.uniform` and their sisters."""

    def at(self, probability: Floats) -> Floats:
        """The values under which these parts of all values lie."""
        raise NotImplementedError

    def plain(self) -> list[Any]:
        """Name and numbers, as JSON has them."""
        return [type(self).__name__.lower(), *(getattr(self, f.name) for f in fields(self))]  # type: ignore[arg-type]

    def __str__(self) -> str:
        name, *numbers = self.plain()
        shown = [x for x in numbers if x is not None]
        flat = [y for x in shown for y in (x if isinstance(x, tuple) else (x,))]
        return f"{name}({', '.join(f'{x:g}' for x in flat)})"


@dataclass(frozen=True)
class Normal(Distribution):
    """The bell, cut off outside `low` and `high` where they are given."""

    mean: float
    deviation: float
    low: float | None = None
    high: float | None = None

    def at(self, probability: Floats) -> Floats:
        from scipy.special import ndtr, ndtri  # type: ignore[import-untyped]  # SciPy has no types

        first = 0.0 if self.low is None else float(ndtr((self.low - self.mean) / self.deviation))
        last = 1.0 if self.high is None else float(ndtr((self.high - self.mean) / self.deviation))
        if last - first < 1e-12:
            text = f"{self}: its limits cut off all but a part of 1e-12 of it; move the mean between them"
            raise ModelError(text)
        part = np.clip(first + (last - first) * probability, _LEAST, 1.0 - _LEAST)
        found = self.mean + self.deviation * np.asarray(ndtri(part))
        low = -math.inf if self.low is None else self.low
        return np.clip(found, low, math.inf if self.high is None else self.high)


@dataclass(frozen=True)
class Lognormal(Distribution):
    """Its logarithm is normal."""

    median: float
    sigma: float

    def at(self, probability: Floats) -> Floats:
        from scipy.special import ndtri

        return np.asarray(self.median * np.exp(self.sigma * ndtri(np.clip(probability, _LEAST, 1.0 - _LEAST))))


@dataclass(frozen=True)
class Uniform(Distribution):
    """Any value between two, alike."""

    low: float
    high: float

    def at(self, probability: Floats) -> Floats:
        return self.low + (self.high - self.low) * probability


@dataclass(frozen=True)
class Loguniform(Distribution):
    """Any value between two positive ones, its logarithm alike."""

    low: float
    high: float

    def at(self, probability: Floats) -> Floats:
        return np.asarray(self.low * (self.high / self.low) ** probability)


@dataclass(frozen=True)
class Triangular(Distribution):
    """Between two values, one in between the likeliest."""

    low: float
    mode: float
    high: float

    def at(self, probability: Floats) -> Floats:
        wide, up, down = self.high - self.low, self.mode - self.low, self.high - self.mode
        rising = self.low + np.sqrt(probability * wide * up)
        falling = self.high - np.sqrt((1.0 - probability) * wide * down)
        return np.where(probability * wide < up, rising, falling)


@dataclass(frozen=True)
class Choice(Distribution):
    """One of some values, each as often."""

    values: tuple[float, ...]

    def at(self, probability: Floats) -> Floats:
        n = len(self.values)
        found: Floats = np.asarray(self.values)[np.minimum((probability * n).astype(int), n - 1)]
        return found


def normal(mean: float, deviation: float, low: float | None = None, high: float | None = None) -> Distribution:
    """Values around a mean with a standard deviation; cut off outside `low` and `high` where they are given."""
    made = Normal(*_numbers("normal", mean, deviation), *(_limit("normal", x) for x in (low, high)))
    _refuse(not made.deviation > 0.0, made, "the deviation is not positive")
    _refuse(made.low is not None and made.high is not None and made.low >= made.high, made, "low is not below high")
    made.at(np.array([0.5]))
    return made


def lognormal(median: float, sigma: float) -> Distribution:
    """Positive values around a median, whose logarithms have the standard deviation sigma."""
    made = Lognormal(*_numbers("lognormal", median, sigma))
    _refuse(not made.median > 0.0, made, "the median is not positive")
    _refuse(not made.sigma > 0.0, made, "sigma is not positive")
    return made


def uniform(low: float, high: float) -> Distribution:
    """Any value between two, each as likely."""
    made = Uniform(*_numbers("uniform", low, high))
    _refuse(not made.low < made.high, made, "low is not below high")
    return made


def loguniform(low: float, high: float) -> Distribution:
    """Any value between two positive ones, every order of magnitude as likely."""
    made = Loguniform(*_numbers("loguniform", low, high))
    _refuse(not 0.0 < made.low < made.high, made, "low is not between zero and high")
    return made


def triangular(low: float, mode: float, high: float) -> Distribution:
    """Values between two, one in between the likeliest."""
    made = Triangular(*_numbers("triangular", low, mode, high))
    _refuse(not (made.low <= made.mode <= made.high and made.low < made.high), made, "they are not in ascending order")
    return made


def choice(values: Sequence[float]) -> Distribution:
    """One of some values, each as likely; a plain list in a study is a grid, with every value in turn."""
    found = _numbers("choice", *values)
    if not found:
        raise ModelError("choice() has nothing to choose from; give some values")
    return Choice(found)


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
    if name not in DISTRIBUTIONS:
        raise NameNotFound("distribution", name, list(DISTRIBUTIONS))
    make, takes = DISTRIBUTIONS[name]
    try:
        return make(*numbers)
    except TypeError:
        raise ModelError(f"{name} takes {name}({takes}), not {len(numbers)} numbers") from None


def _refuse(wrong: bool, made: Distribution, why: str) -> None:
    if wrong:
        name = type(made).__name__.lower()
        raise ModelError(f"{made}: {why}; give {name}({DISTRIBUTIONS[name][1]})")


def _numbers(name: str, *given: Any) -> tuple[float, ...]:
    found = []
    for x in given:
        try:
            number = float(x)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise ModelError(f"{name}: {x!r} is no finite number; give {name}({DISTRIBUTIONS[name][1]})")
        found.append(number)
    return tuple(found)


def _limit(name: str, given: Any) -> float | None:
    return None if given is None else _numbers(name, given)[0]
