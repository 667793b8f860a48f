"""How numbers of a description are written in a `.mks` file: in the units of its model, or in SI."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from linkwright.errors import ModelError
from linkwright.formats.mks.dimensions import CONVERTED
from linkwright.model.description import Description
from linkwright.model.expression import Call, Expression, Number, parts
from linkwright.model.units import TIME, Dimension, Units, unit

#: Expressions as they were read; expressions in SI among numbers in the model's units; all in SI.
Manner = Literal["as read", "guarded", "SI"]


def number_text(number: float) -> str:
    """The shortest text that reads as this number."""
    if not math.isfinite(number):
        raise ModelError(f"the number {number} cannot be written in a .mks file")
    return repr(float(number)).removesuffix(".0")


@dataclass(frozen=True)
class Speech:
    """What bare numbers of a text are in, how its expressions are written, and the names of its parameters."""

    units: Units = field(default_factory=Units)
    manner: Manner = "SI"
    names: frozenset[str] = frozenset()

    def number(self, x: float, dimension: Dimension | None) -> str:
        """A number in SI as text: in the model's unit of its dimension, or with a unit of SI where none hits it."""
        if dimension is None or self.manner == "SI":
            return number_text(x)
        return self._in(x, self.units.of(dimension).text, bare=True)

    def parameter(self, name: str, x: float) -> str:
        """The value of a parameter: with its unit, if it has one."""
        text = dict(self.units.parameters).get(name)
        return number_text(x) if text is None or self.manner == "SI" else self._in(x, text, bare=False)

    def literal(self, number: Number) -> str | None:
        """A number that was written with its unit, as it was written; None for any other."""
        if self.manner != "as read" or number.unit in ("", CONVERTED):
            return None
        return self._in(number.value, number.unit, bare=False)

    def is_converted(self, e: Expression) -> bool:
        """Whether this is a term without units to which the reader put the model's unit."""
        if self.manner != "as read" or not isinstance(e, Call) or e.function not in ("mul", "div"):
            return False
        factor = e.arguments[1]
        return isinstance(factor, Number) and factor.unit == CONVERTED

    def guarded(self, text: str, dimension: Dimension | None) -> str:
        """What is in SI as a plain number: a coordinate, TIME or a parameter with a unit."""
        if self.manner != "guarded" or dimension is None:
            return text
        return f"({text}{_factors(dimension, -1)})"

    def parameter_dimension(self, name: str) -> Dimension | None:
        """The dimension of a parameter that has a unit; that of TIME is a time."""
        if name == "TIME":
            return TIME
        text = dict(self.units.parameters).get(name)
        return None if text is None else unit(text).dimension

    def whole(self, text: str, dimension: Dimension | None) -> str:
        """An expression in SI where one of a dimension is expected."""
        if self.manner != "guarded" or dimension is None or dimension == Dimension():
            return text
        return f"({text}){_factors(dimension, 1)}"

    def _in(self, x: float, text: str, *, bare: bool) -> str:
        known = unit(text)
        if known.is_si and bare:
            return number_text(x)
        number_text(x)  # or its error
        shown = known.decimal(x)
        if shown is None:
            si = Units().of(known.dimension).text
            # Behind the first, a name of a parameter is the parameter and no unit.
            hidden = {word.lower() for word in re.findall(r"[a-z]+", si, re.I)[1:]} & self.names
            return number_text(x) + (_factors(known.dimension, 1) if hidden else f" {si}")
        return shown if bare else f"{shown} {text}"

    @property
    def settings(self) -> list[str]:
        """The units as settings of SYSTEM."""
        declared = {} if self.manner == "SI" else self.units.declared
        return [f"{name} unit = {'degree' if text == 'deg' else text}" for name, text in declared.items()]


def _factors(dimension: Dimension, sign: int) -> str:
    """Factors of one unit of SI each: in a text they go before parameters of their names, and change no number."""
    factors = ""
    for name, exponent in zip(("m", "kg", "s", "rad"), dimension, strict=True):
        power = int(sign * exponent)
        factors += f"{'*' if power > 0 else '/'}(1 {name})" * abs(power)
    return factors


def speaks(d: Description) -> bool:
    """Whether a description keeps units: those of SYSTEM, of its parameters, or of numbers in its expressions."""
    return d.units != Units() or any(isinstance(x, Number) and x.unit for e in _expressions(d) for x in parts(e))


def _expressions(d: Description) -> Iterator[Expression]:
    yield from d.bindings.values()
    yield from (x.value for x in d.initial)
    yield from (x.law for x in d.drivers)
    for thing in (*d.elements, *d.point_constraints, *d.shapes, *d.curves):
        for name in ("law", "laws", "left", "right", "length", "radius", "size", "x", "y", "lower", "upper"):
            inner = getattr(thing, name, None)
            inner = () if inner is None else inner
            yield from (inner,) if isinstance(inner, Expression) else (x for x in inner if isinstance(x, Expression))


def in_own_units(
    d: Description, write: Callable[[Description, Speech], str], read: Callable[[str], Description]
) -> str:
    """The text in the units of the model, where what is read back is the same to the last bit; else in SI."""
    wanted = write(d, Speech())
    if not speaks(d):
        return wanted
    manners: tuple[Manner, ...] = ("as read", "guarded")
    for manner in manners:
        speech = Speech(d.units, manner, frozenset(name.lower() for name in d.parameters))
        try:
            text = write(d, speech)
            again = read(text)
            alike = again.units.declared == d.units.declared and write(again, Speech()) == wanted
        except (ModelError, RecursionError):
            continue
        if alike:
            return text
    return wanted
