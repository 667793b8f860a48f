"""A model's responses, bands, tests and conversions, against python-control, differences and draws."""

import numpy as np
import pytest
from scipy.stats import chi2

import linkwright as lw
from known_systems import record, resonance, textbook
from linkwright.errors import DataError, LinkwrightError


@pytest.fixture(scope="module")
def found() -> lw.control.Model:
    system = resonance()
    return lw.control.identify(record(system, 23, "open", 3), orders=system.orders)


def test_the_response_is_that_of_python_control(found) -> None:
    w = np.geomspace(1.0, 1500.0, 40)
    system = found.to_control()
    assert system.dt == found.dt
    np.testing.assert_allclose(found.frequency_response(w), system(np.exp(1j * w * found.dt)), rtol=1e-8)
    both = found.to_control(noise=True)
    np.testing.assert_allclose(both(np.exp(1j * w * found.dt))[0, 1], found.noise_response(w), rtol=1e-8)


def test_the_simulated_output_is_that_of_the_state_space(found) -> None:
    u = np.random.default_rng(0).standard_normal(60)
    A, B, C, D = found.matrices()
    x, y = np.zeros(len(A)), []
    for value in u:
        y.append((C @ x + D[:, 0] * value)[0])
        x = A @ x + B[:, 0] * value
    np.testing.assert_allclose(found.simulate(u), y, rtol=1e-9, atol=1e-12)


def test_the_continuous_model_held_and_sampled_is_the_model_again() -> None:
    import control

    model = resonance().model
    plant = model.continuous()
    assert model.dead_time == pytest.approx(model.dt)
    poles = plant.poles()
    np.testing.assert_allclose(np.abs(poles) / (2 * np.pi), 16.0, rtol=1e-8)
    again = control.c2d(plant, model.dt)
    z = np.exp(1j * np.array([10.0, 100.0, 700.0]) * model.dt)
    np.testing.assert_allclose(again(z) / z, model.frequency_response([10.0, 100.0, 700.0]), rtol=1e-7)
    late = model.continuous(pade=3)
    np.testing.assert_allclose(late(100j), plant(100j) * np.exp(-100j * model.dt), rtol=1e-6)


def test_tustins_continuous_model_has_the_response_at_the_warped_frequency() -> None:
    model = textbook().model
    w = 0.7
    plant = model.continuous("tustin")
    np.testing.assert_allclose(plant(2j / model.dt * np.tan(0.5 * w * model.dt)), model.frequency_response(w)[0])


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (lw.control.Model([1.0, 0.5, 0.2], [1.0, -0.5]), "too long for a continuous system"),
        (lw.control.Model([1.0], [1.0, 0.5]), "no real continuous counterpart"),
    ],
)
def test_a_model_without_continuous_counterpart_says_why(model, told) -> None:
    with pytest.raises(LinkwrightError, match=told):
        model.continuous()


@pytest.mark.parametrize("family", ["armax", "box-jenkins"])
def test_a_reflected_model_is_stable_in_plant_and_noise_with_the_same_spectra(family) -> None:
    A = np.poly([1.25, 0.5, -2.0])
    model = lw.control.Model([1.0, 0.3], A, [1.0, 0.4], A, 1, 0.1, variance=0.7, family=family)
    turned = model.reflect()
    assert np.abs(np.roots(turned.F)).max() < 1
    assert np.abs(np.roots(turned.D)).max() < 1
    w = np.array([0.5, 9.0, 30.0])
    np.testing.assert_allclose(np.abs(turned.frequency_response(w)), np.abs(model.frequency_response(w)), rtol=1e-9)
    spectra = [m.variance * np.abs(m.noise_response(w)) ** 2 for m in (turned, model)]
    np.testing.assert_allclose(*spectra, rtol=1e-9)
    assert turned.family == family
    assert turned.reflect() is turned


def test_a_noise_model_alone_is_reflected_too() -> None:
    model = lw.control.Model([1.0], [1.0, -0.5], [1.0], [1.0, -2.0], variance=1.0)
    turned = model.reflect()
    np.testing.assert_allclose(turned.D, [1.0, -0.5])
    np.testing.assert_array_equal(turned.B, model.B)
    assert turned.variance == pytest.approx(0.25)
    assert "noise model" in turned.notes[-1]


@pytest.mark.parametrize("family", ["arx", "oe"])
@pytest.mark.parametrize("initial", ["estimate", "zero"])
def test_a_record_shorter_than_the_delay_says_how_many_samples_it_takes(family, initial) -> None:
    data = lw.control.Record(*np.random.default_rng(0).standard_normal((2, 20)), 1.0)
    A = [1.0, -0.5]
    model = lw.control.Model([1.0], A, D=A if family == "arx" else [1.0], delay=30, family=family, initial=initial)
    with pytest.raises(DataError, match=r"20 samples is too short.*nk=30: at least 31"):
        model.residuals(data)


