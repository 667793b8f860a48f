"""Formulas as data: tidied ones read as people write them and have the same values."""

from fractions import Fraction

import formulas
import pytest
from formulas import l2, m2, m3, q, term
from hypothesis import given, settings

from linkwright.symbolic.formulas.formula import Applied, Sum, evaluate, tidied
from linkwright.symbolic.printing import text


def bracket(*terms) -> Sum:
    return Sum(tuple(terms))


@pytest.mark.parametrize(
    ("formula", "written"),
    [
        (bracket(term(1, bracket(term(5)), bracket(term(1, q[0]), term(-1)))), "5*(theta1 - 1)"),
        (bracket(term(1, q[0], bracket(term(2, m2)))), "2*m2*theta1"),
        (bracket(term(-1, bracket(term(1, q[0]), term(-1)))), "-theta1 + 1"),
        (bracket(term(3, (bracket(term(2, l2)), -2), l2)), "3/4/l2"),
        (bracket(term(1, bracket(), m2), term(1, m3)), "m3"),
        (bracket(term(1, Applied("max", (Sum(), bracket(term(1, bracket(term(2)), m2)))))), "max(0, 2*m2)"),
    ],
)
def test_tidied_formulas_have_no_brackets_of_one_term(formula: Sum, written: str) -> None:
    assert text(tidied(formula)) == written


@settings(max_examples=25, deadline=None, derandomize=True)
@given(formulas.formulas, formulas.values)
def test_tidied_formulas_have_the_same_values(formula: Sum, at: dict[str, float]) -> None:
    made = evaluate(tidied(formula), at)
    assert abs(made - evaluate(formula, at)) <= 1e-12 * formulas.magnitude(formula, at)


def test_a_zero_below_the_line_stays_where_it_is() -> None:
    formula = bracket(term(Fraction(1), (Sum(), -1)))
    assert tidied(formula) == formula
