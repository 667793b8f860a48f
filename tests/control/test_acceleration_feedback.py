"""Acceleration feedback as an outer loop: the washout's motion, and what reaches the inner controller."""

import numpy as np
import pytest
from scipy.signal import lfilter

from linkwright import control
from linkwright.control.loop.controller_base import Measured, Target
from linkwright.errors import ModelError, NameNotFound

PERIOD = 2e-3


def measured(y=0.0, **others):
    still = {name: np.zeros(1) for name in ("q", "v", "applied", "cut")}
    return Measured(PERIOD, **{**still, **others}, signals={"plate": np.array([0.0, 0.0, y])})


class Gain:
    """u = r + k (r − y)."""

    def __init__(self, k):
        self.k, self.told = k, []

    def step(self, r, y, saturated=False):
        self.told.append(saturated)
        return r + self.k * (r - y)

    def reset(self):
        pass


def target(a=0.0):
    return Target(np.zeros(6), np.zeros(6), np.array([0.0, 0.0, a, 0.0, 0.0, 0.0]))


def test_the_washouts_acceleration_velocity_and_position_are_one_motion():
    rng = np.random.default_rng(1)
    washout = control.Washout(1.0, PERIOD, 1)
    u = np.repeat(rng.standard_normal(200), 20)
    x, v, a = (np.array(part)[:, 0] for part in zip(*(washout.step(np.array([w])) for w in u), strict=True))
    # Within a period the acceleration is not held, but nearly: the second differences tell.
    assert np.allclose(np.diff(v) / PERIOD, a[:-1], atol=0.05)
    assert np.allclose(np.diff(x) / PERIOD, 0.5 * (v[1:] + v[:-1]), atol=1e-4)


def test_the_washouts_position_is_a_low_pass_of_second_order():
    w, n = 2.0 * np.pi, 2000
    washout = control.Washout(1.0, PERIOD, 1)
    x = np.array([washout.step(np.array([1.0]))[0][0] for _ in range(n)])
    t = PERIOD * np.arange(n)
    assert np.allclose(x, (1.0 - (1.0 + w * t) * np.exp(-w * t)) / w**2, atol=1e-12)


def test_without_error_the_reference_is_left_alone():
    outer = control.AccelerationFeedback({2: Gain(10.0)}, sensor="plate")
    outer.start(measured())
    for k in range(5):
        found = outer(k, k * PERIOD, measured(3.0), target(3.0))
        assert np.array_equal(found.xdd, target(3.0).xdd)
        assert not found.x.any()


def test_a_missing_acceleration_is_asked_for_and_integrated():
    outer = control.AccelerationFeedback({2: Gain(2.0)}, sensor="plate")
    outer.start(measured())
    found = [outer(k, k * PERIOD, measured(0.0), target(1.0)) for k in range(3)]
    assert found[0].xdd[2] == 3.0
    assert found[0].xd[2] == 0.0
    assert found[1].xd[2] == pytest.approx(2.0 * PERIOD, rel=2e-2)
    assert found[2].x[2] > found[1].x[2] > 0.0
    assert not found[2].xdd[[0, 1, 3, 4, 5]].any()


def test_corrections_are_cut_at_the_limit():
    outer = control.AccelerationFeedback({2: Gain(1e6)}, sensor="plate", limit=50.0)
    outer.start(measured())
    assert outer(0, 0.0, measured(0.0), target(1.0)).xdd[2] == 51.0


def test_compensators_are_told_when_the_drives_could_not_follow():
    gain = Gain(1.0)
    outer = control.AccelerationFeedback({2: gain}, sensor="plate")
    outer.start(measured())
    outer(0, 0.0, measured(), target())
    outer(1, PERIOD, measured(cut=np.array([3.0])), target())
    assert gain.told == [False, True]


def test_a_compensator_is_told_when_its_own_correction_was_cut():
    gain, other = Gain(10.0), Gain(10.0)
    outer = control.AccelerationFeedback({1: other, 2: gain}, sensor="plate", limit=50.0)
    outer.start(measured())
    for k, a in enumerate((1.0, 100.0, 100.0, 1.0, 1.0)):
        outer(k, k * PERIOD, measured(), target(a))
    assert gain.told == [False, False, True, True, False]
    assert not any(other.told)
    outer(5, 5 * PERIOD, measured(), target(100.0))
    outer.start(measured())
    outer(0, 0.0, measured(), target())
    assert not gain.told[-1]


def test_an_integrating_compensator_does_not_wind_up_at_the_limit():
    # u = r + x with x⁺ = x + (r − y): its state is held while the correction is cut.
    integral = control.Compensator([[1.0]], [[1.0, -1.0]], [[1.0]], [[1.0, 0.0]], references=1)
    outer = control.AccelerationFeedback({2: integral}, sensor="plate", limit=5.0)
    outer.start(measured())
    for k in range(100):
        outer(k, k * PERIOD, measured(), target(1.0))
    assert integral.state[0] <= 7.0


def test_an_excitation_is_washed_out_and_ends():
    series = np.sign(np.sin(np.arange(50.0)))
    outer = control.AccelerationFeedback(sensor="plate", excitation={2: series})
    outer.start(measured())
    sent = np.array([outer(k, k * PERIOD, measured(), target()).xdd[2] for k in range(60)])
    w = 2.0 * np.pi
    # (s/(s + w))² of the held series, at the samples.
    slow = np.exp(-w * PERIOD)
    step = np.array([(1.0 - w * t) * np.exp(-w * t) for t in PERIOD * np.arange(61)])
    wanted = np.convolve(np.diff(np.concatenate([[0.0], series, np.zeros(10)])), step)[:60]
    assert np.allclose(sent, wanted, atol=1e-12)
    assert np.allclose(lfilter([1.0, -2.0 * slow, slow**2], [1.0], sent[52:])[2:], 0.0, atol=1e-12)


def test_a_missing_sensor_is_named():
    outer = control.AccelerationFeedback({2: Gain(1.0)}, sensor="hand")
    with pytest.raises(NameNotFound, match="hand"):
        outer.start(measured())


@pytest.mark.parametrize(
    "wrong",
    [{"washout": 0.0}, {"washout": np.nan}, {"limit": -1.0}, {"excitation": {2: [np.nan]}}],
    ids=["washout", "no washout", "limit", "excitation"],
)
def test_wrong_settings_are_refused_before_a_run(wrong):
    with pytest.raises(ModelError):
        control.AccelerationFeedback(**{"sensor": "plate", **wrong})
