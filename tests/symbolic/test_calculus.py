"""Derivatives of functions in formulas, and numbers put in the place of symbols."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from linkwright.model.expression import FUNCTIONS, Call, Expression, Name, Number
from linkwright.symbolic.derivation.exact_numbers import from_expression
from linkwright.symbolic.formulas.calculus import derivative, replaced
from linkwright.symbolic.formulas.exact import added, constant, times
from linkwright.symbolic.formulas.formula import Sum, Symbol, Trig, evaluate, symbols

X = Symbol("x")
x = Name("x")
LAWS: dict[str, Expression] = {
    name: Call(name, tuple([0.3 + 0.5 * x, 1.1 - x, 2.0 + x * x, 3.0 + x, 0.7 * x][:count]))
    for name, (count, _) in FUNCTIONS.items()
}
LAWS |= {
    "step before": Call("step", (x - 9.0, Number(0.0), x, Number(1.0), x * x)),
    "step on": Call("step", (x, Number(0.0), 2.0 * x, Number(1.0), x * x)),
    "step after": Call("step", (x + 9.0, Number(0.0), x, Number(1.0), x * x)),
    "negative": -1.0 / x - x / (1.0 + x * x) + x**-2.0 + 3.0 ** (-x),
    "nested": Call("tanh", (Call("sin", (x * x,)) / 0.3,)) * (x - 1.0) ** 3.0,
    "other branch": Call("if", (Call("lt", (1.0 * x, Number(0.0))), x * x, x * x * x)),
}


@pytest.mark.parametrize("name", LAWS)
def test_every_function_is_differentiated(name: str) -> None:
    formula = from_expression(LAWS[name])
    slope = derivative(formula, X)
    h, at = 1e-3, 0.37
    near = [evaluate(formula, {"x": at + k * h}) for k in (-2, -1, 1, 2)]
    wanted = (near[0] - 8.0 * near[1] + 8.0 * near[2] - near[3]) / (12.0 * h)
    assert evaluate(slope, {"x": at}) == pytest.approx(wanted, rel=1e-7, abs=1e-9)


def test_angles_are_differentiated_by_their_multiples() -> None:
    y = Symbol("y")
    angle = ((X, Fraction(2)), (y, Fraction(-1)))
    formula = added(times(3, Trig("cos", angle)), times(1, X, Trig("sin", angle)))
    values = {"x": 0.4, "y": 0.7}
    a = 2 * 0.4 - 0.7
    assert evaluate(derivative(formula, X), values) == pytest.approx(
        -6 * math.sin(a) + math.sin(a) + 0.8 * math.cos(a), rel=1e-14
    )
    assert evaluate(derivative(formula, y), values) == pytest.approx(3 * math.sin(a) - 0.4 * math.cos(a), rel=1e-14)


def test_a_formula_without_the_symbol_has_no_slope() -> None:
    assert derivative(from_expression(Call("exp", (Name("y") * 2.0,))), X) == Sum()


@pytest.mark.parametrize("name", LAWS)
def test_a_number_in_the_place_of_a_symbol_keeps_the_value(name: str) -> None:
    formula = from_expression(LAWS[name])
    given = replaced(formula, {"x": Fraction(37, 100)})
    assert not symbols(given)
    assert evaluate(given, {}) == pytest.approx(evaluate(formula, {"x": 0.37}), rel=1e-14)


def test_what_is_known_exactly_is_folded() -> None:
    law = Call("tanh", (x / 0.01,)) * 3.0 + Call("max", (x - 1.0, Number(-2.0))) + Call("sqrt", (x + 4.0,))
    assert constant(replaced(from_expression(law), {"x": Fraction(0)})) == 1
    assert constant(replaced(from_expression(Call("cos", (x,))), {"x": Fraction(repr(math.pi))})) == -1


def test_a_part_of_an_angle_is_taken_out_of_it() -> None:
    y = Symbol("y")
    for sign in (1, -1):
        angle = ((X, Fraction(1)), (y, Fraction(sign)))
        for function in ("cos", "sin"):
            formula = times(1, Trig(function, angle))
            part = replaced(formula, {"x": Fraction(1, 3)})
            assert set(symbols(part)) == {"y"}
            assert evaluate(part, {"y": 0.8}) == pytest.approx(evaluate(formula, {"x": 1 / 3, "y": 0.8}), rel=1e-14)
