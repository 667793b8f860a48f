"""Starting values for prediction-error fits: ARX, instrumental variables, Steiglitz–McBride, Hannan–Rissanen."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import lstsq  # type: ignore[import-untyped]  # SciPy has no types
from scipy.signal import lfilter  # type: ignore[import-untyped]  # SciPy has no types

from linkwright.base.arrays import Floats
from linkwright.control.identification.prediction import Coefficients, Orders, join, reflected, stable

ONE = np.ones(1)


def starts(u: Floats, y: Floats, orders: Orders, *, shared: bool) -> Iterator[Floats]:
    """Parameter vectors to start from; each has stable C and, unless shared, stable F."""
    long = _long_order(len(y), orders)
    first = arx(u, y, long, long, orders.nk)
    innovations = lfilter(first[1], [1.0], y) - _delayed(lfilter(first[0], [1.0], u), orders.nk)
    innovations[:long] = 0.0
    if shared:
        yield _armax(u, y, innovations, orders)
        b, a = arx(u, y, orders.nb, orders.nf, orders.nk)
        yield join(Coefficients(b, a, _padded(orders.nc), a), shared)
        return
    for b, f in _plants(u, y, orders, first):
        v = y - _delayed(lfilter(b, f, u), orders.nk)
        for c, d in _noises(v, innovations, orders):
            yield join(Coefficients(b, f, c, d), shared)


def _long_order(n: int, orders: Orders) -> int:
    wanted = 3 * (orders.nf + orders.nd + orders.nc + 4)
    return max(2, min(wanted, 60, n // 8))


def _plants(u: Floats, y: Floats, orders: Orders, long: tuple[Floats, Floats]) -> Iterator[tuple[Floats, Floats]]:
    """B and F by the classic routes; the first is consistent for coloured noise and in closed loop."""
    nb, nf, nk = orders.nb, orders.nf, orders.nk
    # The long ARX model's A whitens the noise: filtered by it, the data are those of an output-error model.
    yield steiglitz_mcbride(lfilter(long[1], [1.0], u), lfilter(long[1], [1.0], y), nb, nf, nk)
    yield steiglitz_mcbride(u, y, nb, nf, nk)
    b, a = arx(u, y, nb, nf, nk)
    for _ in range(3):
        a = reflected(a)
        instruments = _delayed(lfilter(b, a, u), nk)
        b, a = arx(u, y, nb, nf, nk, instruments)
    yield b, reflected(a)


def arx(u: Floats, y: Floats, nb: int, na: int, nk: int, instruments: Floats | None = None) -> tuple[Floats, Floats]:
    """B and A of A y = q^-nk B u + e: least squares, or instrumental variables with a noise-free output."""
    skip = max(na, nb + nk - 1)
    regressors = _regressors([(-y, 1, na), (u, nk, nb)], skip)
    if instruments is None:
        theta = lstsq(regressors, y[skip:], lapack_driver="gelsy")[0]
    else:
        z = _regressors([(-instruments, 1, na), (u, nk, nb)], skip)
        theta = lstsq(z.T @ regressors, z.T @ y[skip:], lapack_driver="gelsy")[0]
    return theta[na:], np.concatenate([ONE, theta[:na]])


def steiglitz_mcbride(u: Floats, y: Floats, nb: int, nf: int, nk: int, rounds: int = 12) -> tuple[Floats, Floats]:
    """B and F of y = q^-nk B/F u by least squares on data filtered by the last 1/F; the best of the rounds."""
    f = ONE
    best, least = (np.zeros(nb), _padded(nf)), np.inf
    for _ in range(rounds):
        b, new = arx(lfilter([1.0], f, u), lfilter([1.0], f, y), nb, nf, nk)
        new = reflected(new)
        miss = y - _delayed(lfilter(b, new, u), nk)
        cost = float(miss @ miss)
        if cost < least:
            best, least = (b, new), cost
        if len(f) == len(new) and np.allclose(f, new, rtol=1e-6, atol=1e-9):
            break
        f = new
    return best


def _noises(v: Floats, innovations: Floats, orders: Orders) -> Iterator[tuple[Floats, Floats]]:
    """C and D of v = C/D e by Hannan and Rissanen: regress v on its past and on the past of estimated e."""
    nc, nd = orders.nc, orders.nd
    if not nc and not nd:
        yield ONE, ONE
        return
    skip = max(nc, nd)
    for e in (innovations, None):
        if e is None:  # innovations of v itself, by a long autoregression
            long = max(2, min(30, len(v) // 8))
            _, a = arx(np.zeros_like(v), v, 1, long, 0)
            e = lfilter(a, [1.0], v)
            e[:long] = 0.0
        d, c = _padded(nd), _padded(nc)
        for _ in range(2):
            theta = lstsq(_regressors([(-v, 1, nd), (e, 1, nc)], skip), v[skip:], lapack_driver="gelsy")[0]
            d, c = np.concatenate([ONE, theta[:nd]]), reflected(np.concatenate([ONE, theta[nd:]]), 0.98)
            e = lfilter(d, c, v)
        yield c, (d if stable(d) else reflected(d, 0.999))


def _armax(u: Floats, y: Floats, innovations: Floats, orders: Orders) -> Floats:
    nb, na, nc, nk = orders.nb, orders.nf, orders.nc, orders.nk
    skip = max(na, nb + nk - 1, nc)
    regressors = _regressors([(u, nk, nb), (-y, 1, na), (innovations, 1, nc)], skip)
    theta = lstsq(regressors, y[skip:], lapack_driver="gelsy")[0]
    a = np.concatenate([ONE, theta[nb : nb + na]])
    c = reflected(np.concatenate([ONE, theta[nb + na :]]), 0.98)
    return join(Coefficients(theta[:nb], a, c, a), True)


def _regressors(signals: list[tuple[Floats, int, int]], skip: int) -> Floats:
    """Columns signal[t − first], ..., signal[t − first − count + 1] for t from skip on."""
    n = len(signals[0][0])
    columns = [signal[skip - k : n - k] for signal, first, count in signals for k in range(first, first + count)]
    return np.stack(columns, axis=1) if columns else np.zeros((n - skip, 0))


def _delayed(signal: Floats, by: int) -> Floats:
    return np.concatenate([np.zeros(by), signal[: len(signal) - by]]) if by else signal


def _padded(count: int) -> Floats:
    return np.concatenate([ONE, np.zeros(count)])
