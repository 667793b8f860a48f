"""Encoders count exactly, noise has its deviation, filters their corner, accelerometers show accelerations."""

import numpy as np
import pytest
from controlled import block, pendulum

import linkwright as lw
from linkwright.errors import LinkwrightError, ModelError, NameNotFound


class Nothing:
    """A controller that lets the plant alone."""

    def step(self, k, t, measured):
        return np.zeros(len(measured.applied))


def watched(mech: lw.Mechanism, encoders=None, sensors=(), q0=0.7, v0=0.0, t=0.5, period=1e-3, seed=0):
    loop = lw.control.Loop(
        mech, Nothing(), encoders=encoders, sensors=sensors, period=period, settings=lw.control.LoopSettings(seed=seed)
    )
    return loop.run(t, [q0], [v0])


def test_an_encoder_shows_whole_counts_nearest_to_the_angle() -> None:
    run = watched(pendulum(), 1000)
    counts = run.measured_q[:, 0] * 1000 / (2 * np.pi)
    assert np.allclose(counts, np.round(counts), atol=1e-9)
    assert np.abs(run.measured_q - run.q).max() <= np.pi / 1000 * (1 + 1e-9)
    assert np.abs(run.measured_q - run.q).max() > 0.9 * np.pi / 1000


def test_rates_are_differences_of_what_is_shown() -> None:
    run = watched(pendulum(), 1000)
    expected = np.diff(run.measured_q[:, 0]) / 1e-3
    assert np.allclose(run.measured_v[1:, 0], expected, atol=1e-9)


def test_the_first_rate_is_that_of_the_plant_without_counting() -> None:
    run = watched(block(), None, v0=0.3)
    assert np.allclose(run.measured_v[:, 0], 0.3, atol=1e-9)


def test_filtered_rates_are_smoother_and_late_by_the_corner() -> None:
    rough = watched(pendulum(), 2000)
    encoder = lw.control.Encoder(counts=2000, rate="filtered", cutoff=20.0)
    smooth = watched(pendulum(), encoder)
    true = rough.v[100:, 0]
    assert np.std(smooth.measured_v[100:, 0] - true) < 0.3 * np.std(rough.measured_v[100:, 0] - true)


def test_a_low_pass_is_exact_for_a_held_input() -> None:
    low = lw.control.LowPass(5.0, 0.01)
    low.start(np.zeros(1))
    shown = [float(low(np.ones(1))[0]) for _ in range(10)]
    assert np.allclose(shown, 1.0 - np.exp(-2 * np.pi * 5.0 * 0.01 * np.arange(1, 11)))


def test_noise_has_its_standard_deviation() -> None:
    run = watched(block(), lw.control.Encoder(noise=0.02), t=4.0, period=1e-3)
    left = run.measured_q[:, 0] - run.q[:, 0]
    assert abs(np.std(left) / 0.02 - 1.0) < 0.05
    assert abs(np.corrcoef(left[1:], left[:-1])[0, 1]) < 0.06


def test_an_accelerometer_shows_the_acceleration_of_its_point_in_ground_axes() -> None:
    sensors = [lw.control.Accelerometer("tip")]
    run = watched(pendulum(), sensors=sensors, v0=1.5)
    q, w, a = run.q[:, 0], run.v[:, 0], run.a[:, 0]
    # The tip is at −(sin q, 0, cos q): a turn about y takes −z to −x.
    expected = np.stack([-a * np.cos(q) + w * w * np.sin(q), 0 * q, a * np.sin(q) + w * w * np.cos(q)], axis=1)
    assert np.allclose(run.sensors["tip.acceleration"], expected, atol=1e-10)
    assert np.allclose(run.sensors["tip.acceleration"], run.acceleration("tip"), atol=1e-10)


def test_one_that_feels_weight_shows_it_upward_at_rest_and_nothing_in_free_fall() -> None:
    felt = lw.control.Accelerometer("tip", axes="body", gravity=True)
    rest = watched(pendulum(), sensors=[felt], q0=0.0, t=0.01)
    assert np.allclose(rest.sensors["tip.acceleration"], [0.0, 0.0, 9.81], atol=1e-12)


