"""What `lw.tolerances` is asked: tolerances, clearances and distributions, as numbers that can be computed with.

Tolerances are symmetric or (lower, upper), numbers or texts with units or per cent; a `Dimension` is one of them with
its standard deviation and the laws that it is drawn from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from linkwright.base.arguments import check_names, finite_number, shown, whole_number
from linkwright.base.arrays import Floats
from linkwright.design.clearances import Play
from linkwright.errors import ModelError
from linkwright.model.units import ANGLE, LENGTH, NUMBER, SI, Shown, Units, unit
from linkwright.model.units import Dimension as PhysicalDimension
from linkwright.sweeps.distributions import Distribution, choice, normal, triangular, uniform
from linkwright.sweeps.plan import Execution

if TYPE_CHECKING:
    from linkwright.formats.mks.values import Given

SPREADS = ("disc", "rim")
SAMPLINGS = ("random", "latin", "sobol")
DERIVATIVES = ("exact", "differences")
LAWS = ("normal", "uniform", "triangular")
MOST_VERTICES = 2**20
_FORMS = "0.05, '0.05', '1 %' or (lower, upper)"


@dataclass(frozen=True)
class Clearance:
    """The clearance of a joint, for `lw.tolerances(..., clearances={"pin": lw.Clearance(2e-5)})`.

    - `radius`: how far the joint's frames may be apart across its axis, in any direction (m); 0 by default.
    - `tilt`: how far its axes may be inclined to each other, in any direction (rad); 0 by default.
    - `spread`: "disc" (the default), where Monte Carlo draws all places of the disc alike, or "rim", where the pin
      always touches.

    A number alone is a radius. Both may be texts with units, as in "0.5 deg"; a text without one, as in "0.02", is in
    the model's unit. Raises ModelError and NameNotFound for what cannot be used.

    >>> lw.Clearance(2e-5, spread="rim").radius, lw.Clearance.of("pin", 3e-5)
    (2e-05, Clearance(radius=3e-05, tilt=0.0, spread='disc'))
    """

    radius: float | str = 0.0
    tilt: float | str = 0.0
    spread: str = "disc"

    def __post_init__(self) -> None:
        check_names("spread of a clearance", [self.spread], SPREADS)
        for name, dimension in (("radius", LENGTH), ("tilt", ANGLE)):
            written = getattr(self, name)
            size = amount(written, f"the {name} of a clearance", read=partial(_number, dimension=dimension))
            if size < 0.0:
                raise ModelError(f"the {name} of a clearance is {size:g}; give a number that is not negative")
            if not size or not isinstance(written, str) or _written(written, name, dimension).dimension is not None:
                object.__setattr__(self, name, size)  # else it is in the unit of a model that is not known yet
        if not self.radius and not self.tilt:
            raise ModelError("a clearance has a radius or a tilt; give one of them, as in lw.Clearance(2e-5)")

    @classmethod
    def of(cls, joint: str, clearance: Any, units: Units = SI) -> Clearance:
        """The clearance of `joint`, by name, of what `clearance` gives for it: itself, or a radius (m).

        `units` are those of the model: of sizes that are texts without a unit.
        """
        lengths = partial(_number, dimension=LENGTH, model=units)
        angles = partial(_number, dimension=ANGLE, model=units)
        what = f"the clearance of joint {joint!r}"
        if isinstance(clearance, cls):
            sizes = amount(clearance.radius, what, read=lengths), amount(clearance.tilt, what, read=angles)
            return cls(*sizes, clearance.spread)
        radius = amount(clearance, what, read=lengths)
        if radius <= 0.0:
            raise ModelError(f"{what} is {radius:g}; give a radius greater than zero", element=joint)
        return cls(radius)


@dataclass(frozen=True)
class ToleranceSettings:
    """How `lw.tolerances` computes.

    Main arguments:

    - `draws`: of Monte Carlo, 10,000 by default; 0 for none.
    - `seed`: of the draws, a whole number, 0 by default; the same seed gives the same draws.
    - `vertices`: how many vertices of the box of tolerances are computed at most, 256 by default. Where there are more,
      the two that are worst by the derivatives are computed for each output.
    - `order`: 1 (the default), or 2 for second derivatives too: the shift of the mean, and the part of the worst case
      that is not linear.
    - `derivatives`: "exact" (the default), or "differences" between both ends of each tolerance, for outputs that have
      no derivatives: forces, inverse dynamic analysis, `argmax`.

    Other arguments:

    - `sampling`: "random" (the default), "latin" or "sobol", as `lw.Sampling` has them.
    - `execution`: an `lw.Execution` of the draws: processes, limits of time, progress.

    Raises ModelError and NameNotFound for what cannot be used.

    >>> lw.ToleranceSettings(draws=100_000, seed=1).vertices
    256
    """

    draws: int = 10_000
    seed: int = 0
    vertices: int = 256
    order: int = 1
    derivatives: str = "exact"
    sampling: str = "random"
    execution: Execution = field(default_factory=Execution)

    def __post_init__(self) -> None:
        for name, most in (("draws", None), ("seed", None), ("vertices", MOST_VERTICES)):
            whole_number(name, getattr(self, name), 0, most)
        if self.order not in (1, 2):
            raise ModelError(f"order is 1 or 2, not {self.order!r}")
        check_names("sampling", [self.sampling], SAMPLINGS)
        check_names("kind of derivatives", [self.derivatives], DERIVATIVES)
        if self.order == 2 and self.derivatives == "differences":
            raise ModelError("order=2 takes exact derivatives; leave order or derivatives out")


@dataclass(frozen=True, eq=False)
class Dimension:
    """A dimension with its tolerance: a parameter, or the clearance or tilt of a joint.

    `along` are the parameters of the model that it changes, from `lower` to `upper` about `nominal`; a clearance has
    one or two, and is a vector within `upper`. `deviation` is the standard deviation along each, and `draws` has the
    laws by the parameters that are drawn. `directions` (2, m) of a clearance are those of f and g.
    """

    name: str
    kind: Literal["parameter", "clearance", "tilt"]
    along: tuple[str, ...]
    nominal: float
    lower: float
    upper: float
    deviation: float
    law: str
    draws: Mapping[str, Distribution | list[float]]
    directions: Floats | None = None

    @property
    def middle(self) -> float:
        """How far the middle of the tolerance is from the nominal dimension."""
        return 0.5 * (self.lower + self.upper)

    @property
    def half(self) -> float:
        """Half the width of the tolerance."""
        return 0.5 * (self.upper - self.lower)

    @property
    def label(self) -> str:
        """What it is called in tables and files."""
        return self.name if self.kind == "parameter" else f"{self.kind} of {self.name}"

    def shown_tolerance(self, shown: Shown) -> str:
        """The tolerance in a table, in the unit in which the dimension is shown."""
        lower, upper = shown.of(self.lower), shown.of(self.upper)
        if self.kind != "parameter":
            return f"{upper:.6g}" + ("" if shown.target is None else f" {shown.text}")
        if self.lower == -self.upper:
            return f"±{upper:.6g}"
        return f"{lower:+.6g} {upper:+.6g}"


def amount(
    size: Any, what: str, nominal: float | None = None, read: Callable[[str, str], float] | None = None
) -> float:
    """A number, or a text of one with a unit, or in per cent of a nominal value; `what` names it in messages.

    `read` gives the number (SI) of a text and its name, and refuses units that do not fit; without it, any unit does.
    """
    if not isinstance(size, str):
        return finite_number(what, size)
    text = size.strip()
    for sign in ("±", "+/-", "+-"):
        text = text.removeprefix(sign)
    if text.endswith("%"):
        if nominal is None or nominal == 0.0:
            why = "is no dimension with a value" if nominal is None else "is of a dimension that is zero"
            raise ModelError(f"{what} is {size!r}, which {why}; give a number, or a text with a unit")
        return 0.01 * abs(nominal) * _number(text[:-1], what, NUMBER)
    return (read or _number)(text, what)


def _number(text: str, what: str, dimension: PhysicalDimension | None = None, model: Units = SI) -> float:
    """The number of a text in SI; a unit must be of the dimension, and without one the number is in the model's."""
    return _finite(_written(text, what, dimension, model), text, what)


