"""Units: their names, their exact factors to SI, the dimensions that they have, and those that a model speaks.

Inside the package every number is SI. A unit turns a number into SI and back with one rounding, exactly where the
factor is rational: `40 mm` is the number 0.04, bit for bit. The table is our own, not pint's: importing pint
takes 0.3 s and making its registry 0.1 s, and its factors are floats, with which 0.3 mm is not the number 0.0003.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from linkwright.errors import ModelError

Exponent = int | Fraction
_LARGEST = 9  # exponent of a unit


class Dimension(NamedTuple):
    """The exponents of length, mass, time and angle."""

    length: Exponent = 0
    mass: Exponent = 0
    time: Exponent = 0
    angle: Exponent = 0

    def times(self, other: Dimension, power: Exponent = 1) -> Dimension:
        """The dimension of a product, the other to a power."""
        return Dimension(*(_plain(a + power * b) for a, b in zip(self, other, strict=True)))

    def like(self, other: Dimension, *, any_time: bool = False) -> bool:
        """Whether it is the other, but for angles: radians are plain numbers, as in speed = radius · rate."""
        return self[:2] == other[:2] and (any_time or self.time == other.time)


def _plain(x: Exponent) -> Exponent:
    return x.numerator if isinstance(x, Fraction) and x.denominator == 1 else x


NUMBER, LENGTH, MASS, TIME, ANGLE = (Dimension(*(int(k == n) for k in range(4))) for n in (4, 0, 1, 2, 3))
INERTIA = MASS.times(LENGTH, 2)
SPEED, RATE, FREQUENCY = LENGTH.times(TIME, -1), ANGLE.times(TIME, -1), NUMBER.times(TIME, -1)
ACCELERATION, TURN_ACCELERATION = SPEED.times(TIME, -1), RATE.times(TIME, -1)
FORCE = MASS.times(ACCELERATION)
TORQUE, STIFFNESS, DAMPING = FORCE.times(LENGTH), FORCE.times(LENGTH, -1), FORCE.times(SPEED, -1)
#: N·m·s per radian: as for torque, stiffnesses per radian have no angle in them.
TURN_DAMPING = TORQUE.times(TIME)
PITCH = LENGTH.times(ANGLE, -1)
POWER = TORQUE.times(TIME, -1)

_WORDS = {
    NUMBER: "a plain number",
    LENGTH: "a length",
    MASS: "a mass",
    TIME: "a time",
    ANGLE: "an angle",
    INERTIA: "an inertia",
    SPEED: "a velocity",
    RATE: "an angular velocity",
    FREQUENCY: "a frequency",
    ACCELERATION: "an acceleration",
    TURN_ACCELERATION: "an angular acceleration",
    FORCE: "a force",
    TORQUE: "a torque",
    STIFFNESS: "a stiffness",
    DAMPING: "a damping",
    TURN_DAMPING: "a damping of a rotation",
    PITCH: "a pitch",
    POWER: "a power",
}


def in_words(dimension: Dimension) -> str:
    """A dimension in a sentence: a length, or its SI unit."""
    return _WORDS.get(dimension) or f"a number of {Units().of(dimension).text}"


@dataclass(frozen=True)
class Unit:
    """A unit: its text, its dimension and its factor to SI, ratio · π^pi."""

    text: str
    dimension: Dimension
    ratio: Fraction = Fraction(1)
    pi: int = 0

    @property
    def is_si(self) -> bool:
        """Whether a number of it is the number in SI."""
        return self.ratio == 1 and self.pi == 0

    @property
    def factor(self) -> float:
        """What one of it is in SI."""
        return float(self.ratio) if self.pi == 0 else self.ratio.numerator * math.pi**self.pi / self.ratio.denominator

    def times(self, other: Unit, power: int = 1) -> Unit:
        """The product with another unit to a power, without a text."""
        ratio, pi = self.ratio * other.ratio**power, self.pi + power * other.pi
        return Unit("", self.dimension.times(other.dimension, power), ratio, pi)

    def si(self, x: float) -> float:
        """A number of this unit in SI, rounded once. Raises OverflowError where it is too large."""
        if self.is_si or x == 0.0 or not math.isfinite(x):
            return x
        exact = self.pi == 0
        size = float(Fraction(Decimal(repr(float(abs(x))))) * self.ratio) if exact else abs(x) * self.factor
        return math.copysign(size, x)

    def from_si(self, values: Any) -> Any:
        """Numbers of any shape in SI as numbers of this unit; themselves where it is the one of SI."""
        return self.converted_from(_ONE, values)

    def converted_from(self, other: Unit, values: Any) -> Any:
        """Numbers of another unit of its dimension as numbers of this one; themselves where both are one size.

        They are multiplied by the ratio of both units, which is rounded once: by 1000, or divided by 1000.
        """
        ratio, pi = other.ratio / self.ratio, other.pi - self.pi
        if ratio == 1 and pi == 0:
            return values
        if pi:
            return values * (ratio.numerator * math.pi**pi / ratio.denominator)
        return values / float(1 / ratio) if ratio.numerator == 1 else values * float(ratio)

    def decimal(self, x: float) -> str | None:
        """The shortest decimal number of this unit that is x in SI, to the last bit; None where there is none."""
        if x == 0.0 or not math.isfinite(x):
            return repr(x).removesuffix(".0")
        near = float(Fraction(Decimal(repr(x))) / self.ratio) if self.pi == 0 else x / self.factor
        candidates = [float(f"{near:.{digits}g}") for digits in range(1, 18)]
        candidates += [math.nextafter(near, math.inf), math.nextafter(near, -math.inf)]
        for candidate in candidates:
            if math.isfinite(candidate) and self.si(candidate) == x:
                return repr(candidate).removesuffix(".0")
        return None


def _table() -> dict[str, Unit]:
    units: dict[str, Unit] = {}

    def add(names: str, dimension: Dimension, ratio: str | Fraction = "1", pi: int = 0) -> None:
        for name in names.split():
            units[name] = Unit(name, dimension, Fraction(ratio), pi)

    for names, ratio in (("m", "1"), ("km", "1e3"), ("cm", "1e-2"), ("mm", "1e-3"), ("um µm μm", "1e-6")):
        add(names, LENGTH, ratio)
    add("inch in", LENGTH, "0.0254")
    add("ft", LENGTH, "0.3048")
    for names, ratio in (("kg", "1"), ("g", "1e-3"), ("mg", "1e-6"), ("tonne", "1e3"), ("lb", "0.45359237")):
        add(names, MASS, ratio)
    for names, ratio in (("s", "1"), ("ms", "1e-3"), ("us µs μs", "1e-6"), ("min", "60"), ("h", "3600")):
        add(names, TIME, ratio)
    add("rad radian radians", ANGLE)
    add("mrad", ANGLE, "1e-3")
    add("deg degree degrees °", ANGLE, Fraction(1, 180), 1)
    add("rev", ANGLE, "2", 1)
    add("rpm", RATE, Fraction(1, 30), 1)
    add("Hz", FREQUENCY)
    add("kHz", FREQUENCY, "1e3")
    for names, ratio in (("N", "1"), ("mN", "1e-3"), ("kN", "1e3"), ("MN", "1e6"), ("lbf", "4.4482216152605")):
        add(names, FORCE, ratio)
    for names, ratio in (("Nm", "1"), ("Nmm", "1e-3"), ("kNm", "1e3"), ("J", "1"), ("mJ", "1e-3"), ("kJ", "1e3")):
        add(names, TORQUE, ratio)
    for names, ratio in (("W", "1"), ("mW", "1e-3"), ("kW", "1e3")):
        add(names, POWER, ratio)
    for names, ratio in (("Pa", "1"), ("kPa", "1e3"), ("MPa", "1e6"), ("GPa", "1e9"), ("bar", "1e5")):
        add(names, FORCE.times(LENGTH, -2), ratio)
    return units


UNITS = _table()
_ANY_CASE: dict[str, list[str]] = {}
for _name in UNITS:
    _ANY_CASE.setdefault(_name.lower(), []).append(_name)
_ONE = Unit("1", NUMBER)
_FACTOR = re.compile(r"(1|[^\W\d]\w*|°)(?:(?:\^|\*\*)(-?[0-9]{1,2}))?([*/·]|\Z)")


def unit_named(name: str) -> Unit | None:
    """The unit of this name; capitals count only where two units differ by them (mN and MN)."""
    if name in UNITS:
        return UNITS[name]
    fits = _ANY_CASE.get(name.lower(), [])
    return UNITS[fits[0]] if len(fits) == 1 else None


def close_unit(name: str) -> str:
    """'; did you mean ...?', or what units there are."""
    close = get_close_matches(name, UNITS, n=1) or get_close_matches(name.lower(), UNITS, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return "; units are made of m, cm, mm, inch, kg, g, lb, s, ms, min, N, kN, Nm, J, W, Pa, rad, deg, rev, rpm and Hz"


@lru_cache(maxsize=1024)
def unit(text: str) -> Unit:
    """The unit that a text such as `mm`, `N*s/mm` or `kg*cm^2` means. Raises ModelError for another text.

    >>> from linkwright.model.units import unit
    >>> unit("N/mm").si(2.5), unit("m/s^2").dimension.time
    (2500.0, -2)
    """
    product, at, sign = _ONE, 0, 1
    plain = "".join(text.split()).replace("²", "^2").replace("³", "^3")
    if len(text) > 100 or not text.strip():
        raise ModelError(f"{text[:100]!r} is no unit; write one such as mm, N/mm or kg*m^2")
    while at < len(plain):
        factor = _FACTOR.match(plain, at)
        if factor is None or (factor[3] and factor.end() == len(plain)):
            raise ModelError(f"{text!r} is no unit; write one such as mm, N/mm or kg*m^2")
        named = _ONE if factor[1] == "1" else unit_named(factor[1])
        if named is None:
            raise ModelError(f"there is no unit {factor[1]!r}{close_unit(factor[1])}")
        power = int(factor[2] or 1)
        if abs(power) > _LARGEST:
            raise ModelError(f"{text!r} has an exponent beyond {_LARGEST}")
        product, at = product.times(named, sign * power), factor.end()
        sign = -1 if factor[3] == "/" else 1
    return Unit(text.strip(), product.dimension, product.ratio, product.pi)


@dataclass(frozen=True)
class Units:
    """The units that a model speaks: what its bare numbers are in, and what results are shown in.

    length, mass, force, time, angle: names of units, by default those of SI. Forces are in newtons unless another unit
    is given, as in Adams: with millimetres, stiffnesses are in N/mm and torques in N*mm. parameters: the units in which
    parameters were written, by name; the others have plain numbers.

    >>> from linkwright.model.units import STIFFNESS, Units
    >>> Units(length="mm", angle="deg").of(STIFFNESS).text
    'N/mm'
    """

    length: str = "m"
    mass: str = "kg"
    force: str = "N"
    time: str = "s"
    angle: str = "rad"
    parameters: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for name, dimension in _KINDS.items():
            text = getattr(self, name)
            known = unit_named(text) if isinstance(text, str) else None
            if known is None:
                hint = close_unit(str(text))
                raise ModelError(f"the {name} unit is {text!r}, which is no unit{hint}")
            if known.dimension != dimension:
                raise ModelError(f"the {name} unit is {text!r}, which is {in_words(known.dimension)}")
            object.__setattr__(self, name, _SPELLED.get(known.text, known.text))

    def of(self, dimension: Dimension) -> Unit:
        """The unit of a dimension, of this model's: of what has a mass and a time, by way of the force.

        What is per angle, as the pitch of a screw, is per radian whatever the angle unit: as stiffnesses of rotations.
        """
        angle = self.angle if dimension.angle > 0 else "rad"
        return _of(self.length, self.mass, self.force, self.time, angle, dimension)

    def with_unit(self, what: str, text: str) -> Units:
        """The same with another unit of length, mass, force, time or angle. Raises ModelError for another text."""
        names = {name: getattr(self, name) for name in _KINDS} | {what: text}
        return Units(**names, parameters=self.parameters)

    def shown(self, source: str) -> Shown:
        """How numbers of a unit, by its text, are shown to who reads this model's units: `shown("m/s^2").text`.

        What has another dimension than those of mechanics, or no known unit, is shown as it is.

        >>> from linkwright.model.units import Units
        >>> speeds = Units(length="mm").shown("m/s")
        >>> speeds.text, float(speeds.of(1.5))
        ('mm/s', 1500.0)
        """
        return _shown(self.length, self.mass, self.force, self.time, self.angle, source)

    @property
    def are_si(self) -> bool:
        """Whether all but angles are in SI."""
        return (self.length, self.mass, self.force, self.time) == ("m", "kg", "N", "s")

    @property
    def declared(self) -> dict[str, str]:
        """Those that are not SI, by what they are of."""
        usual = {f.name: f.default for f in fields(self)}
        return {name: text for name in _KINDS if (text := getattr(self, name)) != usual[name]}


@dataclass(frozen=True)
class Shown:
    """How numbers of one unit are shown in another: its text, and both units; None where nothing is converted."""

    text: str
    source: Unit | None = None
    target: Unit | None = None

    def of(self, values: Any) -> Any:
        """The numbers as they are shown, of the same shape."""
        if self.source is None or self.target is None:
            return values
        return self.target.converted_from(self.source, values)

    def heading(self, name: str) -> str:
        """The name over numbers that are shown so: with the unit, where they are converted to one."""
        return name if self.target is None else f"{name} ({self.text})"


#: Numbers without a unit.
PLAIN = Shown("")
_KINDS = {"length": LENGTH, "mass": MASS, "force": FORCE, "time": TIME, "angle": ANGLE}
#: One spelling of units that have several.
_SPELLED = {"degree": "deg", "degrees": "deg", "°": "deg", "radian": "rad", "radians": "rad", "in": "inch"}
#: The units of numbers inside the package.
SI = Units()


@lru_cache(maxsize=4096)
def _of(length: str, mass: str, force: str, time: str, angle: str, dimension: Dimension) -> Unit:
    heavy = dimension.mass != 0 and dimension.time != 0
    powers: list[tuple[str, Exponent]]
    if heavy:  # kg = N s²/m
        f = dimension.mass
        remainder = dimension.times(FORCE, -f)
        powers = [(force, f), (length, remainder.length), (time, remainder.time), (angle, remainder.angle)]
    else:
        powers = [(mass, dimension.mass), (length, dimension.length), (time, dimension.time), (angle, dimension.angle)]
    product = _ONE
    above: list[str] = []
    below: list[str] = []
    for name, power in powers:
        if power == 0:
            continue
        whole = UNITS[name]
        if isinstance(power, int):
            product = product.times(whole, power)
        size = abs(power)
        (above if power > 0 else below).append(name if size == 1 else f"{name}^{size}")
    text = "*".join(above) or "1"
    return Unit("/".join([text, *below]), dimension, product.ratio, product.pi)


def _is_large(dimension: Dimension) -> bool:
    exponents: tuple[Exponent, ...] = dimension
    return any(abs(float(x)) > _LARGEST for x in exponents)


@lru_cache(maxsize=4096)
def _shown(length: str, mass: str, force: str, time: str, angle: str, source: str) -> Shown:
    try:
        known = unit(source)
    except ModelError:  # a series of a user's own
        return Shown(source)
    target = _of(length, mass, force, time, angle, known.dimension)
    if (target.ratio, target.pi) == (known.ratio, known.pi) or _is_large(known.dimension):
        return Shown(source)
    try:
        usual = 0.0 < target.converted_from(known, 1.0) < math.inf
    except (OverflowError, ZeroDivisionError):
        usual = False
    if not usual:  # such as km^9/um^9 * km^9/um^9
        return Shown(source)
    return Shown(target.text.replace("*", " "), known, target)
