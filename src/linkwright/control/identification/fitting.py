"""One prediction-error fit at given orders: several starts, Levenberg–Marquardt, covariance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import least_squares  # type: ignore[import-untyped]  # SciPy has no types

from linkwright.base.arrays import Floats
from linkwright.control.identification.prediction import Orders, Predictor
from linkwright.control.identification.starts import starts
from linkwright.control.identification.uncertainty import parameter_covariance
from linkwright.errors import DataError

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
    evaluations: int
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
        int(best.nfev),
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
