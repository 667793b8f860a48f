"""Measured responses and noise spectra against known systems; Bode plots draw them."""

import numpy as np
import pytest

import linkwright as lw
from known_systems import noise_variance, record, resonance, textbook
from linkwright.errors import DataError, LinkwrightError


def test_the_averaged_response_is_the_systems() -> None:
    system = textbook()
    data = record(system, 23, "open", 0, length=40_000)
    measured = lw.control.spectrum(data, 512).where(coherence=0.9)
    off = np.abs(measured.response - system.model.frequency_response(measured.w))
    assert np.mean(off < 2.45 * measured.deviation + 0.02 * np.abs(measured.response)) > 0.93
    assert np.median(lw.control.multiplicative_error(measured, system.model)) < 0.03


@pytest.mark.parametrize("window", ["hann", "boxcar"])
@pytest.mark.parametrize("overlap", [0.0, 0.5, 0.75, 0.9])
def test_the_deviation_covers_the_response_at_any_overlap(overlap, window) -> None:
    hits = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        u = rng.standard_normal(8000)
        data = lw.control.Record(u, 2 * u + rng.standard_normal(8000), 1.0)
        measured = lw.control.spectrum(data, 256, overlap=overlap, window=window)
        hits.append(np.abs(measured.response - 2.0)[2:-2] < 2.45 * measured.deviation[2:-2])
    assert 0.92 < np.mean(hits) < 0.97


def test_the_noise_spectrum_is_the_systems() -> None:
    system = textbook()
    measured = lw.control.spectrum(record(system, 9, "open", 0, length=40_000), 256)
    wanted = 2 * noise_variance(system, 9, "open") * np.abs(system.model.noise_response(measured.w)) ** 2
    assert np.median(np.abs(measured.noise / wanted - 1)) < 0.15


def test_feedback_biases_the_plain_response_and_not_that_by_the_reference() -> None:
    system = textbook()
    data = record(system, -10, "closed", 0, length=40_000)
    by_reference = lw.control.spectrum(data, 256)
    plain = lw.control.spectrum(lw.control.Record(data.u, data.y, data.dt), 256)
    errors = [np.median(lw.control.multiplicative_error(s, system.model)) for s in (by_reference, plain)]
    assert errors[0] < 0.4 * errors[1]


def test_over_whole_periods_there_is_no_leakage() -> None:
    system = resonance()
    u = lw.control.multisine(500, 2e-3, (2.0, 100.0), periods=12)
    data = lw.control.Record(u, system.model.simulate(u), 2e-3)
    measured = lw.control.empirical(data, 500, skip=11)
    np.testing.assert_allclose(measured.hertz[[0, -1]], [2.0, 100.0])
    np.testing.assert_allclose(measured.response, system.model.frequency_response(measured.w), rtol=1e-2)


def test_what_differs_between_periods_is_noise() -> None:
    rng = np.random.default_rng(0)
    u = np.tile(lw.control.m_sequence(8), 60)
    data = lw.control.Record(u, 2 * u + 0.5 * rng.standard_normal(len(u)), 0.1)
    measured = lw.control.empirical(data, 255)
    assert np.mean(measured.noise) == pytest.approx(2 * 0.25 * 0.1, rel=0.05)
    off = np.abs(measured.response - 2.0)
    assert np.mean(off < 2.45 * measured.deviation) > 0.85


def test_a_spectrum_that_cannot_be_says_why() -> None:
    data = record(textbook(), 23, "open", 0, length=300)
    with pytest.raises(DataError, match="do not fit a record of 300"):
        lw.control.spectrum(data, 400)
    with pytest.raises(DataError, match="record more periods"):
        lw.control.empirical(data, 400)
    with pytest.raises(DataError, match="Excite more strongly"):
        lw.control.spectrum(data, 64).where(coherence=1.1)


def test_a_bode_plot_shows_model_band_and_measurement(tmp_path) -> None:
    system = resonance()
    data = record(system, 23, "open", 0)
    model = lw.control.identify(data, orders=system.orders, holdout=0)
    file = tmp_path / "bode.png"
    figure = lw.control.bode(model, lw.control.spectrum(data), system.model.to_control(), path=file)
    assert file.read_bytes().startswith(b"\x89PNG")
    top = figure.axes[0]
    assert len(top.lines) == 3
    assert len(top.collections) == 1  # the band
    peak = top.lines[0].get_xdata()[np.argmax(top.lines[0].get_ydata())]
    assert peak == pytest.approx(16.0, rel=0.02)
    assert len(figure.axes) == 3
    assert data.plot().axes[0].get_ylabel() == "u"
    with pytest.raises(LinkwrightError, match="something to draw"):
        lw.control.bode()
    with pytest.raises(LinkwrightError, match="not a str"):
        lw.control.bode("G")


def delayed_with_lost_band(coherence: float) -> lw.control.Spectrum:
    """A delay of 4 ms, measured up to 20 Hz and mere noise above."""
    w = 2 * np.pi * np.linspace(1.0, 200.0, 400)
    response = np.exp(-0.004j * w)
    lost = w > 2 * np.pi * 20.0
    response[lost] = np.exp(1j * np.cumsum(np.full(lost.sum(), 2.0)))  # unwrapped, it would rise on and on
    some = np.ones(len(w))
    return lw.control.Spectrum(w, response, np.where(lost, coherence, 1.0), some, some, some, 4.0, 1e-3)


@pytest.mark.parametrize("with_model", [False, True])
def test_the_phase_of_what_is_not_coherent_does_not_run_away(with_model: bool) -> None:
    measured = delayed_with_lost_band(0.05)
    model = lw.control.Model([1.0], delay=4, dt=1e-3)
    figure = lw.control.bode(measured, *([model] if with_model else []))
    phase = figure.axes[1].get_lines()[0].get_ydata()
    true = -np.degrees(0.004 * measured.w)
    assert np.allclose(phase[measured.hertz < 20], true[measured.hertz < 20], atol=1e-6)
    beside = true if with_model else true[measured.hertz < 20][-1]
    assert np.abs(phase - beside).max() <= 181.0


def test_a_bode_plot_says_where_it_cannot_be_written(tmp_path) -> None:
    with pytest.raises(LinkwrightError, match=r"ends in \.png"):
        lw.control.bode(delayed_with_lost_band(1.0), path=tmp_path / "bode.xyz")
    with pytest.raises(LinkwrightError, match="folder"):
        lw.control.bode(delayed_with_lost_band(1.0), path=tmp_path / "nowhere" / "bode.png")