def test_a_pole_at_minus_one_has_no_counterpart_by_tustin() -> None:
    with pytest.raises(LinkwrightError, match="pole at z = −1"):
        lw.control.Model([1.0], [1.0, 1.0]).continuous("tustin")


def test_the_gradient_of_the_response_is_its_derivative(found) -> None:
    w = np.array([20.0, 100.0, 900.0])
    exact = found.response_gradient(w)
    theta = found.parameters
    for k in range(len(theta)):
        step = 1e-6 * max(1e-3, abs(theta[k]))
        ends = []
        for sign in (1, -1):
            x = theta.copy()
            x[k] += sign * step
            ends.append(lw.control.Model(x[:2], [1, *x[2:4]], [1, *x[4:6]], [1, *x[6:]], 2, found.dt))
        numeric = (ends[0].frequency_response(w) - ends[1].frequency_response(w)) / (2 * step)
        np.testing.assert_allclose(exact[:, k], numeric, rtol=1e-4, atol=1e-6 * np.abs(exact).max())


def test_the_band_has_the_share_of_draws_that_it_says(found) -> None:
    w = np.array([30.0, 100.53, 800.0])
    band = found.band(w, 0.9)
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(np.zeros(8), found.covariance, 20_000) @ found.response_gradient(w).T
    flat = np.stack([draws.real, draws.imag], -1)
    distance = np.einsum("nki,kij,nkj->nk", flat, np.linalg.inv(band.covariance), flat)
    np.testing.assert_allclose(band.distance(band.response + draws[0]), distance[0], rtol=1e-6)
    inside = np.mean(distance < chi2.ppf(0.9, 2), axis=0)
    np.testing.assert_allclose(inside, 0.9, atol=0.01)
    # To first order, as the ellipse is: ln|G| and arg G have the errors Re(δ/G) and Im(δ/G).
    relative = draws / band.response
    for part, (low, high) in (
        (relative.real, np.log(band.magnitude / np.abs(band.response))),
        (relative.imag, band.phase - np.unwrap(np.angle(band.response))),
    ):
        np.testing.assert_allclose(np.mean((part > low) & (part < high), axis=0), 0.9, atol=0.01)
    edge = band.ellipse(1)
    distance = [
        d @ np.linalg.solve(band.covariance[1], d)
        for d in np.stack([(edge - band.response[1]).real, (edge - band.response[1]).imag], axis=1)
    ]
    np.testing.assert_allclose(distance, chi2.ppf(0.9, 2), rtol=1e-6)


def test_a_prediction_one_step_ahead_misses_by_the_innovations_and_further_by_more(found) -> None:
    data = record(resonance(), 23, "open", 4)
    miss = [np.var(data.y - found.predict(data, k)) for k in (1, 2, 5, 400)]
    assert miss[0] == pytest.approx(found.variance, rel=0.1)
    assert miss == sorted(miss)
    e = data.y - found.predict(data, 400)
    impulse = np.zeros(400)
    impulse[0] = 1.0
    from scipy.signal import lfilter

    assert np.var(e) == pytest.approx(found.variance * np.sum(lfilter(found.C, found.D, impulse) ** 2), rel=0.2)


def test_residual_tests_tell_a_missing_pole_from_a_missing_noise_model() -> None:
    system = textbook()
    data = record(system, 23, "open", 5)
    plain = lw.control.identify(data, "oe", system.orders, holdout=0).residual_tests()
    assert plain.independent
    assert not plain.white
    assert "larger nc and nd" in str(plain)
    small = lw.control.identify(data, orders=(1, 1, 2, 2, 1), holdout=0).residual_tests()
    assert not small.independent
    assert "larger nb and nf" in str(small)


def test_residual_tests_reject_true_models_as_often_as_they_say() -> None:
    system = textbook()
    wrong = [0, 0]
    for seed in range(60):
        data = record(system, 23, "open", seed, length=800)
        tests = system.model.residual_tests(data, lags=20, level=0.9)
        wrong[0] += tests.whiteness > chi2.ppf(0.9, 20)  # nothing was estimated from these data
        wrong[1] += not tests.independent
    assert wrong[0] <= 14  # binomial(60, 0.1): 14 or more has probability 0.003
    assert wrong[1] <= 14


def test_a_model_prints_its_coefficients_poles_and_fit(found) -> None:
    text = str(found)
    assert "box-jenkins model, nb=2, nf=2, nc=2, nd=2, nk=2" in text
    assert "b0" in text
    assert "±" in text
    assert "Hz, damping 0.0" in text
    assert "held-out" in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (([1.0], [2.0, 1.0]), "first coefficient of F must be one"),
        (([np.nan],), "finite coefficients"),
        (([1.0], [1.0], [1.0], [1.0], -1), "nk is a whole number"),
        (([1.0], [1.0], [1.0], [1.0], 1, 0.0), "dt must be a number greater than zero"),
    ],
)
def test_a_model_that_cannot_be_says_why(arguments, told) -> None:
    with pytest.raises(LinkwrightError, match=told):
        lw.control.Model(*arguments)
