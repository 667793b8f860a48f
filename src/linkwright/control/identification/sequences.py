"""Test signals for identification: M-sequences of any order, multisines, sweeps."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arguments import finite_number, positive_number, whole_number
from linkwright.base.arrays import Floats
from linkwright.errors import LinkwrightError

LONGEST = 1 << 24  # samples that are made without being asked for by number
#: The inner exponents of the first primitive polynomial over GF(2) of each degree with the fewest terms: 8: (1, 2, 7)
#: is x⁸ + x⁷ + x² + x + 1.
TAPS = {
    2: (1,),
    3: (1,),
    4: (1,),
    5: (2,),
    6: (1,),
    7: (1,),
    8: (1, 2, 7),
    9: (4,),
    10: (3,),
    11: (2,),
    12: (1, 2, 8),
    13: (1, 2, 5),
    14: (1, 2, 12),
    15: (1,),
    16: (1, 3, 12),
    17: (3,),
    18: (7,),
    19: (1, 2, 5),
    20: (3,),
    21: (2,),
    22: (1,),
    23: (5,),
    24: (1, 2, 7),
    25: (3,),
    26: (1, 2, 6),
    27: (1, 2, 5),
    28: (3,),
    29: (2,),
    30: (1, 2, 23),
    31: (3,),
    32: (1, 2, 22),
}


def m_sequence(order: int, length: int | None = None, amplitude: float = 1.0, hold: int = 1, seed: int = 1) -> Floats:
    """A maximum-length binary sequence of ±amplitude: a shift register of `order` bits, 2 to 32.

    Its period is (2^order − 1)·hold samples, which is also the length unless `length` (samples) says otherwise. Over a
    period its circular autocorrelation is two-valued (amplitude² and −amplitude²/(2^order − 1)), so its spectrum is
    flat; `hold` keeps each bit for so many samples, which moves the power below about 0.44/(hold·dt) Hz. `seed` picks
    the register's first content, thus a circular shift of the same sequence.

    - `order`: bits of the register. `length`: samples, a whole period unless given.
    - `amplitude`: 1.0. `hold`: samples per bit, 1. `seed`: a whole number, 1.

    >>> import linkwright as lw
    >>> lw.control.m_sequence(3).tolist()
    [1.0, -1.0, -1.0, 1.0, -1.0, 1.0, 1.0]

    Returns the samples (length). Raises `LinkwrightError` for an order out of range, a period that is too long to be
    made without `length`, and numbers that are not whole or not finite.
    """
    order, hold = whole_number("order", order, 2), whole_number("hold", hold, 1)
    if order > 32:
        raise LinkwrightError(f"an M-sequence has order 2 to 32, not {order}")
    period = (1 << order) - 1
    if length is None:
        length = period * hold
        if length > LONGEST:
            raise LinkwrightError(
                f"a whole period of an M-sequence of order {order} held for {hold} has {length:,} samples: "
                f"give the number that you want, as length=..."
            )
    length = whole_number("length", length, 1)
    finite_number("amplitude", amplitude)
    count = -(-length // hold)
    bits = np.resize(
        _register(order, min(count, period), (_whole_seed(seed) - 1) % period + 1), count
    )  # repeats the period
    levels: Floats = np.asarray((2.0 * float(amplitude)) * bits - float(amplitude), np.float64)
    return levels if hold == 1 else np.repeat(levels, hold)[:length]


def _whole_seed(seed: Any) -> int:
    try:
        return index(seed)
    except TypeError:
        raise LinkwrightError(f"seed is a whole number, not {seed!r}") from None


def _register(order: int, count: int, state: int) -> NDArray[np.uint8]:
    """`count` bits of a shift register: b[t] = ⊕ b[t − lag].

    A polynomial over GF(2) squared has the same terms at doubled lags, so the recurrence may be taken at lags
    2^j·lag as soon as enough bits are there: blocks double, and the whole is a few vector operations.
    """
    lags = np.array([order - k for k in (0, *TAPS[order])])
    bits = np.zeros(max(count, order), np.uint8)
    bits[:order] = [state >> k & 1 for k in range(order)]
    done = order
    while done < count:
        while 2 * lags.max() <= done:
            lags = 2 * lags
        block = min(int(lags.min()), count - done)
        for lag in lags:
            bits[done : done + block] ^= bits[done - lag : done - lag + block]
        done += block
    return bits[:count]


def multisine(
    length: int,
    dt: float,
    band: tuple[float, float],
    *,
    lines: int | None = None,
    rms: float = 1.0,
    periods: int = 1,
    phases: str = "schroeder",
    seed: int = 0,
) -> Floats:
    """A periodic sum of sines of equal size between band[0] and band[1] (Hz): `periods` times `length` samples of dt.

    - `length`: samples of a period. `dt`: the sampling period (s). `periods`: 1.
    - `band`: lowest and highest frequency (Hz). The sines lie on the lines k/(length·dt) of the period, all of the band
      or `lines` of them evenly picked, so that a discrete Fourier transform over whole periods has no leakage.
    - `rms`: the root mean square of the samples; 1.0.
    - `phases`: "schroeder" keeps the crest factor low; "random" draws them from `seed` (0).

    >>> import linkwright as lw
    >>> lw.control.multisine(256, 1e-3, (10.0, 100.0), periods=2).shape
    (512,)

    Raises `LinkwrightError` for a band beyond half the sampling rate or without a line, and for other phases.
    """
    length, periods = whole_number("length", length, 2), whole_number("periods", periods, 1)
    positive_number("dt", dt)
    finite_number("rms", rms)
    low, high = float(band[0]), float(band[1])
    if not 0 <= low <= high <= 0.5 / dt:
        raise LinkwrightError(
            f"the band {low:g} to {high:g} Hz must lie between 0 and half the sampling, {0.5 / dt:g} Hz"
        )
    step = 1.0 / (length * dt)
    first, last = max(1, int(np.ceil(low / step - 1e-9))), int(np.floor(high / step + 1e-9))
    last = min(last, (length - 1) // 2)  # the line at half the sampling has no phase of its own
    if last < first:
        raise LinkwrightError(
            f"no line of {step:g} Hz lies between {low:g} and {high:g} Hz: take a longer period than {length} samples"
        )
    chosen = np.arange(first, last + 1)
    if lines is not None:
        lines = whole_number("lines", lines, 1)
        chosen = np.unique(np.linspace(first, last, min(lines, len(chosen))).round().astype(int))
    count = len(chosen)
    if phases == "schroeder":
        k = np.arange(1, count + 1)
        angles = -np.pi * k * (k - 1) / count
    elif phases == "random":
        angles = np.random.default_rng(seed).uniform(0.0, 2 * np.pi, count)
    else:
        raise LinkwrightError(f"phases are 'schroeder' or 'random', not {phases!r}")
    spectrum = np.zeros(length // 2 + 1, complex)
    spectrum[chosen] = np.exp(1j * angles)
    period = np.fft.irfft(spectrum, length)
    return np.tile(period * (rms / np.sqrt(np.mean(period**2))), periods)


def chirp(
    length: int, dt: float, band: tuple[float, float], *, amplitude: float = 1.0, sweep: str = "linear"
) -> Floats:
    """A sine (length) that sweeps over the `band`, from band[0] to band[1] (Hz), in `length` samples of `dt` (s).

    `amplitude` is 1.0; `sweep` is "linear" or "logarithmic".

    >>> import linkwright as lw
    >>> lw.control.chirp(1000, 1e-3, (1.0, 50.0)).shape
    (1000,)

    Raises `LinkwrightError` for a band beyond half the sampling rate, or a logarithmic sweep from or to 0 Hz.
    """
    length = whole_number("length", length, 2)
    positive_number("dt", dt)
    finite_number("amplitude", amplitude)
    f0, f1 = float(band[0]), float(band[1])
    if not (0 <= f0 <= 0.5 / dt and 0 <= f1 <= 0.5 / dt):
        raise LinkwrightError(
            f"the sweep {f0:g} to {f1:g} Hz must lie between 0 and half the sampling, {0.5 / dt:g} Hz"
        )
    t, whole = np.arange(length) * dt, length * dt
    if sweep == "linear" or (sweep == "logarithmic" and f0 == f1):
        phase = 2 * np.pi * (f0 * t + 0.5 * (f1 - f0) / whole * t**2)
    elif sweep == "logarithmic":
        if f0 <= 0 or f1 <= 0:
            raise LinkwrightError("a logarithmic sweep cannot start or end at 0 Hz: take sweep='linear'")
        rate = np.log(f1 / f0) / whole
        phase = 2 * np.pi * f0 * np.expm1(rate * t) / rate
    else:
        raise LinkwrightError(f"a sweep is 'linear' or 'logarithmic', not {sweep!r}")
    return np.asarray(amplitude * np.sin(phase))
