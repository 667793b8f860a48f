"""Weights: above the data, close to it, stable, minimum-phase, biproper."""

import numpy as np
import pytest
from linear_cases import resonance

from linkwright.control.hinfinity.weights import (
    error_weight,
    first_order,
    from_above,
    performance_weight,
    relative_error,
)
from linkwright.control.linear_systems import System, from_polynomials, system
from linkwright.errors import ModelError, ShapeError

W = np.geomspace(1.0, 1000.0, 150)


def inverse(S: System) -> System:
    D = np.linalg.inv(S.D)
    return System(S.A - S.B @ D @ S.C, S.B @ D, -D @ S.C, D, S.dt)


@pytest.mark.parametrize("dt", [None, 0.002])
@pytest.mark.parametrize("order", [0, 1, 2, 4])
def test_a_fit_lies_above_ragged_data_and_can_be_inverted(order: int, dt: float | None) -> None:
    rng = np.random.default_rng(1)
    data = 0.1 + 0.2 * np.abs(resonance(0.05).at(W)[:, 0, 0] - 1) * rng.uniform(0.7, 1.0, W.size)
    fit = from_above(W, data, order, dt=dt)
    assert fit.order == order
    assert fit.stable()
    assert inverse(fit).stable()
    assert np.all(np.abs(fit.at(W)[:, 0, 0]) >= data)


@pytest.mark.parametrize("dt", [None, 0.002])
def test_a_filter_of_that_order_is_found_again(dt: float | None) -> None:
    true = from_polynomials([3.0, 40.0, 900.0], [1.0, 90.0, 4000.0])
    size = np.abs(true.at(W if dt is None else 2 / dt * np.tan(W * dt / 2))[:, 0, 0])
    ratio = np.abs(from_above(W, size, 2, dt=dt).at(W)[:, 0, 0]) / size
    assert ratio.min() >= 1
    assert ratio.max() < 1.002


def test_more_order_is_closer() -> None:
    data = 0.05 + np.abs(resonance(0.1).at(W)[:, 0, 0])
    worst = [float((np.abs(from_above(W, data, n).at(W)[:, 0, 0]) / data).max()) for n in (0, 2, 4)]
    assert worst[2] < worst[1] < worst[0]


def test_a_model_error_becomes_a_weight() -> None:
    pytest.importorskip("control")
    model, measured = resonance(0.05).at(W)[:, 0, 0], resonance(0.05, 105.0).at(W)[:, 0, 0]
    weight = system(error_weight(W, measured, model, 4, safety=1.2))
    assert np.all(np.abs(weight.at(W)[:, 0, 0]) >= 1.2 * relative_error(W, measured, model))


def test_a_performance_weight_has_its_gains_and_no_integrator() -> None:
    S = first_order(20.0, 100.0, 0.5)
    np.testing.assert_allclose(np.abs(S.at([0.0, 20.0, 1e9])[:, 0, 0]), [100.0, 1.0, 0.5], rtol=1e-6)
    assert S.stable()
    pytest.importorskip("control")
    shaped = system(performance_weight(50.0, w=W, spectrum=1 / (1 + (W / 10) ** 2), order=2))
    assert abs(shaped.at([1.0])[0, 0, 0]) >= 98.0
    assert shaped.stable()
    z = system(performance_weight(20.0, dt=0.002))
    assert abs(z.at([20.0])[0, 0, 0]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: from_above(W, -W, 2), "negative"),
        (lambda: from_above(W, 0 * W, 2), "all magnitudes are zero"),
        (lambda: from_above(W, W, 40), "order of a weight"),
        (lambda: from_above(W, W, 2, dt=0.1), "half the sampling"),
        (lambda: performance_weight(20.0, low=np.inf), "integrator"),
        (lambda: performance_weight(20.0, w=W), "both"),
        (lambda: relative_error(W, W, 0 * W), "the model is zero"),
    ],
)
def test_bad_data_are_said(call, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        call()
    with pytest.raises(ShapeError):
        from_above(W, W[:3], 2)