def _written(text: str, what: str, dimension: PhysicalDimension | None, model: Units = SI) -> Given:
    from linkwright.formats.mks.values import constant  # weight: lark

    return constant(text, what, dimension, model)


def _finite(written: Given, text: str, what: str) -> float:
    if written.number is None or not math.isfinite(written.number):
        raise ModelError(f"{what} is {text!r}, which is no finite number; give {_FORMS}")
    return float(written.number)


def number_of_parameter(text: str, what: str, name: str, units: Units) -> float:
    """The number (SI) of a text for a parameter: with a unit where the parameter has one, else in the model's units."""
    written, its_unit = _written(text, what, None), dict(units.parameters).get(name)
    number = _finite(written, text, what)
    if its_unit is not None and written.dimension is None and number:
        raise ModelError(f"{what} is {text!r}, and {name} is in {its_unit}: write {text} {its_unit}", element=name)
    if its_unit is not None:
        return _number(text, what, unit(its_unit).dimension)
    if written.dimension is not None and not units.of(written.dimension).is_si:
        advice = f"write the number alone, as it is written there, or give {name} a unit"
        raise ModelError(
            f"{what} is {text!r}, and {name} is a number without a unit in the model; {advice}", element=name
        )
    return number


def limits(name: str, tolerance: Any, nominal: float, units: Units) -> tuple[float, float]:
    """The lower and upper deviation that a tolerance allows, in a model of these units."""
    read = partial(number_of_parameter, name=name, units=units)
    what = f"the tolerance of {name!r}"
    if isinstance(tolerance, str) and ":" in tolerance:
        tolerance = tuple(tolerance.split(":"))
    if isinstance(tolerance, tuple | list):
        if len(tolerance) != 2:
            raise ModelError(f"{what} is {shown(tolerance)}; give {_FORMS}", element=name)
        lower, upper = (amount(x, what, nominal, read) for x in tolerance)
        if not lower < upper:
            text = f"{what} goes from {lower:g} to {upper:g}; the first must be less than the second"
            raise ModelError(f"{text}, as in (-0.02, 0.05)", element=name)
        return lower, upper
    size = amount(tolerance, what, nominal, read)
    if size < 0.0:
        text = f"{what} is {size:g}; give {-size:g} for ±{-size:g}, or (lower, upper) as in ({size:g}, 0)"
        raise ModelError(text, element=name)
    if size == 0.0:
        raise ModelError(f"{what} is zero; leave {name!r} out, or give {_FORMS}", element=name)
    return -size, size


