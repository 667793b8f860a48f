"""What the covariance of coefficients says about the frequency response: bands and ellipses, to first order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm  # type: ignore[import-untyped]  # SciPy has no types

from linkwright.base.arrays import Floats


@dataclass(frozen=True)
class Band:
    """The region that holds the true frequency response with probability `level` at each single frequency.

    `w` (n) rad/s, `response` (n) complex, `covariance` (n, 2, 2) of its real and imaginary part. The response's
    estimate is normal to first order, so its region is the ellipse δᵀ P⁻¹ δ ≤ χ²(level, 2 degrees of freedom).
    `magnitude` and `phase` (2, n; lower, upper; rad) are the regions of each of the two alone at the same level: ln|G|
    and arg G have the errors Re(δ/G) and Im(δ/G).
    """

    w: Floats
    response: NDArray[np.complex128]
    covariance: Floats
    level: float

    def contains(self, response: NDArray[np.complex128]) -> NDArray[np.bool_]:
        """Whether each of n responses lies in its ellipse."""
        return np.asarray(self.distance(response) <= chi2.ppf(self.level, 2))

    def distance(self, response: NDArray[np.complex128]) -> Floats:
        """δᵀ P⁻¹ δ (n): the squared distance in standard deviations."""
        delta = np.asarray(response) - self.response
        d = np.stack([delta.real, delta.imag], axis=-1)
        out = np.empty(len(self.w))
        for k, (p, x) in enumerate(zip(self.covariance, d, strict=True)):
            # At zero and half the sampling frequency the response is real: the ellipse is a line.
            out[k] = x @ np.linalg.pinv(p, rcond=1e-12, hermitian=True) @ x
        return out

    def ellipse(self, k: int, points: int = 73) -> NDArray[np.complex128]:
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


def response_covariance(gradient: NDArray[np.complex128], covariance: Floats) -> Floats:
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
