"""One-step predictors of linear models: residuals, their analytic Jacobian, stability. Estimates nothing by itself.

A model is y = q^-nk B/F u + C/D e. Its residuals are e = D/C (y − q^-nk B/F u); where the plant and the noise share
their denominator A = F = D (ARX, ARMAX), e = (A y − q^-nk B u)/C, which is stable for unstable A too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lstsq  # type: ignore[import-untyped]  # SciPy has no types
from scipy.signal import lfilter  # type: ignore[import-untyped]  # SciPy has no types

from linkwright.base.arrays import Floats
from linkwright.errors import DataError, LinkwrightError


@dataclass(frozen=True)
class Orders:
    """The numbers of coefficients: `nb` of B, `nf` of F, `nc` of C, `nd` of D (the leading ones not counted), and `nk`.

    B has its first coefficient at q^-nk (samples; 1). nc and nd are 0 unless given. In ARX and ARMAX models F = D = A,
    and nd = nf is one set of coefficients, which is `shared`.

    >>> import linkwright as lw
    >>> orders = lw.control.Orders(2, 2, nk=3)
    >>> str(orders), orders.count(False), orders.names(False)
    ('nb=2, nf=2, nc=0, nd=0, nk=3', 4, ['b0', 'b1', 'f1', 'f2'])

    Raises `LinkwrightError` for numbers that are not whole, below 0 (nb: below 1) or beyond 200.
    """

    nb: int
    nf: int
    nc: int = 0
    nd: int = 0
    nk: int = 1

    def __post_init__(self) -> None:
        for name, least in (("nb", 1), ("nf", 0), ("nc", 0), ("nd", 0), ("nk", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise LinkwrightError(f"the order {name} is a whole number of at least {least}, not {value!r}")
            if value > 200:
                raise LinkwrightError(f"the order {name} = {value} is beyond 200, the largest that is fitted")

    def count(self, shared: bool) -> int:
        """How many coefficients are estimated; `shared`: whether F and D are one set."""
        return self.nb + self.nf + self.nc + (0 if shared else self.nd)

    def names(self, shared: bool) -> list[str]:
        """The coefficients in the order of the parameter vector: b0, b1, ..., f1, ..., c1, ..., d1, ...; without those
        of D where they are `shared`.
        """
        names = [f"b{k}" for k in range(self.nb)] + [f"{'a' if shared else 'f'}{k + 1}" for k in range(self.nf)]
        names += [f"c{k + 1}" for k in range(self.nc)]
        return names + ([] if shared else [f"d{k + 1}" for k in range(self.nd)])

    def __str__(self) -> str:
        return f"nb={self.nb}, nf={self.nf}, nc={self.nc}, nd={self.nd}, nk={self.nk}"


@dataclass(frozen=True)
class Coefficients:
    """The polynomials of a model in q^-1; F, C, D start with one, B is without its delay."""

    B: Floats
    F: Floats
    C: Floats
    D: Floats


def split(theta: Floats, orders: Orders, shared: bool) -> Coefficients:
    """The polynomials of a parameter vector."""
    nb, nf, nc = orders.nb, orders.nf, orders.nc
    one = np.ones(1)
    f = np.concatenate([one, theta[nb : nb + nf]])
    c = np.concatenate([one, theta[nb + nf : nb + nf + nc]])
    d = f if shared else np.concatenate([one, theta[nb + nf + nc : nb + nf + nc + orders.nd]])
    return Coefficients(theta[:nb].copy(), f, c, d)


def join(parts: Coefficients, shared: bool) -> Floats:
    """The parameter vector of polynomials."""
    return np.concatenate([parts.B, parts.F[1:], parts.C[1:], *([] if shared else [parts.D[1:]])])


class Predictor:
    """Residuals of one record as a function of (coefficients, initial conditions), and their exact Jacobian.

    With `initial="estimate"` what happened before the record is unknown: past inputs and outputs enter through
    polynomials of the first samples, I/F in the simulated output and J/C in the residuals, whose coefficients are
    estimated along. With C = 1 that is the same as leaving out the first residuals. `initial="zero"`: a start at rest.
    """

    def __init__(self, u: Floats, y: Floats, orders: Orders, *, shared: bool, initial: str = "estimate") -> None:
        self.u, self.y, self.orders, self.shared = u, y, orders, shared
        self.count = orders.count(shared)
        nk, nb, nf, nc = orders.nk, orders.nb, orders.nf, orders.nc
        if initial == "zero":
            self.plant_start = self.noise_start = 0
        elif initial != "estimate":
            raise LinkwrightError(f"initial conditions are 'estimate' or 'zero', not {initial!r}")
        elif shared:
            self.plant_start, self.noise_start = 0, max(nf, nb + nk - 1, nc)
        else:
            self.plant_start, self.noise_start = max(nf, nb + nk - 1), max(nc, orders.nd)
        needed = max(nf, nb + nk - 1, nc, orders.nd) + 1
        if len(y) < needed:
            raise DataError(
                f"a record of {len(y)} samples is too short for a model of {orders}: at least {needed} are needed"
            )
        self.size = self.count + self.plant_start + self.noise_start
        self._impulse = np.zeros(len(y))
        self._impulse[0] = 1.0
        self._last: Floats | None = None

    # -- residuals ---------------------------------------------------------------------------------------
    def _filtered(self, x: Floats) -> None:
        if self._last is not None and np.array_equal(x, self._last):
            return
        o, p, n = self.orders, split(x, self.orders, self.shared), len(self.y)
        forced = np.zeros(n)
        forced[o.nk :] = lfilter(p.B, [1.0], self.u[: n - o.nk])
        start = x[self.count + self.plant_start :]
        if self.shared:
            self.w, self.v = forced, self.y
            right = lfilter(p.F, [1.0], self.y) - forced
        else:
            forced[: self.plant_start] += x[self.count : self.count + self.plant_start]
            self.w = lfilter([1.0], p.F, forced)
            self.v = self.y - self.w
            right = lfilter(p.D, [1.0], self.v)
        right[: self.noise_start] += start
        self.e = lfilter([1.0], p.C, right)
        self.parts, self._last = p, x.copy()

    def residuals(self, x: Floats) -> Floats:
        """e (N) at x = (coefficients, initial conditions)."""
        self._filtered(x)
        return np.asarray(self.e)

    def jacobian(self, x: Floats) -> Floats:
        """∂e/∂x (N, size): each block is one filtered signal and its shifts."""
        self._filtered(x)
        o, p, n = self.orders, self.parts, len(self.y)
        gradient = np.zeros((n, self.size), order="F")
        one = [1.0]

        def through_noise(signal: Floats) -> Floats:
            return signal if self.shared else np.asarray(lfilter(one, p.F, lfilter(p.D, one, signal)))

        by_input = lfilter(one, p.C, through_noise(self.u))
        by_output = self.y if self.shared else through_noise(self.w)
        column = _shifts(gradient, 0, -by_input, o.nk, o.nb)
        column = _shifts(gradient, column, lfilter(one, p.C, by_output), 1, o.nf)
        if o.nc:
            column = _shifts(gradient, column, -lfilter(one, p.C, self.e), 1, o.nc)
        if not self.shared and o.nd:
            column = _shifts(gradient, column, lfilter(one, p.C, self.v), 1, o.nd)
        if self.plant_start:
            column = _shifts(gradient, column, -lfilter(one, p.C, through_noise(self._impulse)), 0, self.plant_start)
        if self.noise_start:
            _shifts(gradient, column, lfilter(one, p.C, self._impulse), 0, self.noise_start)
        return gradient

    # -- initial conditions ------------------------------------------------------------------------------
    def start(self, theta: Floats) -> Floats:
        """(coefficients, initial conditions): the initial conditions that fit best; they enter linearly."""
        x = np.concatenate([theta, np.zeros(self.size - self.count)])
        if self.size > self.count:
            e, free = self.residuals(x), self.jacobian(x)[:, self.count :]
            # The start matters only as long as its effect lasts; the rest would be sums of zeros.
            lasts = np.flatnonzero(np.abs(free).max(axis=1) > 1e-12 * np.abs(free).max())
            rows = slice(0, max(int(lasts[-1]) + 1, free.shape[1]) if len(lasts) else None)
            x[self.count :] = -lstsq(free[rows], e[rows], lapack_driver="gelsy")[0]
        return x

    def allowed(self, x: Floats) -> bool:
        """Whether the predictor is stable: the roots of C and, unless shared, of F are inside the unit circle."""
        p = split(x, self.orders, self.shared)
        return bool(np.all(np.isfinite(x))) and stable(p.C) and (self.shared or stable(p.F))


def _shifts(columns: Floats, column: int, signal: Floats, first: int, count: int) -> int:
    n = len(signal)
    for k in range(first, first + count):
        columns[k:, column] = signal[: n - k]
        column += 1
    return column


def stable(polynomial: Floats) -> bool:
    """Whether all roots of 1 + a1 q^-1 + ... lie inside the unit circle, by the Schur–Cohn step-down recursion."""
    a = [float(x) for x in polynomial]
    while len(a) > 1:
        k = a[-1]
        if not abs(k) < 1.0:
            return False
        scale = 1.0 - k * k
        a = [(x - k * z) / scale for x, z in zip(a[:-1], a[:0:-1], strict=True)]
    return True


def reflected(polynomial: Floats, most: float = 0.9999) -> Floats:
    """The polynomial with the roots outside the unit circle mirrored into it; on the circle it has the same shape.

    Its magnitude there is smaller by the product of the moved roots' moduli.
    """
    if stable(polynomial):
        return polynomial
    roots = np.roots(polynomial)
    size = np.abs(roots)
    moved = np.where(size > 1.0, roots / np.maximum(size, 1e-300) ** 2, roots)
    moved = np.where(np.abs(moved) > most, moved * (most / np.maximum(np.abs(moved), 1e-300)), moved)
    return np.real(np.poly(moved)).astype(float)
