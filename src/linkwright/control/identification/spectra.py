"""Frequency responses and noise spectra straight from a record, without a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.signal import csd, fftconvolve, get_window, welch  # type: ignore[import-untyped]  # SciPy has no types

from linkwright.base.arguments import whole_number
from linkwright.base.arrays import Floats
from linkwright.control.identification.records import Record
from linkwright.control.linear_systems import Complexes
from linkwright.errors import DataError

if TYPE_CHECKING:
    from linkwright.control.identification.models import Model


@dataclass(frozen=True)
class Spectrum:
    """A measured frequency response: `w` (n) rad/s, `response` (n), `coherence` (n), and power densities (unit²/Hz).

    `deviation` (n) is the standard deviation of |response|, from the coherence and the number of `averages`: the true
    response lies within 2.45 of it (95 %, in the plane). `input` and `noise` (n) are one-sided power densities of u and
    of what the response leaves unexplained in y. `noise` is NaN where it cannot be estimated (one average). `dt` is the
    record's period (s).

    >>> import linkwright as lw
    >>> u = lw.control.m_sequence(8)
    >>> measured = lw.control.spectrum(lw.control.Record(u, 2.0 * u, 1.0))
    >>> float(measured.where(coherence=0.9).response.real.round(9).min())
    2.0

    `spectrum` and `empirical` give it; `where` raises `DataError` where no line is left.
    """

    w: Floats
    response: Complexes
    coherence: Floats
    deviation: Floats
    input: Floats
    noise: Floats
    averages: float
    dt: float

    @property
    def hertz(self) -> Floats:
        """The frequencies (n) in Hz."""
        return self.w / (2 * np.pi)

    def __repr__(self) -> str:
        count = f"{len(self.w)} frequenc{'y' if len(self.w) == 1 else 'ies'}"
        if not len(self.w):
            return f"Spectrum: {count}"
        return (
            f"Spectrum: {count} from {self.hertz[0]:.4g} to {self.hertz[-1]:.4g} Hz, {self.averages:.3g} "
            f"averages, median coherence {np.median(self.coherence):.3g}"
        )

    def where(self, *, coherence: float = 0.0, low: float = 0.0, high: float = np.inf) -> Spectrum:
        """Only the lines of at least this `coherence` (0), between `low` (0) and `high` (∞), rad/s."""
        keep = (self.coherence >= coherence) & (self.w >= low) & (self.w <= high)
        if not keep.any():
            raise DataError(
                f"no line has a coherence of {coherence:g} between {low:g} and {high:g} rad/s: the largest is "
                f"{self.coherence.max():.3g}. Excite more strongly there, or record for longer"
            )
        names = ("w", "response", "coherence", "deviation", "input", "noise")
        return replace(self, **{name: getattr(self, name)[keep] for name in names})


def spectrum(record: Record, length: int | None = None, *, overlap: float = 0.5, window: str = "hann") -> Spectrum:
    """The response of a `record` by averaged periodograms (Welch), as a `Spectrum`.

    - `length`: samples of a segment; a power of two with about four segments in the record unless given. The resolution
      is about 1.5/(length·dt) Hz.
    - `overlap`: the part of a segment that the next one has too; 0.5. `window`: as SciPy names it; "hann".

    With feedback S_yu/S_uu is biased towards −1/K; where the record has an outside reference r, S_yr/S_ur is taken
    instead, which is not.

    >>> import linkwright as lw
    >>> u = lw.control.m_sequence(8)
    >>> float(lw.control.spectrum(lw.control.Record(u, 2.0 * u, 1.0)).response.real.round(9).max())
    2.0

    Raises `DataError` for a length, overlap or window that cannot be used.
    """
    n = len(record)
    length = int(length) if length is not None else max(16, min(n, 1 << int(np.log2(max(n / 4, 16)))))
    if not 8 <= length <= n:
        raise DataError(f"segments of {length} samples do not fit a record of {n}: take 8 to {n}")
    if not 0.0 <= overlap < 1.0:
        raise DataError(f"segments overlap by a fraction from 0 to below 1, not {overlap!r}")
    options = {"fs": 1.0 / record.dt, "window": window, "nperseg": length, "noverlap": int(overlap * length)}
    try:
        hertz, suu = welch(record.u, **options)
    except ValueError as error:
        raise DataError(f"the spectrum cannot be computed: {error}") from error
    _, syy = welch(record.y, **options)
    segments = 1 + (n - length) // max(1, length - int(overlap * length))
    averages = _independent(segments, length, length - int(overlap * length), window)
    if record.r is None:
        _, syu = csd(record.u, record.y, **options)
        response = _ratio(syu, suu)
        coherence = np.clip(np.abs(syu) ** 2 / np.maximum(suu * syy, 1e-300), 0.0, 1.0)
        noise = syy * (1.0 - coherence)
    else:
        _, srr = welch(record.r, **options)
        _, syr = csd(record.r, record.y, **options)
        _, sur = csd(record.r, record.u, **options)
        response = _ratio(syr, sur)
        # Of v = y − G u: what feedback makes of the noise in u is taken out again.
        _, syu = csd(record.u, record.y, **options)
        noise = np.maximum(syy - 2 * np.real(np.conj(response) * syu) + np.abs(response) ** 2 * suu, 0.0)
        by_r = np.abs(sur) ** 2 / np.maximum(srr, 1e-300) * np.abs(response) ** 2
        coherence = np.clip(by_r / np.maximum(by_r + noise, 1e-300), 0.0, 1.0)
    if segments > 1:
        noise = noise * averages / max(averages - 1.0, 1.0) if averages > 2 else noise
    else:
        noise = np.full_like(noise, np.nan)
    return _spectrum(hertz, response, coherence, suu, noise, averages, record.dt)


def _independent(segments: int, length: int, step: int, window: str) -> float:
    """How many independent segments average as well as these, which overlap (Welch 1967, of white noise)."""
    w = get_window(window, length)
    # Periodograms `shift` samples apart are correlated by the square of the window's own correlation.
    correlation = fftconvolve(w, w[::-1])[length - 1 :] / np.sum(w * w)
    lag = np.arange(1, min(segments, -(-length // step)))
    return float(segments / (1.0 + 2.0 * np.sum((1.0 - lag / segments) * correlation[lag * step] ** 2)))


def empirical(record: Record, period: int, *, skip: int = 0) -> Spectrum:
    """The response of a `record` to a periodic input (multisine, M-sequence), as a `Spectrum`.

    Fourier transforms over periods of `period` samples are averaged over the periods after the first `skip` (0), which
    hold the transient; what differs from period to period is the noise. Only lines that the input excites are given.
    There is no leakage, thus no bias by windows.

    >>> import linkwright as lw
    >>> u = lw.control.m_sequence(6, length=126)
    >>> float(lw.control.empirical(lw.control.Record(u, 2.0 * u, 1.0), 63).response.real.round(9).max())
    2.0

    Raises `DataError` where the record holds no whole period after those.
    """
    whole_number("period, in samples,", period, 2)
    count = len(record) // period - skip
    if skip < 0 or count < 1:
        whole = "1 period" if len(record) // period == 1 else f"{len(record) // period} periods"
        raise DataError(
            f"{len(record)} samples hold {whole} of {period}; {skip} skipped leave none: record more periods"
        )

    def lines(x: Floats) -> Complexes:
        return np.asarray(np.fft.rfft(x[skip * period : (skip + count) * period].reshape(count, period), axis=1))[:, 1:]

    u, y = lines(record.u), lines(record.y)
    base = u if record.r is None else lines(record.r)
    mean_u, mean_y, mean_base = u.mean(axis=0), y.mean(axis=0), base.mean(axis=0)
    on = np.abs(mean_base) > 1e-6 * np.abs(mean_base).max()
    response = _ratio(mean_y, mean_u)
    miss = y - response * u
    density = 2.0 * record.dt / period
    noise = np.full(len(response), np.nan)
    if count > 1:
        miss = miss - miss.mean(axis=0)
        noise = density * np.sum(np.abs(miss) ** 2, axis=0) / (count - 1)
    power = density * np.abs(mean_u) ** 2
    explained = np.abs(response) ** 2 * power
    coherence = explained / np.maximum(explained + (noise if count > 1 else 0.0), 1e-300)
    hertz = np.arange(1, len(response) + 1) / (period * record.dt)
    return _spectrum(hertz[on], response[on], coherence[on], power[on], noise[on], float(count), record.dt)


def multiplicative_error(measured: Spectrum, model: Model) -> Floats:
    """|Ĝ/G_m − 1| (n) at the frequencies of the measured response: the error that a robust design must endure.

    `measured` is a `Spectrum`, `model` a `Model`.

    >>> import linkwright as lw
    >>> u = lw.control.m_sequence(8)
    >>> measured = lw.control.spectrum(lw.control.Record(u, 2.0 * u, 1.0))
    >>> float(lw.control.multiplicative_error(measured, lw.control.Model([1.0], delay=0))[3].round(9))
    1.0

    It is infinite or NaN where the model's response is zero.
    """
    nominal = model.frequency_response(measured.w)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.abs(measured.response / nominal - 1.0))


def _spectrum(
    hertz: Floats, response: Complexes, coherence: Floats, power: Floats, noise: Floats, averages: float, dt: float
) -> Spectrum:
    on = hertz > 0
    with np.errstate(divide="ignore"):
        relative = np.sqrt(np.maximum(1.0 - coherence, 0.0) / np.maximum(coherence, 1e-12) / (2.0 * averages))
    deviation = np.abs(response) * relative
    w = 2 * np.pi * hertz
    return Spectrum(w[on], response[on], coherence[on], deviation[on], power[on], noise[on], averages, dt)


def _ratio(a: Complexes, b: Complexes) -> Complexes:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(np.abs(b) > 0, a / np.where(b == 0, 1, b), np.nan))
