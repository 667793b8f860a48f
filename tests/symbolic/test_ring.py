"""Exact polynomials as terms and as numbers."""

from fractions import Fraction

import numpy as np
import pytest

from linkwright.symbolic.formulas import ring as module
from linkwright.symbolic.formulas.exact import times
from linkwright.symbolic.formulas.formula import Symbol, Trig, evaluate
from linkwright.symbolic.formulas.ring import Compiled, Ring, terms

Q = Symbol("q1", "coordinate")
A = Symbol("a")


def made() -> Ring:
    return Ring((Q,), [((Q, Fraction(1)),)], [times(1, A)])


def test_polynomials_at_many_points_are_their_formulas_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HELD", 8)  # so that points are taken in several parts
    ring = made()
    c, a, q = ring.symbol(Trig("cos", ring.angles[0])), ring.symbol(A), ring.symbol(Q)
    polys = [3 * a**2 * c - q / 7 + 1, ring.zero, a**2 * c + c]
    points = np.random.default_rng(1).normal(size=(2, 11))
    found = Compiled(polys)(ring.values({"q1": points[0], "a": points[1]}))
    formulas = [ring.formula(p) for p in polys]
    wanted = [[evaluate(f, {"q1": x, "a": y}) for f in formulas] for x, y in points.T.tolist()]
    assert found == pytest.approx(np.array(wanted), rel=1e-14)


def test_a_polynomial_is_made_of_its_terms() -> None:
    ring = made()
    p = ring.poly(times(Fraction(-3, 7), A, A, Q)) + ring.symbol(Q) - 5
    assert ring.from_terms(dict(terms(p))) == p
