"""Gain margins against the poles of the closed loop, at the ends of the frequencies too."""

import numpy as np
import pytest

from linkwright.control.hinfinity.robustness import _feedback, margins
from linkwright.control.linear_systems import System, block_diagonal, from_polynomials, gains, series

CASES = {
    "unstable plant, ω = 0": (([1.0], [1.0, -1.0], None), 2.0, 0.5, np.inf),
    "negative gain, ω = 0": (([-0.5], [1.0, 1.0], None), 1.0, 0.0, 2.0),
    "negative gain, ω = ∞": (([-0.5, 0.0], [1.0, 1.0], None), 1.0, 0.0, 2.0),
    "unstable plant, both ends": (([-0.25, 2.0], [1.0, -1.0], None), 1.0, 0.5, 4.0),
    "unstable plant, z = 1": (([0.1], [1.0, -1.1], 0.1), 2.0, 0.5, 10.5),
    "negative gain, z = 1": (([0.5], [1.0, 0.5], 0.1), -1.0, 0.0, 3.0),
    "z = −1": (([0.2], [1.0, 0.5], 0.1), 1.0, 0.0, 2.5),
    "unstable plant, z = −1": (([-0.1], [1.0, 1.1], 0.1), 2.0, 0.5, 10.5),
    "integrator": (([1.0], [1.0, 0.0], None), 1.0, 0.0, np.inf),
    "sampled integrator": (([1.0], [1.0, -1.0], 0.1), 0.5, 0.0, 4.0),
}


def closed_is_stable(L: System, factor: float) -> bool:
    return _feedback(series(gains(factor * np.eye(L.outputs), L.dt), L)).stable()


@pytest.mark.parametrize("name", CASES)
def test_the_loop_breaks_at_its_gain_margins_and_not_before(name: str) -> None:
    (num, den, dt), K, down, up = CASES[name]
    G = from_polynomials(num, den, dt)
    found = margins(G, K)
    assert found.stable
    assert found.gain_down == pytest.approx(down, rel=1e-9)
    assert found.gain_up == pytest.approx(up, rel=1e-9)
    L = series(gains(K, dt), G)
    inside = [1.001 * down if down else 1e-3, 0.999 * up if np.isfinite(up) else 1e3]
    outside = [0.999 * down] * (down > 0) + [1.001 * up] * bool(np.isfinite(up))
    assert all(closed_is_stable(L, factor) for factor in inside)
    assert not any(closed_is_stable(L, factor) for factor in outside)


def test_of_several_loops_the_one_that_breaks_first_counts() -> None:
    G = block_diagonal([from_polynomials([1.0], [1.0, -1.0]), from_polynomials([-0.5, 0.0], [1.0, 1.0])])
    found = margins(G, np.diag([2.0, 1.0]))
    assert (found.gain_down, found.gain_up) == (pytest.approx(0.5), pytest.approx(2.0))
