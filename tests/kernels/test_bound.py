"""Kernels bound to their arrays."""

from __future__ import annotations

import numpy as np
import pytest

import linkwright as lw
from linkwright.errors import ShapeError
from linkwright.kernels.back_ends import compiled


def recurrence():
    """x ← x/2 + rate, for two numbers; and their sum."""
    return lw.record(lambda x, rate: (0.5 * x + rate, np.array([x[0] + x[1]])), 2, 2)


def recorded_kernel():
    """The kernel of the same."""
    return compiled(recurrence())


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_states_in_order_begin_with_what_the_ones_before_left(monkeypatch, backend):
    if backend == "numpy":
        monkeypatch.setattr("linkwright.kernels.bound_kernel.native", lambda: False)
    x, sums, rate = np.zeros((12, 2)), np.full((11, 1), np.nan), np.array([1.0, -3.0])
    x[2] = [8.0, 4.0]
    run = recurrence().marched([x[:-1], rate], [x[1:], sums], 11)
    run(2, 9)
    for k in range(2, 11):
        assert np.array_equal(x[k + 1], 0.5 * x[k] + rate)
        assert sums[k, 0] == x[k].sum()
    assert np.isnan(sums[:2]).all()
    assert not x[:2].any()


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("count", [1, 7, 8, 16, 21])
def test_so_many_states_are_computed_from_the_arrays_as_they_are_at_each_call(monkeypatch, backend, count):
    if backend == "numpy":
        monkeypatch.setattr("linkwright.kernels.bound_kernel.native", lambda: False)
    x, rate = np.random.default_rng(0).standard_normal((count, 2)), np.array([1.0, -3.0])
    there, sums = np.full((count, 2), np.nan), np.full((count, 1), np.nan)
    run = recorded_kernel().bound([x, rate], [there, sums], count)
    for change in (0.0, 2.0):
        x[:, 0] += change
        rate[1] += change
        run()
        assert np.array_equal(there, 0.5 * x + rate)
        assert np.array_equal(sums, x.sum(axis=1, keepdims=True))


def test_states_outside_the_arrays_are_refused():
    x, sums = np.zeros((4, 2)), np.zeros((3, 1))
    run = recurrence().marched([x[:-1], np.zeros(2)], [x[1:], sums], 3)
    with pytest.raises(ShapeError, match="3 states"):
        run(1, 3)


def test_an_array_of_another_length_is_refused():
    x = np.zeros((4, 2))
    with pytest.raises(ShapeError, match=r"\(3, 1\)"):
        recurrence().marched([x[:-1], np.zeros(2)], [x[1:], np.zeros((4, 1))], 3)
