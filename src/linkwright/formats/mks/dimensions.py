"""What has a unit in the arithmetic of a `.mks` text: the dimension of every operation, and what fits a place."""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass, replace
from fractions import Fraction

from linkwright.base.arguments import shortened
from linkwright.formats.mks.syntax import Applied, Fault, Node, Num, Word
from linkwright.model.expression import Call, Expression, Number
from linkwright.model.motion_laws import MOTION_LAWS
from linkwright.model.units import ANGLE, NUMBER, Dimension, Unit, Units, close_unit, in_words, unit_named

#: How well a dimension is known: whole; but for its time, as TIME may be a number of seconds; not at all.
KNOWN, ANY_TIME, ANY = range(3)
#: The unit of numbers that the reader has put in, where it converts an expression without units.
CONVERTED = "·"
#: Which arguments are of one dimension, and for the first table the outcome too.
_LIKE = {"add": (0, 1), "sub": (0, 1), "min": (0, 1), "max": (0, 1), "if": (1, 2), "step": (2, 4)}
_LIKE |= {"mod": (0, 1), **dict.fromkeys(MOTION_LAWS, (2, 4))}
_COMPARED = {"lt": (0, 1), "le": (0, 1), "atan2": (0, 1), **dict.fromkeys(("step", *MOTION_LAWS), (0, 1, 3))}
#: Which arguments a term without a unit is still mixed in.
_KEEP = {**_LIKE, "neg": (0,), "abs": (0,), "mul": (0, 1), "div": (0,)}
_GIVE_ANGLE = ("asin", "acos", "atan", "atan2")
_MOST_POWER = 9  # of a unit


@dataclass(slots=True)
class Value:
    """An expression, its number if it is constant, and its dimension by its units: None without any unit.

    Numbers with a unit are in SI. `moving`: it depends on a coordinate. `literal`: it is a number with its unit alone.
    """

    expression: Expression
    number: float | None = None
    dimension: Dimension | None = None
    size: int = 1
    depth: int = 0
    mixed: tuple[Node, Node] | None = None  # a term with a unit of angle, and one beside it that has none
    known: int = KNOWN
    moving: bool = False
    literal: bool = False

    @property
    def angle(self) -> bool:
        """Whether it is an angle, or a rate of one, by its units."""
        return self.dimension is not None and self.dimension.angle != 0


Term = tuple[Value, Node]


