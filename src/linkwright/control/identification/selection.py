"""Order selection: fits over a grid, ranked by an information criterion or by errors on data that were held out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from linkwright.base.arguments import whole_number
from linkwright.base.arrays import Floats
from linkwright.control.identification.fitting import arx, fit
from linkwright.control.identification.models import SHARED
from linkwright.control.identification.prediction import Orders, Predictor
from linkwright.control.identification.records import Record
from linkwright.errors import DataError, LinkwrightError

SHOWN = 5  # candidates that are printed
ROUNDS = 6  # of moving to a better neighbour
CRITERIA = ("bic", "aic", "validation")


@dataclass(frozen=True)
class Candidate:
    """One point of the grid: its orders, its criteria (smaller is better), and its one-step error on held-out data."""

    orders: Orders
    bic: float
    aic: float
    validation: float

    def score(self, criterion: str) -> float:
        return float(getattr(self, criterion))

    def __str__(self) -> str:
        held = f", held-out error {self.validation:.4g}" if np.isfinite(self.validation) else ""
        return f"{self.orders}: BIC {self.bic:.1f}, AIC {self.aic:.1f}{held}"


class Selection(tuple[Candidate, ...]):
    """The candidates of an order selection, best first; printed are the first few."""

    __slots__ = ()

    def __repr__(self) -> str:
        left = len(self) - SHOWN
        lines = [f"{len(self)} candidates, best first", *(f"  {one}" for one in self[:SHOWN])]
        return "\n".join([*lines, *([f"  and {left} more"] if left > 0 else [])])


def select(
    seen: Record,
    unseen: Record | None,
    family: str,
    delay: int | None,
    criterion: str,
    max_order: int,
    initial: str,
) -> tuple[Orders, Selection]:
    """The best orders and all candidates, best first.

    The whole grid of five orders would be thousands of fits: the plant's orders are searched with a noise model of
    order two, then the noise's with the best plant, then both and the delay from neighbour to better neighbour.
    """
    if criterion not in CRITERIA:
        raise LinkwrightError(f"the criterion is one of {', '.join(CRITERIA)}, not {criterion!r}")
    if criterion == "validation" and unseen is None:
        raise LinkwrightError("criterion='validation' needs data that are held out: give holdout=0.25 for instance")
    whole_number("max_order", max_order, 1)
    grid = _Grid(seen, unseen, family, criterion, initial)
    excited, _ = seen.excitation(2 * max_order + 1)
    top = min(max_order, max(1, excited // 2), max(1, (len(seen) - 40) // 24))
    nk = estimated_delay(seen) if delay is None else delay
    noise = (2, 2) if family == "box-jenkins" else (1, 0) if family == "armax" else (0, 0)
    grid.run(Orders(nb, nf, *noise, nk) for nf in range(1, top + 1) for nb in {max(1, nf - 1), nf, nf + 1})
    best = grid.best
    if family == "box-jenkins":
        grid.run(replace(best, nc=nc, nd=nd) for nc in range(4) for nd in range(4))
    elif family == "armax":
        grid.run(replace(best, nc=nc) for nc in range(1, top + 1))
    # Then downhill from neighbour to neighbour: one sample less of delay, one more coefficient of B and one fewer of F
    # describe nearly the same plant, so all three move together.
    least = min(nk, 1)
    for _ in range(ROUNDS):
        best = grid.best
        grid.run(_plants_around(best, top, None if delay is not None else least))
        if family in ("box-jenkins", "armax"):
            grid.run(_noises_around(grid.best, family))
        if grid.best == best:
            break
    return grid.best, Selection(grid.ranked)


def _plants_around(best: Orders, top: int, least_delay: int | None) -> Iterator[Orders]:
    steps = (-1, 0, 1)
    for i, j, k in product(steps, steps, steps if least_delay is not None else (0,)):
        nb, nf, nk = best.nb + i, best.nf + j, best.nk + k
        if 1 <= nb <= top + 1 and 0 <= nf <= top and nk >= (least_delay or 0):
            yield replace(best, nb=nb, nf=nf, nk=nk)


def _noises_around(best: Orders, family: str) -> Iterator[Orders]:
    for i, j in product((-1, 0, 1), (-1, 0, 1) if family == "box-jenkins" else (0,)):
        if best.nc + i >= 0 and best.nd + j >= 0:
            yield replace(best, nc=best.nc + i, nd=best.nd + j)


class _Grid:
    def __init__(self, seen: Record, unseen: Record | None, family: str, criterion: str, initial: str) -> None:
        self.seen, self.unseen, self.criterion, self.initial = seen, unseen, criterion, initial
        self.shared, self.family = family in SHARED, family
        self.done: dict[Orders, Candidate] = {}

    def run(self, grid: Iterable[Orders]) -> None:
        for orders in grid:
            if self.shared:
                orders = replace(orders, nd=orders.nf)
            if orders in self.done:
                continue
            try:
                fitted = fit(
                    self.seen.u,
                    self.seen.y,
                    orders,
                    shared=self.shared,
                    initial=self.initial,
                    most_starts=1,
                    evaluations=60,
                    tolerance=1e-7,
                )
            except DataError:
                continue  # too few samples for so many coefficients
            self.done[orders] = Candidate(orders, fitted.bic, fitted.aic, self._validation(fitted.theta, orders))
        if not self.done:
            raise DataError(f"{len(self.seen)} samples are too few to select orders: record more, or give orders=...")

    def _validation(self, theta: Floats, orders: Orders) -> float:
        if self.unseen is None:
            return float("nan")
        predictor = Predictor(self.unseen.u, self.unseen.y, orders, shared=self.shared, initial=self.initial)
        e = predictor.residuals(predictor.start(theta))
        skip = min(predictor.size - predictor.count, len(e) // 2)
        return float(np.sqrt(np.mean(e[skip:] ** 2)))

    @property
    def ranked(self) -> list[Candidate]:
        """Best first. Held-out errors differ by chance: of those within a standard error of the least, the smallest."""
        candidates = sorted(self.done.values(), key=lambda c: c.score(self.criterion))
        if self.criterion == "validation" and self.unseen is not None:
            limit = candidates[0].validation * (1.0 + 1.0 / np.sqrt(2.0 * len(self.unseen)))
            alike = [c for c in candidates if c.validation <= limit]
            first = min(alike, key=lambda c: (c.orders.count(self.shared), c.validation))
            candidates.remove(first)
            candidates.insert(0, first)
        return candidates

    @property
    def best(self) -> Orders:
        return self.ranked[0].orders


def estimated_delay(record: Record, most: int = 20) -> int:
    """The first lag at which a long ARX model's B is five standard deviations from zero (samples)."""
    n = len(record)
    order = max(4, min(30, n // 12))
    nb = max(2, min(most, n // 12))
    b, a = arx(record.u, record.y, nb, order, 0)
    skip = max(order, nb - 1)
    rows = [-record.y[skip - k : n - k] for k in range(1, order + 1)] + [record.u[skip - k : n - k] for k in range(nb)]
    psi = np.stack(rows, axis=1)
    e = record.y[skip:] - psi @ np.concatenate([a[1:], b])
    inverse = np.linalg.pinv(psi.T @ psi, hermitian=True)
    errors = np.sqrt(np.maximum(np.diag(inverse)[order:], 0.0) * float(e @ e) / max(1, len(e) - psi.shape[1]))
    clear = np.flatnonzero(np.abs(b) > 5 * errors)
    return int(clear[0]) if len(clear) else 1
