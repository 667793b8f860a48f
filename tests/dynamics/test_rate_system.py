"""Rates from constraint equations as straight code, against least squares by NumPy."""

import numpy as np
import pytest

from linkwright.dynamics.closed.rate_system import Block, LeastNorm, RateSystem, Undetermined, blocks_of, known_alone
from linkwright.tape.build import record


def _solved(g, right, refined=True):
    """x by recorded code, with the zeros of g folded, and its regularity."""
    pattern = g != 0.0
    blocks, (m, n) = blocks_of(pattern), g.shape

    def solve(entries, b):
        rows = np.array([[entries[i, j] if pattern[i, j] else 0.0 for j in range(n)] for i in range(m)])
        system = RateSystem(rows, blocks, np.ones(n), np.ones(m))
        return system.solve(b, refined=refined), np.array([system.regularity])

    x, regularity = record(solve, (m, n), m)(g, right)
    return x, float(regularity[0]), blocks


@pytest.mark.parametrize("seed", range(6))
def test_square_systems_are_solved_block_by_block(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.permutation([1, 2, 2, 3])
    n = int(sizes.sum())
    g, at = np.zeros((n, n)), 0
    for size in sizes:  # each block needs those before it
        g[at : at + size, : at + size] = rng.normal(size=(size, at + size)) * (rng.random((size, at + size)) < 0.7)
        g[at : at + size, at : at + size] = rng.normal(size=(size, size)) + 2.0 * np.eye(size)
        at += size
    g = g[rng.permutation(n)][:, rng.permutation(n)]
    right = rng.normal(size=n)
    x, regularity, blocks = _solved(g, right)
    assert sorted(len(b.columns) for b in blocks) == [1, 2, 2, 3]
    np.testing.assert_allclose(x, np.linalg.solve(g, right), rtol=1e-9, atol=1e-10)
    assert 0.0 < regularity <= 1.0


@pytest.mark.parametrize("seed", range(4))
def test_equations_that_repeat_others_are_met_with_them(seed):
    rng = np.random.default_rng(seed)
    g = rng.normal(size=(4, 3))
    g = np.concatenate([g, rng.normal(size=(2, 4)) @ g, np.zeros((1, 3))])
    x = rng.normal(size=3)
    solution, _, blocks = _solved(g, g @ x)
    assert [len(b.rows) for b in blocks] == [6]
    np.testing.assert_allclose(solution, x, rtol=1e-11, atol=1e-12)


def test_the_regularity_is_the_squared_sine_between_two_columns():
    for angle in (0.1, 1.0, 2.5):
        g = np.array([[3.0, 0.5 * np.cos(angle)], [1e-9, 0.5 * np.sin(angle)]])
        assert _solved(g, np.ones(2))[1] == pytest.approx(np.sin(angle) ** 2, rel=1e-6)


def test_a_rate_that_nothing_determines_is_refused():
    with pytest.raises(Undetermined):
        blocks_of(np.array([[True, True, False], [True, True, False], [True, False, False]]))
    with pytest.raises(Undetermined):
        blocks_of(np.ones((2, 3), bool))


def test_rows_of_one_plain_number_are_known_alone():
    def rows(x):
        g = np.array([[0.0, 2.0, 0.0], [x[0], 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 3.0, 0.0]])
        assert known_alone(g) == {1: 0}
        return x

    record(rows, 1)
    assert blocks_of(np.zeros((3, 0), bool)) == []
    assert blocks_of(np.eye(2, dtype=bool)[::-1]) == [Block((1,), (0,)), Block((0,), (1,))]


@pytest.mark.parametrize("seed", range(3))
def test_rates_of_least_norm_solve_the_system_of_their_multipliers(seed):
    rng = np.random.default_rng(seed)
    m, n = 3, 5
    g, root, right = rng.normal(size=(m, n)), rng.normal(size=(n, n)), rng.normal(size=m)
    metric = root @ root.T + np.eye(n)

    def solve(entries, a, b, y):
        system = LeastNorm(entries, a, np.array([1.0, 10.0, 0.1]))
        return system.solve(b, refined=True), system.free(y)

    y = rng.normal(size=n)
    x, free = record(solve, (m, n), (n, n), m, n)(g, metric, right, y)
    kkt = np.block([[metric, g.T], [g, np.zeros((m, m))]])
    np.testing.assert_allclose(x, np.linalg.solve(kkt, np.concatenate([np.zeros(n), right]))[:n], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(g @ free, 0.0, atol=1e-10)
    np.testing.assert_allclose(free, np.linalg.solve(kkt, np.concatenate([metric @ y, np.zeros(m)]))[:n], atol=1e-9)