class Dimensions:
    """The rules, in the units of one model; `source` is its text, for messages."""

    def __init__(self, source: str = "") -> None:
        self.source = source
        self.units = Units()
        self.variables: dict[str, Value] = {}  # names that mean something of their own, before parameters
        self.unchecked = False  # in laws whose units are angles alone: coordinates are plain numbers beside them

    def shown(self, node: Node) -> str:
        """The text of a piece, for messages."""
        return shortened(" ".join(self.source[node.start : node.end].split()), 60)

    # -- operations ---------------------------------------------------------------------------------------
    def settle(self, value: Value, function: str, arguments: list[Value], nodes: tuple[Node, ...]) -> None:
        """Give the value of a function its dimension by those of its arguments; a Fault where these do not fit."""
        terms = list(zip(arguments, nodes, strict=True))
        value.moving = any(a.moving for a in arguments)
        value.mixed = next((m for k in _KEEP.get(function, ()) if (m := arguments[k].mixed)), None)
        value.known = max(a.known for a in arguments)
        if any(a.dimension is not None for a in arguments):
            self._settle_units(value, function, terms)
        if function in _GIVE_ANGLE:
            value.dimension, value.known = ANGLE, KNOWN

    def _settle_units(self, value: Value, function: str, terms: list[Term]) -> None:
        first = terms[0][0]
        if function in _COMPARED:
            self.join([terms[k] for k in _COMPARED[function]])
        if function in _LIKE:
            joined = self.join([terms[k] for k in _LIKE[function]], angles=True)
            value.dimension, value.known, value.mixed = joined.dimension, joined.known, value.mixed or joined.mixed
        elif function in ("mul", "div"):
            self._product(value, first, terms[1][0], 1 if function == "mul" else -1)
        elif function in ("pow", "sqrt"):
            self._power(value, terms)
        elif function in ("neg", "abs"):
            value.dimension = first.dimension
        elif function not in _COMPARED and function not in ("if", "sign"):
            self._plain(function, *terms[0])

    def join(self, terms: list[Term], *, angles: bool = False) -> Value:
        """What like terms are together; `angles`: a mixture of angles with plain numbers is noted, not refused."""
        together = Value(Number(0.0))
        united = [term for term in terms if term[0].dimension is not None]
        if not united:
            return together
        base, at = min(united, key=lambda term: term[0].known)
        together.dimension, together.known = base.dimension, base.known
        if self.unchecked or base.known == ANY or base.dimension is None:
            return together
        for term, node in united:
            any_time = ANY_TIME in (term.known, base.known)
            if term.known != ANY and term.dimension and not term.dimension.like(base.dimension, any_time=any_time):
                text = f"{self.shown(node)} is {in_words(term.dimension)}, and {self.shown(at)} beside it is "
                raise Fault(node, text + f"{in_words(base.dimension)}; they do not go together")
        for term, node in terms:
            if term.dimension is None and term.number != 0.0 and not self.units.of(base.dimension).is_si:
                if not self.units.are_si and base.dimension != NUMBER:
                    raise self.mixture(at, node, base.dimension)
                if angles:
                    together.mixed = at, node
        return together

    def check_direction(self, components: list[Term]) -> None:
        """A Fault where the components of a direction are of several dimensions, or angles."""
        for component, node in components:
            if component.dimension is not None and component.dimension.angle:
                text = f"{self.shown(node)} is {in_words(component.dimension)}, and a direction has plain numbers or "
                raise Fault(node, f"{text}lengths, as in (cos(30 deg), sin(30 deg), 0)")
        self.join(components)

    def mixture(self, united: Node, bare: Node, dimension: Dimension) -> Fault:
        """The fault that one term has a unit, and one beside it has none."""
        unit, one, other = self.units.of(dimension).text, self.shown(united), self.shown(bare)
        angle = dimension == ANGLE
        text = f"{one} has a unit{' of angle' if angle else ''}, and {other} beside it has none; "
        rest_of = "in degrees" if angle and unit == "deg" else f"in {unit}"
        return Fault(bare, text + f"give every term a unit (as 5 {unit}), or none and they are all {rest_of}")

    def _product(self, value: Value, a: Value, b: Value, power: int) -> None:
        value.dimension = (a.dimension or NUMBER).times(b.dimension or NUMBER, power)
        # A factor without a unit, beside a coordinate: 20 may be 20 N/m.
        free = (a.dimension is None and b.moving) or (b.dimension is None and a.moving)
        if free and self.units.are_si:
            value.known = ANY

    def _power(self, value: Value, terms: list[Term]) -> None:
        base, exponent = terms[0][0], Fraction(1, 2)
        if len(terms) == 2:
            power, node = terms[1]
            if power.dimension is not None and power.dimension[:3] != NUMBER[:3]:
                raise Fault(node, f"an exponent is a plain number, and this is {in_words(power.dimension)}")
            if base.dimension is None or base.dimension[:3] == NUMBER[:3]:
                value.dimension = None if power.number is None else base.dimension
            if power.number is None:
                if base.dimension is None or base.dimension[:3] == NUMBER[:3]:
                    return
                raise Fault(
                    node, f"the exponent of {in_words(base.dimension)} must be a number, so that its unit is known"
                )
            exponent = Fraction(power.number).limit_denominator(12)
            if abs(power.number) > 100.0 or float(exponent) != power.number:
                exponent = Fraction(0)
                if base.dimension is not None and base.dimension[:3] != NUMBER[:3]:
                    raise Fault(
                        node,
                        f"this exponent of {in_words(base.dimension)} leaves it without a unit; take a whole number",
                    )
        value.dimension = None if base.dimension is None else NUMBER.times(base.dimension, exponent)

    def _plain(self, function: str, value: Value, node: Node) -> None:
        d = value.dimension
        if self.unchecked or d is None or value.known == ANY:
            return
        if not d.like(NUMBER, any_time=value.known == ANY_TIME):
            wanted = "an angle or a plain number" if function in ("sin", "cos", "tan") else "a plain number"
            advice = "give the numbers in it their units, or divide by one"
            raise Fault(node, f"{function} takes {wanted}, and {self.shown(node)} is {in_words(d)}; {advice}")

    # -- places -------------------------------------------------------------------------------------------
    def fitted(self, value: Value, node: Node, dimension: Dimension | None, bare: bool = False) -> Value:
        """A value in SI, where this dimension belongs; one without a unit is in the model's. None: any dimension.

        `bare`: whatever units of angle stand in it, the value as a whole has none, and its angles are in radians.
        """
        if dimension is None:
            return value
        unit = self.units.of(dimension._replace(angle=0) if bare else dimension)
        if value.mixed is not None and not bare and not unit.is_si:
            raise self.mixture(*value.mixed, ANGLE)
        if value.dimension is None or bare:
            return self._converted(value, node, unit)
        if value.known == ANY:
            return value
        there, text = in_words(value.dimension), self.shown(node)
        if not value.dimension.like(dimension, any_time=value.known == ANY_TIME):
            example = "" if dimension == NUMBER else f" (as 5 {unit.text})"
            raise Fault(node, f"expected {in_words(dimension)}{example}, and {text} is {there}")
        turns, turned = dimension.angle != 0, value.dimension.angle != 0
        if value.literal and turns and not turned:
            raise Fault(
                node, f"expected {in_words(dimension)}, and {text} is {there}: give its angle too, as 5 {unit.text}"
            )
        if value.literal and turned and dimension == NUMBER:
            raise Fault(node, f"expected a plain number, and {text} is {there}")
        return value

    @staticmethod
    def _converted(value: Value, node: Node, unit: Unit) -> Value:
        """A value without units, as one of this unit in SI."""
        if unit.is_si:
            return value
        if value.number is not None:
            number = si_number(value.number, unit, node)
            return replace(value, expression=Number(number), number=number, dimension=unit.dimension)
        return replace(
            value,
            expression=scaled(value.expression, unit),
            dimension=unit.dimension,
            size=value.size + 2,
            depth=value.depth + 1,
        )


