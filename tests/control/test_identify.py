"""Models from records: published estimates, known systems, closed loops, bad data."""

from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from known_systems import record, resonance, textbook
from linkwright.errors import DataError, ExcitationError, LinkwrightError, LinkwrightWarning, UnstableModelError

SETTINGS = lw.control.IdentifySettings
PUBLISHED = Path(__file__).parents[1] / "published"


def test_the_gas_furnace_has_the_coefficients_that_box_and_jenkins_print() -> None:
    # Box and Jenkins (1970), section 11.4: y = −(0.53 + 0.37 q^-1 + 0.51 q^-2)/(1 − 0.57 q^-1) q^-3 u
    # + e/(1 − 1.53 q^-1 + 0.63 q^-2), σ² = 0.0561.
    data = lw.control.Record.read(PUBLISHED / "gas_furnace.csv", u="gas", y="co2", dt=9.0).detrend()
    model = lw.control.identify(data, orders=(3, 1, 0, 2, 3))
    printed = np.array([-0.53, -0.37, -0.51, -0.57, -1.53, 0.63])
    np.testing.assert_allclose(model.parameters, printed, atol=0.025)
    assert np.all(np.abs(model.parameters - printed) < model.standard_errors)
    assert model.variance == pytest.approx(0.0561, rel=0.06)
    assert model.residual_tests()


@pytest.mark.parametrize("loop", ["open", "closed"])
@pytest.mark.parametrize("system", [resonance(), textbook()], ids=lambda s: s.name)
def test_a_known_system_is_found_in_open_and_closed_loop(system, loop) -> None:
    model = lw.control.identify(record(system, 23, loop, seed=1), orders=system.orders, holdout=0)
    off = (model.parameters - system.model.parameters) / model.standard_errors
    assert np.abs(off).max() < 4
    tests = model.residual_tests()
    assert tests, str(tests)
    assert "are white" in str(tests)


def test_without_noise_the_system_is_found_exactly() -> None:
    system = resonance()
    u = lw.control.m_sequence(10, length=1500)
    data = lw.control.Record(u, system.model.simulate(u), system.model.dt)
    model = lw.control.identify(data, "oe", system.orders)
    np.testing.assert_allclose(model.frequency_response(system.frequencies()),
                               system.model.frequency_response(system.frequencies()), rtol=1e-6)  # fmt: skip
    assert model.fit > 0.99999
    pole = model.poles()[0]
    assert pole.frequency == pytest.approx(16.0, rel=1e-6)
    assert pole.damping == pytest.approx(0.02, rel=1e-5)


def test_feedback_biases_output_error_and_arx_models_but_not_box_jenkins() -> None:
    system = textbook()
    w = system.frequencies()
    wanted = system.model.frequency_response(w)

    def mean_miss(model: str) -> float:
        """How far the mean of the estimates is off, relative, at the worst frequency."""
        o = system.orders
        orders = (o.nb, o.nf, o.nc, o.nd, o.nk)
        found = [
            lw.control.identify(
                record(system, 0, "closed", seed), model, orders, holdout=0, settings=SETTINGS(starts=1)
            )
            for seed in range(8)
        ]
        return float(np.abs(np.mean([m.frequency_response(w) for m in found], axis=0) / wanted - 1).max())

    ours, oe, arx = mean_miss("box-jenkins"), mean_miss("oe"), mean_miss("arx")
    assert ours < 0.02
    assert oe > 5 * ours
    assert arx > 5 * ours


@pytest.mark.slow
def test_orders_are_selected() -> None:
    system = textbook()
    model = lw.control.identify(record(system, 23, "open", 0, length=1500), settings=SETTINGS(max_order=3))
    assert (model.orders.nb, model.orders.nf, model.orders.nk) == (2, 2, 1)
    assert model.selection[0].orders == model.orders
    assert model.selection[0].bic == min(c.bic for c in model.selection)
    assert 0.8 < model.fit < 1.0


