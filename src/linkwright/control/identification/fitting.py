"""One prediction-error fit at given orders: starting values, Levenberg-Marquardt, covariance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import lstsq  # type: ignore[import-untyped]  # SciPy has no types
from scipy.optimize import least_squares  # type: ignore[import-untyped]  # SciPy has no types
from scipy.signal import lfilter  # type: ignore[import-untyped]  # SciPy has no types

from linkwright.base.arrays import Floats
from linkwright.control.identification.prediction import Coefficients, Orders, Predictor, join, reflected, stable
from linkwright.control.identification.validation import parameter_covariance
from linkwright.errors import DataError

ONE = np.ones(1)
Shifted = tuple[Floats, int, int]  # a signal, its first shift, and the number of shifts


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
    z = None if instruments is None else regressors([(-instruments, 1, na), (u, nk, nb)], skip)
    a, b = _regressed(y, [(-y, 1, na), (u, nk, nb)], skip, z)
    return b, np.concatenate([ONE, a])


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
            by_v, by_e = _regressed(v, [(-v, 1, nd), (e, 1, nc)], skip)
            d, c = np.concatenate([ONE, by_v]), reflected(np.concatenate([ONE, by_e]), 0.98)
            e = lfilter(d, c, v)
        yield c, (d if stable(d) else reflected(d, 0.999))


def _armax(u: Floats, y: Floats, innovations: Floats, orders: Orders) -> Floats:
    nb, na, nc, nk = orders.nb, orders.nf, orders.nc, orders.nk
    skip = max(na, nb + nk - 1, nc)
    b, by_y, by_e = _regressed(y, [(u, nk, nb), (-y, 1, na), (innovations, 1, nc)], skip)
    a, c = np.concatenate([ONE, by_y]), reflected(np.concatenate([ONE, by_e]), 0.98)
    return join(Coefficients(b, a, c, a), True)


def _regressed(y: Floats, signals: list[Shifted], skip: int, instruments: Floats | None = None) -> list[Floats]:
    """The coefficients by which shifts of these signals make up y from `skip` on: least squares, or instruments'."""
    psi, right = regressors(signals, skip), y[skip:]
    if instruments is not None:
        psi, right = instruments.T @ psi, instruments.T @ right
    theta = lstsq(psi, right, lapack_driver="gelsy")[0]
    return np.split(theta, np.cumsum([count for _, _, count in signals])[:-1])


def regressors(signals: list[Shifted], skip: int) -> Floats:
    """Columns signal[t − first], ..., signal[t − first − count + 1] for t from skip on."""
    n = len(signals[0][0])
    columns = [signal[skip - k : n - k] for signal, first, count in signals for k in range(first, first + count)]
    return np.stack(columns, axis=1) if columns else np.zeros((n - skip, 0))


def _delayed(signal: Floats, by: int) -> Floats:
    return np.concatenate([np.zeros(by), signal[: len(signal) - by]]) if by else signal


def _padded(count: int) -> Floats:
    return np.concatenate([ONE, np.zeros(count)])


ENOUGH = 20_000  # samples for a starting point


@dataclass(frozen=True)
class Fitted:
    """A fit in the units of the data: coefficients, noise variance, covariance, and what the fit took."""

    theta: Floats
    orders: Orders
    shared: bool
    variance: float
    covariance: Floats
    loss: float  # sum of squared residuals
    samples: int  # residuals that initial conditions do not take up
    total: int  # samples of the record, the same for all orders that are compared
    converged: bool

    @property
    def count(self) -> int:
        return len(self.theta)

    @property
    def aic(self) -> float:
        """Akaike's criterion, N ln(loss/N) + 2p."""
        return self._likelihood + 2 * self.count

    @property
    def bic(self) -> float:
        """Schwarz's criterion, N ln(loss/N) + p ln N."""
        return self._likelihood + self.count * float(np.log(self.total))

    @property
    def _likelihood(self) -> float:
        # The mean over the residuals that count, times the same N for all orders: longer delays leave fewer residuals.
        return self.total * float(np.log(max(self.loss, 1e-300) / self.samples))


