"""Identification and design by turns, on a known lightly damped plant with noise."""

import numpy as np
import pytest
from scipy.signal import cont2discrete, lfilter

from linkwright import control
from linkwright.control.hinfinity.repeated_design import RoundSettings, Weighting, repeated_design
from linkwright.control.linear_systems import system
from linkwright.errors import ExcitationError, ModelError, UnstableModelError

DT = 2e-3
W, DAMPING = 2.0 * np.pi * 16.0, 0.03
NUMERATOR, DENOMINATOR, _ = cont2discrete(([W * W], [1.0, 2.0 * DAMPING * W, W * W]), DT)
B, A = np.ravel(NUMERATOR), DENOMINATOR
WANTED = ([100.0**2], [1.0, 200.0, 100.0**2])
FILTER = ([300.0], [1.0, 300.0])


class Plant:
    """The plant sample by sample, with the noise of a sensor."""

    def __init__(self, noise=0.05, seed=0):
        self.rng, self.noise = np.random.default_rng(seed), noise
        self.u, self.y = np.zeros(3), np.zeros(3)

    def measured(self):
        return self.clean() + self.noise * self.rng.standard_normal()

    def clean(self):
        return B[1] * self.u[0] + B[2] * self.u[1] - A[1] * self.y[0] - A[2] * self.y[1]

    def drive(self, u):
        y = self.clean()
        self.u, self.y = np.array([u, *self.u[:2]]), np.array([y, *self.y[:2]])


def experiment(two=None, *, samples=3000, amplitude=1.0, noise=0.05):
    plant, k = Plant(noise), None if two is None else two.compensator()
    r = control.m_sequence(11, samples, amplitude=amplitude, hold=2)
    u, y = np.zeros(samples), np.zeros(samples)
    for n in range(samples):
        y[n] = plant.measured()
        u[n] = r[n] + (0.0 if k is None else k.step(0.0, y[n]))
        plant.drive(u[n])
    return control.Record(u, y, DT, r=r)


def response(two, samples=300):
    plant, k = Plant(0.0), None if two is None else two.compensator()
    y = np.zeros(samples)
    for n in range(samples):
        y[n] = plant.measured()
        plant.drive(1.0 if k is None else k.step(1.0, y[n]))
    return DT * np.arange(samples), y


@pytest.fixture(scope="module")
def rounds():
    return repeated_design(experiment, WANTED, FILTER, dt=DT, rounds=2, orders=(2, 2, 1, 1, 1))


def test_the_known_resonance_is_identified_in_open_and_in_closed_loop(rounds):
    assert len(rounds.rounds) == 2
    for one in rounds.rounds:
        modes = [p for p in one.model.poles() if p.z.imag > 0.0]
        assert len(modes) == 1
        assert modes[0].frequency == pytest.approx(16.0, rel=0.01)
        assert modes[0].damping == pytest.approx(DAMPING, rel=0.3)


def test_the_cost_is_verified_and_far_below_that_of_no_control(rounds):
    for one in rounds.rounds:
        assert one.design.stable
        assert one.design.norm.upper <= one.design.gamma * (1.0 + 1e-6)
        assert one.design.norm.upper < 0.5 * one.design.baseline


def test_the_compensated_plant_follows_the_wanted_response(rounds):
    t, y = response(rounds.compensator)
    wanted = 1.0 - (1.0 + 100.0 * t) * np.exp(-100.0 * t)
    assert np.abs(y - wanted).max() < 0.15
    _, alone = response(None)
    assert control.vibration(t, y, (0.2, 0.5)) < 0.1 * control.vibration(t, alone, (0.2, 0.5))


def test_the_report_of_the_rounds_says_what_was_found(rounds):
    text = str(rounds)
    assert "round 1: fit" in text
    assert "16.0 Hz" in text
    assert "verified" in text


def test_weights_lie_above_the_measured_error(rounds):
    one = rounds.rounds[0]
    seen = one.measured.where(coherence=0.8, low=5.0, high=0.8 * np.pi / DT)
    z = np.exp(1j * seen.w * DT)
    size = np.abs([one.W_T(x).item() for x in z])
    assert (size >= 0.999 * control.multiplicative_error(seen, one.model)).mean() > 0.99
    assert size.min() >= 0.19


