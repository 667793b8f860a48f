"""Residuals and their Jacobians, against the difference equations one sample at a time and recorded derivatives."""

import numpy as np
import pytest
from scipy.optimize import least_squares

import linkwright as lw
from linkwright.control.identification.fitting import fit
from linkwright.control.identification.prediction import Orders, Predictor, reflected, split, stable

FORMS = {
    "box-jenkins": (Orders(2, 2, 2, 1, 2), False),
    "long B, no delay": (Orders(4, 1, 0, 2, 0), False),
    "output error": (Orders(1, 3, 0, 0, 1), False),
    "armax": (Orders(2, 2, 2, 2, 1), True),
    "arx": (Orders(3, 2, 0, 2, 1), True),
}


def predictor(form: str, initial: str, n: int = 60) -> tuple[Predictor, np.ndarray]:
    orders, shared = FORMS[form]
    rng = np.random.default_rng(3)
    out = Predictor(rng.standard_normal(n), rng.standard_normal(n), orders, shared=shared, initial=initial)
    return out, 0.3 * rng.standard_normal(out.size)


def by_hand(p: Predictor, x: np.ndarray) -> np.ndarray:
    """The residuals by the difference equations, over any scalar."""
    o, k = p.orders, p.count
    B, F = list(x[: o.nb]), [1.0, *x[o.nb : o.nb + o.nf]]
    C = [1.0, *x[o.nb + o.nf : o.nb + o.nf + o.nc]]
    D = F if p.shared else [1.0, *x[o.nb + o.nf + o.nc : k]]
    plant, noise = x[k : k + p.plant_start], x[k + p.plant_start :]
    w, v, e = [], [], []
    for t in range(len(p.y)):
        forced = sum((B[i] * p.u[t - o.nk - i] for i in range(o.nb) if t - o.nk - i >= 0), 0.0)
        forced = forced + plant[t] if t < len(plant) else forced
        if p.shared:
            right = sum((F[i] * p.y[t - i] for i in range(len(F)) if t - i >= 0), 0.0) - forced
        else:
            w.append(forced - sum((F[i] * w[t - i] for i in range(1, len(F)) if t - i >= 0), 0.0))
            v.append(p.y[t] - w[t])
            right = sum((D[i] * v[t - i] for i in range(len(D)) if t - i >= 0), 0.0)
        right = right + noise[t] if t < len(noise) else right
        e.append(right - sum((C[i] * e[t - i] for i in range(1, len(C)) if t - i >= 0), 0.0))
    return np.array(e)


@pytest.mark.parametrize("initial", ["zero", "estimate"])
@pytest.mark.parametrize("form", FORMS)
def test_residuals_follow_the_difference_equation(form: str, initial: str) -> None:
    p, x = predictor(form, initial)
    np.testing.assert_allclose(p.residuals(x), by_hand(p, x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("initial", ["zero", "estimate"])
@pytest.mark.parametrize("form", FORMS)
def test_the_jacobian_is_that_of_the_recorded_difference_equation(form: str, initial: str) -> None:
    p, x = predictor(form, initial, n=25)
    recorded = lw.record(lambda z: by_hand(p, z), len(x)).jacobian()(x)
    np.testing.assert_allclose(p.jacobian(x), np.asarray(recorded).reshape(25, -1), rtol=1e-9, atol=1e-9)


def test_initial_conditions_of_least_squares_leave_no_gradient() -> None:
    p, x = predictor("box-jenkins", "estimate")
    started = p.start(x[: p.count])
    gradient = p.jacobian(started)[:, p.count :].T @ p.residuals(started)
    assert np.abs(gradient).max() < 1e-9


def test_a_polynomial_is_stable_when_its_roots_are_inside_the_circle() -> None:
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(300):
        poly = np.array([1.0, *rng.standard_normal(rng.integers(1, 6))])
        wanted = bool(np.abs(np.roots(poly)).max() < 1)
        assert stable(poly) == wanted
        seen.add(wanted)
    assert seen == {True, False}


def test_reflecting_keeps_the_shape_on_the_circle() -> None:
    poly = np.real(np.poly([1.3 * np.exp(0.4j), 1.3 * np.exp(-0.4j), 0.5]))
    inside = reflected(poly)
    assert stable(inside)
    z = np.exp(1j * np.linspace(0.1, 3.0, 9))
    ratio = np.abs(np.polyval(poly, z)) / np.abs(np.polyval(inside, z))
    np.testing.assert_allclose(ratio, 1.3**2, rtol=1e-9)


def test_an_arx_fit_is_the_closed_form_of_least_squares() -> None:
    rng = np.random.default_rng(5)
    u, y = rng.standard_normal((2, 300))
    found = fit(u, y, Orders(2, 2, 0, 2, 1), shared=True, initial="estimate", most_starts=1)
    rows = np.array([[u[t - 1], u[t - 2], -y[t - 1], -y[t - 2]] for t in range(2, 300)])
    theta, loss, *_ = np.linalg.lstsq(rows, y[2:], rcond=None)
    np.testing.assert_allclose(found.theta, theta, rtol=1e-7)
    variance = loss[0] / (298 - 4)
    assert found.variance == pytest.approx(variance, rel=1e-9)
    np.testing.assert_allclose(found.covariance, variance * np.linalg.inv(rows.T @ rows), rtol=1e-6)


def test_the_minimum_is_that_of_another_minimiser_with_numeric_derivatives() -> None:
    rng = np.random.default_rng(8)
    model = lw.control.Model([1.0, 0.5], [1.0, -1.5, 0.7], [1.0, 0.4], [1.0, -0.8], delay=1)
    u = rng.standard_normal(500)
    y = model.simulate(u, noise=0.8 * rng.standard_normal(500))
    found = fit(u, y, model.orders, shared=False, initial="zero", most_starts=2)
    p = Predictor(u, y, model.orders, shared=False, initial="zero")
    other = least_squares(p.residuals, model.parameters, method="trf", x_scale="jac", xtol=1e-12, ftol=1e-14)
    assert found.loss == pytest.approx(2 * other.cost, rel=1e-9)
    np.testing.assert_allclose(found.theta, other.x, rtol=1e-4)


def test_units_of_input_and_output_do_not_change_the_fit() -> None:
    rng = np.random.default_rng(2)
    model = lw.control.Model([0.2, 0.1], [1.0, -1.6, 0.8], [1.0, 0.3], [1.0, -0.5], delay=1)
    u = rng.standard_normal(800)
    y = model.simulate(u, noise=0.1 * rng.standard_normal(800))
    plain = fit(u, y, model.orders, shared=False, initial="estimate", most_starts=1)
    scaled = fit(1e6 * u, 1e-4 * y, model.orders, shared=False, initial="estimate", most_starts=1)
    units = np.array([1e-10, 1e-10, 1, 1, 1, 1])
    np.testing.assert_allclose(scaled.theta, plain.theta * units, rtol=1e-5)
    np.testing.assert_allclose(scaled.covariance, plain.covariance * np.outer(units, units), rtol=1e-4, atol=1e-30)
    assert split(plain.theta, plain.orders, False).F[0] == 1.0
