"""Order reduction: known singular values, the error bound, unstable poles, and what a loop allows."""

import numpy as np
import pytest
from linear_cases import random_system, sampled_case

from linkwright.control.hinfinity.mixed_sensitivity import mixed_sensitivity
from linkwright.control.hinfinity.reduction import hankel_singular_values, reduce
from linkwright.control.hinfinity.robustness import hinf_norm
from linkwright.control.linear_systems import System, block_diagonal, from_polynomials
from linkwright.errors import DesignError, ModelError

pytestmark = pytest.mark.filterwarnings("ignore::linkwright.errors.LinkwrightWarning")


def difference(one: System, other: System) -> System:
    both = block_diagonal([one, other])
    m, p = one.inputs, one.outputs
    B = both.B @ np.vstack([np.eye(m), np.eye(m)])
    left = np.hstack([np.eye(p), -np.eye(p)])
    return System(both.A, B, left @ both.C, one.D - other.D, one.dt)


def test_a_first_order_lag_has_half_its_gain() -> None:
    np.testing.assert_allclose(hankel_singular_values(from_polynomials([3.0], [1.0, 2.0])), [0.75])


@pytest.mark.parametrize("dt", [None, 0.01])
def test_the_error_is_at_most_twice_what_was_left_out(dt: float | None) -> None:
    S = random_system(np.random.default_rng(4), 8, 2, 2, dt)
    for order in (2, 5, 7):
        small = reduce(S, order)
        assert small.order == order
        assert small.system.dt == dt
        left_out = 2 * float(small.hankel[order:].sum())
        assert hinf_norm(difference(S, small.system)).lower <= left_out * (1 + 1e-6) + 1e-9


def test_unstable_poles_are_kept() -> None:
    fast = random_system(np.random.default_rng(2), 4, 1, 1)
    S = block_diagonal([fast, from_polynomials([1.0], [1.0, -2.0, 5.0])])
    small = reduce(S, 3)
    assert small.kept == 2
    unstable = small.system.poles()[small.system.poles().real > 0]
    np.testing.assert_allclose(np.sort_complex(unstable), [1 - 2j, 1 + 2j], rtol=1e-9)
    with pytest.raises(ModelError, match="2 unstable poles"):
        reduce(S, 1)


@pytest.mark.parametrize("pole", [-1.0, 1.0, -1.2])
def test_a_sampled_pole_on_or_beyond_the_circle_is_kept(pole: float) -> None:
    weak = from_polynomials([1e-3], [1.0, -0.5], 0.1)
    both = block_diagonal([from_polynomials([1.0], [1.0, -pole], 0.1), weak])
    S = System(both.A, both.B @ [[1.0], [1.0]], [[1.0, 1.0]] @ both.C, [[0.0]], 0.1)
    small = reduce(S, 1)
    assert small.kept == 1
    np.testing.assert_allclose(small.system.poles(), [pole], rtol=1e-12)
    w = np.array([3.0, 17.0])
    assert np.abs(small.system.at(w) - S.at(w)).max() <= 2 * float(small.hankel.sum())


def test_the_loop_decides_how_far_it_goes() -> None:
    design = mixed_sensitivity(**sampled_case())
    small = reduce(design.system, loop=design)
    assert small.order < design.system.order
    assert small.norm.upper <= 1.05 * design.norm.upper
    assert design.cost(K=small.system).upper == pytest.approx(small.norm.upper, rel=1e-9)
    lower = [n for n in small.tried if n < small.order]
    assert all(small.tried[n] > 1.05 * design.norm.upper for n in lower)


def test_an_order_that_breaks_the_loop_is_refused() -> None:
    design = mixed_sensitivity(**sampled_case())
    with pytest.raises(DesignError, match="not stable"):
        reduce(design.system, 1, loop=design)
    with pytest.raises(ModelError, match="give an order"):
        reduce(design.system)
