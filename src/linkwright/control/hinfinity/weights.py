"""Weights for H∞ design from measured spectra: low-order filters that lie above what was measured."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwright.base.arguments import real_array
from linkwright.base.arrays import Floats
from linkwright.control.linear_systems import System, from_polynomials, sampled, to_continuous, to_sampled
from linkwright.errors import DesignError, ModelError, ShapeError


def magnitude_from_above(
    w: ArrayLike, magnitude: ArrayLike, order: int = 2, *, dt: float | None = None, floor: float = 1e-3
) -> Any:
    """A stable, minimum-phase, biproper filter with |W(jω)| at or above the data, as closely as its order allows.

    - `w` (n) rad/s, `magnitude` (n): the data; magnitudes below `floor` (1e-3) times the largest count as that.
    - `order`: that of the filter, 0 to 12; 2. `dt`: its sampling period (s); None for a continuous one.

    The ratio of |W| to the data is minimised at its worst frequency: for a given ratio |W|² = N/D with polynomials N
    and D of cos θ, tan(θ/2) = ω/ω₀, is a linear program, and N and D are then factored.

    >>> import linkwright as lw
    >>> W = lw.control.magnitude_from_above([1.0, 10.0], [1.0, 2.0], 1)
    >>> bool(abs(W(10.0j)) >= 2.0)
    True

    Returns python-control's `StateSpace`. Raises `ShapeError` and `ModelError` for data that cannot be used,
    `DesignError` where no filter of the order lies above them.
    """
    return from_above(w, magnitude, order, dt=dt, floor=floor).to_control()


def error_weight(
    w: ArrayLike, measured: ArrayLike, model: ArrayLike, order: int = 2, *, dt: float | None = None, safety: float = 1.0
) -> Any:
    """W_T from above the multiplicative error |Ĝ(jω) − G_m(jω)| / |G_m(jω)| of a model, times a `safety` factor, 1.0.

    - `w` (n) rad/s; `measured` and `model` (n): complex frequency responses there.
    - `order`: that of the filter, 2. `dt`: its sampling period (s); None for a continuous one.

    >>> import linkwright as lw
    >>> W = lw.control.error_weight([1.0, 10.0], [1.1, 1.3], [1.0, 1.0], 1)
    >>> bool(abs(W(10.0j)) >= 0.3)
    True

    Returns python-control's `StateSpace`. Raises what `magnitude_from_above` does, and `ModelError` where the model is
    zero.
    """
    return from_above(w, safety * relative_error(w, measured, model), order, dt=dt).to_control()


def performance_weight(
    bandwidth: float,
    *,
    low: float = 100.0,
    high: float = 0.5,
    w: ArrayLike | None = None,
    spectrum: ArrayLike | None = None,
    order: int = 2,
    dt: float | None = None,
) -> Any:
    """W_S: gain `low` well below the bandwidth, crossing 1 there, gain `high` well above it; no integrator.

    - `bandwidth`: rad/s. `low`: above 1, 100.0. `high`: between 0 and 1, 0.5.
    - `w` (n) rad/s and `spectrum` (n): a reference's amplitude spectrum; none unless given. W_S then has the shape of
      that spectrum, scaled to the gain low at its largest and cut off above the bandwidth: errors are small where the
      reference has content. `order` (2) is that of the filter then.
    - `dt`: the sampling period (s); None for a continuous weight.

    >>> import linkwright as lw
    >>> round(float(abs(lw.control.performance_weight(10.0)(10.0j))), 6)
    1.0

    Returns python-control's `StateSpace`. Raises `ModelError` for numbers out of these ranges, `ShapeError` for a
    spectrum that does not fit.
    """
    if not (np.isfinite(bandwidth) and bandwidth > 0 and 0 < high < 1 < low < np.inf):
        text = "the bandwidth is positive, low is above 1 and finite (an integrator is none), high between 0 and 1"
        raise ModelError(f"{text}; not {bandwidth!r}, {low!r} and {high!r}")
    if dt is not None and bandwidth >= np.pi / dt:
        raise ModelError(f"a bandwidth of {bandwidth:g} rad/s is above half the sampling's, {np.pi / dt:g} rad/s")
    if (w is None) != (spectrum is None):
        raise ModelError("give both w= and spectrum=, or neither")
    if w is None:
        if dt is None:
            return first_order(bandwidth, low, high).to_control()
        return sampled(first_order(bandwidth, low, high), dt, "tustin", bandwidth).to_control()
    points, size = real_array("w", w), real_array("spectrum", spectrum)
    if points.shape != size.shape or not np.any(size > 0):
        raise ShapeError(f"w and spectrum are of one length and not all zero, not {points.shape} and {size.shape}")
    roll = 1 / np.sqrt(1 + (points / bandwidth) ** 4)
    return magnitude_from_above(points, np.maximum(low * size / size.max() * roll, high), order, dt=dt)


def relative_error(w: ArrayLike, measured: ArrayLike, model: ArrayLike) -> Floats:
    """|Ĝ − G_m| / |G_m| at each frequency."""
    points, response, fitted = np.asarray(w, float), np.asarray(measured, complex), np.asarray(model, complex)
    if not points.shape == response.shape == fitted.shape or points.ndim != 1:
        shapes = f"{points.shape}, {response.shape}, {fitted.shape}"
        text = f"frequencies, measured and model are of one length, not {shapes}"
        raise ShapeError(text)
    if np.any(np.abs(fitted) == 0):
        at = float(points[np.argmin(np.abs(fitted))])
        raise ModelError(f"the model is zero at {at / (2 * np.pi):.4g} Hz: leave that frequency out")
    return np.asarray(np.abs(response - fitted) / np.abs(fitted))


def first_order(bandwidth: float, low: float, high: float) -> System:
    """(high s + p low)/(s + p) with gain 1 at the bandwidth."""
    p = bandwidth * np.sqrt((1 - high**2) / (low**2 - 1))
    return from_polynomials([high, p * low], [1.0, p])


def from_above(
    w: ArrayLike, magnitude: ArrayLike, order: int = 2, *, dt: float | None = None, floor: float = 1e-3
) -> System:
    """See `magnitude_from_above`; as matrices."""
    theta, size, turn = _data(w, magnitude, order, dt, floor)
    low, high = 1.0, float((size.max() / size.min()) ** 2) * 1.01
    best = _program(theta, size, order, high)
    if best is None:
        raise DesignError(f"no filter of order {order} lies above the data: try a higher order, or fewer decades")
    # Bisection over the worst ratio, on the logarithmic scale; each ratio is one linear program.
    for _ in range(30):
        if high / low < 1.001:
            break
        middle = float(np.sqrt(low * high))
        filters = _program(theta, size, order, middle)
        if filters is None:
            low = middle
        else:
            best, high = filters, middle
    numerator, denominator = (_factor(series) for series in best)
    flat = to_continuous(from_polynomials(numerator, denominator, 1.0))
    W = System(flat.A * turn, flat.B * np.sqrt(turn), flat.C * np.sqrt(turn), flat.D)
    W = W if dt is None else to_sampled(W, dt, 2 / dt)
    # Factoring rounds: a last scaling puts it above for certain.
    points = real_array("w", w)
    ratio = float(np.min(np.abs(W.at(points)[:, 0, 0]) / real_array("magnitude", magnitude).clip(1e-300)))
    scale = max(1.0, 1.0 / ratio) * (1 + 1e-9)
    return System(W.A, W.B, W.C * scale, W.D * scale, W.dt)


def _data(w: Any, magnitude: Any, order: int, dt: float | None, floor: float) -> tuple[Floats, Floats, float]:
    points, size = real_array("w", w), real_array("magnitude", magnitude)
    if points.ndim != 1 or points.shape != size.shape or points.size < 2:
        raise ShapeError(f"frequencies and magnitudes are of one length, two or more; not {points.shape}, {size.shape}")
    bad = ~np.isfinite(points) | ~np.isfinite(size) | (points < 0) | (size < 0)
    if np.any(bad):
        raise ModelError(f"frequency or magnitude {int(np.argmax(bad))} is negative or not finite: leave it out")
    if not 0 <= order <= 12:
        raise ModelError(f"the order of a weight is 0 to 12, not {order!r}")
    if not np.any(size > 0):
        raise ModelError("all magnitudes are zero: there is nothing to lie above")
    size = np.maximum(size, floor * size.max())
    if dt is not None:
        if points.max() > np.pi / dt * (1 + 1e-9):
            raise ModelError(
                f"frequencies end at {np.pi / dt:g} rad/s, half the sampling's; these go to {points.max():g}"
            )
        # Tustin's image of the frequencies: features far below the sampling's would crowd at θ = 0.
        points = 2 / dt * np.tan(np.minimum(points * dt / 2, np.pi / 2 - 1e-9))
    positive = points[points > 0]
    if not positive.size:
        raise ModelError("give at least one frequency above zero")
    turn = float(np.exp(np.mean(np.log(positive))))
    return 2 * np.arctan(points / turn), size, turn


def _program(theta: Floats, size: Floats, order: int, ratio: float) -> tuple[Floats, Floats] | None:
    """Cosine series N, D with size² D ≤ N ≤ ratio · size² D at the data, and both positive everywhere."""
    from scipy.optimize import linprog  # type: ignore[import-untyped]  # weight: scipy, which has no types

    k = np.arange(order + 1)
    everywhere = np.concatenate([np.linspace(0, np.pi, 60), theta])
    level = float(np.exp(np.mean(np.log(size**2))))
    at_data, dense = np.cos(theta[:, None] * k), np.cos(everywhere[:, None] * k)
    s = (size**2 / level)[:, None]
    zero = np.zeros_like(dense)
    # Rows divided by their own size: the data span decades.
    above = np.hstack([-at_data, s * at_data]) / s
    below = np.hstack([at_data, -ratio * s * at_data]) / (ratio * s)
    low = float(s.min())
    rows = [above, below, np.hstack([-dense / low, zero]), np.hstack([zero, -dense])]
    right = [np.zeros(2 * theta.size), np.full(everywhere.size, -1e-4), np.full(everywhere.size, -1e-4)]
    one = np.hstack([np.zeros((1, order + 1)), np.mean(np.cos(np.linspace(0, np.pi, 200)[:, None] * k), 0)[None]])
    answer = linprog(
        np.zeros(2 * (order + 1)),
        A_ub=np.vstack(rows),
        b_ub=np.concatenate(right),
        A_eq=one,
        b_eq=[1.0],
        bounds=(None, None),
        method="highs",
    )
    return (level * answer.x[: order + 1], answer.x[order + 1 :]) if answer.status == 0 else None


def _factor(series: Floats) -> Floats:
    """The polynomial p(z) with its zeros inside the unit circle and |p(e^{jθ})|² = Σ c_k cos kθ."""
    n = series.size - 1
    if n == 0:
        return np.sqrt(series)
    full = np.concatenate([series[:0:-1] / 2, series[:1], series[1:] / 2])
    roots = np.roots(full)
    # A vanishing leading coefficient puts roots at infinity; their partners are at zero.
    roots = np.concatenate([roots, np.zeros(max(0, 2 * n - roots.size))])
    inside = roots[np.argsort(np.abs(roots))[:n]]
    p = np.real(np.poly(inside))
    here = np.linspace(0, np.pi, 50)
    wanted = np.cos(here[:, None] * np.arange(n + 1)) @ series
    got = np.abs(np.polyval(p, np.exp(1j * here))) ** 2
    return np.asarray(p * np.sqrt(float(np.exp(np.mean(np.log(np.maximum(wanted, 1e-300) / got))))))