def parameter_dimension(name: str, tolerance: Any, nominal: float, law: str, units: Units) -> Dimension:
    """A parameter of a model of these units with its tolerance and the word of its distribution."""
    lower, upper = limits(name, tolerance, nominal, units)
    middle, half = nominal + 0.5 * (lower + upper), 0.5 * (upper - lower)
    word, k = _law(name, law)
    if word == "normal":
        drawn, deviation, word = normal(middle, half / k), half / k, f"normal({k:g})"
    elif word == "uniform":
        drawn, deviation = uniform(middle - half, middle + half), half / math.sqrt(3.0)
    else:
        drawn, deviation = triangular(middle - half, middle, middle + half), half / math.sqrt(6.0)
    return Dimension(name, "parameter", (name,), nominal, lower, upper, deviation, word, {name: drawn})


def _law(name: str, law: Any) -> tuple[str, float]:
    """The word of a distribution, and of a normal one at how many standard deviations the limits are."""
    what = f"the distribution of {name!r}"
    if not isinstance(law, str):
        raise ModelError(f"{what} is {shown(law)}; give 'normal', 'normal(2)', 'uniform' or 'triangular'")
    word, _, after = law.strip().partition("(")
    word = word.strip().lower()
    check_names("distribution", [word], LAWS)
    if not after.strip():
        return word, 3.0
    k = amount(after.strip().removesuffix(")"), what)
    if word != "normal" or k <= 0.0:
        text = "a number greater than zero belongs to normal alone: the limits are at so many standard deviations"
        raise ModelError(f"{what} is {law!r}; {text}", element=name)
    return word, k


def laws_of(distributions: str | Mapping[str, str], names: Any) -> dict[str, str]:
    """The word of a distribution for every parameter; those that are not named are normal, with limits at 3σ."""
    if isinstance(distributions, Mapping):
        check_names("dimension with a tolerance", distributions, list(names))
        return {name: distributions.get(name, "normal") for name in names}
    return dict.fromkeys(names, distributions)


def clearance_dimension(play: Play, size: float, spread: str) -> Dimension:
    """The clearance or tilt of a joint: a vector of at most this size, or of this size at the rim."""
    draws: dict[str, Distribution | list[float]]
    rim = spread == "rim"
    if len(play.along) == 2:  # the radius under which a part of a disc lies is the square root of this part
        draws = {play.size: [size] if rim else triangular(0.0, size, size), play.angle: uniform(0.0, 2.0 * np.pi)}
        deviation = size / math.sqrt(2.0) if rim else 0.5 * size
    else:
        draws = {play.along[0]: choice([-size, size]) if rim else uniform(-size, size)}
        deviation = size if rim else size / math.sqrt(3.0)
    kind: Literal["tilt", "clearance"] = "tilt" if play.tilts else "clearance"
    limits_ = (-size, size)
    return Dimension(play.joint, kind, play.along, 0.0, *limits_, deviation, spread, draws, play.directions)
