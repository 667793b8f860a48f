"""How good a model is: bands and ellipses of its response from the covariance of coefficients, to first order; residual
tests with their limits; fits on data that it has not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import chi2, norm  # type: ignore[import-untyped]  # SciPy has no types

from linkwright.base.arrays import Bools, Floats
from linkwright.control.identification.prediction import Orders, Predictor, stable
from linkwright.control.linear_systems import Complexes
from linkwright.errors import DataError

if TYPE_CHECKING:
    from linkwright.control.identification.models import Model
    from linkwright.control.identification.records import Record


@dataclass(frozen=True)
class Band:
    """The region that holds the true frequency response with probability `level` at each single frequency.

    `w` (n) rad/s, `response` (n) complex, `covariance` (n, 2, 2) of its real and imaginary part. The response's
    estimate is normal to first order, so its region is the ellipse δᵀ P⁻¹ δ ≤ χ²(level, 2 degrees of freedom).
    `magnitude` and `phase` (2, n; lower, upper; rad) are the regions of each of the two alone at the same level: ln|G|
    and arg G have the errors Re(δ/G) and Im(δ/G).
    """

    w: Floats
    response: Complexes
    covariance: Floats
    level: float

    def contains(self, response: Complexes) -> Bools:
        """Whether each of n responses lies in its ellipse."""
        return np.asarray(self.distance(response) <= chi2.ppf(self.level, 2))

    def distance(self, response: Complexes) -> Floats:
        """δᵀ P⁻¹ δ (n): the squared distance in standard deviations."""
        delta = np.asarray(response) - self.response
        d = np.stack([delta.real, delta.imag], axis=-1)
        # At zero and half the sampling frequency the response is real: the ellipse is a line.
        inverse = np.linalg.pinv(self.covariance, rcond=1e-12, hermitian=True)
        return np.asarray(np.einsum("ni,nij,nj->n", d, inverse, d))

    def ellipse(self, k: int, points: int = 73) -> Complexes:
        """The border of the region at frequency number k, as complex numbers (points)."""
        size, axes = np.linalg.eigh(self.covariance[k])
        angle = np.linspace(0.0, 2 * np.pi, points)
        circle = np.stack([np.cos(angle), np.sin(angle)])
        d = axes @ (np.sqrt(np.maximum(size, 0.0) * chi2.ppf(self.level, 2))[:, None] * circle)
        return np.asarray(self.response[k] + d[0] + 1j * d[1])

    @property
    def _relative(self) -> Floats:
        """The standard deviations (2, n) of ln|G| and arg G."""
        g = self.response
        turn = (
            np.stack([np.stack([g.real, g.imag], -1), np.stack([-g.imag, g.real], -1)], -2)
            / (np.abs(g) ** 2)[:, None, None]
        )
        p = turn @ self.covariance @ turn.transpose(0, 2, 1)
        return np.asarray(np.sqrt(np.maximum(np.stack([p[:, 0, 0], p[:, 1, 1]]), 0.0)))

    @property
    def magnitude(self) -> Floats:
        """Lower and upper |G| (2, n)."""
        k = norm.ppf(0.5 + 0.5 * self.level) * self._relative[0]
        return np.asarray(np.abs(self.response) * np.exp(np.clip(np.stack([-k, k]), -700, 700)))

    @property
    def phase(self) -> Floats:
        """Lower and upper arg G (2, n), rad, unwrapped; never wider than a half turn to each side."""
        k = np.minimum(norm.ppf(0.5 + 0.5 * self.level) * self._relative[1], np.pi)
        return np.asarray(np.unwrap(np.angle(self.response)) + np.stack([-k, k]))


def response_covariance(gradient: Complexes, covariance: Floats) -> Floats:
    """The covariance (n, 2, 2) of real and imaginary part, from ∂G/∂θ (n, p) and that of θ (p, p)."""
    t = np.stack([gradient.real, gradient.imag], axis=1)
    return np.asarray(t @ covariance @ t.transpose(0, 2, 1))


def parameter_covariance(jacobian: Floats, variance: float, count: int) -> Floats:
    """σ²(ΨᵀΨ)⁻¹ of the first `count` of all parameters, the rest being estimated along: the Cramér–Rao bound.

    Directions that the data do not determine get an infinite variance's stand-in: the pseudo-inverse would call them
    certain, so their singular values are held at 1e-12 of the largest.
    """
    scale = np.linalg.norm(jacobian, axis=0)
    scale[scale == 0.0] = 1.0
    r = np.linalg.qr(jacobian / scale, mode="r")
    _, s, vt = np.linalg.svd(r)
    s = np.maximum(s, 1e-12 * s[0])
    half = (vt.T / s)[:count] / scale[:count, None]
    return np.asarray(variance * half @ half.T)


@dataclass(frozen=True)
class ResidualTests:
    """Two tests of residuals e, each a number beside its limit.

    `autocorrelation` (lags) at lags 1, 2, ...: white residuals lie within ±`auto_limit` at each single lag, and
    `whiteness`, the weighted sum of their squares (Ljung and Box), under `whiteness_limit`, the χ² quantile.
    `crosscorrelation` (lags + 1) of e(t) with u(t − k), k = 0, 1, ...: where the plant's model is complete, within
    ±`cross_limit` at each single lag, and `independence`, the largest of all in standard deviations, under
    `independence_limit`. Only past inputs are looked at, so that feedback does not count against the model. Where the
    noise is not modelled (OE), residuals need not be white.
    """

    autocorrelation: Floats
    auto_limit: float
    whiteness: float
    whiteness_limit: float
    crosscorrelation: Floats
    cross_limit: float
    independence: float
    independence_limit: float
    level: float

    @property
    def white(self) -> bool:
        """Whether nothing is left in the residuals that their own past predicts."""
        return self.whiteness <= self.whiteness_limit

    @property
    def independent(self) -> bool:
        """Whether nothing is left in the residuals that past inputs predict."""
        return self.independence <= self.independence_limit

    def __bool__(self) -> bool:
        return self.white and self.independent

    def __str__(self) -> str:
        def compared(value: float, limit: float) -> str:
            return f"{value:.4g} {'under' if value <= limit else 'over'} the {100 * self.level:g} % limit {limit:.4g}"

        first = "The residuals are white" if self.white else "The residuals are not white"
        first += f" ({compared(self.whiteness, self.whiteness_limit)})"
        second = "independent" if self.independent else "not independent"
        second = f"{second} of past inputs ({compared(self.independence, self.independence_limit)})"
        text = f"{first}, and {second}."
        if not self.independent:
            text += " The plant's model misses something: try larger nb and nf, or a smaller delay."
        elif not self.white:
            text += " The noise's model misses something: try larger nc and nd (a box-jenkins model)."
        return text


def residual_tests(model: Model, record: Record, lags: int, level: float) -> ResidualTests:
    """See `Model.residual_tests`."""
    if not 0.0 < level < 1.0:
        raise DataError(f"a level lies between 0 and 1, such as 0.99, not {level!r}")
    predictor = Predictor(record.u, record.y, model.orders, shared=model.shared, initial=model.initial)
    e = model.residuals(record)[predictor.noise_start :]
    u = record.u[predictor.noise_start :] - record.u.mean()
    n = len(e)
    noise_count = model.orders.nc + (model.orders.nf if model.shared else model.orders.nd)
    if lags < noise_count + 1 or n < 4 * lags:
        raise DataError(
            f"{lags} lags cannot be tested on {n} residuals of a noise model of {noise_count} coefficients: take more "
            f"than {noise_count} lags and a record of at least four times as many samples"
        )
    re = _correlation(e, e, lags)
    rho = re[1:] / re[0]
    q = n * (n + 2) * float(np.sum(rho**2 / (n - np.arange(1, lags + 1))))
    ru = _correlation(u, u, lags)
    reu = _correlation(e, u, lags)
    # The variance of a cross-correlation at one lag, for independent signals of any colour.
    spread = (re[0] * ru[0] + 2 * float(re[1:] @ ru[1:])) / n
    k = float(norm.ppf(0.5 + 0.5 * level))
    scale = float(np.sqrt(re[0] * ru[0]))
    deviation = float(np.sqrt(max(spread, 1e-300)))
    together = 0.5 * (1.0 - level) / (lags + 1)  # so that the largest of all is over its limit that seldom
    return ResidualTests(
        rho,
        k / np.sqrt(n),
        q,
        float(chi2.ppf(level, lags - noise_count)),
        reu / scale,
        k * deviation / scale,
        float(np.abs(reu).max()) / deviation,
        float(norm.ppf(1.0 - together)),
        level,
    )


def _correlation(a: Floats, b: Floats, lags: int) -> Floats:
    """Σ a(t) b(t − k) / n for k = 0 ... lags."""
    n = len(a)
    return np.array([a[k:] @ b[: n - k] / n for k in range(min(lags, n - 1) + 1)] + [0.0] * max(0, lags - n + 1))


def simulated_fit(model: Model, record: Record) -> float:
    """1 − |y − ŷ|/|y − mean y| of the noise-free output ŷ, whose initial conditions are those that fit best."""
    if not stable(model.F):
        return float("-inf")
    o = model.orders
    predictor = Predictor(record.u, record.y, Orders(o.nb, o.nf, 0, 0, o.nk), shared=False)
    return _fit(record.y, predictor.residuals(predictor.start(np.concatenate([model.B, model.F[1:]]))))


def predicted_fit(model: Model, record: Record) -> float:
    """The same of the output predicted one sample ahead."""
    return _fit(record.y, model.residuals(record))


def _fit(y: Floats, miss: Floats) -> float:
    spread = float(np.linalg.norm(y - y.mean()))
    return 1.0 - float(np.linalg.norm(miss)) / spread if spread > 0 else float("-inf")