@pytest.mark.slow
def test_of_several_wanted_responses_the_fastest_within_the_effort_is_taken():
    record = experiment()
    speeds = (400.0, 200.0, 100.0)
    wanted = [([w * w], [1.0, 2.0 * w, w * w]) for w in speeds]
    taken = [
        repeated_design(lambda _: record, wanted, FILTER, dt=DT, rounds=1, orders=(2, 2, 1, 1, 1), effort=effort).best
        for effort in (1e3, 4.5, 1e-3)
    ]
    assert [one.which for one in taken] == [0, 1, 2]
    told = ["with an effort of" in str(one) for one in taken]
    assert told == [False, False, True]


@pytest.mark.parametrize(
    ("given", "count"),
    [
        (WANTED, 1),
        (system(WANTED), 1),
        (tuple(getattr(system(WANTED), name) for name in "ABCD"), 1),
        ([WANTED], 1),
        ((WANTED, WANTED), 2),
        ((system(WANTED),) * 4, 4),
        ((([1.0, 2.0], [3.0, 4.0]),) * 4, 4),
    ],
)
def test_one_wanted_response_is_told_from_several(monkeypatch, given, count):
    from linkwright.control.hinfinity import repeated_design as repeated

    seen = []
    monkeypatch.setattr(repeated, "_round", lambda number, record, wanted, *_: seen.append(len(wanted)) or stop())

    def stop():
        raise UnstableModelError("enough", model=None)

    with pytest.raises(UnstableModelError):
        repeated_design(lambda _: None, given, FILTER, dt=DT)
    assert seen == [count]


def test_no_wanted_response_is_an_error():
    with pytest.raises(ModelError, match="no wanted response"):
        repeated_design(experiment, [], FILTER, dt=DT)


def test_the_best_judged_round_is_the_result():
    said = iter([0.2, 0.5])
    settings = RoundSettings(tolerance=0.0, judge=lambda _: next(said))
    made = repeated_design(experiment, WANTED, FILTER, dt=DT, orders=(2, 2, 1, 1, 1), settings=settings)
    assert [one.score for one in made.rounds] == [0.2, 0.5]
    assert made.best is made.rounds[0]
    assert made.compensator is made.rounds[0].compensator
    assert "less is better): 0.2" in str(made)


def test_an_input_that_does_not_excite_is_an_error_that_says_so():
    with pytest.raises(ExcitationError, match="excit"):
        repeated_design(
            lambda _: control.Record(np.sin(0.1 * np.arange(2000)), np.random.default_rng(0).standard_normal(2000), DT),
            WANTED,
            FILTER,
            dt=DT,
            orders=(4, 5, 2, 2, 1),
        )


def test_an_unstable_model_in_the_first_round_is_an_error(monkeypatch):
    from linkwright.control.hinfinity import repeated_design as repeated

    def refuse(*_, **__):
        raise UnstableModelError("The identified plant is unstable: poles at 3 Hz", model=None)

    monkeypatch.setattr(repeated, "identify", refuse)
    with pytest.raises(UnstableModelError, match="3 Hz"):
        repeated_design(experiment, WANTED, FILTER, dt=DT)


@pytest.mark.slow
def test_a_later_round_that_fails_leaves_the_compensator_before_it(monkeypatch):
    from linkwright.control.hinfinity import repeated_design as repeated

    calls = []
    found = repeated.identify

    def once(*given, **options):
        calls.append(1)
        if len(calls) > 1:
            raise UnstableModelError("The identified plant is unstable: poles at 3 Hz", model=None)
        return found(*given, **options)

    monkeypatch.setattr(repeated, "identify", once)
    made = repeated_design(experiment, WANTED, FILTER, dt=DT, rounds=3, orders=(2, 2, 1, 1, 1))
    assert len(made.rounds) == 1
    assert "round 2 gave no compensator" in str(made)
    assert made.compensator is made.rounds[0].compensator


def test_where_nothing_is_coherent_the_weight_is_the_floor_alone():
    record = experiment(noise=50.0)
    model = control.identify(experiment(), orders=(2, 2, 1, 1, 1))
    how = Weighting(coherence=0.999999)
    w = how.robustness(control.spectrum(record), model)
    assert abs(w(np.exp(1j * 10.0 * DT)).item()) == pytest.approx(how.floor, rel=0.3)


def test_the_simulated_plant_is_the_known_one():
    plant, u = Plant(0.0), np.random.default_rng(3).standard_normal(50)
    y = []
    for x in u:
        y.append(plant.measured())
        plant.drive(x)
    assert np.allclose(y, lfilter(B, A, u))
