"""The coefficients of the methods, against what they must satisfy and against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import DOP853, RK45

from linkwright.errors import NameNotFound
from linkwright.model.requested_analysis import FIXED_STEP_METHODS, SIMULATION_METHODS
from linkwright.simulation.integrators import METHODS, TABLEAUX, tableau_of


def test_models_may_name_the_methods_that_there_are():
    assert SIMULATION_METHODS == METHODS
    assert {tableau.name for tableau in TABLEAUX.values() if not tableau.adaptive} == set(FIXED_STEP_METHODS)


def dense_row(row, n):
    return np.array([row.get(k, 0.0) for k in range(n)])


@pytest.mark.parametrize("tableau", TABLEAUX.values(), ids=list(TABLEAUX))
def test_a_stage_is_at_the_time_that_its_row_sums_to(tableau):
    for rows, times in ((tableau.a, tableau.c), (tableau.extra_a, tableau.extra_c)):
        for row, c in zip(rows, times, strict=True):
            assert sum(row.values()) == pytest.approx(c, abs=1e-14)
    assert sum(tableau.b.values()) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("tableau", TABLEAUX.values(), ids=list(TABLEAUX))
def test_weights_integrate_powers_of_time_up_to_the_order(tableau):
    c = np.array(tableau.c)
    b = dense_row(tableau.b, len(c))
    for k in range(tableau.order):
        assert b @ c**k == pytest.approx(1.0 / (k + 1), abs=1e-13)


@pytest.mark.parametrize("tableau", [t for t in TABLEAUX.values() if t.adaptive], ids=lambda t: t.name)
def test_errors_vanish_for_constant_slopes(tableau):
    for row in tableau.errors:
        assert sum(row.values()) == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize(("name", "theirs"), [("rk45", RK45), ("dop853", DOP853)])
def test_coefficients_are_those_of_scipy(name, theirs):
    t = TABLEAUX[name]
    n = t.stages
    rows = np.array([dense_row(row, n) for row in t.a])
    np.testing.assert_allclose(rows[:, : theirs.A.shape[1]], theirs.A[:n, :n], atol=1e-15)
    np.testing.assert_allclose(dense_row(t.b, n), theirs.B, atol=1e-15)
    np.testing.assert_allclose(t.c, theirs.C[:n], atol=1e-15)
    errors = [theirs.E] if name == "rk45" else [theirs.E5, theirs.E3]
    for row, wanted in zip(t.errors, errors, strict=True):
        found = dense_row(row, n + 1)
        np.testing.assert_allclose(found * np.sign(found[0]), wanted * np.sign(wanted[0]), atol=1e-15)


def test_a_method_that_is_misspelt_is_told_its_likeness():
    with pytest.raises(NameNotFound, match="did you mean 'dop853'"):
        tableau_of("dop583")
