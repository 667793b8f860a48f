"""Floats as exact numbers."""

from fractions import Fraction

import pytest

from linkwright.symbolic.formulas.exact import rational


@pytest.mark.parametrize(
    ("x", "plain"),
    [
        (0.10666666666666667, Fraction(8, 75)),
        (-0.10666666666666667, Fraction(-8, 75)),
        (1 / 3, Fraction(1, 3)),
        (0.6900000000000001, Fraction(69, 100)),
        (1.5349999999999995, Fraction(1535, 1000)),
        (0.1 + 0.2, Fraction(3, 10)),
        (6.900000000000001e-9, Fraction(69, 10**10)),
    ],
)
def test_what_rounding_has_left_beside_a_plain_number_is_that_number(x, plain):
    assert rational(x) == plain


@pytest.mark.parametrize(
    "x", [0.333, 0.3333333333333, 0.7071067811865476, 3.141592653589793, 0.69000000000001, 2.0**70, 1e-300 / 3, 0.0]
)
def test_every_other_number_is_its_shortest_decimal(x):
    assert rational(x) == Fraction(repr(x))
    assert float(rational(x)) == x
