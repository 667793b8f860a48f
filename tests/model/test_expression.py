"""Expressions: arithmetic builds them, one table evaluates them over any scalar."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwright.errors import ModelError, NameNotFound
from linkwright.model.expression import (
    FUNCTIONS,
    MAX_DEPTH,
    TIME,
    Call,
    Expression,
    Lookup,
    Name,
    Number,
    as_expression,
    replaced,
    simplified,
)
from linkwright.tape.operations import Table

x, y = Name("x"), Name("y")
POINT = {"x": 0.7, "y": -0.3}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (x + y, 0.4),
        (1 - x, 0.3),
        (x - 1, -0.3),
        (2 * x * y, -0.42),
        (x / y, 0.7 / -0.3),
        (1 / x, 1 / 0.7),
        (x**2, 0.49),
        (2**x, 2**0.7),
        (-x, -0.7),
        (abs(y), 0.3),
        (np.sin(x), math.sin(0.7)),
        (np.sqrt(x), math.sqrt(0.7)),
        (np.exp(y), math.exp(-0.3)),
        (Call("atan2", (y, x)), math.atan2(-0.3, 0.7)),
        (Call("if", (Call("lt", (x, y)), Number(1), Number(2))), 2.0),
        (Call("if", (Call("le", (y, x)), Number(1), Number(2))), 1.0),
        (Call("max", (x, y)), 0.7),
        (Call("min", (x, y)), -0.3),
        (Call("sign", (y,)), -1.0),
        (Call("floor", (y,)), -1.0),
        (Call("abs", (y,)), 0.3),
        (Call("step", (x, Number(0), Number(1), Number(1), Number(3))), 1 + 2 * 0.49 * (3 - 1.4)),
        (Call("step", (y, Number(0), Number(1), Number(1), Number(3))), 1.0),
    ],
)
def test_an_expression_has_the_value_of_its_formula(expression, value):
    assert float(expression.evaluate(POINT)) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("name", ["asin", "acos", "atan", "sinh", "cosh", "tanh", "tan", "log", "cos"])
def test_a_function_is_that_of_the_math_module(name):
    assert Call(name, (x,)).evaluate(POINT) == pytest.approx(getattr(math, name)(0.7), rel=1e-15)


def test_a_lookup_goes_through_its_points():
    table = Table.spline([0, 1, 2], [3, 5, 4])
    assert float(Lookup(table, x + 0.3).evaluate(POINT)) == pytest.approx(5.0)


def test_expressions_evaluate_over_arrays():
    np.testing.assert_allclose((x * x + np.sin(y)).evaluate({"x": np.arange(3.0), "y": 0.0}), [0, 1, 4])


def test_an_expression_knows_its_names():
    assert (x * TIME + np.sin(y) / 2).names() == {"x", "y", "TIME"}
    assert as_expression(3).names() == frozenset()


def test_an_expression_times_an_array_is_an_array_of_expressions():
    both = x * np.array([1.0, 2.0]), np.array([1.0, 2.0]) * x
    for product in both:
        assert product.shape == (2,)
        assert [e.evaluate(POINT) for e in product] == pytest.approx([0.7, 1.4])


def test_a_name_without_a_value_is_told_with_the_near_ones():
    with pytest.raises(NameNotFound, match="no parameter or variable named 'lenght'; did you mean 'length'"):
        Name("lenght").evaluate({"length": 1.0})


def test_a_function_that_is_not_there_and_a_wrong_number_of_arguments_are_told():
    with pytest.raises(NameNotFound, match="no function named 'sine'; did you mean 'sin'"):
        Call("sine", (x,))
    with pytest.raises(ValueError, match="atan2 takes 2 arguments, 1 given"):
        Call("atan2", (x,))


def test_equal_expressions_are_equal_and_hash_alike():
    assert x + 1 == Name("x") + 1.0
    assert hash(x + 1) == hash(Name("x") + 1.0)
    assert x + 1 != x + 2


def test_an_expression_prints_as_a_formula():
    assert str(2 * x - np.sin(y) ** 2) == "((2.0 * x) - (sin(y))**(2.0))"


@pytest.mark.parametrize(
    ("given_", "plain"),
    [
        (0 * x, "0.0"),
        (1 * x, "x"),
        (x + 0, "x"),
        (0 - x, "-(x)"),
        (-1 * x, "-(x)"),
        (Call("neg", (-x,)), "x"),
        (0 * x + 1 * y, "y"),
        (x / 1, "x"),
        (np.sin(Number(0.0)) + x, "x"),
        (Number(2) * Number(3) * x, "(6.0 * x)"),
    ],
)
def test_a_simplified_expression_has_no_idle_parts(given_, plain):
    assert str(simplified(given_)) == plain


def trees():
    leaves = st.sampled_from([x, y, Number(0.0), Number(1.0), Number(-1.0), Number(0.5)])
    pairs = st.sampled_from(["add", "sub", "mul", "max"])
    return st.recursive(
        leaves,
        lambda inner: (
            st.builds(lambda f, a, b: Call(f, (a, b)), pairs, inner, inner)
            | st.builds(lambda f, a: Call(f, (a,)), st.sampled_from(["neg", "sin", "abs"]), inner)
        ),
        max_leaves=12,
    )


@given(trees())
def test_simplifying_does_not_change_the_value(expression: Expression):
    assert simplified(expression).evaluate(POINT) == pytest.approx(float(expression.evaluate(POINT)), abs=1e-12)


def test_every_function_of_the_table_takes_as_many_arguments_as_it_says():
    for name, (count, _) in FUNCTIONS.items():
        value = Call(name, tuple(Number(0.3 + 0.1 * k) for k in range(count))).evaluate({})
        assert np.isfinite(float(value))


# -- depth ----------------------------------------------------------------------------------------------------------
def _nested(levels: int, function: str) -> Expression:
    made: Expression = Name("a")
    for _ in range(levels):
        made = Call(function, (made,) if FUNCTIONS[function][0] == 1 else (made, Number(1.0)))
    return made


@pytest.mark.parametrize("function", ["add", "div", "sin", "neg", "max"])
def test_the_deepest_tree_can_be_walked(function: str) -> None:
    made = _nested(MAX_DEPTH, function)
    assert made.names() == {"a"}
    assert made == _nested(MAX_DEPTH, function)
    assert hash(made) == hash(_nested(MAX_DEPTH, function))
    assert simplified(made).names() == {"a"}
    assert replaced(made, {Name("a"): Name("b")}).names() == {"b"}
    assert np.isfinite(made.evaluate({"a": 0.5}))
    assert "a" in str(made)
    assert "Name(name='a')" in repr(made)


def test_a_tree_that_is_too_deep_is_refused_by_a_sentence() -> None:
    with pytest.raises(ModelError, match="more than 300 operations one inside the other; give a part of it as a param"):
        _nested(2000, "add")


def test_an_expression_shows_how_it_is_made() -> None:
    made = -(Name("a") + 1.0)
    assert repr(made) == (
        "Call(function='neg', arguments=(Call(function='add', arguments=(Name(name='a'), Number(value=1.0))),))"
    )


def test_angles_of_cosines_stay_in_sight_when_constants_are_folded() -> None:
    kept = Call("cos", (Number(0.3),))
    assert simplified(kept * Name("a") * 1.0) == kept * Name("a")
    assert simplified(Call("cos", (Number(0.0),)) * Name("a")) == Name("a")