@pytest.mark.parametrize("criterion", ["aic", "validation"])
def test_other_criteria_find_enough_of_the_plant(criterion) -> None:
    system = textbook()
    model = lw.control.identify(
        record(system, 23, "open", 0, length=1000), "oe", settings=SETTINGS(max_order=3, criterion=criterion)
    )
    assert model.orders.nf >= 2


def test_a_long_delay_is_found() -> None:
    rng = np.random.default_rng(0)
    u = lw.control.m_sequence(10)
    late = lw.control.Model([1.0, 0.5], [1.0, -0.7], delay=6)
    data = lw.control.Record(u, late.simulate(u, noise=0.3 * rng.standard_normal(len(u))), 1.0)
    assert lw.control.identify(data, "oe", settings=SETTINGS(max_order=2)).delay == 6
    assert lw.control.identify(data, "oe", delay=6, settings=SETTINGS(max_order=2)).delay == 6


def test_a_record_that_starts_in_motion_needs_its_initial_conditions() -> None:
    system = resonance()
    u = lw.control.m_sequence(9, length=900)
    y = system.model.simulate(u)
    cut = lw.control.Record(u[300:], y[300:], system.model.dt)
    wanted = system.model.parameters[:4]
    good = lw.control.identify(cut, "oe", system.orders, holdout=0)
    rest = lw.control.identify(cut, "oe", system.orders, holdout=0, initial="zero")
    np.testing.assert_allclose(good.parameters, wanted, rtol=1e-5)
    assert np.abs(rest.parameters / wanted - 1).max() > 0.01


def test_an_unstable_plant_in_closed_loop_is_told_with_its_poles() -> None:
    # y = q^-1 0.2/(1 − 1.1 q^-1) u + e/(1 − 1.1 q^-1), held by u = r − 1.5 y.
    rng = np.random.default_rng(4)
    n = 1500
    r, e = lw.control.m_sequence(11, length=n), 0.1 * rng.standard_normal(n)
    u, y = np.zeros(n), np.zeros(n)
    for t in range(1, n):
        y[t] = 1.1 * y[t - 1] + 0.2 * u[t - 1] + e[t]
        u[t] = r[t] - 1.5 * y[t]
    data = lw.control.Record(u, y, 0.01, r)
    with pytest.warns(LinkwrightWarning, match="unstable: poles at"):
        model = lw.control.identify(data, "armax", (1, 1, 1, 1, 1))
    assert not model.stable
    assert abs(model.F[1] + 1.1) < 4 * model.standard_errors[1]
    with pytest.raises(UnstableModelError, match=r"1\.4\d* Hz .*try fewer or other orders") as error:
        lw.control.identify(data, "arx", (1, 1, 0, 1, 1), stable="refuse")
    assert not error.value.model.stable
    turned = lw.control.identify(data, "armax", (1, 1, 1, 1, 1), stable="reflect")
    assert turned.stable
    w = np.array([3.0, 30.0, 200.0])
    np.testing.assert_allclose(np.abs(turned.frequency_response(w)), np.abs(model.frequency_response(w)), rtol=1e-9)
    with pytest.raises(LinkwrightError, match="no covariance"):
        turned.band(w)
    with pytest.warns(LinkwrightWarning, match="edge of stability"):
        lw.control.identify(data, orders=(1, 1, 1, 1, 1), holdout=0)


def test_too_little_excitation_says_which_order_there_is() -> None:
    u = lw.control.multisine(300, 0.01, (4.0, 4.4), lines=1, periods=3)
    data = lw.control.Record(u, textbook().model.simulate(u), 0.01)
    with pytest.raises(ExcitationError, match=r"exciting of order 2 only.*nb \+ nf ≤ 2"):
        lw.control.identify(data, orders=(2, 2, 2, 2, 1))


