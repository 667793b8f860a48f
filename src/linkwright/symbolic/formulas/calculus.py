"""Derivatives of formulas that are no polynomials, and formulas with some of their symbols replaced."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from linkwright.symbolic.formulas.exact import (
    ONE,
    ZERO,
    added,
    angle_sum,
    constant,
    cosine_and_sine,
    decimal,
    from_parts,
    known_angle,
    negated,
    product,
    times,
)
from linkwright.symbolic.formulas.formula import Applied, Factor, Sum, Symbol, Term, Trig, number, raised


# -- derivatives ----------------------------------------------------------------------------------------------------
def derivative(formula: Sum, by: Symbol) -> Sum:
    """∂formula/∂symbol, exactly. Functions with corners have the slope of one side there; steps have none."""
    total: list[Sum] = []
    for term in formula:
        for k, (factor, power) in enumerate(term.factors):
            slope = _factor_slope(factor, by)
            if slope:
                less = ((factor, power - 1),) if power != 1 else ()
                remaining = Term(term.number * power, (*term.factors[:k], *less, *term.factors[k + 1 :]))
                total.append(product(Sum((remaining,)), slope))
    return added(*total)


def _factor_slope(factor: Factor, by: Symbol) -> Sum:
    if isinstance(factor, Symbol):
        return ONE if factor == by else ZERO
    if isinstance(factor, Sum):
        return derivative(factor, by)
    if isinstance(factor, Trig):
        multiple = sum((m for s, m in factor.angle if s == by), Fraction(0))
        turned = Trig("sin", factor.angle) if factor.function == "cos" else Trig("cos", factor.angle)
        return times(-multiple if factor.function == "cos" else multiple, turned)
    if isinstance(factor, Applied):
        return _applied_slope(factor, by)
    return ZERO


def _applied_slope(f: Applied, by: Symbol) -> Sum:
    if f.function in _FLAT:
        return ZERO
    slopes = [derivative(x, by) for x in f.arguments]
    if not any(slopes):
        return ZERO
    a = f.arguments
    if f.function == "if":
        return _chosen(a[0], slopes[1], slopes[2])
    if f.function in ("min", "max"):
        first = _call("lt", *a) if f.function == "min" else _call("lt", a[1], a[0])
        return _chosen(first, slopes[0], slopes[1])
    if f.function == "step":
        return derivative(_step(*a), by)
    partials = _PARTIALS[f.function](*a)
    return added(*(product(p, s) for p, s in zip(partials, slopes, strict=True) if s))


def _call(function: str, *arguments: Sum) -> Sum:
    return times(1, Applied(function, arguments))


def _chosen(condition: Sum, yes: Sum, no: Sum) -> Sum:
    return yes if yes == no else _call("if", condition, yes, no)


def _over(a: Sum, b: Sum) -> Sum:
    return from_parts("div", [a, b])


def _less(a: Sum, b: Sum) -> Sum:
    return added(a, negated(b))


def _step(x: Sum, x0: Sum, y0: Sum, x1: Sum, y1: Sum) -> Sum:
    """`step` by its parts, as `model.expression` has it."""
    s = _call("min", _call("max", _over(_less(x, x0), _less(x1, x0)), ZERO), ONE)
    return added(y0, product(product(_less(y1, y0), product(s, s)), _less(number(3), product(number(2), s))))


_FLAT = frozenset({"lt", "le", "sign", "floor"})
#: function → its derivatives by each argument.
_PARTIALS: dict[str, Callable[..., tuple[Sum, ...]]] = {
    "neg": lambda x: (number(-1),),
    "add": lambda x, y: (ONE, ONE),
    "sub": lambda x, y: (ONE, number(-1)),
    "mul": lambda x, y: (y, x),
    "div": lambda x, y: (_over(ONE, y), negated(_over(x, product(y, y)))),
    "pow": lambda x, y: (
        product(y, from_parts("pow", [x, _less(y, ONE)])),
        product(from_parts("pow", [x, y]), _call("log", x)),
    ),
    "sqrt": lambda x: (_over(number(Fraction(1, 2)), _call("sqrt", x)),),
    "sin": lambda x: (_call("cos", x),),
    "cos": lambda x: (negated(_call("sin", x)),),
    "tan": lambda x: (added(ONE, _square(_call("tan", x))),),
    "asin": lambda x: (_over(ONE, _call("sqrt", _less(ONE, _square(x)))),),
    "acos": lambda x: (_over(number(-1), _call("sqrt", _less(ONE, _square(x)))),),
    "atan": lambda x: (_over(ONE, added(ONE, _square(x))),),
    "atan2": lambda y, x: (
        _over(x, added(_square(x), _square(y))),
        negated(_over(y, added(_square(x), _square(y)))),
    ),
    "exp": lambda x: (_call("exp", x),),
    "log": lambda x: (_over(ONE, x),),
    "sinh": lambda x: (_call("cosh", x),),
    "cosh": lambda x: (_call("sinh", x),),
    "tanh": lambda x: (_less(ONE, _square(_call("tanh", x))),),
    "abs": lambda x: (_call("sign", x),),
}


def _square(x: Sum) -> Sum:
    return product(x, x)


# -- replacing ------------------------------------------------------------------------------------------------------
def replaced(formula: Sum, values: Mapping[str, Fraction]) -> Sum:
    """The formula with numbers in the place of symbols, in angles and functions too; what is known exactly is folded.

    The cosine of a multiple of 15° is an algebraic number, that of another angle its decimals.
    """
    total: list[Sum] = []
    for term in formula:
        image = number(term.number)
        for factor, power in term.factors:
            value = _factor_replaced(factor, values)
            x = constant(value)
            if x is not None:
                image = ZERO if x == 0 and power > 0 else product(image, number(x**power))
            else:
                image = product(image, raised(factor if value == raised(factor) else value, power))
            if not image:
                break
        total.append(image)
    return added(*total)


def _factor_replaced(factor: Factor, values: Mapping[str, Fraction]) -> Sum:
    if isinstance(factor, Symbol):
        return number(values[factor.name]) if factor.name in values else times(1, factor)
    if isinstance(factor, Sum):
        return replaced(factor, values)
    if isinstance(factor, Trig):
        return _trig_replaced(factor, values)
    if isinstance(factor, Applied):
        return folded(factor.function, [replaced(x, values) for x in factor.arguments])
    return times(1, factor)


def _trig_replaced(factor: Trig, values: Mapping[str, Fraction]) -> Sum:
    remaining = tuple((s, m) for s, m in factor.angle if s.name not in values)
    if len(remaining) == len(factor.angle):
        return times(1, factor)
    angle = math.fsum(float(m * values[x.name]) for x, m in factor.angle if x.name in values)
    # Algebraic for multiples of 15°, otherwise decimals.
    pair = known_angle(angle) or (decimal(math.cos(angle)), decimal(math.sin(angle)))
    if remaining:
        pair = angle_sum(pair, cosine_and_sine(remaining))
    return pair[factor.function == "sin"]


def folded(function: str, arguments: list[Sum]) -> Sum:
    """A function of formulas, or its value where that is known exactly."""
    numbers = [constant(x) for x in arguments]
    first = numbers[0]
    if function == "if" and first is not None:
        return arguments[1] if first else arguments[2]
    if function in ("cos", "sin") and first is not None:
        known = known_angle(float(first))
        if known is not None:
            return known[0] if function == "cos" else known[1]
    known_numbers = [x for x in numbers if x is not None]
    if function in _VALUES and len(known_numbers) == len(numbers):
        value = _VALUES[function](*known_numbers)
        if value is not None:
            return number(value)
    return from_parts(function, arguments)


def _at(place: int, value: int) -> Callable[[Fraction], Fraction | None]:
    """What is known of a function at one place alone."""
    return lambda x: Fraction(value) if x == place else None


def _root(x: Fraction) -> Fraction | None:
    if x < 0:
        return None
    root = Fraction(math.isqrt(x.numerator), math.isqrt(x.denominator))
    return root if root * root == x else None


_VALUES: dict[str, Callable[..., Fraction | int | None]] = {
    "lt": lambda x, y: int(x < y),
    "le": lambda x, y: int(x <= y),
    "min": min,
    "max": max,
    "abs": abs,
    "sign": lambda x: (x > 0) - (x < 0),
    "floor": math.floor,
    "sqrt": _root,
    "tan": _at(0, 0),
    "asin": _at(0, 0),
    "acos": _at(1, 0),
    "atan": _at(0, 0),
    "atan2": lambda y, x: 0 if y == 0 and x > 0 else None,
    "exp": _at(0, 1),
    "log": _at(1, 0),
    "sinh": _at(0, 0),
    "cosh": _at(0, 1),
    "tanh": _at(0, 0),
}
