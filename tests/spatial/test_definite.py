"""Inverses of small symmetric matrices, plain and rank-revealing, over floats and on the tape."""

from __future__ import annotations

import numpy as np
import pytest

import linkwright as lw
from linkwright.spatial.algebra import RANK_TOLERANCE, LeastSquares, Limit, Pivoted, inverse, swept


@pytest.mark.parametrize("n", range(7))
def test_the_inverse_of_a_definite_matrix_is_numpys(n: int) -> None:
    x = np.random.default_rng(n).standard_normal((n, n + 2))
    d = x @ x.T
    assert np.allclose(inverse(d), np.linalg.inv(d), rtol=1e-10)


@pytest.mark.parametrize("rank", range(6))
@pytest.mark.parametrize("units", [1.0, 1e-6])
def test_a_generalised_inverse_solves_what_can_be_solved(rank: int, units: float) -> None:
    """D G D = D and G D G = G for any rank, with rows in different units."""
    x = np.random.default_rng(rank).standard_normal((5, rank))
    x[3:] *= units
    d = x @ x.T
    g = swept(d, np.diag(d) + units**2, RANK_TOLERANCE)[0]
    size = np.sqrt(np.outer(np.diag(d), np.diag(d))) + 1e-300
    assert np.all(np.abs(d @ g @ d - d) <= 1e-9 * size)
    assert np.count_nonzero(np.diag(g)) == rank


def test_a_generalised_inverse_chooses_its_pivots_when_it_runs() -> None:
    """One recorded program for every rank; what is not a number stays so."""
    program = lw.record(lambda d: swept(d, np.ones(2), RANK_TOLERANCE)[0], (2, 2))
    assert np.allclose(program(np.array([[2.0, 0.0], [0.0, 4.0]])), [[0.5, 0.0], [0.0, 0.25]])
    assert np.allclose(program(np.ones((2, 2))), [[1.0, 0.0], [0.0, 0.0]])
    assert np.isnan(program(np.full((2, 2), np.nan))).any()


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_pivots_by_size_leave_out_what_repeats_and_least_squares_what_contradicts(rank: int) -> None:
    rng = np.random.default_rng(rank)
    units = 10.0 ** rng.uniform(-3, 3, 5)
    rows = units[:, None] * rng.standard_normal((5, rank))
    d, scales = rows @ rows.T, units**2
    factors = [kind(d, scales, [Limit(1e-10, scales)] * 5) for kind in (Pivoted, LeastSquares)]
    right = d @ rng.standard_normal(5)
    for f in factors:
        np.testing.assert_allclose((d @ f.solve(right)) / units, right / units, atol=1e-9 * np.abs(right / units).max())
    # What no combination of the rows can meet is left as least squares by the units leave it.
    wrong = right + units * rng.standard_normal(5)
    q, _ = np.linalg.qr(rows / units[:, None])
    np.testing.assert_allclose((d @ factors[1].solve(wrong)) / units, q @ (q.T @ (wrong / units)), atol=1e-9)
    recorded = lw.record(lambda d, r: LeastSquares(d, scales, [Limit(1e-10, scales)] * 5).solve(r), (5, 5), 5)
    np.testing.assert_allclose(recorded(d, wrong) * units, factors[1].solve(wrong) * units, rtol=1e-6)


def test_rows_that_are_nearly_dependent_for_a_moment_wait_for_others() -> None:
    tiny = 1e-7
    rows = np.array([[1.0, 0.0], [1.0, tiny], [0.0, 1.0]])
    d, right = rows @ rows.T, rows @ np.array([0.3, -0.2])
    x = Pivoted(d, np.ones(3), [Limit(part, np.ones(3)) for part in (1e-14, 1e-14, 1e-10)]).solve(right)
    np.testing.assert_allclose(rows.T @ x, [0.3, -0.2], rtol=1e-15)
