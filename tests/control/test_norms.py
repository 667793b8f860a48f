"""H∞ norms: closed forms, both bounds, and another package's routine."""

import numpy as np
import pytest
from linear_cases import HZ16, grid_norm, random_system, resonance, sampled_case

from linkwright.control.hinfinity.robustness import hinf_norm
from linkwright.control.linear_systems import delay, from_polynomials, gains, series, system


def test_a_first_order_lag_has_the_gain_at_zero() -> None:
    norm = hinf_norm(from_polynomials([1.0], [1.0, 1.0]))
    assert norm.lower == pytest.approx(1.0, abs=1e-14)
    assert norm.frequency == 0.0
    assert norm.lower <= norm.upper <= 1 + 1e-7


@pytest.mark.parametrize("damping", [0.5, 0.1, 0.005, 1e-4])
def test_a_resonance_peaks_as_its_damping_says(damping: float) -> None:
    norm = hinf_norm(resonance(damping))
    assert norm.upper == pytest.approx(1 / (2 * damping * np.sqrt(1 - damping**2)), rel=1e-7)
    assert norm.frequency == pytest.approx(HZ16 * np.sqrt(1 - 2 * damping**2), rel=1e-3)


def test_a_delay_changes_no_norm() -> None:
    assert hinf_norm(series(resonance(0.005), delay(0.004))).upper == pytest.approx(100.00125, rel=1e-7)
    G = sampled_case(late=0, damping=0.005)["G"]
    late = series(G, delay(0.02, 0.002))
    assert hinf_norm(late).upper == pytest.approx(hinf_norm(G).upper, rel=1e-7)


def test_an_unstable_system_has_no_finite_norm() -> None:
    assert hinf_norm(from_polynomials([1.0], [1.0, -1.0])).upper == np.inf
    assert hinf_norm(system(([1.0], [1.0, -1.01]), dt=0.1)).upper == np.inf
    assert hinf_norm(from_polynomials([1.0], [1.0, 0.0])).upper == np.inf


def test_gains_and_nothing_have_their_norms() -> None:
    assert hinf_norm(gains([[3.0, 4.0]])).upper == pytest.approx(5.0)
    assert hinf_norm(from_polynomials([0.0], [1.0, 1.0])).upper == 0.0


def test_a_high_pass_peaks_at_infinity() -> None:
    norm = hinf_norm(from_polynomials([2.0, 0.0], [1.0, 1.0]))
    assert norm.upper == pytest.approx(2.0, rel=1e-7)
    assert norm.frequency == np.inf


@pytest.mark.parametrize("dt", [None, 0.002])
def test_a_dense_grid_never_exceeds_the_upper_bound(dt: float | None) -> None:
    rng = np.random.default_rng(7)
    for _ in range(30):
        S = random_system(rng, int(rng.integers(1, 15)), int(rng.integers(1, 4)), int(rng.integers(1, 4)), dt)
        norm, grid = hinf_norm(S), grid_norm(S, 3000)
        assert grid <= norm.upper
        assert grid == pytest.approx(norm.upper, rel=2e-3)
        assert norm.upper <= norm.lower * (1 + 1e-6)


@pytest.mark.parametrize("dt", [None, 0.002])
def test_the_norm_is_that_of_slicot(dt: float | None) -> None:
    slycot = pytest.importorskip("slycot", reason="slycot is not installed: its ab13dd is the oracle")
    rng = np.random.default_rng(3)
    for _ in range(40):
        S = random_system(rng, int(rng.integers(1, 15)), int(rng.integers(1, 4)), int(rng.integers(1, 4)), dt)
        n, m, p = S.order, S.inputs, S.outputs
        kind = "C" if dt is None else "D"
        theirs = slycot.ab13dd(kind, "I", "S", "D", n, m, p, S.A, np.eye(n), S.B, S.C, S.D, 1e-10)[0]
        assert hinf_norm(S).upper == pytest.approx(theirs, rel=1e-6)