def si_number(x: float, unit: Unit, node: Node) -> float:
    """A number of a unit in SI; a Fault where it is too large."""
    try:
        return unit.si(x)
    except OverflowError:
        raise Fault(node, "this number is too large") from None


def scaled(expression: Expression, unit: Unit, *, back: bool = False) -> Expression:
    """An expression of numbers in a unit as one in SI; `back`: the other way round.

    By a whole number where the factor or its inverse is one, so that 40 in millimetres is 0.04 to the last bit.
    """
    if unit.is_si:
        return expression
    p, q = (unit.ratio.denominator, unit.ratio.numerator) if back else (unit.ratio.numerator, unit.ratio.denominator)
    if unit.pi == 0 and p == 1:
        return Call("div", (expression, Number(float(q), CONVERTED)))
    if unit.pi == 0 and q == 1:
        return Call("mul", (expression, Number(float(p), CONVERTED)))
    return Call("div" if back else "mul", (expression, Number(unit.factor, CONVERTED)))


def measured(node: Node, taken: Container[str]) -> tuple[float, Unit] | None:
    """The number and the unit of `40 mm`, `2.5 N/mm` or `0.2 kg*cm^2`, or None; names that are taken are no units."""
    if isinstance(node, Num):
        if node.unit is None:
            return None
        unit = unit_named(node.unit.text)
        if unit is None:
            raise Fault(node.unit, f"there is no unit {node.unit.text!r}{close_unit(node.unit.text)}")
        return node.value, unit
    if not isinstance(node, Applied) or not node.operation or node.function.text not in ("mul", "div", "pow"):
        return None
    first, second = node.arguments
    if node.function.text == "pow":
        alone = isinstance(first, Num) and not first.wrapped and first.unit is not None
        number = measured(first, taken) if alone else None
        return None if number is None else (number[0], _power(number[1], second))
    factor = _factor(second, taken)
    number = None if factor is None else measured(first, taken)
    if factor is None or number is None:
        return None
    product = number[1].times(factor, 1 if node.function.text == "mul" else -1)
    text = f"{number[1].text}{'*' if node.function.text == 'mul' else '/'}{factor.text}"
    return number[0], Unit(text, product.dimension, product.ratio, product.pi)


def last_measured(node: Node, taken: Container[str]) -> tuple[Applied, float, Unit] | None:
    """What stands before the number with a unit that ends a product, as in `x*3 mm/s`; None for any other text.

    The first is the product whose second factor the number is, with a unit that is still short of its last parts.
    """
    if not isinstance(node, Applied) or not node.operation or node.function.text not in ("mul", "div"):
        return None
    first, second = node.arguments
    factor = _factor(second, taken)
    if factor is None:
        number = measured(second, taken)
        return None if number is None else (node, *number)
    ending = last_measured(first, taken)
    if ending is None:
        return None
    product, x, unit = ending
    sign = "*" if node.function.text == "mul" else "/"
    if product.function.text == "div":
        raise Fault(node, "what is divided by a number with a unit needs parentheses around the number and its unit")
    whole = unit.times(factor, 1 if sign == "*" else -1)
    return product, x, Unit(f"{unit.text}{sign}{factor.text}", whole.dimension, whole.ratio, whole.pi)


def _factor(node: Node, taken: Container[str]) -> Unit | None:
    """The unit that a factor behind another is: mm, cm^2."""
    if isinstance(node, Applied) and node.operation and node.function.text == "pow":
        base = _factor(node.arguments[0], taken) if isinstance(node.arguments[0], Word) else None
        return None if base is None else _power(base, node.arguments[1])
    if not isinstance(node, Word) or node.quoted or node.text.lower() in taken:
        return None
    return unit_named(node.text)


def _power(base: Unit, exponent: Node) -> Unit:
    """A unit to the power that a node is."""
    number = exponent.value if isinstance(exponent, Num) and exponent.unit is None else math.nan
    if not (0 < abs(number) <= _MOST_POWER and number == int(number)):
        raise Fault(exponent, f"the exponent of a unit is a whole number up to {_MOST_POWER}; else use parentheses")
    power = Unit("1", NUMBER).times(base, int(number))
    return Unit(f"{base.text}^{int(number)}", power.dimension, power.ratio, power.pi)