def test_an_accelerometer_can_be_noisy_and_filtered() -> None:
    def spread(**options) -> float:
        sensor = lw.control.Accelerometer("block", noise=0.5, **options)
        run = watched(block(), sensors=[sensor], t=2.0)
        return float(np.std(run.sensors["block.acceleration"]))

    assert abs(spread() / 0.5 - 1.0) < 0.05
    gain = 1.0 - np.exp(-2 * np.pi * 20.0 * 1e-3)
    assert abs(spread(cutoff=20.0) / (0.5 * np.sqrt(gain / (2.0 - gain))) - 1.0) < 0.15


def test_bad_sensors_are_told() -> None:
    with pytest.raises(ModelError, match="both given"):
        lw.control.Encoder(counts=100, resolution=0.1)
    with pytest.raises(ModelError, match="counts of an encoder must be a number greater than zero"):
        lw.control.Encoder(counts=0)
    with pytest.raises(ModelError, match="need a cutoff"):
        lw.control.Encoder(rate="filtered")
    with pytest.raises(NameNotFound, match="way to rates"):
        lw.control.Encoder(rate="guess")
    with pytest.raises(ModelError, match="standard deviation"):
        lw.control.Accelerometer("tip", noise=-1.0)
    with pytest.raises(ModelError, match="slides, and has no counts a turn"):
        watched(block(), 1000)
    with pytest.raises(NameNotFound, match="no frame named 'top'"):
        watched(pendulum(), sensors=[lw.control.Accelerometer("top")])
    with pytest.raises(ModelError, match="names of their own"):
        watched(pendulum(), sensors=[lw.control.Accelerometer("tip"), lw.control.Accelerometer("tip")])


def slider_and_hinge() -> lw.Mechanism:
    """A trolley that slides and carries a pendulum without a drive."""
    with lw.Builder("crane") as b:
        along = {"h": (1, 0, 0), "f": (0, 1, 0)}
        trolley, load = b.body("trolley", 10.0, (0, 0, 0), (1, 1, 1)), b.body("load", 5.0, (0, 0, -2), (1, 1, 1))
        b.joint("prismatic", b.triad(b.ground, **along), b.triad(trolley, **along), "trolley")
        b.joint("revolute", b.triad(trolley, h=(0, 1, 0)), b.triad(load, h=(0, 1, 0)), "swing", actuated=False)
    return b.build()


@pytest.mark.parametrize(
    "given",
    [{"counts": {"swing": 100}, "resolution": {"trolley": 0.05}}, {"resolution": [0.05, 2 * np.pi / 100]}],
    ids=["mappings", "a list"],
)
def test_one_encoder_has_different_steps_for_different_joints(given: dict) -> None:
    mech = slider_and_hinge()
    encoder = lw.control.Encoder(["trolley", "swing"], **given)

    class First(lw.control.Controller):
        def step(self, k, t, measured):
            return np.array([5.0])

    run = lw.control.Loop(mech, First(), encoders=encoder).run(0.5, [0.0, 0.4])
    for at, step in enumerate((0.05, 2 * np.pi / 100)):
        counts = run.measured_q[:, at] / step
        assert np.allclose(counts, np.round(counts), atol=1e-9)
        assert np.abs(run.measured_q[:, at] - run.q[:, at]).max() <= 0.5 * step + 1e-12
        assert np.abs(run.measured_q[:, at] - run.q[:, at]).max() > 0.3 * step


def test_counts_on_a_sliding_joint_name_the_encoder_to_write() -> None:
    mech = slider_and_hinge()
    controller = lw.control.pid(mech, 1.0, 1.0, reference=lw.control.Hold([0.0]))
    with pytest.raises(ModelError, match=r"lw.control.Encoder\(\['trolley'\], resolution="):
        lw.control.Loop(mech, controller, encoders=4096).run(0.01)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"counts": [1, 2, 3]}, "3 numbers for 2 joints"),
        ({"counts": {"sling": 5}}, "'sling'"),
        ({"counts": {"swing": 5}, "resolution": {"swing": 5}}, "counts and a resolution"),
    ],
)
def test_steps_that_do_not_fit_the_joints_are_refused(given: dict, said: str) -> None:
    mech = slider_and_hinge()
    controller = lw.control.pid(mech, 1.0, 1.0, reference=lw.control.Hold([0.0]))
    encoder = lw.control.Encoder(["trolley", "swing"], **given)
    with pytest.raises(LinkwrightError, match=said):
        lw.control.Loop(mech, controller, encoders=encoder).run(0.01)
