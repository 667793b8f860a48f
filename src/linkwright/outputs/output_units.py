"""The dimensions of outputs, by those of the quantities in them, so that tables show them in the model's units."""

from __future__ import annotations

from collections.abc import Callable

from linkwright.model.description import Description
from linkwright.model.expression import TIME, Call, Expression, Name, Number
from linkwright.model.quantities import Quantity, dimension_of
from linkwright.model.units import ANGLE, FORCE, NUMBER, TORQUE, Dimension, Shown, Units, unit
from linkwright.model.units import TIME as DURATION
from linkwright.outputs.output_functions import Force, Measure, Reduced

_LIKE = {"add": (0, 1), "sub": (0, 1), "min": (0, 1), "max": (0, 1), "mod": (0, 1), "if": (1, 2), "step": (2, 4)}
_PLAIN = ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sign", "lt", "le")
_ANGLES = ("asin", "acos", "atan", "atan2")


def output_shown(d: Description, expression: Expression) -> Shown:
    """How the numbers of an output are shown: in SI, without a unit, where its dimension cannot be known."""
    dimension = output_dimension(d, expression)
    if dimension is None or dimension == NUMBER or any(x != int(x) for x in dimension):
        return Shown("")
    if dimension.angle and (dimension.length or dimension.mass):  # radius · rate
        dimension = dimension._replace(angle=0)
    return d.units.shown(Units().of(dimension).text)


def parameter_shown(d: Description, name: str) -> Shown:
    """How a parameter is shown: in the unit that it was written with, if there is one."""
    text = dict(d.units.parameters).get(name)
    if text is None:
        return Shown("")
    written = unit(text)
    return Shown(text, Units().of(written.dimension), written)


def output_dimension(d: Description, e: Expression) -> Dimension | None:
    """The dimension of an expression; None where terms do not fit, or powers are no numbers.

    A parameter without a unit is a plain number.
    """
    if isinstance(e, Measure):
        return dimension_of(d, e.quantity).times(DURATION, -int(e.derivative))
    if isinstance(e, Quantity):
        return dimension_of(d, e)
    if isinstance(e, Force):
        part = e.name.rpartition(".")[2]
        return TORQUE if part == "torque" or part in ("mx", "my", "mz") else FORCE
    if isinstance(e, Number):
        return unit(e.unit).dimension if e.unit else NUMBER
    if e == TIME:
        return DURATION
    if isinstance(e, Name):
        text = dict(d.units.parameters).get(e.name)
        return NUMBER if text is None else unit(text).dimension
    if isinstance(e, Reduced):
        if e.kind in ("argmax", "argmin"):
            return DURATION
        inner = output_dimension(d, e.inner)
        return None if inner is None else inner.times(DURATION, int(e.kind == "integral"))
    return _of_call(e, lambda x: output_dimension(d, x)) if isinstance(e, Call) else None


def _of_call(e: Call, of: Callable[[Expression], Dimension | None]) -> Dimension | None:
    function, arguments = e.function, e.arguments
    if function in _PLAIN:
        return NUMBER
    if function in _ANGLES:
        return ANGLE
    if function in ("neg", "abs"):
        return of(arguments[0])
    if function in _LIKE:
        terms = [arguments[k] for k in _LIKE[function] if arguments[k] != Number(0.0)]
        each = [of(x) for x in terms]
        fits = each and each[0] is not None and all(x is not None and x.like(each[0]) for x in each)
        return next((x for x in each if x is not None and x.angle), each[0]) if fits else None
    if function == "sqrt" or (function == "pow" and isinstance(arguments[1], Number)):
        base = of(arguments[0])
        exponent = arguments[1].value if function == "pow" and isinstance(arguments[1], Number) else 0.5
        powers = [] if base is None else [float(x) * exponent for x in base]
        return None if base is None or any(x != round(x) for x in powers) else Dimension(*map(round, powers))
    if function in ("mul", "div"):
        first, second = of(arguments[0]), of(arguments[1])
        return None if first is None or second is None else first.times(second, 1 if function == "mul" else -1)
    return None