def fit(
    u: Floats,
    y: Floats,
    orders: Orders,
    *,
    shared: bool,
    initial: str,
    most_starts: int,
    seed: int = 0,
    first: Floats | None = None,
    evaluations: int = 200,
    tolerance: float = 1e-10,
) -> Fitted:
    """The coefficients of least squared residuals; `first` is a vector to start from beside the usual ones."""
    total = len(y)
    if orders.nk + orders.nb > total // 2:
        raise DataError(f"a delay of {orders.nk} samples cannot be fitted to a record of {total}: record for longer")
    if initial == "estimate" and orders.nk > 1:
        # The first outputs answer to inputs before the record: without them a long delay needs no unknowns of its own.
        late = orders.nk - 1
        fitted = replace(orders, nk=1)
        u, y = u[: total - late], y[late:]
    else:
        fitted = orders
    su, sy = float(np.std(u)) or 1.0, float(np.std(y)) or 1.0
    predictor = Predictor(u / su, y / sy, fitted, shared=shared, initial=initial)
    if len(y) < 3 * predictor.size + 10:
        raise DataError(
            f"{total} samples are too few for the orders {orders} ({predictor.size} unknowns with the initial "
            f"conditions): record at least {total - len(y) + 3 * predictor.size + 10}, or take smaller orders"
        )
    units = np.ones(predictor.count)
    units[: orders.nb] = sy / su
    candidates = _candidates(predictor, fitted, shared, most_starts, seed, None if first is None else first / units)
    solutions = [_levenberg_marquardt(predictor, x0, evaluations, tolerance) for x0 in candidates]
    best = min(solutions, key=lambda solution: solution.cost)
    jacobian = predictor.jacobian(best.x)
    free = max(1, len(y) - predictor.size)
    loss = 2.0 * float(best.cost)
    variance = loss / free
    covariance = parameter_covariance(jacobian, variance, predictor.count) * np.outer(units, units)
    return Fitted(
        best.x[: predictor.count] * units,
        orders,
        shared,
        variance * sy**2,
        covariance,
        loss * sy**2,
        len(y) - (predictor.size - predictor.count),
        total,
        bool(best.success),
    )


def _candidates(
    predictor: Predictor, orders: Orders, shared: bool, most: int, seed: int, first: Floats | None
) -> list[Floats]:
    """The best starts by their loss, then perturbed copies of the best where more are asked for."""
    thetas = [] if first is None else [first]
    thetas += list(starts(predictor.u[:ENOUGH], predictor.y[:ENOUGH], orders, shared=shared))
    scored: list[tuple[float, Floats]] = []
    for theta in thetas:
        if predictor.allowed(theta):
            x = predictor.start(theta)
            loss = float(np.sum(predictor.residuals(x) ** 2))
            if np.isfinite(loss) and all(not np.allclose(x, other, rtol=1e-3) for _, other in scored):
                scored.append((loss, x))
    if not scored:
        scored.append((np.inf, np.zeros(predictor.size)))
    scored.sort(key=lambda pair: pair[0])
    chosen = [x for _, x in scored[:most]]
    rng = np.random.default_rng(seed)
    for _ in range(8 * most):
        if len(chosen) >= most:
            break
        theta = scored[0][1][: predictor.count] * (1.0 + 0.1 * rng.standard_normal(predictor.count))
        if predictor.allowed(theta):
            chosen.append(predictor.start(theta))
    return chosen


def _levenberg_marquardt(predictor: Predictor, x0: Floats, evaluations: int, tolerance: float) -> Any:
    """MINPACK's, kept to stable predictors: beyond the border residuals are huge, so that the step is shortened."""
    n = len(predictor.y)
    wall = np.full(n, 1e3 * max(1.0, float(np.sqrt(np.mean(predictor.residuals(x0) ** 2)))))

    def residuals(x: Floats) -> Floats:
        if not predictor.allowed(x):
            return wall
        with np.errstate(all="ignore"):
            e = predictor.residuals(x)
        return e if np.all(np.isfinite(e)) else wall

    return least_squares(
        residuals,
        x0,
        predictor.jacobian,
        method="lm",
        x_scale="jac",
        ftol=tolerance,
        xtol=tolerance,
        gtol=1e-12,
        max_nfev=evaluations,
    )