def test_a_short_record_says_how_many_samples_it_takes() -> None:
    rng = np.random.default_rng(0)
    data = lw.control.Record(*rng.standard_normal((2, 40)), 0.1)
    with pytest.raises(DataError, match="record at least"):
        lw.control.identify(data, orders=(4, 4, 4, 4, 1), holdout=0)


@pytest.mark.parametrize(("at", "which"), [(50, "last 50"), (170, "first 150")])
def test_a_step_leaves_nothing_to_hold_out_and_says_so(at, which) -> None:
    u = np.where(np.arange(200) < at, 0.0, 1.0)
    y = lw.control.Model([1.0], [1.0, -0.5]).simulate(u)
    data = lw.control.Record(u, y, 1.0)
    model = lw.control.identify(data, "oe", (1, 1, 0, 0, 1))
    np.testing.assert_allclose(model.parameters, [1.0, -0.5], rtol=1e-9)
    assert np.isnan(model.fit)
    assert any(f"constant over the {which} samples of 200" in note for note in model.notes)
    with pytest.raises(DataError, match=f"constant over the {which} samples"):
        lw.control.identify(data, "oe", settings=SETTINGS(criterion="validation", max_order=1))


def test_a_record_too_short_to_hold_out_a_part_says_so() -> None:
    data = lw.control.Record(*np.random.default_rng(0).standard_normal((2, 20)), 0.1)
    with pytest.raises(DataError, match="too short to hold out 25% of it"):
        lw.control.identify(data, "arx", (1, 1, 0, 0, 1))


def test_a_large_mean_is_noted() -> None:
    system = textbook()
    data = record(system, 23, "open", 0, length=600)
    model = lw.control.identify(lw.control.Record(data.u, data.y + 100, 1.0), "arx", (2, 2, 0, 2, 1))
    assert any("record.detrend()" in note for note in model.notes)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"model": "bjj"}, "one of arx, armax, oe, box-jenkins"),
        ({"orders": (1, 2)}, "five numbers"),
        ({"orders": {"nb": 1, "na": 2}}, "the first two needed"),
        ({"orders": (0, 2, 0, 0, 1)}, "nb is a whole number of at least 1"),
        ({"stable": "maybe"}, "'keep', 'refuse' or 'reflect'"),
        ({"holdout": 1.0}, "fraction of the record"),
        ({"settings": SETTINGS(criterion="validation"), "holdout": 0.0}, "needs data that are held out"),
        ({"initial": "guess", "orders": (1, 1, 0, 0, 1)}, "'estimate' or 'zero'"),
    ],
)
def test_a_wrong_argument_says_what_it_may_be(change, told) -> None:
    data = record(textbook(), 23, "open", 0, length=300)
    with pytest.raises(LinkwrightError, match=told):
        lw.control.identify(data, **change)


@pytest.mark.parametrize(
    ("change", "told"),
    [({"starts": 0}, "starts must be a whole number"), ({"criterion": "cic"}, "one of bic, aic, validation")],
)
def test_a_wrong_setting_says_what_it_may_be(change, told) -> None:
    with pytest.raises(LinkwrightError, match=told):
        SETTINGS(**change)


@pytest.mark.parametrize("seed", range(3))
def test_a_model_of_unrelated_noise_says_that_it_explains_nothing(seed: int) -> None:
    u, y = np.random.default_rng(seed).standard_normal((2, 1500))
    with pytest.warns(LinkwrightWarning, match="explains nothing of the output"):
        model = lw.control.identify(lw.control.Record(u, y, 1e-3), orders=(3, 3, 1, 1, 1))
    assert "explains nothing" in str(model)


def test_a_weak_response_under_noise_is_not_nothing() -> None:
    u, e = np.random.default_rng(0).standard_normal((2, 4000))
    y = np.convolve(u, [0.0, 0.1, 0.08])[:4000] + 0.6 * e
    model = lw.control.identify(lw.control.Record(u, y, 1e-3), orders=(2, 0, 1, 1, 1))
    assert model.fit < 0.05
    assert "explains nothing" not in str(model)
