"""Sampling: exact holds, prewarping, and the verification of a sampled loop."""

import numpy as np
import pytest
from linear_cases import HZ16, paper_case, resonance

from linkwright.control.hinfinity.mixed_sensitivity import discretise, mixed_sensitivity
from linkwright.control.linear_systems import from_polynomials, gains, sampled
from linkwright.errors import DesignError, ModelError

pytestmark = pytest.mark.filterwarnings("ignore::linkwright.errors.LinkwrightWarning")


def test_a_hold_is_exact_at_the_samples() -> None:
    S = sampled(from_polynomials([2.0], [1.0, 4.0]), 0.1, "zoh")
    assert S.A[0, 0] == pytest.approx(np.exp(-0.4))
    assert (S.C @ S.B / (1 - S.A))[0, 0] == pytest.approx(0.5)


def test_prewarping_is_exact_at_its_frequency() -> None:
    G, at = resonance(0.05), np.array([HZ16])
    exact = G.at(at)
    np.testing.assert_allclose(sampled(G, 0.002, "tustin", HZ16).at(at), exact, rtol=1e-9)
    assert abs(sampled(G, 0.002).at(at) / exact - 1).max() > 1e-3


def test_the_sampled_loop_is_measured() -> None:
    design = mixed_sensitivity(**paper_case())
    fast = discretise(design.system, 2e-4, loop=design)
    slow = discretise(design.system, 2e-3, loop=design)
    assert fast.continuous.upper == pytest.approx(design.norm.upper, rel=1e-6)
    # The hold costs half a period of delay: the faster the sampling, the closer to the continuous cost.
    assert design.norm.upper < fast.norm.upper < 1.1 * design.norm.upper
    assert fast.norm.upper < slow.norm.upper


def test_a_loop_that_sampling_breaks_is_an_error() -> None:
    design = mixed_sensitivity(**paper_case())
    with pytest.raises(DesignError, match="sample faster"):
        discretise(design.system, 0.02, loop=design)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"method": "foh"}, "method is"),
        ({"dt": 0.0}, "greater than zero"),
        ({"prewarp": 1e4}, "prewarp is a frequency"),
    ],
)
def test_bad_requests_are_said(change: dict, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        discretise(gains(1.0), **{"dt": 0.01, **change})


def test_a_sampled_system_is_not_sampled_again() -> None:
    with pytest.raises(ModelError, match="cannot be sampled again"):
        sampled(sampled(resonance(), 0.01), 0.02)
