"""Every reduction over time: its derivatives against differences of its value."""

from __future__ import annotations

import numpy as np
import pytest

from linkwright.outputs.output_functions import REDUCTIONS

SMOOTH = [name for name, reduction in REDUCTIONS.items() if reduction.slopes is not None]


@pytest.mark.parametrize("name", SMOOTH)
def test_slopes_and_curvature_are_those_of_the_value(name: str) -> None:
    rng = np.random.default_rng(5)
    t, y, dy = np.cumsum(rng.uniform(0.1, 1.0, 9)), rng.normal(size=9), rng.normal(size=(9, 2))
    reduction, h = REDUCTIONS[name], 1e-4

    def value(p: np.ndarray) -> float:
        return float(reduction.value((y + dy @ p)[:, None], t)[0])

    steps = h * np.eye(2)
    first = [(value(step) - value(-step)) / (2 * h) for step in steps]
    np.testing.assert_allclose(reduction.by_values(y, t) @ dy, first, rtol=1e-6, atol=1e-8)
    pairs = [[value(a + b) - value(a - b) - value(b - a) + value(-a - b) for a in steps] for b in steps]
    bent = np.zeros((2, 2)) if reduction.curvature is None else reduction.curvature(y, dy)
    np.testing.assert_allclose(bent, np.array(pairs) / (4 * h * h), atol=1e-5)


@pytest.mark.parametrize("name", SMOOTH)
def test_one_time_point_is_enough(name: str) -> None:
    assert REDUCTIONS[name].by_values(np.array([2.0]), np.array([0.0])).shape == (1,)
